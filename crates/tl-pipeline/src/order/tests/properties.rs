//! Properties of every sampler, tried on random ones.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const CASES: u32 = if cfg!(miri) { 4 } else { 400 };

fn shuffles() -> impl Strategy<Value = Shuffle> {
    let block = (1u64..40, 1u64..8)
        .prop_map(|(samples, window)| Shuffle::Block { blocks: Blocks::Samples(samples), window });
    let of_source = (1u64..8).prop_map(|window| Shuffle::Block { blocks: Blocks::Source, window });
    prop_oneof![Just(Shuffle::None), Just(Shuffle::Full), block, of_source]
}

/// The samples after each block of a source of `n` samples, of 1 to 16 samples each.
fn block_ends(n: u64) -> Vec<u64> {
    let next = |&end: &u64| Some(end + 1 + end * end % 16);
    std::iter::successors(Some(3), next).take_while(|&end| end < n).chain([n]).collect()
}

/// Ranges that do not overlap, in any order, from sorted bounds.
fn subsets(n: u64) -> impl Strategy<Value = Subset> {
    let ranges = prop::collection::vec(0..=n, 2..8).prop_map(|mut bounds| {
        bounds.sort_unstable();
        let mut ranges: Vec<_> = bounds.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        ranges.reverse();
        Subset::Ranges(ranges)
    });
    let list = prop::collection::vec(0..n, 1..40).prop_map(Subset::List);
    prop_oneof![ranges, list]
}

fn mixtures(n: u64) -> impl Strategy<Value = Samples> {
    let range = (0..n).prop_flat_map(move |start| (Just(start), start + 1..=n));
    let range = range.prop_map(|(start, end)| Subset::from(start..end));
    let list = prop::collection::vec(0..n, 1..20).prop_map(Subset::List);
    let part =
        (prop_oneof![range, list], 1u32..6).prop_map(|(samples, weight)| Part { samples, weight });
    let length = prop_oneof![
        Just(Length::Samples),
        Just(Length::FirstUsedUp),
        Just(Length::AllUsedUp),
        (0u64..150).prop_map(Length::Positions),
    ];
    let has_round = |parts: &[Part]| {
        let mut parts = parts.iter();
        parts.all(|part| match &part.samples {
            Subset::Ranges(ranges) => ranges.iter().cloned().flatten().count(),
            Subset::List(list) => list.len(),
        } >= part.weight as usize)
    };
    (prop::collection::vec(part, 1..5), length)
        .prop_flat_map(|(parts, length)| {
            let weights = prop::collection::vec(0u32..6, parts.len());
            let weights = weights.prop_filter("a weight", |all| all.iter().any(|&one| one > 0));
            // Rounds have at most 20 positions.
            let stage = (20u64..60, weights);
            (Just(parts), Just(length), prop::collection::vec(stage, 0..4))
        })
        .prop_map(|(parts, length, stages)| (parts, length, started(stages)))
        .prop_filter("what is used up first has a round", move |(parts, length, _)| {
            *length != Length::FirstUsedUp || has_round(parts)
        })
        .prop_filter("what is used up has a weight", |(_, length, stages)| {
            let last = stages.last();
            *length != Length::AllUsedUp
                || last.is_none_or(|stage| stage.weights.iter().all(|&weight| weight > 0))
        })
        .prop_map(|(parts, length, stages)| Samples::Mix { parts, length, stages })
}

/// Stages from their distances.
fn started(stages: Vec<(u64, Vec<u32>)>) -> Vec<MixStage> {
    let mut start = 0;
    let stage = |(distance, weights)| {
        start += distance;
        MixStage { start, weights }
    };
    stages.into_iter().map(stage).collect()
}

fn samplers() -> impl Strategy<Value = (u64, Sampler)> {
    (1u64..200).prop_flat_map(|n| {
        let samples = prop_oneof![
            Just(Samples::All),
            subsets(n).prop_map(Samples::Subset),
            mixtures(n),
            Just(Samples::ClassBalanced { of: None, length: Length::Samples }),
        ];
        (Just(n), samples, shuffles(), 1u32..4)
            .prop_map(|(n, samples, shuffle, repeat)| (n, Sampler { samples, shuffle, repeat }))
    })
}

fn label(sample: u64) -> Option<i64> {
    Some(i64::try_from(sample * sample % 7).unwrap() - 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_block_shuffle_is_a_permutation_that_keeps_blocks_together(
        n in 1u64..400, samples in 1u64..50, window in 1u64..9, seed: u64, epoch: u32,
    ) {
        let shuffle = Shuffle::Block { blocks: Blocks::Samples(samples), window };
        let order = Sequence::of_all(n, shuffle).order(seed, epoch);
        let mut seen = vec![false; index(n)];
        for position in 0..n {
            let sample = order.sample_at(position).unwrap();
            prop_assert!(!std::mem::replace(&mut seen[index(sample)], true));
            prop_assert_eq!(order.position_of(sample), Some(position));
        }
        prop_assert_eq!((order.sample_at(n), order.position_of(n)), (None, None));
        // A block's samples come within the span of one window.
        for start in (0..n).step_by(index(samples)) {
            let block = start..n.min(start + samples);
            let positions: Vec<u64> = block.filter_map(|sample| order.position_of(sample)).collect();
            let first = positions.iter().min().unwrap();
            let last = positions.iter().max().unwrap();
            prop_assert!(last - first < samples * window);
        }
    }

    #[test]
    fn huge_block_shuffles_invert(
        n in (1u64 << 40)..(1 << 63), samples in 1u64..1 << 41, window in 1u64..1 << 20, at: u64,
    ) {
        let order = Sequence::of_all(n, Shuffle::Block { blocks: Blocks::Samples(samples), window }).order(1, 2);
        for position in [0, at % n, n - 1] {
            let sample = order.sample_at(position).unwrap();
            prop_assert!(sample < n);
            prop_assert_eq!(order.position_of(sample), Some(position));
        }
    }

    /// Against counting the whole epoch.
    #[test]
    fn positions_are_those_of_samples_that_come_once(
        (n, sampler) in samplers(), seed: u64, epoch: u32,
    ) {
        let order = sampler.resolve_over(n, 64, &block_ends(n), label).unwrap().order(seed, epoch);
        let mut positions: HashMap<u64, Vec<u64>> = HashMap::new();
        for position in 0..order.len() {
            let sample = order.sample_at(position).unwrap();
            prop_assert!(sample < n);
            positions.entry(sample).or_default().push(position);
        }
        prop_assert_eq!(order.sample_at(order.len()), None);
        for sample in 0..=n {
            let expected = match positions.get(&sample).map(Vec::as_slice) {
                Some([position]) if listed_once(&sampler, sample) => Some(*position),
                _ => None,
            };
            prop_assert_eq!(order.position_of(sample), expected, "sample {} of {:?}", sample, sampler);
        }
    }

    #[test]
    fn subsets_are_never_left_and_come_whole(
        (n, subset) in (1u64..200).prop_flat_map(|n| (Just(n), subsets(n))),
        shuffle in shuffles(), repeat in 1u32..4, seed: u64,
    ) {
        let mut expected: Vec<u64> = match &subset {
            Subset::Ranges(ranges) => ranges.iter().cloned().flatten().collect(),
            Subset::List(list) => list.clone(),
        };
        let sampler = Sampler { samples: Samples::Subset(subset), shuffle, repeat };
        let mut all = samples(&sampler.resolve_over(n, 64, &block_ends(n), label).unwrap().order(seed, 0));
        prop_assert_eq!(all.len(), expected.len() * repeat as usize);
        if shuffle == Shuffle::None {
            let listed: Vec<u64> = expected.iter().copied().cycle().take(all.len()).collect();
            prop_assert_eq!(&all, &listed);
        }
        // Every repetition by itself is all of the subset.
        expected.sort_unstable();
        for repetition in all.chunks_mut(expected.len().max(1)) {
            repetition.sort_unstable();
            prop_assert_eq!(&*repetition, &*expected);
        }
    }

    /// Each stage has whole rounds of its weights, and parts continue: their samples come once before
    /// any comes again, through all stages. Without the last stage nothing before it differs.
    #[test]
    fn stages_have_their_weights_and_parts_continue(
        sizes in prop::collection::vec(1u64..30, 3),
        weights in prop::collection::vec(prop::collection::vec(0u32..5, 3), 1..5),
        distances in prop::collection::vec(1u64..60, 4),
        shuffle in shuffles(), seed: u64, epoch: u32,
    ) {
        let starts = distances.into_iter().scan(0, |start, distance| {
            *start += distance;
            Some(*start)
        });
        let stages: Vec<MixStage> =
            starts.zip(&weights[1..]).map(|(start, weights)| MixStage { start, weights: weights.clone() }).collect();
        let firsts = [0, sizes[0], sizes[0] + sizes[1]];
        let part = |part: usize| Part {
            samples: Subset::from(firsts[part]..firsts[part] + sizes[part]),
            weight: weights[0][part],
        };
        let mix = |stages: &[MixStage]| {
            let parts = (0..3).map(part).collect();
            let samples = Samples::Mix { parts, length: Length::Positions(500), stages: stages.to_vec() };
            Sampler { samples, shuffle, repeat: 1 }.resolve_over(firsts[2] + sizes[2], 64, &[], label)
        };
        let Ok(sequence) = mix(&stages) else {
            // Only for what cannot be a mixture.
            let is_idle = |part| weights.iter().all(|weights| weights[part] == 0);
            let is_short = stages.len() > 1 || weights.iter().any(|weights| weights.iter().sum::<u32>() == 0);
            prop_assert!(is_short || (0..3).any(is_idle));
            return Ok(());
        };
        let all = samples(&sequence.order(seed, epoch));
        let part_of = |sample: u64| firsts.iter().rposition(|&first| first <= sample).unwrap();
        // Each stage begins at the first round at its start or after it.
        let mut start = 0;
        let mut borders = Vec::new();
        for (number, weights) in weights.iter().enumerate() {
            let divisor = weights.iter().fold(0, |a, &b| if a == 0 { b } else { gcd(a, b) });
            let round = index(u64::from(weights.iter().sum::<u32>() / divisor));
            let end = stages.get(number).map_or(all.len(), |next| {
                start + (index(next.start) - start).div_ceil(round) * round
            });
            for positions in all[start..end.min(all.len())].chunks_exact(round) {
                let mut counts = [0; 3];
                positions.iter().for_each(|&sample| counts[part_of(sample)] += divisor);
                prop_assert_eq!(&counts[..], &weights[..], "stage {} from {}", number, start);
            }
            borders.push(start);
            start = end;
        }
        for part in 0..3 {
            // Turns of a part come in order where its turns of a round are not shuffled.
            let of_part = |all: &[u64]| -> Vec<u64> {
                all.iter().copied().filter(|&sample| part_of(sample) == part).collect()
            };
            for cycle in of_part(&all).chunks_exact(index(sizes[part])) {
                let mut cycle = cycle.to_vec();
                cycle.sort_unstable();
                let is_whole = cycle.iter().copied().eq(firsts[part]..firsts[part] + sizes[part]);
                prop_assert!(is_whole || shuffle != Shuffle::None);
            }
            for &border in borders.iter().filter(|&&border| border <= all.len()) {
                let mut counts = vec![0; index(sizes[part])];
                of_part(&all[..border]).iter().for_each(|sample| counts[index(sample - firsts[part])] += 1);
                prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            }
        }
        if let (Some(last), Ok(earlier)) = (stages.last(), mix(&stages[..stages.len().max(1) - 1])) {
            let start = index(last.start).min(all.len());
            prop_assert_eq!(&samples(&earlier.order(seed, epoch))[..start], &all[..start]);
            prop_assert!(sequence.begins_as(earlier.fingerprint(), last.start));
            prop_assert!(!sequence.begins_as(earlier.fingerprint(), last.start + 20));
            prop_assert!(!earlier.begins_as(sequence.fingerprint(), 0));
        }
    }

    /// The counts of parts are exact after every round and never further off than a round's turns.
    #[test]
    fn parts_of_a_mixture_have_their_share(
        weights in prop::collection::vec(1u32..9, 1..6), shuffle in shuffles(), seed: u64,
        positions in 0u64..300,
    ) {
        let size = 10;
        let part = |(start, &weight): (u64, &u32)| Part {
            samples: Subset::from(start * size..(start + 1) * size),
            weight,
        };
        let parts: Vec<Part> = (0..).zip(&weights).map(part).collect();
        let n = parts.len() as u64 * size;
        let samples = Samples::Mix { parts, length: Length::Positions(positions), stages: vec![] };
        let sequence = Sampler { samples, shuffle, repeat: 1 };
        let sequence = sequence.resolve_over(n, 64, &block_ends(n), label).unwrap();
        let order = sequence.order(seed, 0);
        let sum: u32 = weights.iter().sum();
        let mut counts = vec![0u64; weights.len()];
        for position in 0..positions {
            counts[index(order.sample_at(position).unwrap() / size)] += 1;
            let seen = position + 1;
            for (&count, &weight) in counts.iter().zip(&weights) {
                let off = (count * u64::from(sum)).abs_diff(seen * u64::from(weight));
                if seen % u64::from(sum) == 0 {
                    prop_assert_eq!(off, 0);
                }
                prop_assert!(off <= u64::from(sum) * u64::from(weight));
            }
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// If all blocks are whole, a sample is equally likely at every position.
#[test]
fn block_shuffles_are_even_over_samples_and_positions() {
    let n = 12u64;
    let trials = if cfg!(miri) { 4 } else { 40_000u32 };
    for (samples, window) in [(3, 1), (3, 2), (2, 3), (4, 3)] {
        let sequence =
            Sequence::of_all(n, Shuffle::Block { blocks: Blocks::Samples(samples), window });
        let mut counts = vec![0; 144];
        for trial in 0..trials {
            let order = sequence.order(u64::from(trial) / 4, trial % 4);
            for (position, sample) in (0..).zip(super::samples(&order)) {
                counts[index(position * n + sample)] += 1;
            }
        }
        // Samples of a block come together, so that up to `samples * window` cells of a row move
        // alike: the sum equals one of fewer, heavier cells.
        let chi = chi_square(&counts, f64::from(trials) / n as f64) * (n - 1) as f64 / n as f64;
        let together = (samples * window) as f64;
        let freedom = ((n - 1) * (n - 1)) as f64;
        assert!(
            cfg!(miri) || chi < together * limit(freedom / together),
            "{samples} {window}: {chi}"
        );
    }
}

/// True if the listing has `sample` once; otherwise the order promises nothing.
fn listed_once(sampler: &Sampler, sample: u64) -> bool {
    let count = |subset: &Subset| match subset {
        Subset::Ranges(ranges) => ranges.iter().filter(|range| range.contains(&sample)).count(),
        Subset::List(list) => list.iter().filter(|&&listed| listed == sample).count(),
    };
    let listed = match &sampler.samples {
        Samples::Subset(subset) => count(subset),
        Samples::Mix { parts, .. } => parts.iter().map(|part| count(&part.samples)).sum(),
        Samples::All | Samples::Weighted { .. } | Samples::ClassBalanced { .. } => 1,
    };
    let cycles = matches!(sampler.samples, Samples::Mix { .. } | Samples::ClassBalanced { .. });
    listed == 1 && (cycles || sampler.repeat == 1)
}
