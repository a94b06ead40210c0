//! Breaks loaders off and resumes them for a while, and looks for anything that changes or grows:
//! `cargo run --release --example soak [MINUTES [SEED]]`.
//!
//! A data set of which 1 % is damaged is read over and over by loaders with random threads and
//! caches, which are stopped after random batches, thrown away or resumed. Every epoch's digest has
//! to be that of an uninterrupted run with one worker. Threads and open files have to be as many as
//! before whenever a loader has gone, and so has memory, to 1 %.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{
    Batch, CacheConfig, CacheKind, Dataset, Loader, LoaderConfig, MemoryCache, OnError, Shuffle,
    Work,
};
use tl_transform::Recipe;

const SAMPLES: u64 = 800;
const EPOCHS: u32 = 4;
/// What is damaged: one sample of a hundred.
const BAD: u64 = 37;
/// Memory is measured in the second half: until then buffers, and the stacks of threads that the
/// system keeps for the next ones, have met their largest user.
const WARM_UP: f64 = 0.5;
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
    let path = folder.path().join("soak.tbl");
    write(&path)?;
    let digests = (0..EPOCHS).map(|epoch| uninterrupted(&path, epoch)).collect::<Outcome<_>>()?;
    let mut soak = Soak { path: &path, random: Random(seed), digests, counts: Counts::default() };
    let (start, length) = (Instant::now(), Duration::from_secs_f64(60.0 * minutes));
    let before = Usage::now()?;
    let (mut memory, mut said) = (Vec::new(), Instant::now());
    while start.elapsed() < length {
        soak.round()?;
        let now = Usage::now()?;
        if (now.threads, now.files) != (before.threads, before.files) {
            return Err(format!("threads and files were {before:?}, are {now:?}").into());
        }
        if start.elapsed() > length.mul_f64(WARM_UP) {
            memory.push(now.memory);
        }
        if said.elapsed() > Duration::from_secs(60) {
            said = Instant::now();
            println!("{:.0?}: {:?}, {now:?}", start.elapsed(), soak.counts);
        }
    }
    println!("{:?} in {:.1?}, {before:?}", soak.counts, start.elapsed());
    let tenth = memory.len().div_ceil(10);
    let (first, last) = (floor(&memory[..tenth]), floor(&memory[memory.len() - tenth..]));
    let drift = (last - first) / first.max(1.0);
    let (least, most) = (memory.iter().min(), memory.iter().max());
    println!(
        "memory {first:.0} KiB, then {last:.0} KiB: {:+.2} % ({least:?} to {most:?})",
        100.0 * drift
    );
    if length >= MEASURABLE && drift >= 0.01 {
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
    skipped: u64,
}

struct Soak<'a> {
    path: &'a Path,
    random: Random,
    digests: Vec<[u8; 32]>,
    counts: Counts,
}

impl Soak<'_> {
    /// One epoch through as many loaders and pieces as it takes, or thrown away on the way.
    fn round(&mut self) -> Outcome<()> {
        let number = u32::try_from(self.random.below(EPOCHS.into()))?;
        let mut hash = Sha256::new();
        let mut loader = self.loader()?;
        let mut epoch = loader.epoch(number);
        while let Some(batch) = epoch.next() {
            append(&mut hash, &batch?);
            self.counts.batches += 1;
            if self.random.below(12) != 0 {
                continue;
            }
            self.counts.breaks += 1;
            let state = epoch.state()?;
            drop(epoch);
            match self.random.below(4) {
                0 => return Ok(()),
                1 => {
                    self.counts.skipped += loader.stats().skipped;
                    loader = self.loader()?;
                }
                _ => {}
            }
            epoch = loader.resume(&state)?;
            self.counts.resumptions += 1;
        }
        drop(epoch);
        if self.random.below(2) == 0 {
            // What was prepared of the next epoch is used, and that one broken off.
            let next = loader.epoch(number + 1).next().ok_or("an epoch without batches")??;
            assert_eq!(next.number(), 0, "an epoch starts with its first batch");
        }
        self.counts.skipped += loader.stats().skipped;
        self.counts.epochs += 1;
        if self.digests[number as usize] != <[u8; 32]>::from(hash.finalize()) {
            return Err(format!("epoch {number} is another, after {:?}", self.counts).into());
        }
        Ok(())
    }

    fn loader(&mut self) -> Outcome<Loader> {
        let mut choose = |least: u64, most: u64| least + self.random.below(most - least + 1);
        let workers = usize::try_from(choose(1, 4))?;
        let prefetch = usize::try_from(choose(1, 4))?;
        let memory = (choose(0, 1) == 1)
            .then(|| MemoryCache { kind: CacheKind::Encoded, bytes: choose(1, 4) << 20 });
        loader(self.path, LoaderConfig { workers, prefetch, ..config(memory)? })
    }
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
}

fn config(memory: Option<MemoryCache>) -> Outcome<LoaderConfig> {
    Ok(LoaderConfig {
        batch_size: 16,
        sampler: Shuffle::Full.into(),
        seed: 42,
        on_error: OnError::Skip,
        cache: CacheConfig { memory, ..CacheConfig::default() },
        ..LoaderConfig::new(Work::Images(Recipe::imagenet_train(64)?))
    })
}

fn loader(path: &Path, config: LoaderConfig) -> Outcome<Loader> {
    Ok(Loader::new(Dataset::open(&[path])?, config)?)
}

fn uninterrupted(path: &Path, epoch: u32) -> Outcome<[u8; 32]> {
    let loader = loader(path, LoaderConfig { workers: 1, ..config(None)? })?;
    let mut hash = Sha256::new();
    for batch in loader.epoch(epoch) {
        append(&mut hash, &batch?);
    }
    assert_eq!(loader.stats().skipped, SAMPLES / 100, "what is damaged is left out");
    Ok(hash.finalize().into())
}

fn append(hash: &mut Sha256, batch: &Batch) {
    hash.update(batch.images());
    batch.labels().iter().for_each(|label| hash.update(label.to_le_bytes()));
    batch.indices().iter().for_each(|index| hash.update(index.to_le_bytes()));
}

/// Noise in BMP files of changing sizes, and photographs; one of a hundred is cut short.
fn write(path: &Path) -> Outcome<()> {
    let mut photographs = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/photos");
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
        if index % 100 == BAD {
            bytes.truncate(bytes.len() / 2);
        }
        let key = format!("{index:06}");
        let (key, label) = (Some(key.as_bytes()), Some(i64::try_from(index % 10)?));
        writer.write_sample(&NewSample { format, key, label, ..NewSample::new(&bytes) })?;
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

/// The tenth part of the values lies below it. Those far above are what the last loader happened to
/// leave in the allocator, by its threads and caches; what is never given back lifts all of them.
fn floor(values: &[u32]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 10).copied().map_or(0.0, f64::from)
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
