//! The writer's limits, failures and promises about the target.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tbl_format::v2::Codec;
use tbl_format::{FormatError, SampleFormat, v1, v2};
use tbl_io::{
    Compressed, Compression, EncodeError, Field, NewSample, SampleSource, SampleSourceExt,
    StreamWriter, TblFile, TblVersion, WriteError, WriteOptions,
};

use super::{compressions, target};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_empty_compressed_file_has_the_original_writers_bytes() {
    // The whole of `empty_lz4.tbl`.
    let mut expected = [0; 64];
    expected[..8].copy_from_slice(b"TBL\x02\x02\0\0\0");
    expected[16] = 64;
    expected[40] = 5;
    expected[44..48].copy_from_slice(&0x92E7_AF04_u32.to_le_bytes());
    for sample_count in [None, Some(0), Some(100)] {
        let folder = tempfile::tempdir().unwrap();
        let options =
            WriteOptions { compression: Compression::Lz4, sample_count, ..Default::default() };
        let summary = StreamWriter::create(&target(&folder), options).unwrap().finish().unwrap();
        assert_eq!(summary.bytes, 64);
        assert_eq!(fs::read(target(&folder)).unwrap(), expected);
    }
}

#[test]
fn an_empty_version_1_file_is_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions { version: TblVersion::V1, ..Default::default() };
    StreamWriter::create(&target(&folder), options).unwrap().finish().unwrap();
    assert_eq!(fs::read(target(&folder)).unwrap(), v1::FileHeader::new(0).unwrap().to_bytes());
}

#[test]
fn nothing_has_the_name_before_finish_and_dropping_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for sample_count in [None, Some(1)] {
        let options = WriteOptions { sample_count, ..Default::default() };
        let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
        writer.write_sample(&NewSample::new(&[1; 200_000])).unwrap();
        assert!(!target(&folder).exists());
        drop(writer);
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
}

#[test]
fn an_existing_file_is_replaced_only_when_allowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(target(&folder), b"old").unwrap();
    let error = StreamWriter::create(&target(&folder), WriteOptions::default()).unwrap_err();
    assert!(
        matches!(&error, WriteError::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    );
    let options = WriteOptions { overwrite: true, ..Default::default() };
    let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
    writer.write_sample(&NewSample::new(b"new")).unwrap();
    assert_eq!(fs::read(target(&folder)).unwrap(), b"old");
    writer.finish().unwrap();
    assert_eq!(TblFile::open(target(&folder)).unwrap().sample_count(), 1);
    assert_eq!(names(folder.path()), ["t.tbl"]);
}

#[test]
fn more_samples_than_announced_are_refused_and_fewer_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions { sample_count: Some(1), ..Default::default() };
    let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
    writer.write_sample(&NewSample::new(b"one")).unwrap();
    let error = writer.write_sample(&NewSample::new(b"two")).unwrap_err();
    assert!(matches!(error, WriteError::TooManySamples { limit: 1, .. }));
    assert_eq!(writer.finish().unwrap().samples, 1);
}

#[test]
fn counts_beyond_the_header_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (version, limit) in [
        (TblVersion::V1, v1::FileHeader::MAX_SAMPLES),
        (TblVersion::V2, v2::FileHeader::MAX_SAMPLES),
    ] {
        let options = |count| WriteOptions {
            version,
            sample_count: Some(count),
            sync: false,
            ..Default::default()
        };
        match StreamWriter::create(&target(&folder), options(limit + 1)).unwrap_err() {
            WriteError::Format { source, .. } => {
                assert_eq!(source, FormatError::TooManySamples { sample_count: limit + 1, limit });
            }
            other => panic!("{other}"),
        }
        // The largest count leaves a hole of up to 4 GiB, which takes no room on the disk.
        let mut writer = StreamWriter::create(&target(&folder), options(limit)).unwrap();
        writer.write_sample(&NewSample::new(b"one")).unwrap();
        let summary = writer.finish().unwrap();
        assert!(summary.bytes > u64::from(u32::MAX) - 64);
        let file = TblFile::open(target(&folder)).unwrap();
        let mut bytes = Vec::new();
        file.read_into(0, &mut bytes).unwrap();
        assert_eq!(bytes, b"one");
        fs::remove_file(target(&folder)).unwrap();
    }
}

#[test]
fn samples_the_format_cannot_hold_are_refused_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StreamWriter::create(&target(&folder), WriteOptions::default()).unwrap();
    writer.write_sample(&NewSample::new(b"one")).unwrap();
    let mut check = |sample: NewSample<'_>, expected: EncodeError| match writer
        .write_sample(&sample)
        .unwrap_err()
    {
        WriteError::Sample { index: 1, source, .. } => assert_eq!(source, expected),
        other => panic!("{other}"),
    };
    let (width, height, limit) = (65_536, 1, 65_535);
    check(
        NewSample { width, height, ..NewSample::new(b"x") },
        EncodeError::Dimensions { width, height, limit },
    );
    let (width, height) = (u32::MAX, u32::MAX);
    check(
        NewSample { width, height, ..NewSample::new(b"x") },
        EncodeError::Dimensions { width, height, limit },
    );
    let (width, height, format) = (2, 2, SampleFormat::RawU8);
    check(
        NewSample { width, height, format, ..NewSample::new(b"x") },
        EncodeError::RawSize { width, height, bytes: 1, expected: 12 },
    );
    for (width, height) in [(0, 0), (0, 7), (7, 0)] {
        check(
            NewSample { width, height, format, ..NewSample::new(b"") },
            EncodeError::EmptyRaw { width, height },
        );
    }
    let label = i64::MIN;
    check(NewSample { label: Some(label), ..NewSample::new(b"x") }, EncodeError::Label { label });
    writer.write_sample(&NewSample::new(b"two")).unwrap();
    assert_eq!(writer.finish().unwrap().samples, 2);
}

#[test]
fn version_1_refuses_formats_it_has_no_code_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions { version: TblVersion::V1, ..Default::default() };
    let writer = StreamWriter::create(&target(&folder), options).unwrap();
    let encode =
        |format| writer.encoder().encode(&NewSample { format, ..NewSample::new(b"x") }).map(|_| ());
    assert_eq!(encode(SampleFormat::Tiff), Ok(()));
    let format = SampleFormat::VideoMp4;
    assert_eq!(encode(format), Err(EncodeError::Format { format }));
}

#[test]
fn samples_that_do_not_shrink_are_stored_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(5000)
    .collect();
    let [_, lz4, zstd] = compressions();
    for (compression, codec) in [(lz4, Codec::Lz4), (zstd, Codec::Zstd)] {
        let options = WriteOptions { compression, overwrite: true, ..Default::default() };
        let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
        for bytes in [&noise[..], b"", b"a", &[9; 5000]] {
            writer.write_sample(&NewSample::new(bytes)).unwrap();
        }
        let summary = writer.finish().unwrap();
        assert_eq!((summary.samples, summary.compressed_samples), (4, 1));
        let file = TblFile::open(target(&folder)).unwrap();
        let codecs: Vec<_> = (0..4).map(|index| file.codec(index).unwrap()).collect();
        assert_eq!(codecs, [None, None, None, Some(codec)]);
    }
}

#[test]
fn a_stored_block_can_be_copied_without_compressing_again() {
    let folder = tempfile::tempdir().unwrap();
    let [_, lz4, zstd] = compressions();
    for compression in [lz4, zstd] {
        let options = WriteOptions { compression, overwrite: true, ..Default::default() };
        let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
        writer.write_sample(&NewSample::new(&[9; 5000])).unwrap();
        writer.finish().unwrap();

        let file = TblFile::open(target(&folder)).unwrap();
        let (mut bytes, mut block) = (Vec::new(), Vec::new());
        let codec = file.read_with_block(0, &mut bytes, &mut block).unwrap().unwrap();
        let copy = folder.path().join("copy.tbl");
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&copy, options).unwrap();
        let sample = NewSample::new(&bytes);
        let compressed = Compressed { codec, bytes: block };
        let encoded = writer.encoder().encode_compressed(&sample, compressed).unwrap();
        writer.write(&encoded, &bytes).unwrap();
        writer.finish().unwrap();
        assert_eq!(fs::read(copy).unwrap(), fs::read(target(&folder)).unwrap());
    }
}

#[test]
fn class_names_and_many_names_survive() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteOptions { sync: false, ..Default::default() };
    let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
    let classes = ["cat".to_string(), String::new(), "日本".to_string()];
    writer.set_class_names(&classes);
    // More names than one block takes, with a gap.
    let key = |index: u64| (index != 70_000).then(|| format!("folder/{index}.jpg").into_bytes());
    for index in 0..140_000 {
        let key = key(index);
        writer.write_sample(&NewSample { key: key.as_deref(), ..NewSample::new(b"") }).unwrap();
    }
    writer.finish().unwrap();
    let file = TblFile::open(target(&folder)).unwrap();
    assert_eq!(file.class_names(), classes);
    for index in [0, 1, 65_535, 65_536, 69_999, 70_000, 70_001, 139_999] {
        assert_eq!(file.entry(index).unwrap().key.as_deref(), key(index).as_deref(), "{index}");
    }
    file.verify_structure().unwrap();
}

#[test]
fn a_missing_folder_is_an_error_that_names_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/t.tbl");
    let error = StreamWriter::create(&missing, WriteOptions::default()).unwrap_err();
    assert!(matches!(&error, WriteError::Io { path, source }
        if *path == missing && source.kind() == ErrorKind::NotFound));
}

/// Names the target to the copy of this test that runs under a limit on file sizes.
const LIMITED_TARGET: &str = "TBL_TEST_LIMITED_TARGET";

/// A write beyond the limit fails like one to a full disk. The limit holds for a whole process, so
/// this test runs itself in another one.
#[test]
fn a_write_that_fails_leaves_nothing_and_the_writer_stays_failed() {
    if let Some(target) = std::env::var_os(LIMITED_TARGET) {
        return write_beyond_the_limit(Path::new(&target));
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "tbl::writing::a_write_that_fails_leaves_nothing_and_the_writer_stays_failed";
    let status = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 600; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(LIMITED_TARGET, target(&folder))
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

fn write_beyond_the_limit(target: &Path) {
    for sample_count in [None, Some(100)] {
        let options = WriteOptions { sample_count, ..Default::default() };
        let mut writer = StreamWriter::create(target, options).unwrap();
        let error = (0..100)
            .find_map(|_| writer.write_sample(&NewSample::new(&[1; 70_000])).err())
            .unwrap();
        assert!(matches!(&error, WriteError::Io { path, source }
            if path == target && source.kind() == ErrorKind::FileTooLarge));
        let again = writer.write_sample(&NewSample::new(b"small")).unwrap_err();
        assert!(matches!(again, WriteError::AfterFailure { .. }));
        assert!(matches!(writer.finish().unwrap_err(), WriteError::AfterFailure { .. }));
    }
    // Small enough to be gathered in memory, so that only finishing writes it.
    let mut writer = StreamWriter::create(target, WriteOptions::default()).unwrap();
    for index in 0..40_000u32 {
        writer.write_sample(&NewSample::new(&index.to_le_bytes())).unwrap();
    }
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, WriteError::Io { source, .. }
        if source.kind() == ErrorKind::FileTooLarge));
}

#[test]
fn a_name_that_is_not_that_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StreamWriter::create(&target(&folder), WriteOptions::default()).unwrap();
    for key in ["", ".", "a/", "a//b.jpg", "./a.jpg", "a/./b.jpg"] {
        let sample = NewSample { key: Some(key.as_bytes()), ..NewSample::new(b"bytes") };
        let error = writer.write_sample(&sample).unwrap_err();
        assert!(error.to_string().contains("a component is empty or `.`"), "{key}: {error}");
    }
    let sample = NewSample { key: Some(b"a/.b..jpg"), ..NewSample::new(b"bytes") };
    writer.write_sample(&sample).unwrap();
    assert_eq!(writer.finish().unwrap().samples, 1);
}

#[test]
fn a_label_beyond_the_class_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let labelled = |label| NewSample { label: Some(label), ..NewSample::new(b"bytes") };
    let classes = ["cat".to_owned(), "dog".to_owned()];
    let mut writer = StreamWriter::create(&target(&folder), WriteOptions::default()).unwrap();
    writer.set_class_names(&classes);
    let error = writer.write_sample(&labelled(2)).unwrap_err();
    let expected = "sample 0: label 2 has no class name, expected a label below 2";
    assert!(error.to_string().ends_with(expected), "{error}");
    for label in [1, -1] {
        writer.write_sample(&labelled(label)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().samples, 2);
    fs::remove_file(target(&folder)).unwrap();
    // The class names come last.
    let mut writer = StreamWriter::create(&target(&folder), WriteOptions::default()).unwrap();
    for label in [1, 7, 7, 3] {
        writer.write_sample(&labelled(label)).unwrap();
    }
    writer.set_class_names(&classes);
    let error = writer.finish().unwrap_err();
    let expected = "sample 1: label 7 has no class name, expected a label below 2";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(!target(&folder).exists());
}

#[test]
fn more_fields_than_readers_accept_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let field = |number: u32| Field { extension: number.to_string().into(), bytes: b"x".to_vec() };
    let write = |counts: &[u32]| {
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&target(&folder), options).unwrap();
        for &count in counts {
            let fields: Vec<Field> = (0..count).map(field).collect();
            let sample = NewSample { fields: &fields, ..NewSample::new(b"bytes") };
            writer.write_sample(&sample).unwrap();
        }
        writer.finish()
    };
    let error = write(&[1, 1600]).unwrap_err().to_string();
    let expected = "metadata of sample 1: the file has more than the 1536 blocks (fields included)";
    assert!(error.contains(expected), "{error}");
    assert!(!target(&folder).exists());
    // 256 for each sample and 1024 more, of which one for each sample is not a field.
    write(&[1, 2 * 256 + 1024 - 3]).unwrap();
    let file = TblFile::open(target(&folder)).unwrap();
    let mut fields = Vec::new();
    file.read_fields(1, &mut fields).unwrap();
    assert_eq!(fields.len(), 2 * 256 + 1024 - 3);
    file.verify_structure().unwrap();
}
