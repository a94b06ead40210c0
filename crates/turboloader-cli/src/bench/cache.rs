//! The figures of caches in `tl bench`.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{CacheStats, LevelStats, Loader};

use crate::output::note;

/// The figures of the caches over all epochs of a run.
#[derive(Debug, Serialize)]
pub(super) struct CacheResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<Level>,
    /// Bytes of samples that blocks had.
    bytes_from_blocks: u64,
    /// Blocks that the disk was too slow to take.
    dropped_blocks: u64,
    /// Entries on disk that were damaged, and were removed.
    bad_entries: u64,
    /// The writes that the disk refused.
    faults: u64,
}

#[derive(Debug, Serialize)]
struct Level {
    hits: u64,
    misses: u64,
    inserted: u64,
    refused: u64,
    evicted: u64,
    bytes: u64,
}

impl CacheResult {
    /// That of a loader, if it has a cache. Says what the disk refused first.
    pub(super) fn of(loader: &Loader) -> Option<Self> {
        let config = &loader.config().cache;
        let CacheStats {
            memory,
            disk,
            dropped_blocks,
            bytes_from_blocks,
            bad_entries,
            faults,
            first_fault,
            ..
        } = loader.cache_stats();
        if let Some(fault) = first_fault {
            note(&fault);
        }
        let level = |stats: LevelStats| {
            let LevelStats { hits, misses, inserted, refused, evicted, bytes, .. } = stats;
            Level { hits, misses, inserted, refused, evicted, bytes }
        };
        let memory = config.memory.map(|_| level(memory));
        let disk = config.disk.as_ref().map(|_| level(disk));
        let any = memory.is_some() || disk.is_some();
        any.then_some(Self { memory, disk, bytes_from_blocks, dropped_blocks, bad_entries, faults })
    }
}

impl fmt::Display for CacheResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [("in memory", &self.memory), ("on disk", &self.disk)];
        for (place, level) in places {
            if let Some(Level { hits, misses, inserted, refused, evicted, bytes }) = level {
                write!(
                    f,
                    "\ncache {place}: {hits} hits, {misses} misses, {inserted} taken in, \
                     {refused} refused, {evicted} evicted, {bytes} bytes"
                )?;
            }
        }
        if self.bytes_from_blocks > 0 {
            write!(f, "\n{} bytes came from blocks on disk", self.bytes_from_blocks)?;
        }
        if self.dropped_blocks > 0 {
            write!(
                f,
                "\n{} blocks were not kept, because the disk was too slow",
                self.dropped_blocks
            )?;
        }
        if self.bad_entries > 0 {
            write!(f, "\n{} damaged entries of the cache were removed", self.bad_entries)?;
        }
        if self.faults > 0 {
            write!(f, "\n{} faults of the cache; samples were used without it", self.faults)?;
        }
        Ok(())
    }
}
