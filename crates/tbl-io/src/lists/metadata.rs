//! Folders with metadata files, as Hugging Face's `imagefolder` reads them.
//!
//! The samples are the rows of all `metadata.csv`, or all `metadata.jsonl`, in the order of the files'
//! paths. `file_name` is a path below the folder of the metadata file; `NAME_file_name` names a
//! further image, which is field `NAME`. Class folders give no labels.

use std::collections::HashSet;

use tbl_format::SampleFormat;

use crate::error::ReadError;
use crate::folder::Folder;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::Listed;
use crate::location::Location;
use crate::note::Note;
use crate::sample::SampleSource;
use crate::storage::{Opened, Stores};

use super::rows::{List, Roles, Rows, append};
use super::table::{Table, TableFormat};

const NAMES: [(&[u8], Option<TableFormat>); 3] = [
    (b"metadata.csv", Some(TableFormat::Csv)),
    (b"metadata.jsonl", Some(TableFormat::Jsonl)),
    (b"metadata.parquet", None),
];

const FILE_NAME: &str = "file_name";
const FILE_NAMES: &str = "file_names";
const EXPECTED: &str = "metadata.csv or metadata.jsonl";

/// The data set that the metadata files of a folder describe; `None` for a folder without any.
pub(super) fn open(stores: &Stores, folder: &Folder) -> Result<Option<Listed>, ReadError> {
    let root = folder.location();
    let mut found: Vec<(Vec<u8>, TableFormat)> = Vec::new();
    for path in folder.paths() {
        let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or(&path);
        let Some((_, format)) = NAMES.iter().find(|(name, _)| *name == base) else { continue };
        let location = root.join(&path);
        let Some(format) = *format else {
            let what = "Parquet metadata".to_owned();
            let defect = ListDefect::Unread { what, expected: EXPECTED };
            return Err(defect.at(&location, ListPlace::default()));
        };
        if let Some((_, other)) = found.first().filter(|(_, other)| *other != format) {
            let what = format!("a folder with {other:?} and {format:?} metadata");
            let defect = ListDefect::Unread { what, expected: "one kind" };
            return Err(defect.at(root, ListPlace::default()));
        }
        found.push((path.into_owned(), format));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let limits = ReadLimits::default();
    let rows = read(stores, root, &found, &limits)?;
    let roles = roles(&rows)?;
    let notes = unlisted(folder, &rows).into_iter().collect();
    rows.listed(stores, &roles, limits, notes).map(Some)
}

/// The rows of all metadata files.
fn read(
    stores: &Stores,
    root: &Location,
    found: &[(Vec<u8>, TableFormat)],
    limits: &ReadLimits,
) -> Result<Rows, ReadError> {
    let mut rows = Rows { table: Table::default(), lists: Vec::new(), root: root.clone() };
    for (path, format) in found {
        let Opened::File(source) = stores.open(root.join(path))? else { continue };
        let table = Table::read(&source, *format, limits)?;
        let slash = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let location = source.location().clone();
        let folder = path.get(..slash).unwrap_or_default().to_vec();
        rows.lists.push(List { location, folder, first_row: rows.table.rows() });
        let appended = append(&mut rows.table, &table, limits);
        appended.map_err(|fault| fault.in_file(source.location()))?;
    }
    Ok(rows)
}

fn roles(rows: &Rows) -> Result<Roles, ReadError> {
    let names = &rows.table.names;
    let further = names.iter().enumerate().filter_map(|(at, name)| {
        let field = name.strip_suffix(FILE_NAME)?.strip_suffix('_')?;
        (!field.is_empty()).then(|| (at, field.as_bytes().to_vec()))
    });
    let files: Vec<_> = further.collect();
    let own = rows.table.find(FILE_NAME).ok();
    let Some(image) = own.or(files.first().map(|(at, _)| *at)) else {
        let several = names.iter().find(|name| name.ends_with(FILE_NAMES));
        let defect = match several {
            Some(name) => ListDefect::Unread {
                what: format!("column `{}`, which lists several images,", name.escape_debug()),
                expected: "column `file_name`",
            },
            None => ListDefect::NoColumn { name: FILE_NAME.to_owned(), columns: names.clone() },
        };
        return Err(defect.at(&rows.lists[0].location, ListPlace::default()));
    };
    let label = rows.table.find("label").ok();
    Ok(Roles { image, label, keeps_label: true, files })
}

/// The note on images of the folder that no row names.
fn unlisted(folder: &Folder, rows: &Rows) -> Option<Note> {
    let mut named = HashSet::new();
    for (column, name) in rows.table.names.iter().enumerate() {
        if name.ends_with(FILE_NAME) {
            rows.for_each_path(column, |path| {
                named.insert(path);
            });
        }
    }
    let is_image = |path: &[u8]| SampleFormat::from_file_name(path).is_image();
    let mut images = folder.paths().filter(|path| is_image(path) && !named.contains(&**path));
    let first = images.next()?.into_owned();
    Some(Note::Unlisted { images: 1 + images.count() as u64, first })
}
