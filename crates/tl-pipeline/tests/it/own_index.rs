//! The index of a Parquet file next to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tbl_io::{IndexOptions, index_shards};
use tl_pipeline::{Dataset, Work};

use crate::memory::config;
use crate::parquet_files::{Form, SAMPLES, write_samples};
use crate::store::{MemoryStore, rows, upload};

fn index(path: &Path) -> PathBuf {
    let made = PathBuf::from(format!("{}.tlidx", path.display()));
    let options = IndexOptions { sync: false, overwrite: true, update: false };
    let summary = index_shards(&tl_pipeline::stores(), &[path], &made, options).unwrap();
    assert_eq!((summary.shards, summary.samples), (1, SAMPLES.into()));
    made
}

/// Whether the file opens by an index.
fn is_indexed(path: &Path) -> bool {
    let dataset = Dataset::open(&[path]).unwrap();
    dataset.shards()[0].stored_samples().unwrap().source().is_some()
}

#[test]
fn the_index_next_to_a_file_is_found() {
    let root = tempfile::tempdir().unwrap();
    for form in Form::ALL {
        let path = write_samples(root.path(), form);
        let whole = || rows(Dataset::open(&[&path]).unwrap(), config(Work::Bytes));
        assert!(!is_indexed(&path));
        let expected = whole();
        let fingerprint = || Dataset::open(&[&path]).unwrap().fingerprint().unwrap();
        let without = fingerprint();
        let made = index(&path);
        assert!(is_indexed(&path));
        assert!(whole() == expected, "{form:?}");
        assert_eq!(fingerprint(), without);
        // A pattern stands for both files.
        let both = Dataset::open(&[&path, &made]).unwrap();
        assert!(rows(both, config(Work::Bytes)) == expected, "{form:?}");
        // A folder that stands for its files has those with their indexes.
        assert!(is_indexed(root.path()));
        fs::remove_file(&path).unwrap();
        fs::remove_file(made).unwrap();
    }
}

#[test]
fn an_index_of_another_version_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let path = write_samples(root.path(), Form::Plain);
    let made = index(&path);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let set_time = |time: SystemTime| {
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let refused = || Dataset::open(&[&path]).unwrap_err().to_string();
    set_time(SystemTime::UNIX_EPOCH);
    let error = refused();
    assert!(error.contains("changed since it was indexed") && error.contains("tlidx"), "{error}");
    set_time(time);
    assert!(is_indexed(&path));
    // Other bytes of the same length at the same time: the name of the writer.
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.windows(10).rposition(|part| part == b"parquet-rs").unwrap();
    bytes[place] = b'P';
    fs::write(&path, &bytes).unwrap();
    set_time(time);
    let error = refused();
    assert!(error.contains("footer of the Parquet file") && error.contains("tlidx"), "{error}");
    let update = IndexOptions { sync: false, overwrite: true, update: false };
    index_shards(&tl_pipeline::stores(), &[&path], &made, update).unwrap();
    assert!(is_indexed(&path));
}

#[test]
fn a_damaged_index_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let path = write_samples(root.path(), Form::Packed);
    let made = index(&path);
    let good = fs::read(&made).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&made, &bad).unwrap();
        let error = Dataset::open(&[&path]).unwrap_err().to_string();
        assert!(error.contains("Packed.parquet"), "{error}");
    }
    for len in (0..good.len()).step_by(7) {
        fs::write(&made, &good[..len]).unwrap();
        let error = Dataset::open(&[&path]).unwrap_err().to_string();
        assert!(error.contains("Packed.parquet.tlidx"), "{error}");
    }
}

#[test]
fn no_index_is_looked_for_in_a_store() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let path = write_samples(root.path(), Form::Plain);
    let url = upload(&store, &path);
    let made = index(&path);
    store.upload(&made, &format!("{url}.tlidx"));
    let stored = store.open_all(&[&url]);
    assert!(stored.shards()[0].stored_samples().unwrap().source().is_none());
    let local = rows(Dataset::open(&[&path]).unwrap(), config(Work::Bytes));
    assert!(rows(stored, config(Work::Bytes)) == local);
}
