//! Defects of Parquet and Arrow files, which errors carry. The crate `tl-arrow` reads these files.

use std::fmt;

use tbl_format::path::PathDefect;

use crate::escape::Escaped;
use crate::kind::ErrorKind;

/// A violation of the Parquet or the Arrow format, or a file that has no column that can be samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum RowsDefect {
    /// The file has no room for a footer.
    #[error("the file has {bytes} bytes, expected at least {least} of a Parquet file")]
    Short { bytes: u64, least: u64 },
    /// The magic is missing at one of the ends, as in a file that was not copied completely.
    #[error("expected PAR1, found {}; was the file copied completely?", Escaped(found))]
    Magic { found: [u8; 4] },
    /// An Arrow file has no room for a footer.
    #[error("the file has {bytes} bytes, expected at least {least} of an Arrow file")]
    ShortArrow { bytes: u64, least: u64 },
    /// The magic is missing at the end of an Arrow file.
    #[error(
        "expected ARROW1, found {}; was the file written and copied completely?",
        Escaped(found)
    )]
    ArrowMagic { found: [u8; 6] },
    /// A structure of an Arrow file cannot be read.
    #[error("malformed {what}, expected a flatbuffer")]
    Flatbuffer { what: &'static str },
    /// A message of another kind in an Arrow file.
    #[error("the message is of another kind, expected {expected}")]
    MessageKind { expected: &'static str },
    /// The footer can only be read with a key.
    #[error("the footer is encrypted, expected a plain one")]
    Encrypted,
    /// The column can only be read with a key.
    #[error("the column is encrypted, expected a plain one")]
    EncryptedColumn,
    /// A structure ends within a field.
    #[error("{what} ends early")]
    Truncated { what: &'static str },
    /// A field has another type than the format says, or a number is too long.
    #[error("malformed {what}, expected Thrift's compact protocol")]
    Malformed { what: &'static str },
    /// A structure lacks a field that it must have.
    #[error("{what} has no {field}")]
    Missing { what: &'static str, field: &'static str },
    /// A number that means nothing.
    #[error("{what} is {value}, expected {expected}")]
    Value { what: &'static str, value: i64, expected: &'static str },
    /// Two places of the file disagree.
    #[error("{what} is {found}, expected {expected}")]
    Count { what: &'static str, found: u64, expected: u64 },
    /// Something is larger than this reader is willing to take.
    #[error("{what} is {found}, expected at most {limit}")]
    TooLarge { what: &'static str, found: u64, limit: u64 },
    /// A range that the file does not have.
    #[error("{what} of {bytes} bytes at {offset} ends beyond the file of {file_bytes} bytes")]
    OutsideFile { what: &'static str, offset: u64, bytes: u64, file_bytes: u64 },
    /// A page that is not in the column that it belongs to.
    #[error("the {what} ends beyond its column")]
    OutsideChunk { what: &'static str },
    /// The schema cannot be.
    #[error("invalid schema: {reason}")]
    Schema { reason: &'static str },
    /// The bytes of a column are in another file.
    #[error("a column is in another file, {}; expected all in one", Escaped(path))]
    OtherFile { path: Vec<u8> },
    /// A page of another kind.
    #[error("the page is of another kind, expected {expected}")]
    PageKind { expected: &'static str },
    /// A page cannot be decompressed.
    #[error("damaged data, expected {bytes} bytes compressed by {codec}")]
    Compressed { codec: &'static str, bytes: u64 },
    /// The compression is not known here.
    #[error("unknown compression {codec}, expected snappy, gzip, brotli, zstd or lz4_raw")]
    UnknownCodec { codec: String },
    /// A part of a page cannot be decoded.
    #[error("damaged {what}")]
    Damaged { what: &'static str },
    /// A page is not the one that was written.
    #[error("page checksum is {stored:#x}, the bytes give {computed:#x}")]
    Checksum { stored: u32, computed: u32 },
    /// A row has neither the bytes of a sample nor the path of a file.
    #[error("the value is null, expected the bytes or the path of a sample")]
    NullSample,
    /// The path of an image without bytes leads elsewhere.
    #[error(
        "the image has no bytes, and its path {} is unsafe: {defect}; expected a file below the \
         folder of the file",
        Escaped(path)
    )]
    UnsafePath { path: Vec<u8>, defect: PathDefect },
    /// The path of an image without bytes is a folder.
    #[error("the image has no bytes, and its path {} is a folder, expected a file", Escaped(path))]
    NotAFile { path: Vec<u8> },
    /// No column has images.
    #[error(
        "no column has images, the columns are {}; name the column of the samples",
        Names(columns)
    )]
    NoImages { columns: Vec<String> },
    /// Two columns have images.
    #[error(
        "the columns {} and {} have images; name that of the samples",
        Escaped(first.as_bytes()),
        Escaped(second.as_bytes())
    )]
    TwoImages { first: String, second: String },
    /// A column that is named does not exist.
    #[error(
        "no column {}, the columns are {}",
        Escaped(column.as_bytes()),
        Names(columns)
    )]
    NoColumn { column: String, columns: Vec<String> },
    /// The column of the samples has no bytes.
    #[error(
        "column {} cannot be samples, expected texts, bytes, or structures of bytes and a path",
        Escaped(column.as_bytes())
    )]
    NotBytes { column: String },
    /// The column of the labels has other values.
    #[error("column {} cannot be labels, expected integers or texts", Escaped(column.as_bytes()))]
    NotLabels { column: String },
}

impl RowsDefect {
    /// Writes it with the byte of the file that it begins at.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, offset: u64) -> fmt::Result {
        if self.has_offset() {
            write!(f, "at byte {offset}: ")?;
        }
        write!(f, "{self}")
    }

    /// The party at fault.
    pub(crate) fn kind(&self) -> ErrorKind {
        if self.has_offset() { ErrorKind::Data } else { ErrorKind::Setting }
    }

    /// Whether the caller has to name the column of the samples.
    #[must_use]
    pub fn lacks_column(&self) -> bool {
        matches!(self, Self::NoImages { .. } | Self::TwoImages { .. })
    }

    /// Whether the error is about a byte of the file, and not about the choice of a column.
    pub(crate) fn has_offset(&self) -> bool {
        !matches!(
            self,
            Self::NoImages { .. }
                | Self::TwoImages { .. }
                | Self::NoColumn { .. }
                | Self::NotBytes { .. }
                | Self::NotLabels { .. }
        )
    }
}

/// The names of columns, as far as a message has room for them.
struct Names<'a>(&'a [String]);

/// Names that a message lists.
const LISTED: usize = 20;

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, name) in self.0.iter().take(LISTED).enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{}", Escaped(name.as_bytes()))?;
        }
        if self.0.len() > LISTED {
            write!(f, " and {} more", self.0.len() - LISTED)
        } else {
            Ok(())
        }
    }
}
