//! Manifests: tables with a row per sample, one column of which names its file.

use std::ffi::OsStr;
use std::io;

use crate::error::ReadError;
use crate::list_error::{ListDefect, ListPlace};
use crate::list_options::Manifest;
use crate::listed::Listed;
use crate::location::Location;
use crate::source::Source;
use crate::storage::Stores;

use super::rows::{Roles, Rows};
use super::table::{Table, TableFormat};

/// The usual names of the column with the samples' files.
const IMAGE_COLUMNS: [&str; 10] = [
    "path",
    "image",
    "file_name",
    "filename",
    "image_path",
    "filepath",
    "file_path",
    "file",
    "img",
    "img_path",
];

/// The usual name of the column with the labels.
pub(super) const LABEL_COLUMN: &str = "label";

/// Opens the samples that a manifest lists: a CSV file, a TSV file or JSON Lines, by its extension.
///
/// ```
/// use tbl_io::{Manifest, SampleSource, SampleSourceExt, Stores, open_manifest};
///
/// let root = tempfile::tempdir()?;
/// std::fs::write(root.path().join("tom.jpg"), b"...")?;
/// let manifest = root.path().join("train.csv");
/// std::fs::write(&manifest, "path,class,caption\ntom.jpg,cat,a cat\n")?;
/// let options = Manifest { label: Some("class".into()), ..Manifest::default() };
/// let samples = open_manifest(&Stores::new(), &manifest, &options)?;
/// assert_eq!(samples.class_names(), ["cat"]);
/// let mut fields = Vec::new();
/// samples.read_fields(0, &mut fields)?;
/// assert_eq!(fields[0].bytes, b"a cat");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReadError::List`] with line and column for a manifest that breaks its format, names an unsafe
/// path or a file that does not exist, or mixes kinds of labels; [`ReadError::Io`].
pub fn open_manifest(
    stores: &Stores,
    location: impl AsRef<OsStr>,
    options: &Manifest,
) -> Result<Listed, ReadError> {
    let location = Location::new(location);
    match stores.open_file(&location)? {
        Some(source) => of_source(stores, &source, options),
        None => {
            let text = "is a folder, expected a manifest (csv, tsv, jsonl)";
            let error = io::Error::new(io::ErrorKind::InvalidInput, text);
            Err(ReadError::io(stores.printable(&location), error))
        }
    }
}

pub(super) fn of_source(
    stores: &Stores,
    source: &Source,
    options: &Manifest,
) -> Result<Listed, ReadError> {
    let location = source.location();
    let format = TableFormat::of(location).unwrap_or(TableFormat::Csv);
    let table = Table::read(source, format, &options.limits)?;
    let roles = roles(&table, options).map_err(|d| d.at(location, ListPlace::default()))?;
    let root = options.root.clone().unwrap_or_else(|| location.folder());
    let rows = Rows::of_one(table, location.clone(), root);
    rows.listed(stores, &roles, options.limits, Vec::new())
}

fn roles(table: &Table, options: &Manifest) -> Result<Roles, ListDefect> {
    let label = match &options.label {
        Some(name) => Some(table.find(name)?),
        None => table.find(LABEL_COLUMN).ok(),
    };
    let mut files = Vec::with_capacity(options.files.len());
    for name in &options.files {
        files.push((table.find(name)?, name.clone().into_bytes()));
    }
    let image = match &options.image {
        Some(name) => table.find(name)?,
        None => image_column(table)?,
    };
    Ok(Roles { image, label: label.filter(|&label| label != image), keeps_label: false, files })
}

/// The column that names the images.
pub(super) fn image_column(table: &Table) -> Result<usize, ListDefect> {
    let is_usual = |name: &str| IMAGE_COLUMNS.contains(&name.to_ascii_lowercase().as_str());
    let found = table.names.iter().enumerate().filter(|(_, name)| is_usual(name));
    let found: Vec<_> = found.collect();
    match (&found[..], table.names.len()) {
        (&[(only, _)], _) => Ok(only),
        ([], 1) => Ok(0),
        ([], _) => Err(ListDefect::NoImageColumn { columns: table.names.clone() }),
        (several, _) => {
            let columns = several.iter().map(|(_, name)| (*name).clone()).collect();
            Err(ListDefect::ImageColumns { columns })
        }
    }
}
