//! Reads data sets from a store that fails now and then, over sockets, and looks for anything that
//! differs or grows: `TURBOLOADER_SOCKETS=600 cargo run --release -p turboloader --example sockets`.
//!
//! The store is this program again, in a process of its own. Its answers take some 10 ms and come with
//! 55 MB/s over each connection; 1 % are 503s, 0.5 % break off and 0.1 % stop for ever. Loaders with
//! random threads, orders and bytes read ahead run through epochs, or break them off, next to a loader
//! of the same files on disk: every batch has to have its bytes. Threads and open files have to be as
//! many as before whenever the loaders have gone, and so has memory.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use store_server::{Dialect, Fault, Faults, Service, serve};
use tbl_format::SampleFormat;
use tbl_io::{
    AsStored, ConvertOptions, Labels, NewSample, Selection, Stores, StreamWriter, Target,
    WriteOptions,
};
use turboloader::{
    Batch, Blocks, Dataset, Loader, LoaderConfig, RemoteStores, Sampler, Shuffle, StoreOptions,
    Work,
};

/// The length of a run in seconds, unless this says another one.
const SECONDS: &str = "TURBOLOADER_SOCKETS";
const DEFAULT_SECONDS: f64 = 3.0;

/// The data set, in two containers.
const NAMES: [&str; 2] = ["train.tbl", "train.tar"];
const SAMPLES: u64 = 400;

/// Parts of the time, of each of which the least memory at rest counts: what lies above it is what
/// the last loaders happened to leave in the allocator. The first two are for what grows to its size.
const PARTS: usize = 4;
/// Runs shorter than this end before memory has settled.
const MEASURABLE: Duration = Duration::from_secs(60);
/// The memory that may come in the last part: pages of an allocator that is in use.
const GROWTH_KIB: u64 = 1024;

/// The time for threads and sockets of loaders that have gone.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let bucket = folder.path().join("bucket");
    fs::create_dir(&bucket)?;
    write(&bucket)?;
    let server = Server::start(folder.path())?;
    let mut soak =
        Soak { bucket: &bucket, server: &server, random: Random(1), counts: Counts::default() };
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

/// Threads, open files and resident memory, without that of files.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    threads: usize,
    files: usize,
    memory_kib: u64,
}

impl Usage {
    /// Nothing where there is no `/proc`.
    fn now() -> Outcome<Self> {
        let Ok(status) = fs::read_to_string("/proc/self/status") else {
            return Ok(Self::default());
        };
        let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = memory.and_then(|line| line.split_whitespace().next()).unwrap_or("0");
        let threads = fs::read_dir("/proc/self/task")?.count();
        let files = fs::read_dir("/proc/self/fd")?.count();
        Ok(Self { threads, files, memory_kib: memory.parse()? })
    }

    /// The usage once threads and sockets have ended.
    ///
    /// # Errors
    /// If threads or files are left over after [`PATIENCE`].
    fn settled(before: Self) -> Outcome<Self> {
        let begun = Instant::now();
        loop {
            let now = Self::now()?;
            if now.threads == before.threads && now.files == before.files {
                return Ok(now);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("threads and files were {before:?}, are {now:?}").into());
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    epochs: u64,
    batches: u64,
    breaks: u64,
    requests: u64,
    throttled: u64,
    retries: u64,
    resumed: u64,
    hedges: u64,
    hedges_won: u64,
    received: u64,
}

struct Soak<'a> {
    bucket: &'a Path,
    server: &'a Server,
    random: Random,
    counts: Counts,
}

impl Soak<'_> {
    /// Up to three epochs of a loader of the store, next to one of the files. Some are broken off.
    fn round(&mut self) -> Outcome<()> {
        let name = NAMES[usize::from(self.random.below(2) == 1)];
        let config = self.random.config()?;
        let stores = self.server.stores();
        let url = format!("s3://bucket/{name}");
        let remote = Dataset::open_in(&stores.add_to(Stores::new()), &[url])?;
        let remote = Loader::new(remote, config.clone())?;
        let local = Dataset::open(&[self.bucket.join(name)])?;
        let local = Loader::new(local, LoaderConfig { workers: 1, ..config })?;
        for epoch in 0..u32::try_from(1 + self.random.below(3))? {
            let breaks_off = self.random.below(3) == 0;
            let end = if breaks_off { self.random.below(20) } else { u64::MAX };
            let mut batches = 0;
            let mut expected = local.epoch(epoch);
            let mut found = remote.epoch(epoch);
            while batches < end {
                match (found.next().transpose()?, expected.next().transpose()?) {
                    (None, None) => break,
                    (Some(found), Some(expected)) if are_equal(&found, &expected) => batches += 1,
                    _ => {
                        let counts = &self.counts;
                        let text = format!("{name}, epoch {epoch}, batch {batches}: {counts:?}");
                        return Err(format!("other bytes than on disk: {text}").into());
                    }
                }
            }
            self.counts.batches += batches;
            self.counts.breaks += u64::from(breaks_off);
            self.counts.epochs += 1;
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
}

/// Whether two batches have the same samples, labels and bytes.
fn are_equal(one: &Batch, other: &Batch) -> bool {
    let bytes = |batch: &Batch, row| batch.sample(row).map(|sample| sample.bytes.to_vec());
    one.indices() == other.indices()
        && one.labels() == other.labels()
        && (0..one.len())
            .all(|row| bytes(one, row).is_some() && bytes(one, row) == bytes(other, row))
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
        let shuffle = match self.below(3) {
            0 => Shuffle::None,
            1 => Shuffle::Block {
                blocks: Blocks::Samples(1 + self.below(20)),
                window: 1 + self.below(8),
            },
            _ => Shuffle::Full,
        };
        Ok(LoaderConfig {
            batch_size: 16,
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

/// Samples of random bytes in a TBL file, and the same in a TAR archive.
fn write(bucket: &Path) -> Outcome<()> {
    let table = bucket.join(NAMES[0]);
    let mut writer = StreamWriter::create(&table, WriteOptions::default())?;
    let mut random = Random(0);
    for index in 0..SAMPLES {
        let words = 500 + random.below(8_000);
        let bytes: Vec<u8> =
            (0..words).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect();
        let key = format!("{index:06}");
        let label = Some(i64::try_from(index % 10)?);
        let format = SampleFormat::Jpeg;
        let sample =
            NewSample { format, key: Some(key.as_bytes()), label, ..NewSample::new(&bytes) };
        writer.write_sample(&sample)?;
    }
    writer.finish()?;
    let sources = [tbl_io::open(&table)?];
    let labels = Labels::resolve(&sources)?;
    let selection = Selection::all(&sources, &labels)?;
    let options = ConvertOptions { sync: false, ..ConvertOptions::new(Target::Tar) };
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    tbl_io::convert(
        &selection,
        &bucket.join(NAMES[1]),
        &options,
        AsStored::default,
        &mut on_event,
    )?;
    Ok(())
}

/// The store, in a process of its own.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    endpoint: String,
}

impl Server {
    fn start(folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("a child has an input")?;
        let output = child.stdout.take().ok_or("a child has an output")?;
        let mut output = BufReader::new(output);
        let mut endpoint = String::new();
        output.read_line(&mut endpoint)?;
        Ok(Self { child, input, output, endpoint: endpoint.trim().to_owned() })
    }

    fn stores(&self) -> RemoteStores {
        let mut options = StoreOptions::default();
        let given = [
            ("endpoint", self.endpoint.as_str()),
            ("access_key_id", "dummy"),
            ("secret_access_key", "dummy"),
        ];
        options.options.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        RemoteStores::new(options)
    }

    /// Ends the process and returns its last words: the counts of requests.
    fn end(mut self) -> Outcome<String> {
        drop(self.input);
        let mut counts = String::new();
        self.output.read_to_string(&mut counts)?;
        self.child.wait()?;
        Ok(counts)
    }
}

/// Serves the folders of a folder as buckets until the parent goes.
fn serve_until_input_ends(folder: &OsStr) -> Outcome<()> {
    let mut service = Service::new(Dialect::S3);
    service.objects.put_folder("", Path::new(folder))?;
    service.speed.first_byte = Duration::from_millis(10);
    service.speed.sigma = 0.5;
    service.speed.rate = 55e6;
    let chances = vec![(Fault::SlowDown, 0.01), (Fault::Reset, 0.005), (Fault::Stall, 0.001)];
    service.faults = Faults::Random { seed: 1, chances };
    let service = Arc::new(service);
    let serving = serve(Arc::clone(&service), 0)?;
    println!("{}", serving.endpoint());
    io::stdin().read_to_end(&mut Vec::new())?;
    // A parent that failed does not read them.
    io::stdout().write_all(format!("{:?}\n", service.counts()).as_bytes()).unwrap_or_default();
    Ok(())
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
