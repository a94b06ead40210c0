//! Any run, broken off after any batch and gone on with by others, is the uninterrupted run.
//!
//! `PROPTEST_CASES` says how many random runs are tried.

use std::path::Path;
use std::sync::Arc;

use idv_format::Compression;
use proptest::prelude::*;
use tbf_format::BuildOptions;
use tbl_format::SampleFormat;
use tempfile::TempDir;
use tl_pipeline::{
    Batch, Batching, Blocks, Buckets, CacheConfig, CacheKind, Columns, Dataset, Deal, Direction,
    Epoch, ErrorBudget, Fields, Length, Loader, LoaderConfig, LoaderState, MixStage, Neighbors,
    OnError, Order, Part, PipelineError, Readers, Replacement, Sampler, Samples, Shard, Shuffle,
    Subset, Tail, Work,
};
use tl_transform::batch_op::MixUp;
use tl_transform::{BatchOp, Dtype, Layout, Recipe};

use crate::buckets::{cut, recipe};
use crate::caches::{disk, exact, memory};
use crate::memory::{Stored, bmps, config, in_blocks, loader, sample, watched};
use crate::places::Place;
use crate::tables::files::{row_of, write_labelled, write_tbf};

/// A row as the consumer sees it: sample, label, whether it counts, its image's size and its bytes.
type Row = (u64, i64, bool, [u32; 2], Vec<u8>);

/// The part of a run that does not change.
#[derive(Clone, Debug)]
struct Run {
    samples: u32,
    /// Rows of a batch in the largest world.
    rows: usize,
    /// Images are mixed within `rows` rows if true, otherwise within the batches of each rank.
    has_mixing_group: bool,
    sampler: Sampler,
    tail: Option<Tail>,
    seed: u64,
    epoch: u32,
    work: Work,
    batching: Batching,
    /// Some samples are damaged, unless this is to raise an error for them.
    on_error: OnError,
    /// The table, if the samples are rows.
    table: Option<(Table, Arc<TempDir>)>,
    /// The source of other samples.
    place: (Place, Arc<TempDir>),
}

/// Files of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Idv(Compression),
    Tbf,
}

impl Table {
    fn write(self, rows: u32, is_bad: impl Fn(u64) -> bool) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        match self {
            Self::Idv(compression) => {
                let (rows, half) = (rows.into(), u64::from(rows) / 2);
                write_labelled(&path("a"), 0..half, compression, &is_bad);
                write_labelled(&path("b"), half..rows, compression, &is_bad);
            }
            Self::Tbf => {
                let options = BuildOptions { reverse: true, ..BuildOptions::default() };
                write_tbf(&path("a"), rows, options);
            }
        }
        folder
    }

    fn open(self, folder: &Path) -> Dataset {
        let names = if self == Self::Tbf { &["a"][..] } else { &["a", "b"] };
        let paths: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
        Dataset::open(&paths).unwrap()
    }
}

/// The part that changes: the processes, their threads and their memory.
#[derive(Clone, Copy, Debug)]
struct Crew {
    world: usize,
    workers: usize,
    prefetch: usize,
    prefetch_next_epoch: bool,
    readers: Readers,
    memory_budget: Option<u64>,
    in_memory: Option<CacheKind>,
    on_disk: Option<CacheKind>,
}

const ALONE: Crew = Crew {
    world: 1,
    workers: 1,
    prefetch: 1,
    prefetch_next_epoch: false,
    readers: Readers::Workers,
    memory_budget: None,
    in_memory: None,
    on_disk: None,
};

impl Crew {
    fn cache(self, folder: &Path) -> CacheConfig {
        // Not all of it fits into memory.
        let in_memory = self.in_memory.map(|kind| memory(kind, 30_000));
        let on_disk = self.on_disk.map(|kind| disk(kind, folder, 1 << 20));
        CacheConfig {
            memory: in_memory.and_then(|cache| cache.memory),
            disk: on_disk.and_then(|cache| cache.disk),
        }
    }
}

impl Run {
    fn global_batch(&self) -> usize {
        6 * self.rows
    }

    fn mixes(&self) -> bool {
        matches!(&self.work, Work::Images(recipe) if !recipe.batch_ops().is_empty())
    }

    fn mixing_group(&self, crew: Crew) -> usize {
        if self.has_mixing_group { self.rows } else { self.global_batch() / crew.world }
    }

    /// The tail by the documentation.
    fn tail(&self, crew: Crew) -> Tail {
        self.tail.unwrap_or(if crew.world == 1 { Tail::Uneven } else { Tail::Pad })
    }

    /// The difference for which `crew` refuses a state that `other` has made.
    fn mismatches(&self, crew: Crew, other: Crew) -> Vec<&'static str> {
        let of_groups = self.mixes() && self.mixing_group(crew) != self.mixing_group(other);
        let of_batches = self.replaces_in_batches() && crew.world != other.world;
        [(of_groups, "mixing group"), (of_batches, "replacement group")]
            .into_iter()
            .filter_map(|(differs, what)| differs.then_some(what))
            .collect()
    }

    /// True if replacements come from the batch of a rank.
    fn replaces_in_batches(&self) -> bool {
        self.on_error == OnError::Replace && self.batching != Batching::InOrder
    }

    fn is_bad(&self, index: u64) -> bool {
        let can_be = !matches!(self.table, Some((Table::Tbf, _))) && self.work != Work::Bytes;
        self.on_error != OnError::Raise && can_be && is_bad(index)
    }

    fn dataset(&self, place: Place) -> Dataset {
        if let Some((table, folder)) = &self.table {
            return table.open(folder.path());
        }
        let samples = (0..self.samples).map(|number| {
            let mut sample = sample(number, SampleFormat::Bmp);
            if self.is_bad(number.into()) {
                sample.bytes.truncate(60);
            }
            sample
        });
        let watched = |samples: Vec<Stored>| match self.place.0.block_ends(samples.len()) {
            Some(ends) => in_blocks(samples, ends),
            None => watched(samples, || (), || ()),
        };
        place.open(samples.collect(), self.place.1.path(), watched)
    }

    fn config(&self, crew: Crew) -> LoaderConfig {
        let Crew { workers, prefetch, prefetch_next_epoch, readers, memory_budget, .. } = crew;
        LoaderConfig {
            batch_size: self.global_batch() / crew.world,
            sampler: self.sampler.clone(),
            seed: self.seed,
            mixing_group: if self.has_mixing_group { self.rows } else { 0 },
            batching: self.batching,
            on_error: self.on_error,
            // The few rows of a rank may all be bad.
            error_budget: ErrorBudget { count: None, rate: None },
            workers,
            prefetch,
            prefetch_next_epoch,
            readers,
            read_ahead_bytes: 10_000,
            memory_budget,
            fields: Fields { bytes: self.bytes_columns(), ..Fields::default() },
            ..config(self.work.clone())
        }
    }

    fn bytes_columns(&self) -> Vec<String> {
        self.table.iter().map(|_| "text".to_owned()).collect()
    }

    fn ranks(&self, crew: Crew, folder: &Path) -> Vec<Loader> {
        let world = u32::try_from(crew.world).unwrap();
        let rank = |rank| {
            let shard = Shard { rank, world, tail: self.tail };
            let cache = crew.cache(folder);
            loader(self.dataset(self.place.0), LoaderConfig { shard, cache, ..self.config(crew) })
        };
        (0..world).map(rank).collect()
    }

    /// A run like that of `crew`, with one process and one worker.
    fn alone(&self, crew: Crew) -> Loader {
        let shard = Shard { tail: Some(self.tail(crew)), ..Shard::default() };
        let mixing_group = self.mixing_group(crew);
        loader(
            self.dataset(Place::Watched),
            LoaderConfig { shard, mixing_group, ..self.config(ALONE) },
        )
    }

    /// The rows of two epochs of it, or where a rank's batches are what replacements come from, of as
    /// many ranks.
    fn uninterrupted(&self, crew: Crew) -> [Vec<Row>; 2] {
        let ranks = if self.replaces_in_batches() {
            let run = Self { tail: Some(self.tail(crew)), ..self.clone() };
            run.ranks(Crew { world: crew.world, ..ALONE }, Path::new(""))
        } else {
            vec![self.alone(crew)]
        };
        [self.epoch, self.epoch + 1].map(|epoch| {
            let mut rows = Vec::new();
            let mut epochs: Vec<Epoch> = ranks.iter().map(|rank| rank.epoch(epoch)).collect();
            while epochs.iter().any(|epoch| epoch.remaining() > 0) {
                self.steps(&mut epochs, 1, &mut rows)
                    .expect("ranks that replace leave nothing out");
            }
            rows
        })
    }

    /// The samples of an epoch by the definition of the order and of the tail.
    fn samples(&self, crew: Crew, epoch: u32) -> Vec<u64> {
        let order = match &self.sampler {
            Sampler { samples: Samples::All, shuffle: Shuffle::Full, repeat: 1 } => {
                Order::shuffled(self.samples.into(), self.seed, epoch)
            }
            // The others have their own tests.
            _ => self.alone(crew).order(epoch),
        };
        let (n, global) = (order.len(), self.global_batch() as u64);
        let end = match self.tail(crew) {
            Tail::Drop => n / global * global,
            Tail::Pad => n.div_ceil(global) * global,
            Tail::Uneven => n,
        };
        (0..end).filter_map(|place| order.sample_at(place % n)).collect()
    }

    /// True if rows have the right samples, or the result of the policy.
    fn have(&self, rows: &[Row], mut samples: Vec<u64>) -> bool {
        let mut found: Vec<u64> = rows.iter().map(|row| row.0).collect();
        match self.on_error {
            OnError::Skip => samples.retain(|&sample| !self.is_bad(sample)),
            OnError::Replace => {
                let are_good = !found.iter().any(|&sample| self.is_bad(sample));
                if self.batching != Batching::InOrder {
                    return are_good && found.len() == samples.len();
                }
                for (sample, found) in samples.iter_mut().zip(&mut found) {
                    if self.is_bad(*sample) && are_good {
                        *found = *sample;
                    }
                }
            }
            OnError::Raise | OnError::Fill | _ => {}
        }
        if self.batching != Batching::InOrder {
            samples.sort_unstable();
            found.sort_unstable();
        }
        found == samples
    }

    /// True if each sample counts as often as it should, bad ones not at all.
    fn count(&self, rows: &[Row], mut samples: Vec<u64>, positions: u64) -> bool {
        if self.on_error == OnError::Replace {
            return true;
        }
        samples.truncate(usize::try_from(positions).unwrap());
        samples.retain(|&sample| !self.is_bad(sample));
        let mut found: Vec<u64> = rows.iter().filter(|row| row.2).map(|row| row.0).collect();
        samples.sort_unstable();
        found.sort_unstable();
        found == samples
    }

    /// The rows of two epochs, with a new crew from their states after every `every` steps, and the
    /// crew that ended each. Crews that must not resume are refused by name, and the next one does.
    /// `None` where ranks that take their steps together have no sample of a batch.
    fn interrupted(&self, crews: &[Crew], every: usize) -> Option<[(Vec<Row>, Crew); 2]> {
        let folder = tempfile::tempdir().unwrap();
        let first = crews[0];
        let mut ended = [(Vec::new(), first), (Vec::new(), first)];
        let mut last = first;
        let mut crews = crews.iter().copied().cycle();
        let mut ranks = self.ranks(crews.next().unwrap(), folder.path());
        let mut state: Option<LoaderState> = None;
        for (epoch, (rows, ended_by)) in (self.epoch..).zip(&mut ended) {
            loop {
                let resume = |rank: &Loader| match &state {
                    Some(state) => rank.resume(state),
                    None => Ok(rank.epoch(epoch)),
                };
                let epochs: Result<Vec<Epoch>, _> = ranks.iter().map(resume).collect();
                let mut epochs = epochs.unwrap();
                self.steps(&mut epochs, every, rows)?;
                if epochs.iter().all(|epoch| epoch.remaining() == 0) {
                    // The same loaders continue with the next epoch, which they have prepared.
                    (state, *ended_by) = (None, last);
                    break;
                }
                let next = state.insert(same_state(&epochs));
                ranks = loop {
                    let crew = crews.next().unwrap();
                    let ranks = self.ranks(crew, folder.path());
                    let expected = self.mismatches(crew, first);
                    if expected.is_empty() {
                        last = crew;
                        break ranks;
                    }
                    let refused = ranks[0].resume(next).unwrap_err();
                    let is_named = matches!(&refused, PipelineError::StateMismatch { what, .. }
                        if expected.contains(what));
                    assert!(is_named, "{refused}, but {expected:?}");
                };
            }
        }
        Some(ended)
    }

    /// Takes up to `count` batches of every rank, in the order of steps and ranks; `None` where one
    /// of several ranks has a batch without a sample.
    fn steps(&self, epochs: &mut [Epoch], count: usize, rows: &mut Vec<Row>) -> Option<()> {
        let world = epochs.len();
        for _ in 0..count {
            for epoch in &mut *epochs {
                match epoch.next() {
                    Some(Err(PipelineError::EmptyBatch { .. })) => {
                        assert!(self.on_error == OnError::Skip && world > 1);
                        return None;
                    }
                    Some(batch) => self.append(rows, &batch.unwrap()),
                    None => {}
                }
            }
        }
        Some(())
    }

    fn append(&self, rows: &mut Vec<Row>, batch: &Batch) {
        let row_bytes = batch.images().len() / batch.len().max(1);
        for (row, (&index, &label)) in batch.indices().iter().zip(batch.labels()).enumerate() {
            let bytes = match batch.sample(row) {
                _ if self.table.is_some() => row_of(batch, row, self.bytes_columns().len()).3,
                Some(sample) => sample.bytes.to_vec(),
                // The padding of an image depends on its batch.
                None if self.batching != Batching::InOrder => cut(batch, row),
                None => batch.images()[row * row_bytes..][..row_bytes].to_vec(),
            };
            rows.push((index, label, batch.valid()[row], batch.sizes()[row], bytes));
        }
    }
}

/// The state that all ranks agree on before the end of the epoch, as a checkpoint would keep it:
/// also those that have one batch less.
fn same_state(epochs: &[Epoch]) -> LoaderState {
    let states: Vec<LoaderState> = epochs.iter().map(|epoch| epoch.state().unwrap()).collect();
    assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
    serde_json::from_str(&serde_json::to_string(&states[0]).unwrap()).unwrap()
}

/// Kinds of samplers, over this many samples.
const SAMPLERS: [fn(u64) -> Sampler; 13] = [
    |_| Shuffle::Full.into(),
    |_| Shuffle::None.into(),
    |_| Shuffle::Block { blocks: Blocks::Samples(5), window: 2 }.into(),
    |_| Sampler { repeat: 2, ..Shuffle::Block { blocks: Blocks::Samples(3), window: 3 }.into() },
    |_| lanes(6, Deal::Run).into(),
    |n| Sampler { samples: Samples::Subset((n / 4..n).into()), ..lanes(3, Deal::Epoch).into() },
    |n| full(Samples::Subset((n / 3..n).into())),
    |n| Sampler {
        samples: Samples::Subset(Subset::List((0..n).rev().chain([0, n / 2]).collect())),
        ..Shuffle::None.into()
    },
    |n| full(weighted(n, Replacement::With)),
    |n| full(weighted(n, Replacement::Without)),
    |_| full(Samples::ClassBalanced { of: None, length: Length::AllUsedUp }),
    |n| {
        let part = |range, weight| Part { samples: Subset::from(range), weight };
        let parts = vec![part(0..n.div_ceil(2), 2), part(n / 2..n, 3)];
        full(Samples::Mix { parts, length: Length::Samples, stages: vec![] })
    },
    |n| {
        let part = |range, weight| Part { samples: Subset::from(range), weight };
        let parts = vec![part(0..n.div_ceil(2), 2), part(n / 2..n, 0)];
        let stage = |start, weights| MixStage { start, weights };
        let stages = vec![stage(n / 3 + 1, vec![1, 2]), stage(n / 3 + 7, vec![0, 3])];
        full(Samples::Mix { parts, length: Length::Positions(n + 9), stages })
    },
];

/// Kinds of samplers by the blocks of the source, over this many samples.
const BLOCK_SAMPLERS: [fn(u64) -> Sampler; 8] = [
    |_| of_source(1).into(),
    |_| of_source(3).into(),
    |_| Sampler { repeat: 3, ..of_source(2).into() },
    |_| lanes_of_source(6, Deal::Epoch).into(),
    |n| Sampler {
        samples: Samples::Subset((n / 4..n).into()),
        ..lanes_of_source(2, Deal::Run).into()
    },
    |n| Sampler {
        samples: Samples::Subset(Subset::List((0..n).filter(|n| n % 3 > 0).chain([0]).collect())),
        ..of_source(2).into()
    },
    |_| Sampler {
        samples: Samples::ClassBalanced { of: None, length: Length::AllUsedUp },
        ..of_source(2).into()
    },
    |n| {
        let part = |range, weight| Part { samples: Subset::from(range), weight };
        let parts = vec![part(0..n.div_ceil(2), 2), part(n / 2..n, 3)];
        Sampler {
            samples: Samples::Mix { parts, length: Length::Samples, stages: vec![] },
            ..of_source(2).into()
        }
    },
];

fn of_source(window: u64) -> Shuffle {
    Shuffle::Block { blocks: Blocks::Source, window }
}

fn lanes_of_source(lanes: u64, deal: Deal) -> Shuffle {
    Shuffle::Lanes { lanes, blocks: Blocks::Source, window: 2, deal }
}

fn lanes(lanes: u64, deal: Deal) -> Shuffle {
    Shuffle::Lanes { lanes, blocks: Blocks::Samples(2), window: 2, deal }
}

fn full(samples: Samples) -> Sampler {
    Sampler { samples, ..Shuffle::Full.into() }
}

fn weighted(n: u64, replacement: Replacement) -> Samples {
    let weights: Vec<u32> = (1..=n).map(|sample| u32::try_from(sample % 4).unwrap()).collect();
    Samples::Weighted { weights: weights.into(), replacement, count: None }
}

/// Samples that are damaged where some are.
fn is_bad(index: u64) -> bool {
    index % 13 == 3
}

/// Tables, and what is asked of them.
fn tables() -> impl Strategy<Value = (Table, Columns)> {
    let compressions = [Compression::None, Compression::Deflate];
    // Blocks have no room, room for some, or room enough.
    let block_bytes = prop_oneof![Just(1u64), Just(150), Just(0)];
    let idv = (proptest::sample::select(compressions.to_vec()), block_bytes);
    let idv = idv.prop_map(|(compression, block_bytes)| {
        let (features, label) = (vec!["x".to_owned()], Some("label".to_owned()));
        let columns = Columns { features, label, block_bytes, ..Columns::default() };
        (Table::Idv(compression), columns)
    });
    let direction = prop_oneof![Just(Direction::Outgoing), Just(Direction::Incoming)];
    let tbf = direction.prop_map(|direction| {
        let columns = vec!["embedding".into()];
        let neighbors = Neighbors { fanouts: vec![2, 2], direction, columns };
        let label = Some("outcome_status".to_owned());
        let columns = Columns { neighbors: Some(neighbors), label, ..Columns::default() };
        (Table::Tbf, columns)
    });
    prop_oneof![idv, tbf]
}

fn works() -> impl Strategy<Value = (Work, Batching, Option<Table>)> {
    let columns = tables()
        .prop_map(|(table, columns)| (Work::Columns(columns), Batching::InOrder, Some(table)));
    let padded = (1u32..4, 1u32..9).prop_map(|(window, multiple)| {
        let work = Work::Images(recipe(Dtype::U8, Layout::Hwc));
        (work, Batching::Buckets(Buckets { window, multiple }), None)
    });
    prop_oneof![5 => works_in_order(), 2 => padded, 3 => columns]
}

/// Work on the samples of sources of any kind.
fn works_in_order() -> impl Strategy<Value = (Work, Batching, Option<Table>)> {
    let mixing: BatchOp = MixUp { num_classes: Some(5), ..MixUp::default() }.into();
    let mixed = Recipe::imagenet_train(8).unwrap().with_batch_ops(vec![mixing]).unwrap();
    let in_order = |work| Just((work, Batching::InOrder, None));
    prop_oneof![
        2 => in_order(Work::Bytes),
        1 => in_order(exact()),
        1 => in_order(Work::Images(mixed)),
        1 => in_order(Work::Images(Recipe::decode())),
    ]
}

fn crews() -> impl Strategy<Value = Vec<Crew>> {
    let readers = prop_oneof![
        2 => Just(Readers::Workers),
        1 => (1usize..4).prop_map(Readers::Threads),
    ];
    let kind = || {
        let kind = prop_oneof![Just(CacheKind::Encoded), Just(CacheKind::Decoded)];
        proptest::option::weighted(0.4, kind)
    };
    // Every world is a divisor of 6, and so every rank's batch a multiple of the run's `rows`.
    let world = prop_oneof![Just(1usize), Just(2), Just(3), Just(6)];
    let budget = proptest::option::weighted(0.4, Just(1 << 30));
    let crew = (world, 1usize..5, 1usize..4, any::<bool>(), readers, budget, kind(), kind());
    let crew = crew.prop_map(
        |(world, workers, prefetch, prefetch_next_epoch, readers, budget, in_memory, on_disk)| {
            let memory_budget = budget;
            Crew {
                world,
                workers,
                prefetch,
                prefetch_next_epoch,
                readers,
                memory_budget,
                in_memory,
                on_disk,
            }
        },
    );
    proptest::collection::vec(crew, 1..4)
}

fn runs(
    places: &'static [Place],
    works: impl Strategy<Value = (Work, Batching, Option<Table>)>,
) -> impl Strategy<Value = (Run, Vec<Crew>)> {
    let policies = [OnError::Raise, OnError::Skip, OnError::Replace, OnError::Fill];
    let tails = [None, Some(Tail::Drop), Some(Tail::Pad), Some(Tail::Uneven)];
    let samplers = proptest::sample::select(&SAMPLERS[..]);
    let of_blocks = proptest::option::weighted(0.7, proptest::sample::select(&BLOCK_SAMPLERS[..]));
    let order = (1u32..40, samplers, of_blocks, any::<u64>(), 0u32..1_000);
    let batches = (1usize..4, any::<bool>(), proptest::sample::select(tails.to_vec()), works);
    let place = proptest::sample::select(places);
    let run = (order, batches, proptest::sample::select(policies.to_vec()), place);
    (run, crews()).prop_map(|((order, batches, mut on_error, place), mut crews)| {
        let (samples, sampler, of_blocks, seed, epoch) = order;
        let (rows, has_mixing_group, tail, (work, batching, table)) = batches;
        // Refused by name where the source does not say how large images are.
        let place = if batching == Batching::InOrder { place } else { Place::Watched };
        let has_blocks = table.is_none() && place.block_ends(1).is_some();
        let sampler = of_blocks.filter(|_| has_blocks).unwrap_or(sampler);
        // Fewer may not fill a global batch, which is refused by name.
        let samples = if tail == Some(Tail::Drop) { samples.max(36) } else { samples };
        let sampler = sampler(samples.into());
        if table.is_some() && matches!(sampler.samples, Samples::ClassBalanced { .. }) {
            // Refused by name: it takes every label.
            on_error = OnError::Raise;
        }
        let table = table.map(|table| {
            let folder = table.write(samples, |row| on_error != OnError::Raise && is_bad(row));
            (table, Arc::new(folder))
        });
        let mut run = Run {
            samples,
            rows,
            has_mixing_group,
            sampler,
            tail,
            seed,
            epoch,
            work,
            batching,
            on_error,
            table,
            place: (place, Arc::new(tempfile::tempdir().unwrap())),
        };
        if run.mixes() && on_error == OnError::Fill {
            // Refused by name: zeros would be mixed into good images.
            run.on_error = OnError::Skip;
        }
        if batching != Batching::InOrder && on_error == OnError::Replace {
            // Few rows may all be bad, which is raised: at least six good or bad ones in a batch.
            crews.iter_mut().for_each(|crew| crew.world = crew.world.min(3));
            run.rows = 3;
            run.tail = Some(Tail::Pad);
        }
        for crew in &mut crews {
            if run.table.is_some() {
                // Refused by name: blocks are read and kept otherwise.
                *crew = Crew { readers: Readers::Workers, in_memory: None, on_disk: None, ..*crew };
            }
            let is_decoded = |kind: &CacheKind| *kind == CacheKind::Decoded;
            if run.work == Work::Bytes || run.mixes() {
                // Such a cache is refused by name: nothing is decoded, or not exactly.
                crew.in_memory.take_if(|kind| is_decoded(kind));
                crew.on_disk.take_if(|kind| is_decoded(kind));
            }
        }
        (run, crews)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24),
    ) })]

    #[test]
    fn resuming_after_every_k_batches_concatenates_to_the_uninterrupted_run(
        (run, crews) in runs(&Place::ALL, works())
    ) {
        check(&run, &crews)?;
    }

    #[test]
    fn rows_of_files_resume_as_samples_do((run, crews) in runs(&Place::ROWS, works_in_order())) {
        check(&run, &crews)?;
    }
}

fn check(run: &Run, crews: &[Crew]) -> Result<(), TestCaseError> {
    let whole = run.uninterrupted(crews[0]);
    for (epoch, rows) in (run.epoch..).zip(&whole) {
        let samples = run.samples(crews[0], epoch);
        prop_assert!(run.have(rows, samples.clone()), "epoch {}", epoch);
        let positions = run.alone(crews[0]).order(epoch).len();
        prop_assert!(run.count(rows, samples, positions), "what counts of epoch {}", epoch);
    }
    let steps = whole[0].len().div_ceil(run.global_batch());
    for every in 1..=steps.max(1) {
        let Some(resumed) = run.interrupted(crews, every) else { continue };
        for (epoch, (rows, crew)) in resumed.into_iter().enumerate() {
            // The last global batch follows the crew that loads it.
            let of_crew = Run { tail: Some(run.tail(crew)), ..run.clone() };
            let is_equal = if run.tail(crew) == run.tail(crews[0]) {
                rows == whole[epoch]
            } else {
                rows == of_crew.uninterrupted(crews[0])[epoch]
            };
            prop_assert!(is_equal, "every {} of {:?}", every, crews);
        }
    }
    Ok(())
}

#[test]
fn the_state_at_the_start_is_that_of_an_epoch_of_which_nothing_was_received() {
    let loader = loader(bmps(9), config(Work::Bytes));
    assert_eq!(loader.state(3).unwrap(), loader.epoch(3).state().unwrap());
    let resumed = loader.resume(&loader.state(3).unwrap()).unwrap();
    assert_eq!((resumed.number(), resumed.remaining()), (3, loader.len()));
}
