//! Breaks loaders off and resumes them for a while, and looks for anything that changes or grows:
//! `cargo run --release --example soak [MINUTES [SEED]]`.
//!
//! A data set of which 1 % is damaged is read over and over, by one loader or by two that are ranks
//! of each other, with random threads, readers, caches in memory and on disk, and budgets. They are
//! stopped after random batches, thrown away or resumed, also as another number of ranks. Bad samples
//! are left out or replaced, images have one size or are grouped and padded. Every epoch's digest has
//! to be that of an uninterrupted run with one worker. Threads and open files have to be as many as
//! before whenever the loaders have gone, and so has memory, to 1 %.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_decode::ImageInfo;
use tl_pipeline::{
    Batch, Batching, Buckets, CacheConfig, CacheKind, Dataset, DiskCache, Epoch, Loader,
    LoaderConfig, LoaderState, MemoryCache, OnError, Readers, Shard, Shuffle, Tail, Work,
};
use tl_transform::op::RandomShortestSize;
use tl_transform::{DecodeMode, Dtype, Interpolation, Layout, OutputSpec, Recipe};

/// The last global batch has five, which two ranks do not share.
const SAMPLES: u64 = 805;
const EPOCHS: u32 = 4;
const GLOBAL_BATCH: usize = 16;
/// The data set's name.
const DATA: &str = "soak.tbl";
/// What is damaged: one sample of a hundred.
const BAD: u64 = 37;
/// Parts of the time, of each of which the least memory at rest counts: what lies above it is what
/// the last loader happened to leave in the allocator, and what is never given back lifts all that
/// follow. Nothing else is kept of the measurements, whose memory would be measured too.
const PARTS: usize = 20;
/// Runs shorter than this end before memory has settled, and say nothing about it.
const MEASURABLE: Duration = Duration::from_secs(60);

/// glibc's setting for how many heaps threads have.
const ARENAS: &str = "MALLOC_ARENA_MAX";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if std::env::var_os(ARENAS).is_none() {
        return with_one_arena();
    }
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(Ok(0.02), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    write(&folder.path().join(DATA))?;
    let mut soak = Soak {
        folder: folder.path(),
        random: Random(seed),
        runs: Vec::new(),
        counts: Counts::default(),
    };
    for run in kinds()? {
        let digests = (0..EPOCHS).map(|epoch| soak.uninterrupted(&run, epoch));
        let digests = digests.collect::<Outcome<_>>()?;
        soak.runs.push((run, digests));
    }
    let (start, length) = (Instant::now(), Duration::from_secs_f64(60.0 * minutes));
    let before = Usage::now()?;
    let (mut least, mut said) = ([u32::MAX; PARTS], Instant::now());
    while start.elapsed() < length {
        soak.round()?;
        let now = Usage::now()?;
        if (now.threads, now.files) != (before.threads, before.files) {
            return Err(format!("threads and files were {before:?}, are {now:?}").into());
        }
        let part = PARTS as u128 * start.elapsed().as_nanos() / length.as_nanos().max(1);
        if let Some(least) = least.get_mut(usize::try_from(part)?) {
            *least = now.memory.min(*least);
        }
        if said.elapsed() > Duration::from_secs(60) {
            said = Instant::now();
            println!("{:.0?}: {:?}, {now:?}", start.elapsed(), soak.counts);
        }
    }
    println!("{:?} in {:.1?}, {before:?}", soak.counts, start.elapsed());
    if length < MEASURABLE {
        return Ok(());
    }
    // The first half is for what grows to its size: buffers, and the stacks of threads that the
    // system keeps for the next ones.
    let (first, last) = (f64::from(least[PARTS / 2]), f64::from(least[PARTS - 1]));
    let drift = (last - first) / first.max(1.0);
    println!("memory, the least of each part: {least:?} KiB, {:+.2} %", 100.0 * drift);
    if drift >= 0.01 {
        return Err("memory has grown by 1 % or more".into());
    }
    Ok(())
}

/// Threads, open files and resident memory in KiB, that of files left out.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    threads: usize,
    files: usize,
    memory: u32,
}

impl Usage {
    /// Nothing where there is no `/proc`.
    fn now() -> Outcome<Self> {
        let Ok(status) = fs::read_to_string("/proc/self/status") else {
            return Ok(Self::default());
        };
        let number = |name| {
            let line = status.lines().find_map(|line: &str| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse::<u32>()
        };
        let files = fs::read_dir("/proc/self/fd")?.count();
        // The kernel wakes who joins a thread a moment before it takes the thread off its list.
        let start = Instant::now();
        let threads = loop {
            let threads = fs::read_dir("/proc/self/task")?.count();
            if threads == 1 || start.elapsed() > Duration::from_secs(1) {
                break threads;
            }
            std::thread::yield_now();
        };
        // Of its own: pages of the program and of files come as they are touched.
        Ok(Self { threads, files, memory: number("RssAnon:")? })
    }
}

#[derive(Debug, Default)]
struct Counts {
    epochs: u64,
    batches: u64,
    breaks: u64,
    resumptions: u64,
    /// Resumptions with another number of ranks.
    other_ranks: u64,
    skipped: u64,
    replaced: u64,
    found_on_disk: u64,
}

struct Soak<'a> {
    folder: &'a Path,
    random: Random,
    /// With the digests of its epochs.
    runs: Vec<(LoaderConfig, Vec<[u8; 32]>)>,
    counts: Counts,
}

impl Soak<'_> {
    /// One epoch through as many loaders and pieces as it takes, or thrown away on the way.
    fn round(&mut self) -> Outcome<()> {
        let run = usize::try_from(self.random.below(self.runs.len() as u64))?;
        let number = u32::try_from(self.random.below(EPOCHS.into()))?;
        let mut hash = Sha256::new();
        let mut ranks = self.ranks(run)?;
        let mut epochs: Vec<Epoch> = ranks.iter().map(|rank| rank.epoch(number)).collect();
        while self.step(&mut epochs, &mut hash)? {
            let Some(state) = state(&epochs)?.filter(|_| self.random.below(12) == 0) else {
                continue;
            };
            self.counts.breaks += 1;
            epochs.clear();
            match self.random.below(4) {
                0 => return Ok(()),
                1 | 2 => {
                    self.count(&ranks);
                    let before = ranks.len();
                    ranks = self.ranks(run)?;
                    self.counts.other_ranks += u64::from(ranks.len() != before);
                }
                _ => {}
            }
            for rank in &ranks {
                epochs.push(rank.resume(&state)?);
            }
            self.counts.resumptions += 1;
        }
        drop(epochs);
        if self.random.below(2) == 0 {
            // What was prepared of the next epoch is used, and that one broken off.
            for rank in &ranks {
                let next = rank.epoch(number + 1).next().ok_or("an epoch without batches")??;
                assert_eq!(next.number(), 0, "an epoch starts with its first batch");
            }
        }
        self.count(&ranks);
        self.counts.epochs += 1;
        if self.runs[run].1[number as usize] != <[u8; 32]>::from(hash.finalize()) {
            return Err(format!("epoch {number} is another, after {:?}", self.counts).into());
        }
        Ok(())
    }

    /// A batch of every rank; whether there was one.
    fn step(&mut self, epochs: &mut [Epoch], hash: &mut Sha256) -> Outcome<bool> {
        let before = self.counts.batches;
        for epoch in epochs {
            if let Some(batch) = epoch.next() {
                append(hash, &batch?);
                self.counts.batches += 1;
            }
        }
        Ok(self.counts.batches > before)
    }

    fn count(&mut self, ranks: &[Loader]) {
        for rank in ranks {
            let stats = rank.stats();
            self.counts.skipped += stats.skipped;
            self.counts.replaced += stats.replaced;
            self.counts.found_on_disk += rank.cache_stats().disk.hits;
        }
    }

    /// One loader or two, each as it happens to be.
    fn ranks(&mut self, run: usize) -> Outcome<Vec<Loader>> {
        let world = self.random.from(1, 2);
        (0..world)
            .map(|rank| {
                let shard = Shard {
                    rank: u32::try_from(rank)?,
                    world: u32::try_from(world)?,
                    tail: Some(Tail::Uneven),
                };
                let batch_size = GLOBAL_BATCH / usize::try_from(world)?;
                let own = LoaderConfig { shard, batch_size, ..self.runs[run].0.clone() };
                let config = self.random.crew(own, self.folder)?;
                loader(self.folder, config)
            })
            .collect()
    }

    /// The digest of an epoch from one worker that nobody stops.
    fn uninterrupted(&self, run: &LoaderConfig, epoch: u32) -> Outcome<[u8; 32]> {
        let loader = loader(self.folder, LoaderConfig { workers: 1, ..run.clone() })?;
        let mut hash = Sha256::new();
        for batch in loader.epoch(epoch) {
            append(&mut hash, &batch?);
        }
        let stats = loader.stats();
        assert_eq!(stats.skipped + stats.replaced, SAMPLES / 100, "what is damaged is found");
        Ok(hash.finalize().into())
    }
}

/// The state of a rank that is not at its end, if there is one.
fn state(epochs: &[Epoch]) -> Outcome<Option<LoaderState>> {
    let epoch = epochs.iter().find(|epoch| epoch.remaining() > 0);
    Ok(epoch.map(Epoch::state).transpose()?)
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// The same batches from other threads and other memory.
    fn crew(&mut self, config: LoaderConfig, folder: &Path) -> Outcome<LoaderConfig> {
        let kind = [CacheKind::Encoded, CacheKind::Decoded];
        let mut kind = || kind[usize::from(self.below(2) == 1)];
        let (in_memory, on_disk) = (kind(), kind());
        let memory = MemoryCache { kind: in_memory, bytes: self.from(1, 4) << 20 };
        // Less than all samples take, so that some have to leave.
        let disk = DiskCache { kind: on_disk, folder: folder.join("cache"), bytes: 24 << 20 };
        let readers = match self.below(4) {
            0 | 1 => Readers::Workers,
            _ => Readers::Threads(usize::try_from(self.from(1, 3))?),
        };
        Ok(LoaderConfig {
            workers: usize::try_from(self.from(1, 4))?,
            prefetch: usize::try_from(self.from(1, 4))?,
            readers,
            read_ahead_bytes: 1 << 20,
            memory_budget: (self.below(2) == 0).then_some(1 << 30),
            cache: CacheConfig {
                memory: (self.below(2) == 0).then_some(memory),
                disk: (self.below(2) == 0).then_some(disk),
            },
            ..config
        })
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let value = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (value ^ value >> 31) % end
    }
}

/// What is run: images of one size, bad ones left out or replaced, and grouped and padded ones.
fn kinds() -> Outcome<[LoaderConfig; 3]> {
    let kind = |recipe: Recipe| -> Outcome<LoaderConfig> {
        Ok(LoaderConfig {
            batch_size: GLOBAL_BATCH,
            shard: Shard { tail: Some(Tail::Uneven), ..Shard::default() },
            sampler: Shuffle::Full.into(),
            seed: 42,
            on_error: OnError::Skip,
            ..LoaderConfig::new(Work::Images(recipe.with_decode(DecodeMode::Exact)?))
        })
    };
    let (interpolation, min_size) = (Interpolation::Bilinear, vec![32, 48, 64]);
    let resize = RandomShortestSize { min_size, max_size: None, interpolation, antialias: true };
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let batching = Batching::Buckets(Buckets { window: 4, multiple: 1 });
    let train = kind(Recipe::imagenet_train(64)?)?;
    let padded = kind(Recipe::new(vec![resize.into()], output)?)?;
    let replacing = LoaderConfig { on_error: OnError::Replace, ..train.clone() };
    Ok([train, replacing, LoaderConfig { batching, ..padded }])
}

fn loader(folder: &Path, config: LoaderConfig) -> Outcome<Loader> {
    Ok(Loader::new(Dataset::open(&[folder.join(DATA)])?, config)?)
}

/// What does not depend on the ranks: every row's image, without what is around it.
fn append(hash: &mut Sha256, batch: &Batch) {
    let (row_bytes, width) = match batch.spec() {
        Some(spec) => (batch.images().len() / batch.len().max(1), spec.width as usize),
        None => (0, 0),
    };
    let is_padded = batch.spec().is_some_and(|spec| spec.output.dtype == Dtype::U8);
    for (row, [height, own]) in
        batch.sizes().iter().map(|size| size.map(|side| side as usize)).enumerate()
    {
        let image = &batch.images()[row * row_bytes..][..row_bytes];
        if is_padded {
            image
                .chunks_exact(3 * width)
                .take(height)
                .for_each(|line| hash.update(&line[..3 * own]));
        } else {
            hash.update(image);
        }
        hash.update(batch.labels()[row].to_le_bytes());
        hash.update(batch.indices()[row].to_le_bytes());
    }
}

/// Noise in BMP files of changing sizes, and photographs; one of a hundred is cut short.
fn write(path: &Path) -> Outcome<()> {
    let mut photographs = Vec::new();
    let folder = tl_testdata::shipped!("photos");
    for class in fs::read_dir(folder)? {
        for file in fs::read_dir(class?.path()).into_iter().flatten() {
            photographs.push(file?.path());
        }
    }
    photographs.retain(|path| path.extension().is_some_and(|extension| extension == "jpg"));
    photographs.sort();
    let (mut writer, mut random) =
        (StreamWriter::create(path, WriteOptions::default())?, Random(0));
    for index in 0..SAMPLES {
        let photograph = usize::try_from(index / 50)?;
        let (format, mut bytes) = match photographs.get(photograph).filter(|_| index % 50 == 0) {
            Some(photograph) => (SampleFormat::Jpeg, fs::read(photograph)?),
            None => (SampleFormat::Bmp, bmp(&mut random)?),
        };
        let ImageInfo { width, height, .. } = tl_decode::probe(&bytes)?;
        if index % 100 == BAD {
            bytes.truncate(bytes.len() / 2);
        }
        let key = format!("{index:06}");
        let (key, label) = (Some(key.as_bytes()), Some(i64::try_from(index % 10)?));
        let sample = NewSample { format, key, label, width, height, ..NewSample::new(&bytes) };
        writer.write_sample(&sample)?;
    }
    writer.finish()?;
    Ok(())
}

/// A 24-bit BMP file of random size and colours.
fn bmp(random: &mut Random) -> Outcome<Vec<u8>> {
    let mut side = || u32::try_from(40 + random.below(160));
    let (width, height) = (side()?, side()?);
    let row = (width * 3).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    for word in
        [54 + row * height, 0, 54, 40, width, height, 24 << 16 | 1, 0, 0, 2_835, 2_835, 0, 0]
    {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for _ in 0..row * height / 4 {
        file.extend(random.below(1 << 32).to_le_bytes().into_iter().take(4));
    }
    Ok(file)
}

/// Runs this program again with one heap for all threads, which gives back what is freed: what is
/// left of loaders that have gone would otherwise depend on which thread freed what.
fn with_one_arena() -> Outcome<()> {
    let mut again = std::process::Command::new(std::env::current_exe()?);
    again.args(std::env::args().skip(1)).env(ARENAS, "1");
    for setting in ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"] {
        again.env(setting, "4096");
    }
    let status = again.status()?;
    if status.success() { Ok(()) } else { Err(format!("ended with {status}").into()) }
}
