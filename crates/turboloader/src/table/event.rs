//! Events of a conversion.

use std::fmt;
use std::ops::ControlFlow;

use idv_format::Dead;

use super::error::TableError;

/// An event of a conversion.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableEvent<'a> {
    /// How much has been converted: rows, or bytes that are read of a CSV file.
    Progress {
        /// The part that is done.
        done: u64,
        /// The whole.
        total: u64,
    },
    /// A part of the source that the destination does not have.
    LeftOut(TableNote<'a>),
}

/// A part of a table that is left out of a conversion. Prints as a sentence.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableNote<'a> {
    /// A column that cannot be read.
    Column {
        /// Its name.
        name: &'a str,
        /// The reason.
        reason: Dead,
    },
    /// Metadata of a column that cannot be read.
    Metadata {
        /// The kind of metadata.
        kind: &'a str,
        /// The name of the column.
        column: &'a str,
        /// The reason.
        reason: Dead,
    },
    /// Edges of a segment, which CSV files cannot hold.
    Edges {
        /// How many there are.
        edges: u64,
    },
    /// Columns that are followed by others with the same names.
    Hidden {
        /// How many there are.
        columns: usize,
    },
}

impl fmt::Display for TableNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { name, reason } => write!(f, "left out column {name:?}: {reason}"),
            Self::Metadata { kind, column, reason } => {
                write!(f, "left out {kind:?} of column {column:?}: {reason}")
            }
            Self::Edges { edges } => {
                write!(f, "left out {edges} edges: CSV cannot store lists (convert to Parquet)")
            }
            Self::Hidden { columns } => {
                write!(f, "left out {columns} columns that are followed by others of their names")
            }
        }
    }
}

/// Receives the events of a conversion and may end it.
pub(super) type OnEvent<'a> = &'a mut dyn FnMut(TableEvent<'_>) -> ControlFlow<()>;

/// Reports an event.
///
/// # Errors
/// [`TableError::Stopped`] where the receiver ends the conversion.
pub(super) fn report(on_event: OnEvent<'_>, event: TableEvent<'_>) -> Result<(), TableError> {
    if on_event(event).is_break() { Err(TableError::Stopped) } else { Ok(()) }
}

/// Reports progress; errors as [`report`].
pub(super) fn progress(on_event: OnEvent<'_>, done: u64, total: u64) -> Result<(), TableError> {
    report(on_event, TableEvent::Progress { done, total })
}
