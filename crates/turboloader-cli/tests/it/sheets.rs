//! `preview`: the sheet is a PNG, shows what it should, and says what it could not show.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use crate::support::{Run, photos, tar, tl, write};

/// A decoded sheet.
struct Sheet {
    width: usize,
    rgb: Vec<u8>,
}

impl Sheet {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).expect("the sheet was written");
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().expect("it is a PNG");
        let mut rgb = vec![0; reader.output_buffer_size().expect("the sheet is small")];
        let info = reader.next_frame(&mut rgb).expect("the sheet is whole");
        assert_eq!(info.color_type, png::ColorType::Rgb);
        Self { width: info.width as usize, rgb }
    }

    /// The picture of `side` pixels with its corner at `(x, y)`.
    fn part(&self, x: usize, y: usize, side: usize) -> Vec<u8> {
        let row = |row: usize| &self.rgb[((y + row) * self.width + x) * 3..][..side * 3];
        (0..side).flat_map(row).copied().collect()
    }
}

fn preview(data: &Path, sheet: &Path, more: &[&str]) -> Run {
    let fixed = ["preview".as_ref(), data.as_os_str(), "-o".as_ref(), sheet.as_os_str()];
    tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref())))
}

#[test]
fn a_grid_shows_the_samples() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("sheet.png");
    preview(&photos(), &path, &["--size", "64"]).good();
    let sheet = Sheet::read(&path);
    // Twelve photographs make four columns of 64 pixels, with 8 between and around them.
    assert_eq!(sheet.width, 4 * (64 + 8) + 8);
    assert_ne!(sheet.part(8, 8, 64), sheet.part(80, 8, 64));
    let message = preview(&photos(), &path, &[]).error(2);
    assert!(message.contains("exists already"), "{message}");
}

#[test]
fn a_recipe_shows_draws_that_depend_on_the_seed_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sheet = |name: &str, seed: &str| {
        let path = folder.path().join(name);
        let recipe = ["--recipe", "imagenet-train", "-n", "2", "--draws", "3", "--size", "64"];
        preview(&photos(), &path, &[&recipe[..], &["--seed", seed]].concat()).good();
        Sheet::read(&path)
    };
    let (one, again, other) = (sheet("1.png", "7"), sheet("2.png", "7"), sheet("3.png", "8"));
    assert_eq!(one.width, 4 * (64 + 8) + 8);
    assert!(one.rgb == again.rgb, "the same seed gave another sheet");
    assert_eq!(one.part(8, 8, 64), other.part(8, 8, 64), "the original is not drawn");
    assert_ne!(one.part(80, 8, 64), other.part(80, 8, 64), "the first draw");
    assert_ne!(one.part(80, 8, 64), one.part(152, 8, 64), "two draws of one sample");
}

/// Numbers of 16 bits and floats are shown from black to white, and erased parts as their number.
#[test]
fn recipes_of_wide_pixels_are_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stored = tl_testdata::shipped!("images/wide");
    for (file, pixels, channels) in [
        ("grey16.png", "u16", "grey"),
        ("rgb16.png", "u16", "rgb"),
        ("float32.tif", "f32", "grey"),
        ("rgba8.png", "u8", "rgba"),
    ] {
        let data = folder.path().join(pixels).join(channels);
        fs::create_dir_all(&data).expect("a folder");
        fs::copy(stored.join(file), data.join(file)).expect("a copy");
        let recipe = format!(
            r#"{{"pixels": "{pixels}", "channels": "{channels}",
                "output": {{"dtype": "f32", "layout": "chw"}},
                "ops": [{{"op": "random_crop", "size": 4}}, {{"op": "to_float"}}]}}"#
        );
        let recipe = write(folder.path(), "wide.json", recipe.as_bytes());
        let path = data.join("sheet.png");
        let recipe = ["--recipe", recipe.to_str().expect("a path of text"), "--draws", "2"];
        preview(&data, &path, &[&recipe[..], &["--size", "64"]].concat()).good();
        let sheet = Sheet::read(&path);
        assert_eq!(sheet.width, 3 * (64 + 8) + 8);
        let drawn = sheet.part(80, 8, 64);
        assert_ne!(drawn, sheet.part(152, 8, 64), "{file}: two crops");
        if pixels != "u8" {
            assert!(drawn.contains(&0) && drawn.contains(&255), "{file}: black and white");
        }
    }
}

#[test]
fn a_sheet_with_a_damaged_sample_is_written_and_the_answer_is_bad() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let good = fs::read(photos().join("animals/chelsea.jpg")).expect("the photograph exists");
    let members: [(&[u8], &[u8]); 3] =
        [(b"a.jpg", &good), (b"b.jpg", b"damaged"), (b"notes", b"not meant to be an image")];
    let data = write(folder.path(), "in.tar", &tar(&members));
    let path = folder.path().join("sheet.png");
    let message = preview(&data, &path, &[]).error(1);
    assert!(message.contains("1 of 2 samples do not decode, the first: "), "{message}");
    assert!(message.contains("sample 1 (b.jpg)"), "{message}");
    Sheet::read(&path);
}

#[test]
fn an_empty_data_set_is_an_empty_sheet() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = write(folder.path(), "in.tar", &tar(&[]));
    let path = folder.path().join("sheet.png");
    let run = preview(&data, &path, &[]);
    assert_eq!((run.code, run.stderr), (Some(0), format!("tl: {}: no samples\n", data.display())));
    Sheet::read(&path);
}

#[test]
fn a_sheet_of_all_operations_depends_on_the_seed_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sheet = |name: &str, seed: &str| {
        let path = folder.path().join(name);
        let more = ["--ops", "-n", "2", "--draws", "3", "--size", "40", "--seed", seed];
        preview(&photos(), &path, &more).good();
        Sheet::read(&path)
    };
    let (one, again, other) = (sheet("1.png", "7"), sheet("2.png", "7"), sheet("3.png", "8"));
    assert!(one.rgb == again.rgb, "the same seed gave another sheet");
    assert_eq!(one.part(8, 20, 40), other.part(8, 20, 40), "the original is not drawn");
    assert_ne!(one.part(56, 20, 40), other.part(56, 20, 40), "the first draw");
    let message = preview(&photos(), &folder.path().join("4.png"), &["--ops", "--recipe", "raw"]);
    assert!(message.error(2).contains("cannot be used with"));
}
