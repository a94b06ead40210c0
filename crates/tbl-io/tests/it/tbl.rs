//! TBL files written and read back, and files that the original wrote.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_format::path::{check_extension, check_new_name};
use tbl_io::{
    Compression, Field, NewSample, SampleSource, SampleSourceExt, StreamWriter, TblFile,
    TblVersion, WriteOptions, WriteSummary, ZstdLevel,
};

mod golden;
mod hostile;
mod raw;
mod scanning;
mod writing;
mod zstd;

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

impl Sample {
    fn as_new(&self) -> NewSample<'_> {
        NewSample {
            format: self.format,
            width: self.dimensions.0,
            height: self.dimensions.1,
            key: self.key.as_deref(),
            label: self.label,
            fields: &self.fields,
            ..NewSample::new(&self.bytes)
        }
    }
}

pub(crate) fn write(path: &Path, options: WriteOptions, samples: &[Sample]) -> WriteSummary {
    let mut writer = StreamWriter::create(path, options).unwrap();
    for sample in samples {
        writer.write_sample(&sample.as_new()).unwrap();
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

pub(crate) const fn compressions() -> [Compression; 3] {
    [Compression::None, Compression::Lz4, Compression::Zstd(ZstdLevel::DEFAULT)]
}

fn target(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("t.tbl")
}

#[test]
fn every_way_of_writing_version_2_reads_back_the_same() {
    for compression in compressions() {
        for sample_count in [None, Some(4), Some(9)] {
            let folder = tempfile::tempdir().unwrap();
            let options =
                WriteOptions { compression, sample_count, sync: false, ..Default::default() };
            let summary = write(&target(&folder), options, &samples());
            assert_eq!((summary.samples, summary.sample_bytes), (4, 4265));
            assert_eq!(summary.compressed_samples, u64::from(compression != Compression::None));
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

fn arbitrary_sample() -> impl Strategy<Value = Sample> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 0..100_000usize).prop_map(|(value, len)| vec![value; len]),
    ];
    let extension = prop::collection::vec(any::<u8>(), 0..9)
        .prop_filter("leaves its folder", |extension| check_extension(extension).is_ok());
    let field = (extension, prop::collection::vec(any::<u8>(), 0..99))
        .prop_map(|(extension, bytes)| Field { extension, bytes });
    let key = prop::collection::vec(any::<u8>(), 0..40)
        .prop_filter("is not that of a file", |key| check_new_name(key).is_ok());
    (
        bytes,
        any::<u8>().prop_filter("raw images have their own tests", |&code| code != 8),
        any::<(u16, u16)>(),
        prop::option::of(key),
        prop::option::of(any::<i64>().prop_filter("stands for none", |&label| label != i64::MIN)),
        prop::collection::vec(field, 0..3),
    )
        .prop_map(|(bytes, code, (width, height), key, label, fields)| Sample {
            bytes,
            format: SampleFormat::from_code(code),
            dimensions: (u32::from(width), u32::from(height)),
            key,
            label,
            fields,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_written_reads_back(
        samples in prop::collection::vec(arbitrary_sample(), 0..12),
        compression in prop::sample::select(compressions().to_vec()),
        announced in prop::option::of(0..5u64),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let sample_count = announced.map(|more| samples.len() as u64 + more);
        let options =
            WriteOptions { compression, sample_count, sync: false, ..Default::default() };
        write(&target(&folder), options, &samples);
        let file = TblFile::open(target(&folder)).unwrap();
        prop_assert_eq!(read(&file), samples);
        file.verify_structure().unwrap();
    }
}
