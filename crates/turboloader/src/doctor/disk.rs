//! How fast samples come from the disk, past the page cache.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tbl_io::{ReadError, Source, SourceKind};
use tl_pipeline::{Dataset, Order};

/// What reading single samples in random order gives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ReadRate {
    pub(super) samples_per_s: f64,
    pub(super) bytes_per_s: f64,
}

/// Reads samples in the order `order` with `threads` threads for about `time`, from position `first`
/// on, each after its pages were dropped from the page cache.
pub(super) fn cold_reads(
    dataset: &Dataset,
    order: &Order,
    first: u64,
    threads: usize,
    time: Duration,
) -> Result<ReadRate, ReadError> {
    let next = AtomicU64::new(first);
    let start = Instant::now();
    let read = || -> Result<(u64, u64), ReadError> {
        let (mut samples, mut read, mut bytes) = (0, 0, Vec::new());
        while start.elapsed() < time {
            let Some(index) = order.sample_at(next.fetch_add(1, Ordering::Relaxed)) else { break };
            drop_pages(dataset, index)?;
            dataset.read_into(index, &mut bytes)?;
            samples += 1;
            read += bytes.len() as u64;
        }
        Ok((samples, read))
    };
    let counts = thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        let (mut samples, mut bytes) = (0, 0);
        for reader in readers {
            let counted = reader.join().unwrap_or(Ok((0, 0)))?;
            samples += counted.0;
            bytes += counted.1;
        }
        Ok::<_, ReadError>((samples, bytes))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    let rate = |count: u64| count as f64 / seconds;
    Ok(ReadRate { samples_per_s: rate(counts.0), bytes_per_s: rate(counts.1) })
}

/// Drops the pages of all files of a data set from the page cache; folders are left alone, whose
/// files are too many to open for it.
pub(super) fn drop_all_pages(dataset: &Dataset) -> Result<(), ReadError> {
    for shard in dataset.shards().iter().filter(|shard| shard.kind() != SourceKind::Folder) {
        let source = Source::open(shard.path())?;
        source.dont_need(0, source.len())?;
    }
    Ok(())
}

fn drop_pages(dataset: &Dataset, index: u64) -> Result<(), ReadError> {
    let (shard, local) = dataset.locate(index)?;
    let entry = shard.entry(local)?;
    if shard.kind() != SourceKind::Folder {
        return Source::open(shard.path())?.dont_need(entry.offset, entry.stored_bytes);
    }
    let Some(key) = &entry.key else { return Ok(()) };
    let path: PathBuf = shard.path().join(std::ffi::OsStr::from_bytes(key));
    Source::open(path)?.dont_need(0, entry.stored_bytes)
}
