//! The cases of `testdata/order/vectors.jsonl`, which `testdata/tools/reference.py` computes from
//! the text of `docs/order.md`.

use serde_json::Value;

use super::*;

const VECTORS: &str = tl_testdata::shipped_text!("order/vectors.jsonl");

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn subset(case: &Value) -> Subset {
    match case.get("ranges") {
        Some(ranges) => {
            let range = |range| <[u64; 2]>::try_from(numbers(range)).unwrap();
            let ranges = ranges.as_array().unwrap().iter().map(range);
            Subset::Ranges(ranges.map(|[start, end]| start..end).collect())
        }
        None => Subset::List(numbers(&case["list"])),
    }
}

fn sampler(case: &Value) -> Sampler {
    let length = match (case["length"].as_str(), case["length"].as_u64()) {
        (Some("first used up"), _) => Length::FirstUsedUp,
        (Some("all used up"), _) => Length::AllUsedUp,
        (Some(other), _) => panic!("no length is called {other}"),
        (None, positions) => positions.map_or(Length::Samples, Length::Positions),
    };
    let weight = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let samples = if let Some(parts) = case.get("mix") {
        let part = |case: &Value| Part { samples: subset(case), weight: weight(&case["weight"]) };
        let parts = parts.as_array().unwrap().iter().map(part).collect();
        let stage = |case: &Value| MixStage {
            start: case[0].as_u64().unwrap(),
            weights: case[1].as_array().unwrap().iter().map(weight).collect(),
        };
        let stages =
            case["stages"].as_array().map_or(Vec::new(), |all| all.iter().map(stage).collect());
        Samples::Mix { parts, length, stages }
    } else if case.get("labels").is_some() {
        Samples::ClassBalanced { of: case.get("of").map(subset), length }
    } else if let Some(weights) = case.get("weights") {
        let weights = weights.as_array().unwrap().iter().map(weight);
        let with = Replacement::With;
        let without = Replacement::Without;
        Samples::Weighted {
            weights: weights.collect::<Vec<u32>>().into(),
            replacement: if case["replacement"].as_bool().unwrap() { with } else { without },
            count: case["length"].as_u64(),
        }
    } else if case.get("ranges").or(case.get("list")).is_some() {
        Samples::Subset(subset(case))
    } else {
        Samples::All
    };
    let repeat = case["repeat"].as_u64().map_or(1, |repeat| u32::try_from(repeat).unwrap());
    Sampler { samples, shuffle: case["shuffle"].as_str().unwrap().parse().unwrap(), repeat }
}

#[test]
fn published_vectors_hold() {
    let mut kinds = 0;
    for line in VECTORS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let n = case["n"].as_u64().unwrap();
        let seed = case["seed"].as_u64().unwrap();
        let epoch = u32::try_from(case["epoch"].as_u64().unwrap()).unwrap();
        if let Some(pairs) = case.get("at") {
            let order = Order::shuffled(n, seed, epoch);
            for pair in pairs.as_array().unwrap() {
                let [position, sample] = numbers(pair).try_into().unwrap();
                assert_eq!(order.sample_at(position), Some(sample), "{line}");
                assert_eq!(order.position_of(sample), Some(position), "{line}");
            }
            continue;
        }
        let label = |sample| case["labels"][usize::try_from(sample).unwrap()].as_i64();
        let global_batch = case["global_batch"].as_u64().unwrap_or(64);
        let ends = case.get("ends").map_or(Vec::new(), numbers);
        let sequence = sampler(&case).resolve_over(n, global_batch, &ends, label).unwrap();
        let order = sequence.order(seed, epoch);
        assert_eq!(samples(&order), numbers(&case["samples"]), "{line}");
        let seeds = case.get("seeds").map_or(vec![seed; 3], numbers);
        assert_eq!([0, 1, 2].map(|position| order.seed_at(position)), *seeds, "{line}");
        let fingerprint = sequence.fingerprint().to_string();
        assert_eq!(fingerprint, case["fingerprint"].as_str().unwrap(), "{line}");
        kinds += 1;
    }
    assert!(kinds >= 45, "{kinds} cases");
}

#[test]
fn the_constructors_are_the_samplers_of_all() {
    for (sampler, order) in [
        (Sampler::from(Shuffle::Full), Order::shuffled(100, 3, 4)),
        (Sampler::default(), Order::sequential(100)),
    ] {
        let sequence = sampler.resolve_over(100, 64, &[], |_| None).unwrap();
        assert_eq!(samples(&sequence.order(3, 4)), samples(&order));
        let of_all = Sequence::of_all(100, sampler.shuffle);
        assert_eq!(sequence.fingerprint(), of_all.fingerprint());
    }
}
