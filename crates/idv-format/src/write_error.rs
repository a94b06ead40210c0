//! The errors of writing a file.

use alloc::string::String;
use std::io;

use crate::error::FormatError;
use crate::toc::Compression;
use crate::values::ValuesError;

/// The reason why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum WriteError {
    /// The destination failed.
    #[error("writing at {offset}: {source}")]
    Io { offset: u64, source: io::Error },
    /// The system refused to start a thread.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    Spawn {
        worker: usize,
        /// How many were to work, the caller's thread included.
        workers: usize,
        source: io::Error,
    },
    /// A column's codec is one that no reader accepts.
    #[error("column {column:?}: {source}")]
    Codec { column: String, source: FormatError },
    /// A compression that is only read.
    #[error("column {column:?}: {compression} is not written")]
    Compression { column: String, compression: Compression },
    /// A piece of metadata without a kind, of a kind that the column already has, or with more or
    /// fewer values than one.
    #[error(
        "column {column:?}: invalid metadata {kind:?} of {values} values: expected a new, non-empty \
         kind and one value"
    )]
    Metadata { column: String, kind: String, values: usize },
    /// Rows with more or fewer columns than the file has.
    #[error("rows have {found} columns, the file has {expected}")]
    Columns { expected: usize, found: usize },
    /// A column with more or fewer values than the first.
    #[error("column {column:?} has {found} values, the first column has {expected}")]
    Rows { column: String, expected: usize, found: usize },
    /// Values that the column's codec cannot store.
    #[error("column {column:?}: {source}")]
    Values { column: String, source: ValuesError },
    /// An earlier error left the file incomplete.
    #[error("the file cannot be continued after an error")]
    Failed,
}
