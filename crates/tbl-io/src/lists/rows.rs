//! Rows of tables as samples: paths become files below one folder, other columns labels and fields.

use tbl_format::path::{RelativePath, check_web_name};

use crate::error::ReadError;
use crate::files::Files;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::{Column, FileNumbers, Listed, Parts, Values};
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::note::Note;
use crate::sample::SourceKind;
use crate::storage::Stores;

use super::label::ColumnLabels;
use super::table::{Fault, Table};

/// Rows of one or more tables with the same columns, one after the other.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) table: Table,
    /// The files that the rows come from, in order. At least one.
    pub(super) lists: Vec<List>,
    /// The folder of all files.
    pub(super) root: Location,
}

/// A file with rows.
#[derive(Debug)]
pub(super) struct List {
    pub(super) location: Location,
    /// The folder of its paths below the root: empty, or with a slash at the end.
    pub(super) folder: Vec<u8>,
    pub(super) first_row: usize,
}

/// The meaning of columns; all others are fields of text.
#[derive(Debug, Default)]
pub(super) struct Roles {
    /// The column of the samples' files.
    pub(super) image: usize,
    pub(super) label: Option<usize>,
    /// Whether the label is a field as well.
    pub(super) keeps_label: bool,
    /// Columns of further files, with the names of their fields.
    pub(super) files: Vec<(usize, Vec<u8>)>,
}

/// Names of files, and the cells that have them.
struct NamedFiles {
    names: Names,
    /// Row and column of the files that follow those of the samples.
    cells: Vec<(usize, usize)>,
}

impl Rows {
    /// The rows of one table, whose paths lie below `root`.
    pub(super) fn of_one(table: Table, location: Location, root: Location) -> Self {
        let list = List { location, folder: Vec::new(), first_row: 0 };
        Self { table, lists: vec![list], root }
    }

    /// The data set of all rows.
    pub(super) fn listed(
        mut self,
        stores: &Stores,
        roles: &Roles,
        limits: ReadLimits,
        notes: Vec<Note>,
    ) -> Result<Listed, ReadError> {
        let mut named = NamedFiles { names: Names::new(), cells: Vec::new() };
        for row in 0..self.table.rows() {
            self.push_name(&mut named, row, roles.image)?;
        }
        named.cells.clear();
        let mut columns = Vec::new();
        for (column, field) in &roles.files {
            let files = self.field_files(&mut named, *column, roles.image)?;
            columns.push(Column { name: field.clone(), values: Values::Files(files) });
        }
        let (files, missing) = Files::named(stores, self.root.clone(), &named.names)?;
        if let Some(&first) = missing.first() {
            return Err(self.missing(&named, roles.image, first, missing.len()));
        }
        let (labels, class_names, is_label) = self.labels(roles)?;
        let is_text = |column: usize| {
            let is_file = column == roles.image || roles.files.iter().any(|(at, _)| *at == column);
            let is_consumed = roles.label == Some(column) && is_label && !roles.keeps_label;
            !is_file && !is_consumed
        };
        let samples = u32::try_from(self.table.rows()).unwrap_or(u32::MAX);
        let texts = std::mem::take(&mut self.table.columns);
        for (at, (name, texts)) in self.table.names.iter().zip(texts).enumerate() {
            if is_text(at) && !name.is_empty() {
                let name = name.clone().into_bytes();
                columns.push(Column { name, values: Values::Texts(texts) });
            }
        }
        let location = match &self.lists[..] {
            [only] => only.location.clone(),
            _ => self.root.clone(),
        };
        let kind = SourceKind::Manifest;
        let names = named.names;
        let parts =
            Parts { kind, location, names, samples, labels, class_names, columns, limits, notes };
        Ok(Listed::new(files, parts))
    }

    /// The files of a column: those of the samples where the cell is the same column.
    fn field_files(
        &self,
        named: &mut NamedFiles,
        column: usize,
        image: usize,
    ) -> Result<FileNumbers, ReadError> {
        let mut files = FileNumbers::default();
        for row in 0..self.table.rows() {
            let number = u32::try_from(row).ok();
            if column == image {
                files.push(number);
            } else if self.cell(row, column).is_empty() {
                files.push(None);
            } else {
                files.push(u32::try_from(named.names.len()).ok());
                self.push_name(named, row, column)?;
            }
        }
        Ok(files)
    }

    /// Labels and names of classes, and whether the column has labels.
    fn labels(&self, roles: &Roles) -> Result<(Vec<i64>, Vec<String>, bool), ReadError> {
        let texts = roles.label.and_then(|column| self.table.columns.get(column));
        let (Some(texts), Some(column)) = (texts, roles.label) else {
            return Ok((Vec::new(), Vec::new(), false));
        };
        match ColumnLabels::of(texts) {
            Ok(ColumnLabels::Integers(labels)) => Ok((labels, Vec::new(), true)),
            Ok(ColumnLabels::Classes { labels, names }) => Ok((labels, names, true)),
            Ok(ColumnLabels::Other) => Ok((Vec::new(), Vec::new(), false)),
            Err(bad) => {
                let defect = bad.defect(texts, |row| self.table.line(row));
                Err(self.defect(bad.row, column, defect))
            }
        }
    }

    /// Calls `take` with the path of each file that a column names.
    pub(super) fn for_each_path(&self, column: usize, mut take: impl FnMut(Vec<u8>)) {
        let path =
            |row| path_below(&self.root, &self.list(row).folder, self.cell(row, column)).ok();
        (0..self.table.rows()).filter_map(path).for_each(&mut take);
    }

    fn cell(&self, row: usize, column: usize) -> &[u8] {
        let row = u32::try_from(row).ok();
        let text = row.and_then(|row| self.table.columns.get(column)?.get(row));
        text.unwrap_or_default()
    }

    fn push_name(
        &self,
        named: &mut NamedFiles,
        row: usize,
        column: usize,
    ) -> Result<(), ReadError> {
        let path = path_below(&self.root, &self.list(row).folder, self.cell(row, column));
        let path = path.map_err(|defect| self.defect(row, column, defect))?;
        let too_many = |TooManyNames| ReadError::too_many_names(&self.list(row).location);
        named.names.push(&path).map_err(too_many)?;
        named.cells.push((row, column));
        Ok(())
    }

    fn missing(&self, named: &NamedFiles, image: usize, first: u32, count: usize) -> ReadError {
        let first_file = named.names.path(first).into_owned();
        let after_samples = (first as usize).checked_sub(self.table.rows());
        let cell = after_samples.and_then(|at| named.cells.get(at).copied());
        let (row, column) = cell.unwrap_or((first as usize, image));
        self.defect(row, column, ListDefect::Missing { count: count as u64, first: first_file })
    }

    fn list(&self, row: usize) -> &List {
        let after = self.lists.partition_point(|list| list.first_row <= row);
        &self.lists[after.saturating_sub(1)]
    }

    fn defect(&self, row: usize, column: usize, defect: ListDefect) -> ReadError {
        let name = self.table.names.get(column).map_or("", String::as_str);
        defect.at(&self.list(row).location, ListPlace::cell(self.table.line(row), name))
    }
}

/// The path below `root` that a cell of a list in its subfolder `folder` names.
pub(super) fn path_below(
    root: &Location,
    folder: &[u8],
    cell: &[u8],
) -> Result<Vec<u8>, ListDefect> {
    let base = || if folder.is_empty() { root.clone() } else { root.join(folder) };
    if cell.is_empty() {
        return Err(ListDefect::NoName);
    }
    let below_root = below(root, cell);
    let folder = if below_root.is_some() { &[][..] } else { folder };
    let name = below_root.unwrap_or(cell);
    let is_url = str::from_utf8(name).is_ok_and(|name| Location::new(name).scheme().is_some());
    if is_url {
        return Err(ListDefect::Url { name: cell.to_vec(), root: base() });
    }
    let is_web = root.scheme().is_some_and(|scheme| scheme.starts_with("http"));
    let checked = if is_web { check_web_name(name) } else { Ok(()) };
    match checked.and_then(|()| RelativePath::new(name)) {
        Ok(path) => Ok([folder, path.as_bytes()].concat()),
        Err(source) => Err(ListDefect::Path { name: cell.to_vec(), root: base(), source }),
    }
}

/// The part of an absolute path or URL below `root`, if it lies there by its text.
fn below<'a>(root: &Location, name: &'a [u8]) -> Option<&'a [u8]> {
    let root = root.as_os_str().as_encoded_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    let is_absolute = name.starts_with(b"/") && (root.is_empty() || root.starts_with(b"/"));
    let is_url = str::from_utf8(root).is_ok_and(|root| Location::new(root).scheme().is_some());
    if !is_absolute && !is_url {
        return None;
    }
    name.strip_prefix(root)?.strip_prefix(b"/").filter(|rest| !rest.is_empty())
}

/// Appends the rows of a table to those of others.
pub(super) fn append(all: &mut Table, table: &Table, limits: &ReadLimits) -> Result<(), Fault> {
    let before = all.rows();
    let mut taken = Vec::new();
    for name in &table.names {
        let column = match all.find(name) {
            Ok(column) => column,
            Err(_) => all.add_column(name.as_bytes(), 1, limits)?,
        };
        taken.push(column);
    }
    all.check_cells(before + table.rows(), limits)?;
    for (column, texts) in taken.iter().zip(&table.columns) {
        for text in texts.iter() {
            all.push(*column, text)?;
        }
    }
    all.lines.extend_from_slice(&table.lines);
    let rows = all.rows();
    for column in (0..all.columns.len()).filter(|column| !taken.contains(column)) {
        for _ in before..rows {
            all.push(column, None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tbl_format::path::PathDefect;

    use super::*;
    use crate::lists::table::TableFormat;

    #[test]
    fn joined_tables_are_refused_before_their_cells_are_filled() {
        let limits = ReadLimits { sample_bytes: 400 };
        let parse = |text: &str| Table::parse(text.as_bytes(), TableFormat::Csv, &limits).unwrap();
        for (text, expected, columns) in [("b,c\n1,2\n", 1500, 2), ("a\n1\n", 505, 1)] {
            let mut all = parse(&format!("a\n{}", "1\n".repeat(100)));
            let limits = ReadLimits { sample_bytes: expected / 3 - 1 };
            let fault = append(&mut all, &parse(text), &limits).unwrap_err();
            assert!(matches!(fault, Fault::Limit { need, .. } if need == expected), "{fault:?}");
            assert_eq!((all.columns.len(), all.columns[0].len()), (columns, 100));
        }
    }

    #[test]
    fn a_path_is_relative_or_below_the_root() {
        let path = |root: &str, folder: &str, cell: &str| {
            let path = path_below(&root.into(), folder.as_bytes(), cell.as_bytes());
            path.map(|path| String::from_utf8(path).unwrap())
        };
        for (root, folder, cell, expected) in [
            ("data", "", "./a//b.jpg", "a/b.jpg"),
            ("data", "train/", "a.jpg", "train/a.jpg"),
            ("/data", "", "/data/a.jpg", "a.jpg"),
            ("/data/", "train/", "/data/a.jpg", "a.jpg"),
            ("/", "", "/data/a.jpg", "data/a.jpg"),
            ("s3://b/x", "", "s3://b/x/a.jpg", "a.jpg"),
            ("https://h/x", "", "a b.jpg", "a b.jpg"),
            ("data", "", "a:b.jpg", "a:b.jpg"),
        ] {
            assert_eq!(path(root, folder, cell).as_deref(), Ok(expected), "{root} {cell}");
        }
        for (root, cell, defect) in [
            ("/data", "/database/a.jpg", PathDefect::Absolute),
            ("data", "/data/a.jpg", PathDefect::Absolute),
            ("/data", "/data/../etc/passwd", PathDefect::Parent),
            ("/", "/data/../etc/passwd", PathDefect::Parent),
            ("/", "/", PathDefect::Absolute),
            ("data", "../a.jpg", PathDefect::Parent),
            ("data", "a\0.jpg", PathDefect::ZeroByte),
            ("data", ".", PathDefect::Empty),
            ("https://h/x", "a%2f..%2f..%2fb", PathDefect::Parent),
            ("https://h/x", "a?b", PathDefect::UrlCharacter),
        ] {
            let name = cell.as_bytes().to_vec();
            let expected = ListDefect::Path { name, root: root.into(), source: defect };
            assert_eq!(path(root, "", cell), Err(expected));
        }
        for (root, cell) in [("data", "https://h/a.jpg"), ("s3://b/x", "s3://b/y/a.jpg")] {
            assert!(matches!(path(root, "", cell), Err(ListDefect::Url { .. })), "{cell}");
        }
        assert_eq!(path("data", "", ""), Err(ListDefect::NoName));
    }
}
