//! Skipped samples: by default not more than half of them, never without a word, and no batch without
//! a sample.

use std::time::Duration;

use tbl_format::SampleFormat;
use tl_pipeline::{
    Collate, Dataset, Epoch, ErrorBudget, Loader, LoaderConfig, LoaderNote, OnError, Outcome,
    PipelineError, Shard, Shuffle, Tail,
};

use crate::memory::{bmps, config, dataset, loader, sample, train};

/// Samples of which those are cut short.
fn damaged(count: u32, is_bad: impl Fn(u32) -> bool) -> Dataset {
    let samples = (0..count).map(|number| {
        let mut sample = sample(number, SampleFormat::Bmp);
        if is_bad(number) {
            sample.bytes.truncate(60);
        }
        sample
    });
    dataset(samples.collect())
}

fn in_order(on_error: OnError) -> LoaderConfig {
    LoaderConfig { sampler: Shuffle::None.into(), on_error, ..config(train()) }
}

/// 4 to 7 and 16 are bad: in batches of 4 the second, and the last of 17, have no sample.
fn clustered() -> Dataset {
    damaged(17, |number| (4..8).contains(&number) || number == 16)
}

#[test]
fn more_than_half_of_an_epoch_is_too_much_unless_it_is_allowed() {
    for on_error in [OnError::Skip, OnError::Fill] {
        for workers in [1, 3] {
            let settings = LoaderConfig { workers, ..in_order(on_error) };
            let junk = loader(damaged(3, |_| true), settings.clone());
            let error = junk.epoch(0).next().unwrap().unwrap_err();
            let PipelineError::ErrorBudget { errors, received, allowed, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!((*errors, *received, *allowed), (3, 3, 1));
            let most = loader(damaged(40, |number| number % 5 != 0), settings.clone());
            assert!(most.epoch(0).any(|batch| batch.is_err()));
            let half = loader(damaged(40, |number| number % 2 != 0), settings.clone());
            assert!(half.epoch(0).all(|batch| batch.is_ok()));
            let error_budget = ErrorBudget::UNLIMITED;
            let any = loader(
                damaged(40, |number| number % 5 != 0),
                LoaderConfig { error_budget, ..settings },
            );
            assert!(any.epoch(0).all(|batch| batch.is_ok()));
        }
    }
}

#[test]
fn a_batch_without_a_sample_is_left_out() {
    for workers in [1, 2, 3, 7] {
        let loader = loader(clustered(), LoaderConfig { workers, ..in_order(OnError::Skip) });
        assert_eq!(loader.len(), 5);
        for epoch in 0..2 {
            let mut epoch = loader.epoch(epoch);
            let mut received = Vec::new();
            while let Some(batch) = epoch.next_timeout(Duration::from_secs(60)) {
                let batch = batch.unwrap();
                let state = epoch.state().unwrap();
                received.push((batch.number(), batch.len(), state.consumed, epoch.remaining()));
            }
            assert_eq!(received, [(0, 4, 4, 4), (2, 4, 12, 2), (3, 4, 16, 1)]);
            assert_eq!((epoch.state().unwrap().consumed, epoch.remaining()), (20, 0));
            assert_eq!(epoch.bad_samples(), 5);
        }
        let stats = loader.stats();
        assert_eq!((stats.batches, stats.samples, stats.skipped), (6, 24, 10));
        // Alone it is what it is.
        assert_eq!((loader.batch(0, 1).unwrap().len(), loader.batch(0, 2).unwrap().len()), (0, 4));
    }
}

#[test]
fn states_after_batches_that_were_left_out_resume_exactly() {
    let settings = || in_order(OnError::Skip);
    let rows = |epoch: Epoch| {
        let batches = epoch.map(Result::unwrap);
        batches.map(|batch| (batch.number(), batch.images().to_vec())).collect::<Vec<_>>()
    };
    let whole = rows(loader(clustered(), settings()).epoch(0));
    for taken in 0..=whole.len() {
        let first = loader(clustered(), settings());
        let mut epoch = first.epoch(0);
        let front = epoch.by_ref().take(taken).map(Result::unwrap);
        let front: Vec<_> = front.map(|batch| (batch.number(), batch.images().to_vec())).collect();
        let second = loader(clustered(), settings());
        let rest = rows(second.resume(&epoch.state().unwrap()).unwrap());
        assert_eq!([front, rest].concat(), whole);
    }
}

/// The user's code never sees a batch that nobody receives.
#[test]
fn batches_without_a_sample_are_not_collated() {
    let collate =
        Collate::new(
            |batch: &tl_pipeline::Batch| {
                if batch.is_empty() { Err("no sample".into()) } else { Ok(batch.len()) }
            },
        );
    let settings = LoaderConfig { collate: Some(collate), ..in_order(OnError::Skip) };
    let loader = loader(clustered(), settings);
    let collated = loader.epoch(0).map(|batch| *batch.unwrap().collated::<usize>().unwrap());
    assert_eq!(collated.collect::<Vec<_>>(), [4, 4, 4]);
}

#[test]
fn ranks_that_step_together_do_not_lose_a_batch() {
    let rank = |rank, tail| {
        let shard = Shard { rank, world: 2, tail };
        let samples = damaged(35, |number| (12..16).contains(&number) || number == 32);
        loader(samples, LoaderConfig { shard, ..in_order(OnError::Skip) })
    };
    for tail in [None, Some(Tail::Drop), Some(Tail::Uneven)] {
        // 12 to 15 are the second batch of rank 1.
        let second = rank(1, tail);
        let mut epoch = second.epoch(0);
        assert_eq!(epoch.next().unwrap().unwrap().len(), 4);
        let error = epoch.next().unwrap().unwrap_err();
        assert!(matches!(error, PipelineError::EmptyBatch { epoch: 0, batch: 1, world: 2 }));
        assert!(error.to_string().ends_with("set on_error to replace or fill"), "{error}");
        assert!(epoch.next().is_none());
        assert_eq!(epoch.state().unwrap().consumed, 8);
        assert!(rank(0, tail).epoch(0).all(|batch| batch.is_ok()));
    }
    // The last batch of a rank may be missing where ranks end apart: here 32 alone.
    let shard = Shard { rank: 0, world: 2, tail: Some(Tail::Uneven) };
    let samples = damaged(33, |number| number == 32);
    let last = loader(samples, LoaderConfig { shard, ..in_order(OnError::Skip) });
    assert_eq!((last.len(), last.epoch(0).map(Result::unwrap).count()), (5, 4));
}

#[test]
fn the_first_bad_sample_is_noted_and_all_are_counted() {
    for (on_error, said) in [
        (OnError::Skip, "bad samples are skipped, the first: in memory: sample 9 (0009.bmp)"),
        (OnError::Replace, "bad samples are replaced, the first: in memory: sample 9 (0009.bmp)"),
        (OnError::Fill, "bad samples are filled with zeros, the first: in memory: sample 9"),
    ] {
        let loader = loader(damaged(40, |number| [9, 17].contains(&number)), in_order(on_error));
        let mut epoch = loader.epoch(0);
        let counts: Vec<u64> = (0..10)
            .map(|_| {
                epoch.next().unwrap().unwrap();
                epoch.bad_samples()
            })
            .collect();
        assert_eq!(counts, [0, 0, 1, 1, 2, 2, 2, 2, 2, 2]);
        let notes = loader.notes();
        let [note @ LoaderNote::BadSample { outcome, .. }] = &notes[..] else {
            panic!("{notes:?}")
        };
        assert_ne!(*outcome, Outcome::Raised);
        assert!(note.to_string().starts_with(said), "{note}");
        assert!(loader.report().to_string().contains("\nbad samples: "));
    }
    let good = Loader::new(bmps(40), in_order(OnError::Skip)).unwrap();
    assert!(good.epoch(0).all(|batch| batch.is_ok()) && good.notes().is_empty());
}
