//! An IDV file as CSV.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;

use idv_format::{Codec, Column, Item, Values, Vectors};

use super::cells::{self, KeyValues};
use super::header::slot_name;
use super::rows::BYTE_ORDER_MARK;
use crate::table::error::TableError;
use crate::table::event::{OnEvent, progress};
use crate::table::idv::Table;

/// A column on its way into lines.
#[derive(Debug)]
struct Source<'f> {
    column: Column<'f, File>,
    item: Item,
    /// Slots of its vectors, `None` for single values.
    slots: Option<u32>,
    /// The value that sparse vectors leave out.
    zero: Values<'static>,
    key_values: Option<KeyValues>,
}

/// Writes all rows and returns how many there are.
pub(in crate::table) fn write(
    table: &Table,
    output: &File,
    on_event: OnEvent<'_>,
) -> Result<u64, TableError> {
    let sources: Vec<Source<'_>> =
        table.columns.iter().map(|&index| Source::new(table, index)).collect::<Result<_, _>>()?;
    let mut names = sources.iter().flat_map(Source::names).peekable();
    // Readers remove one byte order mark from the start of a file: this one, not the name's own.
    if names.peek().is_some_and(|name| name.as_bytes().starts_with(BYTE_ORDER_MARK)) {
        let mut output = output;
        output.write_all(BYTE_ORDER_MARK).map_err(TableError::Output)?;
    }
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(output);
    for name in names {
        writer.write_field(&*name).map_err(TableError::csv_write)?;
    }
    writer.write_record(None::<&[u8]>).map_err(TableError::csv_write)?;
    let mut cell = String::new();
    for rows in table.row_ranges() {
        let read = |source: &Source<'_>| source.column.read(rows.clone());
        let values = sources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        for (place, row) in rows.clone().enumerate() {
            for (source, values) in sources.iter().zip(&values) {
                source.write(values, place, row, &mut cell, &mut writer)?;
            }
            writer.write_record(None::<&[u8]>).map_err(TableError::csv_write)?;
        }
        progress(on_event, rows.end, table.file.row_count())?;
    }
    writer.flush().map_err(TableError::Output)?;
    Ok(table.file.row_count())
}

impl<'f> Source<'f> {
    fn new(table: &'f Table, index: usize) -> Result<Self, TableError> {
        let column = table.file.column(index)?;
        let name = || column.entry().name.clone();
        let (item, slots) = match column.codec() {
            Codec::Item(item) => (item.clone(), None),
            Codec::Vector(vector) => {
                let variable = TableError::VariableVectors { name: name() };
                (vector.item.clone(), Some(vector.length().ok_or(variable)?))
            }
        };
        let nothing = Codec::Item(item.clone()).empty_values();
        let mut zero = Vectors::empty(nothing.slice(0..0).into_owned());
        let left_out = |source| idv_format::ReadError::Values { column: name(), source };
        zero.push(1, Some(&[]), &nothing).map_err(left_out)?;
        let zero = zero.dense_items(1).map_err(left_out)?.into_owned();
        let key_values = if matches!(item, Item::Key(_)) { table.key_values(index)? } else { None };
        Ok(Self { column, item, slots, zero, key_values })
    }

    /// The names of its columns in the CSV file: one for each slot.
    fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let name = &self.column.entry().name;
        let single = self.slots.is_none().then_some(Cow::Borrowed(&**name));
        let slots = (0..self.slots.unwrap_or(0)).map(|slot| Cow::Owned(slot_name(name, slot)));
        single.into_iter().chain(slots)
    }

    /// Writes the fields of the row at `place` among `values`.
    fn write(
        &self,
        values: &Values<'_>,
        place: usize,
        row: u64,
        cell: &mut String,
        writer: &mut csv::Writer<&File>,
    ) -> Result<(), TableError> {
        let mut field = |values: &Values<'_>, index: usize| {
            cell.clear();
            let written = cells::write(cell, &self.item, values, index, self.key_values.as_ref());
            let column = || self.column.entry().name.clone();
            written.map_err(|source| TableError::Value { column: column(), row, source })?;
            writer.write_field(cell.as_bytes()).map_err(TableError::csv_write)
        };
        let Values::Vector(vectors) = values else { return field(values, place) };
        let Some(vector) = vectors.row(place) else { return Ok(()) };
        let items = vectors.items();
        let Some(indices) = vector.indices() else {
            return vector.items().try_for_each(|item| field(&items, item));
        };
        let mut stored = indices.iter().zip(vector.items()).peekable();
        for slot in 0..vector.length() {
            match stored.next_if(|&(&index, _)| index == slot) {
                Some((_, item)) => field(&items, item)?,
                None => field(&self.zero, 0)?,
            }
        }
        Ok(())
    }
}
