//! Notes on images that lose something where they become RGB of 8 bits.

use std::fs;
use std::path::{Path, PathBuf};

use tl_pipeline::{Dataset, Loader, LoaderConfig, LoaderNote, Work};
use tl_transform::Recipe;

fn png(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tl-decode/testdata/png").join(name)
}

/// The notes after two epochs over copies of `first` and then one of `last`, in file order.
fn notes(first: &str, copies: usize, last: &str, workers: usize) -> Vec<LoaderNote> {
    let root = tempfile::tempdir().unwrap();
    for copy in 0..copies {
        fs::copy(png(first), root.path().join(format!("{copy:03}.png"))).unwrap();
    }
    fs::copy(png(last), root.path().join("last.png")).unwrap();
    let dataset = Dataset::open(&[root.path()]).unwrap();
    let recipe = Recipe::imagenet_eval(8).unwrap();
    let config = LoaderConfig { batch_size: 2, workers, ..LoaderConfig::new(Work::Images(recipe)) };
    let loader = Loader::new(dataset, config).unwrap();
    for epoch in 0..2 {
        let rows: usize = loader.epoch(epoch).map(|batch| batch.unwrap().len()).sum();
        assert_eq!(rows, copies + 1);
    }
    loader.notes()
}

#[test]
fn images_that_are_reduced_are_noted_once() {
    assert_eq!(notes("rgb8.png", 2, "rgb8.png", 2), []);
    for (name, lost) in [
        ("rgb16.png", "samples of more than 8 bits"),
        ("rgba8.png", "transparency"),
        ("grey16.png", "samples of more than 8 bits, a single channel"),
    ] {
        let notes = notes(name, 2, name, 2);
        let [note @ LoaderNote::Reduced { .. }] = &notes[..] else { panic!("{name}: {notes:?}") };
        assert!(note.to_string().ends_with(&format!("has {lost}")), "{note}");
    }
}

#[test]
fn a_reduced_image_after_many_others_is_noted() {
    for workers in [1, 3] {
        let notes = notes("rgb8.png", 200, "rgb16.png", workers);
        assert!(matches!(notes[..], [LoaderNote::Reduced { sample: 200, .. }]), "{notes:?}");
    }
}
