//! Labels by the names of samples, from a file.

use std::collections::HashMap;

use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::Texts;
use crate::location::Location;
use crate::source::Source;
use crate::storage::Stores;

use super::label::ColumnLabels;
use super::manifest::{LABEL_COLUMN, image_column};
use super::table::{Fault, Table, TableFormat, without_byte_order_mark};

/// Names of samples and their labels.
#[derive(Debug)]
pub(crate) struct LabelTable {
    pub(crate) names: Vec<Vec<u8>>,
    pub(crate) labels: Vec<i64>,
    pub(crate) class_names: Vec<String>,
}

/// Columns with the names of samples, besides those of manifests.
const KEY_COLUMNS: [&str; 3] = ["key", "id", "name"];

/// Reads the labels in a file.
pub(crate) fn read_label_table(
    stores: &Stores,
    location: &Location,
) -> Result<LabelTable, ReadError> {
    let Some(source) = stores.open_file(location)? else {
        let what = "a folder".to_owned();
        let defect = ListDefect::Unread { what, expected: "a file of labels" };
        return Err(defect.at(&stores.printable(location), ListPlace::default()));
    };
    let limits = ReadLimits::default();
    let table = match TableFormat::of(location) {
        Some(format) => Table::read(&source, format, &limits)?,
        None => lines(&source, &limits)?,
    };
    let columns = columns(&table).map_err(|d| d.at(source.location(), ListPlace::default()))?;
    labels(&table, columns).map_err(|fault| fault.in_file(source.location()))
}

/// The columns of names and of labels.
#[derive(Clone, Copy)]
struct Columns {
    name: usize,
    label: usize,
}

fn columns(table: &Table) -> Result<Columns, ListDefect> {
    let key = KEY_COLUMNS.iter().find_map(|name| table.find(name).ok());
    match (table.find(LABEL_COLUMN), table.names.len()) {
        (Ok(label), 2) => Ok(Columns { name: 1 - label, label }),
        (Ok(label), _) => Ok(Columns { name: key.map_or_else(|| image_column(table), Ok)?, label }),
        (Err(_), 2) => {
            let name = key.or_else(|| image_column(table).ok()).unwrap_or(0);
            Ok(Columns { name, label: 1 - name })
        }
        (Err(defect), _) => Err(defect),
    }
}

fn labels(table: &Table, columns: Columns) -> Result<LabelTable, Fault> {
    let column = |at: usize| table.columns.get(at);
    let (Some(names), Some(texts)) = (column(columns.name), column(columns.label)) else {
        return Err(Fault::at(ListPlace::default(), ListDefect::NoHeader));
    };
    let cell = |row: usize, column: usize| {
        ListPlace::cell(table.line(row), table.names.get(column).map_or("", String::as_str))
    };
    let found = ColumnLabels::of(texts).map_err(|bad| {
        let defect = bad.defect(texts, |row| table.line(row));
        Fault::at(cell(bad.row, columns.label), defect)
    })?;
    let (labels, class_names) = match found {
        ColumnLabels::Integers(labels) => (labels, Vec::new()),
        ColumnLabels::Classes { labels, names } => (labels, names),
        ColumnLabels::Other => {
            let what = "a column of numbers that are not integers, or of lists,".to_owned();
            let expected = "integers or names of classes; a manifest has other fields";
            return Err(Fault::at(cell(0, columns.label), ListDefect::Unread { what, expected }));
        }
    };
    let mut rows: HashMap<&[u8], usize> = HashMap::new();
    for (row, name) in names.iter().enumerate() {
        let name = name.unwrap_or_default();
        if name.is_empty() {
            return Err(Fault::at(cell(row, columns.name), ListDefect::NoName));
        }
        if rows.insert(name, row).is_some() {
            let defect = ListDefect::Twice { what: "sample", name: name.to_vec() };
            return Err(Fault::at(cell(row, columns.name), defect));
        }
    }
    let names = names.iter().map(|name| name.unwrap_or_default().to_vec()).collect();
    Ok(LabelTable { names, labels, class_names })
}

/// Lines of a name, blanks and a label, as a table of two columns.
fn lines(source: &Source, limits: &ReadLimits) -> Result<Table, ReadError> {
    let mut bytes = Vec::new();
    limits.read_whole(source, &mut bytes)?;
    let table = parse_lines(&bytes);
    table.map_err(|fault| fault.in_file(source.location()))
}

fn parse_lines(text: &[u8]) -> Result<Table, Fault> {
    let mut table = Table {
        names: vec!["name".to_owned(), LABEL_COLUMN.to_owned()],
        columns: vec![Texts::default(), Texts::default()],
        lines: Vec::new(),
    };
    let text = without_byte_order_mark(text);
    for (line, text) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let blank = text.iter().rposition(u8::is_ascii_whitespace);
        let Some((name, label)) = blank.and_then(|blank| text.split_at_checked(blank)) else {
            let found = 1;
            let defect = ListDefect::Ragged { found, expected: 2 };
            return Err(Fault::at(ListPlace::line(line), defect));
        };
        table.push(0, Some(name.trim_ascii()))?;
        table.push(1, Some(label.trim_ascii()))?;
        table.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
    }
    Ok(table)
}
