//! Where test files lie, and what is done with every one of them.

use std::fs;
use std::path::{Path, PathBuf};

use idv_format::{Column, IdvFile, ReadAt, ReadError, Values};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The files that `testdata/tools/idv_files.py` makes.
pub(crate) fn own_files() -> PathBuf {
    tl_testdata::shipped!("idv")
}

/// A file, and a JSON file next to it that describes its content.
pub(crate) struct Sample {
    pub(crate) path: PathBuf,
    /// The data set alone: some files have something in front of it.
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Value,
}

/// All samples in `folder` and the folders in it.
pub(crate) fn samples(folder: &Path) -> Vec<Sample> {
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            found.extend(samples(&path));
            continue;
        }
        let json = PathBuf::from(format!("{}.json", path.display()));
        if json.exists() {
            let expected: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
            let start = usize::try_from(expected["idv_starts_at"].as_u64().unwrap_or(0)).unwrap();
            let bytes = fs::read(&path).unwrap()[start..].to_vec();
            found.push(Sample { path, bytes, expected });
        }
    }
    found
}

/// The samples of both folders, or of the first where the other does not exist.
pub(crate) fn all_samples() -> Vec<Sample> {
    let mut found = samples(&own_files());
    let more = tl_testdata::path!("formats/idv");
    if more.is_dir() {
        found.extend(samples(&more));
    }
    found
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 over the canonical bytes of values.
pub(crate) fn hash(values: &Values<'_>) -> String {
    let mut hash = Sha256::new();
    values.canonical(&mut |bytes| hash.update(bytes));
    hex(&hash.finalize())
}

/// All values of a column.
pub(crate) fn read_all<R: ReadAt>(column: &Column<'_, R>) -> Values<'static> {
    column.read(0..column.row_count()).unwrap()
}

/// Reads everything there is, in vain or not. Vectors are not looked at slot by slot: a damaged
/// file can have billions.
pub(crate) fn read_everything<R: ReadAt>(source: R) -> Result<(), ReadError> {
    let file = IdvFile::open(source)?;
    for index in 0..file.columns().len() {
        let column = file.column(index);
        // Either is right for damaged bytes, as long as there is one.
        drop(column.and_then(|column| column.read(0..column.row_count())));
        for entry in file.metadata(index).unwrap_or_default() {
            drop(file.metadata_value(&entry));
        }
    }
    Ok(())
}

/// What every column of a file gives: a hash, or why it cannot be read.
pub(crate) fn outcome<R: ReadAt>(source: R) -> Result<Vec<Result<String, String>>, String> {
    let file = IdvFile::open(source).map_err(|error| error.to_string())?;
    let column = |index| {
        let column = file.column(index)?;
        column.read(0..column.row_count()).map(|values| hash(&values))
    };
    let columns = 0..file.columns().len();
    Ok(columns.map(|index| column(index).map_err(|error| error.to_string())).collect())
}
