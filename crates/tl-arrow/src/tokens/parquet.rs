//! Lists in Parquet files.

use tbl_io::ReadError;
use tl_tokens::TokenFormat;

use super::{Column, Elements, ListFile, length, null};
use crate::file::ParquetFile;
use crate::nested::Entry;
use crate::values::Value;

impl ParquetFile {
    /// Calls `take` with the elements of the list in row `row`: none for null.
    fn list_of<R>(
        &self,
        column: &Column,
        row: u64,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry<'_>>) -> R,
    ) -> Result<R, ReadError> {
        let Some(place) = self.place(row) else { return Ok(take(&mut std::iter::empty())) };
        let (entries, first) = self.entries(place, column.leaf)?;
        let entries = entries.of_row((place.row - first) as usize, column.value);
        let is_element = |entry: &Entry<'_>| entry.definition >= column.element;
        Ok(take(&mut entries.filter(is_element)))
    }
}

impl ListFile for ParquetFile {
    fn format(&self) -> TokenFormat {
        TokenFormat::Parquet
    }

    fn lengths(
        &self,
        column: &Column,
        add: &mut dyn FnMut(u32) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        for row in 0..self.row_count() {
            let (count, has_null) = self.list_of(column, row, |elements| {
                let mut has_null = false;
                let count = elements.inspect(|entry| has_null |= entry.value.is_none()).count();
                (count, has_null)
            })?;
            if has_null {
                return Err(null(self, column, row));
            }
            add(length(self, column, row, count as u64)?)?;
        }
        Ok(())
    }

    fn read(
        &self,
        column: &Column,
        row: u64,
        elements: Elements,
        out: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        let item = column.number.bytes();
        let skipped = usize::try_from(elements.first).unwrap_or(usize::MAX);
        let wanted = usize::try_from(elements.count).unwrap_or(usize::MAX);
        self.list_of(column, row, |elements| {
            for entry in elements.skip(skipped).take(wanted) {
                let Some(Value::Integer(number)) = entry.value else { return false };
                let Some(token) = column.token(number) else { return false };
                out.extend_from_slice(&token[..item]);
            }
            true
        })
    }

    fn offset(&self, column: &Column, row: u64) -> u64 {
        let group = self.place(row).map(|place| place.group);
        group.map_or(0, |group| self.chunk(group, column.leaf).start)
    }
}
