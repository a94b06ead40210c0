//! Labels of tables where an order needs them, and the names of classes.

use std::collections::BTreeMap;
use std::fs::{self, File};

use idv_format::{Compression, IdvFile};
use tl_pipeline::{
    Columns, ColumnsError, Dataset, Length, LoaderConfig, LoaderNote, PipelineError, Sampler,
    SamplerError, Samples, Shuffle, ShuffleQuality, Subset,
};

use super::files::{loader_with, write_idv, write_keys, write_labelled};

fn balanced(of: Option<Subset>) -> Sampler {
    let samples = Samples::ClassBalanced { of, length: Length::AllUsedUp };
    Sampler { samples, ..Shuffle::Full.into() }
}

fn labelled(label: &str) -> Columns {
    Columns { label: Some(label.into()), ..Columns::default() }
}

/// 10 rows of label 0, 9 of 1 and 2 each, in two files: an epoch has each row of label 0 once, and of
/// the others one twice.
#[test]
fn classes_of_tables_are_balanced() {
    let root = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Deflate] {
        let paths = [root.path().join("a"), root.path().join("b")];
        write_labelled(&paths[0], 0..12, compression, |_| false);
        write_labelled(&paths[1], 12..28, compression, |_| false);
        let loader = loader_with(&paths, labelled("label"), |config| LoaderConfig {
            sampler: balanced(None),
            ..config
        });
        let (mut labels, mut rows) = (BTreeMap::new(), BTreeMap::new());
        for batch in loader.epoch(0) {
            let batch = batch.unwrap();
            for (&index, &label) in batch.indices().iter().zip(batch.labels()) {
                assert_eq!(u64::try_from(label), Ok(index % 3));
                assert_eq!(loader.dataset().label(index), Some(label));
                *labels.entry(label).or_insert(0) += 1;
                *rows.entry(index).or_insert(0) += 1;
            }
        }
        assert_eq!(labels, BTreeMap::from([(0, 10), (1, 10), (2, 10)]));
        assert!(rows.len() == 28 && rows.values().all(|&times| times <= 2));
        // Measured like that of images.
        let sampler = &loader.config().sampler;
        let quality = ShuffleQuality::measure(sampler, loader.dataset(), 42, 6).unwrap();
        assert!(quality.order.class_entropy.is_some_and(|bits| bits > 1.0));
        // The same labels with a data set that has them before.
        let dataset = Dataset::open(&paths).unwrap().with_labels_of("label").unwrap();
        let sequence = balanced(None).resolve(&dataset, 64).unwrap();
        assert_eq!(sequence.len(), 30);
    }
}

#[test]
fn rows_without_a_label_are_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.idv");
    write_idv(&path, 0..9, Compression::Deflate);
    let new = |label: &str, of: Option<Subset>| {
        let config = LoaderConfig {
            sampler: balanced(of),
            ..crate::memory::config(tl_pipeline::Work::Columns(labelled(label)))
        };
        tl_pipeline::Loader::new(Dataset::open(&[&path]).unwrap(), config)
    };
    // Key 0 is a missing one, which rows 0, 4 and 8 have.
    let error = new("key", None).unwrap_err();
    let is_named = matches!(error, PipelineError::Sampler(SamplerError::Unlabelled { sample: 0 }));
    assert!(is_named, "{error}");
    assert_eq!(new("key", Some((1..4).into())).unwrap().order(0).len(), 3);
    let error = new("dense", None).unwrap_err();
    assert!(matches!(error, PipelineError::Columns(ColumnsError::NotLabel { .. })), "{error}");
    // Row 1 has -2.5.
    let error = new("x", None).unwrap_err().to_string();
    let expected = "sample 1: row 1, column `x`: -2.5 cannot be a label";
    assert!(error.contains("a.idv: ") && error.contains(expected), "{error}");
}

#[test]
fn categories_name_the_classes() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.idv");
    write_keys(&path, &["cat", "d\u{f6}g", ""]);
    let loader = loader_with(&[&path], labelled("key"), |config| config);
    assert_eq!(loader.dataset().class_names(), ["cat", "d\u{f6}g", ""]);
    assert_eq!(loader.epoch(0).next().unwrap().unwrap().labels(), [0]);
    assert!(loader.notes().is_empty());
    let dataset = Dataset::open(&[&path]).unwrap();
    assert!(dataset.class_names().is_empty() && dataset.label(0).is_none());
    let dataset = dataset.with_labels_of("key").unwrap();
    assert_eq!((dataset.label(0), dataset.label(1)), (Some(0), None));
    assert_eq!(dataset.class_names().len(), 3);
    // Damaged names are noted, and the labels are usable.
    let names = IdvFile::open(File::open(&path).unwrap()).unwrap().metadata(0).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let (start, len) = (names[0].offset as usize, names[0].stored_bytes as usize);
    bytes[start..][..len].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let loader = loader_with(&[&path], labelled("key"), |config| config);
    assert!(loader.dataset().class_names().is_empty());
    assert_eq!(loader.epoch(0).next().unwrap().unwrap().labels(), [0]);
    assert!(matches!(&loader.notes()[..], [LoaderNote::NoClassNames { .. }]));
    assert!(Dataset::open(&[&path]).unwrap().with_labels_of("key").is_err());
}
