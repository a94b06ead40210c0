//! The crates' errors as exceptions of `turboloader.exceptions`, with the message in one line and
//! the place in attributes.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what else there is, or will be, belongs to the last class"
)]

mod exception;

use std::io;

use tbl_io::{ConvertError, ErrorKind, Location, ReadError, WriteError};
use tl_decode::DecodeError;
use tl_pipeline::{Fault, PipelineError, SampleError, SampleFault, SamplerError, TableError};
use tl_transform::{PlanError, RecipeError, StepError};
use turboloader::job::JobError;

pub(crate) use exception::{Class, Error};

impl Error {
    /// An error of the library, with the classes that data and settings at fault have here.
    pub(crate) fn of(error: &(impl Fault + 'static), data: Class, setting: Class) -> Self {
        let class = match error.kind() {
            ErrorKind::Data => data,
            ErrorKind::NotFound => Class::SampleIndex,
            ErrorKind::System => Class::Storage,
            ErrorKind::Limit => Class::OutOfMemory,
            ErrorKind::Internal => Class::Internal,
            _ => setting,
        };
        Self::of_class(error, class)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        read(&error)
    }
}

/// A read error. A file that became shorter is the storage's fault here, and what a store's options
/// or an address lack is a setting's.
fn read(error: &ReadError) -> Error {
    let mut fault = error;
    while let ReadError::Sample { source, .. } = fault {
        fault = source;
    }
    let class = match fault {
        ReadError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
            return Error::of_class(error, Class::Setting);
        }
        ReadError::Rows { source, .. } if source.lacks_column() => {
            return Error::of_class(error, Class::Format).with_option("image=");
        }
        ReadError::ChangedWhileOpen { .. } => Class::Storage,
        ReadError::List { source, .. } if source.kind() == ErrorKind::Setting => Class::Setting,
        ReadError::Tokens { source, .. } if source.kind() == ErrorKind::Setting => Class::Setting,
        ReadError::NoStore { .. } | ReadError::NotMapped { .. } => Class::Setting,
        _ => Class::Format,
    };
    Error::of(error, class, class)
}

impl From<ConvertError> for Error {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Read(error) | ConvertError::Structure(error) => error.into(),
            ConvertError::Write(error) => error.into(),
            ConvertError::TooManySamples { .. } => Self::of_class(&error, Class::Format),
            _ => Self::of(&error, Class::Sample, Class::Internal),
        }
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Read(error) => error.into(),
            JobError::Write(error) => error.into(),
            _ => Self::of(&error, Class::Format, Class::Setting),
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
        // A row that is not in its table is the data's fault, and no index that was asked for.
        if matches!(error.fault, SampleFault::Column { .. }) && error.kind() == ErrorKind::NotFound
        {
            return Self::of_class(error, Class::Sample);
        }
        let cause = error.fault.cause();
        let data = match cause {
            SampleFault::Read(error) => read(error).class,
            SampleFault::Decode(_) | SampleFault::Decoder { .. } | SampleFault::Video { .. } => {
                Class::Decode
            }
            _ => Class::Sample,
        };
        let setting = if matches!(cause, SampleFault::Read(_)) { data } else { Class::Sample };
        Self::of(error, data, setting)
    }
}

/// An image that a recipe is applied to outside of a data set.
impl From<SampleFault> for Error {
    fn from(fault: SampleFault) -> Self {
        match fault {
            SampleFault::Plan(error) => error.into(),
            SampleFault::Step(error) => error.into(),
            other => Self::of(&other, Class::Recipe, Class::Recipe),
        }
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

/// The name of a setting in Python.
fn setting_name(setting: &str) -> &str {
    match setting {
        "workers" => "num_workers",
        "prefetch" => "the prefetch of memory",
        "window" => "the window of buckets",
        "multiple" => "the multiple of buckets",
        other => other,
    }
}

impl From<PipelineError> for Error {
    fn from(error: PipelineError) -> Self {
        let class = match &error {
            PipelineError::Open(error) => return read(error),
            PipelineError::Table { location, source } => return table(location, source),
            PipelineError::Setting { setting, value, expected } => {
                let setting = setting_name(setting);
                return Self::setting(&format_args!("{setting} is {value}, expected {expected}"));
            }
            PipelineError::ErrorRate { rate } => {
                return Self::setting(&format_args!(
                    "the rate of errors is {rate}, expected 0 to 1"
                ));
            }
            PipelineError::Sample(sample)
            | PipelineError::SizeUnknown(sample)
            | PipelineError::ErrorBudget { last: sample, .. } => {
                return Self::from(&**sample).with_message(&error);
            }
            PipelineError::StateMismatch { .. }
            | PipelineError::StateBeyondEpoch { .. }
            | PipelineError::StateWithinBatch { .. } => Class::State,
            PipelineError::Forked => Class::Forked,
            PipelineError::Label { .. } => Class::Sample,
            _ => Class::Setting,
        };
        Self::of(&error, class, class)
    }
}
