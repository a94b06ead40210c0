//! Kind and place of every error that reaches a user of the loader.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the last arm has what most variants are, and will be"
)]

use std::error::Error;

use tbf_format::Region;
use tbl_io::{ConvertError, ErrorKind, ErrorPlace, ReadError, WriteError};
use tl_decode::DecodeError;
use tl_transform::{PlanError, RecipeError, StepError};

use crate::error::{
    ColumnsError, EmptyError, PipelineError, SampleError, SampleFault, SamplerError, TableError,
};

/// An error with a kind and a place, on which callers act without knowing its type.
pub trait Fault: Error {
    /// The party at fault.
    fn kind(&self) -> ErrorKind;

    /// The place that the error is about, as far as it is known.
    fn place(&self) -> ErrorPlace {
        ErrorPlace::default()
    }
}

/// Errors that know both themselves.
macro_rules! delegate {
    ($($error:ty),+) => {
        $(impl Fault for $error {
            fn kind(&self) -> ErrorKind {
                self.kind()
            }

            fn place(&self) -> ErrorPlace {
                self.place()
            }
        })+
    };
}

delegate!(ReadError, WriteError, ConvertError);

/// Errors of one kind by construction.
macro_rules! always {
    ($kind:ident: $($error:ty),+) => {
        $(impl Fault for $error {
            fn kind(&self) -> ErrorKind {
                ErrorKind::$kind
            }
        })+
    };
}

always!(Data: DecodeError);
always!(Setting: RecipeError, PlanError, StepError, SamplerError, EmptyError, ColumnsError);

impl Fault for idv_format::ReadError {
    /// A column that cannot be understood is the file's fault, as damage is.
    fn kind(&self) -> ErrorKind {
        match self {
            error if error.is_damage() => ErrorKind::Data,
            Self::Io { .. } => ErrorKind::System,
            Self::NoColumn { .. } | Self::NoBlock { .. } | Self::NoRows { .. } => {
                ErrorKind::NotFound
            }
            _ => ErrorKind::Data,
        }
    }

    fn place(&self) -> ErrorPlace {
        let offset = match self {
            Self::Io { offset, .. }
            | Self::Block { offset, .. }
            | Self::Metadata { offset, .. } => Some(*offset),
            _ => None,
        };
        ErrorPlace { offset, ..ErrorPlace::default() }
    }
}

impl Fault for tbf_format::FormatError {
    /// Asking for what is not there, or without a key, is not the segment's fault.
    fn kind(&self) -> ErrorKind {
        const NEEDED: [Region; 3] = [Region::Nodes, Region::Edges, Region::Footer];
        match self {
            Self::Absent { region } if NEEDED.contains(region) => ErrorKind::Data,
            Self::NoRow { .. } => ErrorKind::NotFound,
            Self::Absent { .. }
            | Self::Packed { .. }
            | Self::KeyNeeded { .. }
            | Self::Unsupported { .. } => ErrorKind::Setting,
            _ => ErrorKind::Data,
        }
    }
}

impl Fault for TableError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Idv(error) => error.kind(),
            Self::Tbf(error) => error.kind(),
            Self::Block { .. } | Self::Label { .. } | Self::Limit { .. } => ErrorKind::Data,
            Self::OutOfRange { .. } => ErrorKind::NotFound,
            Self::Other(_) => ErrorKind::Setting,
        }
    }

    fn place(&self) -> ErrorPlace {
        match self {
            Self::Read(error) => error.place(),
            Self::Idv(error) => error.place(),
            Self::Block { offset, .. } => {
                ErrorPlace { offset: Some(*offset), ..ErrorPlace::default() }
            }
            Self::Tbf(_)
            | Self::Label { .. }
            | Self::Limit { .. }
            | Self::OutOfRange { .. }
            | Self::Other(_) => ErrorPlace::default(),
        }
    }
}

impl Fault for SampleFault {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Column { source, .. } => source.kind(),
            Self::Panicked { .. } => ErrorKind::Internal,
            Self::Decode(_)
            | Self::Plan(_)
            | Self::Step(_)
            | Self::RawSize { .. }
            | Self::OutputSize { .. }
            | Self::Annotation(_)
            | Self::BeyondBatch { .. }
            | Self::StoredSize { .. } => ErrorKind::Data,
        }
    }
}

impl Fault for SampleError {
    fn kind(&self) -> ErrorKind {
        self.fault.kind()
    }

    fn place(&self) -> ErrorPlace {
        let Self { index, key, shard, offset, .. } = self;
        let (sample, key, offset) = (Some(*index), key.clone(), *offset);
        ErrorPlace { sample, key, offset, ..ErrorPlace::at(shard.clone()) }
    }
}

impl Fault for PipelineError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(error) => error.kind(),
            Self::Table { source, .. } => source.kind(),
            Self::Sample(error) | Self::SizeUnknown(error) => error.kind(),
            Self::ErrorBudget { .. } | Self::EmptyBatch { .. } => ErrorKind::Data,
            Self::OutOfMemory { .. }
            | Self::BatchesHeld { .. }
            | Self::EpochRunning
            | Self::BatchMemory { .. }
            | Self::TimedOut { .. } => ErrorKind::Limit,
            Self::Spawn { .. } => ErrorKind::System,
            Self::WorkerPanicked { .. } | Self::Collate { .. } => ErrorKind::Internal,
            _ => ErrorKind::Setting,
        }
    }

    fn place(&self) -> ErrorPlace {
        match self {
            Self::Open(error) => error.place(),
            Self::Table { location, source } => {
                ErrorPlace { location: Some(location.clone()), ..source.place() }
            }
            Self::UnknownSizes { location } => ErrorPlace::at(location.clone()),
            Self::Sample(error) | Self::SizeUnknown(error) => error.place(),
            Self::ErrorBudget { last, .. } => last.place(),
            Self::Label { index, .. } => {
                ErrorPlace { sample: Some(*index), ..ErrorPlace::default() }
            }
            _ => ErrorPlace::default(),
        }
    }
}
