//! Views: what they select, beside a list of numbers, and what loaders over them deliver.

mod joins;
mod model;
mod refusals;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use idv_format::Compression;
use proptest::prelude::*;
use tl_pipeline::{
    Blocks, CacheKind, Columns, Dataset, DatasetView, Deal, Loader, LoaderConfig, Sampler, Samples,
    Shard, Shuffle, Subset, Tail, Work,
};

use crate::caches::memory;
use crate::containers::containers;
use crate::memory::{config, pixels};
use crate::tables::files::{write_labelled, write_tbf};
use model::{Model, Op, ops};

const SAMPLES: u64 = 23;
const GLOBAL_BATCH: usize = 6;

/// A data set and what is known of its samples.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) is_table: bool,
    /// The label of every sample; a graph has none.
    pub(crate) labels: Option<Vec<i64>>,
}

/// A folder, an archive, TBL files, an IDV file and, last, a TBF segment.
static STORED: LazyLock<Vec<Stored>> = LazyLock::new(|| {
    let root = tempfile::tempdir().unwrap().keep();
    let paths = containers(&root);
    let labels = |label: fn(u64) -> u64| {
        (0..SAMPLES).map(|sample| i64::try_from(label(sample)).unwrap()).collect()
    };
    let of_files = |path: &PathBuf| Stored {
        dataset: Arc::new(Dataset::open(&[path]).unwrap()),
        is_table: false,
        labels: Some(labels(|sample| sample / 8)),
    };
    let mut stored: Vec<Stored> = paths.iter().map(of_files).collect();
    let idv = root.join("rows.idv");
    write_labelled(&idv, 0..SAMPLES, Compression::Deflate, |_| false);
    let dataset = Dataset::open(&[idv]).unwrap().with_labels_of("label").unwrap();
    let labels = Some(labels(|sample| sample % 3));
    stored.push(Stored { dataset: Arc::new(dataset), is_table: true, labels });
    let tbf = root.join("nodes.tbf");
    write_tbf(&tbf, u32::try_from(SAMPLES).unwrap(), tbf_format::BuildOptions::default());
    let dataset = Arc::new(Dataset::open(&[tbf]).unwrap());
    stored.push(Stored { dataset, is_table: true, labels: None });
    stored
});

impl Stored {
    pub(crate) fn size(&self, sample: u64) -> (u64, u64) {
        let (width, height, _) = pixels(u32::try_from(sample).unwrap());
        (width.into(), height.into())
    }

    fn work(&self) -> Work {
        match (self.is_table, &self.labels) {
            (false, _) => Work::Bytes,
            (true, None) => Work::Columns(Columns::default()),
            (true, Some(_)) => {
                Work::Columns(Columns { label: Some("label".into()), ..Columns::default() })
            }
        }
    }
}

/// How a view is loaded.
#[derive(Clone, Debug)]
struct Crew {
    shuffle: Shuffle,
    workers: usize,
    worlds: [usize; 2],
    is_cached: bool,
    epoch: u32,
    stop: prop::sample::Index,
}

fn crews() -> impl Strategy<Value = Crew> {
    let shuffles = [
        Shuffle::None,
        Shuffle::Full,
        Shuffle::Block { blocks: Blocks::Samples(3), window: 2 },
        Shuffle::Lanes { lanes: 2, blocks: Blocks::Samples(2), window: 2, deal: Deal::Run },
    ];
    let world = || prop::sample::select(vec![1, 2, 3, 6]);
    let shuffle = prop::sample::select(shuffles.to_vec());
    (shuffle, 1..4_usize, [world(), world()], any::<bool>(), 0..3_u32, any::<prop::sample::Index>())
        .prop_map(|(shuffle, workers, worlds, is_cached, epoch, stop)| Crew {
            shuffle,
            workers,
            worlds,
            is_cached,
            epoch,
            stop,
        })
}

impl Crew {
    fn ranks(&self, view: &DatasetView, stored: &Stored, world: usize) -> Vec<Loader> {
        let rank = |rank| {
            let shard = Shard { rank, world: u32::try_from(world).unwrap(), tail: Some(Tail::Pad) };
            let mut config = LoaderConfig {
                sampler: self.shuffle.into(),
                batch_size: GLOBAL_BATCH / world,
                workers: self.workers,
                shard,
                ..config(stored.work())
            };
            if self.is_cached && !stored.is_table {
                config.cache = memory(CacheKind::Encoded, 1 << 20);
            }
            Loader::new(view.clone(), config).unwrap()
        };
        (0..u32::try_from(world).unwrap()).map(rank).collect()
    }

    /// The samples of an epoch, stopped and resumed on other ranks, with their labels.
    fn received(&self, view: &DatasetView, stored: &Stored) -> Vec<(u64, i64)> {
        let steps = usize::try_from(view.len()).unwrap().div_ceil(GLOBAL_BATCH);
        let stop = self.stop.index(steps + 1);
        let mut rows = Vec::new();
        let mut state = None;
        for (world, count) in self.worlds.into_iter().zip([stop, steps]) {
            let ranks = self.ranks(view, stored, world);
            let mut epochs: Vec<_> = ranks
                .iter()
                .map(|rank| match &state {
                    None => rank.epoch(self.epoch),
                    Some(state) => rank.resume(state).unwrap(),
                })
                .collect();
            for _ in 0..count {
                for batch in epochs.iter_mut().filter_map(Iterator::next) {
                    let batch = batch.unwrap();
                    let found = batch.indices().iter().zip(batch.labels()).zip(batch.valid());
                    let found = found.filter(|&(_, &valid)| valid);
                    rows.extend(found.map(|((&index, &label), _)| (index, label)));
                }
            }
            state = Some(epochs[0].state().unwrap());
        }
        rows
    }
}

/// The rows of an epoch over the samples of a model, by the order that docs/order.md specifies.
fn expected(samples: &[u64], stored: &Stored, crew: &Crew) -> Vec<(u64, i64)> {
    let subset = Samples::Subset(Subset::List(samples.to_vec()));
    let sampler = Sampler { samples: subset, ..crew.shuffle.into() };
    let sequence = sampler.resolve(&stored.dataset, GLOBAL_BATCH as u64).unwrap();
    let order = sequence.order(42, crew.epoch);
    let label = |sample: u64| {
        stored.labels.as_ref().map_or(-1, |labels| labels[usize::try_from(sample).unwrap()])
    };
    let samples = (0..).map_while(|position| order.sample_at(position));
    samples.map(|sample| (sample, label(sample))).collect()
}

fn check_chain(stored: &Stored, chain: &[Op], crew: &Crew) -> Result<(), TestCaseError> {
    let mut view = DatasetView::from(Arc::clone(&stored.dataset));
    let mut model = Model { stored, samples: (0..SAMPLES).collect() };
    let mut steps = 0;
    for op in chain {
        if op.divides() && model.has_repeats() {
            let error = op.apply(&view, stored).unwrap_err().to_string();
            prop_assert!(error.contains("more than once"), "{}", error);
            continue;
        }
        steps += 1;
        model = model.apply(op);
        view = op.apply(&view, stored).unwrap();
        prop_assert_eq!(
            view.indices().unwrap().collect::<Vec<_>>(),
            &model.samples[..],
            "{:?}",
            op
        );
        prop_assert_eq!(view.len(), model.samples.len() as u64);
        let places = (0..).map_while(|place| view.sample_at(place));
        prop_assert_eq!(places.collect::<Vec<_>>(), &model.samples[..]);
    }
    prop_assert!(view.explain().lines().count() > steps);
    if model.samples.is_empty() {
        let error = Loader::new(view, config(stored.work())).map(|_| ()).unwrap_err().to_string();
        prop_assert!(error.contains("selects none of 23 samples"), "{}", error);
        return Ok(());
    }
    let expected = expected(&model.samples, stored, crew);
    prop_assert_eq!(crew.received(&view, stored), expected, "{:?}", crew);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("TURBOLOADER_CASES").map_or(500, |cases| cases.parse().unwrap())
    ) })]

    /// Chains of views select what the model does, and loaders over them deliver it in the specified
    /// order, whatever the threads, the caches and the ranks, and resumed at any batch.
    #[test]
    fn chains_of_views_are_lists_of_numbers(
        source in any::<prop::sample::Index>(),
        chain in prop::collection::vec(ops(), 0..5),
        crew in crews(),
    ) {
        let stored = source.get(&STORED[..]);
        let chain: Vec<Op> = chain.into_iter().filter(|op| op.applies_to(stored)).collect();
        check_chain(stored, &chain, &crew)?;
    }
}

/// Equal samples are resumed as equal, however they were selected.
#[test]
fn a_state_resumes_over_another_chain_with_the_same_samples() {
    let stored = &STORED[1];
    let all = DatasetView::from(Arc::clone(&stored.dataset));
    let loader = |view: &DatasetView| Loader::new(view.clone(), config(Work::Bytes)).unwrap();
    let first = all.skip(3).unwrap().take(9).unwrap();
    let second = all.subset(3..12).unwrap();
    let third = all.filter(&"index >= 3 and index < 12".parse().unwrap()).unwrap();
    let state = loader(&first).epoch(1).state().unwrap();
    for view in [second, third] {
        assert_eq!(view.samples(), Samples::Subset((3..12).into()));
        assert!(loader(&view).resume(&state).is_ok());
    }
    let other = all.skip(4).unwrap().take(9).unwrap();
    assert!(loader(&other).resume(&state).is_err());
    // All samples are the data set itself.
    let whole = all.skip(0).unwrap().take(u64::MAX).unwrap();
    assert!(whole.is_whole());
    let state = loader(&whole).epoch(0).state().unwrap();
    let plain = Dataset::open(&[stored.dataset.shards()[0].location().as_os_str()]).unwrap();
    assert!(Loader::new(plain, config(Work::Bytes)).unwrap().resume(&state).is_ok());
}
