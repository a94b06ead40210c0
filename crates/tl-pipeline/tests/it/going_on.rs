//! Going on: from epoch to epoch, from a state, with other workers and on other ranks.

use std::time::Duration;

use tl_pipeline::{
    Batch, Epoch, Loader, LoaderConfig, LoaderState, PipelineError, Shard, Tail, Work,
};
use tl_transform::batch_op::MixUp;
use tl_transform::{BatchOp, Recipe};

use crate::content::record;
use crate::memory::{bmps, config, loader, train};

const SAMPLES: u32 = 23;
const GLOBAL_BATCH: usize = 6;

fn ranks(world: usize, workers: usize, tail: Tail, work: &Work) -> Vec<Loader> {
    ranks_of((SAMPLES, GLOBAL_BATCH), world, workers, Some(tail), work)
}

fn ranks_of(
    (samples, global_batch): (u32, usize),
    world: usize,
    workers: usize,
    tail: Option<Tail>,
    work: &Work,
) -> Vec<Loader> {
    let rank = |rank| {
        let shard = Shard { rank, world: world.try_into().unwrap(), tail };
        let batch_size = global_batch / world;
        let mixing_group = 2;
        let config = config(work.clone());
        loader(bmps(samples), LoaderConfig { batch_size, shard, workers, mixing_group, ..config })
    };
    (0..world.try_into().unwrap()).map(rank).collect()
}

fn mixed() -> Recipe {
    let mixing: BatchOp = MixUp { num_classes: Some(5), ..MixUp::default() }.into();
    Recipe::imagenet_train(16).unwrap().with_batch_ops(vec![mixing]).unwrap()
}

fn append(rows: &mut Vec<(u64, bool, Vec<u8>)>, batch: &Batch) {
    let row_bytes = batch.images().len() / batch.len().max(1);
    for (row, &index) in batch.indices().iter().enumerate() {
        let image = &batch.images()[row * row_bytes..][..row_bytes];
        rows.push((index, batch.valid()[row], image.to_vec()));
    }
}

/// The rows that all ranks receive of epoch 3, resumed on other ranks after every `every` steps.
fn elastic(worlds: &[usize], every: u64, tail: Tail, work: &Work) -> Vec<(u64, bool, Vec<u8>)> {
    let (mut rows, mut state): (_, Option<LoaderState>) = (Vec::new(), None);
    for (&world, workers) in worlds.iter().cycle().zip([1, 3, 2].into_iter().cycle()) {
        let ranks = ranks(world, workers, tail, work);
        let mut epochs: Vec<_> = ranks
            .iter()
            .map(|rank| state.map_or_else(|| rank.epoch(3), |state| rank.resume(&state).unwrap()))
            .collect();
        for _ in 0..every {
            for epoch in &mut epochs {
                if let Some(batch) = epoch.next() {
                    append(&mut rows, &batch.unwrap());
                }
            }
        }
        if epochs.iter().all(|epoch| epoch.remaining() == 0) {
            return rows;
        }
        // Through text, as a checkpoint would keep it.
        let text = serde_json::to_string(&epochs[0].state().unwrap()).unwrap();
        state = Some(serde_json::from_str(&text).unwrap());
    }
    unreachable!("worlds go round")
}

#[test]
fn resuming_on_other_ranks_concatenates_to_the_whole_epoch() {
    for work in [train(), Work::Images(mixed())] {
        for tail in [Tail::Drop, Tail::Pad, Tail::Uneven] {
            let whole = elastic(&[1], 100, tail, &work);
            let expected = match tail {
                Tail::Drop => 18,
                Tail::Pad => 24,
                Tail::Uneven => 23,
            };
            assert_eq!(whole.len(), expected);
            assert_eq!(whole.iter().filter(|row| row.1).count(), expected.min(23));
            for (worlds, every) in [(&[1][..], 1), (&[3], 1), (&[1, 3], 1), (&[3, 1], 2)] {
                let parts = elastic(worlds, every, tail, &work);
                assert!(parts == whole, "{worlds:?} every {every}, {tail:?}");
            }
        }
    }
}

/// Rows that count, as all ranks receive them of epoch 3 when `from` ranks stop after `steps` steps
/// and `to` ranks resume from the state of each of them, with the default tail on both sides.
fn with_default_tails(from: usize, to: usize, steps: u64, work: &Work) {
    const OF: (u32, usize) = (23, 8);
    let counted = |epochs: &mut [Epoch], steps: u64| {
        let mut rows = Vec::new();
        for _ in 0..steps {
            for batch in epochs.iter_mut().filter_map(Iterator::next) {
                append(&mut rows, &batch.unwrap());
            }
        }
        rows.retain(|row| row.1);
        rows
    };
    let mut alone = [ranks_of(OF, 1, 1, None, work).remove(0).epoch(3)];
    let expected = counted(&mut alone, 3);
    assert_eq!(expected.len(), 23);
    let before = ranks_of(OF, from, 2, None, work);
    let mut epochs: Vec<Epoch> = before.iter().map(|rank| rank.epoch(3)).collect();
    let front = counted(&mut epochs, steps);
    let after = ranks_of(OF, to, 3, None, work);
    for state in epochs.iter().map(|epoch| epoch.state().unwrap()) {
        let resume = |rank: &Loader| rank.resume(&state).unwrap();
        let mut resumed: Vec<Epoch> = after.iter().map(resume).collect();
        let rows = [front.clone(), counted(&mut resumed, 3)].concat();
        // Mixing in the last batch has the rows that fill it up in it too.
        let mixes = matches!(work, Work::Images(recipe) if !recipe.batch_ops().is_empty());
        let compared = if mixes { 16 } else { 23 };
        assert_eq!(rows.len(), 23);
        assert!(rows[..compared] == expected[..compared], "{from} to {to} after {steps}");
        let sample = |row: &(u64, bool, Vec<u8>)| row.0;
        assert!(rows.iter().map(sample).eq(expected.iter().map(sample)));
    }
}

#[test]
fn states_resume_on_more_and_fewer_ranks_by_default() {
    for work in [Work::Images(Recipe::imagenet_eval(8).unwrap()), train(), Work::Images(mixed())] {
        for (from, to) in [(2, 1), (1, 2), (4, 2), (2, 4), (4, 1), (1, 4), (1, 1), (2, 2)] {
            for steps in 0..=3 {
                with_default_tails(from, to, steps, &work);
            }
        }
    }
}

/// 13 positions in global batches of 12: rank 1 of 2 has no row of the second.
#[test]
fn a_rank_that_ends_early_has_a_state_that_loses_no_sample() {
    let of = (13, 12);
    let uneven = |world| ranks_of(of, world, 1, Some(Tail::Uneven), &train());
    for steps in 1..=2 {
        let before = uneven(2);
        let mut epochs: Vec<Epoch> = before.iter().map(|rank| rank.epoch(0)).collect();
        let mut rows = Vec::new();
        for _ in 0..steps {
            for batch in epochs.iter_mut().filter_map(Iterator::next) {
                append(&mut rows, &batch.unwrap());
            }
        }
        let states: Vec<LoaderState> = epochs.iter().map(|epoch| epoch.state().unwrap()).collect();
        assert_eq!(states[1].consumed, 12);
        assert_eq!(states[0].consumed, 12 * steps);
        for state in states {
            for world in [1, 2] {
                let after = uneven(world);
                let mut all: Vec<u64> = rows.iter().map(|row| row.0).collect();
                for rank in &after {
                    for batch in rank.resume(&state).unwrap() {
                        all.extend(batch.unwrap().indices());
                    }
                }
                all.sort_unstable();
                all.dedup();
                assert!(all.into_iter().eq(0..13), "{state:?} with {world} ranks");
            }
        }
    }
}

#[test]
fn the_next_epoch_is_taken_over_and_any_other_started() {
    for prefetch_next_epoch in [true, false] {
        let settings = LoaderConfig { prefetch_next_epoch, ..config(train()) };
        let going_on = loader(bmps(SAMPLES), settings);
        for epoch in [0, 1, 2, 7, 3, 4, u32::MAX] {
            let expected = record(&loader(bmps(SAMPLES), config(train())), epoch);
            assert!(record(&going_on, epoch) == expected, "epoch {epoch}");
        }
    }
}

#[test]
fn a_batch_can_be_asked_for_alone() {
    let loader = loader(bmps(SAMPLES), config(train()));
    let expected = record(&loader, 5);
    for (number, expected) in expected.iter().enumerate().rev() {
        let batch = loader.batch(5, number as u64).unwrap();
        assert_eq!((batch.number(), batch.images()), (expected.number, &expected.bytes[..]));
    }
    let none = loader.batch(5, expected.len() as u64).unwrap_err();
    assert!(matches!(none, PipelineError::Setting { setting: "batch", value: 6, .. }), "{none}");
}

#[test]
fn nothing_is_prepared_that_is_not_asked_for() {
    let loader = loader(bmps(SAMPLES), config(train()));
    let processed = || loader.stats().processed;
    assert_eq!(loader.batch(3, 5).unwrap().len(), 3);
    assert_eq!(processed(), 3);
    // Epoch 1 may be prepared after the first; a second request for epoch 0 discards it.
    assert_eq!(loader.epoch(0).count(), 6);
    assert_eq!(loader.epoch(0).count(), 6);
    let twice = processed();
    assert_eq!(loader.epoch(0).count(), 6);
    assert_eq!(processed(), twice + u64::from(SAMPLES));
}

#[test]
fn what_was_prepared_is_not_counted_as_received() {
    let loader = loader(bmps(SAMPLES), config(train()));
    let mut epoch = loader.epoch(0);
    assert_eq!(epoch.state().unwrap().consumed, 0);
    for received in 1..=6 {
        epoch.next().unwrap().unwrap();
        let state = epoch.state().unwrap();
        assert_eq!((state.epoch, state.consumed), (0, received * 4));
    }
    assert_eq!(loader.resume(&epoch.state().unwrap()).unwrap().count(), 0);
}

#[test]
fn every_rank_ends_in_the_same_state() {
    for tail in [Tail::Drop, Tail::Pad, Tail::Uneven] {
        let ends = ranks(3, 1, tail, &train()).into_iter().map(|rank| {
            let mut epoch = rank.epoch(0);
            epoch.by_ref().for_each(|batch| drop(batch.unwrap()));
            epoch.state().unwrap()
        });
        // Also for who counts batches and never asks past the last.
        let counted = ranks(3, 1, tail, &train()).into_iter().map(|rank| {
            let mut epoch = rank.epoch(0);
            (0..rank.len()).for_each(|_| drop(epoch.next().unwrap().unwrap()));
            epoch.state().unwrap()
        });
        let ends: Vec<LoaderState> = ends.chain(counted).collect();
        assert_eq!(ends[0].consumed, if tail == Tail::Drop { 18 } else { 24 });
        assert!(ends.iter().all(|end| *end == ends[0]), "{tail:?}");
    }
}

#[test]
fn batches_that_no_memory_can_hold_are_errors() {
    let huge = LoaderConfig { batch_size: 1 << 50, ..config(Work::Bytes) };
    let error = loader(bmps(SAMPLES), huge).epoch(0).next().unwrap().unwrap_err();
    assert!(matches!(error, PipelineError::OutOfMemory { .. }), "{error}");
}

#[test]
fn states_of_something_else_are_refused_by_name() {
    let settings = || config(train());
    let state = loader(bmps(SAMPLES), settings()).epoch(2).state().unwrap();
    let refused = |samples, config| {
        let error = loader(bmps(samples), config).resume(&state).unwrap_err();
        let PipelineError::StateMismatch { what, .. } = error else { panic!("{error}") };
        what
    };
    assert_eq!(refused(SAMPLES - 1, settings()), "data set");
    assert_eq!(refused(SAMPLES, config(Work::Bytes)), "recipe");
    let sampler = tl_pipeline::Shuffle::None.into();
    assert_eq!(refused(SAMPLES, LoaderConfig { sampler, ..settings() }), "order");
    assert_eq!(refused(SAMPLES, LoaderConfig { seed: 43, ..settings() }), "seed");
    assert_eq!(refused(SAMPLES, LoaderConfig { batch_size: 8, ..settings() }), "global batch");
    assert!(
        loader(bmps(SAMPLES), LoaderConfig { mixing_group: 2, ..settings() })
            .resume(&state)
            .is_ok()
    );
    let tail = |tail| LoaderConfig { shard: Shard { tail, ..Shard::default() }, ..settings() };
    assert_eq!(refused(SAMPLES, tail(Some(Tail::Drop))), "tail");
    for both in [Tail::Uneven, Tail::Pad] {
        assert!(loader(bmps(SAMPLES), tail(Some(both))).resume(&state).is_ok());
    }
    let beyond = LoaderState { consumed: 28, ..state };
    let error = loader(bmps(SAMPLES), settings()).resume(&beyond).unwrap_err();
    assert!(matches!(error, PipelineError::StateBeyondEpoch { consumed: 28, rows: 24 }), "{error}");
    let mixed = || config(Work::Images(mixed()));
    let state = loader(bmps(SAMPLES), mixed()).epoch(2).state().unwrap();
    let other = loader(bmps(SAMPLES), LoaderConfig { mixing_group: 2, ..mixed() });
    let error = other.resume(&state).unwrap_err();
    assert!(matches!(error, PipelineError::StateMismatch { what: "mixing group", .. }), "{error}");
}

#[test]
fn waiting_can_be_bounded() {
    let loader = loader(bmps(SAMPLES), config(train()));
    let mut epoch = loader.epoch(0);
    let mut batches = 0;
    while let Some(batch) = epoch.next_timeout(Duration::from_micros(10)) {
        match batch {
            Ok(batch) => {
                assert_eq!(batch.number(), batches);
                batches += 1;
            }
            Err(PipelineError::TimedOut { .. }) => assert_ne!(epoch.remaining(), 0),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(batches, 6);
}
