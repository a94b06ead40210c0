//! The statistics of a loader's caches.

use std::fmt;

use tl_handoff::sync::Arc;

use crate::cache::fault::CacheFault;

/// The contents and counters of a loader's caches.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// The cache in memory; zeros without one.
    pub memory: LevelStats,
    /// The cache on disk; zeros without one. Other processes count only in [`LevelStats::bytes`].
    pub disk: LevelStats,
    /// Blocks that were given up because the disk was too slow to take them.
    pub dropped_blocks: u64,
    /// Blocks that were not kept because they have more than half of the bytes that are read ahead.
    pub large_blocks: u64,
    /// Bytes of samples that blocks on disk had.
    pub bytes_from_blocks: u64,
    /// Entries on disk that were damaged, and were removed and made again.
    pub bad_entries: u64,
    /// The number of failures of the disk; each time the sample was used without the cache.
    pub faults: u64,
    /// The first of these.
    pub first_fault: Option<Arc<CacheFault>>,
}

/// The contents and counters of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// The number of samples found.
    pub hits: u64,
    /// The number of samples not found.
    pub misses: u64,
    /// The number of samples stored.
    pub inserted: u64,
    /// The number of samples not stored, because the present ones are needed sooner.
    pub refused: u64,
    /// Samples that had to leave for others.
    pub evicted: u64,
    /// Samples there now. On disk, those that this loader has met.
    pub entries: u64,
    /// Bytes there now, with what goes with each entry.
    pub bytes: u64,
}

impl fmt::Display for LevelStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hits, misses, inserted, refused, evicted, bytes, .. } = self;
        write!(
            f,
            "{hits} hits, {misses} misses, {inserted} taken in, {refused} refused, {evicted} \
             evicted, {bytes} bytes"
        )
    }
}
