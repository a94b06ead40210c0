//! Samplers through the loader: the samples of batches, also after resuming.

use std::ops::Range;

use tl_pipeline::{
    Blocks, Dataset, Length, Loader, LoaderConfig, MixStage, Part, PipelineError, Replacement,
    Sampler, SamplerError, Samples, Shard, Shuffle, ShuffleQuality, Subset, Together, Work,
};

use crate::content::{Record, record, record_rest};
use crate::memory::{Memory, Stored, bmps, config, dataset, jpeg, loader, sample, train};

/// Samples; sample `i` has the label `i % 5`.
const SAMPLES: u32 = 23;

fn full(samples: Samples) -> Sampler {
    Sampler { samples, ..Shuffle::Full.into() }
}

fn part(range: Range<u64>, weight: u32) -> Part {
    Part { samples: Subset::from(range), weight }
}

fn stage(start: u64, weights: &[u32]) -> MixStage {
    MixStage { start, weights: weights.to_vec() }
}

fn samplers() -> Vec<Sampler> {
    let weights: Vec<u32> = (0..SAMPLES).map(|sample| sample % 4).collect();
    let weighted = |replacement| Samples::Weighted {
        weights: weights.clone().into(),
        replacement,
        count: None,
    };
    vec![
        Sampler { repeat: 2, ..full(Samples::Subset((7..18).into())) },
        full(Samples::Subset(Subset::List(vec![3, 1, 4, 1, 5, 9, 2, 6]))),
        Shuffle::Block { blocks: Blocks::Samples(3), window: 2 }.into(),
        full(weighted(Replacement::With)),
        full(weighted(Replacement::Without)),
        full(Samples::ClassBalanced { of: None, length: Length::AllUsedUp }),
        full(Samples::Mix {
            parts: vec![part(0..10, 2), part(10..23, 3)],
            length: Length::default(),
            stages: vec![],
        }),
        full(Samples::Mix {
            parts: vec![part(0..10, 2), part(10..23, 0)],
            length: Length::Positions(40),
            stages: vec![stage(5, &[1, 2]), stage(20, &[0, 3])],
        }),
    ]
}

#[test]
fn a_state_resumes_with_a_stage_that_begins_after_it() {
    let mixed = |stages| Samples::Mix {
        parts: vec![part(0..10, 2), part(10..23, 1)],
        length: Length::Positions(60),
        stages,
    };
    let mixed = |stages| full(mixed(stages));
    let with =
        |sampler| loader(bmps(SAMPLES), LoaderConfig { sampler, batch_size: 6, ..config(train()) });
    let before = with(mixed(vec![]));
    // Position 20 is in a round that ends at 21.
    let after = with(mixed(vec![stage(20, &[1, 3]), stage(40, &[1, 0])]));
    let whole = record(&after, 0);
    assert_eq!(record(&before, 0)[..3], whole[..3]);
    for batch in 0..=3 {
        let mut epoch = before.epoch(0);
        for _ in 0..batch {
            epoch.next().unwrap().unwrap();
        }
        let state = epoch.state().unwrap();
        assert_eq!(record_rest(after.resume(&state).unwrap()), whole[batch..]);
    }
    let mut epoch = before.epoch(0);
    for _ in 0..4 {
        epoch.next().unwrap().unwrap();
    }
    let late = after.resume(&epoch.state().unwrap());
    assert!(matches!(late, Err(PipelineError::StateMismatch { what: "order", .. })), "{late:?}");
    // A stage is not taken out again.
    let staged = after.epoch(0).state().unwrap();
    let removed = before.resume(&staged);
    assert!(
        matches!(removed, Err(PipelineError::StateMismatch { what: "order", .. })),
        "{removed:?}"
    );
}

#[test]
fn samples_that_come_again_are_augmented_anew() {
    let sampler = Sampler { repeat: 2, ..Shuffle::Full.into() };
    let twice = loader(bmps(SAMPLES), LoaderConfig { sampler, batch_size: 23, ..config(train()) });
    let once = loader(bmps(SAMPLES), LoaderConfig { batch_size: 23, ..config(train()) });
    let [first, second] = &record(&twice, 0)[..] else { panic!("two batches") };
    let row_bytes = first.bytes.len() / 23;
    let image = |record: &Record, sample| {
        let row = record.indices.iter().position(|&index| index == sample).unwrap();
        record.bytes[row * row_bytes..][..row_bytes].to_vec()
    };
    let once = &record(&once, 0)[0];
    for sample in 0..SAMPLES.into() {
        let images = [once, first, second].map(|record| image(record, sample));
        assert!(images[0] != images[1] && images[1] != images[2] && images[0] != images[2]);
    }
    // From docs/order.md; every sample once keeps the epoch's seed.
    let order = twice.order(0);
    assert_eq!([order.seed_at(0), order.seed_at(3)], [12870963724712631011, 4897607255107810863]);
    assert_eq!(loader(bmps(SAMPLES), config(train())).order(0).seed_at(3), 42);
}

fn sampled(sampler: &Sampler, workers: usize) -> Loader {
    let config = LoaderConfig { sampler: sampler.clone(), workers, ..config(Work::Bytes) };
    loader(bmps(SAMPLES), config)
}

fn indices(loader: &Loader, epoch: u32) -> Vec<u64> {
    record(loader, epoch).into_iter().flat_map(|batch| batch.indices).collect()
}

#[test]
fn batches_hold_the_samples_of_the_order_for_any_number_of_workers() {
    for sampler in samplers() {
        let one = sampled(&sampler, 1);
        let sequence = sampler.resolve(one.dataset(), 64).unwrap();
        let mut epochs = Vec::new();
        for epoch in 0..3 {
            let order = sequence.order(42, epoch);
            let expected: Vec<u64> = (0..).map_while(|at| order.sample_at(at)).collect();
            assert_eq!(expected.len() as u64, sequence.len());
            assert_eq!(one.len(), sequence.len().div_ceil(4));
            assert_eq!(indices(&one, epoch), expected);
            assert!(record(&sampled(&sampler, 3), epoch) == record(&one, epoch));
            epochs.push(expected);
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2], "{sampler:?}");
    }
}

#[test]
fn every_sampler_resumes_after_every_batch() {
    for sampler in samplers() {
        let whole = record(&sampled(&sampler, 2), 1);
        for (received, expected) in whole.iter().enumerate() {
            let first = sampled(&sampler, 2);
            let mut epoch = first.epoch(1);
            epoch.by_ref().take(received).for_each(|batch| drop(batch.unwrap()));
            let state = epoch.state().unwrap();
            let next = sampled(&sampler, 1).resume(&state).unwrap().next().unwrap().unwrap();
            assert_eq!(next.indices(), expected.indices);
        }
    }
}

#[test]
fn ranks_together_have_every_position_once() {
    let sampler = &samplers()[5];
    let rank = |rank| {
        let shard = Shard { rank, world: 2, tail: None };
        let config = LoaderConfig { sampler: sampler.clone(), shard, ..config(Work::Bytes) };
        loader(bmps(SAMPLES), LoaderConfig { batch_size: 2, ..config })
    };
    let (first, second) = (indices(&rank(0), 4), indices(&rank(1), 4));
    let joined = first.chunks(2).zip(second.chunks(2)).flat_map(|(a, b)| [a, b].concat());
    // Whole batches of 4: balanced classes come in rounds of 5, and 25 positions are padded to 28.
    let joined: Vec<u64> = joined.collect();
    assert_eq!(joined[..25], indices(&sampled(sampler, 1), 4));
    assert_eq!(joined.len(), 28);
}

#[test]
fn a_state_of_another_sampler_is_refused() {
    for sampler in samplers() {
        let state = sampled(&sampler, 1).epoch(0).state().unwrap();
        for other in samplers() {
            let resumed = sampled(&other, 1).resume(&state).map(|epoch| epoch.remaining());
            assert_eq!(resumed.is_ok(), other == sampler, "{resumed:?}");
            if other != sampler {
                let error = resumed.unwrap_err();
                assert!(matches!(error, PipelineError::StateMismatch { .. }), "{error}");
            }
        }
    }
}

#[test]
fn balancing_samples_without_labels_is_refused_by_name() {
    let mut samples: Vec<_> =
        (0..4).map(|number| sample(number, tbl_format::SampleFormat::Bmp)).collect();
    samples[2].label = None;
    let sampler = Sampler {
        samples: Samples::ClassBalanced { of: None, length: Length::Samples },
        ..Shuffle::Full.into()
    };
    let result = Loader::new(dataset(samples), LoaderConfig { sampler, ..config(Work::Bytes) });
    let error = result.map(|_| ()).unwrap_err();
    assert!(
        matches!(error, PipelineError::Sampler(SamplerError::Unlabelled { sample: 2 })),
        "{error}"
    );
}

/// 4096 samples, sorted by class: 16 classes of 256.
fn sorted(shards: usize) -> Dataset {
    let stored = |number: u32| Stored { label: Some(i64::from(number / 256)), ..jpeg("", vec![]) };
    let samples: Vec<u32> = (0..4096).collect();
    let source = |numbers: &[u32]| -> Box<dyn tbl_io::SampleSource> {
        Box::new(Memory { samples: numbers.iter().copied().map(stored).collect() })
    };
    Dataset::from_sources(samples.chunks(4096 / shards).map(source).collect()).unwrap()
}

#[test]
fn the_quality_of_a_shuffle_is_measured_beside_a_full_one() {
    let measure = |shuffle: Shuffle, shards| {
        ShuffleQuality::measure(&shuffle.into(), &sorted(shards), 1, 64).unwrap()
    };
    // Every batch is a block, and every block of one class.
    let one = measure(Shuffle::Block { blocks: Blocks::Samples(64), window: 1 }, 1);
    assert_eq!((one.positions, one.together), (4096, Together::Block(64)));
    assert_eq!((one.order.neighbours_together, one.order.class_entropy), (1.0, Some(0.0)));
    // 63 of the other 4095 are in the block; sampled, so within five deviations.
    assert!((one.full.neighbours_together - 63.0 / 4095.0).abs() < 0.01, "{one}");
    // The entropy of 64 draws from 16 classes: 4 bits less 15 / (2 * 64 ln 2), to first order.
    assert!((one.full.class_entropy.unwrap() - 3.83).abs() < 0.05, "{one}");
    assert!((one.full.displacement - 1.0 / 3.0).abs() < 0.02, "{one}");
    // Eight blocks among each other: a neighbour is from the same one in 63 of 511 cases, and the
    // classes are those of eight blocks, four of which make a quarter of a class each.
    let eight = measure(Shuffle::Block { blocks: Blocks::Samples(64), window: 8 }, 1);
    assert!((eight.order.neighbours_together - 63.0 / 511.0).abs() < 0.03, "{eight}");
    let entropy = eight.order.class_entropy.unwrap();
    assert!(entropy > 2.0 && entropy < 3.0, "{eight}");
    // Unshuffled, everything comes where it is stored, and full shuffles are as good as each other.
    let none = measure(Shuffle::None, 4);
    assert_eq!((none.together, none.order.displacement), (Together::Shard, 0.0));
    assert_eq!((none.order.neighbours_together, none.order.class_entropy), (1.0, Some(0.0)));
    assert!((none.full.neighbours_together - 0.25).abs() < 0.05, "{none}");
    let full = measure(Shuffle::Full, 4);
    assert_eq!(full.order, full.full);
    let text = "shuffle block:64x1: 100.0 % of neighbours from the same 64 samples (full shuffle: ";
    assert!(one.to_string().starts_with(text), "{one}");
    assert!(!one.to_string().contains('\n'), "{one}");
}

#[test]
fn a_shuffle_of_little_has_a_quality() {
    let unlabelled = dataset(vec![jpeg("a", vec![])]);
    let quality = ShuffleQuality::measure(&Shuffle::Full.into(), &unlabelled, 0, 1 << 40).unwrap();
    assert_eq!((quality.positions, quality.order.class_entropy), (1, None));
    let none = ShuffleQuality::measure(&Shuffle::Full.into(), &dataset(vec![]), 0, 64).unwrap();
    assert_eq!((none.positions, none.order.neighbours_together), (0, 0.0));
}
