//! Counters of a loader, and the list of samples that were not what they should have been.

use std::time::Duration;

use tl_cuda::UploadStats;
use tl_handoff::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

use crate::audit::{AuditEntry, LISTED, Outcome};
use crate::batching::PaddingStats;
use crate::metrics::{Counted, WorkerMetrics};
use crate::reader::{ReaderCounters, ReaderStats, nanoseconds};
use crate::retry::{RetryCounters, RetryStats};
use crate::stage::{Stage, StageTimes};

/// The statistics of a loader over all its epochs so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoaderStats {
    /// Batches handed to the consumer.
    pub batches: u64,
    /// Samples in them, those that fill up the last one included.
    pub samples: u64,
    /// Samples left out because they could not be used.
    pub skipped: u64,
    /// Samples in the place of others that could not be used.
    pub replaced: u64,
    /// Rows of zeros in the place of samples that could not be used.
    pub filled: u64,
    /// Samples in the batches that are damaged, of which some pixels are not the original's.
    pub damaged: u64,
    /// Bytes of samples that were read, by workers or for them; caches read none.
    pub bytes_read: u64,
    /// The padding around images of different sizes in the batches.
    pub padding: PaddingStats,
    /// Samples that workers have processed: those in the batches, bad ones, and those of batches
    /// that are not received yet.
    pub processed: u64,
    /// Batches of memory ever allocated.
    pub slabs: u64,
    /// Batches of memory in use at this moment: being filled, ready, or with the consumer.
    pub slabs_in_use: u64,
    /// Bytes of the largest of them.
    pub slab_bytes: u64,
    /// The number of worker threads.
    pub workers: usize,
    /// Batches in flight besides those the consumer holds.
    pub prefetch: usize,
    /// Batches that were ready when the consumer asked for one, added up over its askings.
    pub ready: u64,
    /// Time the consumer waited for batches.
    pub consumer_wait: Duration,
    /// Time the consumer did something else between two batches of an epoch.
    pub consumer_busy: Duration,
    /// Time that all workers together slept because the consumer was slower.
    pub worker_wait: Duration,
    /// Time workers worked, all of them together.
    pub stages: StageTimes,
    /// The statistics of readers.
    pub readers: ReaderStats,
    /// The repetitions of local reads.
    pub retries: RetryStats,
    /// The counters of copies to a device; zeros without any, and in a forked process.
    pub uploads: UploadStats,
}

impl LoaderStats {
    /// The difference to `earlier`. Values that are not sums (memory, threads) stay as they are.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let Self { slabs, slabs_in_use, slab_bytes, workers, prefetch, .. } = *self;
        Self {
            batches: self.batches.saturating_sub(earlier.batches),
            samples: self.samples.saturating_sub(earlier.samples),
            skipped: self.skipped.saturating_sub(earlier.skipped),
            replaced: self.replaced.saturating_sub(earlier.replaced),
            filled: self.filled.saturating_sub(earlier.filled),
            damaged: self.damaged.saturating_sub(earlier.damaged),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            padding: self.padding.since(&earlier.padding),
            processed: self.processed.saturating_sub(earlier.processed),
            slabs,
            slabs_in_use,
            slab_bytes,
            workers,
            prefetch,
            ready: self.ready.saturating_sub(earlier.ready),
            consumer_wait: self.consumer_wait.saturating_sub(earlier.consumer_wait),
            consumer_busy: self.consumer_busy.saturating_sub(earlier.consumer_busy),
            worker_wait: self.worker_wait.saturating_sub(earlier.worker_wait),
            stages: self.stages.since(&earlier.stages),
            readers: self.readers.since(&earlier.readers),
            retries: self.retries.since(&earlier.retries),
            uploads: self.uploads.since(&earlier.uploads),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    samples: AtomicU64,
    skipped: AtomicU64,
    replaced: AtomicU64,
    filled: AtomicU64,
    damaged: AtomicU64,
    bytes_read: AtomicU64,
    processed: AtomicU64,
    ready: AtomicU64,
    consumer_wait: AtomicU64,
    consumer_busy: AtomicU64,
    worker_wait: AtomicU64,
    image_pixels: AtomicU64,
    padded_pixels: AtomicU64,
    unbucketed_pixels: AtomicU64,
    /// Nanoseconds of each stage.
    stages: [AtomicU64; Stage::ALL.len()],
    /// Counted, because windows report to it.
    pub(crate) readers: Arc<ReaderCounters>,
    pub(crate) retries: RetryCounters,
    audit: Mutex<Vec<AuditEntry>>,
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

    /// Counts and lists what was wrong with samples.
    pub(crate) fn note(&self, entries: Vec<AuditEntry>) {
        if entries.is_empty() {
            return;
        }
        for entry in &entries {
            let counter = match entry.outcome {
                Outcome::Raised => continue,
                Outcome::Skipped => &self.skipped,
                Outcome::Replaced { .. } => &self.replaced,
                Outcome::Filled => &self.filled,
                Outcome::Kept => &self.damaged,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let mut list = lock(&self.audit);
        let room = LISTED - list.len();
        list.extend(entries.into_iter().take(room));
    }

    /// Adds what a worker has counted, and leaves it with nothing.
    pub(crate) fn flush(&self, metrics: &mut WorkerMetrics) {
        let Counted { processed, bytes_read, asleep, waits, stages } = metrics.take();
        self.processed.fetch_add(processed, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
        self.worker_wait.fetch_add(nanoseconds(asleep), Ordering::Relaxed);
        self.readers.waited(waits);
        for (counter, stage) in self.stages.iter().zip(Stage::ALL) {
            counter.fetch_add(nanoseconds(stages[stage]), Ordering::Relaxed);
        }
    }

    /// Adds a wait of the consumer, what it did before, and how much was ready when it came.
    pub(crate) fn asked(&self, wait: Duration, busy: Duration, ready: u64) {
        self.consumer_wait.fetch_add(nanoseconds(wait), Ordering::Relaxed);
        self.consumer_busy.fetch_add(nanoseconds(busy), Ordering::Relaxed);
        self.ready.fetch_add(ready, Ordering::Relaxed);
    }

    pub(crate) fn audit(&self) -> Vec<AuditEntry> {
        lock(&self.audit).clone()
    }

    /// The sums, with what `fixed` says of memory and threads.
    pub(crate) fn stats(&self, fixed: &LoaderStats) -> LoaderStats {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |counter: &AtomicU64| Duration::from_nanos(value(counter));
        let mut stages = StageTimes::default();
        for (counter, stage) in self.stages.iter().zip(Stage::ALL) {
            stages[stage] = time(counter);
        }
        LoaderStats {
            batches: value(&self.batches),
            samples: value(&self.samples),
            skipped: value(&self.skipped),
            replaced: value(&self.replaced),
            filled: value(&self.filled),
            damaged: value(&self.damaged),
            bytes_read: value(&self.bytes_read),
            padding: PaddingStats {
                image_pixels: value(&self.image_pixels),
                padded_pixels: value(&self.padded_pixels),
                unbucketed_pixels: value(&self.unbucketed_pixels),
            },
            processed: value(&self.processed),
            ready: value(&self.ready),
            consumer_wait: time(&self.consumer_wait),
            consumer_busy: time(&self.consumer_busy),
            worker_wait: time(&self.worker_wait),
            stages,
            readers: self.readers.stats(),
            retries: self.retries.stats(),
            ..fixed.clone()
        }
    }
}
