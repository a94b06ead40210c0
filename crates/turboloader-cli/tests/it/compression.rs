//! Compressed archives as sources, and compressed samples.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tbl_format::checksum::header_crc32;

use crate::support::{files_below, photos, tar, tl, write};

/// `bytes` as `gzip` stores what it cannot compress.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    let mut blocks = bytes.chunks(65_535).peekable();
    while let Some(block) = blocks.next() {
        let len = u16::try_from(block.len()).expect("a block is short");
        file.push(u8::from(blocks.peek().is_none()));
        file.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
        file.extend(block);
    }
    file.extend(header_crc32(bytes).to_le_bytes());
    file.extend(u32::try_from(bytes.len()).expect("short").to_le_bytes());
    file
}

fn archive() -> Vec<u8> {
    let mut files = files_below(&photos());
    files.retain(|(name, _)| name.contains('/'));
    let members: Vec<_> =
        files.iter().map(|(name, bytes)| (name.as_bytes(), bytes.as_slice())).collect();
    tar(&members)
}

fn digest(path: &Path, more: &[&Path]) -> String {
    tl([Path::new("digest"), path].iter().chain(more)).text()
}

#[test]
fn a_compressed_archive_is_converted_as_it_is_and_opened_with_a_folder_for_the_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let plain = write(folder.path(), "plain.tar", &archive());
    let packed = write(folder.path(), "train.tar.gz", &gzip(&archive()));
    for name in ["a.tbl", "a.tar"] {
        tl(["convert".as_ref(), packed.as_path(), "-o".as_ref(), &at(name), "-q".as_ref()]).good();
        assert_eq!(digest(&at(name), &[]), digest(&plain, &[]), "{name}");
    }
    let mut files: Vec<_> = files_below(folder.path()).into_iter().map(|(name, _)| name).collect();
    files.sort();
    assert_eq!(files, ["a.tar", "a.tbl", "plain.tar", "train.tar.gz"]);

    let error = tl([Path::new("info"), &packed]).error(1);
    let expected = format!(
        "{0}: at byte 0: compressed by gzip, expected a plain TAR archive; write one with `tl \
         convert {0} -o PLAIN.tar`, or name a folder for plain copies (--unpack DIR, \
         Store(unpack_to=DIR))",
        packed.display()
    );
    assert!(error.contains(&expected), "{error}");
    // Copies of archives that were changed just now are not kept.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let unpack = [Path::new("--unpack"), &at("plain")];
    assert_eq!(digest(&packed, &unpack), digest(&plain, &[]));
    let kept = fs::read_dir(at("plain")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read(kept.path()).unwrap(), archive());

    let cut = write(folder.path(), "cut.tar.gz", &gzip(&archive())[..5000]);
    let output = at("cut.tbl");
    let error = tl(["convert".as_ref(), cut.as_path(), "-o".as_ref(), &output]).error(1);
    assert!(error.contains("cut.tar.gz: at byte 5000: gzip: the data ends early"), "{error}");
    assert!(!output.exists());
}

#[test]
fn samples_are_compressed_as_the_option_says() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let input = write(folder.path(), "in.tar", &archive());
    let convert = |name: &str, options: &[&str]| {
        let mut args = vec!["convert".into(), input.clone(), "-o".into(), at(name), "-q".into()];
        args.extend(options.iter().map(Into::into));
        tl(args)
    };
    convert("raw.tbl", &["--to", "raw", "--size", "64"]).good();
    convert("raw_zstd.tbl", &["--to", "raw", "--size", "64", "--compress", "zstd"]).good();
    assert_eq!(digest(&at("raw.tbl"), &[]), digest(&at("raw_zstd.tbl"), &[]));
    let info = tl(["info".as_ref(), at("raw_zstd.tbl").as_path()]).text();
    assert!(info.contains(" samples Zstandard)"), "{info}");
    let json = tl(["info".as_ref(), at("raw_zstd.tbl").as_path(), "--json".as_ref()]).text();
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((&json["zstd_samples"], &json["lz4_samples"]), (&json["samples"], &0.into()));
    assert!(tl(["verify".as_ref(), at("raw_zstd.tbl").as_path()]).text().contains("good"));

    let error = convert("x.tbl", &["--compress", "zstd:23"]).error(2);
    assert!(error.contains("expected lz4, zstd, or zstd:LEVEL with a level of 1 to 22"), "{error}");
    convert("x.tbl", &["--compress", "zstd", "--lz4"]).error(2);
    for options in [["--to", "tar"], ["--to", "tbl1"]] {
        let error = convert("x", &[&options[..], &["--compress", "zstd"]].concat()).error(2);
        assert!(error.contains("--compress and --lz4 are for TBL version 2 files"), "{error}");
    }
}

#[test]
fn the_names_of_archives_are_classes_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["dogs.tar", "cats.tar"] {
        write(folder.path(), name, &tar(&[(b"0.jpg", b"image"), (b"1.jpg", b"image")]));
    }
    let labels = |more: &[&str]| -> Vec<Value> {
        let mut args = vec!["ls".into(), at("dogs.tar"), at("cats.tar"), "--json".into()];
        args.extend(more.iter().map(Into::into));
        let text = tl(args).text();
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["label"].clone())
            .collect()
    };
    assert_eq!(labels(&["--class-per-archive"]), [1, 1, 0, 0].map(Value::from));
    assert_eq!(labels(&[]), [Value::Null, Value::Null, Value::Null, Value::Null]);
}
