//! A part of a file that is looked into often: in memory when it is small or the file is an object
//! of a store, mapped otherwise.

use tbl_format::checksum::crc32c;

use crate::error::ReadError;
use crate::mmap::Mapped;
use crate::source::Source;

/// Up to this size a region is read at once: the 10 000 index entries that fit are cheaper to copy
/// than to map, and a data set of many small shards does not use up its mappings.
const MEMORY_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(super) enum Region {
    Memory { offset: u64, bytes: Vec<u8> },
    Mapped(Mapped),
}

impl Region {
    /// The `len` bytes of `source` from `offset` on.
    pub(super) fn open(source: &Source, offset: u64, len: u64) -> Result<Self, ReadError> {
        if len > MEMORY_BYTES && source.is_mappable() {
            return Ok(Self::Mapped(Mapped::new(source, offset, len)?));
        }
        let mut bytes = Vec::new();
        source.read_range_into(offset, len, &mut bytes)?;
        Ok(Self::Memory { offset, bytes })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Memory { bytes, .. } => bytes.len() as u64,
            Self::Mapped(mapped) => mapped.len(),
        }
    }

    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Memory { offset, .. } => *offset,
            Self::Mapped(mapped) => mapped.offset(),
        }
    }

    /// Calls `read` with `len` bytes from `offset` on, counted from the start of the file; the
    /// caller asks only for ranges inside the region.
    pub(super) fn with<R>(
        &self,
        offset: u64,
        len: u64,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, ReadError> {
        match self {
            Self::Memory { offset: base, bytes } => {
                let start = offset.checked_sub(*base).and_then(|at| usize::try_from(at).ok());
                let len = usize::try_from(len).ok();
                let range = start.zip(len).and_then(|(at, len)| bytes.get(at..)?.get(..len));
                Ok(read(range.expect("a range inside the region")))
            }
            Self::Mapped(mapped) => mapped.with(offset, len, read),
        }
    }

    /// CRC-32C of the whole region.
    pub(super) fn checksum(&self) -> Result<u32, ReadError> {
        self.with(self.offset(), self.len(), crc32c)
    }
}
