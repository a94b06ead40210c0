//! Kind and place of the loader's errors.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the last arm has what most variants are, and will be"
)]

use tbl_io::{ErrorKind, ErrorPlace};
use tl_cuda::DeviceReason;

use crate::error::{
    ColumnsError, EmptyError, LeRobotDefect, PipelineError, SampleError, SampleFault, SamplerError,
    TableError, ViewError,
};
use crate::fault::{Fault, always};

always!(Setting: SamplerError, EmptyError, ColumnsError);

impl Fault for TableError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::File { source, .. } => source.kind(),
            Self::Label { .. } | Self::Limit { .. } => ErrorKind::Data,
            Self::OutOfRange { .. } => ErrorKind::NotFound,
            Self::NoFeature { .. } | Self::Other(_) => ErrorKind::Setting,
        }
    }

    fn place(&self) -> ErrorPlace {
        match self {
            Self::Read(error) => error.place(),
            Self::File { source, .. } => source.place(),
            Self::NoFeature { .. }
            | Self::Label { .. }
            | Self::Limit { .. }
            | Self::OutOfRange { .. }
            | Self::Other(_) => ErrorPlace::default(),
        }
    }
}

impl Fault for LeRobotDefect {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownFeature { .. }
            | Self::Delta { .. }
            | Self::DeltaCount { .. }
            | Self::Tolerance { .. }
            | Self::UnknownEpisode { .. }
            | Self::NoVideos
            | Self::Feature { .. } => ErrorKind::Setting,
            Self::NoEpisodes | Self::NoVideo { .. } => ErrorKind::NotFound,
            Self::Json(_)
            | Self::Info { .. }
            | Self::Version { .. }
            | Self::Path { .. }
            | Self::Column { .. }
            | Self::Value { .. }
            | Self::TooSmall { .. }
            | Self::Total { .. }
            | Self::Rows { .. } => ErrorKind::Data,
        }
    }
}

impl Fault for SampleFault {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Column { source, .. } => source.kind(),
            Self::RowVideo { source, .. } => source.kind(),
            Self::Panicked { .. } => ErrorKind::Internal,
            Self::NvJpeg => ErrorKind::Setting,
            Self::Decode(_)
            | Self::Decoder { .. }
            | Self::Plan(_)
            | Self::Video { .. }
            | Self::Clip(_)
            | Self::Step(_)
            | Self::RawSize { .. }
            | Self::OutputSize { .. }
            | Self::Annotation(_)
            | Self::BeyondBatch { .. }
            | Self::NvJpegFile { .. }
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
        let sample = Some(*index);
        let key = key.clone();
        let offset = *offset;
        ErrorPlace { sample, key, offset, ..ErrorPlace::at(shard.clone()) }
    }
}

impl Fault for PipelineError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(error) => error.kind(),
            Self::Table { source, .. } => source.kind(),
            Self::LeRobot { source, .. } => source.kind(),
            Self::Sample(error) | Self::SizeUnknown(error) => error.kind(),
            Self::View(ViewError::Value { .. })
            | Self::ErrorBudget { .. }
            | Self::EmptyBatch { .. } => ErrorKind::Data,
            Self::OutOfMemory { .. }
            | Self::Device { reason: DeviceReason::OutOfMemory { .. } }
            | Self::BatchesHeld { .. }
            | Self::EpochRunning
            | Self::BatchMemory { .. }
            | Self::TimedOut { .. } => ErrorKind::Limit,
            Self::Spawn { .. } | Self::Device { reason: DeviceReason::Library { .. } } => {
                ErrorKind::System
            }
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
            Self::UnknownSizes { location } | Self::LeRobot { location, .. } => {
                ErrorPlace::at(location.clone())
            }
            Self::Sample(error) | Self::SizeUnknown(error) => error.place(),
            Self::ErrorBudget { last, .. } => last.place(),
            Self::View(ViewError::Value { sample: index, .. }) | Self::Label { index, .. } => {
                ErrorPlace { sample: Some(*index), ..ErrorPlace::default() }
            }
            _ => ErrorPlace::default(),
        }
    }
}
