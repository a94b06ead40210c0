//! The reasons why a command could not answer, and the exit code of each.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter;
use std::path::PathBuf;

use tbl_io::{Entry, ErrorKind, Escaped, Location, RowsDefect, SampleSource};
use tl_pipeline::Fault;

/// The result of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Good,
    /// The command said what is wrong: damage, lost samples, differences.
    Bad,
}

/// The subject of an error: a file, or a sample of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    location: Location,
    sample: Option<(u64, Option<Vec<u8>>)>,
}

impl Subject {
    /// A whole file.
    pub(crate) fn file(location: impl Into<Location>) -> Self {
        Self { location: location.into(), sample: None }
    }

    /// Sample `index` of `source`, whose index entry is `entry`.
    pub(crate) fn sample(source: &dyn SampleSource, index: u64, entry: &Entry<'_>) -> Self {
        let key = entry.key.as_deref().map(<[u8]>::to_vec);
        Self { location: source.location().clone(), sample: Some((index, key)) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.location)?;
        match &self.sample {
            None => Ok(()),
            Some((index, None)) => write!(f, ": sample {index}"),
            Some((index, Some(key))) => write!(f, ": sample {index} ({})", Escaped(key)),
        }
    }
}

/// The reason why a command stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file or folder that cannot be read or written.
    #[error("{}: {source}", Subject::file(path))]
    Io {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("standard output: {source}")]
    Stdout {
        /// The error of the system.
        source: io::Error,
    },
    /// The reader of standard output is gone, which is not an error: it had enough.
    #[error("standard output is closed")]
    ClosedPipe,
    /// The output file exists.
    #[error("{}: exists already (-f replaces it)", Subject::file(path))]
    Exists { path: PathBuf },
    /// Options that cannot be combined.
    #[error("{what}")]
    Usage {
        /// The options, and what is right.
        what: &'static str,
    },
    /// A reason that only one command has.
    #[error("{message}")]
    Command {
        /// The party at fault.
        kind: ErrorKind,
        /// The sentence to be printed.
        message: String,
    },
    /// An error of the library.
    #[error("{0}")]
    Fault(Box<dyn Fault + Send + Sync>),
    /// Some samples of a data set, or parts of a table, are damaged; all others have been dealt
    /// with.
    #[error("{count} of {of} {what} are damaged, the first: {first}")]
    DamagedParts {
        /// The unit that is counted.
        what: &'static str,
        count: u64,
        of: u64,
        /// The first one's error.
        first: Box<Self>,
    },
}

impl<F: Fault + Send + Sync + 'static> From<F> for Failure {
    fn from(fault: F) -> Self {
        let place = fault.place().location;
        if let Some(location) = place.filter(|_| exists_already(&fault)) {
            return Self::Exists { path: location.as_os_str().into() };
        }
        if lacks_column(&fault) {
            let message = format!("{fault} (--image-column)");
            return Self::Command { kind: fault.kind(), message };
        }
        Self::Fault(Box::new(fault))
    }
}

/// The first cause of this type.
fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut causes = iter::successors(Some(error), |&error| error.source());
    causes.find_map(|error| error.downcast_ref())
}

/// Whether an error says that an output file exists.
fn exists_already(error: &(dyn Error + 'static)) -> bool {
    cause(error).is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists)
}

/// Whether an error says that the column of the samples has to be named.
fn lacks_column(error: &(dyn Error + 'static)) -> bool {
    cause(error).is_some_and(RowsDefect::lacks_column)
}

impl Failure {
    /// Data that is damaged, or that the command cannot use.
    pub(crate) fn data(message: impl fmt::Display) -> Self {
        Self::Command { kind: ErrorKind::Data, message: message.to_string() }
    }

    /// An option or a question that has no answer.
    pub(crate) fn setting(message: impl fmt::Display) -> Self {
        Self::Command { kind: ErrorKind::Setting, message: message.to_string() }
    }

    /// A refusal of the system.
    pub(crate) fn system(message: impl fmt::Display) -> Self {
        Self::Command { kind: ErrorKind::System, message: message.to_string() }
    }

    /// An error of standard output; a closed pipe is distinguished.
    pub(crate) fn stdout(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Stdout { source }
        }
    }

    /// The party at fault.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Fault(fault) => fault.kind(),
            Self::Command { kind, .. } => *kind,
            Self::DamagedParts { .. } => ErrorKind::Data,
            Self::Usage { .. } => ErrorKind::Setting,
            Self::Io { .. } | Self::Stdout { .. } | Self::ClosedPipe | Self::Exists { .. } => {
                ErrorKind::System
            }
        }
    }

    /// Whether the data is at fault, rather than the usage or the system.
    pub(crate) fn is_about_data(&self) -> bool {
        self.kind() == ErrorKind::Data
    }

    /// The error of a command or of the library, if it is of this type.
    #[cfg(feature = "tables")]
    pub(crate) fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        let Self::Fault(fault) = self else { return None };
        let error: &(dyn Error + 'static) = &**fault;
        error.downcast_ref()
    }

    /// The exit code: 1 when the data is at fault, 2 when the usage or the system is.
    pub(crate) fn exit_code(&self) -> u8 {
        if matches!(self, Self::ClosedPipe) {
            return EXIT_GOOD;
        }
        match self.kind() {
            ErrorKind::Data => EXIT_BAD,
            ErrorKind::Internal => EXIT_INTERNAL,
            ErrorKind::Setting | ErrorKind::NotFound | ErrorKind::System | ErrorKind::Limit | _ => {
                EXIT_USAGE
            }
        }
    }
}

/// The damaged samples, or parts of a table, that were met on the way through it.
#[derive(Debug, Default)]
pub(crate) struct DamagedParts {
    count: u64,
    first: Option<Box<Failure>>,
}

impl DamagedParts {
    /// Counts what cannot be read, if that is the data's fault.
    ///
    /// # Errors
    /// The failure itself when it is not, for then the next part would fail as well.
    pub(crate) fn count_if_damage(&mut self, failure: impl Into<Failure>) -> Result<(), Failure> {
        self.note_if_damage(failure)?;
        self.count_more(1);
        Ok(())
    }

    /// Keeps the first failure, if it is the data's fault, and does not count it.
    ///
    /// # Errors
    /// As for [`count_if_damage`](Self::count_if_damage).
    pub(crate) fn note_if_damage(&mut self, failure: impl Into<Failure>) -> Result<(), Failure> {
        let failure = failure.into();
        if !failure.is_about_data() {
            return Err(failure);
        }
        self.first.get_or_insert_with(|| Box::new(failure));
        Ok(())
    }

    /// Counts parts whose failure was noted.
    pub(crate) fn count_more(&mut self, parts: u64) {
        self.count = self.count.saturating_add(parts);
    }

    /// The result of a command that has processed `of` of `what`.
    ///
    /// # Errors
    /// [`Failure::DamagedParts`] when there was a damaged one.
    pub(crate) fn verdict(self, of: u64, what: &'static str) -> Result<Verdict, Failure> {
        match self.first {
            None => Ok(Verdict::Good),
            Some(first) => Err(Failure::DamagedParts { what, count: self.count, of, first }),
        }
    }

    /// The first failure.
    #[cfg(feature = "tables")]
    pub(crate) fn into_first(self) -> Option<Failure> {
        self.first.map(|first| *first)
    }
}

/// The failure of a command that has nothing to measure.
pub(crate) const NO_SAMPLES: Failure = Failure::Usage { what: "no samples to measure" };

/// All is well.
pub(crate) const EXIT_GOOD: u8 = 0;
/// The answer is bad.
pub(crate) const EXIT_BAD: u8 = 1;
/// Wrong usage, or the operating system refused.
pub(crate) const EXIT_USAGE: u8 = 2;
/// A bug: `EX_SOFTWARE` of sysexits.h, told apart from every answer.
pub(crate) const EXIT_INTERNAL: u8 = 70;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tbl_io::ReadError;
    use tl_pipeline::{PipelineError, SampleError, SampleFault};

    use super::*;

    #[test]
    fn a_sample_whose_size_is_lost_is_the_datas_fault_or_the_systems() {
        let location = || Location::new("train.tbl");
        let code = |fault: SampleFault| {
            let index = 3;
            let key = None;
            let offset = None;
            let error = SampleError { index, key, shard: location(), offset, fault, attempts: 1 };
            Failure::from(PipelineError::SizeUnknown(Arc::new(error))).exit_code()
        };
        let cut = ReadError::ChangedWhileOpen { location: location(), offset: 64, expected: 24 };
        assert_eq!(code(cut.into()), EXIT_BAD);
        let source = io::ErrorKind::PermissionDenied.into();
        assert_eq!(code(ReadError::Io { location: location(), source }.into()), EXIT_USAGE);
        let message = "index out of bounds".to_owned();
        assert_eq!(code(SampleFault::Panicked { message }), EXIT_INTERNAL);
    }
}
