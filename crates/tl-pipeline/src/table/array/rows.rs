//! Rows of numbers in their own byte order: those in a file, and those of a block in memory.

use tbl_io::{Mapped, Source};
use tl_handoff::sync::Arc;

use crate::error::TableError;
use crate::table::RowValues;
use crate::table::number::from_little_endian;

/// The numbers of a row as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) row_bytes: u64,
    pub(super) number_bytes: usize,
    pub(super) is_big_endian: bool,
    pub(super) is_bool: bool,
}

impl Numbers {
    /// The numbers of a stored row as batches have them.
    fn convert(&self, row: &mut [u8]) {
        if self.is_big_endian {
            row.chunks_exact_mut(self.number_bytes).for_each(<[u8]>::reverse);
        }
        from_little_endian(row, self.number_bytes);
        if self.is_bool {
            row.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }

    /// The offset of a row after `front`.
    fn offset(&self, front: u64, row: u64) -> Option<u64> {
        row.checked_mul(self.row_bytes).and_then(|start| start.checked_add(front))
    }
}

/// The rows of an array, where they lie.
pub(super) struct StoredRows {
    pub(super) source: Source,
    pub(super) mapped: Option<Arc<Mapped>>,
    pub(super) numbers: Numbers,
    pub(super) offset: u64,
    pub(super) count: u64,
}

impl RowValues for StoredRows {
    fn kept_bytes(&self) -> u64 {
        0
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let row_bytes = self.numbers.row_bytes;
        let is_row = row < self.count && out.len() as u64 == row_bytes;
        let start = self.numbers.offset(self.offset, row).filter(|_| is_row);
        let start = start.ok_or(TableError::OutOfRange { what: "row", number: row })?;
        match self.mapped.as_ref().and_then(|mapped| mapped.lend(start, row_bytes)) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => self.source.read_exact_at(start, out)?,
        }
        self.numbers.convert(out);
        Ok(())
    }
}

/// Rows in memory, after `front` other bytes.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) front: u64,
    pub(super) numbers: Numbers,
}

impl RowValues for Block {
    fn kept_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let start =
            self.numbers.offset(self.front, row).and_then(|start| usize::try_from(start).ok());
        let bytes = start.and_then(|start| self.bytes.get(start..)?.get(..out.len()));
        let bytes = bytes.filter(|bytes| bytes.len() as u64 == self.numbers.row_bytes);
        out.copy_from_slice(bytes.ok_or(TableError::OutOfRange { what: "row", number: row })?);
        self.numbers.convert(out);
        Ok(())
    }
}
