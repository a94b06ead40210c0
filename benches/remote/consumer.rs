//! Passes over the data, and the figures of each.

use std::fmt;
use std::hint::black_box;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use tbl_io::Stores;
use tl_benches::{is_measuring, processor_time};
use tl_pipeline::{Dataset, Loader, LoaderConfig, LoaderStats, Shuffle, Work};
use tl_store::{RemoteStores, StoreStats};

use crate::data::Shards;
use crate::server::Server;
use crate::{BLOCK, milliseconds};

const BATCH: usize = 64;

/// The batch whose time to arrive is measured.
const FIRST_BATCH: usize = 256;

/// The time that a consumer asks at a fixed rate.
const ASKED_FOR: Duration = Duration::from_secs(40);

/// The begin of what is measured.
struct Begin {
    loaded: LoaderStats,
    requests: StoreStats,
    processor: Duration,
    at: Instant,
}

impl Begin {
    fn new(loader: &Loader, stores: Option<&RemoteStores>) -> Self {
        Self {
            loaded: loader.stats(),
            requests: stores.map(RemoteStores::stats).unwrap_or_default(),
            processor: processor_time(),
            at: Instant::now(),
        }
    }

    /// The figures since then.
    fn pass(
        &self,
        loader: &Loader,
        stores: Option<&RemoteStores>,
        first_batch: Option<Duration>,
    ) -> Pass {
        let elapsed = self.at.elapsed();
        let processor = processor_time() - self.processor;
        let requests = stores.map(RemoteStores::stats).unwrap_or_default();
        let loaded = loader.stats().since(&self.loaded);
        Pass {
            samples: loaded.processed,
            bytes: loaded.bytes_read,
            elapsed,
            processor,
            requests: requests.since(&self.requests),
            first_batch: first_batch.expect("an epoch has batches"),
        }
    }
}

/// One epoch after another that is not measured.
pub(crate) struct Pass {
    samples: u64,
    bytes: u64,
    elapsed: Duration,
    processor: Duration,
    requests: StoreStats,
    /// From before the data set was opened.
    pub(crate) first_batch: Duration,
}

impl Pass {
    pub(crate) fn of_files(shards: &Shards, work: Work, shuffle: Shuffle) -> Self {
        let start = Instant::now();
        let dataset = Dataset::open(&shards.files()).expect("the files were written");
        Self::of(dataset, start, None, work, shuffle)
    }

    pub(crate) fn of_store(server: &Server, shards: &Shards, work: Work, shuffle: Shuffle) -> Self {
        let stores = server.stores();
        let start = Instant::now();
        let dataset = open(&stores, &shards.urls());
        Self::of(dataset, start, Some(&stores), work, shuffle)
    }

    fn of(
        dataset: Dataset,
        start: Instant,
        stores: Option<&RemoteStores>,
        work: Work,
        shuffle: Shuffle,
    ) -> Self {
        let loader = loader(dataset, work, shuffle, BATCH);
        let mut first_batch = None;
        let mut drain = |epoch| {
            for batch in loader.epoch(epoch) {
                black_box(batch.expect("every sample is good"));
                first_batch.get_or_insert_with(|| start.elapsed());
            }
        };
        drain(0);
        let begin = Begin::new(&loader, stores);
        drain(1);
        begin.pass(&loader, stores, first_batch)
    }

    /// Samples per second.
    pub(crate) fn rate(&self) -> f64 {
        self.samples as f64 / self.elapsed.as_secs_f64()
    }

    /// Processor time of a sample in microseconds.
    pub(crate) fn per_sample(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.samples as f64
    }

    /// Processor time of a million bytes in microseconds.
    pub(crate) fn per_megabyte(&self) -> f64 {
        self.processor.as_secs_f64() * 1e12 / self.bytes as f64
    }

    pub(crate) fn gets_per_1000(&self) -> f64 {
        self.requests.gets as f64 * 1e3 / self.samples as f64
    }

    pub(crate) fn received_by_used(&self) -> f64 {
        self.requests.received as f64 / self.bytes as f64
    }
}

/// The time from before a data set is opened to its first batch of 256 stored samples.
pub(crate) fn first_batch(server: &Server, urls: &[PathBuf]) -> Duration {
    let stores = server.stores();
    let start = Instant::now();
    let shuffle = BLOCK.parse().expect("an order of this library");
    let loader = loader(open(&stores, urls), Work::Bytes, shuffle, FIRST_BATCH);
    let batch = loader.epoch(0).next().expect("an epoch has batches");
    black_box(batch.expect("every sample is good"));
    start.elapsed()
}

fn open(stores: &RemoteStores, urls: &[PathBuf]) -> Dataset {
    Dataset::open_in(&stores.add_to(Stores::new()), urls).expect("the server answers")
}

fn loader(dataset: Dataset, work: Work, shuffle: Shuffle, batch_size: usize) -> Loader {
    let config = LoaderConfig {
        workers: 1,
        batch_size: if is_measuring() { batch_size } else { 8 },
        sampler: shuffle.into(),
        ..LoaderConfig::new(work)
    };
    Loader::new(dataset, config).expect("valid settings")
}

/// The waits of a consumer for batches.
pub(crate) struct Waits {
    /// In ascending order.
    waits: Vec<Duration>,
    pass: Pass,
}

impl Waits {
    /// Asks for stored bytes of `asked` samples per second.
    pub(crate) fn of(server: &Server, shards: &Shards, shuffle: Shuffle, asked: f64) -> Self {
        let stores = server.stores();
        let start = Instant::now();
        let loader = loader(open(&stores, &shards.urls()), Work::Bytes, shuffle, BATCH);
        let step = Duration::from_secs_f64(loader.config().batch_size as f64 / asked);
        let length = if is_measuring() { ASKED_FOR } else { Duration::ZERO };
        let mut waits = Vec::new();
        let mut first_batch = None;
        let mut begin = None;
        let mut next = Instant::now();
        'epochs: for epoch in 0.. {
            for batch in loader.epoch(epoch) {
                let batch = batch.expect("every sample is good");
                let now = Instant::now();
                first_batch.get_or_insert_with(|| start.elapsed());
                if epoch > 0 {
                    waits.push(now.saturating_duration_since(next));
                }
                drop(batch);
                // A late consumer does not hurry afterwards.
                next = (next + step).max(now);
                thread::sleep(next.saturating_duration_since(Instant::now()));
                next = Instant::now();
                if begin.as_ref().is_some_and(|begin: &Begin| begin.at.elapsed() > length) {
                    break 'epochs;
                }
            }
            begin.get_or_insert_with(|| Begin::new(&loader, Some(&stores)));
        }
        let begin = begin.expect("the first epoch has ended");
        let pass = begin.pass(&loader, Some(&stores), first_batch);
        waits.sort();
        Self { waits, pass }
    }

    /// The wait in milliseconds that this many waits of a thousand do not exceed.
    fn at(&self, per_thousand: usize) -> f64 {
        let last = self.waits.len() - 1;
        milliseconds(self.waits[(last * per_thousand).div_ceil(1000)])
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits, pass } = self;
        let waited: Duration = waits.iter().sum();
        let hedges = pass.requests.hedges as f64 / pass.requests.gets.max(1) as f64;
        write!(
            f,
            "{:.0} | {:.2} % | {:.1} ms | {:.1} ms | {:.1} ms | {:.0} ms | {:.0} | {:.2} % | {:.3}",
            pass.rate(),
            100.0 * waited.as_secs_f64() / pass.elapsed.as_secs_f64(),
            self.at(500),
            self.at(990),
            self.at(999),
            self.at(1000),
            pass.gets_per_1000(),
            100.0 * hedges,
            pass.received_by_used(),
        )
    }
}
