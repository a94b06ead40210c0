//! Notes on images that lose something where they become RGB of 8 bits.

use std::fs;
use std::path::Path;

use tl_pipeline::{Dataset, Loader, LoaderConfig, LoaderNote, Work};
use tl_transform::Recipe;

/// The notes after an epoch over copies of a PNG file of the decoder's tests.
fn notes(name: &str) -> Vec<LoaderNote> {
    let png = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tl-decode/testdata/png").join(name);
    let root = tempfile::tempdir().unwrap();
    for copy in 0..3 {
        fs::copy(&png, root.path().join(format!("{copy}.png"))).unwrap();
    }
    let dataset = Dataset::open(&[root.path()]).unwrap();
    let recipe = Recipe::imagenet_eval(8).unwrap();
    let config = LoaderConfig { batch_size: 2, ..LoaderConfig::new(Work::Images(recipe)) };
    let loader = Loader::new(dataset, config).unwrap();
    for epoch in 0..2 {
        assert_eq!(loader.epoch(epoch).map(|batch| batch.unwrap().len()).sum::<usize>(), 3);
    }
    loader.notes()
}

#[test]
fn images_that_are_reduced_are_noted_once() {
    assert_eq!(notes("rgb8.png"), []);
    for (name, lost) in [
        ("rgb16.png", "samples of more than 8 bits"),
        ("rgba8.png", "transparency"),
        ("grey16.png", "samples of more than 8 bits, a single channel"),
    ] {
        let notes = notes(name);
        let [note @ LoaderNote::Reduced { .. }] = &notes[..] else { panic!("{name}: {notes:?}") };
        assert!(note.to_string().ends_with(&format!("has {lost}")), "{note}");
    }
}
