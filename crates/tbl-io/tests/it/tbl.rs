//! TBL files written and read back, and files that the original wrote.

use std::path::{Path, PathBuf};

use tbl_format::SampleFormat;
use tbl_io::{
    Field, NewSample, SampleSource, StreamWriter, TblFile, TblVersion, WriteOptions, WriteSummary,
};

mod golden;

/// Everything that a reader returns of one sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: SampleFormat,
    pub(crate) dimensions: (u32, u32),
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) label: Option<i64>,
    pub(crate) fields: Vec<Field>,
}

pub(crate) fn write(path: &Path, options: WriteOptions, samples: &[Sample]) -> WriteSummary {
    let mut writer = StreamWriter::create(path, options).unwrap();
    for sample in samples {
        writer
            .write_sample(&NewSample {
                bytes: &sample.bytes,
                format: sample.format,
                width: sample.dimensions.0,
                height: sample.dimensions.1,
                key: sample.key.as_deref(),
                label: sample.label,
                fields: &sample.fields,
            })
            .unwrap();
    }
    writer.finish().unwrap()
}

pub(crate) fn read(file: &TblFile) -> Vec<Sample> {
    let mut bytes = Vec::new();
    (0..file.sample_count())
        .map(|index| {
            let entry = file.entry(index).unwrap();
            file.read_into(index, &mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, entry.bytes);
            let mut fields = Vec::new();
            file.read_fields(index, &mut fields).unwrap();
            Sample {
                bytes: bytes.clone(),
                format: entry.format,
                dimensions: (entry.width, entry.height),
                key: entry.key.map(|key| key.into_owned()),
                label: entry.label,
                fields,
            }
        })
        .collect()
}

fn samples() -> Vec<Sample> {
    let field = |extension: &str, bytes: &[u8]| Field {
        extension: extension.as_bytes().to_vec(),
        bytes: bytes.to_vec(),
    };
    vec![
        Sample {
            bytes: vec![7; 4000],
            format: SampleFormat::Bmp,
            dimensions: (40, 25),
            key: Some(b"a/1.bmp".to_vec()),
            label: Some(-3),
            fields: vec![field("txt", b"hello"), field("seg.png", &[0, 255, 1])],
        },
        Sample {
            bytes: Vec::new(),
            format: SampleFormat::Unknown,
            dimensions: (0, 0),
            key: None,
            label: None,
            fields: vec![],
        },
        Sample {
            bytes: (0..=255).collect(),
            format: SampleFormat::Jpeg,
            dimensions: (65_535, 1),
            key: Some(b"a/\xff\"\n.jpg".to_vec()),
            label: None,
            fields: vec![],
        },
        Sample {
            bytes: b"same name".to_vec(),
            format: SampleFormat::Other(200),
            dimensions: (1, 2),
            key: Some(b"a/1.bmp".to_vec()),
            label: Some(i64::MAX),
            fields: vec![],
        },
    ]
}

fn target(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("t.tbl")
}

#[test]
fn every_way_of_writing_version_2_reads_back_the_same() {
    for lz4 in [false, true] {
        for sample_count in [None, Some(4), Some(9)] {
            let folder = tempfile::tempdir().unwrap();
            let options = WriteOptions { lz4, sample_count, sync: false, ..Default::default() };
            let summary = write(&target(&folder), options, &samples());
            assert_eq!((summary.samples, summary.sample_bytes), (4, 4265));
            assert_eq!(summary.compressed_samples, u64::from(lz4));
            let file = TblFile::open(target(&folder)).unwrap();
            assert_eq!(read(&file), samples());
            assert_eq!(summary.bytes, std::fs::metadata(target(&folder)).unwrap().len());
            file.verify_structure().unwrap();
        }
    }
}

#[test]
fn version_1_keeps_bytes_and_formats_and_counts_the_rest() {
    for sample_count in [None, Some(3)] {
        let folder = tempfile::tempdir().unwrap();
        let version = TblVersion::V1;
        let options = WriteOptions { version, sample_count, sync: false, ..Default::default() };
        let summary = write(&target(&folder), options, &samples()[..3]);
        let unstored = summary.unstored;
        assert_eq!((unstored.keys, unstored.labels, unstored.fields), (2, 1, 2));
        let expected: Vec<Sample> = samples()[..3]
            .iter()
            .map(|sample| Sample {
                dimensions: (0, 0),
                key: None,
                label: None,
                fields: vec![],
                ..sample.clone()
            })
            .collect();
        assert_eq!(read(&TblFile::open(target(&folder)).unwrap()), expected);
        assert_eq!(summary.bytes, 32 + 3 * 16 + 4256);
    }
}
