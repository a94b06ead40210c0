//! Errors of tables.

use std::fmt;
use std::path::PathBuf;

use tbf_format::{FormatError, Region};
use tbl_io::ErrorKind;
use tl_pipeline::Fault;
use uuid::Uuid;

use crate::failure::Subject;

/// The reason why a command on a table failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableFailure {
    /// An IDV file is damaged or cannot be read.
    #[error("{}: {source}", Subject::file(path))]
    Idv { path: PathBuf, source: idv_format::ReadError },
    /// A TBF segment is damaged or cannot be read.
    #[error("{}: {source}{}", Subject::file(path), Place(*place))]
    Segment {
        path: PathBuf,
        /// The region at fault and where it starts, when what is wrong counts from there.
        place: Option<(Region, u64)>,
        source: FormatError,
    },
    /// Regions of a segment were not verified for lack of a key.
    #[error("{}: encrypted, not verified: {regions}; pass --key-file", Subject::file(path))]
    NotVerified { path: PathBuf, regions: String },
    /// A table has no column of this name.
    #[error("{}: no column {name:?}", Subject::file(path))]
    NoColumn { path: PathBuf, name: String },
    /// A table has no row of this number.
    #[error("{}: row {row} does not exist, there are {count}", Subject::file(path))]
    NoRow { path: PathBuf, row: u64, count: u64 },
    /// A segment has no node of this id.
    #[error("{}: no node has the id {id}", Subject::file(path))]
    NoNode { path: PathBuf, id: Uuid },
    /// Many segments have no node of this id.
    #[error("{}{}: no node has the id {id}", Subject::file(path), More(*more))]
    NoNodeInAny {
        /// The first of them.
        path: PathBuf,
        more: usize,
        id: Uuid,
    },
    /// A file is not the key it was taken for.
    #[error(
        "{}: not a key: {bytes} bytes, expected 32 bytes or 64 hexadecimal digits",
        Subject::file(path)
    )]
    KeyFile { path: PathBuf, bytes: u64 },
    /// Something else, where a segment is wanted.
    #[error("{}: not a TBF segment", Subject::file(path))]
    NoSegment { path: PathBuf },
    /// A JSON value that is not a vector.
    #[error("{}: not a JSON array of numbers: {source}", Subject::file(path))]
    VectorSyntax {
        /// The file, or the option.
        path: PathBuf,
        source: serde_json::Error,
    },
    /// A vector of another length than those of the segment.
    #[error("{}: {found} numbers, the segment's vectors have {expected}", Subject::file(path))]
    VectorLength {
        /// The file, or the option.
        path: PathBuf,
        /// Components of the segment's vectors.
        expected: usize,
        found: usize,
    },
}

impl Fault for TableFailure {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Idv { source, .. } => source.kind(),
            Self::Segment { source, .. } => source.kind(),
            Self::NotVerified { .. }
            | Self::KeyFile { .. }
            | Self::NoSegment { .. }
            | Self::VectorSyntax { .. }
            | Self::VectorLength { .. } => ErrorKind::Setting,
            Self::NoColumn { .. }
            | Self::NoRow { .. }
            | Self::NoNode { .. }
            | Self::NoNodeInAny { .. } => ErrorKind::NotFound,
        }
    }
}

/// The number of other paths.
struct More(usize);

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The offset of the region at fault, after a message that counts from there.
struct Place(Option<(Region, u64)>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some((region, offset)) => write!(f, " ({region} at byte {offset})"),
        }
    }
}
