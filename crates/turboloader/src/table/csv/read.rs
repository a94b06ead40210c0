//! CSV as an IDV file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use idv_format::{Codec, Item, NewColumn, Values, Vectors, WriteOptions, WriteSummary, Writer};

use super::cells::{self, Expected};
use super::error::{CsvError, shown};
use super::header::{CsvColumn, columns};
use super::rows::{Row, RowReader};
use super::schema::CsvSchema;
use super::survey::Survey;
use crate::table::error::TableError;
use crate::table::event::{OnEvent, progress};

/// Rows that are handed to the writer together.
const ROWS: usize = 8192;

/// Bytes of rows after which they are handed over sooner.
const BYTES: usize = 16 << 20;

/// The most memory of a value besides its text.
const VALUE_BYTES: usize = 16;

/// Makes a file of the rows of `path`.
pub(in crate::table) fn read(
    path: &Path,
    names: &[String],
    schema: &CsvSchema,
    output: &File,
    options: WriteOptions,
    on_event: OnEvent<'_>,
) -> Result<WriteSummary, TableError> {
    let (reader, header) = open(path)?;
    let all = columns(header.cells())?;
    drop(header);
    let types = schema.of(&all)?;
    let columns = chosen(all, types.into_iter().map(Survey::new), names)?;
    let metadata = path.metadata()?;
    if columns.iter().all(|(_, survey)| !survey.is_open()) {
        let on_read = &mut |read| progress(on_event, read, metadata.len());
        return write(reader, &columns, output, options, on_read);
    }
    if !metadata.is_file() {
        return Err(TableError::NotAFile);
    }
    let once = metadata.len();
    let twice = metadata.len().saturating_mul(2);
    let columns = survey(reader, columns, &mut |read| progress(on_event, read, twice))?;
    let on_read = &mut |read: u64| progress(on_event, once.saturating_add(read), twice);
    write(open(path)?.0, &columns, output, options, on_read)
}

/// A reader of the rows after the header, and the header.
fn open(path: &Path) -> Result<(RowReader<File>, Row), TableError> {
    let mut reader = RowReader::new(File::open(path)?)?;
    let mut header = Row::default();
    if !reader.read(&mut header)? || header.is_blank() {
        return Err(CsvError::NoHeader.into());
    }
    Ok((reader, header))
}

type Surveyed = Vec<(CsvColumn, Survey)>;

/// The columns that were asked for, in that order.
fn chosen(
    columns: Vec<CsvColumn>,
    surveys: impl Iterator<Item = Survey>,
    names: &[String],
) -> Result<Surveyed, TableError> {
    let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (number, column) in columns.iter().enumerate() {
        if !names.is_empty() && !wanted.contains(&*column.name) {
            continue;
        }
        if let Some(before) = numbers.insert(column.name.clone(), number) {
            let place = |number: usize| columns.get(number).map_or(0, |c| c.fields.start + 1);
            let name = shown(&column.name);
            let first = place(before);
            let second = place(number);
            return Err(CsvError::SameName { name, first, second }.into());
        }
    }
    let mut all: Vec<Option<(CsvColumn, Survey)>> =
        columns.into_iter().zip(surveys).map(Some).collect();
    if names.is_empty() {
        return Ok(all.into_iter().flatten().collect());
    }
    let find = |name: &String| {
        let name = || name.clone();
        let number = numbers.get(&name()).ok_or_else(|| TableError::NoColumn { name: name() })?;
        let found = all.get_mut(*number).and_then(Option::take);
        found.ok_or_else(|| TableError::ColumnTwice { name: name() })
    };
    names.iter().map(find).collect()
}

/// Receives how many bytes have been read, and may end the work.
type OnRead<'a> = &'a mut dyn FnMut(u64) -> Result<(), TableError>;

/// Looks at all cells.
fn survey(
    mut reader: RowReader<File>,
    mut columns: Surveyed,
    on_read: OnRead<'_>,
) -> Result<Surveyed, TableError> {
    let mut record = Row::default();
    let mut row = 0;
    while reader.read(&mut record)? {
        for (column, survey) in &mut columns {
            for cell in column.fields.clone().filter_map(|field| record.cell(field)) {
                if !survey.see(cell) {
                    return Err(refused(column, row, cell, survey.item()));
                }
            }
        }
        row += 1;
        if row % ROWS as u64 == 0 {
            on_read(reader.position().byte)?;
        }
    }
    Ok(columns)
}

fn write(
    mut reader: RowReader<File>,
    columns: &Surveyed,
    output: &File,
    options: WriteOptions,
    on_read: OnRead<'_>,
) -> Result<WriteSummary, TableError> {
    let new: Vec<NewColumn> =
        columns.iter().map(|(column, survey)| survey.new_column(column)).collect();
    let items: Vec<Item> = columns.iter().map(|(_, survey)| survey.item()).collect();
    let empty = || items.iter().map(|item| Codec::Item(item.clone()).empty_values());
    let mut writer = Writer::new(BufWriter::new(output), new, options)?;
    let mut values: Vec<Values<'static>> = empty().collect();
    let mut record = Row::default();
    let fields: usize = columns.iter().map(|(column, _)| column.fields.len()).sum();
    let mut row = 0;
    let mut pending = 0;
    let mut bytes = 0;
    while reader.read(&mut record)? {
        for (((column, survey), item), values) in columns.iter().zip(&items).zip(&mut values) {
            for cell in column.fields.clone().filter_map(|field| record.cell(field)) {
                let pushed = match (survey, &mut *values) {
                    (Survey::Categories(categories), Values::UInt32(keys)) => {
                        categories.key(cell).map(|key| keys.to_mut().push(key))
                    }
                    (_, values) => cells::parse(cell, item, values),
                };
                pushed.ok_or_else(|| refused(column, row, cell, item.clone()))?;
            }
        }
        (row, pending) = (row + 1, pending + 1);
        bytes += record.bytes() + VALUE_BYTES * fields;
        if pending == ROWS || bytes >= BYTES {
            let rows = std::mem::replace(&mut values, empty().collect());
            writer.write(&vectors(rows, columns, pending))?;
            (pending, bytes) = (0, 0);
            on_read(reader.position().byte)?;
        }
    }
    writer.write(&vectors(values, columns, pending))?;
    on_read(reader.position().byte)?;
    Ok(writer.finish()?.1)
}

/// Slots of vectors as vectors.
fn vectors(values: Vec<Values<'static>>, columns: &Surveyed, rows: usize) -> Vec<Values<'static>> {
    let columns = columns.iter().map(|(column, _)| column.slots());
    let vector = |(values, slots)| match slots {
        None => values,
        Some(slots) => Values::Vector(Vectors::dense(slots, rows, values)),
    };
    values.into_iter().zip(columns).map(vector).collect()
}

fn refused(column: &CsvColumn, row: u64, cell: &str, item: Item) -> TableError {
    TableError::Cell {
        column: shown(&column.name),
        row,
        cell: shown(cell),
        expected: Expected(item),
    }
}
