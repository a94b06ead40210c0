//! Counters of a loader, and the lists of samples it left out or kept in spite of damage.

use std::time::Duration;

use crate::batching::PaddingStats;
use crate::error::SampleError;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

/// How many samples a list has; all are counted.
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
    /// Samples in the batches that are damaged, of which some pixels are not the original's.
    pub damaged: u64,
    /// Bytes of samples that workers read.
    pub bytes_read: u64,
    /// What was added around images of different sizes in the batches.
    pub padding: PaddingStats,
    /// Batches of memory ever allocated.
    pub slabs: u64,
    /// Bytes of the largest of them.
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

/// A damaged sample that was kept.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// The epoch it was in.
    pub epoch: u32,
    /// Which one, and the first damage in what was read of it.
    pub error: Arc<SampleError>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    samples: AtomicU64,
    skipped: AtomicU64,
    damaged: AtomicU64,
    bytes_read: AtomicU64,
    consumer_wait: AtomicU64,
    worker_wait: AtomicU64,
    image_pixels: AtomicU64,
    padded_pixels: AtomicU64,
    unbucketed_pixels: AtomicU64,
    skipped_list: Mutex<Vec<Skipped>>,
    damaged_list: Mutex<Vec<Damaged>>,
}

impl Counters {
    pub(crate) fn batch(&self, samples: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.samples.fetch_add(samples as u64, Ordering::Relaxed);
    }

    pub(crate) fn pad(&self, padding: PaddingStats) {
        let PaddingStats { image_pixels, padded_pixels, unbucketed_pixels } = padding;
        if padded_pixels > 0 {
            self.image_pixels.fetch_add(image_pixels, Ordering::Relaxed);
            self.padded_pixels.fetch_add(padded_pixels, Ordering::Relaxed);
            self.unbucketed_pixels.fetch_add(unbucketed_pixels, Ordering::Relaxed);
        }
    }

    pub(crate) fn skip(&self, epoch: u32, errors: &[Arc<SampleError>]) {
        if errors.is_empty() {
            return;
        }
        self.skipped.fetch_add(errors.len() as u64, Ordering::Relaxed);
        list(&self.skipped_list, errors, |error| Skipped { epoch, error });
    }

    pub(crate) fn keep_damaged(&self, epoch: u32, errors: &[Arc<SampleError>]) {
        if errors.is_empty() {
            return;
        }
        self.damaged.fetch_add(errors.len() as u64, Ordering::Relaxed);
        list(&self.damaged_list, errors, |error| Damaged { epoch, error });
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
        lock(&self.skipped_list).clone()
    }

    pub(crate) fn damaged(&self) -> Vec<Damaged> {
        lock(&self.damaged_list).clone()
    }

    pub(crate) fn stats(&self, slabs: u64, slab_bytes: u64) -> LoaderStats {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LoaderStats {
            batches: value(&self.batches),
            samples: value(&self.samples),
            skipped: value(&self.skipped),
            damaged: value(&self.damaged),
            bytes_read: value(&self.bytes_read),
            padding: PaddingStats {
                image_pixels: value(&self.image_pixels),
                padded_pixels: value(&self.padded_pixels),
                unbucketed_pixels: value(&self.unbucketed_pixels),
            },
            slabs,
            slab_bytes,
            consumer_wait: Duration::from_nanos(value(&self.consumer_wait)),
            worker_wait: Duration::from_nanos(value(&self.worker_wait)),
        }
    }
}

fn list<T>(list: &Mutex<Vec<T>>, errors: &[Arc<SampleError>], of: impl Fn(Arc<SampleError>) -> T) {
    let mut list = lock(list);
    let room = LISTED - list.len();
    list.extend(errors.iter().take(room).map(|error| of(Arc::clone(error))));
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
