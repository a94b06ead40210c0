//! Metadata of TBL files through the commands, and what `verify` finds without decoding.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tbl_format::checksum::payload_crc16;
use tbl_format::metadata::{BlockHeader, MetadataType};
use tbl_format::v2::{EntryFlags, FileFlags, FileHeader, IndexEntry, Payload};
use tbl_format::{SampleFormat, v1};

use crate::support::{Run, files_below, json_lines, photos, tl, write};

const WHOLE_FILE: u64 = BlockHeader::WHOLE_FILE;
const WIDTH: usize = FileHeader::SIZE + 16;
const FORMAT: usize = FileHeader::SIZE + 20;

/// An image with the width and height of its index entry.
struct Image<'a> {
    bytes: &'a [u8],
    dimensions: (u16, u16),
    format: SampleFormat,
}

/// A version 2 file as the original writes it.
fn original(images: &[Image<'_>], blocks: &[(u64, MetadataType, &[u8])]) -> Vec<u8> {
    let mut offset = (FileHeader::SIZE + IndexEntry::SIZE * images.len()) as u64;
    let (mut index, mut payloads, mut section) = (Vec::new(), Vec::new(), Vec::new());
    for &Image { bytes, dimensions, format } in images {
        let size = u32::try_from(bytes.len()).expect("small");
        let checksum = payload_crc16(bytes);
        let payload = Payload { offset, stored_bytes: size, bytes: size, checksum };
        let flags = EntryFlags::HAS_METADATA;
        index.extend(IndexEntry::new(payload, dimensions, format, flags).to_bytes());
        payloads.extend(bytes);
        offset += u64::from(size);
    }
    for (sample, kind, data) in blocks {
        let header = BlockHeader::new(*sample, *kind, data.len() as u64).expect("small");
        section.extend(header.to_bytes());
        section.extend(*data);
    }
    let metadata = offset..offset + section.len() as u64;
    let header = FileHeader::new(images.len() as u64, metadata, FileFlags::HAS_CHECKSUMS);
    [header.expect("few samples").to_bytes().to_vec(), index, payloads, section].concat()
}

const OF_SAMPLE: &[u8] = br#"{"class": "cat", "extra": {"camera": "x"}}"#;
const OF_FILE: &[u8] = br#"{"license": "CC0"}"#;

/// Three samples with blocks of three types, and two blocks of the file.
fn described() -> Vec<u8> {
    let image = |bytes| Image { bytes, dimensions: (0, 0), format: SampleFormat::Unknown };
    original(
        &[image(b"one"), image(b"two"), image(b"three")],
        &[
            (1, MetadataType::Json, OF_SAMPLE),
            (0, MetadataType::Protobuf, b"\x08\x96\x01"),
            (WHOLE_FILE, MetadataType::Json, OF_FILE),
            (1, MetadataType::MsgPack, b"\x81\xa1a\x01"),
            (WHOLE_FILE, MetadataType::Custom, b"any"),
        ],
    )
}

fn run(args: &[&str], folder: &Path) -> Run {
    let names = ["a", "b", "c", "out", "part", "x.json"];
    let args = args.iter().map(|&arg| {
        let stem = arg.split(['.', '-']).next().unwrap_or(arg);
        let is_path = !arg.starts_with('-') && (names.contains(&stem) || names.contains(&arg));
        if is_path { folder.join(arg).into_os_string() } else { arg.into() }
    });
    tl(args)
}

/// All metadata of a file as `cat` prints it, without that of the samples in between.
fn metadata(folder: &Path, file: &str, samples: &[u64]) -> Vec<String> {
    let mut found = vec![run(&["cat", file, "--metadata"], folder).text()];
    for sample in samples {
        found.push(run(&["cat", file, &sample.to_string(), "--metadata"], folder).text());
    }
    found
}

#[test]
fn cat_prints_metadata_and_info_counts_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write(folder, "a.tbl", &described());
    let found = metadata(folder, "a.tbl", &[0, 1, 2]);
    let text = |bytes| str::from_utf8(bytes).expect("it is UTF-8");
    let expected = [
        format!("{}\n{}\n", text(OF_FILE), r#"{"type":"custom","bytes":3,"hex":"616e79"}"#),
        r#"{"type":"protobuf","bytes":3,"hex":"089601"}"#.to_owned() + "\n",
        format!("{}\n{}\n", text(OF_SAMPLE), r#"{"type":"msgpack","bytes":4,"hex":"81a16101"}"#),
        String::new(),
    ];
    assert_eq!(found, expected);
    let block = run(&["cat", "a.tbl", "1", "--metadata", "--block", "1"], folder).good();
    assert_eq!(block, b"\x81\xa1a\x01");
    run(&["cat", "a.tbl", "--metadata", "--block", "1", "-o", "out"], folder).good();
    assert_eq!(fs::read(folder.join("out")).expect("it is there"), b"any");
    let line = run(&["cat", "a.tbl", "2", "--metadata", "--block", "0"], folder).error(2);
    assert!(line.contains("--block"), "{line}");
    let line = run(&["cat", "a.tbl"], folder).error(2);
    assert!(line.contains("INDEX"), "{line}");

    let info = &json_lines(&run(&["info", "a.tbl", "--json"], folder).text())[0];
    let counts = json!({
        "samples": {"json": 1, "protobuf": 1, "msgpack": 1},
        "file": {"json": 1, "custom": 1},
        "without_sample": 0,
        "later_version": 0,
    });
    assert_eq!(info["metadata"], counts);
    let text = run(&["info", "a.tbl"], folder).text();
    let line = text.lines().find(|line| line.starts_with("metadata")).expect("there is some");
    assert_eq!(
        line,
        "metadata     1 json of samples, 1 msgpack of samples, 1 protobuf of samples, 1 custom of \
         the file, 1 json of the file"
    );
}

#[test]
fn info_describes_a_file_with_damaged_metadata() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let raw = || Image { bytes: &[7; 24], dimensions: (4, 2), format: SampleFormat::RawU8 };
    let blocks = [(0, MetadataType::Json, OF_SAMPLE), (1, MetadataType::Json, OF_SAMPLE)];
    write(folder.path(), "a.tbl", &original(&[raw(), raw()], &blocks));
    run(&["convert", "a.tbl", "-o", "b.tbl", "-q"], folder.path()).good();
    let mut bytes = fs::read(folder.path().join("b.tbl")).expect("it is there");
    let size = bytes.len() - OF_SAMPLE.len() - 8;
    bytes[size + 2] = 1;
    write(folder.path(), "b.tbl", &bytes);
    let run = run(&["info", "b.tbl", "--json"], folder.path());
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("metadata block needs"), "{}", run.stderr);
    let info = &json_lines(&String::from_utf8_lossy(&run.stdout))[0];
    assert_eq!((&info["samples"], &info["metadata"]), (&json!(2), &Value::Null));
}

#[test]
fn every_command_that_copies_keeps_metadata_or_says_what_it_leaves_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write(folder, "a.tbl", &described());
    let expected = metadata(folder, "a.tbl", &[0, 1, 2]);
    run(&["convert", "a.tbl", "-o", "b.tbl", "-q"], folder).good();
    assert_eq!(metadata(folder, "b.tbl", &[0, 1, 2]), expected);
    run(&["split", "b.tbl", "-o", "part-{}.tbl", "--shards", "2"], folder).good();
    assert_eq!(metadata(folder, "part-00000.tbl", &[0, 1]), expected[..3]);
    run(&["merge", "part-00000.tbl", "part-00001.tbl", "-o", "c.tbl"], folder).good();
    assert_eq!(metadata(folder, "c.tbl", &[0, 1, 2]), expected);
    run(&["repair", "c.tbl", "-o", "out.tbl"], folder).good();
    assert_eq!(metadata(folder, "out.tbl", &[0, 1, 2]), expected);
    let same = |a: &str, b: &str| {
        assert_eq!(fs::read(folder.join(a)).expect(a), fs::read(folder.join(b)).expect(b));
    };
    same("b.tbl", "c.tbl");
    same("b.tbl", "out.tbl");
    for (to, name) in [("tar", "out.tar"), ("tbl1", "out.tbl1")] {
        let run = run(&["convert", "a.tbl", "-o", name, "--to", to, "-q"], folder);
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.ends_with("cannot store 5 metadata blocks\n"), "{}", run.stderr);
    }
    let orphan = original(&[], &[(7, MetadataType::Json, b"{}")]);
    write(folder, "b.orphan", &orphan);
    let run = run(&["convert", "b.orphan", "-o", "out.orphan", "-q"], folder);
    assert!(run.stderr.contains("left out 1 metadata blocks of samples that"), "{}", run.stderr);
}

#[test]
fn convert_adds_metadata_of_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write(folder, "a.tbl", &described());
    write(folder, "x.json", b"{\"version\": 3}");
    let add = |output: &str, to: &str| {
        let args = ["convert", "a.tbl", "-o", output, "--to", to, "--metadata", "x.json", "-q"];
        run(&args, folder)
    };
    add("b.tbl", "tbl2").good();
    let block = run(&["cat", "b.tbl", "--metadata", "--block", "2"], folder).good();
    assert_eq!(block, b"{\"version\": 3}");
    assert!(add("b.tar", "tar").error(2).contains("--metadata is for TBL files"));
    // Version 1 keeps the three fields of its header.
    let fields = r#"{"creation_timestamp":1700000000,"dataset_version":3,"custom_flags":16}"#;
    write(folder, "x.json", fields.as_bytes());
    assert!(add("b.v1", "tbl1").stderr.ends_with("cannot store 5 metadata blocks\n"));
    assert_eq!(metadata(folder, "b.v1", &[]), [format!("{fields}\n")]);
    let header = fs::read(folder.join("b.v1")).expect("it is there");
    let (header, _) = v1::FileHeader::parse(&header).expect("a header");
    let custom = header.custom_metadata().expect("fields");
    assert_eq!((custom.creation_timestamp, custom.dataset_version), (1_700_000_000, 3));
    let info = &json_lines(&run(&["info", "b.v1", "--json"], folder).text())[0];
    assert_eq!(info["custom_metadata"], serde_json::from_str::<Value>(fields).expect("JSON"));
    let text = run(&["info", "b.v1"], folder).text();
    let line = "creation timestamp 1700000000, data set version 3, custom flags 0x00000010";
    assert!(text.contains(line), "{text}");

    write(folder, "x.json", b"{\"version\": 3");
    assert!(add("b.bad", "tbl2").error(2).contains("x.json"));
    assert!(!folder.join("b.bad").exists());
}

#[test]
fn verify_finds_a_changed_width_or_height_without_decoding() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = files_below(&photos());
    for (name, bytes) in &files {
        let Ok(info) = tl_decode::probe(bytes) else { continue };
        let side = |side: u32| u16::try_from(side).expect("a small photograph");
        let dimensions = (side(info.width), side(info.height));
        let format = SampleFormat::from_file_name(name.as_bytes());
        let good = original(&[Image { bytes, dimensions, format }], &[]);
        let verify = |file: &[u8]| {
            let path = write(folder.path(), "a.tbl", file);
            tl([Path::new("verify"), &path])
        };
        assert!(verify(&good).text().contains("good"), "{name}");
        for byte in WIDTH..WIDTH + 4 {
            let mut bad = good.clone();
            bad[byte] ^= 1;
            let run = verify(&bad);
            assert_eq!(run.code, Some(1), "{name}, byte {byte}");
            let said = String::from_utf8_lossy(&run.stdout).into_owned();
            assert!(said.contains("the index says"), "{said}");
        }
        let mut odd = good.clone();
        odd[FORMAT] = if odd[FORMAT] == 1 { 2 } else { 1 };
        let text = verify(&odd).text();
        assert!(text.contains("the index says") && text.contains("good"), "{name}: {text}");
    }
    assert!(files.len() > 10, "the photographs exist");
}

#[test]
fn verify_finds_a_changed_size_of_raw_pixels() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let raw = Image { bytes: &[7; 24], dimensions: (4, 2), format: SampleFormat::RawU8 };
    let good = original(&[raw], &[]);
    let verify = |file: &[u8]| {
        let path = write(folder.path(), "a.tbl", file);
        tl([Path::new("verify"), &path])
    };
    assert!(verify(&good).text().contains("good"));
    let mut bad = good;
    bad[WIDTH] = 5;
    assert!(verify(&bad).error(1).contains("declares 24 bytes, expected 30"));
}
