//! Every file of `testdata/manifest.toml` decodes to what Pillow decodes, or fails as stated.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tl_decode::{Color, DecodeError, DecodeOptions, Decoder, Exif, Image, probe};

/// One `[[image]]` of the manifest: keys and their text, without quotes.
pub(crate) struct Entry(HashMap<String, String>);

impl Entry {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(crate) fn file(&self) -> &str {
        self.get("file").expect("every entry names a file")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(folder().join(self.file())).expect("the file is next to the manifest")
    }
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

pub(crate) fn entries() -> Vec<Entry> {
    entries_of(&folder())
}

/// A manifest uses one `key = value` a line, so no TOML parser is needed to read it.
pub(crate) fn entries_of(folder: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(folder.join("manifest.toml")).expect("manifest");
    text.split("[[image]]")
        .skip(1)
        .map(|part| {
            let pairs = part.lines().filter_map(|line| line.split_once(" = "));
            Entry(pairs.map(|(k, v)| (k.to_owned(), v.trim_matches('"').to_owned())).collect())
        })
        .map(Entry::for_this_build)
        .collect()
}

impl Entry {
    /// The entry as it is for a build without the feature that the file needs: refused by name.
    fn for_this_build(mut self) -> Self {
        let is_built = match self.get("feature") {
            Some("avif") => cfg!(feature = "avif"),
            Some("jpeg2000") => cfg!(feature = "jpeg2000"),
            Some("jxl") => cfg!(feature = "jxl"),
            Some("tiff-lzma") => cfg!(feature = "tiff-lzma"),
            Some("tiff-zstd") => cfg!(feature = "tiff-zstd"),
            Some(other) => panic!("unknown feature {other}"),
            None => true,
        };
        if !is_built {
            self.0.insert("error".to_owned(), "Unsupported".to_owned());
        }
        self
    }
}

pub(crate) fn decode(bytes: &[u8], color: Color, exif: Exif) -> Result<Image, DecodeError> {
    let mut image = Image::new();
    let options = DecodeOptions { color, exif, ..DecodeOptions::default() };
    Decoder::new(options).decode_into(bytes, &mut image).map(|()| image)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn variant(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::Malformed(_) => "Malformed",
        DecodeError::Unsupported(_) => "Unsupported",
        DecodeError::LimitExceeded { .. } => "LimitExceeded",
        DecodeError::Region { .. } => "Region",
        _ => "another variant",
    }
}

#[test]
fn every_file_decodes_as_its_entry_says() {
    let entries = entries();
    assert!(entries.len() > 90, "{} entries", entries.len());
    for entry in &entries {
        check(entry);
    }
}

fn check(entry: &Entry) {
    let (file, bytes) = (entry.file(), entry.bytes());
    let result = decode(&bytes, Color::Rgb, Exif::Ignore);
    if let Some(expected) = entry.get("error") {
        let error = result.expect_err(file);
        assert_eq!(variant(&error), expected, "{file}: {error}");
        return;
    }
    let image = result.unwrap_or_else(|error| panic!("{file}: {error}"));
    let size = format!("[{}, {}]", image.width, image.height);
    assert_eq!(Some(size.as_str()), entry.get("size"), "{file}");
    let info = probe(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!((info.width, info.height), (image.width, image.height), "{file}");
    assert_eq!(info.orientation as u8 + 1, entry.get("orientation").map_or(1, parse), "{file}");

    let upright = decode(&bytes, Color::Rgb, Exif::Apply).expect(file);
    assert_eq!(info.upright_size(), (upright.width, upright.height), "{file}");
    match entry.get("upright_sha256") {
        Some(expected) => assert_eq!(sha256(&upright.data), expected, "{file} upright"),
        None => assert!(upright == image, "{file}: nothing to turn"),
    }

    if let Some(expected) = entry.get("rgba8_sha256") {
        let rgba = decode(&bytes, Color::Rgba, Exif::Ignore).expect(file);
        assert!(info.has_alpha, "{file}");
        assert_eq!(sha256(&rgba.data), expected, "{file} with alpha");
    }
    if let Some(expected) = entry.get("rgb8_sha256") {
        assert_eq!(sha256(&image.data), expected, "{file}");
        let grey = decode(&bytes, Color::Grey, Exif::Ignore).expect(file);
        assert_eq!(grey.channels, 1);
        assert_eq!(Some(sha256(&grey.data).as_str()), entry.get("l8_sha256"), "{file} as grey");
        return;
    }
    let reference = entry.get("reference").expect("a hash or a reference");
    let reference = std::fs::read(folder().join(reference)).expect(file);
    let reference = decode(&reference, Color::Rgb, Exif::Ignore).expect(file);
    let pairs = image.data.iter().zip(&reference.data);
    let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    let tolerance: u8 = entry.get("tolerance").map_or(0, parse);
    assert_eq!(image.data.len(), reference.data.len(), "{file}");
    assert!(worst <= tolerance, "{file}: a sample differs by {worst}, more than {tolerance}");
}

fn parse(text: &str) -> u8 {
    text.parse().expect("a number")
}

#[test]
fn applied_orientation_turns_the_pixels() {
    let entries = entries();
    // Files that this build refuses have no pixels.
    let decoded = entries.iter().filter(|entry| entry.get("error").is_none());
    for entry in decoded.filter(|entry| entry.get("orientation") == Some("6")) {
        let (file, bytes) = (entry.file(), entry.bytes());
        let stored = decode(&bytes, Color::Rgb, Exif::Ignore).expect(file);
        let upright = decode(&bytes, Color::Rgb, Exif::Apply).expect(file);
        assert_eq!((upright.width, upright.height), (stored.height, stored.width), "{file}");
        assert_eq!(probe(&bytes).expect(file).upright_size(), (upright.width, upright.height));
        let pixel = |image: &Image, x: u32, y: u32| {
            let at = ((y * image.width + x) * 3) as usize;
            image.data[at..at + 3].to_vec()
        };
        for y in 0..upright.height {
            for x in 0..upright.width {
                let from = pixel(&stored, y, stored.height - 1 - x);
                assert_eq!(pixel(&upright, x, y), from, "{file} at {x}, {y}");
            }
        }
    }
}
