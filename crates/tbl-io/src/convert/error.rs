//! Errors of conversions.

use std::error::Error;
use std::io;

use crate::error::ReadError;
use crate::escape::Escaped;
use crate::kind::ErrorKind;
use crate::location::Location;
use crate::ordered::{NotStarted, Panicked};
use crate::write_error::WriteError;
use crate::writer::EncodeError;

/// An error that stopped a conversion. No file has the final name then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ConvertError {
    /// A source is damaged or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The index or the metadata of a source is damaged.
    #[error("{0}; save its samples with `tl repair` first")]
    Structure(#[source] ReadError),
    /// The destination cannot be written, or its format cannot hold a sample.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The caller's preparation refused a sample.
    #[error(
        "{}: sample {index}{}: {source}",
        location,
        InBrackets(key.as_deref())
    )]
    Prepare {
        location: Location,
        /// The sample's number in it.
        index: u64,
        /// The sample's name, when it has one.
        key: Option<Vec<u8>>,
        /// The error of the preparation; the caller chooses its type.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A thread panicked: a bug, in this library or in the caller's preparation.
    #[error("the thread that worked on sample {index} panicked")]
    WorkerPanicked {
        /// The sample's number, counted over all sources.
        index: u64,
    },
    /// The system refused to start a thread.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    WorkerNotStarted {
        /// The worker's number, from 0.
        worker: usize,
        workers: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// The caller's progress function stopped the conversion.
    #[error("stopped")]
    Stopped,
    /// More samples than 64 bits, or threads, or this system, can count.
    #[error("too many samples: counting overflowed after {sample_count}")]
    TooManySamples {
        /// The samples counted before the sum overflowed.
        sample_count: u64,
    },
}

impl ConvertError {
    /// A finding of the check of a source's structure.
    pub(super) fn of_structure(error: ReadError) -> Self {
        if error.is_damage() { Self::Structure(error) } else { Self::Read(error) }
    }

    /// Whether the data is at fault rather than the system or the caller.
    pub fn is_damage(&self) -> bool {
        self.kind() == ErrorKind::Data
    }
}

/// A sample that the target cannot hold.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("RAW_U8 pixels do not say their own size and cannot go into {target}")]
    RawPixels {
        /// The target with its article.
        target: &'static str,
    },
}

impl From<Panicked> for ConvertError {
    fn from(Panicked(index): Panicked) -> Self {
        Self::WorkerPanicked { index }
    }
}

impl From<NotStarted> for ConvertError {
    fn from(NotStarted { worker, workers, source }: NotStarted) -> Self {
        Self::WorkerNotStarted { worker, workers, source }
    }
}

/// ` (name)`, or nothing for a sample without a name.
struct InBrackets<'a>(Option<&'a [u8]>);

impl std::fmt::Display for InBrackets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(key) => write!(f, " ({})", Escaped(key)),
            None => Ok(()),
        }
    }
}
