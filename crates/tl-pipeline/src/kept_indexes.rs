//! Row indexes of JPEG files that have none: made when a file is decoded first, and kept for a device.

use std::collections::HashMap;

use tl_handoff::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock};

/// Maps that are locked one by one.
const PARTS: usize = 64;

/// Bytes of a map's entry besides the index.
const ENTRY_BYTES: u64 = 64;

/// The indexes, by the samples' numbers in the data set.
#[derive(Debug)]
pub(crate) struct KeptIndexes {
    limit: u64,
    used: AtomicU64,
    /// Whether an index was refused for want of room.
    is_full: AtomicBool,
    parts: Vec<Mutex<Part>>,
}

/// Indexes by sample; `None` for files that can have none.
type Part = HashMap<u64, Option<Arc<[u8]>>>;

/// The knowledge of a sample.
pub(crate) enum Kept {
    /// Its index.
    Index(Arc<[u8]>),
    /// It has none, or the memory is full.
    Nothing,
    /// Nothing yet: an index is wanted.
    Unknown,
}

impl KeptIndexes {
    /// Room for indexes of so many bytes.
    pub(crate) fn new(limit: u64) -> Self {
        let parts = std::iter::repeat_with(Mutex::default).take(PARTS).collect();
        Self { limit, used: AtomicU64::new(0), is_full: AtomicBool::new(limit == 0), parts }
    }

    pub(crate) fn find(&self, sample: u64) -> Kept {
        let has_room = !self.is_full.load(Ordering::Relaxed);
        match lock(self.part(sample)).get(&sample) {
            Some(Some(index)) => Kept::Index(Arc::clone(index)),
            None if has_room => Kept::Unknown,
            Some(None) | None => Kept::Nothing,
        }
    }

    /// Keeps the index of a sample, or that it can have none.
    pub(crate) fn keep(&self, sample: u64, index: Option<Arc<[u8]>>) {
        let bytes = index.as_ref().map_or(0, |index| index.len()) as u64 + ENTRY_BYTES;
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
            lock(self.part(sample)).insert(sample, index);
        } else {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    fn part(&self, sample: u64) -> &Mutex<Part> {
        // Neighbours are read at the same time.
        let part = sample % PARTS as u64;
        &self.parts[usize::try_from(part).expect("below the number of parts")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_kept_as_long_as_there_is_room() {
        let kept = KeptIndexes::new(3 * (ENTRY_BYTES + 100) + 50);
        for sample in 0..3 {
            assert!(matches!(kept.find(sample), Kept::Unknown));
            kept.keep(sample, Some(Arc::new([sample.to_le_bytes()[0]; 100])));
        }
        kept.keep(3, Some(Arc::new([3; 100])));
        kept.keep(4, None);
        let Kept::Index(index) = kept.find(2) else { panic!("it was kept") };
        assert_eq!(*index, [2; 100]);
        assert!(matches!(kept.find(3), Kept::Nothing));
        assert_eq!(kept.used.into_inner(), 3 * (ENTRY_BYTES + 100));
    }

    #[test]
    fn files_that_can_have_none_are_asked_once() {
        let kept = KeptIndexes::new(1 << 20);
        kept.keep(7, None);
        assert!(matches!(kept.find(7), Kept::Nothing));
        assert!(matches!(kept.find(8), Kept::Unknown));
    }
}
