#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod aligned;
mod bloom;
mod build_error;
mod checksum;
mod codec;
mod columns;
mod edges;
mod embedding;
mod encryption;
mod error;
mod footer;
mod header;
mod index;
mod layout;
mod recovery;
mod region;
mod segment;
mod string_table;
mod unpack;
mod values;
mod verify;
mod writer;

pub use aligned::{ALIGNMENT, AlignedBytes};
pub use bloom::{Bloom, BloomKey};
pub use build_error::BuildError;
pub use columns::{Column, Columns, MAX_NODES, Outcome};
pub use edges::{Adjacency, Edge, Relation};
pub use embedding::{Dtype, Embeddings, Vector};
pub use encryption::{Encryption, Key};
pub use error::FormatError;
pub use header::{Compression, FileHeader, Flags};
pub use index::{Index, Tree};
pub use recovery::Recovery;
pub use region::{Dialect, Region, Stored};
pub use segment::{Oddity, OpenOptions, Segment};
pub use string_table::Strings;
pub use unpack::UnpackOptions;
pub use values::{Element, Values};
pub use writer::{BuildOptions, EncodedSegment, Node, NodeColumns, SegmentBuilder};
#[cfg(feature = "std")]
pub use writer::{SegmentWriteError, SegmentWriter};

/// Whether `bytes` start as a segment does.
///
/// ```
/// assert!(tbf_format::sniff(b"TALB and more"));
/// assert!(!tbf_format::sniff(b"TAL"));
/// ```
pub fn sniff(bytes: &[u8]) -> bool {
    bytes.starts_with(&FileHeader::MAGIC)
}
