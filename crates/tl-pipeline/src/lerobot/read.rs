//! Columns of numbers of Parquet files, as a whole.

use tbl_io::{Location, ReadError, Source};
use tl_arrow::RowOptions;

use crate::error::{LeRobotDefect, PipelineError};
use crate::table::{ColumnType, ColumnValues, Content, RowTable, Table, TableColumn};

/// The most bytes of all columns in memory.
const MOST_BYTES: u64 = 1 << 36;

/// The bytes of columns in memory.
#[derive(Debug)]
pub(super) struct Memory {
    held: u64,
    most: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { held: 0, most: MOST_BYTES }
    }
}

impl Memory {
    /// Counts bytes before they are read.
    fn charge(&mut self, location: &Location, bytes: u64) -> Result<(), ReadError> {
        let need = self.held.saturating_add(bytes);
        if need > self.most {
            let location = location.clone();
            let what = "bytes of all columns in memory";
            return Err(ReadError::Limit { location, what, limit: self.most, need });
        }
        self.held = need;
        Ok(())
    }

    fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes as u64);
    }
}

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

/// Reads columns of a Parquet file, whose bytes are charged to `memory`. `lists` has the sizes of lists
/// that the file does not state.
pub(super) fn columns(
    source: &Source,
    names: &[String],
    lists: Option<&str>,
    memory: &mut Memory,
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
        found.push(column(&table, place, &fail, memory)?);
    }
    Ok(found)
}

fn column(
    table: &RowTable,
    place: usize,
    fail: &dyn Fn(String) -> PipelineError,
    memory: &mut Memory,
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
    memory.charge(table.location(), table.row_count().saturating_mul(row_bytes as u64))?;
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

    pub(super) fn row_count(&self) -> u64 {
        (self.bytes.len() / self.row_bytes.max(1)) as u64
    }

    /// Drops all rows but the first and the last.
    pub(super) fn keep_ends(&mut self, memory: &mut Memory) {
        let before = self.bytes.len();
        let last = before.saturating_sub(self.row_bytes);
        if last > self.row_bytes {
            self.bytes.copy_within(last.., self.row_bytes);
            self.bytes.truncate(2 * self.row_bytes);
            self.bytes.shrink_to_fit();
        }
        memory.release(before - self.bytes.len());
    }

    /// The integer of row `row`; `None` for other numbers, for lists, and after the last row.
    pub(super) fn integer(&self, row: u64) -> Option<i64> {
        let row = self.row(row);
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
    }

    /// True if every row is an integer.
    pub(super) fn is_integers(&self) -> bool {
        (0..self.row_count()).all(|row| self.integer(row).is_some())
    }

    /// The integers of all rows; `None` for other numbers, and for lists.
    pub(super) fn integers(&self) -> Option<Vec<i64>> {
        (0..self.row_count()).map(|row| self.integer(row)).collect()
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

#[cfg(test)]
mod tests {
    use tbl_io::Stores;

    use super::*;
    use crate::lerobot::{LeRobot, LeRobotOptions};

    #[test]
    fn columns_of_all_files_are_charged_together() {
        let folder = tl_testdata::shipped!("lerobot").join("data/chunk-000");
        let names = ["frame_index", "episode_index"].map(str::to_owned);
        let mut memory = Memory { held: 0, most: (13 + 13 + 6) * 8 + 47 };
        let mut read = |name: &str| {
            let source = Source::open(folder.join(name)).unwrap();
            columns(&source, &names, None, &mut memory)
        };
        assert_eq!(read("file-000.parquet").unwrap()[0].row_count(), 13);
        let error = read("file-001.parquet").unwrap_err().to_string();
        assert!(error.contains("file-001.parquet"), "{error}");
        assert!(error.contains("304") && error.contains("303"), "{error}");
        assert!(error.contains("bytes of all columns in memory"), "{error}");
    }

    #[test]
    fn of_the_numbers_of_rows_the_ends_are_kept() {
        let root = tl_testdata::shipped!("lerobot");
        let rows = LeRobot::open(&Stores::new(), root, &LeRobotOptions::default()).unwrap();
        let index = rows.columns.iter().find(|column| column.name == "index").unwrap();
        assert_eq!(index.integers(), Some(vec![0, 18]));
        for count in 0_u8..5 {
            let mut column = Column { bytes: (0..count).collect(), row_bytes: 1, ..index.clone() };
            let mut memory = Memory { held: 9, most: 9 };
            column.keep_ends(&mut memory);
            let ends: Vec<u8> = (0..count).filter(|&row| row == 0 || row + 1 == count).collect();
            assert_eq!(column.bytes, ends);
            assert_eq!(memory.held, u64::from(9 - count.saturating_sub(2)));
        }
    }
}
