//! TBL version 1: a 32-byte header, 16 bytes of index per sample, then the samples.
//!
//! The version has no checksums, no compression, no dimensions and no place for names or labels.

use core::mem::size_of;
use core::ops::Range;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::FormatError;
use crate::sample_format::SampleFormat;
use crate::v2::payload_range;

/// The first 32 bytes of a version 1 file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FileHeader {
    magic: [u8; 4],
    version: U32,
    sample_count: U64,
    header_size: U32,
    reserved: [u8; 12],
}

const _: () = assert!(size_of::<FileHeader>() == FileHeader::SIZE);

impl FileHeader {
    /// The header's size in bytes.
    pub const SIZE: usize = 32;
    /// The first four bytes of a version 1 file.
    pub const MAGIC: [u8; 4] = *b"TBL\x01";
    /// The value of the version field.
    pub const VERSION: u32 = 1;
    /// The most samples whose `header_size` (header and index) still fits into 32 bits; the
    /// original reader refuses more.
    pub const MAX_SAMPLES: u64 = (u32::MAX as u64 - Self::SIZE as u64) / IndexEntry::SIZE as u64;

    /// A header for `sample_count` samples.
    ///
    /// # Errors
    /// [`FormatError::TooManySamples`] above [`MAX_SAMPLES`](Self::MAX_SAMPLES).
    pub fn new(sample_count: u64) -> Result<Self, FormatError> {
        let too_many = FormatError::TooManySamples { sample_count, limit: Self::MAX_SAMPLES };
        let index_end = index_end(sample_count).ok_or(too_many.clone())?;
        let header_size = u32::try_from(index_end).map_err(|_| too_many)?;
        Ok(Self {
            magic: Self::MAGIC,
            version: U32::new(Self::VERSION),
            sample_count: U64::new(sample_count),
            header_size: U32::new(header_size),
            reserved: [0; 12],
        })
    }

    /// The header with the application's own fields in its reserved bytes, instead of the
    /// size of header and index. The original reader refuses such files.
    #[must_use]
    pub fn with_custom_metadata(mut self, custom: CustomMetadata) -> Self {
        let [a, b, c, d, e, f, g, h] = custom.creation_timestamp.to_le_bytes();
        let [i, j, k, l] = custom.dataset_version.to_le_bytes();
        let [m, n, o, p] = custom.custom_flags.to_le_bytes();
        self.header_size = U32::from_bytes([a, b, c, d]);
        self.reserved = [e, f, g, h, i, j, k, l, m, n, o, p];
        self
    }

    /// Reads the header at the front of `bytes` and returns it with the bytes after it.
    ///
    /// The sixteen bytes after the count are not judged: the original stores the size of header
    /// and index there, other writers their own metadata (see
    /// [`custom_metadata`](Self::custom_metadata)).
    ///
    /// # Errors
    /// [`FormatError::Truncated`], [`FormatError::BadMagic`] or [`FormatError::BadVersion`].
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), FormatError> {
        let (header, rest) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: "file header",
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        if header.magic != Self::MAGIC {
            return Err(FormatError::BadMagic { found: header.magic, expected: Self::MAGIC });
        }
        if header.version != Self::VERSION {
            return Err(FormatError::BadVersion {
                found: header.version.get(),
                expected: Self::VERSION,
            });
        }
        Ok((header, rest))
    }

    /// The header as it stands in a file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(*self)
    }

    /// How many samples the file claims to have.
    pub fn sample_count(&self) -> u64 {
        self.sample_count.get()
    }

    /// The range of the index, if a file of `file_bytes` bytes has room for it.
    ///
    /// # Errors
    /// [`FormatError::IndexBeyondEnd`].
    pub fn index_range(&self, file_bytes: u64) -> Result<Range<u64>, FormatError> {
        let sample_count = self.sample_count();
        match index_end(sample_count) {
            Some(end) if end <= file_bytes => Ok(Self::SIZE as u64..end),
            _ => Err(FormatError::IndexBeyondEnd { sample_count, file_bytes }),
        }
    }

    /// The application's own header fields, when the sixteen reserved bytes hold some.
    ///
    /// Nothing in the file says what those bytes are: the size of header and index followed by
    /// zeros is the original writer's, all zeros is nothing, and anything else is custom.
    pub fn custom_metadata(&self) -> Option<CustomMetadata> {
        let size = self.header_size.get();
        let is_size = size == 0 || index_end(self.sample_count()) == Some(u64::from(size));
        if is_size && self.reserved == [0; 12] {
            return None;
        }
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.reserved;
        Some(CustomMetadata {
            creation_timestamp: u64::from(size) | u64::from(u32::from_le_bytes([a, b, c, d])) << 32,
            dataset_version: u32::from_le_bytes([e, f, g, h]),
            custom_flags: u32::from_le_bytes([i, j, k, l]),
        })
    }
}

/// The application-defined use of a version 1 header's reserved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomMetadata {
    /// The time of creation, in a unit of the application's choice (offset 16).
    pub creation_timestamp: u64,
    /// The application's version of the data set (offset 24).
    pub dataset_version: u32,
    /// The application's flags (offset 28).
    pub custom_flags: u32,
}

/// One sample's 16 bytes of index.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IndexEntry {
    offset: U64,
    stored_bytes: U32,
    format: u8,
    reserved: [u8; 3],
}

const _: () = assert!(size_of::<IndexEntry>() == IndexEntry::SIZE);

impl IndexEntry {
    /// An entry's size in bytes.
    pub const SIZE: usize = 16;
    /// The largest format code of this version.
    pub const MAX_FORMAT_CODE: u8 = SampleFormat::Tiff.code();

    /// An entry for a payload of `stored_bytes` bytes at `offset`.
    pub fn new(offset: u64, stored_bytes: u32, format: SampleFormat) -> Self {
        Self {
            offset: U64::new(offset),
            stored_bytes: U32::new(stored_bytes),
            format: format.code(),
            reserved: [0; 3],
        }
    }

    /// Takes the entry at the front of `bytes`, which are part of an index.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(bytes: &[u8]) -> Result<&Self, FormatError> {
        let (entry, _) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: "index entry",
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        Ok(entry)
    }

    /// The entry as it stands in a file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(*self)
    }

    /// The offset of the payload in the file.
    pub fn offset(&self) -> u64 {
        self.offset.get()
    }

    /// The payload's size.
    pub fn stored_bytes(&self) -> u32 {
        self.stored_bytes.get()
    }

    /// The format of the payload.
    pub fn format(&self) -> SampleFormat {
        SampleFormat::from_code(self.format)
    }

    /// The format, which must be one that this version defines.
    ///
    /// # Errors
    /// [`FormatError::FormatCode`]. The index has no checksum, so an impossible code is one of the
    /// few signs of damage.
    pub fn checked_format(&self) -> Result<SampleFormat, FormatError> {
        if self.format <= Self::MAX_FORMAT_CODE {
            return Ok(self.format());
        }
        let code = self.format;
        let limit = Self::MAX_FORMAT_CODE;
        let version = FileHeader::VERSION;
        Err(FormatError::FormatCode { code, limit, version })
    }

    /// The range of the payload, if it lies between the index and the end of the file.
    ///
    /// # Errors
    /// [`FormatError::InsideIndex`] or [`FormatError::BeyondEnd`].
    pub fn payload(&self, index_end: u64, file_bytes: u64) -> Result<Range<u64>, FormatError> {
        payload_range(self.offset(), self.stored_bytes(), index_end, file_bytes)
    }
}

/// The end of the index of `sample_count` samples; `None` past 64 bits.
pub fn index_end(sample_count: u64) -> Option<u64> {
    sample_count.checked_mul(IndexEntry::SIZE as u64)?.checked_add(FileHeader::SIZE as u64)
}
