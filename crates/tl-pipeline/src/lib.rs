#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod audit;
mod batch;
mod batching;
mod bucket;
mod bucketing;
mod cache;
mod clips;
mod collate;
mod config;
mod crew;
mod dataset;
mod delivered;
mod delivery;
mod device_batch;
mod device_part;
mod device_work;
mod epoch;
mod erasing;
mod error;
mod fault;
mod fetch;
mod fields;
mod fingerprint;
mod kept_indexes;
mod layout;
#[cfg(feature = "arrow")]
mod lerobot;
mod loader;
mod memory;
mod memory_limits;
mod metrics;
mod note;
mod nvjpeg;
mod observe;
mod order;
mod padding;
mod panics;
mod placement;
mod policy;
mod reader;
mod readers;
mod render;
mod report;
mod retry;
mod row;
mod run;
mod sample;
mod schedule;
mod scratch;
mod shared;
mod source_memory;
mod stage;
mod state;
mod stats;
mod table;
mod threads;
mod token_gather;
mod tokens;
mod trace;
mod videos;
mod view;
mod work;
mod worker;

pub use audit::{AuditEntry, Outcome};
pub use batch::{Batch, Dimensions, Mixed, Sample};
pub use batching::{Batching, Buckets, PaddingStats};
pub use cache::{
    CacheConfig, CacheFault, CacheKind, CacheStats, DiskCache, LevelStats, MemoryCache,
};
pub use clips::{Beyond, ClipColumns, ClipSampling, ClipStart, ClipWork, Spacing};
pub use collate::Collate;
pub use config::LoaderConfig;
pub use dataset::{Dataset, open_tokens, parquet_target, stores};
pub use delivery::{Delivery, DeviceDecode, DeviceOptions};
pub use device_batch::{DeviceBatch, DeviceUse};
pub use device_part::DevicePart;
pub use epoch::Epoch;
pub use error::{
    AnnotationFault, ClipFault, ColumnsError, EmptyError, FilterError, LeRobotDefect,
    PipelineError, SampleError, SampleFault, SamplerError, TableError, ViewError,
};
pub use fault::Fault;
pub use fields::{
    BoxField, BoxValue, Fields, ImageField, ImageSource, ImageTransform, InstanceMaskField,
    KeypointField, MaskField, MaskType, Sanitize, TextFile, TextFormat, ValueField, ValueFormat,
    ValueKind,
};
pub use fingerprint::Fingerprint;
pub use layout::ImageSpec;
#[cfg(feature = "arrow")]
pub use lerobot::{CameraSpec, Deltas, LeRobot, LeRobotOptions};
pub use loader::Loader;
pub use memory::MemoryReport;
pub use note::LoaderNote;
pub use observe::Replay;
pub use order::{
    Blocks, Deal, Length, MixStage, Order, Part, Randomness, Replacement, Sampler, Samples,
    Sequence, Shuffle, ShuffleQuality, Subset, Together, Weights,
};
pub use policy::{ErrorBudget, OnError};
pub use reader::ReaderStats;
#[cfg(feature = "simulate")]
pub use reader::simulate;
pub use readers::Readers;
pub use render::Renderer;
pub use report::{Limit, Report};
pub use retry::RetryStats;
pub use sample::{SampleRenderer, Stored, Target};
pub use schedule::{Shard, Tail};
pub use stage::{Stage, StageTimes};
pub use state::LoaderState;
pub use stats::LoaderStats;
#[cfg(feature = "arrow")]
pub use table::RowTable;
pub use table::{
    ArrayTable, ColumnNumber, ColumnRequest, ColumnSpec, ColumnType, ColumnValues, ColumnView,
    Columns, Content, Direction, Meaning, Neighbors, RowValues, SegmentFolder, Table, TableColumn,
    TableKind, TableSource, open_rows,
};
#[cfg(feature = "tables")]
pub use table::{IdvBytes, IdvTable, TbfTable};
pub use threads::{Cpus, CpusError, ThreadError};
pub use tl_cuda::{
    CudaVersion, DeviceBuffer, DeviceFigures, DeviceReason, DeviceSurvey, MemoryInfo,
    NvJpegVersion, PinnedUse, StreamHandle, UploadStats,
};
pub use tl_handoff::slab::FieldPointers;
pub use tl_video::Parity as ColorParity;
pub use tokens::{TokenNumber, TokenRow, TokenWork};
pub use view::{DatasetView, Filter, Fold, Split};
pub use work::Work;
