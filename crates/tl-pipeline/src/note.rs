//! Notes: what a user of a loader should know that is not an error.

use std::fmt;

use tbl_io::Note;
use tl_decode::Reductions;

use crate::audit::{AuditEntry, Outcome};

/// A finding about a loader that is not an error, but that its user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoaderNote {
    /// Threads read instead of `io_uring`.
    NoUring {
        /// The number of threads.
        threads: usize,
        /// The system's message; `None` without the feature.
        error: Option<String>,
    },
    /// The workers read from here on: a reader could not be started, or `io_uring` failed.
    ReadersGone {
        /// The message of the system.
        error: String,
    },
    /// The source of a sample panicked when it was asked before the sample's turn: to announce it,
    /// where its bytes are, or for them. The first of such panics. The sample is read in its turn,
    /// and if that panics too it is the sample's error.
    ReadAheadPanicked {
        /// The sample's number in the data set.
        sample: u64,
        /// The panic's message on one line, or empty.
        message: String,
    },
    /// Blocks of a shuffle over objects in stores are requested in parts, because fewer bytes are read
    /// ahead than two windows of the shuffle have.
    ShortReadAhead {
        /// The bytes that are read ahead.
        bytes: u64,
        /// Those that it would take.
        wanted: u64,
    },
    /// A sample was bad, and was skipped, replaced or filled: the first one of the loader.
    /// [`Loader::audit`](crate::Loader::audit) lists all, [`Loader::stats`](crate::Loader::stats)
    /// counts them.
    BadSample {
        /// The outcome for this sample.
        outcome: Outcome,
        /// The sample and its defect.
        error: String,
    },
    /// Images lose something where they become RGB of 8 bits: one that a worker found. Of JPEG files
    /// only the first 64 of each worker are looked at, since hardly any has more than 8 bits, and
    /// images from a cache of decoded images are not.
    Reduced {
        /// The sample's number in the data set.
        sample: u64,
        /// The properties that it loses.
        lost: Reductions,
    },
    /// Some samples have no label, labels in files differ from the class folders, or folders may be
    /// classes or splits.
    Labels {
        /// The finding.
        note: Note,
    },
    /// The names of a label's categories are damaged; the labels are usable.
    NoClassNames {
        /// The defect.
        error: String,
    },
}

impl LoaderNote {
    /// The note on the first bad sample.
    pub(crate) fn bad_sample(entry: &AuditEntry) -> Self {
        Self::BadSample { outcome: entry.outcome, error: entry.error.to_string() }
    }
}

impl fmt::Display for LoaderNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUring { threads, error: Some(error) } => {
                write!(f, "io_uring is refused here ({error}), {threads} threads read instead")
            }
            Self::NoUring { threads, error: None } => {
                write!(f, "built without io_uring, {threads} threads read instead")
            }
            Self::ReadersGone { error } => {
                write!(f, "read-ahead stopped ({error}); workers now read directly")
            }
            Self::ReadAheadPanicked { sample, message } => {
                write!(f, "reading ahead panicked at sample {sample}: {message}")
            }
            Self::ShortReadAhead { bytes, wanted } => write!(
                f,
                "{} MiB are read ahead, and the shuffle needs {} MiB to request its blocks whole: it \
                 takes more requests, each for fewer samples",
                bytes >> 20,
                wanted.div_ceil(1 << 20)
            ),
            Self::BadSample { outcome, error } => {
                let policy = match outcome {
                    Outcome::Replaced { .. } => "replaced",
                    Outcome::Filled => "filled with zeros",
                    Outcome::Skipped | Outcome::Raised | Outcome::Kept => "skipped",
                };
                write!(f, "bad samples are {policy}, the first: {error}")
            }
            Self::Reduced { sample, lost } => {
                let kinds = [
                    (lost.bit_depth, "samples of more than 8 bits"),
                    (lost.sample_format, "signed or floating-point samples"),
                    (lost.alpha, "transparency"),
                    (lost.one_channel, "a single channel"),
                ];
                let lost: Vec<_> = kinds.iter().filter(|kind| kind.0).map(|kind| kind.1).collect();
                let lost = lost.join(", ");
                write!(
                    f,
                    "images become RGB of 8 bits; the first that differs, sample {sample}, has {lost}"
                )
            }
            Self::Labels { note } => note.fmt(f),
            Self::NoClassNames { error } => {
                write!(f, "the names of classes cannot be read: {error}")
            }
        }
    }
}
