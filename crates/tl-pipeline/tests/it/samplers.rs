//! Samplers through the loader: which samples batches hold, and that resuming goes on in them.

use tl_pipeline::{
    Length, Loader, LoaderConfig, Part, PipelineError, Replacement, Sampler, SamplerError, Samples,
    Shard, Shuffle, Subset, Work,
};

use crate::content::{Record, record};
use crate::memory::{bmps, config, dataset, loader, sample, train};

/// Samples; sample `i` has the label `i % 5`.
const SAMPLES: u32 = 23;

fn samplers() -> Vec<Sampler> {
    let full = |samples| Sampler { samples, ..Shuffle::Full.into() };
    let part = |range, weight| Part { samples: Subset::from(range), weight };
    let weights: Vec<u32> = (0..SAMPLES).map(|sample| sample % 4).collect();
    let weighted = |replacement| Samples::Weighted {
        weights: weights.clone().into(),
        replacement,
        count: None,
    };
    vec![
        Sampler { repeat: 2, ..full(Samples::Subset((7..18).into())) },
        full(Samples::Subset(Subset::List(vec![3, 1, 4, 1, 5, 9, 2, 6]))),
        Shuffle::Block { samples: 3, window: 2 }.into(),
        full(weighted(Replacement::With)),
        full(weighted(Replacement::Without)),
        full(Samples::ClassBalanced { of: None, length: Length::AllUsedUp }),
        full(Samples::Mix {
            parts: vec![part(0..10, 2), part(10..23, 3)],
            length: Length::default(),
        }),
    ]
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
        let sequence = sampler.resolve(one.dataset()).unwrap();
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
