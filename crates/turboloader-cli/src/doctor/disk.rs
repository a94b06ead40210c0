//! The rate of reading samples from the disk, past the page cache.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tbl_io::{ReadError, SampleSource, Source, SourceKind};
use tl_pipeline::{Dataset, Order};

use crate::failure::Failure;
use crate::threads;

/// The rate of reading single samples in random order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ReadRate {
    pub(super) samples_per_s: f64,
    pub(super) bytes_per_s: f64,
    /// Samples that could not be read, which are in neither rate.
    pub(super) bad_samples: u64,
}

/// Reads samples in the order `order` with `threads` threads for about `time`, from position `first`
/// on, each after its pages were dropped from the page cache. Only the reads are timed: dropping is
/// no part of what training does. A sample that cannot be read is counted as such.
pub(super) fn cold_reads(
    dataset: &Dataset,
    order: &Order,
    first: u64,
    threads: usize,
    time: Duration,
) -> Result<ReadRate, Failure> {
    let files = Files::open(dataset)?;
    let next = AtomicU64::new(first);
    let start = Instant::now();
    let read = || {
        let mut reads = Reads::default();
        let mut bytes = Vec::new();
        while start.elapsed() < time {
            let Some(index) = order.sample_at(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let dropped = files.drop_pages(dataset, index);
            let began = Instant::now();
            if dropped.and_then(|()| dataset.read_into(index, &mut bytes)).is_err() {
                reads.bad_samples += 1;
                continue;
            }
            reads.seconds += began.elapsed().as_secs_f64();
            reads.samples += 1;
            reads.bytes += bytes.len() as u64;
        }
        reads
    };
    thread::scope(|scope| {
        let readers = (0..threads).map(|worker| threads::spawn(scope, worker, threads, read));
        let readers: Vec<_> = readers.collect::<Result<_, _>>()?;
        let mut rate = ReadRate::default();
        for reader in readers {
            let reads = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            rate.samples_per_s += reads.rate(reads.samples);
            rate.bytes_per_s += reads.rate(reads.bytes);
            rate.bad_samples += reads.bad_samples;
        }
        Ok(rate)
    })
}

/// The bytes and samples that one thread has read.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    samples: u64,
    bytes: u64,
    seconds: f64,
    bad_samples: u64,
}

impl Reads {
    /// So many in a second of reading.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn rate(self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}

/// Drops the pages of all files of a data set from the page cache; folders are left alone, whose
/// files are too many to open for it.
pub(super) fn drop_all_pages(dataset: &Dataset) -> Result<(), ReadError> {
    let Files(files) = Files::open(dataset)?;
    files.iter().flatten().try_for_each(|file| file.dont_need(0, file.len()))
}

/// The files of a data set, by shard; `None` for a folder or a list, whose files are opened one by one.
struct Files(Vec<Option<Source>>);

impl Files {
    fn open(dataset: &Dataset) -> Result<Self, ReadError> {
        let open = |shard: &dyn SampleSource| {
            // Objects of stores have no pages here.
            let is_one = !matches!(
                shard.kind(),
                SourceKind::Folder | SourceKind::Files | SourceKind::Manifest
            );
            let path = shard.location().path().filter(|_| is_one);
            path.map(Source::open).transpose()
        };
        dataset
            .shards()
            .iter()
            .map(|shard| open(shard.as_ref()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Drops the pages of one sample.
    fn drop_pages(&self, dataset: &Dataset, index: u64) -> Result<(), ReadError> {
        let (shard, local) = dataset.locate(index)?;
        let entry = shard.entry(local)?;
        let of_shard = dataset.shards().iter().zip(&self.0);
        let file = of_shard
            .filter(|(other, _)| other.location() == shard.location())
            .find_map(|(_, file)| file.as_ref());
        if let Some(file) = file {
            return file.dont_need(entry.offset, entry.stored_bytes);
        }
        let Some(key) = &entry.key else { return Ok(()) };
        let file = shard.location().join(key);
        let file = file.path().map(Source::open).transpose()?;
        file.map_or(Ok(()), |file| file.dont_need(0, entry.stored_bytes))
    }
}
