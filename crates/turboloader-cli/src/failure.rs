//! Why a command could not answer, and the exit code each reason has.

mod table;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::TryFromFloatSecsError;

use tbl_io::{ConvertError, Entry, Escaped, Location, Note, ReadError, SampleSource, WriteError};
use tl_decode::DecodeError;
use tl_pipeline::{PipelineError, SampleFault};
use tl_transform::{PlanError, RecipeError};
use turboloader::{ExplainError, RecipeFileError, SchemaError, SquareError, TableConversionError};

use crate::extract::NameDefect;

pub(crate) use table::TableFailure;

/// What a command that ran to its end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Good,
    /// The command said what is wrong: damage, lost samples, differences.
    Bad,
}

/// What an error is about: a file, or a sample of a data set.
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

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file or folder refused to be read or written.
    #[error("{}: {source}", Subject::file(path))]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Standard output refused.
    #[error("standard output: {source}")]
    Stdout {
        /// What the operating system said.
        source: io::Error,
    },
    /// The reader of standard output has gone, which is no error: it had enough.
    #[error("standard output is closed")]
    ClosedPipe,
    /// The output file is already there.
    #[error("{}: exists already (-f replaces it)", Subject::file(path))]
    Exists {
        /// The output file.
        path: PathBuf,
    },
    /// Bytes of an image do not belong on a terminal.
    #[error("refusing to write binary data to a terminal (redirect it, or name a file with -o)")]
    BinaryOnTerminal,
    /// A data set is damaged or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Something about a table: damage, or asking for what it does not have.
    #[error(transparent)]
    Table(Box<TableFailure>),
    /// An image does not decode.
    #[error("{of}: {source}")]
    Decode {
        /// Which one.
        of: Subject,
        /// Why.
        source: DecodeError,
    },
    /// A sample of raw pixels is not as large as its index entry says.
    #[error("{of}: {found} bytes of raw pixels, expected {expected}")]
    RawSize {
        /// The sample.
        of: Subject,
        /// Width times height times 3.
        expected: u64,
        /// Its size.
        found: u64,
    },
    /// A table cannot be converted.
    #[error(transparent)]
    TableConversion(TableConversionError),
    /// `--schema` cannot be understood.
    #[error("--schema: {0}")]
    Schema(#[from] SchemaError),
    /// A recipe cannot be made with these parameters.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A file is not the recipe it was taken for.
    #[error(transparent)]
    RecipeFile(RecipeFileError),
    /// Neither a file nor the name of a recipe.
    #[error("{location}: no such file, and no recipe of this name ({names})")]
    NoRecipe {
        /// The name.
        location: Location,
        /// The names that there are.
        names: String,
    },
    /// A loader cannot start, or a sample stopped it.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// A recipe has no plan for an image of this size.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// `--decode-margin` beside `--decode exact`.
    #[error("--decode-margin: exact decoding has no margin")]
    MarginOfExact,
    /// `--decode` for a recipe that makes no smaller image.
    #[error("--decode and --decode-margin need a recipe that resizes")]
    NoDecodeMode,
    /// `--views` for a recipe that decodes.
    #[error("--views lends stored bytes: it needs --recipe raw")]
    NoViews,
    /// There is nothing to measure.
    #[error("no samples to measure")]
    NoSamples,
    /// Folders and archives without a single sample, where a copy of them is wanted: nothing tells an
    /// empty one from a wrong one.
    #[error(
        "{}: no samples, expected at least one file that is not hidden{}",
        location,
        passed_over.as_ref().map_or(String::new(), |note| format!("; {note}"))
    )]
    Empty {
        /// The first of them.
        location: Location,
        /// What it has instead, if it has anything.
        passed_over: Option<Box<Note>>,
    },
    /// There is nothing for this rank.
    #[error(
        "rank {rank} of {world} has no batch: the epoch has {positions} samples, a global batch \
         {global_batch}"
    )]
    NoBatch {
        /// The process's number.
        rank: u32,
        /// How many processes there are.
        world: u32,
        /// What all of them have together.
        positions: u64,
        /// Samples of a global batch.
        global_batch: u64,
    },
    /// Not one weight for each data set.
    #[error("--mix has {weights} weights for {data_sets} data sets")]
    Mix {
        /// How many weights there are.
        weights: usize,
        /// How many data sets there are.
        data_sets: usize,
    },
    /// A line of a file of weights is none.
    #[error(
        "{}: line {line}: `{}` is no weight, expected a number from 0 up",
        Subject::file(path),
        Escaped(found)
    )]
    Weight {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// What it holds.
        found: Vec<u8>,
    },
    /// No length of time.
    #[error("{option} {value}: {source}")]
    Seconds {
        /// The option that names it.
        option: &'static str,
        /// What was asked for.
        value: f64,
        /// What is wrong with it.
        source: TryFromFloatSecsError,
    },
    /// Some images of a sheet do not decode; the sheet shows which.
    #[error("{count} of {of} samples do not decode, the first: {first}")]
    Damaged {
        /// How many.
        count: usize,
        /// Of how many.
        of: usize,
        /// The first one's error.
        first: Box<Self>,
    },
    /// Some samples of a data set, or parts of a table, are damaged; all others have been dealt
    /// with.
    #[error("{count} of {of} {what} are damaged, the first: {first}")]
    DamagedParts {
        /// What is counted.
        what: &'static str,
        /// How many.
        count: u64,
        /// Of how many.
        of: u64,
        /// The first one's error.
        first: Box<Self>,
    },
    /// A contact sheet would be too large.
    #[error(
        "a sheet of {columns} x {rows} cells has more than {limit} pixels (show fewer, or smaller with --size)"
    )]
    SheetTooLarge {
        /// Cells in a row.
        columns: usize,
        /// Rows of cells.
        rows: usize,
        /// The largest sheet in pixels.
        limit: u64,
    },
    /// The sample has no such sidecar field.
    #[error("{of}: no field `{extension}`")]
    NoField {
        /// The sample.
        of: Subject,
        /// The field's extension.
        extension: String,
    },
    /// A sample's name, or that of a field, is not a path below the output folder.
    #[error("{of}: refusing to extract: {defect}")]
    UnsafeName {
        /// The sample.
        of: Subject,
        /// What is wrong with the name.
        defect: NameDefect,
    },
    /// The system refused to start a thread.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    Spawn {
        /// The worker's number, from 0.
        worker: usize,
        /// How many were to work.
        workers: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// A conversion stopped.
    #[error(transparent)]
    Convert(ConvertError),
    /// Squares of pixels that no image may become.
    #[error("--size {0}")]
    Square(#[from] SquareError),
    /// A command line that does not parse.
    #[error("{said} (see --help)")]
    CommandLine {
        /// What is wrong with it.
        said: String,
    },
    /// Options that do not go together.
    #[error("{what}")]
    Usage {
        /// Which, and what is right.
        what: &'static str,
    },
}

impl Failure {
    /// An error of standard output; a closed pipe is told apart.
    pub(crate) fn stdout(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Stdout { source }
        }
    }

    /// Whether the data is at fault, rather than the usage or the system.
    pub(crate) fn is_about_data(&self) -> bool {
        match self {
            Self::Read(error) | Self::Pipeline(PipelineError::Open(error)) => error.is_damage(),
            Self::Table(failure) => failure.is_about_data(),
            Self::Pipeline(PipelineError::Sample(error) | PipelineError::SizeUnknown(error)) => {
                if let SampleFault::Column { source, .. } = &error.fault {
                    return table::is_about_table(source);
                }
                let SampleFault::Read(error) = &error.fault else { return true };
                error.is_damage()
            }
            Self::Pipeline(PipelineError::Table { source, .. }) => table::is_about_table(source),
            Self::Convert(error) => error.is_damage(),
            Self::TableConversion(error) => error.is_damage(),
            Self::Pipeline(
                PipelineError::ErrorBudget { .. } | PipelineError::EmptyBatch { .. },
            )
            | Self::Decode { .. }
            | Self::RawSize { .. }
            | Self::Damaged { .. }
            | Self::DamagedParts { .. }
            | Self::Empty { .. }
            | Self::UnsafeName { .. } => true,
            Self::Io { .. }
            | Self::Stdout { .. }
            | Self::ClosedPipe
            | Self::Exists { .. }
            | Self::BinaryOnTerminal
            | Self::Recipe(_)
            | Self::RecipeFile(_)
            | Self::NoRecipe { .. }
            | Self::Schema(_)
            | Self::Plan(_)
            | Self::Pipeline(_)
            | Self::NoSamples
            | Self::NoBatch { .. }
            | Self::Mix { .. }
            | Self::Weight { .. }
            | Self::Seconds { .. }
            | Self::SheetTooLarge { .. }
            | Self::NoField { .. }
            | Self::Spawn { .. }
            | Self::Square(_)
            | Self::CommandLine { .. }
            | Self::Usage { .. }
            | Self::MarginOfExact
            | Self::NoDecodeMode
            | Self::NoViews => false,
        }
    }

    /// Whether a worker of the loader has panicked.
    fn is_panic(&self) -> bool {
        let Self::Pipeline(error) = self else { return false };
        let (PipelineError::Sample(error) | PipelineError::SizeUnknown(error)) = error else {
            return matches!(error, PipelineError::WorkerPanicked { .. });
        };
        matches!(error.fault, SampleFault::Panicked { .. })
    }

    /// The exit code: 1 when the data is at fault, 2 when the usage or the system is.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.is_panic() {
            EXIT_INTERNAL
        } else if matches!(self, Self::ClosedPipe) {
            EXIT_GOOD
        } else if self.is_about_data() {
            EXIT_BAD
        } else {
            EXIT_USAGE
        }
    }
}

impl From<TableConversionError> for Failure {
    fn from(error: TableConversionError) -> Self {
        let exists = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        if error.io_error().is_some_and(exists) {
            return Self::Exists { path: error.location().as_os_str().into() };
        }
        Self::TableConversion(error)
    }
}

impl From<RecipeFileError> for Failure {
    fn from(error: RecipeFileError) -> Self {
        if let RecipeFileError::Read(error) = error {
            return error.into();
        }
        Self::RecipeFile(error)
    }
}

impl From<ExplainError> for Failure {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::Recipe(error) => error.into(),
            ExplainError::Plan(error) => error.into(),
            _ => Self::Usage { what: "this recipe cannot be explained" },
        }
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        if let ConvertError::Write(WriteError::Io { path, source }) = &error
            && source.kind() == io::ErrorKind::AlreadyExists
        {
            return Self::Exists { path: path.clone() };
        }
        Self::Convert(error)
    }
}

/// The damaged samples, or parts of a table, that were met on the way through it.
#[derive(Debug, Default)]
pub(crate) struct DamagedParts {
    count: u64,
    first: Option<Box<Failure>>,
}

impl DamagedParts {
    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

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

    /// How a command ends that has gone through `of` of `what`.
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
    pub(crate) fn into_first(self) -> Option<Failure> {
        self.first.map(|first| *first)
    }
}

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

    use tl_pipeline::SampleError;

    use super::*;

    #[test]
    fn a_sample_whose_size_is_lost_is_the_datas_fault_or_the_systems() {
        let location = || Location::new("train.tbl");
        let code = |fault: SampleFault| {
            let (index, key, offset) = (3, None, None);
            let error = SampleError { index, key, shard: location(), offset, fault };
            Failure::Pipeline(PipelineError::SizeUnknown(Arc::new(error))).exit_code()
        };
        let cut = ReadError::ChangedWhileOpen { location: location(), offset: 64, expected: 24 };
        assert_eq!(code(cut.into()), EXIT_BAD);
        let source = io::ErrorKind::PermissionDenied.into();
        assert_eq!(code(ReadError::Io { location: location(), source }.into()), EXIT_USAGE);
        let message = "index out of bounds".to_owned();
        assert_eq!(code(SampleFault::Panicked { message }), EXIT_INTERNAL);
    }
}
