//! Damaged tables: damage costs only its rows, and is named.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use idv_format::{Compression, IdvFile};
use tbf_format::BuildOptions;
use tl_pipeline::{Columns, ErrorBudget, LoaderConfig, OnError, PipelineError, SampleFault};

use super::files::{loader_with, row_of, write_idv, write_tbf};

const ROWS: u64 = 23;

/// Writes a table whose second block of column `x`, rows 7 to 13, is damaged.
fn damaged(root: &tempfile::TempDir) -> (PathBuf, u64) {
    let path = root.path().join("a.idv");
    write_idv(&path, 0..ROWS, Compression::Deflate);
    let mut bytes = fs::read(&path).unwrap();
    let file = IdvFile::open(bytes.clone()).unwrap();
    let block = file.column(1).unwrap().blocks()[1];
    let start = usize::try_from(block.offset).unwrap();
    bytes[start..start + block.stored_bytes as usize].fill(0xff);
    fs::write(&path, bytes).unwrap();
    (path, block.offset)
}

fn rows(path: &Path, on_error: OnError, workers: usize) -> Vec<(u64, i64, bool, Vec<u8>)> {
    let label = Some("key".into());
    let columns = Columns { label, ..Columns::default() };
    let change = |config| LoaderConfig { on_error, workers, ..config };
    let loader = loader_with(&[path], columns, change);
    let batches = loader.epoch(0).map(Result::unwrap);
    let rows = batches
        .flat_map(|batch| (0..batch.len()).map(|row| row_of(&batch, row, 0)).collect::<Vec<_>>());
    let rows = rows.collect();
    assert_eq!(loader.audit().len(), 7, "{on_error:?}");
    rows
}

#[test]
fn a_damaged_block_costs_its_rows_and_no_others() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole.idv");
    write_idv(&whole, 0..ROWS, Compression::Deflate);
    let columns = Columns { label: Some("key".into()), ..Columns::default() };
    let loader = loader_with(&[&whole], columns, |config| config);
    let good: Vec<_> = loader
        .epoch(0)
        .map(Result::unwrap)
        .flat_map(|batch| (0..batch.len()).map(|row| row_of(&batch, row, 0)).collect::<Vec<_>>())
        .collect();
    let (path, _) = damaged(&root);
    let is_bad = |index: u64| (7..14).contains(&index);
    for workers in [1, 3] {
        let skipped = rows(&path, OnError::Skip, workers);
        assert_eq!(skipped, good.iter().filter(|row| !is_bad(row.0)).cloned().collect::<Vec<_>>());
        let filled = rows(&path, OnError::Fill, workers);
        for (filled, good) in filled.iter().zip(&good) {
            if is_bad(good.0) {
                assert_eq!((filled.0, filled.1, filled.2), (good.0, -1, false));
                assert!(filled.3.iter().all(|&byte| byte == 0));
            } else {
                assert_eq!(filled, good);
            }
        }
        let replaced = rows(&path, OnError::Replace, workers);
        for (replaced, good) in replaced.iter().zip(&good) {
            assert!(!is_bad(replaced.0) && (is_bad(good.0) || replaced == good));
        }
    }
}

#[test]
fn what_is_damaged_is_said_with_file_row_column_and_place() {
    let root = tempfile::tempdir().unwrap();
    let (path, offset) = damaged(&root);
    let loader = loader_with(&[&path], Columns::default(), |config| config);
    let error = loader.epoch(0).find_map(Result::err).unwrap();
    let text = error.to_string();
    let PipelineError::Sample(error) = error else { panic!("{text}") };
    let SampleFault::Column { row, column, .. } = &error.fault else { panic!("{text}") };
    assert_eq!((*row, &**column), (error.index, "x"));
    let expected = format!("sample {row}: row {row}, column `x`: block 1 at {offset}: ");
    assert!(text.contains("a.idv: ") && text.contains(&expected), "{text}");
    // A request without it never sees the damage.
    let columns = Some(vec!["id".into(), "sparse".into()]);
    let loader = loader_with(&[&path], Columns { columns, ..Columns::default() }, |config| config);
    assert_eq!(loader.epoch(0).map(|batch| batch.unwrap().len()).sum::<usize>(), 23);
}

#[test]
fn a_number_that_is_no_label_is_an_error_of_its_row() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.idv");
    write_idv(&path, 0..ROWS, Compression::None);
    let columns = Columns { label: Some("x".into()), ..Columns::default() };
    let change = |config| LoaderConfig { on_error: OnError::Skip, ..config };
    let loader = loader_with(&[&path], columns, change);
    let labels = loader.epoch(0).flat_map(|batch| batch.unwrap().labels().to_vec());
    // Every second is half of an odd number.
    assert_eq!(labels.collect::<std::collections::BTreeSet<_>>(), (-3..=8).collect());
    let text = loader.audit()[0].error.to_string();
    assert!(text.contains(".5 cannot be a label, expected a whole number of 64 bits"), "{text}");
}

/// A file that is cut short while it is open is an error, and zeros are never data.
#[test]
fn a_table_that_is_cut_short_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let (idv, tbf) = (root.path().join("a.idv"), root.path().join("a.tbf"));
    for compression in [Compression::None, Compression::Deflate] {
        write_idv(&idv, 0..ROWS, compression);
        write_tbf(&tbf, 23, BuildOptions::default());
        for path in [&idv, &tbf] {
            for part in [2, 3] {
                let error_budget = ErrorBudget::UNLIMITED;
                let change =
                    |config| LoaderConfig { on_error: OnError::Skip, error_budget, ..config };
                let loader = loader_with(&[path], Columns::default(), change);
                let whole = fs::read(path).unwrap();
                let file = File::options().write(true).open(path).unwrap();
                file.set_len(whole.len() as u64 / part * (part - 1)).unwrap();
                assert_eq!(loader.epoch(0).map(|batch| batch.unwrap().len()).sum::<usize>(), 0);
                let text = loader.audit()[0].error.to_string();
                assert!(text.contains("the file became shorter while it was open"), "{text}");
                fs::write(path, whole).unwrap();
            }
        }
    }
}

/// Every byte of a small table changed: an error by name, or rows.
#[test]
fn no_byte_of_a_table_makes_anybody_panic() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    for is_idv in [true, false] {
        if is_idv {
            write_idv(&path, 0..3, Compression::None);
        } else {
            write_tbf(&path, 3, BuildOptions::default());
        }
        let whole = fs::read(&path).unwrap();
        let changed = root.path().join("changed");
        for place in (0..whole.len()).step_by(if is_idv { 3 } else { 7 }) {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x81;
            fs::write(&changed, bytes).unwrap();
            let Ok(dataset) = tl_pipeline::Dataset::open(&[&changed]) else { continue };
            if dataset.len() > 10 || dataset.tables().next().is_none() {
                continue;
            }
            let neighbors = tl_pipeline::Neighbors { fanouts: vec![2, 2], ..Default::default() };
            let neighbors = (!is_idv).then_some(neighbors);
            let columns = Columns { neighbors, ..Columns::default() };
            let config = LoaderConfig {
                on_error: OnError::Skip,
                error_budget: ErrorBudget::UNLIMITED,
                memory_budget: Some(1 << 28),
                workers: 1,
                ..LoaderConfig::new(tl_pipeline::Work::Columns(columns))
            };
            let Ok(loader) = tl_pipeline::Loader::new(dataset, config) else { continue };
            for batch in loader.epoch(0) {
                batch.unwrap();
            }
            let panicked = |fault: &SampleFault| matches!(fault, SampleFault::Panicked { .. });
            assert!(!loader.audit().iter().any(|entry| panicked(&entry.error.fault)), "{place}");
            loader.dataset().fingerprint().unwrap();
        }
    }
}

/// The fault of a file is reported for the format that its name has.
#[test]
fn a_damaged_signature_is_that_of_the_format_that_the_name_says() {
    let root = tempfile::tempdir().unwrap();
    for (name, expected) in [("a.IDV", "signature at 0 is "), ("a.tbf", "magic of the ")] {
        let path = root.path().join(name);
        fs::write(&path, [b'x'; 600]).unwrap();
        let error = tl_pipeline::Dataset::open(&[&path]).unwrap_err();
        assert!(matches!(error, PipelineError::Table { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
