//! Rows of a column in memory.

use std::ops::Range;

use tbl_io::ReadError;

use crate::file::{ParquetFile, RowPlace};
use crate::nested::Entry;
use crate::rows::RowFile;
use crate::table::number::Number;
use crate::table::{Access, misfit};
use crate::text;
use crate::thrift::Flaw;
use crate::values::Value;

/// Rows of a column of a Parquet file.
#[derive(Debug)]
pub struct ParquetBlock {
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

impl ParquetBlock {
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
    file: &ParquetFile,
    access: &Access,
    rows: Range<u64>,
) -> Result<ParquetBlock, ReadError> {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    match access {
        Access::Numbers { leaf, number } => {
            let size = number.kind.bytes();
            bytes.reserve_exact(count.saturating_mul(size));
            numbers(file, *leaf, *number, rows, &mut bytes)?;
            Ok(ParquetBlock { bytes, rows: Rows::Fixed(size) })
        }
        Access::Lists { leaf, number, shape } => {
            let size = number.kind.bytes() * shape.iter().product::<usize>();
            let need = count.saturating_mul(size);
            file.check_size("bytes of a block", need as u64)?;
            bytes.reserve_exact(need);
            for row in rows {
                list(file, *leaf, *number, shape, row, &mut bytes)?;
            }
            Ok(ParquetBlock { bytes, rows: Rows::Fixed(size) })
        }
        Access::Bytes { leaf } => {
            let described = file.leaf(*leaf);
            let mut ends = Vec::with_capacity(count);
            each(file, *leaf, rows, &mut |value, _| {
                let is_null = value.is_none();
                if let Some(Value::Bytes(value)) = value {
                    bytes.extend_from_slice(value);
                } else if let Some(value) = value {
                    bytes.extend(text::field(described, value));
                }
                ends.push((bytes.len(), is_null));
                file.check_size("bytes of a block", bytes.len() as u64)
            })?;
            Ok(ParquetBlock { bytes, rows: Rows::Ends(ends) })
        }
        Access::Json { node } => {
            let mut ends = Vec::with_capacity(count);
            for row in rows {
                let json = match RowFile::place(file, row) {
                    Some(place) => file.json(node, place)?,
                    None => None,
                };
                let is_null = json.is_none();
                bytes.extend(json.unwrap_or_default());
                ends.push((bytes.len(), is_null));
                file.check_size("bytes of a block", bytes.len() as u64)?;
            }
            Ok(ParquetBlock { bytes, rows: Rows::Ends(ends) })
        }
        Access::None => Ok(ParquetBlock { bytes, rows: Rows::Ends(Vec::new()) }),
    }
}

fn numbers(
    file: &ParquetFile,
    leaf: usize,
    number: Number,
    rows: Range<u64>,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let described = file.leaf(leaf);
    each(file, leaf, rows, &mut |value, offset| {
        if number.push(described, value, bytes) {
            return Ok(());
        }
        let what = if value.is_none() {
            "null, of which the statistics say there is none,"
        } else {
            "number"
        };
        Err(file.error(Flaw::new(offset, misfit(what))))
    })
}

/// A caller that takes values, each with the offset of its page.
type Take<'a> = dyn FnMut(Option<Value<'_>>, u64) -> Result<(), ReadError> + 'a;

/// Calls `take` with the values of these rows, each with the offset of its page.
fn each(
    file: &ParquetFile,
    leaf: usize,
    rows: Range<u64>,
    take: &mut Take<'_>,
) -> Result<(), ReadError> {
    let mut next = rows.start;
    while next < rows.end {
        let Some(RowPlace { group, row }) = file.place(next) else { return Ok(()) };
        let slots = file.pages(group, leaf)?;
        let number = ParquetFile::page_of(slots, row);
        let within = file.rows_of(group, slots, number);
        let page = file.page(group, leaf, number)?;
        let left = u32::try_from(rows.end - next).unwrap_or(u32::MAX);
        let end = within.end.min(row.saturating_add(left));
        let offset = slots[number].offset;
        for row in row..end {
            take(page.get((row - within.start) as usize), offset)?;
        }
        next += u64::from(end - row).max(1);
    }
    Ok(())
}

/// Appends the numbers of a list, which has exactly these dimensions, or is null.
fn list(
    file: &ParquetFile,
    leaf: usize,
    number: Number,
    shape: &[usize],
    row: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let Some(place) = file.place(row) else { return Ok(()) };
    let at = file.chunk(place.group, leaf).start;
    let error = |what| file.error(Flaw::new(at, misfit(what))).for_sample(row, None);
    let described = file.leaf(leaf);
    let expected: usize = shape.iter().product();
    let (entries, first) = file.entries(place, leaf)?;
    let row = (place.row - first) as usize;
    let mut of_row = entries.of_row(row, described.max_definition).peekable();
    let count = entries.range(row).len();
    let is_null = count == 1 && of_row.peek().is_some_and(|entry| entry.value.is_none());
    if is_null && expected > 1 {
        let missing = (0..expected).all(|_| number.push(described, None, bytes));
        return if missing { Ok(()) } else { Err(error("null among lists of numbers")) };
    }
    if count != expected {
        return Err(error("list of another length than the metadata states"));
    }
    for (at, Entry { repetition, value, .. }) in of_row.enumerate() {
        if usize::from(repetition) != level(shape, at) {
            return Err(error("list of another shape than the metadata states"));
        }
        if !number.push(described, value, bytes) {
            return Err(error("number in a list"));
        }
    }
    Ok(())
}

/// The repetition level of element `at` of a row: the number of the list that it begins an element of,
/// 0 for the row itself.
fn level(shape: &[usize], at: usize) -> usize {
    let begins = |&level: &usize| at.is_multiple_of(shape[level..].iter().product());
    if at == 0 { 0 } else { (1..=shape.len()).find(begins).unwrap_or(shape.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_nested_lists() {
        let levels =
            |shape: &[usize], count| (0..count).map(|at| level(shape, at)).collect::<Vec<_>>();
        assert_eq!(levels(&[3], 3), [0, 1, 1]);
        assert_eq!(levels(&[2, 3], 6), [0, 2, 2, 1, 2, 2]);
        assert_eq!(levels(&[2, 1, 2], 4), [0, 3, 1, 3]);
    }
}
