//! Counters of a loader, and the list of samples it left out.

use std::time::Duration;

use crate::error::SampleError;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// How many skipped samples are listed; all are counted.
const LISTED: usize = 10_000;

/// What a loader has done so far, over all its epochs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches handed to the consumer.
    pub batches: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples left out because they could not be used.
    pub skipped: u64,
    /// Bytes of samples that workers read.
    pub bytes_read: u64,
    /// Batches of memory ever allocated.
    pub slabs: u64,
    /// Bytes of one of them.
    pub slab_bytes: u64,
    /// Time the consumer slept because no batch was ready.
    pub consumer_wait: Duration,
    /// Time workers slept because the consumer was behind, all of them together.
    pub worker_wait: Duration,
}

/// A sample that was left out.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The epoch it was left out of.
    pub epoch: u32,
    /// Which one, and why.
    pub error: Arc<SampleError>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    samples: AtomicU64,
    skipped: AtomicU64,
    bytes_read: AtomicU64,
    consumer_wait: AtomicU64,
    worker_wait: AtomicU64,
    list: Mutex<Vec<Skipped>>,
}

impl Counters {
    pub(crate) fn batch(&self, samples: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.samples.fetch_add(samples as u64, Ordering::Relaxed);
    }

    pub(crate) fn skip(&self, epoch: u32, errors: &[Arc<SampleError>]) {
        if errors.is_empty() {
            return;
        }
        self.skipped.fetch_add(errors.len() as u64, Ordering::Relaxed);
        let mut list = lock(&self.list);
        let room = LISTED - list.len();
        let listed = errors.iter().take(room);
        list.extend(listed.map(|error| Skipped { epoch, error: Arc::clone(error) }));
    }

    pub(crate) fn read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn consumer_slept(&self, time: Duration) {
        self.consumer_wait.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    pub(crate) fn worker_slept(&self, time: Duration) {
        self.worker_wait.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        lock(&self.list).clone()
    }

    pub(crate) fn stats(&self, slabs: u64, slab_bytes: u64) -> LoaderStats {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LoaderStats {
            batches: value(&self.batches),
            samples: value(&self.samples),
            skipped: value(&self.skipped),
            bytes_read: value(&self.bytes_read),
            slabs,
            slab_bytes,
            consumer_wait: Duration::from_nanos(value(&self.consumer_wait)),
            worker_wait: Duration::from_nanos(value(&self.worker_wait)),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
