//! Rows of a column in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tbl_io::ReadError;

use crate::table::Access;
use crate::table::columns::{ColumnFile, Lists, is_of_value};
use crate::text;
use crate::values::Value;

/// Rows of a column.
#[derive(Debug)]
pub struct RowBlock {
    bytes: Vec<u8>,
    rows: Rows,
    /// The defects of rows whose values do not fit into the column.
    defects: BTreeMap<usize, Arc<ReadError>>,
}

#[derive(Debug)]
enum Rows {
    /// Equally many bytes each.
    Fixed(usize),
    /// By row, where its bytes end; `None` for a null, which has none.
    Ends(Vec<(usize, bool)>),
}

impl RowBlock {
    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let ends = match &self.rows {
            Rows::Fixed(_) => 0,
            Rows::Ends(ends) => size_of_val(&**ends),
        };
        (self.bytes.len() + ends) as u64
    }

    /// The numbers of a row in the machine's byte order, or its bytes; `None` for a null among bytes, and
    /// past the end.
    ///
    /// # Errors
    /// [`ReadError::Rows`] for a value that does not fit into the column.
    pub fn row(&self, row: usize) -> Result<Option<&[u8]>, Arc<ReadError>> {
        match self.defects.get(&row) {
            None => Ok(self.bytes_of(row)),
            Some(error) => Err(Arc::clone(error)),
        }
    }

    fn of_bytes(bytes: Vec<u8>, ends: Vec<(usize, bool)>) -> Self {
        Self { bytes, rows: Rows::Ends(ends), defects: BTreeMap::new() }
    }

    fn bytes_of(&self, row: usize) -> Option<&[u8]> {
        match &self.rows {
            Rows::Fixed(size) => self.bytes.get(row.checked_mul(*size)?..)?.get(..*size),
            Rows::Ends(ends) => {
                let &(end, is_null) = ends.get(row)?;
                let start = row.checked_sub(1).map_or(0, |before| ends[before].0);
                if is_null { None } else { self.bytes.get(start..end) }
            }
        }
    }
}

/// Rows of `size` bytes each, which `append` appends.
fn fixed(
    file: &dyn ColumnFile,
    rows: Range<u64>,
    size: usize,
    append: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<(), ReadError>,
) -> Result<RowBlock, ReadError> {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
    let need = count.saturating_mul(size);
    file.check_size("bytes of a block", need as u64)?;
    let mut bytes = Vec::with_capacity(need);
    let mut defects = BTreeMap::new();
    match append(rows.clone(), &mut bytes) {
        Err(error) if is_of_value(&error) => {
            bytes.clear();
            for (place, row) in rows.enumerate() {
                match append(row..row + 1, &mut bytes) {
                    Err(error) if is_of_value(&error) => {
                        defects.insert(place, Arc::new(error.for_sample(row, None)));
                    }
                    result => result?,
                }
                bytes.resize((place + 1) * size, 0);
            }
        }
        result => result?,
    }
    Ok(RowBlock { bytes, rows: Rows::Fixed(size), defects })
}

pub(super) fn read(
    file: &dyn ColumnFile,
    access: &Access,
    rows: Range<u64>,
) -> Result<RowBlock, ReadError> {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    match access {
        Access::Numbers { leaf, number } => {
            let size = number.kind.bytes();
            fixed(file, rows, size, |rows, bytes| file.numbers(*leaf, *number, rows, bytes))
        }
        Access::Lists { leaf, number, shape, definition } => {
            let size = number.kind.bytes() * shape.iter().product::<usize>();
            let lists = Lists { leaf: *leaf, number: *number, shape, definition: *definition };
            fixed(file, rows, size, |rows, bytes| file.lists(&lists, rows, bytes))
        }
        Access::Bytes { leaf } => {
            let described = file.schema().leaf(*leaf);
            let mut ends = Vec::with_capacity(count);
            file.each(*leaf, rows, &mut |value, _| {
                let is_null = value.is_none();
                if let Some(Value::Bytes(value)) = value {
                    bytes.extend_from_slice(value);
                } else if let Some(value) = value {
                    bytes.extend(text::field(described, value));
                }
                ends.push((bytes.len(), is_null));
                file.check_size("bytes of a block", bytes.len() as u64)
            })?;
            Ok(RowBlock::of_bytes(bytes, ends))
        }
        Access::Json { node } => {
            let mut ends = Vec::with_capacity(count);
            for row in rows {
                let json = match file.place(row) {
                    Some(place) => file.json(node, place)?,
                    None => None,
                };
                let is_null = json.is_none();
                bytes.extend(json.unwrap_or_default());
                ends.push((bytes.len(), is_null));
                file.check_size("bytes of a block", bytes.len() as u64)?;
            }
            Ok(RowBlock::of_bytes(bytes, ends))
        }
        Access::None => Ok(RowBlock::of_bytes(bytes, Vec::new())),
    }
}
