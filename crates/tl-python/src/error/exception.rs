//! An error on its way to Python.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::iter;
use std::path::Path;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tbl_io::{ErrorKind, ErrorPlace, Escaped, Location};
use tl_pipeline::Fault;

use crate::names::text;

/// `ENOENT`.
const NOT_FOUND: i32 = 2;
/// `EACCES`.
const NO_ACCESS: i32 = 13;
/// `EEXIST`.
const EXISTS: i32 = 17;

/// The classes of `turboloader.exceptions`, without the `Error` at the end of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Format,
    Storage,
    PathNotFound,
    PathExists,
    PathPermission,
    Decode,
    Sample,
    Recipe,
    Setting,
    State,
    SampleIndex,
    OutOfMemory,
    Forked,
    Closed,
    BatchTimeout,
    Internal,
}

/// An exception to be: its class and what it says.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) class: Class,
    message: Box<str>,
    place: ErrorPlace,
    errno: Option<i32>,
    /// The exception of a user-supplied function.
    cause: Option<Box<PyErr>>,
}

impl Error {
    /// An error that has nothing but a message.
    pub(crate) fn new(class: Class, error: &dyn Display) -> Self {
        let message = error.to_string().into();
        let place = ErrorPlace::default();
        Self { class, message, place, errno: None, cause: None }
    }

    /// An error of the library in a class, with its place and its causes.
    pub(super) fn of_class(error: &(impl Fault + 'static), class: Class) -> Self {
        let causes = iter::successors(Some(error as &dyn StdError), |&error| error.source());
        let is_system = error.kind() == ErrorKind::System;
        let io = causes.filter(|_| is_system).find_map(<dyn StdError>::downcast_ref);
        let place = error.place();
        let errno = io.and_then(number);
        Self { place, errno, cause: raised(error), ..Self::new(class, error) }
    }

    /// The same error, whose message names the argument that helps.
    pub(super) fn with_option(self, option: &str) -> Self {
        Self { message: format!("{} ({option})", self.message).into(), ..self }
    }

    /// A setting that cannot be.
    pub(crate) fn setting(message: &dyn Display) -> Self {
        Self::new(Class::Setting, message)
    }

    /// A recipe that cannot be.
    pub(crate) fn recipe(message: &dyn Display) -> Self {
        Self::new(Class::Recipe, message)
    }

    /// Text that is not a state.
    pub(crate) fn state(message: &dyn Display) -> Self {
        Self::new(Class::State, message)
    }

    /// Bytes that there are not.
    pub(crate) fn memory(bytes: usize) -> Self {
        Self::new(Class::OutOfMemory, &format_args!("no memory for {bytes} bytes"))
    }

    /// A panic, which is a bug of ours.
    pub(crate) fn panic(message: &str) -> Self {
        let message = Escaped(message.as_bytes());
        Self::new(Class::Internal, &format_args!("panic, please report it: {message}"))
    }

    /// The same with another message.
    pub(super) fn with_message(self, message: &dyn Display) -> Self {
        Self { message: message.to_string().into(), ..self }
    }

    /// The message.
    #[cfg(feature = "tables")]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The error of using an object that was closed.
    pub(crate) fn closed(message: &dyn Display) -> Self {
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
            (Class::Storage, Some(NOT_FOUND)) => Class::PathNotFound,
            (Class::Storage, Some(EXISTS)) => Class::PathExists,
            (Class::Storage, Some(NO_ACCESS)) => Class::PathPermission,
            (class, _) => class,
        };
        let class = py.import("turboloader.exceptions")?.getattr(format!("{class:?}Error"))?;
        let exception = class.call1((&*self.message,))?;
        let ErrorPlace { location: shard, sample, key, offset } = &self.place;
        exception.setattr("shard", shard.as_ref().map(Location::as_os_str))?;
        exception.setattr("sample", sample)?;
        exception.setattr("key", key.as_deref().map(|key| text(py, key)).transpose()?)?;
        exception.setattr("offset", offset)?;
        if self.errno.is_some() {
            exception.setattr("errno", self.errno)?;
            // For a folder, the file that the key names.
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

    /// The exception for the thread that has called the user's functions itself: an exception
    /// that they did not cause, such as Ctrl-C, passes unchanged.
    pub(crate) fn of_call(self, py: Python<'_>) -> PyErr {
        match self.cause {
            Some(cause) if !cause.is_instance_of::<PyException>(py) => *cause,
            _ => self.into(),
        }
    }
}

/// The exception of a user-supplied function that caused an error, if one did.
fn raised(error: &(dyn StdError + 'static)) -> Option<Box<PyErr>> {
    let mut sources = iter::successors(Some(error), |&error| error.source());
    let raised = sources.find_map(|error| error.downcast_ref::<PyErr>())?;
    Python::try_attach(|py| Box::new(raised.clone_ref(py)))
}

/// The system's number of an error, also of those that the writers make themselves.
fn number(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or(match error.kind() {
        io::ErrorKind::NotFound => Some(NOT_FOUND),
        io::ErrorKind::AlreadyExists => Some(EXISTS),
        _ => None,
    })
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| error.raise(py).unwrap_or_else(|error| error))
    }
}
