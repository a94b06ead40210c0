//! The crates' errors as exceptions of `turboloader.exceptions`, with the message in one line and
//! the place in attributes.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what else there is, or will be, belongs to the last class"
)]

use std::io;
use std::iter;
use std::path::Path;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tbl_io::{ConvertError, Escaped, Location, MetadataDefect, ReadError, WriteError};
use tl_decode::DecodeError;
use tl_pipeline::{PipelineError, SampleError, SampleFault, SamplerError, TableError};
use tl_transform::{PlanError, RecipeError, StepError};
use turboloader::TableConversionError;

/// An exception to be: its class and what it says.
#[derive(Debug)]
pub(crate) struct Error {
    class: Class,
    message: Box<str>,
    place: Place,
    errno: Option<i32>,
    /// The exception of a function of the user's.
    cause: Option<Box<PyErr>>,
}

/// `ENOENT`.
const NOT_FOUND: i32 = 2;
/// `EACCES`.
const NO_ACCESS: i32 = 13;
/// `EEXIST`.
const EXISTS: i32 = 17;

/// The classes of `turboloader.exceptions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Format,
    Storage,
    Decode,
    Sample,
    Recipe,
    Setting,
    State,
    Index,
    Memory,
    Forked,
    Closed,
    Internal,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Format => "FormatError",
            Self::Storage => "StorageError",
            Self::Decode => "DecodeError",
            Self::Sample => "SampleError",
            Self::Recipe => "RecipeError",
            Self::Setting => "SettingError",
            Self::State => "StateError",
            Self::Index => "SampleIndexError",
            Self::Memory => "OutOfMemoryError",
            Self::Forked => "ForkedError",
            Self::Closed => "ClosedError",
            Self::Internal => "InternalError",
        }
    }
}

/// The place of an error.
#[derive(Debug, Default)]
struct Place {
    shard: Option<Location>,
    sample: Option<u64>,
    key: Option<Vec<u8>>,
    offset: Option<u64>,
}

impl Place {
    fn at(location: impl Into<Location>) -> Self {
        Self { shard: Some(location.into()), ..Self::default() }
    }
}

impl Error {
    fn new(class: Class, error: &dyn std::fmt::Display) -> Self {
        let (message, place) = (error.to_string().into(), Place::default());
        Self { class, message, place, errno: None, cause: None }
    }

    /// A setting that cannot be.
    pub(crate) fn setting(message: &dyn std::fmt::Display) -> Self {
        Self::new(Class::Setting, message)
    }

    /// A recipe that cannot be.
    pub(crate) fn recipe(message: &dyn std::fmt::Display) -> Self {
        Self::new(Class::Recipe, message)
    }

    /// A state that is none.
    pub(crate) fn state(message: &dyn std::fmt::Display) -> Self {
        Self::new(Class::State, message)
    }

    /// Bytes that there are not.
    pub(crate) fn memory(bytes: usize) -> Self {
        Self::new(Class::Memory, &format_args!("no memory for {bytes} bytes"))
    }

    /// A panic, which is a bug of ours.
    pub(crate) fn panic(message: &str) -> Self {
        let message = Escaped(message.as_bytes());
        Self::new(Class::Internal, &format_args!("panic, please report it: {message}"))
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The error of using an object that was closed.
    pub(crate) fn closed(message: &dyn std::fmt::Display) -> Self {
        Self::new(Class::Closed, message)
    }

    /// The error of reading an IDV file.
    pub(crate) fn idv(location: &Location, error: &idv_format::ReadError) -> Self {
        let (class, errno) = match error {
            error if error.is_damage() => (Class::Format, None),
            idv_format::ReadError::Io { source, .. } => (Class::Storage, number(source)),
            _ => (Class::Setting, None),
        };
        let offset = match error {
            idv_format::ReadError::Io { offset, .. }
            | idv_format::ReadError::Block { offset, .. }
            | idv_format::ReadError::Metadata { offset, .. } => Some(*offset),
            _ => None,
        };
        let place = Place { offset, ..Place::at(location) };
        Self { place, errno, message: in_file(location, error), ..Self::new(class, error) }
    }

    /// The error of converting columns of an IDV file into arrays.
    pub(crate) fn arrow(location: &Location, error: &idv_format::ArrowError) -> Self {
        match error {
            idv_format::ArrowError::Read(error) => Self::idv(location, error),
            _ => Self {
                place: Place::at(location),
                message: in_file(location, error),
                ..Self::new(Class::Format, error)
            },
        }
    }

    /// The error of a TBF segment.
    pub(crate) fn tbf(location: &Location, error: &tbf_format::FormatError) -> Self {
        let class = match error {
            tbf_format::FormatError::NoRow { .. } => Class::Index,
            tbf_format::FormatError::Absent { .. } | tbf_format::FormatError::KeyNeeded { .. } => {
                Class::Setting
            }
            _ => Class::Format,
        };
        let (place, message) = (Place::at(location), in_file(location, error));
        Self { place, message, ..Self::new(class, error) }
    }

    fn raise(&self, py: Python<'_>) -> PyResult<PyErr> {
        let class = match (self.class, self.errno) {
            (Class::Storage, Some(NOT_FOUND)) => "PathNotFoundError",
            (Class::Storage, Some(EXISTS)) => "PathExistsError",
            (Class::Storage, Some(NO_ACCESS)) => "PathPermissionError",
            (class, _) => class.name(),
        };
        let class = py.import("turboloader.exceptions")?.getattr(class)?;
        let exception = class.call1((&*self.message,))?;
        let Place { shard, sample, key, offset } = &self.place;
        exception.setattr("shard", shard.as_ref().map(Location::as_os_str))?;
        exception.setattr("sample", sample)?;
        exception.setattr("key", key.as_deref().map(|key| text(py, key)).transpose()?)?;
        exception.setattr("offset", offset)?;
        if self.errno.is_some() {
            exception.setattr("errno", self.errno)?;
            // Of a folder its file, which the key names.
            let file = match (shard, key) {
                (Some(folder), Some(key)) if folder.path().is_some_and(Path::is_dir) => {
                    Some(folder.join(key))
                }
                _ => shard.clone(),
            };
            exception.setattr("filename", file.as_ref().map(Location::as_os_str))?;
        }
        let raised = PyErr::from_value(exception);
        raised.set_cause(py, self.cause.as_ref().map(|cause| cause.clone_ref(py)));
        Ok(raised)
    }

    /// The exception for the thread that has called the user's functions itself: what is no failure
    /// of theirs, such as Ctrl-C, goes on as it is.
    pub(crate) fn of_call(self, py: Python<'_>) -> PyErr {
        match self.cause {
            Some(cause) if !cause.is_instance_of::<PyException>(py) => *cause,
            _ => self.into(),
        }
    }
}

/// The exception of a function of the user's that caused an error, if one did.
fn raised(error: &(dyn std::error::Error + 'static)) -> Option<Box<PyErr>> {
    let mut sources = iter::successors(Some(error), |error| error.source());
    let raised = sources.find_map(|error| error.downcast_ref::<PyErr>())?;
    Python::try_attach(|py| Box::new(raised.clone_ref(py)))
}

/// The name of a setting in Python.
fn setting_name(setting: &str) -> &str {
    match setting {
        "workers" => "num_workers",
        "prefetch" => "prefetch_batches",
        "window" => "the window of buckets",
        "multiple" => "the multiple of buckets",
        other => other,
    }
}

/// A message that names its file.
fn in_file(location: &Location, error: &dyn std::fmt::Display) -> Box<str> {
    format!("{location}: {error}").into()
}

/// A name that need not be UTF-8, as Python has those of files.
pub(crate) fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape"))
}

/// The bytes of such a name, or of one that is given as bytes.
pub(crate) fn name_bytes(name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if !name.is_instance_of::<PyString>() {
        return name.extract();
    }
    name.call_method1("encode", ("utf-8", "surrogateescape"))?.extract()
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| error.raise(py).unwrap_or_else(|error| error))
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self { message: error.to_string().into(), ..read(&error) }
    }
}

/// Class and place of a read error.
fn read(error: &ReadError) -> Error {
    let place = Place::at(error.location());
    let at = |class, offset: Option<u64>, errno| Error {
        class,
        message: Box::default(),
        place: Place { offset, ..place },
        errno,
        cause: None,
    };
    match error {
        ReadError::Io { source, .. } => at(Class::Storage, None, number(source)),
        ReadError::ChangedWhileOpen { offset, .. } | ReadError::Remote { offset, .. } => {
            at(Class::Storage, Some(*offset), None)
        }
        ReadError::NoStore { .. } | ReadError::NotMapped { .. } => at(Class::Setting, None, None),
        ReadError::NotAFile { .. }
        | ReadError::NotAFolder { .. }
        | ReadError::ObjectChanged { .. } => at(Class::Storage, None, None),
        ReadError::Format { offset, .. }
        | ReadError::Tar { offset, .. }
        | ReadError::Checksum { offset, .. } => at(Class::Format, Some(*offset), None),
        ReadError::SampleOutOfRange { index, .. } => {
            let error = at(Class::Index, None, None);
            Error { place: Place { sample: Some(*index), ..error.place }, ..error }
        }
        ReadError::NotRaw { index, .. } | ReadError::LabelWithoutClass { index, .. } => {
            let error = at(Class::Format, None, None);
            Error { place: Place { sample: Some(*index), ..error.place }, ..error }
        }
        ReadError::Sample { index, key, source } => {
            let error = read(source);
            let (sample, key) = (Some(*index), key.clone());
            Error { place: Place { sample, key, ..error.place }, ..error }
        }
        _ => at(Class::Format, None, None),
    }
}

/// The system's number of an error, also of those that the writers make themselves.
fn number(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or(match error.kind() {
        io::ErrorKind::NotFound => Some(NOT_FOUND),
        io::ErrorKind::AlreadyExists => Some(EXISTS),
        _ => None,
    })
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        let class = match &error {
            WriteError::Io { .. } | WriteError::AfterFailure { .. } => Class::Storage,
            WriteError::Metadata { source: MetadataDefect::NoSample { .. }, .. } => Class::Index,
            _ => Class::Format,
        };
        let (path, sample, errno) = match &error {
            WriteError::Io { path, source } => (path, None, number(source)),
            WriteError::Sample { path, index, .. } => (path, Some(*index), None),
            WriteError::Metadata { path, sample, .. } => (path, *sample, None),
            WriteError::MemberName { path, .. }
            | WriteError::TooManySamples { path, .. }
            | WriteError::Format { path, .. }
            | WriteError::AfterFailure { path } => (path, None, None),
            _ => return Self::new(class, &error),
        };
        let place = Place { sample, ..Place::at(path) };
        Self { place, errno, ..Self::new(class, &error) }
    }
}

impl From<ConvertError> for Error {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Read(error) | ConvertError::Structure(error) => error.into(),
            ConvertError::Write(error) => error.into(),
            ConvertError::Prepare { ref location, index, ref key, .. } => {
                let (sample, key) = (Some(index), key.clone());
                let place = Place { sample, key, ..Place::at(location) };
                Self { place, ..Self::new(Class::Sample, &error) }
            }
            ConvertError::WorkerNotStarted { ref source, .. } => {
                let errno = number(source);
                Self { errno, ..Self::new(Class::Storage, &error) }
            }
            ConvertError::TooManySamples { .. } => Self::new(Class::Format, &error),
            _ => Self::new(Class::Internal, &error),
        }
    }
}

impl From<TableConversionError> for Error {
    fn from(error: TableConversionError) -> Self {
        let (class, errno) = match error.io_error() {
            Some(error) => (Class::Storage, number(error)),
            None if error.is_damage() => (Class::Format, None),
            None => (Class::Setting, None),
        };
        Self { place: Place::at(error.location()), errno, ..Self::new(class, &error) }
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::new(Class::Decode, &error)
    }
}

impl From<RecipeError> for Error {
    fn from(error: RecipeError) -> Self {
        Self::new(Class::Recipe, &error)
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::new(Class::Recipe, &error)
    }
}

impl From<StepError> for Error {
    fn from(error: StepError) -> Self {
        Self { cause: raised(&error), ..Self::new(Class::Recipe, &error) }
    }
}

impl From<SamplerError> for Error {
    fn from(error: SamplerError) -> Self {
        Self::new(Class::Setting, &error)
    }
}

impl From<&SampleError> for Error {
    fn from(error: &SampleError) -> Self {
        let (class, errno) = match &error.fault {
            SampleFault::Read(error) => {
                let Self { class, errno, .. } = read(error);
                (class, errno)
            }
            SampleFault::Decode(_) => (Class::Decode, None),
            SampleFault::Panicked { .. } => (Class::Internal, None),
            _ => (Class::Sample, None),
        };
        let SampleError { index, key, shard, offset, .. } = error;
        let (sample, key, offset) = (Some(*index), key.clone(), *offset);
        let place = Place { sample, key, offset, ..Place::at(shard) };
        Self { class, message: error.to_string().into(), place, errno, cause: raised(error) }
    }
}

/// The error of a table.
fn table(location: &Location, error: &TableError) -> Error {
    let place = |offset| Place { offset, ..Place::at(location) };
    let found = match error {
        TableError::Read(error) => read(error),
        TableError::Idv(error) => Error::idv(location, error),
        TableError::Tbf(error) => Error::tbf(location, error),
        TableError::Block { offset, .. } => {
            Error { place: place(Some(*offset)), ..Error::new(Class::Format, error) }
        }
        TableError::Label { .. } | TableError::Limit { .. } => {
            Error { place: place(None), ..Error::new(Class::Format, error) }
        }
        _ => Error { place: place(None), ..Error::new(Class::Setting, error) },
    };
    Error { message: in_file(location, error), ..found }
}

impl From<PipelineError> for Error {
    fn from(error: PipelineError) -> Self {
        match &error {
            PipelineError::Open(_) => {
                let PipelineError::Open(error) = error else { unreachable!("matched above") };
                error.into()
            }
            PipelineError::Setting { setting, value, expected } => {
                let setting = setting_name(setting);
                let message = format_args!("{setting} is {value}, expected {expected}");
                Self::new(Class::Setting, &message)
            }
            PipelineError::ErrorRate { rate } => {
                let message = format_args!("max_error_rate is {rate}, expected 0 to 1");
                Self::new(Class::Setting, &message)
            }
            PipelineError::Table { location, source } => table(location, source),
            PipelineError::Sample(sample)
            | PipelineError::SizeUnknown(sample)
            | PipelineError::ErrorBudget { last: sample, .. } => {
                Self { message: error.to_string().into(), ..Self::from(&**sample) }
            }
            PipelineError::StateMismatch { .. }
            | PipelineError::StateBeyondEpoch { .. }
            | PipelineError::StateWithinBatch { .. } => Self::new(Class::State, &error),
            PipelineError::OutOfMemory { .. }
            | PipelineError::BatchesHeld { .. }
            | PipelineError::EpochRunning
            | PipelineError::BatchMemory { .. } => Self::new(Class::Memory, &error),
            PipelineError::Forked => Self::new(Class::Forked, &error),
            PipelineError::Label { index, .. } => {
                let place = Place { sample: Some(*index), ..Place::default() };
                Self { place, ..Self::new(Class::Sample, &error) }
            }
            PipelineError::Spawn { source, .. } => {
                Self { errno: number(source), ..Self::new(Class::Storage, &error) }
            }
            PipelineError::WorkerPanicked { .. } | PipelineError::Collate { .. } => {
                Self::new(Class::Internal, &error)
            }
            _ => Self::new(Class::Setting, &error),
        }
    }
}
