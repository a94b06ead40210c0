//! Reading one sample's bytes: extent, decompression, checksums.

use lz4::block::decompress_to_buffer;
use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::{FormatError, v2};

use super::entry::IndexEntry;
use super::{TblFile, Verify};
use crate::error::ReadError;

impl TblFile {
    /// Reads and checks sample `index`. An LZ4 block also goes to `block`; the result says whether
    /// there was one.
    pub(super) fn read_sample(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: Option<&mut Vec<u8>>,
    ) -> Result<bool, ReadError> {
        self.read_checked(index, bytes, block).map_err(|error| match error.sample_index() {
            Some(_) => error,
            None => error.for_sample(index, self.key_for_error(index).as_deref()),
        })
    }

    fn read_checked(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: Option<&mut Vec<u8>>,
    ) -> Result<bool, ReadError> {
        let entry = self.payload_entry(index)?;
        if entry.is_compressed() {
            self.decompress(&entry, bytes, block)?;
        } else {
            self.source.read_range_into(entry.offset, u64::from(entry.stored_bytes), bytes)?;
        }
        self.verify_sample(&entry, index, bytes)?;
        Ok(entry.is_compressed())
    }

    /// Entry `index` with its payload known to lie inside the file and below the size limit.
    pub(super) fn payload_entry(&self, index: u64) -> Result<IndexEntry, ReadError> {
        let entry = self.index_entry(index)?;
        v2::payload_range(entry.offset, entry.stored_bytes, self.index_end, self.source.len())
            .map_err(|defect| self.format_error(self.entry_offset(index), defect))?;
        let most = u64::from(entry.bytes.max(entry.stored_bytes));
        self.options.limits.check_sample_bytes(self.source.path(), most)?;
        Ok(entry)
    }

    fn decompress(
        &self,
        entry: &IndexEntry,
        bytes: &mut Vec<u8>,
        copy: Option<&mut Vec<u8>>,
    ) -> Result<(), ReadError> {
        let defect = |defect| self.format_error(entry.offset, defect);
        let (stored_bytes, expected) = (entry.stored_bytes, entry.bytes);
        let size_error = || defect(FormatError::Lz4Size { stored_bytes, bytes: expected });
        // LZ4 counts in `i32`.
        let block_bytes = i32::try_from(stored_bytes)
            .ok()
            .and_then(|size| usize::try_from(size).ok())
            .ok_or_else(size_error)?;
        let size = i32::try_from(expected).map_err(|_| size_error())?;
        let sample_bytes = usize::try_from(expected).map_err(|_| size_error())?;

        // The sample and behind it the block share the caller's buffer, so that reading compressed
        // samples allocates nothing of its own. Index entry and limit bound both.
        let total = sample_bytes.checked_add(block_bytes).ok_or_else(size_error)?;
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

    fn verify_sample(&self, entry: &IndexEntry, index: u64, bytes: &[u8]) -> Result<(), ReadError> {
        if self.options.verify == Verify::Nothing {
            return Ok(());
        }
        let defect = |defect| self.format_error(entry.offset, defect);
        if let Some(stored) = entry.checksum {
            let computed = payload_crc16(bytes);
            if stored != computed {
                return Err(defect(FormatError::PayloadChecksum { stored, computed }));
            }
        }
        if self.options.verify == Verify::All
            && let Some(stored) = self.metadata.sample_checksum(index)?
        {
            let computed = crc32c(bytes);
            if stored != computed {
                return Err(defect(FormatError::Crc32c { what: "sample", stored, computed }));
            }
        }
        Ok(())
    }

    /// The sample's name for a message about something else; the message is still of use when the
    /// name cannot be read.
    fn key_for_error(&self, index: u64) -> Option<Vec<u8>> {
        self.metadata.key_and_label(index).map_or(None, |(key, _)| key)
    }
}
