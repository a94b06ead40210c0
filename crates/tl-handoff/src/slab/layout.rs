//! The layout of a slab's memory.

use std::ops::Range;

use super::ALIGNMENT;
use crate::sync::Arc;

/// The fields of a row, in their order in memory: all rows' images, then all rows' masks, and so
/// on. The columns of a table follow one by one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    Images,
    Masks,
    /// Height and width of what the row's image holds, two `u32`.
    Sizes,
    Labels,
    /// The same in 32 bits.
    ShortLabels,
    Indices,
    /// One byte, 1 for a row with a sample and 0 for padding.
    Valid,
}

const FIELDS: usize = Field::Valid as usize + 1;

/// Bytes of those parts of a row that differ between loaders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowBytes {
    /// Bytes of a row's image; 0 if each image has its own size.
    pub images: usize,
    /// Bytes of a row's mask; 0 without masks.
    pub masks: usize,
}

/// The place of a field of all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Area {
    start: usize,
    row_bytes: usize,
}

impl Area {
    /// The byte range of these rows' field.
    pub(super) fn range(self, rows: Range<usize>) -> Range<usize> {
        self.start + rows.start * self.row_bytes..self.start + rows.end * self.row_bytes
    }
}

/// The sizes of a slab: `rows` rows, and where each field and each column of them lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabLayout {
    pub(super) rows: usize,
    pub(super) fields: [Area; FIELDS],
    pub(super) columns: Arc<[Area]>,
    bytes: usize,
}

impl SlabLayout {
    /// The layout of `rows` rows; `None` if its size exceeds the address space.
    pub fn new(rows: usize, row: RowBytes) -> Option<Self> {
        const NUMBER: usize = size_of::<u64>();
        let sizes = size_of::<[u32; 2]>();
        let row_bytes = [row.images, row.masks, sizes, NUMBER, size_of::<i32>(), NUMBER, 1];
        let mut shape =
            Self { rows, fields: Default::default(), columns: Arc::default(), bytes: 0 };
        for (field, row_bytes) in row_bytes.into_iter().enumerate() {
            shape.fields[field] = shape.push(row_bytes)?;
        }
        Some(shape)
    }

    /// The same with columns of `row_bytes` bytes a row.
    pub fn with_columns(mut self, row_bytes: impl Iterator<Item = usize>) -> Option<Self> {
        let columns = row_bytes.map(|row_bytes| self.push(row_bytes));
        self.columns = columns.collect::<Option<Vec<Area>>>()?.into();
        Some(self)
    }

    /// The number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Reserves an area after all others.
    fn push(&mut self, row_bytes: usize) -> Option<Area> {
        let start = self.bytes;
        let bytes = self.rows.checked_mul(row_bytes)?.checked_next_multiple_of(ALIGNMENT)?;
        self.bytes = start.checked_add(bytes)?;
        (self.bytes <= isize::MAX.unsigned_abs()).then_some(Area { start, row_bytes })
    }

    /// Bytes of memory a slab takes, besides what its rows' extras own.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The byte range of `field` of these rows.
    pub(super) fn range(&self, field: Field, rows: Range<usize>) -> Range<usize> {
        self.fields[field as usize].range(rows)
    }
}
