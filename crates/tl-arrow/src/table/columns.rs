//! The interface of a format of files of rows for tables.

use std::ops::Range;

use tbl_io::{ReadError, RowsDefect};

use crate::ipc::FixedLists;
use crate::rows::RowFile;
use crate::schema::Node;
use crate::table::number::Number;
use crate::values::Value;

/// A caller that takes values, each with the offset of the place in the file that errors name.
pub(super) type Take<'a> = dyn FnMut(Option<Value<'_>>, u64) -> Result<(), ReadError> + 'a;

/// Lists of numbers that all have these dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    pub(super) leaf: usize,
    pub(super) number: Number,
    pub(super) shape: &'a [usize],
    /// The definition level from which on a list of a Parquet file has elements.
    pub(super) definition: u8,
}

/// A file of rows whose columns are read block by block.
pub(super) trait ColumnFile: RowFile {
    /// The reason why no row of a column can be read.
    fn unreadable(&self, column: &Node) -> Option<String>;

    /// For each part of the file, the row after its last one.
    fn part_ends(&self) -> Vec<u64>;

    /// The lists of one length that the types of columns state.
    fn fixed_lists(&self) -> FixedLists;

    /// Whether values of a leaf may be null.
    fn has_nulls(&self, leaf: usize) -> bool;

    /// Bytes of these leaves in the file, decompressed as far as it says.
    fn leaf_bytes(&self, leaves: Range<usize>) -> u64;

    /// The rows that are decoded together whatever is read of them: the most of any such part. `None`
    /// if a part costs little more than the rows that are read.
    fn rows_together(&self, leaf: usize, is_list: bool) -> Option<u64>;

    /// Bytes of memory that reading rows of these leaves takes at most, without the rows themselves.
    fn load_bytes(&self, leaves: Range<usize>) -> u64;

    /// Calls `take` with the values of these rows.
    fn each(&self, leaf: usize, rows: Range<u64>, take: &mut Take<'_>) -> Result<(), ReadError>;

    /// Appends the numbers of these rows.
    fn numbers(
        &self,
        leaf: usize,
        number: Number,
        rows: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError>;

    /// Appends the numbers of the lists of these rows, which have exactly the stated dimensions. A null
    /// and an empty list are missing numbers.
    fn lists(
        &self,
        lists: &Lists<'_>,
        rows: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError>;
}

/// Defects of values that do not fit into their column.
pub(super) const NULL: &str = "null, of which the statistics say there is none,";
pub(super) const NUMBER: &str = "number";
pub(super) const NULL_LIST: &str = "null among lists of numbers";
pub(super) const LENGTH: &str = "list of another length than the metadata states";
pub(super) const SHAPE: &str = "list of another shape than the metadata states";
pub(super) const ELEMENT: &str = "number in a list";

/// Whether an error is that of a value, so that other rows of its page can be read.
pub(super) fn is_of_value(error: &ReadError) -> bool {
    let ReadError::Rows { source: RowsDefect::Damaged { what }, .. } = error else { return false };
    [NULL, NUMBER, NULL_LIST, LENGTH, SHAPE, ELEMENT].contains(what)
}
