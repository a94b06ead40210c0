//! Numbers of an IDV file where they lie.

use std::ops::Range;

use idv_format::{Block, Codec, Column};
use tbl_io::{Mapped, ReadError};
use tl_handoff::sync::Arc;

use super::{IdvBytes, is_plain, stored_number};
use crate::error::TableError;
use crate::table::RowValues;
use crate::table::number::from_little_endian;

/// An uncompressed column of numbers, all of whose blocks have the size that their rows take.
pub(super) struct Direct {
    mapped: Arc<Mapped>,
    blocks: Arc<[Block]>,
    rows_per_block: u64,
    row_count: u64,
    number_bytes: usize,
}

impl Direct {
    /// `None` for what has to be decoded, or is damaged, which decoding says.
    pub(super) fn of(
        column: &Column<'_, IdvBytes>,
        mapped: &Arc<Mapped>,
        blocks: &Arc<[Block]>,
    ) -> Option<Self> {
        let Codec::Item(item) = column.codec() else { return None };
        let number_bytes = stored_number(item)?.bytes();
        let fits = |(block, place): (&Block, u64)| {
            let Range { start, end } = column.block_rows(place);
            let bytes = column.codec().block_bytes(end - start);
            bytes == Some(block.bytes.into()) && block.stored_bytes == block.bytes
        };
        let all_fit = blocks.iter().zip(0..).all(fits);
        (is_plain(column) && all_fit).then(|| Self {
            mapped: Arc::clone(mapped),
            blocks: Arc::clone(blocks),
            rows_per_block: column.entry().rows_per_block.max(1),
            row_count: column.row_count(),
            number_bytes,
        })
    }

    /// The offset of a row's number.
    fn place(&self, row: u64) -> Option<u64> {
        let block = usize::try_from(row / self.rows_per_block).ok()?;
        let block = self.blocks.get(block).filter(|_| row < self.row_count)?;
        // Within the block, which is as large as its rows.
        Some(block.offset + row % self.rows_per_block * self.number_bytes as u64)
    }
}

impl RowValues for Direct {
    fn kept_bytes(&self) -> u64 {
        0
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let place = self.place(row).filter(|_| out.len() == self.number_bytes);
        copy(&self.mapped, place, self.number_bytes, out)
    }
}

/// An uncompressed block of dense vectors of numbers, all of one length.
pub(super) struct DirectVectors {
    mapped: Arc<Mapped>,
    /// The range of the items.
    items: Range<u64>,
    row_bytes: u64,
    number_bytes: usize,
}

impl DirectVectors {
    /// `None` for what has to be decoded, or is damaged, which decoding says.
    pub(super) fn of(
        column: &Column<'_, IdvBytes>,
        mapped: &Arc<Mapped>,
        number: u64,
    ) -> Option<Self> {
        const COUNT: u64 = size_of::<i32>() as u64;
        const DENSE: [u8; size_of::<i32>()] = (-1i32).to_le_bytes();
        let Codec::Vector(vector) = column.codec() else { return None };
        let length = vector.length().filter(|_| is_plain(column))?;
        let number_bytes = stored_number(&vector.item)?.bytes();
        let row_bytes = u64::from(length).checked_mul(number_bytes as u64)?;
        let block = column.blocks().get(usize::try_from(number).ok()?)?;
        let rows = column.block_rows(number);
        let rows = rows.end.checked_sub(rows.start)?;
        // The number of rows, their length, a count for each, and the number of indices.
        let head = rows.checked_mul(COUNT)?.checked_add(3 * COUNT)?;
        let bytes = rows.checked_mul(row_bytes)?.checked_add(head)?;
        if bytes != u64::from(block.bytes) || block.stored_bytes != block.bytes {
            return None;
        }
        let words = mapped.lend(block.offset, head)?.as_chunks::<{ size_of::<i32>() }>().0;
        let ([count, common, counts @ .., indices], true) = (words, words.len() > 2) else {
            return None;
        };
        let is_dense = u64::from(u32::from_le_bytes(*count)) == rows
            && u32::from_le_bytes(*common) == length
            && counts.iter().all(|count| *count == DENSE)
            && *indices == [0; 4];
        let items = block.offset + head..block.offset + bytes;
        is_dense.then(|| Self { mapped: Arc::clone(mapped), items, row_bytes, number_bytes })
    }
}

impl RowValues for DirectVectors {
    fn kept_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let start = row.checked_mul(self.row_bytes).and_then(|at| at.checked_add(self.items.start));
        let fits = out.len() as u64 == self.row_bytes;
        let place = start.filter(|&start| fits && start < self.items.end);
        copy(&self.mapped, place, self.number_bytes, out)
    }
}

/// Copies numbers to `out`, as many as fit in.
fn copy(
    mapped: &Mapped,
    place: Option<u64>,
    number_bytes: usize,
    out: &mut [u8],
) -> Result<(), TableError> {
    let found = place.and_then(|place| mapped.lend(place, out.len() as u64));
    let found = found.ok_or_else(|| {
        let offset = place.unwrap_or(u64::MAX);
        let expected = out.len() as u64;
        ReadError::ChangedWhileOpen { location: mapped.location().clone(), offset, expected }
    })?;
    out.copy_from_slice(found);
    from_little_endian(out, number_bytes);
    Ok(())
}
