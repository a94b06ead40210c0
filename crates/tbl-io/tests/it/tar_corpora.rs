//! Archives that other programs made, with what other readers found in them.

use std::any::Any;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tbl_io::{IndexOptions, SampleSource, Stores, TarArchive};

/// A member as the manifests describe it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    name: String,
    size: u64,
    offset: u64,
    sha256: String,
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// Python's `decode("utf-8", "backslashreplace")`.
fn backslashreplace(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").unwrap();
        }
    }
    text
}

fn expected_members(entries: &[Value]) -> Vec<Member> {
    let text = |entry: &Value, key: &str| entry[key].as_str().map(str::to_owned);
    entries
        .iter()
        .filter_map(|entry| {
            Some(Member {
                name: text(entry, "name")?,
                size: entry["size"].as_u64()?,
                offset: entry["data_offset"].as_u64()?,
                sha256: text(entry, "sha256")?,
            })
        })
        .collect()
}

fn found_members(archive: &TarArchive) -> Vec<Member> {
    let mut bytes = Vec::new();
    (0..archive.sample_count())
        .map(|index| {
            let entry = archive.entry(index).unwrap();
            archive.read_into(index, &mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, entry.bytes);
            Member {
                name: backslashreplace(&entry.key.unwrap()),
                size: entry.bytes,
                offset: entry.offset,
                sha256: sha256(&bytes),
            }
        })
        .collect()
}

/// The readers that wrote the manifests stop at the first zero block, this one continues.
const CONCATENATED: &str = "test_read_format_tar_concatenated.tar.uu-aac57ab5.tar";

/// Members that other readers return and this one refuses, because of their names.
const UNSAFE_NAMES: [&str; 1] = ["pax-nul-path-a47d0adc.tar"];

#[derive(Debug, Default)]
struct Tally {
    valid: usize,
    refused: usize,
    /// Members whose names the other readers do not agree about: GNU headers keep a time where
    /// ustar has its prefix, and one archive has several long names for a member.
    disputed_names: usize,
    differences: String,
}

fn check_corpus(folder: &Path, tally: &mut Tally) {
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        let opened = TarArchive::open(folder.join(name));
        match (file["class"].as_str().unwrap(), opened) {
            ("valid", Ok(archive)) => check_members(name, &archive, &file["reference"], tally),
            ("valid", Err(error)) => writeln!(tally.differences, "{error}").unwrap(),
            ("invalid", Ok(_)) => writeln!(tally.differences, "{name}: accepted").unwrap(),
            ("invalid", Err(_)) => tally.refused += 1,
            _ => {}
        }
    }
}

/// Checks that an archive is the same when it is opened by a shard index.
fn check_index(archive: &TarArchive) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    std::fs::copy(archive.location().path().unwrap(), &path).unwrap();
    let index = folder.path().join("a.tlidx");
    let options = IndexOptions { sync: false, ..IndexOptions::default() };
    tbl_io::index_shards(&Stores::new(), &[&path], &index, options).unwrap();
    let opened: Box<dyn Any> = tbl_io::open(&index).unwrap();
    let indexed = opened.downcast_ref::<TarArchive>().unwrap();
    let facts = |archive: &TarArchive| {
        let whole = (archive.member_counts(), archive.skipped().to_vec(), archive.notes());
        let zeros =
            (archive.has_end_marker(), archive.lone_zero_block(), archive.trailing_garbage());
        let entry = |index| {
            format!("{:?}", archive.entry(index).map_err(|error| error.detail().to_string()))
        };
        (whole, zeros, (0..archive.sample_count()).map(entry).collect::<Vec<_>>())
    };
    assert_eq!(facts(indexed), facts(archive));
}

fn check_members(file: &str, archive: &TarArchive, reference: &Value, tally: &mut Tally) {
    tally.valid += 1;
    check_index(archive);
    if UNSAFE_NAMES.contains(&file) {
        let error = archive.entry(0).unwrap_err();
        assert!(error.to_string().contains("unsafe member name"), "{error}");
        return;
    }
    let mut expected = expected_members(reference["entries"].as_array().unwrap());
    let members = expected.len();
    expected.retain(|member| !member.name.split('/').any(is_hidden));
    let hidden = archive.member_counts().hidden;
    assert_eq!(hidden, (members - expected.len()) as u64, "{file}");
    let mut found = found_members(archive);
    if file == CONCATENATED {
        assert_eq!(found.pop().unwrap().name, "file2");
    }
    if reference["names_agree"] == false {
        for (found, expected) in found.iter_mut().zip(&expected) {
            tally.disputed_names += usize::from(found.name != expected.name);
            found.name.clone_from(&expected.name);
        }
    }
    if found != expected {
        writeln!(tally.differences, "{file}: {found:#?} != {expected:#?}").unwrap();
    }
}

/// Archives made on a Mac have a hidden member next to each other one.
fn is_hidden(component: &str) -> bool {
    component.starts_with('.') && component != "." && component != ".."
}

#[tl_testdata::needs("corpora")]
#[test]
fn every_valid_archive_gives_what_other_readers_found() {
    let corpora = tl_testdata::path!("corpora");
    let mut tally = Tally::default();
    for entry in std::fs::read_dir(corpora).unwrap() {
        let folder = entry.unwrap().path();
        if folder.file_name().unwrap().to_str().unwrap().starts_with("tar-") {
            check_corpus(&folder, &mut tally);
        }
    }
    assert!(tally.differences.is_empty(), "{}", tally.differences);
    assert_eq!((tally.valid, tally.refused, tally.disputed_names), (92, 74, 16));
}

/// `mixed_raw.tbl` was made from `mixed.tar` and has two more samples: `label.txt` and `noext`.
#[tl_testdata::needs("formats")]
#[test]
fn the_mixed_archive_has_25_images() {
    let formats = tl_testdata::path!("formats");
    let archive = TarArchive::open(formats.join("mixed.tar")).unwrap();
    let keys: Vec<String> = (0..archive.sample_count())
        .map(|index| backslashreplace(&archive.entry(index).unwrap().key.unwrap()))
        .collect();
    assert_eq!(keys.len(), 25);
    assert_eq!(keys[24], "empty.jpg");
    assert_eq!(archive.member_counts().other_files, 2);
    let note = "passed over 2 files without an image, such as label.txt";
    assert_eq!(archive.notes()[0].to_string(), note);
    assert_eq!(archive.entry(5).unwrap().format, tbl_format::SampleFormat::Jpeg);
    assert!(archive.has_end_marker());
}
