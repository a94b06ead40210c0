//! Ends that nobody plans: forks of the process, and workers that die between samples.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use fork::Fork;
use tbl_format::SampleFormat;
use tl_pipeline::{
    CacheConfig, CacheKind, CacheStats, Epoch, LevelStats, Loader, LoaderConfig, LoaderState,
    MemoryCache, OnError, PipelineError, Work,
};

use crate::content::record;
use crate::memory::{bmps, config, dataset, jpeg, loader, sample, train, watched};

/// A test that takes longer hangs. On a busy machine a thread can wait for seconds to run.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// In a separate process: a fork copies everything, also other tests' locks.
#[test]
#[cfg(unix)]
fn forks_are_told_and_leave_the_parent_alone() {
    const CHILD: &str = "TL_PIPELINE_FORK";
    if std::env::var_os(CHILD).is_none() {
        let test = "lifetimes::forks_are_told_and_leave_the_parent_alone";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args([test, "--exact"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let cache = MemoryCache { kind: CacheKind::Encoded, bytes: 1 << 20 };
    let cache = CacheConfig { memory: Some(cache), disk: None };
    let settings =
        LoaderConfig { workers: 3, trace: 1000, on_error: OnError::Skip, cache, ..config(train()) };
    let open = || {
        let good = (0..39).map(|number| sample(number, SampleFormat::Bmp));
        dataset(good.chain([jpeg("no image", vec![1, 2, 3])]).collect())
    };
    let loader = loader(open(), settings.clone());
    // So that lists are not empty.
    assert!(loader.epoch(100).all(|batch| batch.is_ok()) && !loader.audit().is_empty());
    for round in 0..100 {
        let expected = record(&crate::memory::loader(open(), settings.clone()), round);
        let mut epoch = loader.epoch(round);
        let state = epoch.state().unwrap();
        let batch = epoch.next().unwrap().unwrap();
        match fork::fork().unwrap() {
            Fork::Child => {
                let is_told = [epoch.next(), loader.epoch(round).next(), loader.epoch(9).next()]
                    .into_iter()
                    .all(|batch| matches!(batch, Some(Err(PipelineError::Forked))));
                let is_told = is_told && what_is_locked_is_out_of_reach(&loader, &epoch, &state);
                let is_readable = batch.images() == &expected[0].bytes[..];
                drop((epoch, batch, loader));
                std::process::exit(i32::from(!(is_told && is_readable)));
            }
            Fork::Parent(child) => {
                let forked = Instant::now();
                let status = loop {
                    match fork::waitpid_nohang(child).unwrap() {
                        Some(status) => break status,
                        None => std::thread::yield_now(),
                    }
                    assert!(forked.elapsed() < PATIENCE, "round {round}: the child hangs");
                };
                assert_eq!(status, 0, "round {round}");
            }
        }
        assert_eq!(batch.images(), expected[0].bytes);
        for (batch, expected) in epoch.zip(&expected[1..]) {
            assert_eq!(batch.unwrap().images(), expected.bytes, "round {round}");
        }
    }
}

/// In a fork: whether nothing of what threads share under locks is looked at.
fn what_is_locked_is_out_of_reach(loader: &Loader, epoch: &Epoch, state: &LoaderState) -> bool {
    let trace = loader.write_trace(&mut std::io::sink()).map_err(|error| error.to_string());
    let is_refused = trace == Err(PipelineError::Forked.to_string())
        && matches!(epoch.state(), Err(PipelineError::Forked))
        && matches!(loader.resume(state), Err(PipelineError::Forked))
        && matches!(loader.batch(1, 2), Err(PipelineError::Forked))
        && matches!(loader.replay(1, 2), Err(PipelineError::Forked));
    let CacheStats { memory, .. } = loader.cache_stats();
    let lists = loader.audit().len() + loader.notes().len();
    // Atomic counters can be read.
    is_refused && memory == LevelStats::default() && lists == 0 && loader.stats().samples > 0
}

/// Panics again when it is dropped, which no worker survives.
struct Poison;

impl Drop for Poison {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "an injected panic outside of any sample");
    }
}

/// Whenever a worker dies, in an epoch, between two or while the consumer is idle, the consumer
/// gets an error instead of waiting, has had the right batches until then, and can resume from
/// there.
#[test]
fn a_worker_that_dies_ends_its_run_and_no_other() {
    let format = SampleFormat::Bmp;
    let settings = LoaderConfig { workers: 3, ..config(Work::Bytes) };
    let expected: Vec<_> =
        (0..3).map(|epoch| record(&loader(bmps(48), settings.clone()), epoch)).collect();
    // 48 reads an epoch; from the last rows on it may happen after the third.
    for dies_at in (0..130).step_by(3) {
        let samples = (0..48).map(|number| sample(number, format)).collect();
        let reads_left = AtomicI64::new(dies_at);
        let on_read = move || {
            if reads_left.fetch_sub(1, Ordering::Relaxed) == 0 {
                std::panic::resume_unwind(Box::new(Poison));
            }
        };
        let dataset = watched(samples, on_read, || ());
        let loader = loader(dataset, settings.clone());
        let mut deaths = 0;
        for (number, expected) in (0..).zip(&expected) {
            let mut epoch = loader.epoch(number);
            for expected in expected {
                let batch = match epoch.next().unwrap() {
                    Ok(batch) => batch,
                    Err(PipelineError::WorkerPanicked { .. }) => {
                        deaths += 1;
                        assert!(epoch.next().is_none());
                        epoch = loader.resume(&epoch.state().unwrap()).unwrap();
                        epoch.next().unwrap().unwrap()
                    }
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(
                    (batch.number(), batch.indices()),
                    (expected.number, &expected.indices[..])
                );
            }
        }
        assert_eq!(deaths, 1, "read {dies_at}");
    }
}
