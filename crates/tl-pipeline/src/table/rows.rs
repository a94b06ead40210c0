//! Parquet and Arrow files as tables.

use std::path::Path;

use tbl_io::{BlockMemory, Location, Source, SourceKind};
use tl_arrow::{ColumnContent, Missing, NumberType, RowBlock, RowColumns};
use tl_handoff::sync::Arc;

use crate::error::{PipelineError, TableError};
use crate::table::{ColumnType, ColumnValues, Content, Meaning, RowValues, Table, TableColumn};

/// A Parquet file, or an Arrow file or stream, of any writer.
///
/// | type | batches have |
/// |---|---|
/// | numbers of 8 to 64 bits, floats of 16 | them as they are |
/// | Boolean | `bool`, or `u8` with 2 for a null |
/// | dates, times and points of time | the integers that the file has: days, or the unit of the column |
/// | decimals | the nearest `f64` |
/// | lists of one length, which Arrow or the metadata of `datasets` states | their dimensions of the above |
/// | texts and bytes | bytes, row by row |
/// | other lists, and structures | bytes, row by row: JSON |
///
/// A null is NaN among floats, and the least number among integers of 32 and 64 bits. Unsigned integers
/// and those of 8 and 16 bits become `i32` or `i64` if a column has nulls.
#[derive(Debug)]
pub struct RowTable {
    file: RowColumns,
    columns: Vec<TableColumn>,
}

impl RowTable {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`PipelineError::Open`] for a damaged file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PipelineError> {
        Self::from_source(Source::open(path)?)
    }

    /// Opens a file that is in memory or in a store.
    ///
    /// # Errors
    /// [`PipelineError::Open`] for a damaged file.
    pub fn from_source(source: Source) -> Result<Self, PipelineError> {
        Ok(Self::of(RowColumns::open(source)?))
    }

    /// As [`from_source`](Self::from_source), with the columns and the features of `options`.
    ///
    /// # Errors
    /// [`PipelineError::Open`] for a damaged file, and for a column that does not exist.
    pub fn open_with(
        source: Source,
        options: &tl_arrow::RowOptions,
    ) -> Result<Self, PipelineError> {
        Ok(Self::of(RowColumns::open_with(source, options)?))
    }

    pub(crate) fn of(file: RowColumns) -> Self {
        let column = |column: &tl_arrow::RowColumn| TableColumn {
            name: column.name.clone(),
            content: content(&column.content),
        };
        let columns = file.columns().iter().map(column).collect();
        Self { file, columns }
    }

    fn range(&self, column: usize, block: u64) -> std::ops::Range<u64> {
        let rows = self.file.block_rows(column);
        let start = block.saturating_mul(rows).min(self.row_count());
        start..start.saturating_add(rows).min(self.row_count())
    }
}

impl Table for RowTable {
    fn location(&self) -> &Location {
        self.file.location()
    }

    fn format(&self) -> &'static str {
        if self.file.kind() == SourceKind::Arrow { "arrow" } else { "parquet" }
    }

    fn row_count(&self) -> u64 {
        self.file.row_count()
    }

    fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    fn block_ends(&self) -> Vec<u64> {
        self.file.block_ends()
    }

    fn values(&self, column: usize) -> Result<ColumnValues, TableError> {
        let load_bytes = self.file.load_bytes(column);
        Ok(ColumnValues::Blocks { rows: self.file.block_rows(column), load_bytes })
    }

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        Some(self.file.block_memory())
    }

    fn load(&self, column: usize, block: u64) -> Result<Arc<dyn RowValues>, TableError> {
        let range = self.range(column, block);
        Ok(Arc::new(Rows(self.file.read(column, range)?)))
    }
}

/// The rows of a block.
struct Rows(RowBlock);

impl Rows {
    fn row(&self, row: u64) -> Result<Option<&[u8]>, TableError> {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        self.0.row(row).map_err(TableError::Read)
    }
}

impl RowValues for Rows {
    fn kept_bytes(&self) -> u64 {
        self.0.memory()
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let found = self.row(row)?.filter(|found| found.len() == out.len());
        let found = found.ok_or(TableError::OutOfRange { what: "row", number: row })?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn append_bytes(&self, row: u64, bytes: &mut Vec<u8>) -> Result<bool, TableError> {
        let found = self.row(row)?;
        bytes.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }
}

fn content(content: &ColumnContent) -> Content {
    match content {
        ColumnContent::Numbers { number, shape, missing } => Content::Numbers {
            number: column_type(*number),
            shape: shape.clone(),
            meaning: match missing {
                Missing::None => Meaning::Value,
                Missing::Least => Meaning::LeastIsMissing,
                Missing::Two => Meaning::TwoIsMissing,
            },
        },
        ColumnContent::Bytes { what } => Content::Bytes { what },
        ColumnContent::Unreadable { reason } => Content::Unreadable { reason: reason.clone() },
    }
}

fn column_type(number: NumberType) -> ColumnType {
    match number {
        NumberType::Bool => ColumnType::Bool,
        NumberType::I8 => ColumnType::I8,
        NumberType::U8 => ColumnType::U8,
        NumberType::I16 => ColumnType::I16,
        NumberType::U16 => ColumnType::U16,
        NumberType::I32 => ColumnType::I32,
        NumberType::U32 => ColumnType::U32,
        NumberType::I64 => ColumnType::I64,
        NumberType::U64 => ColumnType::U64,
        NumberType::F16 => ColumnType::F16,
        NumberType::F32 => ColumnType::F32,
        NumberType::F64 => ColumnType::F64,
    }
}
