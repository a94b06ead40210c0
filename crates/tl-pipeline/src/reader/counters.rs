//! The counters of readers, and their lead over the workers.

use std::time::Duration;

use tl_handoff::sync::{Arc, AtomicBool, AtomicU64, Ordering};
use tl_handoff::window::WindowCounters;

/// The counters of readers, and their lead over the workers. All are 0 if workers read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// Samples that can be read at once: threads, or reads under way through `io_uring`.
    pub readers: usize,
    /// Whether they are requested from stores ([`Readers::Planned`](crate::Readers::Planned)): then
    /// one reader requests many samples at once.
    pub is_planned: bool,
    /// Samples that are being read at this moment.
    pub reading: u64,
    /// Samples that wait for their worker at this moment.
    pub ready: u64,
    /// Bytes of both, as they are stored.
    pub bytes: u64,
    /// Samples that readers have read.
    pub samples: u64,
    /// Bytes of these, as they came from the data set.
    pub bytes_read: u64,
    /// Time that these reads took, added up: several are under way at once.
    pub read_time: Duration,
    /// Samples that were ready when a worker asked for its own, added up over the askings.
    pub found: u64,
    /// Samples that workers read because no reader had begun with them.
    pub late: u64,
    /// Time workers took for these; part of [`Stage::Read`](crate::Stage::Read).
    pub late_time: Duration,
    /// Time workers waited for reads that had begun, all of them together; part of no stage.
    pub wait: Duration,
}

impl ReaderStats {
    /// The difference to `earlier`. Values that are not sums stay as they are.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let Self { readers, is_planned, reading, ready, bytes, .. } = *self;
        Self {
            readers,
            is_planned,
            reading,
            ready,
            bytes,
            samples: self.samples.saturating_sub(earlier.samples),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            read_time: self.read_time.saturating_sub(earlier.read_time),
            found: self.found.saturating_sub(earlier.found),
            late: self.late.saturating_sub(earlier.late),
            late_time: self.late_time.saturating_sub(earlier.late_time),
            wait: self.wait.saturating_sub(earlier.wait),
        }
    }
}

/// The origin of samples that workers took while readers ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) late: u64,
    pub(crate) late_time: Duration,
    pub(crate) wait: Duration,
}

/// The counts of all readers of a loader, with what its windows hold.
#[derive(Debug, Default)]
pub(crate) struct ReaderCounters {
    pub(crate) window: Arc<WindowCounters>,
    readers: AtomicU64,
    is_planned: AtomicBool,
    samples: AtomicU64,
    bytes_read: AtomicU64,
    read_time: AtomicU64,
    late: AtomicU64,
    late_time: AtomicU64,
    wait: AtomicU64,
}

impl ReaderCounters {
    /// So many samples can be read at once.
    pub(crate) fn start(&self, readers: usize) {
        self.readers.store(readers as u64, Ordering::Relaxed);
    }

    /// Samples are requested from stores.
    pub(crate) fn start_planned(&self) {
        self.is_planned.store(true, Ordering::Relaxed);
        self.start(1);
    }

    /// A reader has read a sample.
    pub(crate) fn read(&self, bytes: usize, time: Duration) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.read_time.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    pub(crate) fn waited(&self, Waits { late, late_time, wait }: Waits) {
        self.late.fetch_add(late, Ordering::Relaxed);
        self.late_time.fetch_add(nanoseconds(late_time), Ordering::Relaxed);
        self.wait.fetch_add(nanoseconds(wait), Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> ReaderStats {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |counter: &AtomicU64| Duration::from_nanos(value(counter));
        ReaderStats {
            readers: usize::try_from(value(&self.readers)).unwrap_or(usize::MAX),
            is_planned: self.is_planned.load(Ordering::Relaxed),
            reading: self.window.reading(),
            ready: self.window.ready(),
            bytes: self.window.bytes(),
            samples: value(&self.samples),
            bytes_read: value(&self.bytes_read),
            read_time: time(&self.read_time),
            found: self.window.found(),
            late: value(&self.late),
            late_time: time(&self.late_time),
            wait: time(&self.wait),
        }
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
