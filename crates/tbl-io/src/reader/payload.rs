//! Reading one sample's bytes: extent, decompression, checksums.

use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::v2::Codec;
use tbl_format::{FormatError, v2};

use super::entry::IndexEntry;
use super::{Damage, TblFile, Verify};
use crate::codec::{self, Dictionary};
use crate::error::ReadError;

impl TblFile {
    /// Reads and checks sample `index`. Compressed bytes also go to `block`; the result says whether
    /// there are any.
    pub(super) fn read_sample(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: Option<&mut Vec<u8>>,
    ) -> Result<Option<Codec>, ReadError> {
        self.read_checked(index, bytes, block).map_err(|error| self.of_sample(index, error))
    }

    /// The bytes of sample `index` in the file's mapping, unless they are compressed.
    pub(super) fn view_sample(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        let view = self.payload_entry(index).and_then(|entry| {
            if entry.is_compressed() {
                return Ok(None);
            }
            self.views.view(&self.source, entry.offset, u64::from(entry.stored_bytes))
        });
        view.map_err(|error| self.of_sample(index, error))
    }

    /// Makes the sample of its stored bytes.
    pub(super) fn unpack_sample(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let unpacked = self.payload_entry(index).and_then(|entry| {
            let offset = entry.offset;
            let expected = u64::from(entry.stored_bytes);
            if bytes.len() as u64 != expected {
                let location = self.source.location().clone();
                return Err(ReadError::ChangedWhileOpen { location, offset, expected });
            }
            if let Some(codec) = entry.codec {
                let block_bytes = bytes.len();
                let sample_bytes = self.make_room(&entry, bytes)?;
                bytes.copy_within(..block_bytes, sample_bytes);
                self.decompress(&entry, codec, bytes, sample_bytes, None)?;
            }
            self.verify_sample(&entry, index, bytes)
        });
        unpacked.map_err(|error| self.of_sample(index, error))
    }

    fn read_checked(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: Option<&mut Vec<u8>>,
    ) -> Result<Option<Codec>, ReadError> {
        let entry = self.payload_entry(index)?;
        if let Some(codec) = entry.codec {
            let sample_bytes = self.make_room(&entry, bytes)?;
            self.source.read_exact_at(entry.offset, &mut bytes[sample_bytes..])?;
            self.decompress(&entry, codec, bytes, sample_bytes, block)?;
        } else {
            self.source.read_range_into(entry.offset, u64::from(entry.stored_bytes), bytes)?;
        }
        self.verify_sample(&entry, index, bytes)?;
        Ok(entry.codec)
    }

    /// Says which sample an error is about, unless it says so.
    pub(super) fn of_sample(&self, index: u64, error: ReadError) -> ReadError {
        match error.sample_index() {
            Some(_) => error,
            None => error.for_sample(index, self.key_for_error(index).as_deref()),
        }
    }

    /// Entry `index` with its payload known to lie inside the file and below the size limit.
    pub(super) fn payload_entry(&self, index: u64) -> Result<IndexEntry, ReadError> {
        let entry = self.index_entry(index)?;
        self.check_extent(index, &entry)?;
        let most = u64::from(entry.bytes.max(entry.stored_bytes));
        self.options.limits.check_sample_bytes(self.source.location(), most)?;
        // A sample whose name `entry` refuses has no label either, so its bytes are refused too.
        if self.options.damage == Damage::Refuse {
            self.metadata.check_name(index)?;
        }
        Ok(entry)
    }

    /// Checks that the payload of entry `index` lies between the index and the end of the file.
    pub(super) fn check_extent(&self, index: u64, entry: &IndexEntry) -> Result<(), ReadError> {
        v2::payload_range(entry.offset, entry.stored_bytes, self.index_end, self.source.len())
            .map_err(|defect| self.format_error(self.entry_offset(index), defect))?;
        Ok(())
    }

    /// Resizes `bytes` so that it holds a compressed sample followed by its compressed bytes, and
    /// returns where these start. They share the caller's buffer, so that reading compressed samples
    /// allocates nothing further; index entry and limit bound both.
    fn make_room(&self, entry: &IndexEntry, bytes: &mut Vec<u8>) -> Result<usize, ReadError> {
        let need = u64::from(entry.bytes) + u64::from(entry.stored_bytes);
        let capacity = bytes.capacity() as u64;
        let no_room = || ReadError::Limit {
            location: self.source.location().clone(),
            what: "bytes to hold in memory",
            limit: capacity,
            need,
        };
        let sample_bytes = usize::try_from(entry.bytes).map_err(|_| no_room())?;
        let total = usize::try_from(need).map_err(|_| no_room())?;
        bytes.try_reserve(total.saturating_sub(bytes.len())).map_err(|_| no_room())?;
        bytes.resize(total, 0);
        Ok(sample_bytes)
    }

    /// Decompresses what stands in `bytes` from `sample_bytes` on to the bytes before it.
    fn decompress(
        &self,
        entry: &IndexEntry,
        codec: Codec,
        bytes: &mut Vec<u8>,
        sample_bytes: usize,
        copy: Option<&mut Vec<u8>>,
    ) -> Result<(), ReadError> {
        let (sample, block) = bytes.split_at_mut(sample_bytes);
        let dictionary = if codec == Codec::Zstd && codec::dictionary_of(block).is_some() {
            self.dictionary()?
        } else {
            None
        };
        codec::decompress(codec, dictionary, block, sample)
            .map_err(|defect| self.format_error(entry.offset, defect))?;
        if let Some(copy) = copy {
            copy.clear();
            copy.extend_from_slice(block);
        }
        bytes.truncate(sample_bytes);
        Ok(())
    }

    /// The dictionary of the file's Zstandard frames, if it has one.
    pub(crate) fn dictionary(&self) -> Result<Option<&Dictionary>, ReadError> {
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(dictionary.as_ref());
        }
        let read = self.metadata.dictionary()?.map(Dictionary::new);
        Ok(self.dictionary.get_or_init(|| read).as_ref())
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
        self.metadata.key_and_label(index, false).map_or(None, |(key, _)| key)
    }
}
