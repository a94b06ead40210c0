//! What can be wrong with a table, and with what is asked of it.

use std::fmt;

use tbl_io::{Escaped, Location, ReadError};
use tl_handoff::sync::Arc;
use tl_transform::UserError;

use crate::fault::Fault;
use crate::table::TableKind;

/// Why values of a table cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be read, or was changed.
    #[error("{}", .0.detail())]
    Read(Arc<ReadError>),
    /// A file that the library cannot read in this build.
    #[error("{} files need the feature `tables`, which this build lacks", kind.name().to_uppercase())]
    NoFeature {
        /// The kind of the file.
        kind: TableKind,
    },
    /// A file's format has an error of its own.
    #[error("{source}")]
    File {
        /// The error.
        source: Arc<dyn Fault + Send + Sync>,
        /// Whether the file is at fault, and not the moment.
        is_lasting: bool,
    },
    /// A number that is no label.
    #[error("{value} is no label, which is a whole number of 64 bits")]
    Label {
        /// The number.
        value: f64,
    },
    /// More than is made of what a file says.
    #[error("{need} {what}, the limit is {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        need: u64,
        /// The most.
        limit: u64,
    },
    /// A number of which there is nothing, which is the caller's fault.
    #[error("there is no {what} {number}")]
    OutOfRange {
        /// What it would be.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// Another table's own reason.
    #[error("{0}")]
    Other(Arc<UserError>),
}

impl TableError {
    /// Whether it is the table that is at fault, and not the moment.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Read(error) => error.is_lasting(),
            Self::File { is_lasting, .. } => *is_lasting,
            Self::NoFeature { .. } | Self::Other(_) | Self::OutOfRange { .. } => false,
            Self::Label { .. } | Self::Limit { .. } => true,
        }
    }
}

impl From<ReadError> for TableError {
    fn from(error: ReadError) -> Self {
        Self::Read(Arc::new(error))
    }
}

/// What columns were asked for that a data set does not have, or not like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnsError {
    /// Columns of a data set that is no table.
    #[error("{location}: no table, columns are those of IDV and TBF files")]
    NoTable {
        /// The first source.
        location: Location,
    },
    /// Something else than columns of a table.
    #[error("{location}: a table, which has columns and no {what}")]
    IsTable {
        /// The file.
        location: Location,
        /// What was asked for.
        what: &'static str,
    },
    /// Files with other columns side by side.
    #[error("{location}: column {column} is {found}, in {first} it is {expected}")]
    Mismatch {
        /// The file.
        location: Location,
        /// The first file of the data set.
        first: Location,
        /// The column's number.
        column: usize,
        /// What it is.
        found: String,
        /// What it is in the first file.
        expected: String,
    },
    /// There is no such column.
    #[error("there is no column `{}`; there are {columns}", Name(column))]
    NoColumn {
        /// Its name.
        column: String,
        /// Those that there are.
        columns: String,
    },
    /// A column that is no array of numbers.
    #[error("column `{}` is no array of numbers: {reason}", Name(column))]
    NotNumbers {
        /// Its name.
        column: String,
        /// What it is.
        reason: String,
    },
    /// A column that does not hold bytes.
    #[error("column `{}` is not a byte column: {reason}", Name(column))]
    NotBytes {
        /// Its name.
        column: String,
        /// What it is.
        reason: String,
    },
    /// Numbers are asked for in a type that they are not made into.
    #[error(
        "column `{}` is {stored}, which comes as that or as f32, not as {wanted}",
        Name(column)
    )]
    Type {
        /// Its name.
        column: String,
        /// Its type.
        stored: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// A label that is several numbers, or no number.
    #[error("column `{}` is no label, which is one number a row: {reason}", Name(column))]
    NotLabel {
        /// Its name.
        column: String,
        /// What it is.
        reason: String,
    },
    /// Two parts of a batch with one name.
    #[error("a batch would have two columns `{}`", Name(column))]
    Twice {
        /// The name.
        column: String,
    },
    /// Nothing at all is asked for.
    #[error("no column was asked for, and none can be batched")]
    Nothing,
    /// Neighbours of what is no graph.
    #[error("{location}: the rows have no edges, so neighbours cannot be sampled")]
    NoEdges {
        /// The file.
        location: Location,
    },
    /// Neighbours by the edges that reach a node, which the file has by the node that they leave.
    #[error("{location}: no reverse index, by which edges that reach a node are found")]
    NoReverseIndex {
        /// The file.
        location: Location,
    },
    /// More neighbours than can be drawn for one row.
    #[error("fanouts {fanouts:?} are {neighbors} neighbours of a row, expected 1 to {most}")]
    Fanouts {
        /// What was asked for.
        fanouts: Vec<u32>,
        /// How many that makes in the last hop.
        neighbors: u64,
        /// The most.
        most: u64,
    },
}

struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped(self.0.as_bytes()).fmt(f)
    }
}
