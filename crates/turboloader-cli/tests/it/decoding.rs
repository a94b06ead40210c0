//! `decode`: pixels out, or one line that says why not.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{photos, tar, tl, write};

#[test]
fn a_photograph_becomes_a_ppm() {
    let photo = photos().join("animals/chelsea.jpg");
    let ppm = tl(["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref()]).good();
    let header = b"P6\n";
    assert!(ppm.starts_with(header));
    let text = String::from_utf8_lossy(&ppm[..20]).into_owned();
    let size: Vec<usize> =
        text.split_ascii_whitespace().skip(1).take(2).map(|side| side.parse().unwrap()).collect();
    let header = format!("P6\n{} {}\n255\n", size[0], size[1]);
    assert_eq!(ppm.len(), header.len() + size[0] * size[1] * 3);

    let line = tl(["decode".as_ref(), photo.as_os_str()]).text();
    assert!(
        line.contains(&format!("{}x{} JPEG, 3 channels of 8 bits", size[0], size[1])),
        "{line}"
    );
}

#[test]
fn a_sample_decodes_like_the_file_it_came_from() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let photo = photos().join("science/microaneurysms.png");
    let bytes = fs::read(&photo).expect("the photograph exists");
    let members: [(&[u8], &[u8]); 2] = [(b"a.jpg", b"no image"), (b"b.png", &bytes)];
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let of = |index: &str| {
        let args = ["decode".as_ref(), archive.as_os_str(), "--ppm".as_ref(), "--index".as_ref()];
        tl(args.into_iter().chain([index.as_ref()]))
    };
    let file = tl(["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref()]).good();
    assert!(of("1").good() == file, "the pixels differ");
    let message = of("0").error(1);
    assert!(message.contains("in.tar: sample 0 (a.jpg): "), "{message}");
    let out = folder.path().join("out.ppm");
    let args = ["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref(), "-o".as_ref()];
    tl(args.into_iter().chain([out.as_os_str()])).good();
    assert!(fs::read(&out).expect("it was written") == file, "the pixels differ");
}

#[test]
fn damaged_images_are_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = fs::read(photos().join("animals/chelsea.jpg")).expect("the photograph exists");
    for (name, bytes) in [
        ("empty.jpg", &b""[..]),
        ("text.jpg", b"not an image"),
        ("half.jpg", &whole[..whole.len() / 2]),
        ("head.jpg", &whole[..20]),
    ] {
        let path = write(folder.path(), name, bytes);
        let message = tl(["decode".as_ref(), path.as_os_str(), "--ppm".as_ref()]).error(1);
        assert!(message.contains(name), "{message}");
    }
    let message = tl(["decode", "/no/such.jpg"]).error(2);
    assert!(message.contains("/no/such.jpg: No such file"), "{message}");
    let message = tl(["decode".as_ref(), folder.path().as_os_str()]).error(2);
    assert!(message.contains("directory"), "{message}");
}

/// Width, height and pixels of a PPM.
fn parse_ppm(ppm: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut lines = ppm.splitn(4, |&byte| byte == b'\n');
    let mut line = || lines.next().expect("four parts");
    let (magic, size, most, pixels) = (line(), line(), line(), line());
    assert_eq!((magic, most), (&b"P6"[..], &b"255"[..]));
    let size = String::from_utf8_lossy(size);
    let (width, height) = size.split_once(' ').expect("width and height");
    (width.parse().expect("a number"), height.parse().expect("a number"), pixels.to_vec())
}

#[test]
fn a_region_holds_the_pixels_of_the_whole_image() {
    let photo = photos().join("animals/chelsea.jpg");
    let decode = |options: &[&str]| {
        let args = ["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref()];
        tl(args.into_iter().chain(options.iter().map(AsRef::as_ref)))
    };
    for scale in ["1/1", "1/4"] {
        let (width, _, whole) = parse_ppm(&decode(&["--scale", scale]).good());
        let expected: Vec<u8> =
            whole.chunks(width * 3).skip(7).take(9).flat_map(|row| &row[33..63]).copied().collect();
        let part = decode(&["--scale", scale, "--region", "11,7,10,9", "--level", "scalar"]).good();
        assert!(parse_ppm(&part) == (10, 9, expected), "{scale}");
    }
    let message = decode(&["--region", "1,2,3"]).error(2);
    assert!(message.contains("expected X,Y,WIDTH,HEIGHT"), "{message}");
    let message = decode(&["--region", "0,0,9999,1"]).error(1);
    assert!(message.contains("is not inside the image"), "{message}");
}

#[test]
fn damage_can_be_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let photo = photos().join("animals/chelsea.jpg");
    let whole = fs::read(&photo).expect("the photograph exists");
    let half = write(folder.path(), "half.jpg", &whole[..whole.len() / 2]);
    let decode = |path: &Path| {
        let args = ["decode".as_ref(), path.as_os_str(), "--ppm".as_ref()];
        tl(args.into_iter().chain(["--on-damaged".as_ref(), "keep".as_ref()]))
    };
    let (width, height, pixels) = parse_ppm(&decode(&photo).good());
    let kept = decode(&half);
    assert!(kept.code == Some(0) && kept.stderr.contains("half.jpg: damaged at byte "), "{kept:?}");
    let (kept_width, kept_height, kept) = parse_ppm(&kept.stdout);
    assert_eq!((kept_width, kept_height), (width, height));
    let rows = height / 4 * width * 3;
    assert!(kept[..rows] == pixels[..rows], "the upper rows are kept");
    assert!(kept != pixels);
}

#[test]
fn a_file_is_written_only_as_a_ppm() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    let photo = photos().join("animals/chelsea.jpg");
    let run = tl(["decode".as_ref(), photo.as_os_str(), "-o".as_ref(), output.as_ref()]);
    assert!(run.error(2).contains("--ppm"));
    assert!(!output.exists());
}

/// A TIFF file of the decoder's test data.
fn tiff(name: &str) -> PathBuf {
    tl_testdata::shipped!("images/tiff").join(name)
}

#[test]
fn the_command_has_the_optional_codecs_of_tiff() {
    for name in ["lzma.tif", "zstd.tif"] {
        let line = tl(["decode".as_ref(), tiff(name).as_os_str()]).text();
        assert!(line.contains("21x13 TIFF"), "{line}");
    }
}

/// An index cannot store a side of more than 65,535 pixels.
#[test]
fn a_long_image_is_kept_with_unknown_dimensions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bytes = fs::read(tiff("high.tif")).expect("the file exists");
    let archive = write(folder.path(), "in.tar", &tar(&[(b"a.tif".as_slice(), &*bytes)]));
    let output = folder.path().join("out.tbl");
    let run = tl(["convert".as_ref(), archive.as_os_str(), "-o".as_ref(), output.as_os_str()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("1x70000 pixels, the index can store at most 65535 per side"),
        "{}",
        run.stderr
    );
    let listing = tl(["ls".as_ref(), output.as_os_str(), "--json".as_ref()]).text();
    let line: Value = serde_json::from_str(&listing).expect("a line is JSON");
    assert_eq!(line["width"].as_u64().unwrap_or_default(), 0, "{line}");
    tl(["verify".as_ref(), output.as_os_str(), "--decode".as_ref()]).good();
    let line = tl(["decode".as_ref(), output.as_os_str(), "--index".as_ref(), "0".as_ref()]).text();
    assert!(line.contains("1x70000 TIFF"), "{line}");
}
