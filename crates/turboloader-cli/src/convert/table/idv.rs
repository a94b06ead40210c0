//! IDV files as they are read and written again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::iter;
use std::ops::Range;
use std::path::Path;

use idv_format::{
    Codec, Column, Compression, Dead, IdvFile, Item, NewColumn, NewMetadata, Values, WriteOptions,
    WriteSummary, Writer,
};

use super::Told;
use super::error::{TableError, heard};
use crate::output;

/// An open file and the columns to be converted.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) file: IdvFile<File>,
    pub(super) columns: Vec<usize>,
}

impl Table {
    /// Opens a file with the columns of these names, or all that can be read.
    pub(super) fn open(path: &Path, names: &[String]) -> Result<Self, TableError> {
        let file = IdvFile::open(File::open(path)?)?;
        let columns = if names.is_empty() {
            readable(&file, path)
        } else {
            // Of several columns of one name the last is the one that is seen.
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

    /// Leaves out columns behind which there is another one of the same name: nobody could tell
    /// them apart.
    pub(super) fn without_hidden(mut self, path: &Path) -> Self {
        let before = self.columns.len();
        let name = |index: usize| self.file.columns().get(index).map(|entry| &entry.name);
        let mut seen = HashSet::new();
        let last_first = self.columns.iter().copied().rev();
        let mut columns: Vec<usize> =
            last_first.filter(|&index| seen.insert(name(index))).collect();
        columns.reverse();
        let hidden = before - columns.len();
        if hidden > 0 {
            let path = path.display();
            output::note(&format_args!(
                "{path}: left out {hidden} columns with others of their names behind them"
            ));
        }
        self.columns = columns;
        self
    }

    /// Rows to be read together: whole blocks, so that none is read twice.
    pub(super) fn row_ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let chosen = self.columns.iter().filter_map(|&index| self.file.columns().get(index));
        let step = chosen.map(|entry| entry.rows_per_block).max().unwrap_or(1).max(1);
        let (mut start, end) = (0u64, self.file.row_count());
        iter::from_fn(move || {
            let rows = start..end.min(start.saturating_add(step));
            start = rows.end;
            (!rows.is_empty()).then_some(rows)
        })
    }

    /// What the keys of a column stand for, if that is said and can be read.
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
fn readable(file: &IdvFile<File>, path: &Path) -> Vec<usize> {
    let mut columns = Vec::new();
    for (index, entry) in file.columns().iter().enumerate() {
        match entry.storage.known() {
            Ok(_) => columns.push(index),
            Err(dead) => left_out(path, &format_args!("column {:?}", entry.name), &dead),
        }
    }
    columns
}

fn left_out(path: &Path, what: &std::fmt::Arguments<'_>, dead: &Dead) {
    output::note(&format_args!("{}: left out {what}: {dead}", path.display()));
}

/// Writes all rows again, in the newest version.
pub(super) fn copy(
    table: &Table,
    path: &Path,
    output: &File,
    options: WriteOptions,
    told: Told<'_>,
) -> Result<WriteSummary, TableError> {
    let columns: Vec<Column<'_, File>> =
        table.columns.iter().map(|&index| table.file.column(index)).collect::<Result<_, _>>()?;
    let new = |(&index, column)| new_column(table, index, column, path);
    let new: Vec<NewColumn> =
        table.columns.iter().zip(&columns).map(new).collect::<Result<_, _>>()?;
    let mut writer = Writer::new(BufWriter::new(output), new, options)?;
    for rows in table.row_ranges() {
        let read = |column: &Column<'_, File>| column.read(rows.clone());
        writer.write(&columns.iter().map(read).collect::<Result<Vec<_>, _>>()?)?;
        heard(told(rows.end, table.file.row_count()))?;
    }
    Ok(writer.finish()?.1)
}

fn new_column(
    table: &Table,
    index: usize,
    column: &Column<'_, File>,
    path: &Path,
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
            Err(dead) => {
                left_out(path, &format_args!("{kind:?} of column {:?}", entry.name), &dead);
            }
        }
    }
    Ok(new)
}
