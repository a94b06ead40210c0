//! The tables of the last images. Most photographs contain their own tables, but the standard ones
//! and those of an encoder's fixed set are used repeatedly.

use tl_simd::Level;

use super::Tables;
use crate::jpeg::scan::HuffmanSpec;

/// Pairs of tables that are kept: twice what a scan can use.
const CAPACITY: usize = 8;

/// Tables by the bytes they were built from.
#[derive(Debug, Default)]
pub(in crate::jpeg) struct TableCache {
    kept: Vec<Kept>,
    /// Counts look-ups, to tell which tables were used last.
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    dc: Content,
    ac: Content,
    tables: Box<Tables>,
    used: u64,
}

/// A table as it lay in its file.
#[derive(Debug)]
struct Content {
    counts: [u8; 16],
    values: [u8; 256],
    len: usize,
}

impl Content {
    fn is(&self, spec: &HuffmanSpec<'_>) -> bool {
        self.counts == *spec.counts && self.values[..self.len] == *spec.values
    }

    fn of(spec: &HuffmanSpec<'_>) -> Option<Self> {
        let mut values = [0; 256];
        let len = spec.values.len();
        values.get_mut(..len)?.copy_from_slice(spec.values);
        Some(Self { counts: *spec.counts, values, len })
    }
}

impl TableCache {
    /// The number under which [`TableCache::get`] has the tables, until others are looked up that
    /// a scan cannot use as well; `None` for codes that are not allowed.
    pub(in crate::jpeg) fn find(
        &mut self,
        level: Level,
        dc: &HuffmanSpec<'_>,
        ac: &HuffmanSpec<'_>,
    ) -> Option<usize> {
        self.clock += 1;
        if let Some(index) = self.kept.iter().position(|kept| kept.dc.is(dc) && kept.ac.is(ac)) {
            self.kept[index].used = self.clock;
            return Some(index);
        }
        let dc_content = Content::of(dc)?;
        let ac_content = Content::of(ac)?;
        let oldest = (0..self.kept.len()).min_by_key(|&index| self.kept[index].used);
        let (index, mut tables) = match oldest {
            Some(oldest) if self.kept.len() == CAPACITY => {
                (oldest, self.kept.swap_remove(oldest).tables)
            }
            _ => (self.kept.len(), Tables::empty()),
        };
        if !tables.build(level, dc, ac) {
            return None;
        }
        self.kept.push(Kept { dc: dc_content, ac: ac_content, tables, used: self.clock });
        let last = self.kept.len() - 1;
        self.kept.swap(index, last);
        Some(index)
    }

    pub(in crate::jpeg) fn get(&self, index: usize) -> &Tables {
        &self.kept[index].tables
    }
}
