//! Samples that share stored bytes.

use super::Oddity;
use crate::sample::SampleSource;

/// Overlaps reported by number; a file full of them would repeat itself.
const MAX_REPORTED: usize = 100;

/// The stored extent of a sample.
#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    end: u64,
    index: u64,
}

/// Pairs of neighbours, in the order of their bytes, that overlap. The first sample of `source` has
/// the number `start`. Entries that cannot be read are left out: they are damage, which is reported
/// as such.
pub(super) fn find(source: &dyn SampleSource, start: u64) -> Vec<Oddity> {
    let extents = || (0..source.sample_count()).filter_map(|index| extent(source, index));
    // Writers store samples one after the other, which takes no memory to see.
    let mut end = 0;
    let in_order = extents().all(|extent| {
        let follows = extent.offset >= end;
        end = extent.end;
        follows
    });
    if in_order {
        return Vec::new();
    }
    let mut sorted: Vec<Extent> = extents().collect();
    sorted.sort_unstable_by_key(|extent| (extent.offset, extent.index));
    let mut longest: Option<Extent> = None;
    let mut found = Vec::new();
    for extent in sorted {
        if let Some(first) = longest.filter(|first| extent.offset < first.end) {
            let offset = extent.offset;
            let first = start + first.index;
            let second = start + extent.index;
            found.push(Oddity::Overlap { first, second, offset });
            if found.len() == MAX_REPORTED {
                break;
            }
        }
        if longest.is_none_or(|longest| extent.end > longest.end) {
            longest = Some(extent);
        }
    }
    found
}

fn extent(source: &dyn SampleSource, index: u64) -> Option<Extent> {
    let entry = source.entry(index).ok()?;
    // An empty sample shares nothing, wherever it points.
    let end = entry.offset.checked_add(entry.stored_bytes).filter(|&end| end > entry.offset)?;
    Some(Extent { offset: entry.offset, end, index })
}
