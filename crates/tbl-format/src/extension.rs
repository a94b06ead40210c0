//! The extensions in CUSTOM metadata blocks: names, labels, stronger checksums, row indexes and
//! sidecar fields.
//!
//! The original's readers skip these blocks, because the whole-file ones carry a sample number
//! that no sample has and the per-sample ones come after the sample's JSON block. Every payload
//! starts with [`ExtensionHeader`], whose CRC-32C covers the payload; unknown kinds and versions
//! are skipped. The byte tables are in `docs/format.md`.

use alloc::vec::Vec;
use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Crc32c;
use crate::error::FormatError;

mod names;
mod row_indexes;

pub use names::{ClassNames, NameTableBuilder, SampleNames};
pub use row_indexes::{RowIndexTableBuilder, RowIndexes};

/// The label that [`Labels`] stores for a sample without one.
pub const NO_LABEL: i64 = i64::MIN;

/// The 16 bytes at the front of every extension payload.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtensionHeader {
    magic: [u8; 4],
    version: U16,
    kind: U16,
    checksum: U32,
    reserved: [u8; 4],
}

const _: () = assert!(size_of::<ExtensionHeader>() == ExtensionHeader::SIZE);
const _: () = assert!(offset_of!(ExtensionHeader, checksum) == 8);

impl ExtensionHeader {
    /// The header's size in bytes.
    pub const SIZE: usize = 16;
    /// The first four bytes of an extension payload.
    pub const MAGIC: [u8; 4] = *b"TBLX";
    /// The version of the extensions described here.
    pub const VERSION: u16 = 1;

    /// The header of a payload whose body is `body`.
    pub fn new(kind: ExtensionKind, body: &[u8]) -> Self {
        let mut digest = Self::digest(kind);
        digest.update(body);
        Self::with_checksum(kind, digest.finish())
    }

    /// Starts the checksum of a payload whose body comes in pieces; see
    /// [`with_checksum`](Self::with_checksum).
    pub fn digest(kind: ExtensionKind) -> Crc32c {
        let mut digest = Crc32c::new();
        digest.update(Self::with_checksum(kind, 0).as_bytes());
        digest
    }

    /// The header of a payload with a known checksum: [`digest`](Self::digest) continued over the
    /// body.
    pub fn with_checksum(kind: ExtensionKind, checksum: u32) -> Self {
        Self {
            magic: Self::MAGIC,
            version: U16::new(Self::VERSION),
            kind: U16::new(kind.code()),
            checksum: U32::new(checksum),
            reserved: [0; 4],
        }
    }

    /// The header as it stands in a file.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(*self)
    }
}

/// The content of an extension payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtensionKind {
    /// Whole file: class names, by label (1).
    ClassNames,
    /// Whole file: names of a run of samples (2).
    SampleNames,
    /// Whole file: one label per sample (3).
    Labels,
    /// Whole file: one CRC-32C per sample (4).
    Checksums,
    /// Whole file: CRC-32C of the index and of the metadata after it (5).
    Integrity,
    /// Whole file: row indexes of a run of JPEG samples, or indexes of videos (6).
    RowIndexes,
    /// Whole file: the dictionary of its Zstandard frames (7).
    Dictionary,
    /// One sample: a sidecar field (16).
    Field,
}

impl ExtensionKind {
    /// The code that the header stores.
    pub const fn code(self) -> u16 {
        match self {
            Self::ClassNames => 1,
            Self::SampleNames => 2,
            Self::Labels => 3,
            Self::Checksums => 4,
            Self::Integrity => 5,
            Self::RowIndexes => 6,
            Self::Dictionary => 7,
            Self::Field => 16,
        }
    }
}

/// A parsed extension payload.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Extension<'a> {
    /// Class names, by label.
    ClassNames(ClassNames<'a>),
    /// Names of a run of samples.
    SampleNames(SampleNames<'a>),
    /// One label per sample.
    Labels(Labels<'a>),
    /// One CRC-32C per sample.
    Checksums(Checksums<'a>),
    /// CRC-32C of the index and of the metadata after it.
    Integrity(Integrity),
    /// Row indexes of a run of JPEG samples.
    RowIndexes(RowIndexes<'a>),
    /// The dictionary of the file's Zstandard frames.
    Dictionary(&'a [u8]),
    /// A sidecar field.
    Field(Field<'a>),
}

impl<'a> Extension<'a> {
    /// Parses the data of a CUSTOM block; `None` when it is not ours or of an unknown kind or
    /// version. The checksum is left to [`verify`](Self::verify), so that opening a file does not
    /// have to read every name in it.
    ///
    /// # Errors
    /// The structure's own: [`FormatError::Truncated`], [`FormatError::Count`],
    /// [`FormatError::NameExtent`], [`FormatError::ClassNameUtf8`], [`FormatError::UnsafeName`],
    /// [`FormatError::TooLarge`].
    pub fn parse(data: &'a [u8]) -> Result<Option<Self>, FormatError> {
        let Ok((header, body)) = ExtensionHeader::ref_from_prefix(data) else { return Ok(None) };
        if header.magic != ExtensionHeader::MAGIC || header.version != ExtensionHeader::VERSION {
            return Ok(None);
        }
        Ok(Some(match header.kind.get() {
            1 => Self::ClassNames(ClassNames::parse(body)?),
            2 => Self::SampleNames(SampleNames::parse(body)?),
            3 => Self::Labels(Labels(whole_elements(body, "label list")?)),
            4 => Self::Checksums(Checksums(whole_elements(body, "checksum list")?)),
            5 => Self::Integrity(Integrity::parse(body)?),
            6 => Self::RowIndexes(RowIndexes::parse(body)?),
            7 => Self::Dictionary(checked_dictionary(body)?),
            16 => Self::Field(Field::parse(body)?),
            _ => return Ok(None),
        }))
    }

    /// Whether `data` starts with the header of a payload of this version that describes the whole
    /// file.
    pub fn is_of_file(data: &[u8]) -> bool {
        ExtensionHeader::ref_from_prefix(data).is_ok_and(|(header, _)| {
            header.magic == ExtensionHeader::MAGIC
                && header.version == ExtensionHeader::VERSION
                && (1..=7).contains(&header.kind.get())
        })
    }

    /// Checks the CRC-32C of a CUSTOM block's data if it is an extension payload, of whatever
    /// kind, of this version; anything else passes.
    ///
    /// # Errors
    /// [`FormatError::Crc32c`].
    pub fn verify(data: &[u8]) -> Result<(), FormatError> {
        let Ok((header, body)) = ExtensionHeader::ref_from_prefix(data) else { return Ok(()) };
        if header.magic != ExtensionHeader::MAGIC || header.version != ExtensionHeader::VERSION {
            return Ok(());
        }
        let mut zeroed = *header;
        zeroed.checksum = U32::new(0);
        let mut digest = Crc32c::new();
        digest.update(zeroed.as_bytes());
        digest.update(body);
        let stored = header.checksum.get();
        let computed = digest.finish();
        if stored == computed {
            return Ok(());
        }
        let what = match header.kind.get() {
            1 => "class names",
            2 => "sample names",
            3 => "label list",
            4 => "checksum list",
            5 => "integrity block",
            6 => "row index block",
            7 => "dictionary",
            16 => "sidecar field",
            _ => "extension block",
        };
        Err(FormatError::Crc32c { what, stored, computed })
    }
}

/// One label per sample.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a>(&'a [I64]);

impl Labels<'_> {
    /// How many samples have an entry.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The label of sample `index`; `None` when it has none or is past the end.
    pub fn label(&self, index: usize) -> Option<i64> {
        self.0.get(index).map(|label| label.get()).filter(|&label| label != NO_LABEL)
    }
}

/// One CRC-32C per sample, of its uncompressed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Checksums<'a>(&'a [U32]);

impl Checksums<'_> {
    /// How many samples have an entry.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The checksum of sample `index`; `None` past the end.
    pub fn crc32c(&self, index: usize) -> Option<u32> {
        self.0.get(index).map(|checksum| checksum.get())
    }
}

/// Checksums of the two parts of a file that have none in the format itself.
///
/// Its block is the first of the metadata section and covers all of the section after it, so
/// that no other block can be damaged into one that readers skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integrity {
    /// CRC-32C of the index, `24 * sample_count` bytes.
    pub index: u32,
    /// CRC-32C of the metadata section after this block.
    pub metadata: u32,
    /// How many bytes `metadata` covers.
    pub metadata_bytes: u64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct IntegrityBody {
    index: U32,
    metadata: U32,
    metadata_bytes: U64,
}

impl Integrity {
    /// The size of the payload's body.
    pub const SIZE: usize = size_of::<IntegrityBody>();

    fn parse(body: &[u8]) -> Result<Self, FormatError> {
        let (body, _) =
            IntegrityBody::ref_from_prefix(body).map_err(|_| FormatError::Truncated {
                what: "integrity block",
                need: Self::SIZE as u64,
                have: body.len() as u64,
            })?;
        Ok(Self {
            index: body.index.get(),
            metadata: body.metadata.get(),
            metadata_bytes: body.metadata_bytes.get(),
        })
    }

    /// The payload's body.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        zerocopy::transmute!(IntegrityBody {
            index: U32::new(self.index),
            metadata: U32::new(self.metadata),
            metadata_bytes: U64::new(self.metadata_bytes),
        })
    }
}

/// A sidecar field of one sample, such as a WebDataset member `0001.seg.png` next to `0001.jpg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The extension after the key, without its leading dot.
    pub extension: &'a [u8],
    /// The field's bytes.
    pub bytes: &'a [u8],
}

impl<'a> Field<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, FormatError> {
        let truncated = |need: u64| FormatError::Truncated {
            what: "field block",
            need,
            have: body.len() as u64,
        };
        let (length, rest) =
            U16::ref_from_prefix(body).map_err(|_| truncated(size_of::<U16>() as u64))?;
        let (extension, bytes) = rest
            .split_at_checked(usize::from(length.get()))
            .ok_or_else(|| truncated(size_of::<U16>() as u64 + u64::from(length.get())))?;
        FormatError::check_field_extension(extension)?;
        Ok(Self { extension, bytes })
    }

    /// Appends the payload's body to `body`.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] for an extension of more than 65 535 bytes,
    /// [`FormatError::UnsafeName`] for one that is not part of one file name.
    pub fn write_body(&self, body: &mut Vec<u8>) -> Result<(), FormatError> {
        FormatError::check_field_extension(self.extension)?;
        let length = u16::try_from(self.extension.len()).map_err(|_| FormatError::TooLarge {
            what: "field extension",
            bytes: self.extension.len() as u64,
            limit: u64::from(u16::MAX),
        })?;
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(self.extension);
        body.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// The most bytes of a dictionary.
pub const MAX_DICTIONARY_BYTES: usize = 1 << 20;

/// The bytes of a dictionary, if a reader takes so many.
fn checked_dictionary(bytes: &[u8]) -> Result<&[u8], FormatError> {
    if bytes.len() <= MAX_DICTIONARY_BYTES {
        return Ok(bytes);
    }
    let what = "dictionary";
    let limit = MAX_DICTIONARY_BYTES as u64;
    Err(FormatError::TooLarge { what, bytes: bytes.len() as u64, limit })
}

/// The 16 bytes in front of a table that describes consecutive samples.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RunHead {
    first_sample: U64,
    count: U32,
    reserved: [u8; 4],
}

const _: () = assert!(size_of::<RunHead>() == 16);

impl RunHead {
    fn new(first_sample: u64, count: usize, what: &'static str) -> Result<Self, FormatError> {
        let bytes = count as u64;
        let limit = u64::from(u32::MAX);
        let count =
            u32::try_from(count).map_err(|_| FormatError::TooLarge { what, bytes, limit })?;
        let first_sample = U64::new(first_sample);
        let count = U32::new(count);
        Ok(Self { first_sample, count, reserved: [0; 4] })
    }

    fn parse<'a>(body: &'a [u8], what: &'static str) -> Result<(&'a Self, &'a [u8]), FormatError> {
        let need = size_of::<Self>() as u64;
        let have = body.len() as u64;
        Self::ref_from_prefix(body).map_err(|_| FormatError::Truncated { what, need, have })
    }
}

/// Views a body as a list of fixed-size elements, with no bytes left over.
fn whole_elements<'a, T>(body: &'a [u8], what: &'static str) -> Result<&'a [T], FormatError>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    <[T]>::ref_from_bytes(body).map_err(|_| FormatError::Truncated {
        what,
        need: body.len().next_multiple_of(size_of::<T>()) as u64,
        have: body.len() as u64,
    })
}
