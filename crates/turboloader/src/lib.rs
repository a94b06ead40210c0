#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "tables")]
mod date_time;
mod explain;
pub mod job;
mod moments;
mod notes;
#[cfg(feature = "parquet")]
mod panics;
mod prepare;
mod recipe_file;
#[cfg(feature = "tables")]
mod segment;
pub mod sheet;
mod statistics;
mod stores;
mod survey;
#[cfg(feature = "tables")]
mod table;
pub mod video;

#[cfg(feature = "tables")]
pub use date_time::DateTime;
pub use explain::{ExplainError, Explanation};
pub use moments::Moments;
pub use notes::ConversionNotes;
#[cfg(feature = "parquet")]
pub use panics::catches as catches_panics;
pub use prepare::{
    HeaderCheck, IndexKinds, Indexer, Probe, Rasterize, Square, SquareError, StrictDecode,
};
pub use recipe_file::{RecipeFileError, read_recipe};
#[cfg(feature = "tables")]
pub use segment::{
    EdgeRelation, FoundNode, Merged, NodeOutcome, SegmentCompression, SegmentError, SegmentFile,
    SegmentKey, SegmentNode, SegmentSet, SegmentSettings, SegmentSummary, VectorType,
    compact_segments, merge_segments,
};
pub use statistics::{Statistics, WholeSum};
pub use stores::stores;
pub use survey::{Sides, Survey};
#[cfg(feature = "tables")]
pub use table::{
    CsvSchema, SchemaError, SegmentConversion, TableConversion, TableConversionError, TableEvent,
    TableFormat, TableNote, TableSummary, TimeUnit,
};
pub use tbl_io::{ErrorKind, ErrorPlace, SampleSource, open};
pub use tl_pipeline::{
    Batch, Blocks, Dataset, Epoch, Fault, Loader, LoaderConfig, LoaderState, OnError,
    PipelineError, Sampler, Shuffle, Work,
};
#[cfg(feature = "remote")]
pub use tl_store::{OptionError, PendingUpload, RemoteStores, StoreOptions, StoreStats};
pub use tl_transform::Recipe;
pub use {
    tbl_io as io, tl_decode as decode, tl_pipeline as pipeline, tl_tokens as tokens,
    tl_transform as transform,
};

/// Whether a panic of this thread becomes an error of a conversion, so that a panic hook has
/// nothing to report.
#[cfg(not(feature = "parquet"))]
#[must_use]
pub const fn catches_panics() -> bool {
    false
}
