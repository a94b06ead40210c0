//! IDV files as they are read and written again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::iter;
use std::ops::Range;
use std::path::Path;

use idv_format::{
    Codec, Column, Compression, IdvFile, Item, NewColumn, NewMetadata, Values, WriteOptions,
    WriteSummary, Writer,
};

use super::error::TableError;
use super::event::{OnEvent, TableEvent, TableNote, progress, report};

/// An open file and the columns to be converted.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) file: IdvFile<File>,
    pub(super) columns: Vec<usize>,
}

impl Table {
    /// Opens a file with the columns of these names, or all that can be read.
    pub(super) fn open(
        path: &Path,
        names: &[String],
        on_event: OnEvent<'_>,
    ) -> Result<Self, TableError> {
        Self::of(File::open(path)?, names, on_event)
    }

    /// As [`open`](Self::open), of an open file.
    pub(super) fn of(
        file: File,
        names: &[String],
        on_event: OnEvent<'_>,
    ) -> Result<Self, TableError> {
        let file = IdvFile::open(file)?;
        let columns = if names.is_empty() {
            readable(&file, on_event)?
        } else {
            // The last of several columns of one name is the visible one.
            let entries = file.columns().iter().enumerate();
            let numbers: HashMap<&str, usize> =
                entries.map(|(index, entry)| (&*entry.name, index)).collect();
            let find = |name: &String| {
                let found = numbers.get(&**name).copied();
                found.ok_or_else(|| TableError::NoColumn { name: name.clone() })
            };
            names.iter().map(find).collect::<Result<_, _>>()?
        };
        if columns.is_empty() {
            return Err(TableError::NoColumns);
        }
        Ok(Self { file, columns })
    }

    /// Leaves out columns that are followed by another one of the same name, which nobody could
    /// tell apart.
    pub(super) fn without_hidden(mut self, on_event: OnEvent<'_>) -> Result<Self, TableError> {
        let before = self.columns.len();
        let name = |index: usize| self.file.columns().get(index).map(|entry| &entry.name);
        let mut seen = HashSet::new();
        let last_first = self.columns.iter().copied().rev();
        let mut columns: Vec<usize> =
            last_first.filter(|&index| seen.insert(name(index))).collect();
        columns.reverse();
        let hidden = before - columns.len();
        if hidden > 0 {
            report(on_event, TableEvent::LeftOut(TableNote::Hidden { columns: hidden }))?;
        }
        self.columns = columns;
        Ok(self)
    }

    /// Rows to be read together: whole blocks, so that none is read twice.
    pub(super) fn row_ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let chosen = self.columns.iter().filter_map(|&index| self.file.columns().get(index));
        let step = chosen.map(|entry| entry.rows_per_block).max().unwrap_or(1).max(1);
        let mut start = 0u64;
        let end = self.file.row_count();
        iter::from_fn(move || {
            let rows = start..end.min(start.saturating_add(step));
            start = rows.end;
            (!rows.is_empty()).then_some(rows)
        })
    }

    /// The values that the keys of a column stand for, if the file stores them and they can be
    /// read.
    pub(super) fn key_values(
        &self,
        index: usize,
    ) -> Result<Option<(Item, Values<'static>)>, TableError> {
        let metadata = self.file.metadata(index)?;
        let Some(entry) = metadata.iter().find(|entry| entry.kind == "KeyValues") else {
            return Ok(None);
        };
        let Ok((Codec::Vector(vector), _)) = entry.storage.known() else { return Ok(None) };
        let Values::Vector(values) = self.file.metadata_value(entry)? else { return Ok(None) };
        let column = || entry.kind.clone();
        // As many as there are items: keys without a value have none to fill up.
        let items = values.dense_items(values.slots().min(MAX_KEY_VALUES));
        let items =
            items.map_err(|source| idv_format::ReadError::Values { column: column(), source })?;
        Ok(Some((vector.item.clone(), items.into_owned())))
    }
}

/// More slots of a sparse vector of values of keys are refused.
const MAX_KEY_VALUES: u64 = 1 << 28;

/// The columns that can be read. The others are named.
fn readable(file: &IdvFile<File>, on_event: OnEvent<'_>) -> Result<Vec<usize>, TableError> {
    let mut columns = Vec::new();
    for (index, entry) in file.columns().iter().enumerate() {
        match entry.storage.known() {
            Ok(_) => columns.push(index),
            Err(reason) => {
                let note = TableNote::Column { name: &entry.name, reason };
                report(on_event, TableEvent::LeftOut(note))?;
            }
        }
    }
    Ok(columns)
}

/// Writes all rows again, in the newest version.
pub(super) fn copy(
    table: &Table,
    output: &File,
    options: WriteOptions,
    on_event: OnEvent<'_>,
) -> Result<WriteSummary, TableError> {
    let columns: Vec<Column<'_, File>> =
        table.columns.iter().map(|&index| table.file.column(index)).collect::<Result<_, _>>()?;
    let mut new = Vec::with_capacity(columns.len());
    for (&index, column) in table.columns.iter().zip(&columns) {
        new.push(new_column(table, index, column, on_event)?);
    }
    let mut writer = Writer::new(BufWriter::new(output), new, options)?;
    for rows in table.row_ranges() {
        let read = |column: &Column<'_, File>| column.read(rows.clone());
        writer.write(&columns.iter().map(read).collect::<Result<Vec<_>, _>>()?)?;
        progress(on_event, rows.end, table.file.row_count())?;
    }
    Ok(writer.finish()?.1)
}

fn new_column(
    table: &Table,
    index: usize,
    column: &Column<'_, File>,
    on_event: OnEvent<'_>,
) -> Result<NewColumn, TableError> {
    let entry = column.entry();
    let mut new = NewColumn::new(entry.name.clone(), column.codec().clone());
    if let Ok((_, Compression::None)) = entry.storage.known() {
        new.compression = Compression::None;
    }
    for metadata in table.file.metadata(index)? {
        let kind = metadata.kind.clone();
        match metadata.storage.known() {
            Ok((codec, _)) => new.metadata.push(NewMetadata {
                kind,
                codec: codec.clone(),
                value: table.file.metadata_value(&metadata)?,
            }),
            Err(reason) => {
                let kind = &metadata.kind;
                let column = &entry.name;
                let note = TableNote::Metadata { kind, column, reason };
                report(on_event, TableEvent::LeftOut(note))?;
            }
        }
    }
    Ok(new)
}
