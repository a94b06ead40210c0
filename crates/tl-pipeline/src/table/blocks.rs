//! Blocks that were decoded, kept for as long as there is room.
//!
//! Every block has a slot of its own with a lock of its own, so that workers meet only where they
//! want the same block: the first decodes it, the others wait for that. What leaves when there is no
//! room is found by going round the slots and taking what was not used since the last time (CLOCK).

use crate::error::TableError;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::table::RowValues;

/// A block, or what is wrong with it.
type Loaded = Result<Arc<dyn RowValues>, TableError>;

/// Decoded blocks of all columns.
pub(crate) struct BlockCache {
    slots: Box<[Slot]>,
    limit: u64,
    used: AtomicU64,
    /// The slot that is looked at next for something to let go of.
    hand: AtomicUsize,
}

#[derive(Default)]
struct Slot {
    loaded: Mutex<Option<Loaded>>,
    is_used: AtomicBool,
}

impl BlockCache {
    /// Room for `slots` blocks, of which `limit` bytes are kept.
    pub(crate) fn new(slots: usize, limit: u64) -> Self {
        let slots = std::iter::repeat_with(Slot::default).take(slots).collect();
        Self { slots, limit, used: AtomicU64::new(0), hand: AtomicUsize::new(0) }
    }

    /// Bytes that are kept at most.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The block in slot `slot`, which `load` makes where it is not there.
    ///
    /// # Errors
    /// What `load` says. What is wrong with the block for good is kept in its place.
    pub(crate) fn get(&self, slot: usize, load: impl FnOnce() -> Loaded) -> Loaded {
        let slot = &self.slots[slot];
        let mut loaded = lock(&slot.loaded);
        if let Some(loaded) = &*loaded {
            slot.is_used.store(true, Ordering::Relaxed);
            return loaded.clone();
        }
        let made = load();
        match &made {
            Ok(values) => {
                let bytes = values.kept_bytes();
                *loaded = Some(made.clone());
                drop(loaded);
                let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
                if used > self.limit {
                    self.make_room();
                }
            }
            Err(error) if error.is_lasting() => *loaded = Some(made.clone()),
            Err(_) => {}
        }
        made
    }

    /// Lets go of blocks until those that are left fit, or the hand has been round twice: then
    /// somebody is at every slot, and the next to load a block tries again.
    fn make_room(&self) {
        for _ in 0..self.slots.len().saturating_mul(2) {
            if self.used.load(Ordering::Relaxed) <= self.limit {
                return;
            }
            let slot = &self.slots[self.hand.fetch_add(1, Ordering::Relaxed) % self.slots.len()];
            let Ok(mut loaded) = slot.loaded.try_lock() else { continue };
            if matches!(&*loaded, Some(Ok(_))) && !slot.is_used.swap(false, Ordering::Relaxed) {
                let Some(Ok(values)) = loaded.take() else { continue };
                drop(loaded);
                self.used.fetch_sub(values.kept_bytes(), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::*;

    struct Bytes(u64);

    impl RowValues for Bytes {
        fn kept_bytes(&self) -> u64 {
            self.0
        }

        fn write(&self, _: u64, _: &mut [u8]) -> Result<(), TableError> {
            Ok(())
        }
    }

    /// Gets blocks and counts how many had to be loaded.
    fn loads(cache: &BlockCache, slots: &[usize], bytes: u64) -> usize {
        let mut loads = 0;
        for &slot in slots {
            let got = cache.get(slot, || {
                loads += 1;
                Ok(Arc::new(Bytes(bytes)))
            });
            assert_eq!(got.map(|values| values.kept_bytes()).ok(), Some(bytes));
            assert!(cache.used.load(Ordering::Relaxed) <= cache.limit.max(bytes));
        }
        loads
    }

    #[test]
    fn what_fits_is_loaded_once() {
        let cache = BlockCache::new(4, 40);
        assert_eq!(loads(&cache, &[0, 1, 2, 3, 3, 1, 0, 2], 10), 4);
        assert_eq!(loads(&cache, &[0, 1, 2, 3], 10), 0);
    }

    #[test]
    fn what_was_used_stays_longer() {
        let cache = BlockCache::new(10, 30);
        assert_eq!(loads(&cache, &[0, 1, 2, 0, 2], 10), 3);
        assert_eq!(loads(&cache, &[3], 10), 1);
        assert_eq!(loads(&cache, &[0, 2], 10), 0, "1 was not used since it was loaded");
    }

    #[test]
    fn a_block_without_room_is_not_kept() {
        let cache = BlockCache::new(2, 5);
        assert_eq!(loads(&cache, &[0, 0, 1], 10), 3);
        assert_eq!(cache.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn damage_is_kept_and_a_fault_of_the_moment_is_not() {
        let cache = BlockCache::new(2, 5);
        let lasting = TableError::Label { value: 0.5 };
        let passing = TableError::OutOfRange { what: "row", number: 7 };
        for (slot, error, expected) in [(0, lasting, 1), (1, passing, 2)] {
            let mut loads = 0;
            for _ in 0..2 {
                let load = || {
                    loads += 1;
                    Err(error.clone())
                };
                let got = cache.get(slot, load).map(drop).unwrap_err();
                assert_eq!(got.to_string(), error.to_string());
            }
            assert_eq!(loads, expected);
        }
    }
}
