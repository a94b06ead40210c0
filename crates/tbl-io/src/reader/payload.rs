//! From a sample's stored bytes to its own, checked.

use lz4::block::decompress_to_buffer;
use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::v2::EntryFlags;
use tbl_format::{FormatError, v2};

use super::{IndexEntry, TblFile, Verify};
use crate::error::ReadError;

impl TblFile {
    /// Entry `index` with its payload known to lie inside the file.
    pub(super) fn payload_entry(&self, index: u64) -> Result<IndexEntry, ReadError> {
        let entry = self.index_entry(index)?;
        let (file_bytes, index_end) = (self.source.len(), self.index_end);
        let offset = self.header.size() + index * self.header.entry_bytes();
        v2::payload_range(entry.offset, entry.stored_bytes, index_end, file_bytes)
            .map_err(|defect| self.sample_error(index, offset, defect))?;
        let (need, limit) = (u64::from(entry.bytes), self.options.max_sample_bytes);
        if need > limit {
            let path = self.source.path().to_path_buf();
            let error = ReadError::Limit { path, what: "sample bytes", limit, need };
            return Err(error.for_sample(index, self.key_for_error(index).as_deref()));
        }
        Ok(entry)
    }

    fn decompress(
        &self,
        entry: &IndexEntry,
        index: u64,
        bytes: &mut Vec<u8>,
        copy: Option<&mut Vec<u8>>,
    ) -> Result<(), ReadError> {
        let defect = |defect| self.sample_error(index, entry.offset, defect);
        let (stored_bytes, expected) = (entry.stored_bytes, entry.bytes);
        let size_error = || defect(FormatError::Lz4Size { stored_bytes, bytes: expected });
        // The sample and behind it the block share the caller's buffer, so that reading compressed
        // samples allocates nothing of its own.
        let sample_bytes = usize::try_from(expected).map_err(|_| size_error())?;
        let size = i32::try_from(expected).map_err(|_| size_error())?;
        let total = usize::try_from(stored_bytes)
            .ok()
            .filter(|&stored| i32::try_from(stored).is_ok())
            .and_then(|stored| stored.checked_add(sample_bytes))
            .ok_or_else(size_error)?;
        bytes.try_reserve(total.saturating_sub(bytes.len())).map_err(|_| ReadError::Limit {
            path: self.source.path().to_path_buf(),
            what: "bytes to hold in memory",
            limit: bytes.capacity() as u64,
            need: total as u64,
        })?;
        bytes.resize(total, 0);
        let (sample, block) = bytes.split_at_mut(sample_bytes);
        self.source.read_exact_at(entry.offset, block)?;
        let found = decompress_to_buffer(block, Some(size), sample)
            .map_err(|_| defect(FormatError::Lz4Damaged { stored_bytes }))?;
        if found != sample_bytes {
            return Err(defect(FormatError::Lz4Short { expected, found: found as u64 }));
        }
        if let Some(copy) = copy {
            copy.clear();
            copy.extend_from_slice(block);
        }
        bytes.truncate(sample_bytes);
        Ok(())
    }

    /// Reads and checks sample `index`; a compressed one's block also goes to `block`. Returns
    /// whether it is a compressed one.
    pub(super) fn read_sample(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: Option<&mut Vec<u8>>,
    ) -> Result<bool, ReadError> {
        let entry = self.payload_entry(index)?;
        let is_compressed = entry.flags.contains(EntryFlags::COMPRESSED);
        let read = if is_compressed {
            self.decompress(&entry, index, bytes, block)
        } else {
            self.source.read_range_into(entry.offset, u64::from(entry.stored_bytes), bytes)
        };
        read.map_err(|error| {
            let key = self.key_for_error(index);
            error.for_sample(index, key.as_deref())
        })?;
        self.verify_sample(&entry, index, bytes)?;
        Ok(is_compressed)
    }

    fn verify_sample(&self, entry: &IndexEntry, index: u64, bytes: &[u8]) -> Result<(), ReadError> {
        if self.options.verify == Verify::Nothing {
            return Ok(());
        }
        if let Some(stored) = entry.checksum {
            let computed = payload_crc16(bytes);
            if stored != computed {
                let defect = FormatError::PayloadChecksum { stored, computed };
                return Err(self.sample_error(index, entry.offset, defect));
            }
        }
        if self.options.verify == Verify::All
            && let Some(stored) = self.metadata.sample_checksum(index)?
        {
            let computed = crc32c(bytes);
            if stored != computed {
                let defect = FormatError::Crc32c { what: "sample", stored, computed };
                return Err(self.sample_error(index, entry.offset, defect));
            }
        }
        Ok(())
    }
}
