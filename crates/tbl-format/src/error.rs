//! The errors of the bytes of a TBL file.

use crate::path::{PathDefect, check_extension, check_name};

/// The first word of messages about names that could lead out of a folder. It stands alone because
/// a check of the sources searches for this word as Rust's keyword.
const UNSAFE: &str = "unsafe ";

/// The reason why bytes are not a valid TBL file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum FormatError {
    /// The bytes end before the structure does.
    #[error("{what} needs {need} bytes, found {have}")]
    Truncated { what: &'static str, need: u64, have: u64 },
    /// The first four bytes are not the magic of this version.
    #[error("magic is {found:02x?}, expected {expected:02x?}")]
    BadMagic { found: [u8; 4], expected: [u8; 4] },
    /// The version field contradicts the magic.
    #[error("version field is {found}, expected {expected}")]
    BadVersion {
        found: u32,
        /// The version that the magic announces.
        expected: u32,
    },
    /// The header's checksum does not match its bytes.
    #[error("header checksum is {stored:08x}, the bytes give {computed:08x}")]
    HeaderChecksum { stored: u32, computed: u32 },
    /// The index table of this many samples does not fit into the file.
    #[error("index of {sample_count} samples does not fit into {file_bytes} bytes")]
    IndexBeyondEnd { sample_count: u64, file_bytes: u64 },
    /// A part of the file reaches beyond its end.
    #[error("{what} at {offset} of {bytes} bytes reaches beyond the end at {file_bytes}")]
    BeyondEnd { what: &'static str, offset: u64, bytes: u64, file_bytes: u64 },
    /// A sample's payload starts inside the header or the index.
    #[error("payload starts at {offset}, before the end of the index at {index_end}")]
    InsideIndex { offset: u64, index_end: u64 },
    /// A sample stored as it is has two different sizes.
    #[error("sample is stored raw in {stored_bytes} bytes but declared {bytes} bytes long")]
    RawSize { stored_bytes: u32, bytes: u32 },
    /// A raw image is not `width * height * 3` bytes long, or has no pixels.
    #[error("raw image of {width}x{height} pixels declares {bytes} bytes, expected {expected}")]
    RawImageSize {
        width: u16,
        height: u16,
        bytes: u32,
        /// The size of that many pixels; an image without pixels cannot be stored.
        expected: u64,
    },
    /// An entry has a format code that its version does not define.
    #[error("format code is {code}, expected at most {limit} in TBL version {version}")]
    FormatCode {
        code: u8,
        /// The largest code of the version.
        limit: u8,
        version: u32,
    },
    /// A compressed sample declares a size that its stored bytes cannot expand to or come from.
    #[error("LZ4 block of {stored_bytes} bytes cannot decode to {bytes} bytes")]
    Lz4Size { stored_bytes: u32, bytes: u32 },
    /// An LZ4 block that cannot be decoded.
    #[error("LZ4 block of {stored_bytes} bytes is damaged")]
    Lz4Damaged { stored_bytes: u32 },
    /// An LZ4 block that holds less than the index declares.
    #[error("LZ4 block holds {found} bytes, expected {expected}")]
    Lz4Short { expected: u32, found: u64 },
    /// An index entry says that a sample is compressed in two ways.
    #[error("entry has the flags of both an LZ4 block and a Zstandard frame")]
    TwoCodecs,
    /// A Zstandard frame is of a size that cannot decode to the declared size or come from it.
    #[error("Zstandard frame of {stored_bytes} bytes cannot decode to {bytes} bytes")]
    ZstdSize { stored_bytes: u32, bytes: u32 },
    /// A Zstandard frame states another size than the index.
    #[error("Zstandard frame holds {found} bytes, expected {expected}")]
    ZstdContent { expected: u32, found: u64 },
    /// A Zstandard frame that cannot be decoded.
    #[error("Zstandard frame of {stored_bytes} bytes is damaged")]
    ZstdDamaged { stored_bytes: u32 },
    /// A Zstandard frame was made with another dictionary than the file's.
    #[error("Zstandard frame needs dictionary {needed}, which the file does not have")]
    ZstdDictionary { needed: u32 },
    /// A sample's bytes do not match the index's checksum.
    #[error("payload checksum is {stored:04x}, the bytes give {computed:04x}")]
    PayloadChecksum { stored: u16, computed: u16 },
    /// A part of the file does not match the CRC-32C stored for it.
    #[error("CRC-32C of {what} is {stored:08x}, the bytes give {computed:08x}")]
    Crc32c { what: &'static str, stored: u32, computed: u32 },
    /// A list has another length than the samples it describes.
    #[error("{what} has {found} entries for {expected} samples")]
    Count { what: &'static str, expected: u64, found: u64 },
    /// A metadata block of our writers stands where none is expected, or has another length.
    #[error("{what} is out of order or cut: the metadata section is damaged")]
    OutOfOrder { what: &'static str },
    /// A file with extension blocks lacks one that all such files have.
    #[error("{what} is missing")]
    Missing { what: &'static str },
    /// A name's end lies before its start or beyond the name bytes.
    #[error("name {index} ends at {end}, outside {start}..={limit}")]
    NameExtent {
        /// The name's number in its table.
        index: u64,
        start: u32,
        end: u32,
        /// How many name bytes there are.
        limit: u64,
    },
    /// A row index's end lies before its start or beyond the table's bytes.
    #[error("row index of sample {sample} ends at {end}, outside {start}..={limit}")]
    RowIndexExtent {
        sample: u64,
        start: u32,
        end: u32,
        /// How many bytes there are after the table.
        limit: u64,
    },
    /// A class name that is not UTF-8.
    #[error("class name {index} is not UTF-8")]
    ClassNameUtf8 { index: u64 },
    /// A name or an extension that could lead out of the folder that it is joined to.
    #[error("{}{what}: {defect}, expected {expected}", UNSAFE)]
    UnsafeName {
        what: &'static str,
        /// The kind of name that is allowed.
        expected: &'static str,
        defect: PathDefect,
    },
    /// A part of a shard index that does not make sense.
    #[error("{what} cannot be read: it is damaged or of a later version")]
    Unreadable { what: &'static str },
    /// A structure too large for its size field.
    #[error("{what} of {bytes} bytes is over the limit of {limit}")]
    TooLarge { what: &'static str, bytes: u64, limit: u64 },
    /// More samples than the version's header can count.
    #[error("{sample_count} samples are over the limit of {limit}")]
    TooManySamples { sample_count: u64, limit: u64 },
}

impl FormatError {
    /// Checks the name of a sample with [`check_name`](crate::path::check_name).
    ///
    /// # Errors
    /// [`FormatError::UnsafeName`].
    pub fn check_sample_name(name: &[u8]) -> Result<(), Self> {
        let what = "sample name";
        let expected = "a relative path without `..`";
        check_name(name).map_err(|defect| Self::UnsafeName { what, expected, defect })
    }

    /// Checks the extension of a field with [`check_extension`](crate::path::check_extension).
    ///
    /// # Errors
    /// [`FormatError::UnsafeName`].
    pub fn check_field_extension(extension: &[u8]) -> Result<(), Self> {
        let what = "field extension";
        let expected = "the end of a file name";
        check_extension(extension).map_err(|defect| Self::UnsafeName { what, expected, defect })
    }
}
