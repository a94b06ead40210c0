//! The errors of tables, and of requests for their columns.

use std::fmt;

use tbl_io::{Escaped, Location, ReadError};
use tl_handoff::sync::Arc;
use tl_transform::UserError;

use crate::fault::Fault;
use crate::table::TableKind;

/// The reason why values of a table cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum TableError {
    /// The file cannot be read, or was changed.
    #[error("{}", .0.detail())]
    Read(Arc<ReadError>),
    /// A file that the library cannot read in this build.
    #[error("{} files need the feature `tables`, which this build lacks", kind.name().to_uppercase())]
    NoFeature { kind: TableKind },
    /// An error of the file's format.
    #[error("{source}")]
    File {
        source: Arc<dyn Fault + Send + Sync>,
        /// True if the file is at fault, false if a later try may succeed.
        is_lasting: bool,
    },
    /// A number that cannot be a label.
    #[error("{value} cannot be a label, expected a whole number of 64 bits")]
    Label { value: f64 },
    /// A size in the file above a limit.
    #[error("{need} {what}, the limit is {limit}")]
    Limit { what: &'static str, need: u64, limit: u64 },
    /// A number out of range, which is the caller's fault.
    #[error("{what} {number} does not exist")]
    OutOfRange { what: &'static str, number: u64 },
    /// Another table's own reason.
    #[error("{0}")]
    Other(Arc<UserError>),
}

impl TableError {
    /// True if the table is at fault, false if a later try may succeed.
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

/// The defect of a request for columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ColumnsError {
    /// Columns of a data set that is not a table.
    #[error(
        "{location}: not a table; IDV, TBF, Parquet, Arrow, .npy, .npz, safetensors and Zarr files have columns"
    )]
    NoTable { location: Location },
    /// Something else than columns of a table.
    #[error("{location}: a table has columns, not {what}")]
    IsTable { location: Location, what: &'static str },
    /// Files with other columns side by side.
    #[error("{location}: column {column} is {found}, in {first} it is {expected}")]
    Mismatch { location: Location, first: Location, column: usize, found: String, expected: String },
    /// A column that does not exist.
    #[error("no column `{}`; the columns are {columns}", Name(column))]
    NoColumn { column: String, columns: String },
    /// A column that is not an array of numbers.
    #[error("column `{}` is not an array of numbers: {reason}", Name(column))]
    NotNumbers { column: String, reason: String },
    /// A column that does not hold bytes.
    #[error("column `{}` is not a byte column: {reason}", Name(column))]
    NotBytes { column: String, reason: String },
    /// Numbers are asked for in a type that they are not made into.
    #[error("column `{}` is {stored}: expected that type or f32, not {wanted}", Name(column))]
    Type { column: String, stored: &'static str, wanted: &'static str },
    /// A label that is several numbers, or no number.
    #[error("column `{}` cannot be the label, expected one number a row: {reason}", Name(column))]
    NotLabel { column: String, reason: String },
    /// Two parts of a batch with one name.
    #[error("duplicate column `{}` in a batch, expected unique names", Name(column))]
    Twice { column: String },
    /// Nothing at all is asked for.
    #[error("no column was requested, and none can be batched")]
    Nothing,
    /// Neighbours in a table without edges.
    #[error("{location}: the rows have no edges, so neighbours cannot be sampled")]
    NoEdges { location: Location },
    /// Neighbours by the edges that reach a node, which the file has by the node that they leave.
    #[error("{location}: incoming edges need a reverse index, which the segment lacks")]
    NoReverseIndex { location: Location },
    /// More neighbours than can be drawn for one row.
    #[error("fanouts {fanouts:?} give {neighbors} neighbours a row, expected 1 to {most}")]
    Fanouts { fanouts: Vec<u32>, neighbors: u64, most: u64 },
}

struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped(self.0.as_bytes()).fmt(f)
    }
}
