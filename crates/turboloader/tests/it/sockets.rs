//! Loaders that are dropped or forked while requests are under way, over sockets of this machine.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fork::Fork;
use tbl_format::SampleFormat;
use tbl_io::{NewSample, Stores, StreamWriter, WriteOptions};
use tl_store_server::{Dialect, Service, Serving, serve};
use turboloader::{
    Batch, Dataset, Loader, LoaderConfig, PipelineError, RemoteStores, Shuffle, StoreOptions, Work,
};

/// A test that takes longer hangs. On a busy machine a thread can wait for seconds to run.
const PATIENCE: Duration = Duration::from_secs(20);

/// In a process that a test starts: the address of the store, which is the parent's.
const ENDPOINT: &str = "TURBOLOADER_ENDPOINT";

/// Runs a test again in a process of its own, because others start threads and open files meanwhile,
/// and a fork copies their locks. The store is this process's. Returns what is printed.
fn in_another_process(test: &str, settings: &[(&str, &str)]) -> String {
    let store = store();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture"]).env(ENDPOINT, store.endpoint());
    let output = child.envs(settings.iter().copied()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{errors}");
    printed.into_owned()
}

/// A store whose answers take a while, with 200 samples of 20 KB in `s3://b/a.tbl`.
fn store() -> Serving {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    for number in 0..200_u8 {
        let bytes = [number; 20_000];
        let key = [b'a' + number / 20, b'a' + number % 20];
        let format = SampleFormat::Jpeg;
        writer
            .write_sample(&NewSample { format, key: Some(&key), ..NewSample::new(&bytes) })
            .unwrap();
    }
    writer.finish().unwrap();
    let mut service = Service::new(Dialect::S3);
    service.objects.put("b/a.tbl", fs::read(path).unwrap());
    service.speed.first_byte = Duration::from_millis(5);
    service.speed.rate = 50e6;
    serve(Arc::new(service), 0).unwrap()
}

fn stores(endpoint: &str) -> RemoteStores {
    let mut options = StoreOptions::default();
    let given =
        [("endpoint", endpoint), ("access_key_id", "dummy"), ("secret_access_key", "dummy")];
    options.options.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
    RemoteStores::new(options)
}

fn loader(stores: &RemoteStores) -> Loader {
    let dataset = Dataset::open_in(&stores.add_to(Stores::new()), &["s3://b/a.tbl"]).unwrap();
    let config = LoaderConfig {
        batch_size: 4,
        workers: 2,
        sampler: Shuffle::Full.into(),
        // Less than all samples, so that requests are under way until the end of an epoch.
        read_ahead_bytes: 1 << 20,
        ..LoaderConfig::new(Work::Bytes)
    };
    Loader::new(dataset, config).unwrap()
}

/// Waits for more requests than there were.
fn wait_for_requests(stores: &RemoteStores, before: u64) {
    let begun = Instant::now();
    while stores.stats().gets <= before + 2 {
        assert!(begun.elapsed() < PATIENCE, "nothing is requested");
        std::thread::yield_now();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Usage {
    threads: usize,
    files: usize,
}

impl Usage {
    fn now() -> Self {
        let threads = fs::read_dir("/proc/self/task").unwrap().count();
        let files = fs::read_dir("/proc/self/fd").unwrap().count();
        Self { threads, files }
    }
}

/// Resident memory in KiB, without that of files.
fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn starts_and_drops_leave_no_connection_behind() {
    const ROUNDS: u32 = 1_000;
    // Pages of the allocator, and stacks of threads that the system keeps for the next ones.
    const GROWTH_KIB: u64 = 512;
    let Ok(endpoint) = std::env::var(ENDPOINT) else {
        let test = "sockets::starts_and_drops_leave_no_connection_behind";
        // With one heap for all threads: what is left would depend on which thread freed what.
        let allocator = [
            ("MALLOC_ARENA_MAX", "1"),
            ("MALLOC_MMAP_THRESHOLD_", "4096"),
            ("MALLOC_TRIM_THRESHOLD_", "4096"),
        ];
        println!("{}", in_another_process(test, &allocator));
        return;
    };
    let before = Usage::now();
    let mut after_100 = 0;
    let mut slowest = Duration::ZERO;
    for round in 1..=ROUNDS {
        let stores = stores(&endpoint);
        let loader = loader(&stores);
        let opened = stores.stats().gets;
        let mut epoch = loader.epoch(round);
        for _ in 0..round % 4 {
            epoch.next().unwrap().unwrap();
        }
        wait_for_requests(&stores, opened);
        let dropped = Instant::now();
        drop((epoch, loader, stores));
        // The kernel wakes who joins a thread a moment before it takes the thread off its list.
        while Usage::now() != before {
            assert!(dropped.elapsed() < PATIENCE, "round {round}: {:?}", Usage::now());
            std::thread::yield_now();
        }
        slowest = slowest.max(dropped.elapsed());
        if round == 100 {
            after_100 = memory_kib();
        }
    }
    let memory = memory_kib();
    println!("{before:?}, {after_100} KiB after 100 rounds, {memory} KiB after {ROUNDS}");
    println!("the slowest of {ROUNDS} drops took {slowest:?}");
    assert!(memory <= after_100 + GROWTH_KIB, "{after_100} KiB have become {memory}");
}

#[test]
fn forks_are_told_while_requests_are_under_way() {
    const FORKS: u32 = 1_000;
    let Ok(endpoint) = std::env::var(ENDPOINT) else {
        let test = "sockets::forks_are_told_while_requests_are_under_way";
        println!("{}", in_another_process(test, &[]));
        return;
    };
    let stores = stores(&endpoint);
    let loader = loader(&stores);
    for round in 0..FORKS {
        let before = stores.stats().gets;
        let mut epoch = loader.epoch(round);
        wait_for_requests(&stores, before);
        match fork::fork().unwrap() {
            Fork::Child => {
                let told = [epoch.next(), loader.epoch(round).next()];
                let is_forked = |batch| matches!(batch, Some(Err(PipelineError::Forked)));
                let read = loader.dataset().shards()[0].read_into(199, &mut Vec::new());
                let read = read.map_err(|error| error.to_string());
                let is_told = told.into_iter().all(is_forked)
                    && read.is_err_and(|error| error.contains("fork"));
                drop((epoch, loader, stores));
                // A loader of its own is of use.
                let is_read = round % 20 > 0 || {
                    let own = self::loader(&self::stores(&endpoint));
                    is_right(&own.epoch(0).next().unwrap().unwrap())
                };
                std::process::exit(i32::from(!(is_told && is_read)));
            }
            Fork::Parent(child) => {
                let forked = Instant::now();
                let status = loop {
                    match fork::waitpid_nohang(child).unwrap() {
                        Some(status) => break status,
                        None => std::thread::yield_now(),
                    }
                    if forked.elapsed() > PATIENCE {
                        // It would keep the output open, for which the test waits.
                        Command::new("kill").args(["-9", &child.to_string()]).status().unwrap();
                        panic!("round {round}: the child hangs");
                    }
                };
                assert_eq!(status, 0, "round {round}");
            }
        }
        assert!(is_right(&epoch.next().unwrap().unwrap()), "round {round}");
    }
}

/// Whether the first sample of a batch has its bytes.
fn is_right(batch: &Batch) -> bool {
    let expected = u8::try_from(batch.indices()[0]).unwrap();
    batch.sample(0).unwrap().bytes == [expected; 20_000]
}
