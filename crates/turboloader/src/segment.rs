//! TBF segments as files: writing them, merging several into one, and finding a node in many.
//!
//! Later segments replace nodes of earlier ones that have the same id. `docs/tbf.md` describes folders
//! to which segments are added.

#[cfg(feature = "parquet")]
mod batches;
mod error;
mod input;
mod merge;
mod output;
#[cfg(feature = "parquet")]
mod rows;
mod set;

pub use error::SegmentError;
pub use merge::{Merged, compact_segments, merge_segments};
pub use output::{SegmentFile, SegmentSettings, SegmentSummary};
pub use set::{FoundNode, SegmentSet};
pub use tbf_format::{
    Compression as SegmentCompression, Dtype as VectorType, Key as SegmentKey, Node as SegmentNode,
    Outcome as NodeOutcome, Relation as EdgeRelation,
};
#[cfg(feature = "parquet")]
pub(crate) use {
    batches::SegmentBatches,
    input::{SegmentInput, SegmentTraits},
    merge::copy_segment,
    rows::{EdgeRows, NodeError, NodeNames, NodeRows},
};
