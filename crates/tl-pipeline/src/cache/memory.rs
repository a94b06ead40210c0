//! A cache in memory, with a bound on its bytes that holds at every moment.

use tbl_format::SampleFormat;
use tl_handoff::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

use crate::cache::planner::{NextUse, Planner};
use crate::cache::stats::LevelStats;

/// The memory of an entry besides its bytes: its places in the table and the queue, the block
/// around it and the allocator's overhead.
const ENTRY_BYTES: u64 = 192;

/// Bytes by sample, up to a number of them in all.
#[derive(Debug)]
pub(crate) struct Memory {
    capacity: u64,
    /// Bytes of all blocks that exist, also of those that left while a worker reads them.
    live: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    planner: Planner<Arc<Block>>,
    stats: LevelStats,
}

/// The form of a payload: its format, and for pixels width and height.
pub(crate) type PayloadForm = (SampleFormat, (u32, u32));

/// The bytes of one sample.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    form: PayloadForm,
    cost: u64,
    live: Arc<AtomicU64>,
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn form(&self) -> PayloadForm {
        self.form
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.live.fetch_sub(self.cost, Ordering::Relaxed);
    }
}

impl Memory {
    /// A cache of at most `capacity` bytes, all of it counted.
    pub(crate) fn new(capacity: u64) -> Self {
        let state = State { planner: Planner::new(), stats: LevelStats::default() };
        Self { capacity, live: Arc::new(AtomicU64::new(0)), state: Mutex::new(state) }
    }

    /// The bytes of `sample`, which is needed now and `next` time then.
    pub(crate) fn get(&self, sample: u64, next: NextUse) -> Option<Arc<Block>> {
        let mut state = lock(&self.state);
        let block = state.planner.touch(sample, next).map(Arc::clone);
        match block {
            Some(_) => state.stats.hits += 1,
            None => state.stats.misses += 1,
        }
        block
    }

    /// True if `sample` is cached now.
    pub(crate) fn contains(&self, sample: u64) -> bool {
        lock(&self.state).planner.contains(sample)
    }

    /// True if an entry of usual size would be stored.
    pub(crate) fn may_take(&self, next: NextUse) -> bool {
        lock(&self.state).planner.may_take(self.capacity, next)
    }

    /// Keeps a copy of `bytes`, unless that is the one that is needed last.
    pub(crate) fn insert(&self, sample: u64, bytes: &[u8], form: PayloadForm, next: NextUse) {
        let cost = ENTRY_BYTES.saturating_add(bytes.len() as u64);
        let block = self.make_room(cost, next).then(|| self.reserve(cost, form)).flatten();
        let block = block.and_then(|mut block| {
            block.bytes.try_reserve_exact(bytes.len()).ok()?;
            block.bytes.extend_from_slice(bytes);
            Some(Arc::new(block))
        });
        let mut state = lock(&self.state);
        let Some(block) = block else {
            state.stats.refused += 1;
            return;
        };
        state.stats.inserted += 1;
        let old = state.planner.insert(sample, block, cost, next);
        drop(state);
        drop(old);
    }

    /// Evicts entries needed later than `next` until `cost` bytes are free. False if they do not
    /// suffice.
    fn make_room(&self, cost: u64, next: NextUse) -> bool {
        let mut state = lock(&self.state);
        let over = state.planner.bytes().saturating_add(cost).saturating_sub(self.capacity);
        if over == 0 {
            return true;
        }
        let Some(evicted) = state.planner.evict(over, next) else { return false };
        state.stats.evicted += evicted.len() as u64;
        drop(state);
        // Memory is freed without the lock.
        drop(evicted);
        true
    }

    /// An empty block that is paid for. `None` where another worker was faster, or still reads
    /// what has left.
    fn reserve(&self, cost: u64, form: PayloadForm) -> Option<Block> {
        let add = |live: u64| live.checked_add(cost).filter(|live| *live <= self.capacity);
        self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Block { bytes: Vec::new(), form, cost, live: Arc::clone(&self.live) })
    }

    pub(crate) fn stats(&self) -> LevelStats {
        let state = lock(&self.state);
        let entries = state.planner.len() as u64;
        let bytes = self.live.load(Ordering::Relaxed);
        LevelStats { entries, bytes, ..state.stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: PayloadForm = (SampleFormat::RawU8, (20, 5));

    #[test]
    fn the_bound_holds_while_evicted_bytes_are_read() {
        let cost = ENTRY_BYTES + 100;
        let memory = Memory::new(2 * cost);
        memory.insert(1, &[1; 100], FORM, Some(10));
        memory.insert(2, &[2; 100], FORM, Some(20));
        let held = memory.get(2, Some(90)).unwrap();
        // Sample 2 goes, but its bytes are still there.
        memory.insert(3, &[3; 100], FORM, Some(15));
        assert!(!memory.contains(2) && !memory.contains(3));
        assert_eq!((held.bytes(), held.form()), (&[2; 100][..], FORM));
        assert_eq!(memory.stats().bytes, 2 * cost);
        drop(held);
        assert_eq!(memory.stats().bytes, cost);
        memory.insert(3, &[3; 100], FORM, Some(15));
        assert_eq!(memory.get(3, Some(91)).unwrap().bytes(), [3; 100]);
        assert_eq!(memory.get(1, Some(92)).unwrap().bytes(), [1; 100]);
        let LevelStats { hits, misses, inserted, refused, evicted, .. } = memory.stats();
        assert_eq!((hits, misses, inserted, refused, evicted), (3, 0, 3, 1, 1));
    }

    #[test]
    fn what_does_not_fit_at_all_is_refused() {
        let memory = Memory::new(ENTRY_BYTES + 9);
        memory.insert(1, &[1; 10], FORM, Some(1));
        assert!(memory.get(1, Some(2)).is_none());
        memory.insert(1, &[1; 9], FORM, Some(1));
        assert!(memory.get(1, Some(2)).is_some());
        assert_eq!(memory.stats().bytes, ENTRY_BYTES + 9);
    }

    #[test]
    fn an_order_without_a_next_use_keeps_what_came_first() {
        let memory = Memory::new(2 * ENTRY_BYTES + 2);
        for sample in 0..5 {
            memory.insert(sample, &[0], FORM, None);
        }
        assert!(memory.contains(0) && memory.contains(1));
        assert_eq!((memory.stats().entries, memory.stats().refused), (2, 3));
    }

    #[test]
    fn an_entry_replaces_itself() {
        let memory = Memory::new(3 * ENTRY_BYTES);
        memory.insert(7, &[1; 10], FORM, None);
        memory.insert(7, &[2; 20], FORM, None);
        assert_eq!(memory.get(7, None).unwrap().bytes(), [2; 20]);
        assert_eq!((memory.stats().bytes, memory.stats().entries), (ENTRY_BYTES + 20, 1));
    }
}
