//! Labels that cannot be read: errors of their samples, under every policy.

use std::path::{Path, PathBuf};

use tbl_format::SampleFormat;
use tbl_io::{ReadError, TarOptions, TarWriter};
use tl_pipeline::{
    Batch, Dataset, ErrorBudget, Length, Loader, LoaderConfig, LoaderNote, OnError, Outcome,
    PipelineError, Readers, SampleFault, Sampler, Samples, Shuffle, Subset, Work,
};

use crate::memory::{config, loader, sample, train};

const SAMPLES: u32 = 12;
const BAD: u64 = 6;

/// An archive in which sample 6 has the label `dog`.
fn archive(root: &Path) -> PathBuf {
    let path = root.join("a.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    for number in 0..SAMPLES {
        let bytes = sample(number, SampleFormat::Bmp).bytes;
        writer.append(format!("{number:02}.bmp").as_bytes(), &bytes).unwrap();
        let label = if u64::from(number) == BAD { "dog".to_owned() } else { number.to_string() };
        writer.append(format!("{number:02}.cls").as_bytes(), label.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn sequential(work: Work, on_error: OnError) -> LoaderConfig {
    LoaderConfig { sampler: Shuffle::None.into(), on_error, ..config(work) }
}

/// Indices and labels of every row.
fn rows(batches: impl Iterator<Item = Result<Batch, PipelineError>>) -> Vec<(u64, i64)> {
    let rows = |batch: Batch| {
        batch.indices().iter().copied().zip(batch.labels().iter().copied()).collect::<Vec<_>>()
    };
    batches.flat_map(|batch| rows(batch.unwrap())).collect()
}

#[test]
fn a_label_that_cannot_be_read_ends_the_epoch_by_name() {
    let root = tempfile::tempdir().unwrap();
    let path = archive(root.path());
    for work in [train(), Work::Bytes, Work::Views] {
        let loader = loader(Dataset::open(&[&path]).unwrap(), sequential(work, OnError::Raise));
        let mut epoch = loader.epoch(0);
        assert_eq!(epoch.next().unwrap().unwrap().labels(), [0, 1, 2, 3]);
        let error = epoch.next().unwrap().unwrap_err();
        let PipelineError::Sample(sample) = &error else { panic!("{error}") };
        assert_eq!((sample.index, sample.key.as_deref()), (BAD, Some(&b"06.bmp"[..])));
        let SampleFault::Read(ReadError::Sample { source, .. }) = &sample.fault else {
            panic!("{error}")
        };
        assert!(matches!(**source, ReadError::Label { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("06.cls: the label is `dog`, expected an integer"), "{text}");
    }
}

#[test]
fn a_label_that_cannot_be_read_is_skipped_replaced_or_filled() {
    let root = tempfile::tempdir().unwrap();
    let path = archive(root.path());
    for readers in [Readers::Workers, Readers::Threads(2)] {
        let end = |on_error| {
            let config = LoaderConfig { readers, ..sequential(train(), on_error) };
            let loader = loader(Dataset::open(&[&path]).unwrap(), config);
            let rows = rows(loader.epoch(0));
            let audit: Vec<_> =
                loader.audit().iter().map(|entry| (entry.error.index, entry.outcome)).collect();
            (rows, audit)
        };
        let good: Vec<_> = (0..12).filter(|&index| index != BAD).map(|i| (i, i as i64)).collect();
        assert_eq!(end(OnError::Skip), (good, vec![(BAD, Outcome::Skipped)]));
        let (rows, audit) = end(OnError::Fill);
        assert_eq!((rows[6], rows.len(), audit), ((BAD, -1), 12, vec![(BAD, Outcome::Filled)]));
        let (rows, audit) = end(OnError::Replace);
        let (by, label) = rows[6];
        assert!(by != BAD && label == by as i64);
        assert_eq!(audit, [(BAD, Outcome::Replaced { by })]);
    }
}

#[test]
fn classes_cannot_be_balanced_by_a_label_that_cannot_be_read() {
    let root = tempfile::tempdir().unwrap();
    let path = archive(root.path());
    let balanced = |of: Option<Subset>| {
        let samples = Samples::ClassBalanced { of, length: Length::Samples };
        let sampler = Sampler { samples, ..Shuffle::Full.into() };
        let config = LoaderConfig { sampler, on_error: OnError::Skip, ..config(Work::Bytes) };
        Loader::new(Dataset::open(&[&path]).unwrap(), config)
    };
    let error = balanced(None).unwrap_err();
    let PipelineError::Open(ReadError::Sample { index: BAD, key, source }) = &error else {
        panic!("{error}")
    };
    assert_eq!(key.as_deref(), Some(&b"06.bmp"[..]));
    assert!(matches!(**source, ReadError::Label { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("06.cls: the label is `dog`, expected an integer"), "{text}");
    assert_eq!(balanced(Some((0..BAD).into())).unwrap().order(0).len(), BAD);
}

#[test]
fn labels_that_cannot_be_read_count_for_the_error_budget() {
    let root = tempfile::tempdir().unwrap();
    let error_budget = ErrorBudget { count: Some(0), rate: None };
    let config = LoaderConfig { error_budget, ..sequential(train(), OnError::Skip) };
    let loader = loader(Dataset::open(&[archive(root.path())]).unwrap(), config);
    let error = loader.epoch(0).find_map(Result::err).unwrap();
    assert!(matches!(error, PipelineError::ErrorBudget { errors: 1, .. }), "{error}");
}

#[test]
fn samples_without_a_label_are_a_note() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    for (name, bytes) in [("1.bmp", ""), ("1.cls", "1"), ("2.bmp", "")] {
        writer.append(name.as_bytes(), bytes.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let loader = loader(Dataset::open(&[&path]).unwrap(), config(Work::Bytes));
    let [note @ LoaderNote::Labels { .. }] = &loader.notes()[..] else {
        panic!("{:?}", loader.notes())
    };
    let text = note.to_string();
    assert!(text.starts_with("samples without a label among labelled ones: 1, first"), "{text}");
    assert_eq!(loader.dataset().label_notes().len(), 1);
}
