//! Eviction from a full cache: the entry that is needed last.
//!
//! The order is known in advance, so the optimal choice is possible (Belady, "A study of
//! replacement algorithms for a virtual-storage computer", 1966): the entry whose next use is
//! furthest away goes, and that may be the newcomer. The planner does not know the content of
//! entries, which its owner keeps.

use std::collections::{BinaryHeap, HashMap};

/// The next use of an entry, on the owner's clock; a larger value is later. `None` if it is not
/// known: such entries stay, and such newcomers replace nothing.
pub(crate) type NextUse = Option<u64>;

/// Entries by sample, with what it takes to find the one that is needed last.
#[derive(Debug)]
pub(crate) struct Planner<V> {
    slots: HashMap<u64, Slot<V>>,
    /// Next use and sample of every entry that has one, and stale items of earlier uses, which
    /// differ from the slot.
    queue: BinaryHeap<(u64, u64)>,
    bytes: u64,
}

/// The slot of an entry.
#[derive(Debug)]
pub(crate) struct Slot<V> {
    pub(crate) value: V,
    pub(crate) bytes: u64,
    next: NextUse,
}

/// The stale items, beyond the number of entries, at which the queue is rebuilt.
const STALE: usize = 1024;

impl<V> Planner<V> {
    pub(crate) fn new() -> Self {
        Self { slots: HashMap::new(), queue: BinaryHeap::new(), bytes: 0 }
    }

    /// Bytes of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn contains(&self, sample: u64) -> bool {
        self.slots.contains_key(&sample)
    }

    /// The entry of `sample`, which is used now and `next` time then.
    pub(crate) fn touch(&mut self, sample: u64, next: NextUse) -> Option<&V> {
        let slot = self.slots.get_mut(&sample)?;
        if slot.next != next {
            slot.next = next;
            self.queue.extend(next.map(|next| (next, sample)));
            self.compact();
        }
        self.slots.get(&sample).map(|slot| &slot.value)
    }

    /// Adds an entry, and returns the one that it replaces.
    pub(crate) fn insert(
        &mut self,
        sample: u64,
        value: V,
        bytes: u64,
        next: NextUse,
    ) -> Option<Slot<V>> {
        let old = self.slots.insert(sample, Slot { value, bytes, next });
        self.bytes = self.bytes - old.as_ref().map_or(0, |slot| slot.bytes) + bytes;
        self.queue.extend(next.map(|next| (next, sample)));
        self.compact();
        old
    }

    /// True if an entry of average size would be stored within `capacity` bytes.
    pub(crate) fn may_take(&mut self, capacity: u64, next: NextUse) -> bool {
        let average = self.bytes / (self.slots.len() as u64).max(1);
        self.bytes.saturating_add(average) <= capacity
            || next.is_some_and(|next| self.last().is_some_and(|(last, _)| last > next))
    }

    pub(crate) fn remove(&mut self, sample: u64) -> Option<Slot<V>> {
        let slot = self.slots.remove(&sample)?;
        self.bytes -= slot.bytes;
        Some(slot)
    }

    /// Removes entries of at least `bytes` in all, the last needed first, all of them needed later
    /// than `next`. Removes none if they do not suffice.
    pub(crate) fn evict(&mut self, bytes: u64, next: NextUse) -> Option<Vec<(u64, Slot<V>)>> {
        let mut items = Vec::new();
        let mut found = 0u64;
        while found < bytes {
            let Some(item) = self.last().filter(|item| next.is_some_and(|next| item.0 > next))
            else {
                self.queue.extend(items);
                return None;
            };
            self.queue.pop();
            // The same use can be queued twice, when an entry left and came back.
            if !items.contains(&item) {
                found = found.saturating_add(self.slots.get(&item.1).map_or(0, |slot| slot.bytes));
                items.push(item);
            }
        }
        Some(items.into_iter().filter_map(|(_, s)| self.remove(s).map(|slot| (s, slot))).collect())
    }

    /// The use that is furthest away, with stale ones before it dropped from the queue.
    fn last(&mut self) -> Option<(u64, u64)> {
        loop {
            let &(next, sample) = self.queue.peek()?;
            if self.slots.get(&sample).is_some_and(|slot| slot.next == Some(next)) {
                return Some((next, sample));
            }
            self.queue.pop();
        }
    }

    fn compact(&mut self) {
        if self.queue.len() > 2 * self.slots.len() + STALE {
            let live = self.slots.iter().filter_map(|(&s, slot)| slot.next.map(|next| (next, s)));
            self.queue = live.collect();
        }
    }
}

#[cfg(test)]
mod tests;
