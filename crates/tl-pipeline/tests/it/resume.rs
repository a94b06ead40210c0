//! Any run, broken off after any batch and gone on with by others, is the uninterrupted run.
//!
//! `PROPTEST_CASES` says how many random runs are tried.

use proptest::prelude::*;
use tl_pipeline::{
    Batch, Epoch, Loader, LoaderConfig, LoaderState, Order, Shard, Shuffle, Tail, Work,
};
use tl_transform::batch_op::MixUp;
use tl_transform::{BatchOp, Recipe};

use crate::memory::{bmps, config, loader, train};

/// A row as the consumer sees it: sample, label, whether it counts, and its bytes.
type Row = (u64, i64, bool, Vec<u8>);

/// What does not change in a run.
#[derive(Clone, Debug)]
struct Run {
    samples: u32,
    global_batch: usize,
    mixing_group: usize,
    shuffle: Shuffle,
    tail: Tail,
    seed: u64,
    epoch: u32,
    work: Work,
}

/// What does: the processes and their threads.
#[derive(Clone, Copy, Debug)]
struct Crew {
    world: usize,
    workers: usize,
    prefetch: usize,
    prefetch_next_epoch: bool,
}

impl Run {
    fn ranks(&self, crew: Crew) -> Vec<Loader> {
        let Crew { workers, prefetch, prefetch_next_epoch, .. } = crew;
        let world = u32::try_from(crew.world).unwrap();
        let rank = |rank| {
            let settings = LoaderConfig {
                batch_size: self.global_batch / crew.world,
                shard: Shard { rank, world, tail: Some(self.tail) },
                sampler: self.shuffle.into(),
                seed: self.seed,
                mixing_group: self.mixing_group,
                workers,
                prefetch,
                prefetch_next_epoch,
                ..config(self.work.clone())
            };
            loader(bmps(self.samples), settings)
        };
        (0..world).map(rank).collect()
    }

    /// The rows of two epochs, of one process with one worker.
    fn uninterrupted(&self) -> [Vec<Row>; 2] {
        let alone = Crew { world: 1, workers: 1, prefetch: 1, prefetch_next_epoch: false };
        let ranks = self.ranks(alone);
        [self.epoch, self.epoch + 1].map(|epoch| {
            let mut rows = Vec::new();
            ranks[0].epoch(epoch).for_each(|batch| append(&mut rows, &batch.unwrap()));
            rows
        })
    }

    /// The samples of an epoch by the definition of the order and of the tail.
    fn samples(&self, epoch: u32) -> Vec<u64> {
        let (n, global) = (u64::from(self.samples), self.global_batch as u64);
        let order = if self.shuffle == Shuffle::Full {
            Order::shuffled(n, self.seed, epoch)
        } else {
            // That of blocks has tests of its own.
            let sampler = self.shuffle.into();
            loader(bmps(self.samples), LoaderConfig { sampler, seed: self.seed, ..config(train()) })
                .order(epoch)
        };
        let end = match self.tail {
            Tail::Drop => n / global * global,
            Tail::Pad => n.div_ceil(global) * global,
            Tail::Uneven => n,
        };
        (0..end).filter_map(|place| order.sample_at(place % n)).collect()
    }

    /// The rows of two epochs, with a new crew from their states after every `every` steps.
    fn interrupted(&self, crews: &[Crew], every: usize) -> [Vec<Row>; 2] {
        let mut rows = [Vec::new(), Vec::new()];
        let mut crews = crews.iter().copied().cycle();
        let mut ranks = self.ranks(crews.next().unwrap());
        let mut state: Option<LoaderState> = None;
        for (epoch, rows) in (self.epoch..).zip(&mut rows) {
            loop {
                let mut epochs: Vec<Epoch> = ranks
                    .iter()
                    .map(|rank| match &state {
                        Some(state) => rank.resume(state).unwrap(),
                        None => rank.epoch(epoch),
                    })
                    .collect();
                steps(&mut epochs, every, rows);
                if epochs.iter().all(|epoch| epoch.remaining() == 0) {
                    // The next epoch is that of the same loaders, which have it prepared.
                    state = None;
                    break;
                }
                state = Some(same_state(&epochs));
                ranks = self.ranks(crews.next().unwrap());
            }
        }
        rows
    }
}

/// Takes up to `count` batches of every rank, in the order of steps and ranks.
fn steps(epochs: &mut [Epoch], count: usize, rows: &mut Vec<Row>) {
    for _ in 0..count {
        for epoch in &mut *epochs {
            if let Some(batch) = epoch.next() {
                append(rows, &batch.unwrap());
            }
        }
    }
}

/// The state that all ranks agree on before the end of the epoch, as a checkpoint would keep it.
fn same_state(epochs: &[Epoch]) -> LoaderState {
    let states = epochs.iter().filter(|epoch| epoch.remaining() > 0);
    let states: Vec<LoaderState> = states.map(|epoch| epoch.state().unwrap()).collect();
    assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
    serde_json::from_str(&serde_json::to_string(&states[0]).unwrap()).unwrap()
}

fn append(rows: &mut Vec<Row>, batch: &Batch) {
    let row_bytes = batch.images().len() / batch.len().max(1);
    for (row, (&index, &label)) in batch.indices().iter().zip(batch.labels()).enumerate() {
        let bytes = match batch.sample(row) {
            Some(sample) => sample.bytes,
            None => &batch.images()[row * row_bytes..][..row_bytes],
        };
        rows.push((index, label, batch.valid()[row], bytes.to_vec()));
    }
}

fn works() -> impl Strategy<Value = Work> {
    let mixing: BatchOp = MixUp::default().into();
    let mixed = Recipe::imagenet_train(8).unwrap().with_batch_ops(vec![mixing]).unwrap();
    prop_oneof![
        3 => Just(Work::Bytes),
        1 => Just(train()),
        1 => Just(Work::Images(mixed)),
        1 => Just(Work::Images(Recipe::decode())),
    ]
}

fn runs() -> impl Strategy<Value = (Run, Vec<Crew>)> {
    // Ranks' batches of 1 to 4 rows in worlds of which each divides 12.
    let block = Shuffle::Block { samples: 5, window: 2 };
    let shuffle = prop_oneof![Just(Shuffle::Full), Just(Shuffle::None), Just(block)];
    let tail = prop_oneof![Just(Tail::Drop), Just(Tail::Pad), Just(Tail::Uneven)];
    let fixed = (1u32..40, 1usize..4, shuffle, tail, any::<u64>(), 0u32..1_000, works());
    let crew =
        (prop_oneof![Just(1usize), Just(2), Just(3), Just(6)], 1usize..5, 1usize..4, any::<bool>());
    let crews = proptest::collection::vec(crew, 1..4);
    (fixed, crews).prop_map(|((samples, rows, shuffle, tail, seed, epoch, work), crews)| {
        // Every world is a divisor of 6, and so every rank's batch a multiple of `rows`.
        let global_batch = 6 * rows;
        let run =
            Run { samples, global_batch, mixing_group: rows, shuffle, tail, seed, epoch, work };
        let crew = |(world, workers, prefetch, prefetch_next_epoch)| Crew {
            world,
            workers,
            prefetch,
            prefetch_next_epoch,
        };
        (run, crews.into_iter().map(crew).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24),
    ) })]

    #[test]
    fn resuming_after_every_k_batches_concatenates_to_the_uninterrupted_run(
        (run, crews) in runs()
    ) {
        let whole = run.uninterrupted();
        for (epoch, rows) in (run.epoch..).zip(&whole) {
            let samples: Vec<u64> = rows.iter().map(|row| row.0).collect();
            prop_assert_eq!(samples, run.samples(epoch));
        }
        let steps = whole[0].len().div_ceil(run.global_batch);
        for every in 1..=steps.max(1) {
            prop_assert!(run.interrupted(&crews, every) == whole, "every {} of {:?}", every, crews);
        }
    }
}
