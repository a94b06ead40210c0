//! Tables as data sets: rows of columns instead of samples of bytes.
//!
//! A [`Table`] has columns and their values; with the feature `tables`, IDV files and TBF segments
//! are tables, and with `arrow` Parquet files. Files of arrays are tables of a
//! column for each array. In a [`Dataset`](crate::Dataset) it is a [`TableSource`], whose samples are its
//! rows, so that order, ranks, state and errors do not depend on columns.

mod array;
mod blocks;
mod columns;
#[cfg(feature = "tables")]
mod file;
mod gather;
mod identity;
mod kind;
mod labels;
mod layout;
mod neighbors;
mod number;
mod open;
#[cfg(feature = "arrow")]
mod rows;
mod segments;
mod source;
mod view;

use std::fmt;

use tbl_io::{BlockMemory, Location, ReadError};
use tl_handoff::sync::Arc;

use crate::error::TableError;

pub use array::ArrayTable;
pub(crate) use array::number_of;
pub use columns::{ColumnRequest, Columns, Direction, Neighbors};
#[cfg(feature = "tables")]
pub use file::{IdvBytes, IdvTable, TbfTable};
pub use kind::TableKind;
pub use number::{ColumnNumber, ColumnType};
#[cfg(feature = "arrow")]
pub use rows::RowTable;
pub use source::TableSource;
pub use view::{ColumnSpec, ColumnView};

pub(crate) use gather::{Gatherer, TableScratch};
pub(crate) use identity::hash_table;
pub(crate) use labels::TableLabels;
pub(crate) use number::from_little_endian;
pub use open::open_rows;
pub(crate) use open::{check, of_samples, open, open_samples};
pub use segments::SegmentFolder;
pub(crate) use segments::with_segments;

/// Rows of columns that any number of threads read at any place.
pub trait Table: Send + Sync + fmt::Debug {
    /// The file of the table.
    fn location(&self) -> &Location;

    /// The name of its format, such as `idv`.
    fn format(&self) -> &'static str {
        "table"
    }

    /// Rows of every column.
    fn row_count(&self) -> u64;

    /// All columns, also those that cannot be read.
    fn columns(&self) -> &[TableColumn];

    /// The access to the values of column number `column`.
    ///
    /// # Errors
    /// The defect of the column.
    fn values(&self, column: usize) -> Result<ColumnValues, TableError>;

    /// The rows of block `block` of a column that has [blocks](ColumnValues::Blocks).
    ///
    /// # Errors
    /// What is wrong with the block.
    fn load(&self, column: usize, block: u64) -> Result<Arc<dyn RowValues>, TableError>;

    /// The memory for what loading a block unpacks, if other blocks need it too.
    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        None
    }

    /// For each part of the file whose rows are stored together, the row after its last one: the blocks
    /// of [`Blocks::Source`](crate::Blocks::Source). None by default.
    fn block_ends(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Checks that all values returned so far are those of the table; called after each row.
    ///
    /// # Errors
    /// The defect of the table, such as a file that was cut short.
    fn check(&self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Bytes of its file, or of its numbers if they are in several files; `None`, the default, for
    /// callers to ask the file itself.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Checks a column against checksums that reading its rows does not look at; it has none by default.
    ///
    /// # Errors
    /// The defect of the column.
    fn verify(&self, _column: usize) -> Result<(), TableError> {
        Ok(())
    }

    /// The names of the categories of a column of [keys](Meaning::Key), in their order; none, the
    /// default, where they have none.
    ///
    /// # Errors
    /// What is wrong with the names.
    fn class_names(&self, _column: usize) -> Result<Vec<String>, TableError> {
        Ok(Vec::new())
    }

    /// True if rows are nodes of a graph whose edges can be listed in this direction.
    fn has_edges(&self, _direction: Direction) -> bool {
        false
    }

    /// The number of edges of row `row`.
    ///
    /// # Errors
    /// The defect of its edges.
    fn edge_count(&self, _direction: Direction, _row: u64) -> Result<u64, TableError> {
        Ok(0)
    }

    /// The row at the other end of edge number `edge` of row `row`; `None` if that row does not
    /// exist.
    ///
    /// # Errors
    /// The defect of its edges.
    fn edge_target(
        &self,
        _direction: Direction,
        _row: u64,
        _edge: u64,
    ) -> Result<Option<u64>, TableError> {
        Ok(None)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// The name of the column.
    pub name: String,
    /// The content of its rows.
    pub content: Content,
}

/// The content of the rows of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Equally many numbers each, which batches have as one array.
    Numbers {
        /// The type of the numbers.
        number: ColumnType,
        /// The dimensions of one row; none where that is a single number.
        shape: Vec<usize>,
        /// The meaning of the numbers.
        meaning: Meaning,
    },
    /// Bytes, of another number in every row, which batches have row by row
    /// ([`Batch::bytes`](crate::Batch::bytes)).
    Bytes {
        /// The kind of bytes, such as `text`.
        what: &'static str,
    },
    /// Nothing that can be read.
    Unreadable {
        /// The reason.
        reason: String,
    },
}

/// The meaning of numbers when they are converted to `f32` or labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// Plain numbers.
    Value,
    /// Categories from 1 on, 0 for none: category `k` becomes `k - 1`, 0 becomes NaN or -1.
    Key {
        /// The number of categories.
        count: u64,
        /// Tells their names from others: files whose names differ mean something else by the same
        /// number. `None` where they have none.
        names: Option<u64>,
    },
    /// Plain numbers, except that the type's minimum stands for a missing one: NaN or -1.
    LeastIsMissing,
    /// 0 and 1 themselves, and 2 for a missing one: NaN or -1.
    TwoIsMissing,
}

/// The access to the values of a column.
#[derive(Clone)]
#[non_exhaustive]
pub enum ColumnValues {
    /// All at once, without any that are held in memory.
    Whole(Arc<dyn RowValues>),
    /// Block by block, which are [loaded](Table::load) when they are needed and kept for a while.
    Blocks {
        /// Rows of every block but the last, which may have fewer; at least 1.
        rows: u64,
        /// Bytes of memory that loading a block takes at most.
        load_bytes: u64,
    },
}

impl fmt::Debug for ColumnValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(_) => f.write_str("Whole(..)"),
            Self::Blocks { rows, load_bytes } => f
                .debug_struct("Blocks")
                .field("rows", rows)
                .field("load_bytes", load_bytes)
                .finish(),
        }
    }
}

/// Values of successive rows of a column, numbered from 0.
pub trait RowValues: Send + Sync {
    /// Bytes of memory that they take.
    fn kept_bytes(&self) -> u64;

    /// Writes the numbers of row `row` in their type and the machine's byte order.
    ///
    /// # Errors
    /// The defect of the row.
    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError>;

    /// Writes them as the `f32` that they stand for, where that does not follow from
    /// [`write`](Self::write) and the column's [`Meaning`]; false, the default, where it does.
    ///
    /// # Errors
    /// The defect of the row.
    fn write_f32(&self, _row: u64, _out: &mut [u8]) -> Result<bool, TableError> {
        Ok(false)
    }

    /// Appends the bytes of row `row` of a column of [bytes](Content::Bytes); false if the row has
    /// none.
    ///
    /// # Errors
    /// The defect of the row.
    fn append_bytes(&self, _row: u64, _bytes: &mut Vec<u8>) -> Result<bool, TableError> {
        Ok(false)
    }
}
