//! A cache of decoded blocks, bounded in bytes.
//!
//! Every block has a slot with its own lock, so that workers contend only for the same block: the
//! first decodes it, the others wait. Eviction goes round the slots and takes those not used since
//! the last round (CLOCK).
//!
//! A lock taken by all workers for every value would cost most of the time, so each worker keeps
//! references to its blocks ([`Held`]). A block with references stays and counts; when a worker
//! needs memory, every worker releases its references before its next value.

use std::fmt;

use tl_handoff::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

use crate::error::TableError;
use crate::table::RowValues;

/// A block, or what is wrong with it.
type Loaded = Result<Arc<dyn RowValues>, TableError>;

/// Decoded blocks of all columns.
pub(crate) struct BlockCache {
    slots: Box<[Slot]>,
    limit: u64,
    used: AtomicU64,
    /// The next slot that eviction looks at.
    hand: AtomicUsize,
    /// The number of times that memory was needed.
    calls: AtomicU64,
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
        let used = AtomicU64::new(0);
        let calls = AtomicU64::new(0);
        Self { slots, limit, used, hand: AtomicUsize::new(0), calls }
    }

    /// Bytes that are kept at most.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The block in slot `slot`, which `load` makes where it is not there.
    fn get(&self, slot: usize, load: impl FnOnce() -> Loaded) -> Loaded {
        let slot = &self.slots[slot];
        let mut loaded = lock(&slot.loaded);
        if let Some(loaded) = &*loaded {
            slot.is_used.store(true, Ordering::Relaxed);
            return loaded.clone();
        }
        let made = load();
        match &made {
            Ok(values) => {
                *loaded = Some(made.clone());
                self.used.fetch_add(values.kept_bytes(), Ordering::Relaxed);
            }
            Err(error) if error.is_lasting() => *loaded = Some(made.clone()),
            Err(_) => {}
        }
        made
    }

    fn is_over(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit
    }

    /// Lets go of blocks that nobody holds until those that are left fit, or the hand has been round
    /// twice: then somebody is at every slot, and the next to load a block tries again.
    fn make_room(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        for _ in 0..self.slots.len().saturating_mul(2) {
            if !self.is_over() {
                return;
            }
            let slot = &self.slots[self.hand.fetch_add(1, Ordering::Relaxed) % self.slots.len()];
            let Ok(mut loaded) = slot.loaded.try_lock() else { continue };
            // References to a block are taken under its lock.
            let is_free = matches!(&*loaded, Some(Ok(values)) if Arc::strong_count(values) == 1);
            if is_free && !slot.is_used.swap(false, Ordering::Relaxed) {
                let Some(Ok(values)) = loaded.take() else { continue };
                drop(loaded);
                self.used.fetch_sub(values.kept_bytes(), Ordering::Relaxed);
            }
        }
    }
}

/// Most blocks that a worker holds: 384 KB of places.
const MOST_HELD: usize = 1 << 14;

/// A slot and its block.
type HeldBlock = (usize, Arc<dyn RowValues>);

/// The blocks that a worker had lately, which it reads again without asking for them.
#[derive(Default)]
pub(crate) struct Held {
    /// A slot's block is at the place of the slot's lowest bits.
    places: Box<[Option<HeldBlock>]>,
    /// Places that have one.
    taken: Vec<usize>,
    /// [`BlockCache::calls`] when they were taken.
    calls: u64,
}

impl Held {
    /// Reads from the block in slot `slot` of `cache`, which `load` makes where it is not there.
    ///
    /// # Errors
    /// What `load` and `read` say. What is wrong with the block for good is kept in its place.
    pub(crate) fn read<T>(
        &mut self,
        cache: &BlockCache,
        slot: usize,
        load: impl FnOnce() -> Loaded,
        read: impl FnOnce(&dyn RowValues) -> Result<T, TableError>,
    ) -> Result<T, TableError> {
        let calls = cache.calls.load(Ordering::Relaxed);
        if calls != self.calls {
            self.let_go();
            self.calls = calls;
        }
        if self.places.is_empty() {
            let places = cache.slots.len().next_power_of_two().min(MOST_HELD);
            self.places = std::iter::repeat_with(|| None).take(places).collect();
            self.taken.reserve_exact(places);
        }
        let place = slot & (self.places.len() - 1);
        if let Some((held, values)) = &self.places[place]
            && *held == slot
        {
            return read(&**values);
        }
        let mut is_new = false;
        let values = cache.get(slot, || {
            is_new = true;
            load()
        })?;
        let result = read(&*values);
        if !cache.is_over() {
            if self.places[place].replace((slot, values)).is_none() {
                self.taken.push(place);
            }
        } else if is_new {
            drop(values);
            self.let_go();
            cache.make_room();
        }
        result
    }

    fn let_go(&mut self) {
        for place in self.taken.drain(..) {
            self.places[place] = None;
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("blocks", &self.taken.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
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

    /// Reads from blocks and counts how many had to be loaded.
    fn loads(cache: &BlockCache, held: &mut Held, slots: &[usize], bytes: u64) -> usize {
        let mut loads = 0;
        for &slot in slots {
            let load = || {
                loads += 1;
                Ok(Arc::new(Bytes(bytes)) as _)
            };
            let got = held.read(cache, slot, load, |values| Ok(values.kept_bytes()));
            assert_eq!(got.ok(), Some(bytes));
            assert!(cache.used.load(Ordering::Relaxed) <= cache.limit);
        }
        loads
    }

    #[test]
    fn what_fits_is_loaded_once() {
        let cache = BlockCache::new(4, 40);
        let mut held = Held::default();
        assert_eq!(loads(&cache, &mut held, &[0, 1, 2, 3, 3, 1, 0, 2], 10), 4);
        assert_eq!(loads(&cache, &mut held, &[0, 1, 2, 3], 10), 0);
        assert_eq!(loads(&cache, &mut Held::default(), &[0, 1, 2, 3], 10), 0);
    }

    #[test]
    fn what_was_used_stays_longer() {
        let cache = BlockCache::new(10, 30);
        // Each time another worker.
        let loads = |slots: &[usize]| loads(&cache, &mut Held::default(), slots, 10);
        assert_eq!(loads(&[0, 1, 2]), 3);
        assert_eq!(loads(&[0, 2]), 0);
        assert_eq!(loads(&[3]), 1);
        assert_eq!(loads(&[0, 2]), 0, "1 was not used since it was loaded");
    }

    #[test]
    fn a_block_without_room_is_not_kept() {
        let cache = BlockCache::new(2, 5);
        let mut held = Held::default();
        assert_eq!(loads(&cache, &mut held, &[0, 0, 1], 3), 2, "the other one left");
        let cache = BlockCache::new(2, 5);
        assert_eq!(loads(&cache, &mut held, &[0, 0, 1], 10), 3);
        assert_eq!(cache.used.load(Ordering::Relaxed), 0);
    }

    /// A block that a worker references is not evicted, and blocks loaded meanwhile are; the worker
    /// releases it at its next read.
    #[test]
    fn what_is_held_counts_and_is_let_go_when_room_is_needed() {
        let cache = BlockCache::new(6, 30);
        let mut sleeper = Held::default();
        let mut worker = Held::default();
        assert_eq!(loads(&cache, &mut sleeper, &[0, 1, 2], 10), 3);
        assert_eq!(loads(&cache, &mut worker, &[3, 4, 3], 10), 3);
        assert_eq!(cache.used.load(Ordering::Relaxed), 30);
        assert_eq!(loads(&cache, &mut sleeper, &[0], 10), 0);
        assert_eq!(sleeper.taken, [0]);
        assert_eq!(loads(&cache, &mut worker, &[3, 4, 3, 4], 10), 2);
    }

    /// Two slots whose blocks have the same place.
    #[test]
    fn a_block_is_never_taken_for_another() {
        let slots = 3 * MOST_HELD;
        let cache = BlockCache::new(slots, u64::MAX);
        let mut held = Held::default();
        for slot in [5, MOST_HELD + 5, 5, 2 * MOST_HELD + 5, MOST_HELD + 5] {
            let load = || Ok(Arc::new(Bytes(slot as u64)) as _);
            let got = held.read(&cache, slot, load, |values| Ok(values.kept_bytes()));
            assert_eq!(got.ok(), Some(slot as u64));
        }
        assert_eq!(held.taken, [5]);
    }

    #[test]
    fn damage_is_kept_and_a_fault_of_the_moment_is_not() {
        let cache = BlockCache::new(2, 5);
        let mut held = Held::default();
        let lasting = TableError::Label { value: 0.5 };
        let passing = TableError::OutOfRange { what: "row", number: 7 };
        for (slot, error, expected) in [(0, lasting, 1), (1, passing, 2)] {
            let mut loads = 0;
            for _ in 0..2 {
                let load = || {
                    loads += 1;
                    Err(error.clone())
                };
                let got = held.read(&cache, slot, load, |_| Ok(())).unwrap_err();
                assert_eq!(got.to_string(), error.to_string());
            }
            assert_eq!(loads, expected);
        }
    }
}
