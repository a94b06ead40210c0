//! The errors of loading, from opening a data set to receiving its last batch.

mod annotation;
mod clip;
mod empty;
mod kinds;
mod lerobot;
mod sampler;
mod table;
mod view;

use std::time::Duration;

use tbl_io::{Escaped, Location, ReadError};
use tl_cuda::DeviceReason;
use tl_decode::{CustomFault, DecodeError, FindError};
use tl_handoff::permits::BatchesHeld;
use tl_handoff::sync::Arc;
use tl_transform::{PlanError, StepError, UserFault, UserTransformError};
use tl_video::VideoError;

use crate::threads::ThreadError;

pub use annotation::AnnotationFault;
pub use clip::ClipFault;
pub use empty::EmptyError;
pub use lerobot::LeRobotDefect;
pub use sampler::SamplerError;
pub use table::{ColumnsError, TableError};
pub use view::{FilterError, ViewError};

pub(crate) use view::MAX_LISTED;

/// The reason why a loader could not be created, or an epoch ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum PipelineError {
    /// A data set cannot be opened.
    #[error(transparent)]
    Open(#[from] ReadError),
    /// A setting outside its range.
    #[error("{setting} is {value}, expected {expected}")]
    Setting { setting: &'static str, value: u64, expected: &'static str },
    /// A setting that cannot be used with the others, the recipe or the data set.
    #[error("{0}")]
    Unusable(String),
    /// Buckets for a source whose index does not have the sizes of its images.
    #[error(
        "{location}: buckets need image sizes, which its index lacks; `tl convert` to TBL stores them"
    )]
    UnknownSizes { location: Location },
    /// The sampler asks for what the data set does not have, or for nothing.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// A view that cannot be made.
    #[error(transparent)]
    View(#[from] ViewError),
    /// A table cannot be opened.
    #[error("{location}: {source}")]
    Table { location: Location, source: TableError },
    /// A folder is not a data set of LeRobot, or not a whole one.
    #[error("{location}: {source}")]
    LeRobot { location: Location, source: LeRobotDefect },
    /// Columns that the data set does not have, or not as they are asked for.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// No sample has a file that is asked for.
    #[error("no sample has a file `{name}`; {}", files_called(found))]
    UnknownField {
        name: String,
        /// The names of files that samples have, in the order of their bytes; not all of many.
        found: Vec<String>,
    },
    /// The user's code for whole batches failed.
    #[error("batch {batch} cannot be collated: {fault}")]
    Collate {
        batch: u64,
        #[source]
        fault: UserFault,
    },
    /// The recipe names a user's transform that was not given, or that refuses its parameters.
    #[error(transparent)]
    UserTransform(#[from] UserTransformError),
    /// Memory for a batch is exhausted.
    #[error("no memory for a batch of {bytes} bytes")]
    OutOfMemory { bytes: u64 },
    /// The device cannot be used, and is required, or it failed.
    #[error("device: {reason}")]
    Device {
        #[source]
        reason: DeviceReason,
    },
    /// A memory budget that the configuration does not fit in.
    #[error("the memory budget is {budget} bytes, this configuration needs at least {required}")]
    MemoryBudget { budget: u64, required: u64 },
    /// The consumer requests a batch while it holds so many that another does not fit the memory
    /// budget. The epoch continues when one is released.
    #[error("{held} batches are held and the memory budget allows {most}: release one")]
    BatchesHeld {
        /// Batches that the consumer has, or code that was run on them.
        held: u64,
        most: u64,
    },
    /// The rows of a batch hold more than the budget leaves for them.
    #[error("batch {batch} of epoch {epoch} needs {need} bytes, the memory budget leaves {limit}")]
    BatchMemory { epoch: u32, batch: u64, need: u64, limit: u64 },
    /// A second epoch at a time, which a memory budget has no room for.
    #[error("another epoch of this loader is running, and the memory budget allows one at a time")]
    EpochRunning,
    /// An error rate outside 0 to 1.
    #[error("the error budget's rate is {rate}, expected 0 to 1")]
    ErrorRate { rate: f64 },
    /// More samples were bad than may be.
    #[error(
        "{errors} of {received} samples are bad, the error budget allows {allowed}; last: {last}"
    )]
    ErrorBudget {
        errors: u64,
        /// Samples received or left out so far, without those that only fill up the last batch.
        received: u64,
        allowed: u64,
        #[source]
        last: Arc<SampleError>,
    },
    /// Every sample of a batch was left out, and several ranks take their steps together.
    #[error(
        "every sample of batch {batch} of epoch {epoch} is bad and was left out, but {world} ranks \
        need a batch in each step: set on_error to replace or fill"
    )]
    EmptyBatch { epoch: u32, batch: u64, world: u32 },
    /// Epochs without a batch.
    #[error(transparent)]
    Empty(#[from] EmptyError),
    /// A worker cannot run with its settings of processors and priority.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The system gives no more threads.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    Spawn { worker: usize, workers: usize, source: std::io::Error },
    /// A sample cannot be used, and [`OnError::Raise`](crate::OnError::Raise) ends the epoch.
    #[error(transparent)]
    Sample(#[from] Arc<SampleError>),
    /// The data set cannot say now how large a sample is, and buckets put the others by it. Going on
    /// without would give them other places, so this ends the epoch whatever is done with bad samples;
    /// a later attempt may succeed.
    #[error("buckets need the size of every sample, but: {0}")]
    SizeUnknown(#[source] Arc<SampleError>),
    /// A label outside the classes, in a request for labels of classes.
    #[error("sample {index}: label {label} is out of range for {num_classes} classes")]
    Label { index: u64, label: i64, num_classes: usize },
    /// A state of another data set, recipe, order, seed, global batch, mixing group or replacement
    /// group, or one where incomplete batches are dropped on one side only.
    #[error("the state's {what} is {state}, this loader's is {loader}{}", remedy(what))]
    StateMismatch { what: &'static str, state: String, loader: String },
    /// A state that is between two batches of no rank.
    #[error("{consumed} consumed rows are not a multiple of the global batch of {global_batch}")]
    StateWithinBatch { consumed: u64, global_batch: u64 },
    /// A state after the end of its epoch.
    #[error("{consumed} consumed rows exceed the {rows} rows of an epoch")]
    StateBeyondEpoch { consumed: u64, rows: u64 },
    /// The next batch was not ready in time. It can be asked for again.
    #[error("no batch within {waited:?}")]
    TimedOut { waited: Duration },
    /// The process is a fork of the one that made the loader, whose threads it does not have.
    #[error("the loader was created before this process was forked; create one in the child")]
    Forked,
    /// A worker panicked outside of any sample: a defect of this library, or a panic of another's
    /// whose payload panics again when it is dropped.
    #[error("worker {worker} panicked")]
    WorkerPanicked { worker: usize },
}

/// A sample that cannot be used: which one, where it is stored, and why.
#[derive(Debug, thiserror::Error)]
#[error(
    "{shard}: sample {index}{}{}: {fault}{}",
    Named(key.as_deref()),
    At(*offset, fault),
    After(*attempts)
)]
pub struct SampleError {
    /// The sample's number in the data set.
    pub index: u64,
    /// Its name, if it has one.
    pub key: Option<Vec<u8>>,
    /// The file or folder it is stored in.
    pub shard: Location,
    /// The offset of its bytes there, if its index entry can be read.
    pub offset: Option<u64>,
    /// The fault.
    #[source]
    pub fault: SampleFault,
    /// The attempts at it: more than one where reads were repeated because their errors may pass.
    pub attempts: u32,
}

/// The fault of a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SampleFault {
    /// Its bytes cannot be read.
    #[error("{}", .0.detail())]
    Read(#[from] ReadError),
    /// Its bytes are not an image, or a damaged one.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A decoder of the user's gives no image of it.
    #[error("decoder {}: {source}", Escaped(decoder.as_bytes()))]
    Decoder { decoder: String, source: CustomFault },
    /// The recipe has no plan for an image of this size.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A step of its plan cannot be carried out.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Raw pixels of another length than the index says.
    #[error("raw image of {width}x{height} has {have} bytes, expected {need}")]
    RawSize { width: u32, height: u32, need: u64, have: u64 },
    /// The recipe makes a larger image of it than may be decoded.
    #[error("its result has {bytes} bytes, max_decoded_bytes is {limit}")]
    OutputSize { bytes: u64, limit: u64 },
    /// A value of its row of a table cannot be had.
    #[error("row {row}, column `{}`: {source}", Escaped(column.as_bytes()))]
    Column {
        /// The row, counted from the first one of the file.
        row: u64,
        column: String,
        source: TableError,
    },
    /// One of its fields cannot be used.
    #[error(transparent)]
    Annotation(#[from] AnnotationFault),
    /// Its result is larger than its batch, which was planned from the index.
    #[error(
        "{width}x{height} pixels do not fit a batch of {batch_width}x{batch_height}, the size in the index"
    )]
    BeyondBatch { width: u32, height: u32, batch_width: u32, batch_height: u32 },
    /// There are more bytes of it than the memory budget leaves for one sample, or, of an image, than
    /// decoding may take under one.
    #[error(
        "it has {bytes} bytes, the memory budget and max_decoded_bytes leave {limit} for one sample"
    )]
    StoredSize { bytes: u64, limit: u64 },
    /// Its video cannot be read or decoded.
    #[error("{}{source}", OfFrame(*frame))]
    Video {
        /// The number of the frame, if one is to blame.
        frame: Option<u64>,
        source: Box<VideoError>,
    },
    /// Its video does not have the clips that are asked for.
    #[error(transparent)]
    Clip(#[from] ClipFault),
    /// A video file that its row points into cannot be used.
    #[error("{location}: row {row}: {source}")]
    RowVideo {
        location: Location,
        /// The row, counted over all files of rows.
        row: u64,
        source: Box<Self>,
    },
    /// The recipe decodes with nvJPEG, and is carried out without a device.
    #[error("the recipe decodes with nvJPEG, which only loaders with a device do")]
    NvJpeg,
    /// nvJPEG does not decode its file, as it does others of the kind.
    #[error(
        "nvJPEG: {function}: {error}: this library does not decode the file, leave it out or decode \
         exactly"
    )]
    NvJpegFile { function: &'static str, error: String },
    /// The work on it panicked: its source, a decoder, or this library.
    #[error("panicked: {message}")]
    Panicked { message: String },
}

impl SampleFault {
    /// The fault itself: for a [`RowVideo`](Self::RowVideo) that of the video file.
    #[must_use]
    pub fn cause(&self) -> &Self {
        let mut cause = self;
        while let Self::RowVideo { source, .. } = cause {
            cause = source;
        }
        cause
    }

    /// True if a store failed rather than the sample. Other samples will not fare better.
    pub(crate) fn is_of_store(&self) -> bool {
        let cause = self.cause();
        let is_of_column = matches!(cause, Self::Column { source: TableError::Read(error), .. }
            if error.is_of_store());
        is_of_column || matches!(cause, Self::Read(error) if error.is_of_store())
    }

    /// True if the sample needs more memory than its limit.
    pub(crate) fn is_limit(&self) -> bool {
        let cause = self.cause();
        if let Self::Annotation(AnnotationFault::Image { source, .. }) = cause {
            return source.is_limit();
        }
        if let Self::Video { source, .. } = cause {
            return matches!(**source, VideoError::LimitExceeded { .. });
        }
        matches!(
            cause,
            Self::Decode(DecodeError::LimitExceeded { .. })
                | Self::Decoder { source: CustomFault::Limit(_), .. }
                | Self::Annotation(
                    AnnotationFault::Mask { source: DecodeError::LimitExceeded { .. }, .. }
                        | AnnotationFault::MaskBytes { .. }
                )
                | Self::Step(StepError::Memory { .. })
                | Self::OutputSize { .. }
                | Self::StoredSize { .. }
        )
    }
}

/// The names of the files that samples have, for an error.
fn files_called(names: &[String]) -> String {
    match names {
        [] => "its samples have no names and no files".to_owned(),
        names => format!("the files are called: {}", names.join(", ")),
    }
}

/// The frame that a fault is about.
struct OfFrame(Option<u64>);

impl std::fmt::Display for OfFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |frame| write!(f, "frame {frame}: "))
    }
}

struct Named<'a>(Option<&'a [u8]>);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |key| write!(f, " ({})", Escaped(key)))
    }
}

/// The offset of a sample, unless the fault names the byte that it is about.
struct At<'a>(Option<u64>, &'a SampleFault);

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names_byte = matches!(self.1.cause(), SampleFault::Read(error) if error.names_byte());
        match self.0.filter(|_| !names_byte) {
            Some(offset) => write!(f, " at byte {offset}"),
            None => Ok(()),
        }
    }
}

/// The number of attempts, if there were several.
struct After(u32);

impl std::fmt::Display for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 > 1 { write!(f, " (after {} attempts)", self.0) } else { Ok(()) }
    }
}

impl From<FindError> for SampleFault {
    fn from(FindError { decoder, fault }: FindError) -> Self {
        Self::Decoder { decoder, source: fault }
    }
}

impl From<FilterError> for PipelineError {
    fn from(error: FilterError) -> Self {
        Self::View(error.into())
    }
}

impl From<BatchesHeld> for PipelineError {
    fn from(BatchesHeld { held, most }: BatchesHeld) -> Self {
        Self::BatchesHeld { held, most }
    }
}

/// The setting to change for a state that differs in what only a hash says.
fn remedy(what: &str) -> &'static str {
    match what {
        "recipe" => {
            ": set the transform, the clips, the type and the parity that the state was saved with"
        }
        "data set" => ": open the data that the state was saved with, in the same order",
        "global batch" => ": batch size times ranks must be that of the state",
        "order" => {
            ": pass the samples (split, filter and other views) and the shuffle that the state was \
             saved with"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use tl_decode::Limit;

    use super::*;

    #[test]
    fn whatever_needs_more_memory_is_tried_with_more() {
        let limit = || DecodeError::LimitExceeded { limit: Limit::DecodedBytes, max: 1, need: 2 };
        let mask = |source| AnnotationFault::Mask { file: "seg.png".into(), source };
        assert!(SampleFault::from(limit()).is_limit());
        assert!(SampleFault::from(mask(limit())).is_limit());
        assert!(SampleFault::StoredSize { bytes: 2, limit: 1 }.is_limit());
        assert!(!SampleFault::RawSize { width: 2, height: 3, need: 18, have: 17 }.is_limit());
        assert!(of_row(limit().into()).is_limit());
    }

    fn of_row(fault: SampleFault) -> SampleFault {
        SampleFault::RowVideo { location: "s3://b/v.mp4".into(), row: 4, source: Box::new(fault) }
    }

    #[test]
    fn the_cause_of_a_bad_video_of_a_row_is_that_of_the_video() {
        let gone = |location: &str| ReadError::Io {
            location: location.into(),
            source: std::io::ErrorKind::NotFound.into(),
        };
        let remote = of_row(of_row(gone("s3://b/v.mp4").into()));
        assert!(matches!(remote.cause(), SampleFault::Read(_)));
        assert!(remote.is_of_store());
        assert!(!of_row(gone("v.mp4").into()).is_of_store());
        let column = |location| SampleFault::Column {
            row: 3,
            column: "x".to_owned(),
            source: gone(location).into(),
        };
        assert!(column("s3://b/x.npy").is_of_store() && !column("x.npy").is_of_store());
        let own = SampleFault::StoredSize { bytes: 2, limit: 1 };
        assert!(matches!(own.cause(), SampleFault::StoredSize { .. }) && !own.is_of_store());
    }

    #[test]
    fn a_sample_error_is_one_line_with_its_identity() {
        let mut error = SampleError {
            index: 17,
            key: Some(b"a/b\n.jpg".to_vec()),
            shard: "train.tar".into(),
            offset: Some(512),
            fault: SampleFault::RawSize { width: 2, height: 3, need: 18, have: 17 },
            attempts: 1,
        };
        let expected = r"train.tar: sample 17 (a/b\x0a.jpg) at byte 512: raw image of 2x3 has 17 bytes, expected 18";
        assert_eq!(error.to_string(), expected);
        error.key = None;
        error.offset = None;
        assert!(error.to_string().starts_with("train.tar: sample 17: raw"), "{error}");
    }

    #[test]
    fn a_read_error_says_file_and_sample_once() {
        let cut =
            ReadError::ChangedWhileOpen { location: "a\n.tar".into(), offset: 512, expected: 9 };
        let error = SampleError {
            index: 17,
            key: Some(b"b.jpg".to_vec()),
            shard: "a\n.tar".into(),
            offset: None,
            fault: cut.for_sample(3, Some(b"b.jpg")).into(),
            attempts: 1,
        };
        let expected = r"a\x0a.tar: sample 17 (b.jpg): at byte 512: expected 9 bytes, but the file became shorter while it was open";
        assert_eq!(error.to_string(), expected);
    }
}
