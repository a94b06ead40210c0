//! The files of columns, and names that no sample has.

use std::path::Path;

use tbl_io::{NewSample, StreamWriter, TblVersion, WriteOptions};
use tl_pipeline::{Dataset, Fields, Loader, LoaderConfig, PipelineError, Shuffle, Work};

/// Creates the files, each with its own name as contents, and labels with a number.
fn tree(names: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in names {
        let content = if name.ends_with(".cls") { "7" } else { name };
        std::fs::write(root.path().join(name), content).unwrap();
    }
    root
}

fn open(root: &Path, columns: &[&str]) -> Result<Loader, PipelineError> {
    let columns = columns.iter().map(|&name| name.to_owned()).collect();
    let config = LoaderConfig {
        batch_size: 1,
        sampler: Shuffle::None.into(),
        fields: Fields { keys: true, bytes: columns, ..Fields::default() },
        ..LoaderConfig::new(Work::Bytes)
    };
    Loader::new(Dataset::open(&[root])?, config)
}

/// Name and columns of each sample; `-` for a file that a sample does not have.
fn check(names: &[&str], columns: &[&str], expected: &[&str]) {
    let root = tree(names);
    let loader = open(root.path(), columns).unwrap();
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap_or(b"-").to_vec()).unwrap();
    let samples = loader.epoch(0).map(|batch| {
        let batch = batch.unwrap();
        let cells = (0..columns.len()).map(|column| text(batch.bytes(column, 0)));
        std::iter::once(text(batch.key(0))).chain(cells).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(samples.collect::<Vec<_>>(), expected);
}

#[test]
fn every_file_of_a_sample_can_be_a_column() {
    check(
        &["a.left.jpg", "a.right.jpg", "a.txt", "b.left.jpg", "b.right.jpg"],
        &["right.jpg", "left.jpg", "txt"],
        &["a.left.jpg a.right.jpg a.left.jpg a.txt", "b.left.jpg b.right.jpg b.left.jpg -"],
    );
    check(&["0.txt", "0.cls", "1.txt"], &["txt"], &["0.txt 0.txt", "1.txt 1.txt"]);
    check(&["a.JPG", "a.Txt"], &["txt", "jpg"], &["a.JPG a.Txt a.JPG"]);
}

#[test]
fn columns_of_numbered_samples_have_no_number() {
    check(
        &["cat.0.jpg", "cat.0.txt", "cat.1.jpg"],
        &["txt", "jpg", "0.txt"],
        &["cat.0.jpg cat.0.txt cat.0.jpg cat.0.txt", "cat.1.jpg - cat.1.jpg -"],
    );
}

#[test]
fn a_name_that_no_sample_has_is_refused() {
    let root = tree(&["a.jpg", "a.json", "a.txt", "b.jpg", "b.seg.png", "c.0.jpg", "c.1.jpg"]);
    let error = open(root.path(), &["txt", "jsn"]).unwrap_err();
    let expected = "no sample has a file `jsn`; the files are called: jpg, json, seg.png, txt";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, PipelineError::UnknownField { name, .. } if name == "jsn"));
    assert!(open(root.path(), &["seg.png"]).is_ok());
}

#[test]
fn a_column_of_samples_without_names_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("v1.tbl");
    let options = WriteOptions { version: TblVersion::V1, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    writer.write_sample(&NewSample::new(b"bytes")).unwrap();
    writer.finish().unwrap();
    let error = open(&path, &["txt"]).unwrap_err().to_string();
    assert_eq!(error, "no sample has a file `txt`; its samples have no names and no files");
}
