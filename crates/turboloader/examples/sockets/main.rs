//! Reads data sets from a store that fails now and then, over sockets, and looks for anything that
//! differs or grows: `TURBOLOADER_SOCKETS=600 cargo run --release -p turboloader --example sockets`.
//!
//! The store is this program again, in a process of its own. Its answers take some 10 ms and come with
//! 55 MB/s over each connection; 1 % are 503s, 0.5 % break off and 0.1 % stop for ever. Loaders of one
//! or two ranks with random threads, orders, bytes read ahead and caches on disk run through epochs,
//! break them off and resume them, next to a loader of the same files on disk: every batch has to have
//! its bytes. Files are written to the store, and some are stopped: they are there complete or not at
//! all, and no upload is left. Threads and open files have to be as many as before whenever the loaders
//! have gone, and so has memory; folders of caches hold what they may, without claims and drafts.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod server;
mod uploads;
mod usage;

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tbl_io::{ByteLocks, Stores};
use tl_pipeline::{CacheConfig, CacheKind, CacheStats, Deal, DiskCache, Shard};
use turboloader::{
    Batch, Blocks, Dataset, Loader, LoaderConfig, LoaderState, RemoteStores, Sampler, Shuffle, Work,
};

use crate::server::{Server, serve_until_input_ends};
use crate::usage::Usage;

/// The length of a run in seconds, unless this says another one.
const SECONDS: &str = "TURBOLOADER_SOCKETS";
const DEFAULT_SECONDS: f64 = 3.0;

/// The data set, in two containers.
const NAMES: [&str; 2] = ["train.tbl", "train.tar"];
const SAMPLES: u64 = 400;
/// The store's name for it.
const BUCKET: &str = "bucket";

/// Rows of all ranks together in a step.
const GLOBAL_BATCH: usize = 16;

/// The length of the name of a cache's entry.
const ENTRY_NAME: usize = 62;

/// Parts of the time, of each of which the least memory at rest counts: what lies above it is what
/// the last loaders happened to leave in the allocator. The first two are for what grows to its size.
const PARTS: usize = 4;
/// Runs shorter than this end before memory has settled.
const MEASURABLE: Duration = Duration::from_secs(60);
/// The memory that may come in the last part: pages of an allocator that is in use.
const GROWTH_KIB: u64 = 1024;

/// glibc's setting for how many heaps threads have.
const ARENAS: &str = "MALLOC_ARENA_MAX";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if let Some(folder) = env::args_os().nth(1) {
        return serve_until_input_ends(&folder);
    }
    if env::var_os(ARENAS).is_none() {
        return with_one_arena();
    }
    let seconds = env::var(SECONDS).map_or(Ok(DEFAULT_SECONDS), |text| text.parse())?;
    let length = Duration::from_secs_f64(seconds);
    let folder = tempfile::tempdir()?;
    let bucket = folder.path().join(BUCKET);
    fs::create_dir(&bucket)?;
    uploads::write(&bucket)?;
    let server = Server::start(folder.path())?;
    let mut soak = Soak {
        folder: folder.path(),
        server: &server,
        random: Random(1),
        counts: Counts::default(),
    };
    let before = Usage::now()?;
    let mut least = [u64::MAX; PARTS];
    let begun = Instant::now();
    let mut printed = begun;
    while begun.elapsed() < length {
        soak.round()?;
        let now = Usage::settled(before)?;
        let part = PARTS as u128 * begun.elapsed().as_nanos() / length.as_nanos().max(1);
        if let Some(least) = least.get_mut(usize::try_from(part)?) {
            *least = now.memory_kib.min(*least);
        }
        if printed.elapsed() > Duration::from_secs(60) {
            printed = Instant::now();
            println!("{:.0?}: {:?}, {now:?}", begun.elapsed(), soak.counts);
        }
    }
    println!("{:?} in {:.1?}, {before:?}", soak.counts, begun.elapsed());
    print!("the store: {}", server.end()?);
    if length < MEASURABLE {
        return Ok(());
    }
    println!("memory, the least of each quarter: {least:?} KiB");
    let [_, _, third, last] = least;
    if last > third.saturating_add(GROWTH_KIB) {
        return Err(format!("memory has grown from {third} to {last} KiB").into());
    }
    Ok(())
}

/// What was done, and what the store said to it.
#[derive(Debug, Default)]
struct Counts {
    epochs: u64,
    batches: u64,
    breaks: u64,
    /// Breaks that other loaders continued, with as many ranks or with another number.
    resumptions: u64,
    found_on_disk: u64,
    requests: u64,
    throttled: u64,
    retries: u64,
    resumed: u64,
    hedges: u64,
    hedges_won: u64,
    received: u64,
    uploads: u64,
    /// Uploads that were stopped before their end.
    stopped: u64,
}

struct Soak<'a> {
    folder: &'a Path,
    server: &'a Server,
    random: Random,
    counts: Counts,
}

impl Soak<'_> {
    fn round(&mut self) -> Outcome<()> {
        let stores = self.server.stores();
        if self.random.below(4) == 0 {
            self.upload(&stores)?;
        } else {
            self.train(&stores)?;
        }
        let stats = stores.stats();
        self.counts.requests += stats.gets;
        self.counts.throttled += stats.throttled;
        self.counts.retries += stats.retries;
        self.counts.resumed += stats.resumed;
        self.counts.hedges += stats.hedges;
        self.counts.hedges_won += stats.hedges_won;
        self.counts.received += stats.received;
        Ok(())
    }

    /// Up to three epochs of one or two ranks. Some are broken off, and resumed or not.
    fn train(&mut self, stores: &RemoteStores) -> Outcome<()> {
        let name = NAMES[usize::from(self.random.below(2) == 1)];
        let config = self.random.config()?;
        let local = Dataset::open(&[self.folder.join(BUCKET).join(name)])?;
        let local = Loader::new(local, LoaderConfig { workers: 1, ..config.clone() })?;
        let job = Job { stores, url: format!("s3://{BUCKET}/{name}"), cache: self.cache() };
        for epoch in 0..u32::try_from(1 + self.random.below(3))? {
            let expected: Vec<Batch> = local.epoch(epoch).collect::<Result<_, _>>()?;
            let mut state = local.state(epoch)?;
            let mut step = 0;
            while step < expected.len() {
                let breaks_off = self.random.below(3) == 0;
                let count = if breaks_off { self.random.below(20) } else { u64::MAX };
                let end = step.saturating_add(usize::try_from(count)?).min(expected.len());
                let world = u32::try_from(1 + self.random.below(2))?;
                let rows = &expected[step..end];
                let (reached, stats) =
                    job.ranks(&config, world, &state, rows).map_err(|error| {
                        let counts = &self.counts;
                        format!("{name}, epoch {epoch}, from step {step}: {error}: {counts:?}")
                    })?;
                self.counts.batches += u64::from(world) * u64::try_from(rows.len())?;
                self.counts.found_on_disk += stats.disk.hits;
                if (stats.faults, stats.bad_entries) != (0, 0) {
                    return Err(format!("the cache on disk had faults: {stats:?}").into());
                }
                self.counts.breaks += u64::from(end < expected.len());
                if end < expected.len() && self.random.below(2) == 0 {
                    break;
                }
                self.counts.resumptions += u64::from(end < expected.len());
                (state, step) = (reached, end);
            }
            self.counts.epochs += 1;
        }
        job.cache.as_ref().map_or(Ok(()), check_cache)
    }

    /// A cache of a tenth of the data, of half of it or of all, in a folder that other loaders have
    /// left, or none.
    fn cache(&mut self) -> Option<DiskCache> {
        let bytes =
            [1 << 20, 7 << 20, 32 << 20][usize::try_from(self.random.below(3)).unwrap_or(0)];
        let kind = match self.random.below(4) {
            0 => return None,
            1 => CacheKind::Encoded,
            _ => CacheKind::Blocks,
        };
        let folder = self.folder.join(format!("{kind:?}-{bytes}"));
        Some(DiskCache { kind, folder, bytes })
    }
}

/// The data set that the ranks of a job share, and the cache that they may have.
struct Job<'a> {
    stores: &'a RemoteStores,
    url: String,
    cache: Option<DiskCache>,
}

impl Job<'_> {
    /// Reads batches with all ranks at once, each of which has its rows of every one of `expected`.
    /// Returns the state after them and the first rank's counts of its cache.
    fn ranks(
        &self,
        config: &LoaderConfig,
        world: u32,
        state: &LoaderState,
        expected: &[Batch],
    ) -> Result<(LoaderState, CacheStats), String> {
        let results: Vec<Result<_, String>> = thread::scope(|scope| {
            let start = |rank| {
                let shard = Shard { rank, world, tail: None };
                scope.spawn(move || {
                    self.rank(config, shard, state, expected).map_err(|error| error.to_string())
                })
            };
            let ranks: Vec<_> = (0..world).map(start).collect();
            let failed = |_| Err("a rank has panicked".to_owned());
            ranks.into_iter().map(|rank| rank.join().unwrap_or_else(failed)).collect()
        });
        let results: Vec<_> = results.into_iter().collect::<Result<_, _>>()?;
        let mut results = results.into_iter();
        let first = results.next().ok_or("no rank")?;
        if results.any(|(state, _)| state != first.0) {
            return Err("the states of the ranks differ".to_owned());
        }
        Ok(first)
    }

    fn rank(
        &self,
        config: &LoaderConfig,
        shard: Shard,
        state: &LoaderState,
        expected: &[Batch],
    ) -> Outcome<(LoaderState, CacheStats)> {
        let share = GLOBAL_BATCH / usize::try_from(shard.world)?;
        let first = share * usize::try_from(shard.rank)?;
        let config = LoaderConfig {
            shard,
            batch_size: share,
            cache: CacheConfig { memory: None, disk: self.cache.clone() },
            ..config.clone()
        };
        let dataset = Dataset::open_in(&self.stores.add_to(Stores::new()), &[&self.url])?;
        let loader = Loader::new(dataset, config)?;
        let mut epoch = loader.resume(state)?;
        for (step, whole) in expected.iter().enumerate() {
            let batch = epoch.next().ok_or("the epoch ended early")??;
            if !has_rows(&batch, whole, first) {
                return Err(format!("step {step} of {shard:?} has other bytes than on disk").into());
            }
        }
        Ok((epoch.state()?, loader.cache_stats()))
    }
}

/// Whether a batch has the samples, labels and bytes of another from a row on.
fn has_rows(batch: &Batch, whole: &Batch, first: usize) -> bool {
    let bytes = |batch: &Batch, row| batch.sample(row).map(|sample| sample.bytes.to_vec());
    (0..batch.len()).all(|row| {
        let of_whole = first + row;
        batch.indices()[row] == whole.indices()[of_whole]
            && batch.labels()[row] == whole.labels()[of_whole]
            && bytes(batch, row).is_some()
            && bytes(batch, row) == bytes(whole, of_whole)
    })
}

/// Sees that a folder has at most the bytes that it may, and that nobody left a claim or a draft.
fn check_cache(cache: &DiskCache) -> Outcome<()> {
    let root = cache.folder.join("turboloader-cache-1");
    let mut used = 0;
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().len() == ENTRY_NAME {
                used += entry.metadata()?.len().next_multiple_of(4096);
            }
        }
    }
    if used > cache.bytes {
        return Err(
            format!("{} has {used} bytes, more than {}", root.display(), cache.bytes).into()
        );
    }
    if cache.kind == CacheKind::Blocks {
        let claims = ByteLocks::open(&root.join("claims"))?;
        for byte in 0..=u16::MAX {
            if claims.is_locked_elsewhere(byte)? {
                return Err(format!("{}: claim {byte} is still held", root.display()).into());
            }
        }
    }
    let drafts = fs::read_dir(root.join("drafts"))?.count();
    if drafts > 0 {
        return Err(format!("{} has {drafts} drafts", root.display()).into());
    }
    Ok(())
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let value = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (value ^ value >> 31) % end
    }

    fn config(&mut self) -> Outcome<LoaderConfig> {
        let shuffle = match self.below(4) {
            0 => Shuffle::None,
            3 => Shuffle::Lanes {
                lanes: 2,
                blocks: Blocks::Samples(1 + self.below(20)),
                window: 1 + self.below(8),
                deal: Deal::Run,
            },
            1 => Shuffle::Block {
                blocks: Blocks::Samples(1 + self.below(20)),
                window: 1 + self.below(8),
            },
            _ => Shuffle::Full,
        };
        Ok(LoaderConfig {
            batch_size: GLOBAL_BATCH,
            seed: self.below(1_000),
            workers: usize::try_from(1 << self.below(3))?,
            prefetch: usize::try_from(1 + self.below(4))?,
            sampler: Sampler::from(shuffle),
            // Down to less than ten samples, so that many requests are made of few bytes.
            read_ahead_bytes: 1 << (18 + self.below(6)),
            prefetch_next_epoch: self.below(2) == 0,
            ..LoaderConfig::new(Work::Bytes)
        })
    }
}

/// Runs this program again with one heap for all threads, which gives back what is freed: what is
/// left of loaders that have gone would otherwise depend on which thread freed what.
fn with_one_arena() -> Outcome<()> {
    let mut again = Command::new(env::current_exe()?);
    again.env(ARENAS, "1");
    for setting in ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"] {
        again.env(setting, "4096");
    }
    let status = again.status()?;
    if status.success() { Ok(()) } else { Err(format!("ended with {status}").into()) }
}
