//! Columns of numbers of Parquet files, as a whole.

use tbl_io::{ReadError, Source};
use tl_arrow::RowOptions;

use crate::error::{LeRobotDefect, PipelineError};
use crate::table::{ColumnType, ColumnValues, Content, RowTable, Table, TableColumn};

/// The most bytes of all columns in memory.
const MOST_BYTES: u64 = 1 << 36;

/// The numbers of a column, row by row in the byte order of this machine.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) number: ColumnType,
    /// The dimensions of a row.
    pub(super) shape: Vec<usize>,
    pub(super) row_bytes: usize,
    pub(super) bytes: Vec<u8>,
}

/// Reads columns of a Parquet file. `lists` has the sizes of lists that the file does not state.
pub(super) fn columns(
    source: &Source,
    names: &[String],
    lists: Option<&str>,
) -> Result<Vec<Column>, PipelineError> {
    let columns = names.iter().map(|name| (name.clone(), name.clone())).collect();
    let features = lists.map(str::to_owned);
    let options = RowOptions { columns: Some(columns), features, ..RowOptions::default() };
    let table = RowTable::open_with(source.clone(), &options)?;
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let place = table.columns().iter().position(|column| column.name == *name);
        let fail = |found: String| PipelineError::LeRobot {
            location: source.location().clone(),
            source: LeRobotDefect::Column { column: name.clone(), found, expected: "numbers" },
        };
        let place = place.ok_or_else(|| fail("no rows".to_owned()))?;
        found.push(column(&table, place, &fail)?);
    }
    Ok(found)
}

fn column(
    table: &RowTable,
    place: usize,
    fail: &dyn Fn(String) -> PipelineError,
) -> Result<Column, PipelineError> {
    let location = || table.location().clone();
    let TableColumn { name, content } = &table.columns()[place];
    let (number, shape) = match content {
        Content::Numbers { number, shape, .. } => (*number, shape.clone()),
        Content::Bytes { what } => return Err(fail((*what).to_owned())),
        Content::Unreadable { reason } => return Err(fail(reason.clone())),
    };
    let row_bytes = shape.iter().try_fold(number.bytes(), |all, &side| all.checked_mul(side));
    let row_bytes = row_bytes.unwrap_or(usize::MAX);
    let need = table.row_count().saturating_mul(row_bytes as u64);
    if need > MOST_BYTES {
        let what = "bytes of a column in memory";
        return Err(ReadError::Limit { location: location(), what, limit: MOST_BYTES, need }.into());
    }
    let failed = |source| PipelineError::Table { location: location(), source };
    let mut bytes = Vec::new();
    let values = table.values(place).map_err(failed)?;
    let (rows, whole) = match &values {
        ColumnValues::Blocks { rows, .. } => ((*rows).max(1), None),
        ColumnValues::Whole(values) => (table.row_count().max(1), Some(values)),
    };
    for block in 0..table.row_count().div_ceil(rows) {
        let values = match whole {
            Some(values) => tl_handoff::sync::Arc::clone(values),
            None => table.load(place, block).map_err(failed)?,
        };
        for row in 0..rows.min(table.row_count() - block * rows) {
            let start = bytes.len();
            bytes.resize(start + row_bytes, 0);
            values.write(row, &mut bytes[start..]).map_err(failed)?;
        }
    }
    Ok(Column { name: name.clone(), number, shape, row_bytes, bytes })
}

impl Column {
    /// Adds the rows of the next file.
    pub(super) fn append(&mut self, more: &Self) -> Result<(), LeRobotDefect> {
        if (self.number, &self.shape) != (more.number, &more.shape) {
            let column = self.name.clone();
            let found = format!("{} of {:?}", more.number.name(), more.shape);
            let expected = "the type and the shape that the files before have";
            return Err(LeRobotDefect::Column { column, found, expected });
        }
        self.bytes.extend_from_slice(&more.bytes);
        Ok(())
    }

    /// The numbers of row `row`.
    pub(super) fn row(&self, row: u64) -> &[u8] {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        let start = row.saturating_mul(self.row_bytes);
        self.bytes.get(start..start.saturating_add(self.row_bytes)).unwrap_or_default()
    }

    /// The integers of all rows; `None` for other numbers, and for lists.
    pub(super) fn integers(&self) -> Option<Vec<i64>> {
        let rows = self.bytes.chunks_exact(self.row_bytes.max(1));
        let read = |row: &[u8]| -> Option<i64> {
            match self.number {
                ColumnType::I64 => Some(i64::from_ne_bytes(row.try_into().ok()?)),
                ColumnType::I32 => Some(i32::from_ne_bytes(row.try_into().ok()?).into()),
                ColumnType::U32 => Some(u32::from_ne_bytes(row.try_into().ok()?).into()),
                ColumnType::U64 => u64::from_ne_bytes(row.try_into().ok()?).try_into().ok(),
                ColumnType::Bool
                | ColumnType::U8
                | ColumnType::I8
                | ColumnType::U16
                | ColumnType::I16
                | ColumnType::F16
                | ColumnType::Bf16
                | ColumnType::F32
                | ColumnType::F64 => None,
            }
        };
        rows.map(read).collect()
    }

    /// The real numbers of all rows; `None` for other numbers, and for lists.
    pub(super) fn reals(&self) -> Option<Vec<f64>> {
        let rows = self.bytes.chunks_exact(self.row_bytes.max(1));
        let read = |row: &[u8]| -> Option<f64> {
            if self.number == ColumnType::F32 {
                return Some(f32::from_ne_bytes(row.try_into().ok()?).into());
            }
            Some(f64::from_ne_bytes(row.try_into().ok()?))
        };
        let is_real = matches!(self.number, ColumnType::F32 | ColumnType::F64);
        if is_real { rows.map(read).collect() } else { None }
    }
}
