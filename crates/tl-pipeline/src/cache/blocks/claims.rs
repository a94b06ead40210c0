//! Claims of blocks: who fetches one tells other processes, which wait for it instead of fetching
//! it too.
//!
//! A claim is a lock on one byte of a file, so it ends with its process. Blocks share the bytes:
//! then one of them is fetched by somebody else, or twice.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tbl_io::ByteLocks;
use tl_handoff::sync::{Mutex, lock};

use crate::cache::key::Key;

/// How long a block that another process fetches is waited for, from the time at which it was to be
/// requested here. Most come long before the row that needs them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time after which a block that did not come may be waited for again.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// The claims of this loader, and those of others that it knows.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// `None` where nothing can be locked: then nobody waits for anybody.
    locks: Option<ByteLocks>,
    /// The bytes that are locked here, with the number of blocks for which they are.
    own: Mutex<HashMap<u16, u32>>,
    /// The blocks that others fetch, and the time at which that was noticed.
    of_others: Mutex<HashMap<u64, Instant>>,
}

fn byte_of(key: Key) -> u16 {
    u16::from_le_bytes([key.0[0], key.0[1]])
}

impl Claims {
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { locks: Some(ByteLocks::open(path)?), ..Self::default() })
    }

    /// Claims a block; false if another process may be fetching it.
    pub(super) fn take(&self, key: Key) -> bool {
        let Some(locks) = &self.locks else { return true };
        let mut own = lock(&self.own);
        let count = own.entry(byte_of(key)).or_default();
        // Where locks are not supported, blocks are fetched as if nobody else was there.
        let is_ours = *count > 0 || locks.try_lock(byte_of(key)).unwrap_or(true);
        *count += u32::from(is_ours);
        if *count == 0 {
            own.remove(&byte_of(key));
        }
        is_ours
    }

    /// Ends a claim.
    pub(super) fn release(&self, key: Key) {
        let Some(locks) = &self.locks else { return };
        let mut own = lock(&self.own);
        let Some(count) = own.get_mut(&byte_of(key)) else { return };
        *count -= 1;
        if *count == 0 {
            own.remove(&byte_of(key));
            // A lock that stays makes others wait for a while, and ends with the process.
            drop(locks.unlock(byte_of(key)));
        }
    }

    fn are_taken(&self, key: Key) -> bool {
        let is_taken = |locks: &ByteLocks| locks.is_locked_elsewhere(byte_of(key));
        self.locks.as_ref().is_some_and(|locks| is_taken(locks).unwrap_or(false))
    }

    /// True if somebody else fetches a block that is to be requested now, and it is waited for.
    pub(super) fn awaits(&self, number: u64, key: Key) -> bool {
        if !self.are_taken(key) {
            return false;
        }
        let now = Instant::now();
        let mut of_others = lock(&self.of_others);
        let since = of_others.entry(number).or_insert(now);
        if since.elapsed() > FORGIVEN_AFTER {
            *since = now;
        }
        since.elapsed() < PATIENCE
    }

    /// True if a block that was [awaited](Self::awaits) may still come.
    pub(super) fn is_awaited(&self, number: u64, key: Key) -> bool {
        let since = lock(&self.of_others).get(&number).copied();
        since.is_some_and(|since| since.elapsed() < PATIENCE) && self.are_taken(key)
    }

    /// Notes that nobody fetches a block any more, so that the next one to do so is waited for.
    pub(super) fn note_left(&self, number: u64, key: Key) {
        if !self.are_taken(key) {
            self.forget(number);
        }
    }

    /// Notes that a block has come.
    pub(super) fn forget(&self, number: u64) {
        lock(&self.of_others).remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_fetched_by_one_of_two() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("claims");
        let one = Claims::open(&path).unwrap();
        let other = Claims::open(&path).unwrap();
        let key = Key([3; 32]);
        // Another block with the same byte.
        let mut same = key;
        same.0[9] = 0;
        assert!(one.take(key) && one.take(same));
        assert!(!one.awaits(7, key), "its own");
        assert!(!other.take(key) && !other.take(same));
        assert!(!other.is_awaited(7, key), "nobody asked for it");
        assert!(other.awaits(7, key) && other.is_awaited(7, key));
        one.release(same);
        assert!(!other.take(key), "the other block still has the byte");
        one.release(key);
        assert!(!other.is_awaited(7, key) && !other.awaits(7, key));
        assert!(other.take(key) && !one.take(same));
        drop(other);
        assert!(one.take(same), "locks end with their opening");
    }
}
