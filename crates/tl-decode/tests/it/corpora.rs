//! The public corpora, where they are at hand: what the reference decoders read is read, what they
//! all refuse is refused.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tl_decode::{Color, Exif, probe};

use crate::manifest::decode;

/// The number of files, and of decoded files, by format and class.
type Counts = BTreeMap<(String, String), (u32, u32)>;

fn count(corpora: &Path) -> Counts {
    let mut counts = Counts::new();
    for set in std::fs::read_dir(corpora).expect("a folder") {
        let set = set.expect("a folder entry").path();
        let manifest = std::fs::read(set.join("manifest.json")).expect("each set has a manifest");
        let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
        for file in manifest["files"].as_array().expect("a list") {
            let text = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
            let format = text("format");
            if !matches!(format.as_str(), "jpeg" | "png" | "webp" | "bmp" | "tiff") {
                continue;
            }
            let bytes = std::fs::read(set.join(text("file"))).expect("the file exists");
            let (files, decoded) = counts.entry((format.clone(), text("class"))).or_default();
            *files += 1;
            let result = decode(&bytes, Color::Rgb, Exif::Ignore);
            if let Ok(image) = result {
                let info =
                    probe(&bytes).unwrap_or_else(|error| panic!("{}: {error}", text("file")));
                // A file of another format than its name says may be a good one of that format.
                *decoded += u32::from(info.format.name().eq_ignore_ascii_case(&format));
                assert_eq!(
                    (info.width, info.height),
                    (image.width, image.height),
                    "{}",
                    text("file")
                );
            }
        }
    }
    counts
}

#[tl_testdata::needs("corpora")]
#[test]
fn valid_files_decode_and_invalid_ones_do_not() {
    let corpora = tl_testdata::path!("corpora");
    let counts = count(&corpora);
    let share = |format: &str, class: &str| {
        let key = (format.to_owned(), class.to_owned());
        let &(files, decoded) = counts.get(&key).expect("every format has both classes");
        f64::from(decoded) / f64::from(files)
    };
    for (format, least, most) in [
        ("png", 1.0, 0.0),
        ("bmp", 1.0, 0.0),
        ("webp", 1.0, 0.0),
        // Two files have CCITT code words that do not exist, which libtiff passes over.
        ("tiff", 0.97, 0.0),
        // One file uses arithmetic coding.
        ("jpeg", 0.99, 0.0),
    ] {
        let (valid, invalid) = (share(format, "valid"), share(format, "invalid"));
        assert!(valid >= least, "{format}: {valid} of the valid files");
        assert!(invalid <= most, "{format}: {invalid} of the invalid files");
    }
}
