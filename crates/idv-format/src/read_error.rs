//! What can go wrong while reading a file.

use alloc::string::String;
use std::io;

use crate::error::FormatError;
use crate::toc::Dead;
use crate::values::ValuesError;

/// Why a file, or a part of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source failed.
    #[error("{bytes} bytes at {offset} cannot be read: {source}")]
    Io {
        /// Where the read started.
        offset: u64,
        /// How many bytes it asked for.
        bytes: u64,
        /// What the source said.
        source: io::Error,
    },
    /// The system refused to start a thread.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    Spawn {
        /// The worker's number, from 0.
        worker: usize,
        /// How many were to work, the caller's thread included.
        workers: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// Header, table of contents, a lookup table or a table of metadata breaks the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A block of a column breaks the format.
    #[error("column {column:?}, block {block} at {offset}: {source}")]
    Block {
        /// The column's name.
        column: String,
        /// The block's number.
        block: u64,
        /// Where it starts in the file.
        offset: u64,
        /// What is wrong with it.
        source: FormatError,
    },
    /// A piece of metadata breaks the format.
    #[error("metadata {kind:?} at {offset}: {source}")]
    Metadata {
        /// What it should say.
        kind: String,
        /// Where its block starts in the file.
        offset: u64,
        /// What is wrong with it.
        source: FormatError,
    },
    /// The values of a column or a piece of metadata cannot be understood.
    #[error("{name:?} cannot be read: {dead}")]
    Dead {
        /// The column's name, or the kind of metadata.
        name: String,
        /// Why not.
        dead: Dead,
    },
    /// There is no column of that number.
    #[error("there is no column {index}, the file has {count}")]
    NoColumn {
        /// The number asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// There is no block of that number.
    #[error("column {column:?} has no block {block}, it has {count}")]
    NoBlock {
        /// The column's name.
        column: String,
        /// The number asked for.
        block: u64,
        /// How many there are.
        count: u64,
    },
    /// There are no such rows.
    #[error("there are no rows {start} to {end}, the file has {count}")]
    NoRows {
        /// The first row asked for.
        start: u64,
        /// The end of the rows asked for.
        end: u64,
        /// How many there are.
        count: u64,
    },
    /// The values of several blocks do not fit into one array.
    #[error("column {column:?}: {source}")]
    Values {
        /// The column's name.
        column: String,
        /// Why not.
        source: ValuesError,
    },
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
