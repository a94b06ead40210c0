//! Simulates loaders of many machines that read from one store, and compares simulations with loaders:
//! `cargo xtask simulate [OPTION VALUE]...`, `cargo xtask simulate check`.
//!
//! With `check` a store on this machine serves a data set to 1, 2 and 4 processes, and a line each has
//! what was measured, what was simulated, and the ratios. `docs/scale.md` says what is simulated.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tbl_format::SampleFormat;
use tbl_io::{NewSample, Stores, StreamWriter, WriteOptions};
use tl_pipeline::Shard;
use tl_pipeline::simulate::{Cluster, Job, Simulated, simulate};
use tl_store_server::{Dialect, Service, serve};
use turboloader::{Dataset, Loader, LoaderConfig, RemoteStores, Shuffle, StoreOptions, Work};

const USAGE: &str = "\
usage: simulate [OPTION VALUE]...
       simulate check

  --nodes N             machines (default 1)
  --simulated N         machines that are simulated (default: all, at most 8)
  --ranks N             ranks of a machine (default 8)
  --first-byte MS       the median time before the first byte (default 30)
  --sigma N             the standard deviation of its logarithm (default 0.5)
  --connection MB       megabytes a second of one request (default 55)
  --link MB             megabytes a second of a machine (default 3000)
  --store MB            megabytes a second of the store (default: no limit)
  --connections N       requests of a rank under way at once (default 64)
  --cached PART         the part of the data on the disk of each machine (default 0)
  --rate N              samples a second that a rank trains on (default: as many as there are)
  --samples N           samples of the data set (default 1281167)
  --sample-bytes N      bytes of a sample (default 110000)
  --object-samples N    samples of an object (default 10000)
  --shuffle SHUFFLE     such as full, block:16x256 or lanes:8/16x256 (default block:16x256)
  --batch-size N        samples of a batch (default 256)
  --read-ahead MB       megabytes that a rank reads ahead (default: by the shuffle)
  --batches N           batches of a rank (default 200)
  --seed N              (default 1)";

/// The data set of a check: 80 MB.
const SHARDS: u64 = 4;
const SHARD_SAMPLES: u64 = 1024;
const SAMPLE_BYTES: usize = 20_000;

/// The store of a check.
const FIRST_BYTE: Duration = Duration::from_millis(30);
const SIGMA: f64 = 0.5;
const CONNECTION: f64 = 2e6;
const LINK: f64 = 30e6;
const CONNECTIONS: usize = 16;

/// The loaders of a check.
const BATCH: usize = 64;
const READ_AHEAD: u64 = 16 << 20;

/// Epochs whose median counts in a check.
const EPOCHS: u32 = 3;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("check") => check(),
        Some("serve") => serve_until_input_ends(&arguments[1]),
        Some("rank") => rank(&arguments[1..]),
        Some("--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        _ => {
            let (cluster, job) = parse(&arguments)?;
            print(&cluster, &job, &simulate(&cluster, &job)?);
            Ok(())
        }
    }
}

fn parse(arguments: &[String]) -> Outcome<(Cluster, Job)> {
    let mut cluster = Cluster {
        nodes: 1,
        simulated: 0,
        ranks: 8,
        first_byte: Duration::from_millis(30),
        sigma: 0.5,
        connection: 55e6,
        link: 3e9,
        store: f64::INFINITY,
        connections: 64,
        cached: 0.0,
        step: None,
    };
    let mut job = Job {
        samples: 1_281_167,
        sample_bytes: 110_000,
        object_samples: 10_000,
        shuffle: "block:16x256".parse()?,
        batch_size: 256,
        read_ahead_bytes: 0,
        prefetch: 2,
        batches: 200,
        seed: 1,
    };
    let mut rate = None;
    for option in arguments.chunks(2) {
        let [name, value] = option else { return Err(USAGE.into()) };
        let megabytes = || value.parse::<f64>().map(|number| number * 1e6);
        match name.as_str() {
            "--nodes" => cluster.nodes = value.parse()?,
            "--simulated" => cluster.simulated = value.parse()?,
            "--ranks" => cluster.ranks = value.parse()?,
            "--first-byte" => {
                cluster.first_byte = Duration::from_secs_f64(value.parse::<f64>()? / 1e3);
            }
            "--sigma" => cluster.sigma = value.parse()?,
            "--connection" => cluster.connection = megabytes()?,
            "--link" => cluster.link = megabytes()?,
            "--store" => cluster.store = megabytes()?,
            "--connections" => cluster.connections = value.parse()?,
            "--cached" => cluster.cached = value.parse()?,
            "--rate" => rate = Some(value.parse::<f64>()?),
            "--samples" => job.samples = value.parse()?,
            "--sample-bytes" => job.sample_bytes = value.parse()?,
            "--object-samples" => job.object_samples = value.parse()?,
            "--shuffle" => job.shuffle = value.parse()?,
            "--batch-size" => job.batch_size = value.parse()?,
            "--read-ahead" => job.read_ahead_bytes = value.parse::<u64>()? * 1_000_000,
            "--batches" => job.batches = value.parse()?,
            "--seed" => job.seed = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    let is_possible = cluster.nodes > 0
        && cluster.ranks > 0
        && cluster.simulated <= cluster.nodes
        && cluster.connections > 0
        && [cluster.connection, cluster.link, cluster.store].iter().all(|&rate| rate > 0.0)
        && job.sample_bytes > 0
        && job.object_samples > 0;
    if !is_possible || rate.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
        return Err(USAGE.into());
    }
    if cluster.simulated == 0 {
        cluster.simulated = cluster.nodes.min(8);
    }
    cluster.step = rate.map(|rate| Duration::from_secs_f64(real(job.batch_size as u64) / rate));
    Ok((cluster, job))
}

fn print(cluster: &Cluster, job: &Job, found: &Simulated) {
    let time = found.time.as_secs_f64();
    let all = f64::from(cluster.nodes) / f64::from(cluster.simulated);
    let rows = real(found.rows);
    println!("first batch   {:.3} s", found.first_batch.as_secs_f64());
    println!("samples       {:.0} a second of a rank", rows / time / real(found.ranks));
    println!("waited        {:.1} % of {time:.1} s", 100.0 * found.waited.as_secs_f64() / time);
    println!(
        "requests      {:.1} for 1000 samples, {:.0} a second of all machines",
        1000.0 * real(found.requests) / rows,
        all * real(found.requests) / time,
    );
    let needed = rows * real(job.sample_bytes) - real(found.from_disk);
    println!(
        "received      {:.2} GB a second of all machines, {:.2} % of it between samples",
        all * real(found.received) / time / 1e9,
        100.0 * (real(found.received) / needed - 1.0).max(0.0),
    );
    println!(
        "from disks    {:.1} % of the samples' bytes",
        100.0 * real(found.from_disk) / (rows * real(job.sample_bytes)),
    );
    println!(
        "read ahead    at most {:.0} MB of {:.0} MB, for each rank",
        real(found.read_ahead) / 1e6,
        real(found.read_ahead_bytes) / 1e6,
    );
}

/// The time, requests and bytes of a run.
#[derive(Clone, Copy, Debug)]
struct Taken {
    seconds: f64,
    requests: f64,
    received: f64,
}

/// Compares 1, 2 and 4 processes with their simulations.
fn check() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    write(&folder.path().join("bucket"))?;
    println!("ranks  shuffle          what      seconds  requests      MB");
    let mut worst: f64 = 0.0;
    for shuffle in ["block:16x32", "lanes:4/16x8", "full"] {
        for ranks in [1, 2, 4] {
            let measured = measured(folder.path(), ranks, shuffle)?;
            let (cluster, job) = simulated_check(ranks, shuffle)?;
            let found = simulate(&cluster, &job)?;
            let simulated = Taken {
                seconds: found.time.as_secs_f64(),
                requests: real(found.requests),
                received: real(found.received),
            };
            for (what, taken) in [("measured", measured), ("simulated", simulated)] {
                let Taken { seconds, requests, received } = taken;
                let megabytes = received / 1e6;
                println!(
                    "{ranks:>5}  {shuffle:<15}  {what:<9}{seconds:>8.2}{requests:>10.0}{megabytes:>8.1}"
                );
            }
            let ratios = [
                simulated.seconds / measured.seconds,
                simulated.requests / measured.requests,
                simulated.received / measured.received,
            ];
            worst = ratios.iter().map(|ratio| (ratio - 1.0).abs()).fold(worst, f64::max);
            let [seconds, requests, received] = ratios;
            println!(
                "{ranks:>5}  {shuffle:<15}  ratio    {seconds:>8.3}{requests:>10.3}{received:>8.3}"
            );
        }
    }
    println!("the largest difference is {:.1} %", 100.0 * worst);
    Ok(())
}

/// The store and the job of a check, as the simulation takes them.
fn simulated_check(ranks: u32, shuffle: &str) -> Outcome<(Cluster, Job)> {
    let cluster = Cluster {
        nodes: 1,
        simulated: 1,
        ranks,
        first_byte: FIRST_BYTE,
        sigma: SIGMA,
        connection: CONNECTION,
        link: LINK,
        store: f64::INFINITY,
        connections: CONNECTIONS,
        cached: 0.0,
        step: None,
    };
    let job = Job {
        samples: SHARDS * SHARD_SAMPLES,
        sample_bytes: SAMPLE_BYTES as u64,
        object_samples: SHARD_SAMPLES,
        shuffle: shuffle.parse()?,
        batch_size: BATCH,
        read_ahead_bytes: READ_AHEAD,
        prefetch: 2,
        batches: u64::MAX,
        seed: 1,
    };
    Ok((cluster, job))
}

/// The medians of several epochs of as many processes as ranks, which begin each together.
fn measured(folder: &Path, ranks: u32, shuffle: &str) -> Outcome<Taken> {
    let mut taken = Vec::new();
    for _ in 0..EPOCHS {
        let mut server = start(&["serve", &folder.to_string_lossy()])?;
        let endpoint = line(&mut server)?;
        let mut processes = Vec::new();
        for rank in 0..ranks {
            let [rank, ranks] = [rank, ranks].map(|number| number.to_string());
            processes.push(start(&["rank", &endpoint, &rank, &ranks, shuffle])?);
        }
        // Each is ready when its data set is open.
        for process in &mut processes {
            line(process)?;
        }
        for process in &mut processes {
            drop(process.child.stdin.take());
        }
        let mut slowest: f64 = 0.0;
        let mut sums = [0.0; 2];
        for mut process in processes {
            let mut text = String::new();
            process.output.read_to_string(&mut text)?;
            process.child.wait()?;
            let numbers: Vec<f64> =
                text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            let [seconds, requests, received] = numbers[..] else {
                return Err(format!("a rank printed {text:?}").into());
            };
            slowest = slowest.max(seconds);
            sums = [sums[0] + requests, sums[1] + received];
        }
        drop(server.child.stdin.take());
        server.child.wait()?;
        taken.push(Taken { seconds: slowest, requests: sums[0], received: sums[1] });
    }
    taken.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    Ok(taken[taken.len() / 2])
}

/// One rank of a check: an epoch after its input has ended.
fn rank(arguments: &[String]) -> Outcome<()> {
    let [endpoint, rank, ranks, shuffle] = arguments else { return Err(USAGE.into()) };
    let mut options = StoreOptions::default();
    options.connections = CONNECTIONS;
    let given = [
        ("endpoint", endpoint.as_str()),
        ("access_key_id", "dummy"),
        ("secret_access_key", "dummy"),
    ];
    options.options.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let stores = RemoteStores::new(options);
    let urls: Vec<String> =
        (0..SHARDS).map(|shard| format!("s3://bucket/train-{shard}.tbl")).collect();
    let dataset = Dataset::open_in(&stores.add_to(Stores::new()), &urls)?;
    let config = LoaderConfig {
        batch_size: BATCH,
        workers: 1,
        prefetch: 2,
        sampler: shuffle.parse::<Shuffle>()?.into(),
        seed: 1,
        shard: Shard { rank: rank.parse()?, world: ranks.parse()?, tail: None },
        read_ahead_bytes: READ_AHEAD,
        prefetch_next_epoch: false,
        ..LoaderConfig::new(Work::Bytes)
    };
    let loader = Loader::new(dataset, config)?;
    let before = stores.stats();
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let begun = Instant::now();
    for batch in loader.epoch(0) {
        batch?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = stores.stats();
    println!("{seconds} {} {}", after.gets - before.gets, after.received - before.received);
    Ok(())
}

/// A process of this program.
struct Process {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

fn start(arguments: &[&str]) -> Outcome<Process> {
    let mut command = Command::new(env::current_exe()?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = BufReader::new(child.stdout.take().ok_or("a child has an output")?);
    Ok(Process { child, output })
}

fn line(process: &mut Process) -> Outcome<String> {
    let mut line = String::new();
    process.output.read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Serves the folders of a folder as buckets until the parent goes.
fn serve_until_input_ends(folder: &str) -> Outcome<()> {
    let mut service = Service::new(Dialect::S3);
    service.objects.put_folder("", Path::new(folder))?;
    service.speed.first_byte = FIRST_BYTE;
    service.speed.sigma = SIGMA;
    service.speed.rate = CONNECTION;
    service.speed.link = LINK;
    let serving = serve(Arc::new(service), 0)?;
    println!("{}", serving.endpoint());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Samples of one size.
fn write(bucket: &Path) -> Outcome<()> {
    fs::create_dir(bucket)?;
    let bytes: Vec<u8> = (0..=250).cycle().take(SAMPLE_BYTES).collect();
    for shard in 0..SHARDS {
        let path = bucket.join(format!("train-{shard}.tbl"));
        let mut writer = StreamWriter::create(&path, WriteOptions::default())?;
        for _ in 0..SHARD_SAMPLES {
            writer.write_sample(&NewSample {
                format: SampleFormat::Jpeg,
                ..NewSample::new(&bytes)
            })?;
        }
        writer.finish()?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn real(number: u64) -> f64 {
    number as f64
}
