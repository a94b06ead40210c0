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
use tbl_io::{ConvertError, ErrorKind, ErrorPlace, Escaped, Location, ReadError, WriteError};
use tl_decode::DecodeError;
use tl_pipeline::{Fault, PipelineError, SampleError, SampleFault, SamplerError, TableError};
use tl_transform::{PlanError, RecipeError, StepError};

/// An exception to be: its class and what it says.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) class: Class,
    message: Box<str>,
    place: ErrorPlace,
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
pub(crate) enum Class {
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

impl Error {
    pub(crate) fn new(class: Class, error: &dyn std::fmt::Display) -> Self {
        let message = error.to_string().into();
        let place = ErrorPlace::default();
        Self { class, message, place, errno: None, cause: None }
    }

    /// An error of the library, with the classes that data and settings at fault have here.
    pub(crate) fn of(error: &(impl Fault + 'static), data: Class, setting: Class) -> Self {
        let kind = error.kind();
        let class = match kind {
            ErrorKind::Data => data,
            ErrorKind::NotFound => Class::Index,
            ErrorKind::System => Class::Storage,
            ErrorKind::Limit => Class::Memory,
            ErrorKind::Internal => Class::Internal,
            _ => setting,
        };
        let causes =
            iter::successors(Some(error as &dyn std::error::Error), |&error| error.source());
        let io = causes
            .filter(|_| kind == ErrorKind::System)
            .find_map(<dyn std::error::Error>::downcast_ref);
        let place = error.place();
        let errno = io.and_then(number);
        Self { place, errno, cause: raised(error), ..Self::new(class, error) }
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
    #[cfg(feature = "tables")]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The error of using an object that was closed.
    pub(crate) fn closed(message: &dyn std::fmt::Display) -> Self {
        Self::new(Class::Closed, message)
    }

    /// The error with its file, in the message too.
    pub(crate) fn in_file(self, location: &Location) -> Self {
        let place = ErrorPlace { location: Some(location.clone()), ..self.place };
        let message = format!("{location}: {}", self.message).into();
        Self { place, message, ..self }
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
        let ErrorPlace { location: shard, sample, key, offset } = &self.place;
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
        read(&error)
    }
}

/// A read error. A file that became shorter is the storage's fault here.
fn read(error: &ReadError) -> Error {
    let mut fault = error;
    while let ReadError::Sample { source, .. } = fault {
        fault = source;
    }
    let class = match fault {
        ReadError::ChangedWhileOpen { .. } => Class::Storage,
        ReadError::NoStore { .. } | ReadError::NotMapped { .. } => Class::Setting,
        _ => Class::Format,
    };
    Error::of(error, class, class)
}

/// The system's number of an error, also of those that the writers make themselves.
fn number(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or(match error.kind() {
        io::ErrorKind::NotFound => Some(NOT_FOUND),
        io::ErrorKind::AlreadyExists => Some(EXISTS),
        _ => None,
    })
}

impl From<ConvertError> for Error {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Read(error) | ConvertError::Structure(error) => error.into(),
            ConvertError::Write(error) => error.into(),
            _ => Self::of(&error, Class::Sample, Class::Internal),
        }
    }
}

/// The classes of errors by their types: of data at fault, and of settings.
macro_rules! classes {
    ($($error:ty: $data:ident, $setting:ident;)+) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::of(&error, Class::$data, Class::$setting)
            }
        })+
    };
}

classes! {
    WriteError: Format, Format;
    DecodeError: Decode, Decode;
    RecipeError: Recipe, Recipe;
    PlanError: Recipe, Recipe;
    StepError: Recipe, Recipe;
    SamplerError: Setting, Setting;
}

impl From<&SampleError> for Error {
    fn from(error: &SampleError) -> Self {
        let data = match &error.fault {
            SampleFault::Read(error) => read(error).class,
            SampleFault::Decode(_) => Class::Decode,
            _ => Class::Sample,
        };
        let setting =
            if matches!(error.fault, SampleFault::Read(_)) { data } else { Class::Sample };
        Self::of(error, data, setting)
    }
}

/// The error of a table.
fn table(location: &Location, error: &TableError) -> Error {
    match error {
        TableError::Read(error) => read(error),
        #[cfg(feature = "tables")]
        TableError::File { source, .. }
            if let Some(error) = crate::table::error_of(location, &**source) =>
        {
            error
        }
        TableError::OutOfRange { .. } => Error::new(Class::Setting, error).in_file(location),
        _ => Error::of(error, Class::Format, Class::Setting).in_file(location),
    }
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
            PipelineError::Forked => Self::new(Class::Forked, &error),
            PipelineError::Label { .. } => Self::of(&error, Class::Sample, Class::Sample),
            _ => Self::of(&error, Class::Setting, Class::Setting),
        }
    }
}
