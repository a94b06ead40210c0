//! What a segment cannot hold.

use crate::embedding::Dtype;
use crate::region::Region;

/// Why a segment cannot be made of what was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// More nodes than 32 bits can number.
    #[error("more than {limit} nodes")]
    TooManyNodes {
        /// The most there can be.
        limit: u64,
    },
    /// A vector with another number of components than the segment's.
    #[error("vector of node {row} has {found} components, {expected} are expected")]
    VectorLength {
        /// The node.
        row: u64,
        /// The segment's.
        expected: u64,
        /// The vector's.
        found: u64,
    },
    /// A component that its type cannot hold: too large, or for 8 bits not a number.
    #[error("component {component} of node {row} is {value}, which {dtype:?} cannot hold")]
    Component {
        /// The node.
        row: u64,
        /// The component.
        component: u64,
        /// What it is.
        value: f32,
        /// How components are stored.
        dtype: Dtype,
    },
    /// Columns of different lengths.
    #[error("column {column} has {found} values for {expected} ids")]
    ColumnLength {
        /// The column.
        column: &'static str,
        /// How many ids there are.
        expected: u64,
        /// How many values.
        found: u64,
    },
    /// An edge from or to a node that is not there.
    #[error("edge {edge} leads from node {source_row} to {target_row} of {node_count}")]
    EdgeEnd {
        /// The edge, in the order in which they were added.
        edge: u64,
        /// Where it comes from.
        source_row: u32,
        /// Where it leads.
        target_row: u32,
        /// How many nodes there are.
        node_count: u64,
    },
    /// A compression or encryption that this build cannot do.
    #[error("the segment takes the feature `{feature}`")]
    Unsupported {
        /// The crate's feature.
        feature: &'static str,
    },
    /// A region longer than AES-GCM takes, 64 GiB.
    #[error("{region} of {bytes} bytes is too long to be encrypted")]
    TooLongToEncrypt {
        /// The region.
        region: Region,
        /// Its size.
        bytes: u64,
    },
    /// Two nodes with the same id.
    #[error("nodes {first} and {second} have the same id")]
    DuplicateId {
        /// The one added earlier.
        first: u32,
        /// The one added later.
        second: u32,
    },
}
