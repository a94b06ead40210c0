//! What can go wrong while writing a file.

use alloc::string::String;
use std::io;

use crate::error::FormatError;
use crate::toc::Compression;
use crate::values::ValuesError;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The destination failed.
    #[error("writing at {offset}: {source}")]
    Io {
        /// How far the file had come.
        offset: u64,
        /// What the destination said.
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
    /// A column's codec is one that no reader accepts.
    #[error("column {column:?}: {source}")]
    Codec {
        /// The column's name.
        column: String,
        /// What a reader would say.
        source: FormatError,
    },
    /// A compression that is only read.
    #[error("column {column:?}: {compression} is not written")]
    Compression {
        /// The column's name.
        column: String,
        /// The compression.
        compression: Compression,
    },
    /// A piece of metadata without a kind, of a kind that is there already, or not of one value.
    #[error(
        "column {column:?}: metadata {kind:?} of {values} values is not the only one, or not one"
    )]
    Metadata {
        /// The column's name.
        column: String,
        /// The kind.
        kind: String,
        /// How many values it has.
        values: usize,
    },
    /// Rows with more or fewer columns than the file has.
    #[error("rows have {found} columns, the file has {expected}")]
    Columns {
        /// Columns of the file.
        expected: usize,
        /// Columns of the rows.
        found: usize,
    },
    /// A column with more or fewer values than the first.
    #[error("column {column:?} has {found} values, the first column has {expected}")]
    Rows {
        /// The column's name.
        column: String,
        /// Values of the first column.
        expected: usize,
        /// Values of this one.
        found: usize,
    },
    /// Values that the column's codec cannot store.
    #[error("column {column:?}: {source}")]
    Values {
        /// The column's name.
        column: String,
        /// Why not.
        source: ValuesError,
    },
    /// An earlier error left the file incomplete.
    #[error("the file was given up after an error")]
    Failed,
}
