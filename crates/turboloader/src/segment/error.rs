//! Errors of segments as files.

use std::io;

use tbf_format::{BuildError, FormatError, SegmentWriteError};
use tbl_io::{ErrorKind, ErrorPlace, Location, ReadError};
use tl_pipeline::Fault;

/// The reason why segments cannot be read, merged or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SegmentError {
    /// A file cannot be opened or read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A segment is damaged, or needs another key.
    #[error("{location}: {source}")]
    Format { location: Location, source: FormatError },
    /// The nodes do not form a segment.
    #[error("{location}: {source}")]
    Build { location: Location, source: BuildError },
    /// The system refuses to write or to remove a file.
    #[error("{location}: {source}")]
    Write { location: Location, source: io::Error },
    /// Segments whose vectors have another type or another number of components.
    #[error("{location}: vectors are {found}, expected {expected} as in {first}")]
    Vectors {
        location: Location,
        found: String,
        expected: String,
        /// The segment that was read first.
        first: Location,
    },
    /// Nothing to merge.
    #[error("{location}: no TBF segments, expected files named *.tbf")]
    NoSegments { location: Location },
    /// A folder that has more than segments.
    #[error("{location}: not a TBF segment, expected only files named *.tbf in this folder")]
    OtherFile { location: Location },
    /// A segment that was replaced, rewritten or removed during the work.
    #[error("{location}: changed while it was merged; start again when nothing else writes it")]
    Changed { location: Location },
    /// A destination that is one of the sources.
    #[error("{location}: is a source and the destination; pass another destination")]
    SourceIsDestination { location: Location },
    /// The system gives no random bytes, which encryption needs.
    #[error("{location}: no random bytes for the nonce of an encrypted segment: {message}")]
    Random { location: Location, message: String },
    /// An earlier error left the segment incomplete.
    #[error("{location}: the segment cannot be continued after an error")]
    Failed { location: Location },
    /// The caller ended the work.
    #[error("{location}: stopped")]
    Stopped { location: Location },
}

impl SegmentError {
    /// The error of writing the segment at `location`.
    pub(super) fn write(location: &Location, error: SegmentWriteError) -> Self {
        let location = location.clone();
        match error {
            SegmentWriteError::Build(source) => Self::Build { location, source },
            SegmentWriteError::Io { source } => Self::Write { location, source },
            SegmentWriteError::Failed => Self::Failed { location },
            // Encrypted segments are built in memory.
            other @ (SegmentWriteError::Encryption | _) => {
                Self::Write { location, source: io::Error::other(other) }
            }
        }
    }

    /// The error of the system, if it is at fault.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        let (Self::Write { source, .. } | Self::Read(ReadError::Io { source, .. })) = self else {
            return None;
        };
        Some(source)
    }
}

impl Fault for SegmentError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Format { source, .. } => source.kind(),
            Self::Build { .. } => ErrorKind::Data,
            Self::Write { .. } | Self::Random { .. } | Self::Changed { .. } => ErrorKind::System,
            Self::Vectors { .. }
            | Self::NoSegments { .. }
            | Self::OtherFile { .. }
            | Self::SourceIsDestination { .. }
            | Self::Failed { .. }
            | Self::Stopped { .. } => ErrorKind::Setting,
        }
    }

    fn place(&self) -> ErrorPlace {
        match self {
            Self::Read(error) => error.place(),
            Self::Format { location, .. }
            | Self::Build { location, .. }
            | Self::Write { location, .. }
            | Self::Vectors { location, .. }
            | Self::NoSegments { location }
            | Self::OtherFile { location }
            | Self::Changed { location }
            | Self::SourceIsDestination { location }
            | Self::Random { location, .. }
            | Self::Failed { location }
            | Self::Stopped { location } => ErrorPlace::at(location),
        }
    }
}
