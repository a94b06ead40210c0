//! The errors of building a segment.

use crate::embedding::Dtype;
use crate::region::Region;

/// The reason why a segment cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum BuildError {
    /// More nodes than 32 bits can number.
    #[error("more than {limit} nodes")]
    TooManyNodes { limit: u64 },
    /// A vector with another number of components than the segment's.
    #[error("vector of node {row} has {found} components, expected {expected}")]
    VectorLength { row: u64, expected: u64, found: u64 },
    /// A stored vector of another length than the segment's.
    #[error("stored vector of node {row} has {found} bytes, expected {expected}")]
    VectorBytes { row: u64, expected: u64, found: u64 },
    /// A component that its type cannot hold: too large, or for 8 bits not a number.
    #[error("component {component} of node {row} is {value}, which {dtype:?} cannot hold")]
    Component { row: u64, component: u64, value: f32, dtype: Dtype },
    /// Columns of different lengths.
    #[error("column {column} has {found} values for {expected} ids")]
    ColumnLength { column: &'static str, expected: u64, found: u64 },
    /// An edge from or to a node that is not there.
    #[error("edge {edge} leads from node {source_row} to {target_row} of {node_count}")]
    EdgeEnd {
        /// The edge, in the order in which they were added.
        edge: u64,
        source_row: u32,
        target_row: u32,
        node_count: u64,
    },
    /// A compression or encryption that this build cannot do.
    #[error("the segment needs the feature `{feature}`, which this build lacks")]
    Unsupported { feature: &'static str },
    /// A region longer than AES-GCM takes, 64 GiB.
    #[error("{region} of {bytes} bytes is too long to be encrypted")]
    TooLongToEncrypt { region: Region, bytes: u64 },
    /// Two nodes with the same id.
    #[error("nodes {first} and {second} have the same id")]
    DuplicateId { first: u32, second: u32 },
}
