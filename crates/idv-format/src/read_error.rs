//! The errors of reading a file.

use alloc::string::String;
use std::io;

use crate::error::FormatError;
use crate::toc::Dead;
use crate::values::ValuesError;

/// The reason why a file, or a part of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ReadError {
    /// The source failed.
    #[error("{bytes} bytes at {offset} cannot be read: {source}")]
    Io {
        offset: u64,
        /// How many bytes it asked for.
        bytes: u64,
        source: io::Error,
    },
    /// The system refused to start a thread.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    Spawn {
        worker: usize,
        /// How many were to work, the caller's thread included.
        workers: usize,
        source: io::Error,
    },
    /// Header, table of contents, a lookup table or a table of metadata breaks the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A block of a column breaks the format.
    #[error("column {column:?}, block {block} at {offset}: {source}")]
    Block { column: String, block: u64, offset: u64, source: FormatError },
    /// A piece of metadata breaks the format.
    #[error("metadata {kind:?} at {offset}: {source}")]
    Metadata {
        kind: String,
        /// The offset of its block in the file.
        offset: u64,
        source: FormatError,
    },
    /// The values of a column or a piece of metadata cannot be understood.
    #[error("{name:?} cannot be read: {dead}")]
    Dead {
        /// The column's name, or the kind of metadata.
        name: String,
        dead: Dead,
    },
    /// The file has no column of that number.
    #[error("column {index} does not exist, the file has {count}")]
    NoColumn { index: usize, count: usize },
    /// The column has no block of that number.
    #[error("column {column:?} has no block {block}, it has {count}")]
    NoBlock { column: String, block: u64, count: u64 },
    /// The file has no such rows.
    #[error("rows {start} to {end} do not exist, the file has {count}")]
    NoRows {
        start: u64,
        /// The end of the rows asked for.
        end: u64,
        count: u64,
    },
    /// The values of several blocks do not fit into one array.
    #[error("column {column:?}: {source}")]
    Values { column: String, source: ValuesError },
}

impl ReadError {
    /// Whether the bytes are at fault, and not the system or the caller.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            Self::Format(source) | Self::Block { source, .. } | Self::Metadata { source, .. } => {
                !matches!(source, FormatError::Limit { .. })
            }
            Self::Spawn { .. }
            | Self::Dead { .. }
            | Self::NoColumn { .. }
            | Self::NoBlock { .. }
            | Self::NoRows { .. }
            | Self::Values { .. } => false,
        }
    }
}
