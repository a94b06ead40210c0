//! What the caches of a loader have done.

use std::fmt;

use tl_handoff::sync::Arc;

use crate::cache::fault::CacheFault;

/// What the caches of a loader hold and have done so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// The cache in memory; zeros without one.
    pub memory: LevelStats,
    /// The cache on disk; zeros without one. What other processes do there is not in it, except
    /// for [`LevelStats::bytes`].
    pub disk: LevelStats,
    /// Entries on disk that were damaged, and were removed and made again.
    pub bad_entries: u64,
    /// What the disk refused; each time the sample was used without the cache.
    pub faults: u64,
    /// The first of these.
    pub first_fault: Option<Arc<CacheFault>>,
}

/// What one cache holds and has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Samples found.
    pub hits: u64,
    /// Samples not found.
    pub misses: u64,
    /// Samples taken in.
    pub inserted: u64,
    /// Samples not taken in, because what is there is needed sooner.
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
