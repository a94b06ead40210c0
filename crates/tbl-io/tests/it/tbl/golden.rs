//! Files that the original writer made, with what an independent parser says they hold.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tbl_io::{SampleSource, TblFile};

/// The folder of gathered real files; the tests that need it say so when it is not there.
fn data_folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("TURBOLOADER_DATA").map_or(beside, PathBuf::from);
    if folder.join("formats").is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no data in {}; set TURBOLOADER_DATA", folder.display());
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(folder: &str, expected_files: usize) {
    let Some(data) = data_folder() else { return };
    let mut files = 0;
    for item in fs::read_dir(data.join("formats").join(folder)).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tbl") {
            continue;
        }
        files += 1;
        let expected = fs::read(path.with_extension("tbl.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let file = TblFile::open(&path).unwrap();
        file.verify_structure().unwrap();
        let samples = expected["samples"].as_array().unwrap();
        assert_eq!(file.sample_count(), samples.len() as u64, "{}", path.display());
        let mut bytes = Vec::new();
        for (index, sample) in samples.iter().enumerate() {
            let index = index as u64;
            let entry = file.entry(index).unwrap();
            file.read_into(index, &mut bytes).unwrap();
            assert_eq!(hex(&Sha256::digest(&bytes)), sample["sha256"].as_str().unwrap());
            assert_eq!(entry.offset, sample["offset"].as_u64().unwrap());
            assert_eq!(entry.stored_bytes, sample["size"].as_u64().unwrap());
            assert_eq!(entry.format.to_string(), sample["format"].as_str().unwrap());
            assert_eq!(u64::from(entry.format.code()), sample["format_code"].as_u64().unwrap());
            if folder == "tbl_v2" {
                assert_eq!(entry.bytes, sample["uncompressed_size"].as_u64().unwrap());
                assert_eq!(u64::from(entry.width), sample["width"].as_u64().unwrap());
                assert_eq!(u64::from(entry.height), sample["height"].as_u64().unwrap());
            }
        }
        let blocks = expected["metadata_blocks"].as_array().map_or(&[][..], Vec::as_slice);
        for block in blocks {
            let index = block["sample_index"].as_u64().unwrap();
            let size = block["size"].as_u64().unwrap();
            let found = file.metadata(index).unwrap();
            assert!(found.iter().any(|found| found.data.len() as u64 == size), "{block}");
        }
    }
    assert_eq!(files, expected_files);
}

#[test]
fn the_originals_version_1_files_read_as_the_independent_parser_says() {
    check("tbl_v1", 3);
}

#[test]
fn the_originals_version_2_files_read_as_the_independent_parser_says() {
    check("tbl_v2", 8);
}
