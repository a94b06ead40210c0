//! What can go wrong with a table.

use std::fmt;
use std::path::PathBuf;

use tbf_format::{FormatError, Region};
use tbl_io::ErrorKind;
use tl_pipeline::Fault;
use uuid::Uuid;

use crate::failure::Subject;

/// Why a table has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableFailure {
    /// An IDV file is damaged or cannot be read.
    #[error("{}: {source}", Subject::file(path))]
    Idv {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: idv_format::ReadError,
    },
    /// A TBF segment is damaged or cannot be read.
    #[error("{}: {source}{}", Subject::file(path), Place(*place))]
    Segment {
        /// The file.
        path: PathBuf,
        /// The region at fault and where it starts, when what is wrong counts from there.
        place: Option<(Region, u64)>,
        /// What is wrong with it.
        source: FormatError,
    },
    /// Regions of a segment were not verified for lack of a key.
    #[error("{}: encrypted, not verified: {regions}; pass --key-file", Subject::file(path))]
    NotVerified {
        /// The segment.
        path: PathBuf,
        /// The regions.
        regions: String,
    },
    /// A table has no column of this name.
    #[error("{}: no column {name:?}", Subject::file(path))]
    NoColumn {
        /// The table.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A table has no row of this number.
    #[error("{}: row {row} does not exist, there are {count}", Subject::file(path))]
    NoRow {
        /// The table.
        path: PathBuf,
        /// The number.
        row: u64,
        /// How many there are.
        count: u64,
    },
    /// A segment has no node of this id.
    #[error("{}: no node has the id {id}", Subject::file(path))]
    NoNode {
        /// The segment.
        path: PathBuf,
        /// The id.
        id: Uuid,
    },
    /// A file is not the key it was taken for.
    #[error(
        "{}: {bytes} bytes are no key, expected 32 bytes or 64 hexadecimal digits",
        Subject::file(path)
    )]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Something else, where a segment is wanted.
    #[error("{}: not a TBF segment", Subject::file(path))]
    NoSegment {
        /// The path.
        path: PathBuf,
    },
    /// What should be a vector is none.
    #[error("{}: no JSON array of numbers: {source}", Subject::file(path))]
    VectorSyntax {
        /// The file, or the option.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A vector of another length than those of the segment.
    #[error("{}: {found} numbers, the segment's vectors have {expected}", Subject::file(path))]
    VectorLength {
        /// The file, or the option.
        path: PathBuf,
        /// Components of the segment's vectors.
        expected: usize,
        /// Numbers given.
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
            Self::NoColumn { .. } | Self::NoRow { .. } | Self::NoNode { .. } => ErrorKind::NotFound,
        }
    }
}

/// Where the region at fault starts, behind a message that counts from there.
struct Place(Option<(Region, u64)>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some((region, offset)) => write!(f, " ({region} at byte {offset})"),
        }
    }
}
