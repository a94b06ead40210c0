//! Options of the writer, and the summary that it returns.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::escape::Escaped;
use crate::tbl_version::TblVersion;

/// The compression of the samples in a TBL version 2 file. A sample is stored compressed only if that
/// makes it smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// None.
    None,
    /// LZ4 blocks, which the original reads too.
    Lz4,
    /// Zstandard frames, with a dictionary where [`convert`](crate::convert) finds that it pays. The
    /// original's reader refuses files that have any.
    Zstd(ZstdLevel),
    /// That of each sample in its source, whose compressed bytes are copied. Without a source, none.
    AsStored,
}

const DEFAULT_LEVEL: i32 = 3;

/// A level of Zstandard: higher ones make smaller files in more time. Reading takes the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZstdLevel(i32);

impl ZstdLevel {
    /// The levels that there are.
    pub const RANGE: RangeInclusive<i32> = 1..=22;

    /// The library's own default.
    pub const DEFAULT: Self = Self(DEFAULT_LEVEL);

    /// A level; `None` outside [`RANGE`](Self::RANGE).
    pub fn new(level: i32) -> Option<Self> {
        Self::RANGE.contains(&level).then_some(Self(level))
    }

    /// The number.
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl Default for ZstdLevel {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The error for text that names no [`Compression`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compression is `{text}`, expected lz4, zstd, or zstd:LEVEL with a level of 1 to 22")]
pub struct CompressionError {
    text: String,
}

impl FromStr for Compression {
    type Err = CompressionError;

    /// Reads `none`, `lz4`, `zstd` or `zstd:LEVEL`.
    fn from_str(text: &str) -> Result<Self, CompressionError> {
        let zstd = |number: i32| ZstdLevel::new(number).map(Self::Zstd);
        let compression = match text.split_once(':') {
            None if text == "none" => Some(Self::None),
            None if text == "lz4" => Some(Self::Lz4),
            None if text == "zstd" => zstd(DEFAULT_LEVEL),
            Some(("zstd", number)) => number.parse().ok().and_then(zstd),
            None | Some(_) => None,
        };
        // A message is one line.
        let text = || Escaped(text.as_bytes()).to_string();
        compression.ok_or_else(|| CompressionError { text: text() })
    }
}

impl fmt::Display for Compression {
    /// The text that [`from_str`](Self::from_str) reads, or `as-stored`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{}", level.get()),
            Self::AsStored => f.write_str("as-stored"),
        }
    }
}

/// Options of a TBL file.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// The version to write; 2 unless told otherwise.
    pub version: TblVersion,
    /// The compression of samples. Photographs do not become smaller, so it is off by default.
    pub compression: Compression,
    /// Wait in [`StreamWriter::finish`](crate::StreamWriter::finish) until the disk has the file.
    /// On by default: without it a power failure soon after can lose a file that was reported as
    /// written.
    pub sync: bool,
    /// Replace a file that already has the name.
    pub overwrite: bool,
    /// The most samples that will come, when known. Their index then has its room at the front
    /// and payloads are written once; otherwise they are written, and copied at the end.
    pub sample_count: Option<u64>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            version: TblVersion::V2,
            compression: Compression::None,
            sync: true,
            overwrite: false,
            sample_count: None,
        }
    }
}

/// A summary of the file that [`StreamWriter::finish`](crate::StreamWriter::finish) wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Samples in the file.
    pub samples: u64,
    /// The file's size.
    pub bytes: u64,
    /// The samples' own bytes together.
    pub sample_bytes: u64,
    /// The bytes they occupy.
    pub stored_bytes: u64,
    /// Samples stored compressed.
    pub compressed_samples: u64,
    /// Samples stored with a row index.
    pub row_indexes: u64,
    /// The data that the file cannot store.
    pub unstored: Unstored,
}

/// Counts of what the file cannot hold, so that a caller can say what was left out. Row indexes are
/// not counted: they can be made again from the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unstored {
    /// Samples that had a key.
    pub keys: u64,
    /// Samples that got another key, since a TAR archive cannot tell them from others by theirs.
    pub renamed: u64,
    /// Samples that had a label.
    pub labels: u64,
    /// Sidecar fields.
    pub fields: u64,
    /// Samples that readers of a TAR archive or a folder pass over: those with hidden names, and
    /// those that are not images among images.
    pub passed_over: u64,
    /// Class names.
    pub class_names: u64,
    /// Names of the classes of boxes.
    pub box_class_names: u64,
    /// Metadata blocks of samples and of the file.
    pub metadata_blocks: u64,
}

/// How many numbers have a name.
pub(crate) fn count_named(names: &[String]) -> u64 {
    names.iter().filter(|name| !name.is_empty()).count() as u64
}
