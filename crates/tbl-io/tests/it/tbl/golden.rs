//! Files that the original writer made, with what an independent parser says they hold, and small
//! ones of our own that pin the bytes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tbl_format::SampleFormat;
use tbl_format::v2::Codec;
use tbl_io::{
    Compression, SampleSource, SampleSourceExt, StreamWriter, TblFile, TblVersion, WriteOptions,
    ZstdLevel,
};

use super::{Sample, read, samples, target, write};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares a file with the JSON next to it.
fn check_file(path: &Path) {
    let expected = fs::read(path.with_extension("tbl.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let file = TblFile::open(path).unwrap();
    file.verify_structure().unwrap();
    let samples = expected["samples"].as_array().unwrap();
    assert_eq!(file.sample_count(), samples.len() as u64, "{}", path.display());
    let mut bytes = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let index = index as u64;
        let number = |name: &str| sample[name].as_u64().unwrap();
        let entry = file.entry(index).unwrap();
        file.read_into(index, &mut bytes).unwrap();
        assert_eq!(hex(&Sha256::digest(&bytes)), sample["sha256"].as_str().unwrap());
        assert_eq!((entry.offset, entry.stored_bytes), (number("offset"), number("size")));
        assert_eq!(entry.format.to_string(), sample["format"].as_str().unwrap());
        assert_eq!(u64::from(entry.format.code()), number("format_code"));
        if file.version() == TblVersion::V2 {
            assert_eq!(entry.bytes, number("uncompressed_size"));
            assert_eq!(u64::from(entry.width), number("width"));
            assert_eq!(u64::from(entry.height), number("height"));
            assert_eq!(file.codec(index).unwrap() == Some(Codec::Lz4), number("flags") & 1 == 1);
        }
    }
    check_metadata(&file, expected["metadata_blocks"].as_array().map_or(&[], Vec::as_slice));
}

fn check_metadata(file: &TblFile, blocks: &[Value]) {
    for block in blocks {
        let index = block["sample_index"].as_u64().unwrap();
        let found = file.metadata(index).unwrap();
        let sizes: Vec<u64> = found.iter().map(|found| found.data.len() as u64).collect();
        assert!(sizes.contains(&block["size"].as_u64().unwrap()), "{block}");
    }
    // What the file's JSON blocks name is what the entries say.
    for index in 0..file.sample_count() {
        let first = blocks
            .iter()
            .find(|block| block["sample_index"].as_u64() == Some(index) && block["type"] == "JSON");
        let json = first.and_then(|block| serde_json::from_str(block["data"].as_str()?).ok());
        let json: Value = json.unwrap_or_default();
        let entry = file.entry(index).unwrap();
        assert_eq!(entry.label, json["label"].as_i64(), "sample {index}");
        assert_eq!(entry.key.as_deref(), json["name"].as_str().map(str::as_bytes));
    }
}

fn check_folder(folder: &Path, expected_files: usize) {
    let mut files = 0;
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tbl") {
            check_file(&path);
            files += 1;
        }
    }
    assert_eq!(files, expected_files);
}

#[tl_testdata::needs("formats/tbl_v1")]
#[test]
fn the_originals_version_1_files_read_as_the_independent_parser_says() {
    check_folder(&tl_testdata::path!("formats/tbl_v1"), 3);
}

#[tl_testdata::needs("formats/tbl_v2")]
#[test]
fn the_originals_version_2_files_read_as_the_independent_parser_says() {
    check_folder(&tl_testdata::path!("formats/tbl_v2"), 8);
}

#[tl_testdata::needs("formats")]
#[test]
fn the_originals_raw_file_is_one_array() {
    let formats = tl_testdata::path!("formats");
    let file = TblFile::open(formats.join("tbl_v2/raw_u8_32.tbl")).unwrap();
    let view = file.raw_view().unwrap();
    assert_eq!((view.sample_count(), view.width(), view.height()), (file.sample_count(), 32, 32));
    let mut bytes = Vec::new();
    for index in 0..file.sample_count() {
        file.read_into(index, &mut bytes).unwrap();
        assert!(view.with(index, 1, |pixels| pixels == bytes).unwrap());
    }
}

/// The files in `testdata/tbl` and what made them; they are never made again.
fn goldens() -> Vec<(&'static str, WriteOptions, Vec<Sample>, Vec<String>)> {
    let plain = WriteOptions { sync: false, ..Default::default() };
    let classes = vec!["cat".to_string(), "dog".to_string()];
    let pixels = |value: u8| Sample {
        bytes: vec![value; 12],
        format: SampleFormat::RawU8,
        dimensions: (2, 2),
        key: None,
        label: None,
        fields: vec![],
    };
    let bare = |sample: Sample| Sample {
        dimensions: (0, 0),
        key: None,
        label: None,
        fields: vec![],
        ..sample
    };
    let zstd = Compression::Zstd(ZstdLevel::DEFAULT);
    let v1 = samples().into_iter().take(3).map(bare).collect();
    vec![
        ("v1.tbl", WriteOptions { version: TblVersion::V1, ..plain }, v1, vec![]),
        ("v2.tbl", plain, samples(), classes),
        ("v2_lz4.tbl", WriteOptions { compression: Compression::Lz4, ..plain }, samples(), vec![]),
        ("v2_zstd.tbl", WriteOptions { compression: zstd, ..plain }, samples(), vec![]),
        ("v2_raw.tbl", plain, vec![pixels(1), pixels(2)], vec![]),
    ]
}

fn golden_folder() -> PathBuf {
    tl_testdata::shipped!("tbl")
}

#[test]
fn files_of_earlier_versions_of_this_crate_read_the_same() {
    for (name, _, expected, classes) in goldens() {
        let file = TblFile::open(golden_folder().join(name)).unwrap();
        file.verify_structure().unwrap();
        assert_eq!(read(&file), expected, "{name}");
        assert_eq!(file.class_names(), classes, "{name}");
    }
}

#[test]
fn the_writers_bytes_have_not_changed() {
    for (name, options, samples, classes) in goldens() {
        let folder = tempfile::tempdir().unwrap();
        if classes.is_empty() {
            write(&target(&folder), options, &samples);
        } else {
            let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
            writer.set_class_names(&classes);
            // One label is beyond the class names, which a copy may be.
            for sample in &samples {
                let encoded = writer.encoder().encode(&sample.as_new()).unwrap();
                writer.write(&encoded, &sample.bytes).unwrap();
            }
            writer.finish().unwrap();
        }
        let golden = fs::read(golden_folder().join(name)).unwrap();
        assert!(fs::read(target(&folder)).unwrap() == golden, "{name}");
    }
}
