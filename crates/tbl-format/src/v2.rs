//! TBL version 2: a checksummed 64-byte header, 24 bytes of index per sample, the samples, and
//! optional metadata blocks.
//!
//! Samples are stored as they are, as a bare LZ4 block or as a Zstandard frame, whichever is
//! smaller; decoding these is left to the caller. Zstandard is an extension of this project, and
//! files that use it have another version field.

mod codec;

use core::mem::{offset_of, size_of};
use core::ops::{BitOr, Range};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::header_crc32;
use crate::error::FormatError;
use crate::sample_format::SampleFormat;

pub use codec::Codec;

/// The first 64 bytes of a version 2 file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FileHeader {
    magic: [u8; 4],
    version: U32,
    sample_count: U64,
    header_size: U32,
    padding: [u8; 4],
    metadata_offset: U64,
    metadata_bytes: U64,
    flags: U32,
    checksum: U32,
    reserved: [u8; 16],
}

const _: () = assert!(size_of::<FileHeader>() == FileHeader::SIZE);
const _: () = assert!(offset_of!(FileHeader, checksum) == 44);

impl FileHeader {
    /// The header's size in bytes.
    pub const SIZE: usize = 64;
    /// The first four bytes of a version 2 file.
    pub const MAGIC: [u8; 4] = *b"TBL\x02";
    /// The value of the version field.
    pub const VERSION: u32 = 2;
    /// The value of the version field in files with [`FileFlags::ZSTD`], which the original's reader
    /// refuses. All else is as in version 2.
    pub const ZSTD_VERSION: u32 = 3;
    /// The most samples whose `header_size` (header and index) still fits into 32 bits.
    ///
    /// Readers never look at that field, but a writer that let it wrap would store a false number.
    pub const MAX_SAMPLES: u64 = (u32::MAX as u64 - Self::SIZE as u64) / IndexEntry::SIZE as u64;

    /// A header, checksummed, for `sample_count` samples and a metadata section at `metadata`
    /// (empty for none).
    ///
    /// [`FileFlags::HAS_METADATA`] is set when the section is not empty.
    ///
    /// # Errors
    /// [`FormatError::TooManySamples`] above [`MAX_SAMPLES`](Self::MAX_SAMPLES).
    pub fn new(
        sample_count: u64,
        metadata: Range<u64>,
        flags: FileFlags,
    ) -> Result<Self, FormatError> {
        let too_many = FormatError::TooManySamples { sample_count, limit: Self::MAX_SAMPLES };
        let index_end = index_end(sample_count).ok_or(too_many.clone())?;
        let header_size = u32::try_from(index_end).map_err(|_| too_many)?;
        let metadata_bytes = metadata.end.saturating_sub(metadata.start);
        let has_metadata = metadata_bytes > 0;
        let flags = if has_metadata { flags | FileFlags::HAS_METADATA } else { flags };
        let has_frames = flags.contains(FileFlags::ZSTD);
        let version = if has_frames { Self::ZSTD_VERSION } else { Self::VERSION };
        let mut header = Self {
            magic: Self::MAGIC,
            version: U32::new(version),
            sample_count: U64::new(sample_count),
            header_size: U32::new(header_size),
            padding: [0; 4],
            metadata_offset: U64::new(if has_metadata { metadata.start } else { 0 }),
            metadata_bytes: U64::new(metadata_bytes),
            flags: U32::new(flags.bits()),
            checksum: U32::new(0),
            reserved: [0; 16],
        };
        header.checksum = U32::new(header.computed_checksum());
        Ok(header)
    }

    /// Reads the header at the front of `bytes`, checks its checksum, and returns it with the
    /// bytes after it.
    ///
    /// # Errors
    /// As [`parse_unverified`](Self::parse_unverified), and [`FormatError::HeaderChecksum`].
    pub fn parse(bytes: &[u8]) -> Result<(&Self, &[u8]), FormatError> {
        let (header, rest) = Self::parse_unverified(bytes)?;
        header.verify()?;
        Ok((header, rest))
    }

    /// Like [`parse`](Self::parse) without the checksum, for salvaging a damaged file.
    ///
    /// # Errors
    /// [`FormatError::Truncated`], [`FormatError::BadMagic`] or [`FormatError::BadVersion`].
    pub fn parse_unverified(bytes: &[u8]) -> Result<(&Self, &[u8]), FormatError> {
        let (header, rest) = Self::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: "file header",
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        if header.magic != Self::MAGIC {
            return Err(FormatError::BadMagic { found: header.magic, expected: Self::MAGIC });
        }
        if ![Self::VERSION, Self::ZSTD_VERSION].contains(&header.version.get()) {
            return Err(FormatError::BadVersion {
                found: header.version.get(),
                expected: Self::VERSION,
            });
        }
        Ok((header, rest))
    }

    /// Compares the stored checksum with the header's bytes.
    ///
    /// # Errors
    /// [`FormatError::HeaderChecksum`].
    pub fn verify(&self) -> Result<(), FormatError> {
        let stored = self.checksum.get();
        let computed = self.computed_checksum();
        if stored == computed {
            Ok(())
        } else {
            Err(FormatError::HeaderChecksum { stored, computed })
        }
    }

    /// CRC-32 of all 64 bytes with the checksum field taken as zero.
    fn computed_checksum(&self) -> u32 {
        let mut zeroed = *self;
        zeroed.checksum = U32::new(0);
        header_crc32(zeroed.as_bytes())
    }

    /// The header as it stands in a file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(*self)
    }

    /// How many samples the file claims to have.
    pub fn sample_count(&self) -> u64 {
        self.sample_count.get()
    }

    /// The flags of the whole file.
    pub fn flags(&self) -> FileFlags {
        FileFlags(self.flags.get())
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

    /// The range of the metadata section, if the file has one and is long enough for it.
    ///
    /// [`FileFlags::HAS_METADATA`] is not consulted: the original's reader goes by the section's
    /// offset and size too.
    ///
    /// # Errors
    /// [`FormatError::BeyondEnd`].
    pub fn metadata_range(&self, file_bytes: u64) -> Result<Option<Range<u64>>, FormatError> {
        let offset = self.metadata_offset.get();
        let bytes = self.metadata_bytes.get();
        if offset == 0 || bytes == 0 {
            return Ok(None);
        }
        match offset.checked_add(bytes) {
            Some(end) if end <= file_bytes => Ok(Some(offset..end)),
            _ => {
                Err(FormatError::BeyondEnd { what: "metadata section", offset, bytes, file_bytes })
            }
        }
    }
}

/// The flags in a version 2 header. Unknown bits are kept and mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFlags(u32);

impl FileFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The writer was asked to compress; single samples may still be stored raw.
    pub const COMPRESSED: Self = Self(1);
    /// There is a metadata section.
    pub const HAS_METADATA: Self = Self(1 << 1);
    /// Index entries carry payload checksums; where this is clear they are not to be checked.
    pub const HAS_CHECKSUMS: Self = Self(1 << 2);
    /// Some samples are Zstandard frames.
    pub const ZSTD: Self = Self(1 << 3);

    /// Whether every flag of `other` is set here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as stored.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for FileFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One sample's 24 bytes of index.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IndexEntry {
    offset: U64,
    stored_bytes: U32,
    bytes: U32,
    width: U16,
    height: U16,
    format: u8,
    flags: u8,
    checksum: U16,
}

const _: () = assert!(size_of::<IndexEntry>() == IndexEntry::SIZE);
const _: () = assert!(offset_of!(IndexEntry, checksum) == 22);

/// The description of a sample's stored bytes in an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its size in the file.
    pub stored_bytes: u32,
    /// The sample's own size, after decompression.
    pub bytes: u32,
    /// CRC-16/MODBUS of the sample's own bytes.
    pub checksum: u16,
}

impl IndexEntry {
    /// An entry's size in bytes.
    pub const SIZE: usize = 24;
    /// The offset of the flags in an entry.
    pub const FLAGS_OFFSET: usize = offset_of!(Self, flags);
    /// The factor that an LZ4 block cannot expand beyond.
    pub const MAX_LZ4_EXPANSION: u64 = 255;

    /// An entry for `payload`, an image of `dimensions` (width, height; zero when unknown).
    pub fn new(
        payload: Payload,
        dimensions: (u16, u16),
        format: SampleFormat,
        flags: EntryFlags,
    ) -> Self {
        Self {
            offset: U64::new(payload.offset),
            stored_bytes: U32::new(payload.stored_bytes),
            bytes: U32::new(payload.bytes),
            width: U16::new(dimensions.0),
            height: U16::new(dimensions.1),
            format: format.code(),
            flags: flags.bits(),
            checksum: U16::new(payload.checksum),
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

    /// The payload's size in the file.
    pub fn stored_bytes(&self) -> u32 {
        self.stored_bytes.get()
    }

    /// Width in pixels, 0 when unknown.
    pub fn width(&self) -> u16 {
        self.width.get()
    }

    /// Height in pixels, 0 when unknown.
    pub fn height(&self) -> u16 {
        self.height.get()
    }

    /// The format of the sample.
    pub fn format(&self) -> SampleFormat {
        SampleFormat::from_code(self.format)
    }

    /// The sample's flags.
    pub fn flags(&self) -> EntryFlags {
        EntryFlags(self.flags)
    }

    /// CRC-16/MODBUS of the sample's uncompressed bytes.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// The range of the payload, if it lies between the index and the end of the file.
    ///
    /// # Errors
    /// [`FormatError::InsideIndex`] or [`FormatError::BeyondEnd`].
    pub fn payload(&self, index_end: u64, file_bytes: u64) -> Result<Range<u64>, FormatError> {
        payload_range(self.offset(), self.stored_bytes(), index_end, file_bytes)
    }

    /// The sample's own size as the entry has it, possible or not.
    pub fn stated_bytes(&self) -> u32 {
        self.bytes.get()
    }

    /// The sample's own size, as far as it is possible for its stored size.
    ///
    /// A raw sample may declare zero (a comment in the original's source says it does, although
    /// its writer stores the size).
    ///
    /// # Errors
    /// [`FormatError::RawSize`] when a raw sample has two sizes, [`FormatError::Lz4Size`] when a
    /// compressed one declares nothing, more than LZ4 can expand to, or less than any compressor
    /// makes so long a block of, [`FormatError::ZstdSize`] likewise, but no frame is as long as its
    /// sample, [`FormatError::TwoCodecs`], [`FormatError::RawImageSize`] when a raw image has
    /// another size than its pixels.
    pub fn sample_bytes(&self) -> Result<u32, FormatError> {
        let bytes = self.declared_bytes()?;
        if self.format() == SampleFormat::RawU8 {
            let width = self.width();
            let height = self.height();
            let expected = 3 * u64::from(width) * u64::from(height);
            if expected == 0 || u64::from(bytes) != expected {
                return Err(FormatError::RawImageSize { width, height, bytes, expected });
            }
        }
        Ok(bytes)
    }

    fn declared_bytes(&self) -> Result<u32, FormatError> {
        let stored_bytes = self.stored_bytes();
        let bytes = self.bytes.get();
        match self.codec()? {
            Some(codec) if codec.can_decode(stored_bytes, bytes) => Ok(bytes),
            Some(Codec::Lz4) => Err(FormatError::Lz4Size { stored_bytes, bytes }),
            Some(Codec::Zstd) => Err(FormatError::ZstdSize { stored_bytes, bytes }),
            None if bytes != 0 && bytes != stored_bytes => {
                Err(FormatError::RawSize { stored_bytes, bytes })
            }
            None => Ok(stored_bytes),
        }
    }

    /// The compression of the stored bytes; `None` if they are the sample itself.
    ///
    /// # Errors
    /// [`FormatError::TwoCodecs`].
    pub fn codec(&self) -> Result<Option<Codec>, FormatError> {
        let has = |flag| self.flags().contains(flag);
        match (has(EntryFlags::COMPRESSED), has(EntryFlags::ZSTD)) {
            (true, true) => Err(FormatError::TwoCodecs),
            (true, false) => Ok(Some(Codec::Lz4)),
            (false, true) => Ok(Some(Codec::Zstd)),
            (false, false) => Ok(None),
        }
    }
}

/// The flags in a version 2 index entry. Unknown bits are kept and mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryFlags(u8);

impl EntryFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The payload is an LZ4 block.
    pub const COMPRESSED: Self = Self(1);
    /// The metadata section has a block for this sample.
    pub const HAS_METADATA: Self = Self(1 << 1);
    /// Defined by the format, set by no writer.
    pub const VERIFIED: Self = Self(1 << 2);
    /// The payload is a Zstandard frame.
    pub const ZSTD: Self = Self(1 << 3);

    /// Whether every flag of `other` is set here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags as stored.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for EntryFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The end of the index of `sample_count` samples; `None` past 64 bits.
pub fn index_end(sample_count: u64) -> Option<u64> {
    sample_count.checked_mul(IndexEntry::SIZE as u64)?.checked_add(FileHeader::SIZE as u64)
}

/// The range of a payload of either version, if it lies between the index and the end of the file.
///
/// An empty sample may point anywhere inside the file, because it has no bytes that could overlap
/// the index.
///
/// # Errors
/// [`FormatError::InsideIndex`] or [`FormatError::BeyondEnd`].
pub fn payload_range(
    offset: u64,
    stored_bytes: u32,
    index_end: u64,
    file_bytes: u64,
) -> Result<Range<u64>, FormatError> {
    let bytes = u64::from(stored_bytes);
    let end = match offset.checked_add(bytes) {
        Some(end) if end <= file_bytes => end,
        _ => {
            return Err(FormatError::BeyondEnd {
                what: "sample payload",
                offset,
                bytes,
                file_bytes,
            });
        }
    };
    if bytes > 0 && offset < index_end {
        return Err(FormatError::InsideIndex { offset, index_end });
    }
    Ok(offset..end)
}
