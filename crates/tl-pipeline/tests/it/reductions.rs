//! Notes on images that lose something in the channels and pixels that are asked for.

use std::fs;
use std::path::PathBuf;

use tl_pipeline::{Dataset, Loader, LoaderConfig, LoaderNote, Work};
use tl_transform::op::CenterCrop;
use tl_transform::{Channels, PixelType, Recipe};

fn png(name: &str) -> PathBuf {
    tl_testdata::shipped!("images/png").join(name)
}

/// The notes after two epochs over copies of `first` and then one of `last`, in file order.
fn notes(first: &str, copies: usize, last: &str, workers: usize) -> Vec<LoaderNote> {
    notes_of(Recipe::imagenet_eval(8).unwrap(), first, copies, last, workers)
}

/// The same with this recipe.
fn notes_of(
    recipe: Recipe,
    first: &str,
    copies: usize,
    last: &str,
    workers: usize,
) -> Vec<LoaderNote> {
    let root = tempfile::tempdir().unwrap();
    for copy in 0..copies {
        fs::copy(png(first), root.path().join(format!("{copy:03}.png"))).unwrap();
    }
    fs::copy(png(last), root.path().join("last.png")).unwrap();
    let dataset = Dataset::open(&[root.path()]).unwrap();
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
        ("rgb16.png", "samples of more than 8 bits (see `pixels`)"),
        ("rgba8.png", "transparency (see `channels`)"),
        ("grey16.png", "samples of more than 8 bits (see `pixels`)"),
    ] {
        let notes = notes(name, 2, name, 2);
        let [note @ LoaderNote::Reduced { .. }] = &notes[..] else { panic!("{name}: {notes:?}") };
        assert!(note.to_string().ends_with(&format!("has {lost}")), "{note}");
    }
}

#[test]
fn what_images_become_is_named() {
    let made = |channels, pixels, name: &str| {
        let recipe = Recipe::new(vec![CenterCrop::new(8).into()], Recipe::decode().output());
        let recipe =
            recipe.unwrap().with_channels(channels).and_then(|recipe| recipe.with_pixels(pixels));
        let notes = notes_of(recipe.unwrap(), name, 2, name, 2);
        notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (channels, pixels, name, expected) in [
        (Channels::Rgb, PixelType::U8, "rgb16.png", "RGB of 8 bits"),
        (Channels::Rgba, PixelType::U8, "rgb16.png", "RGBA of 8 bits"),
        (Channels::Grey, PixelType::U8, "rgba8.png", "grey of 8 bits"),
        (Channels::Grey, PixelType::F32, "rgba8.png", "grey of floats"),
        (Channels::Rgb, PixelType::F32, "rgba8.png", "RGB of floats"),
    ] {
        let notes = made(channels, pixels, name);
        let expected = format!("images become {expected}; the first that differs, sample ");
        assert!(notes.len() == 1 && notes[0].starts_with(&expected), "{notes:?}");
    }
    assert!(made(Channels::Rgba, PixelType::U8, "rgba8.png").is_empty());
    assert!(made(Channels::Rgba, PixelType::F32, "rgba8.png").is_empty());
    assert!(made(Channels::Rgb, PixelType::U16, "rgb16.png").is_empty());
}

#[test]
fn a_reduced_image_after_many_others_is_noted() {
    for workers in [1, 3] {
        let notes = notes("rgb8.png", 200, "rgb16.png", workers);
        assert!(matches!(notes[..], [LoaderNote::Reduced { sample: 200, .. }]), "{notes:?}");
    }
}
