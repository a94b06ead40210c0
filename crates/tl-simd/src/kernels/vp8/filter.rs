//! The loop filters: RFC 6386, section 15.

mod definition;
mod vectors;

use super::PlanesMut;
use crate::Level;
use crate::vector::dispatch;
use std::ops::Range;

/// The filter of a macroblock. All are zero without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The largest step across an edge between blocks that is filtered: twice the level and the
    /// interior limit. 4 more across an edge between macroblocks. 0: the macroblock is not filtered.
    pub limit: u8,
    /// The largest step between neighbours on one side of a filtered edge.
    pub interior: u8,
    /// Steps between neighbours above this are high variance.
    pub high_variance: u8,
    /// Whether the edges between the macroblock's blocks are filtered.
    pub inner: bool,
}

/// The filter of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Luma only, two samples at each edge.
    Simple,
    /// All planes, up to six samples at each edge.
    Normal,
}

/// The limit is larger by this at edges between macroblocks.
const OUTER: u8 = 4;

/// Filters macroblocks `columns` of macroblock row `row` of `planes` in place.
///
/// Column 0 has no edge to its left and row 0 none above, so that the planes begin either with the
/// image or with a macroblock that is not needed. Up to 3 rows of samples above and 3 columns to
/// the left are changed as well, so the rows above must be filtered before.
/// With [`FilterKind::Normal`] every sample depends on all macroblocks above and to the left.
///
/// # Panics
///
/// If `columns` leave `filters` or the planes are too small for them.
pub fn filter(
    level: Level,
    kind: FilterKind,
    filters: &[Filter],
    columns: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    assert!(columns.start <= columns.end && columns.end <= filters.len(), "columns with filters");
    planes.check(columns.end, row);
    dispatch!(
        level,
        scalar => definition::filter(kind, filters, columns, planes, row),
        simd => vectors::filter(simd, kind, filters, columns, planes, row),
    );
}
