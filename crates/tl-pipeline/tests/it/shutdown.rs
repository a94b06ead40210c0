//! Stopping early, running side by side, and doing nothing while nobody asks.

#[cfg(target_os = "linux")]
use std::time::Duration;
use std::time::Instant;

use tl_pipeline::LoaderConfig;

use crate::lifetimes::PATIENCE;
use crate::memory::{bmps, config, loader, train};

/// Threads of this process whose name starts with `tl-worker`.
#[cfg(target_os = "linux")]
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(b"tl-worker")).count()
}

#[test]
fn dropping_early_ends_at_every_stage() {
    let loader = loader(bmps(200), LoaderConfig { workers: 4, ..config(train()) });
    for taken in [0, 1, 2, 49, 50] {
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.by_ref().take(taken).filter(|batch| batch.is_ok()).count(), taken);
        let start = Instant::now();
        drop(epoch);
        assert!(start.elapsed() < PATIENCE, "after {taken}: {:?}", start.elapsed());
    }
}

#[test]
fn an_epoch_outlives_its_loader() {
    let epoch = loader(bmps(20), config(train())).epoch(0);
    assert_eq!(epoch.filter(|batch| batch.is_ok()).count(), 5);
}

#[test]
fn epochs_run_side_by_side() {
    let loader = loader(bmps(20), config(train()));
    let pairs = loader.epoch(0).zip(loader.epoch(0));
    assert_eq!(
        pairs.filter(|(a, b)| a.as_ref().unwrap().images() == b.as_ref().unwrap().images()).count(),
        5
    );
}

/// In a separate process, because other tests start threads and open files meanwhile.
/// `TURBOLOADER_BREAKS` is the number of times.
#[test]
#[cfg(target_os = "linux")]
fn starts_and_drops_leave_nothing_behind() {
    const CHILD: &str = "TL_PIPELINE_START_STOP";
    if std::env::var_os(CHILD).is_none() {
        let test = "shutdown::starts_and_drops_leave_nothing_behind";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args([test, "--exact"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let loader = loader(bmps(64), LoaderConfig { workers: 3, ..config(train()) });
    let before = (workers(), files());
    let breaks = std::env::var("TURBOLOADER_BREAKS");
    let rounds = breaks.map_or(1_000, |text| text.parse().unwrap());
    for round in 0..rounds {
        let mut epoch = loader.epoch(round);
        for _ in 0..round % 4 {
            epoch.next().unwrap().unwrap();
        }
        drop(epoch);
        // The kernel wakes who joins a thread a moment before it takes the thread off its list.
        let dropped = Instant::now();
        while (workers(), files()) != before {
            assert!(dropped.elapsed() < PATIENCE, "round {round}: {:?}", (workers(), files()));
            std::thread::yield_now();
        }
    }
    // Three slabs are kept. A worker that is suspended between two samples can hold one more, so a
    // few rounds allocate another; if rounds lost theirs, each would allocate.
    let stats = loader.stats();
    assert_eq!(stats.slabs_in_use, 0, "{stats:?}");
    assert!(stats.slabs < 6 + u64::from(rounds) / 10, "{stats:?}");
}

/// Full slabs must put workers to sleep: no time passes on their clocks while nobody consumes.
#[test]
#[cfg(target_os = "linux")]
fn a_slow_consumer_costs_no_processor_time() {
    let loader = loader(bmps(200), LoaderConfig { workers: 4, ..config(train()) });
    let mut epoch = loader.epoch(0);
    epoch.next().unwrap().unwrap();
    let settled = Instant::now();
    let stats = loop {
        let before = loader.stats();
        std::thread::park_timeout(Duration::from_millis(50));
        if loader.stats() == before {
            break before;
        }
        assert!(settled.elapsed() < PATIENCE, "workers never came to rest");
    };
    // One batch consumed, two in flight: nothing beyond them may have been read.
    let sample = 54 + 64 * 64 * 3;
    assert!(stats.bytes_read <= 12 * sample, "{stats:?}");
    assert_eq!(epoch.count(), 49);
    assert!(loader.stats().worker_wait > Duration::ZERO);
}
