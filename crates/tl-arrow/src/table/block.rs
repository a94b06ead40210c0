//! Rows of a column in memory.

use std::ops::Range;

use tbl_io::ReadError;

use crate::table::Access;
use crate::table::columns::{ColumnFile, Lists};
use crate::text;
use crate::values::Value;

/// Rows of a column.
#[derive(Debug)]
pub struct RowBlock {
    bytes: Vec<u8>,
    rows: Rows,
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
    #[must_use]
    pub fn row(&self, row: usize) -> Option<&[u8]> {
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
            bytes.reserve_exact(count.saturating_mul(size));
            file.numbers(*leaf, *number, rows, &mut bytes)?;
            Ok(RowBlock { bytes, rows: Rows::Fixed(size) })
        }
        Access::Lists { leaf, number, shape } => {
            let size = number.kind.bytes() * shape.iter().product::<usize>();
            let need = count.saturating_mul(size);
            file.check_size("bytes of a block", need as u64)?;
            bytes.reserve_exact(need);
            let lists = Lists { leaf: *leaf, number: *number, shape };
            file.lists(&lists, rows, &mut bytes)?;
            Ok(RowBlock { bytes, rows: Rows::Fixed(size) })
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
            Ok(RowBlock { bytes, rows: Rows::Ends(ends) })
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
            Ok(RowBlock { bytes, rows: Rows::Ends(ends) })
        }
        Access::None => Ok(RowBlock { bytes, rows: Rows::Ends(Vec::new()) }),
    }
}
