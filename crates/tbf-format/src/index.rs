//! The index region: two B+ trees, over ids and over timestamps, built once and never changed.
//!
//! A tree is its sorted keys, the row of each, and above them levels that hold the first key of
//! each node of the level below. A node is 16 keys, so its children need no pointers, and the
//! levels' places follow from the number of nodes.

use core::ops::Range;

use crate::aligned::align_up;
use crate::error::FormatError;
use crate::region::Region;
use crate::values::{Element, Values};

/// Keys of a node.
pub(crate) const FANOUT: usize = 16;

/// Levels above the keys: `16^8` is more than there can be nodes.
const MAX_LEVELS: usize = 8;

/// How many keys each level above `key_count` keys has, the lowest first. The highest has at most
/// one node's.
pub(crate) fn level_lens(key_count: u64) -> impl Iterator<Item = u64> {
    let fanout = FANOUT as u64;
    core::iter::successors(Some(key_count), move |&below| {
        (below > fanout).then(|| below.div_ceil(fanout))
    })
    .skip(1)
}

/// Places of the parts of a tree.
struct TreeLayout {
    keys: u64,
    rows: u64,
    levels: [(u64, u64); MAX_LEVELS],
    level_count: usize,
    end: u64,
}

impl TreeLayout {
    /// A tree at `start` over `key_count` keys of `key_bytes` bytes each.
    fn new(start: u64, key_count: u64, key_bytes: u64) -> Option<Self> {
        let keys = align_up(start)?;
        let rows = align_up(keys.checked_add(key_count.checked_mul(key_bytes)?)?)?;
        let mut end = rows.checked_add(key_count.checked_mul(4)?)?;
        let mut levels = [(0, 0); MAX_LEVELS];
        let mut level_count = 0;
        for (level, len) in levels.iter_mut().zip(level_lens(key_count)) {
            let at = align_up(end)?;
            *level = (at, len);
            level_count += 1;
            end = at.checked_add(len.checked_mul(key_bytes)?)?;
        }
        Some(Self { keys, rows, levels, level_count, end })
    }
}

/// Bytes of an index region; `None` past 64 bits.
pub(crate) fn region_bytes(node_count: u64) -> Option<u64> {
    let ids = TreeLayout::new(0, node_count, 16)?;
    Some(TreeLayout::new(ids.end, node_count, 8)?.end)
}

/// The trees of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    ids: Tree<'a, [u8; 16]>,
    timestamps: Tree<'a, u64>,
}

impl<'a> Index<'a> {
    /// The trees over `node_count` nodes in the bytes of an index region.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(region: &'a [u8], node_count: u64) -> Result<Self, FormatError> {
        let have = region.len() as u64;
        let need = region_bytes(node_count).unwrap_or(u64::MAX);
        let truncated = FormatError::Truncated { region: Region::Index, need, have };
        let trees = || {
            let ids = TreeLayout::new(0, node_count, 16)?;
            let timestamps = TreeLayout::new(ids.end, node_count, 8)?;
            Some(Self {
                ids: Tree::new(region, node_count, &ids)?,
                timestamps: Tree::new(region, node_count, &timestamps)?,
            })
        };
        trees().ok_or(truncated)
    }

    /// The tree over ids, in the order of their bytes.
    pub fn ids(&self) -> &Tree<'a, [u8; 16]> {
        &self.ids
    }

    /// The tree over timestamps.
    pub fn timestamps(&self) -> &Tree<'a, u64> {
        &self.timestamps
    }
}

/// A B+ tree: keys in order, with the row that has each. Equal keys are in the order of rows.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a, K: Element> {
    keys: Values<'a, K>,
    rows: Values<'a, u32>,
    levels: [Values<'a, K>; MAX_LEVELS],
    level_count: usize,
}

impl<'a, K: Element + Ord> Tree<'a, K> {
    fn new(region: &'a [u8], key_count: u64, layout: &TreeLayout) -> Option<Self> {
        let from = |start: u64| region.get(usize::try_from(start).ok()?..);
        let mut levels = [Values::EMPTY; MAX_LEVELS];
        let present = layout.levels.iter().take(layout.level_count);
        for (level, &(at, len)) in levels.iter_mut().zip(present) {
            *level = Values::prefix(from(at)?, len)?;
        }
        Some(Self {
            keys: Values::prefix(from(layout.keys)?, key_count)?,
            rows: Values::prefix(from(layout.rows)?, key_count)?,
            levels,
            level_count: layout.level_count,
        })
    }

    /// All keys, in order.
    pub fn keys(&self) -> Values<'a, K> {
        self.keys
    }

    /// The row of each key.
    pub fn rows(&self) -> Values<'a, u32> {
        self.rows
    }

    /// The place of the first key that is not less than `key`; the number of keys when all are.
    ///
    /// In a damaged tree the place means nothing, but it is one.
    pub fn lower_bound(&self, key: &K) -> usize {
        let mut node = 0;
        for level in self.levels.iter().take(self.level_count).rev() {
            // The first key of a child may be too large while the one before it ends below `key`,
            // so the search continues in the last child that starts below `key`.
            let below = first_not_less(*level, node, key);
            node = below.saturating_sub(1);
        }
        first_not_less(self.keys, node, key)
    }

    /// The places of the keys in `range`.
    pub fn range(&self, range: Range<K>) -> Range<usize> {
        let start = self.lower_bound(&range.start);
        start..self.lower_bound(&range.end).max(start)
    }

    /// The rows at `places`, for a range that [`range`](Self::range) returned.
    pub fn rows_at(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = u32> + use<'a, K> {
        self.rows.slice(places).unwrap_or(Values::EMPTY).iter()
    }

    /// Checks that the keys are those of `column` in order, each with its row, and that the levels
    /// hold the first keys of the nodes below.
    pub(crate) fn verify(
        &self,
        column: Values<'_, K>,
        name: &'static str,
    ) -> Result<(), FormatError> {
        let wrong = |place: usize| FormatError::IndexEntry { key: name, entry: place as u64 };
        let mut before = None;
        for (place, entry) in self.keys.iter().zip(self.rows.iter()).enumerate() {
            let (key, row) = entry;
            let in_column = usize::try_from(row).ok().and_then(|row| column.get(row));
            if in_column != Some(key) || before.is_some_and(|before| before >= entry) {
                return Err(wrong(place));
            }
            before = Some(entry);
        }
        let mut below = self.keys;
        for level in self.levels.iter().take(self.level_count) {
            for (place, key) in level.iter().enumerate() {
                if below.get(place * FANOUT) != Some(key) {
                    return Err(wrong(place));
                }
            }
            below = *level;
        }
        Ok(())
    }
}

/// The place of the first key of a node that is not less than `key`, counted from the front of the
/// level; the end of the node when all are less.
fn first_not_less<K: Element + Ord>(level: Values<'_, K>, node: usize, key: &K) -> usize {
    let start = node.saturating_mul(FANOUT).min(level.len());
    let end = start.saturating_add(FANOUT).min(level.len());
    let keys = level.slice(start..end).unwrap_or(Values::EMPTY);
    start + keys.iter().take_while(|k| k < key).count()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn levels_end_in_one_node() {
        let lens = |count| level_lens(count).collect::<Vec<_>>();
        assert_eq!(lens(0), []);
        assert_eq!(lens(16), []);
        assert_eq!(lens(17), [2]);
        assert_eq!(lens(256), [16]);
        assert_eq!(lens(257), [17, 2]);
        assert_eq!(lens(u32::MAX.into()).len(), 7);
    }

    /// Keys 0, 0, 2, 2, 4, 4, ..., where entry `i` is row `i`.
    fn tree_bytes(count: u64) -> Vec<u8> {
        let keys: Vec<u64> = (0..count).map(|i| i & !1).collect();
        let layout = TreeLayout::new(0, count, 8).unwrap();
        let mut bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        bytes.resize(usize::try_from(layout.rows).unwrap(), 0);
        bytes.extend((0..u32::try_from(count).unwrap()).flat_map(u32::to_le_bytes));
        let mut below = keys;
        for (at, _) in &layout.levels[..layout.level_count] {
            below = below.iter().step_by(FANOUT).copied().collect();
            bytes.resize(usize::try_from(*at).unwrap(), 0);
            bytes.extend(below.iter().flat_map(|key| key.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn every_key_is_found_at_its_first_place() {
        let most = if cfg!(miri) { 40 } else { 700 };
        for count in [0u64, 1, 2, 15, 16, 17, 33, 255, 256, 257, 700] {
            if count > most {
                continue;
            }
            let bytes = tree_bytes(count);
            let layout = TreeLayout::new(0, count, 8).unwrap();
            assert_eq!(layout.end, bytes.len() as u64);
            let tree = Tree::<u64>::new(&bytes, count, &layout).unwrap();
            for key in 0..count + 3 {
                let expected = (key.next_multiple_of(2)).min(count);
                assert_eq!(tree.lower_bound(&key) as u64, expected, "{key} of {count}");
            }
            let column: Vec<u8> = bytes[..usize::try_from(count * 8).unwrap()].to_vec();
            let column = Values::prefix(&column, count).unwrap();
            assert_eq!(tree.verify(column, "timestamp"), Ok(()));
            assert_eq!(tree.range(3..9), tree.lower_bound(&3)..tree.lower_bound(&9));
            let late = 9;
            let early = 3;
            assert_eq!(tree.range(late..early).len(), 0);
        }
    }

    #[test]
    fn every_changed_key_is_found_by_verification() {
        let count = if cfg!(miri) { 40 } else { 300 };
        let bytes = tree_bytes(count);
        let layout = TreeLayout::new(0, count, 8).unwrap();
        let column = Values::prefix(&bytes, count).unwrap();
        let is_padding = |at: u64| {
            let levels = layout.levels[..layout.level_count].iter();
            let mut parts = levels.map(|&(at, len)| at..at + 8 * len).collect::<Vec<_>>();
            parts.extend([0..8 * count, layout.rows..layout.rows + 4 * count]);
            !parts.iter().any(|part| part.contains(&at))
        };
        for at in (0..bytes.len()).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let tree = Tree::<u64>::new(&damaged, count, &layout).unwrap();
            let found = tree.verify(column, "timestamp").is_err();
            assert_eq!(found, !is_padding(at as u64), "byte {at}");
            for key in 0..count {
                assert!(tree.lower_bound(&key) <= bytes.len());
            }
        }
    }
}
