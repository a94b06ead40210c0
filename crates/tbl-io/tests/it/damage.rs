//! Damage of the index and the metadata section of files that our writer made: a reader returns the
//! content of the whole file or an error, and a copy is the content of the whole file or refused.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use tbl_format::SampleFormat;
use tbl_format::metadata::MetadataType;
use tbl_io::{
    AsStored, Compression, ConvertOptions, Field, Labels, MetadataBlock, NewSample, ReadError,
    ReadOptions, RepairOptions, SampleSource, SampleSourceExt, Selection, Source, Stores,
    StreamWriter, Target, TblFile, WriteOptions, repair, verify,
};

const HEADER: usize = 64;
const COUNT: u64 = 4;

/// The content of a test file besides the bytes of its samples.
#[derive(Clone, Copy, Debug)]
struct Parts {
    names: bool,
    labels: bool,
    fields: bool,
    /// JSON of the application with `key` and `label`.
    json: bool,
}

const FILES: [Parts; 6] = [
    Parts { names: true, labels: true, fields: true, json: false },
    Parts { names: true, labels: false, fields: true, json: false },
    Parts { names: false, labels: true, fields: false, json: false },
    Parts { names: false, labels: false, fields: false, json: true },
    Parts { names: true, labels: true, fields: true, json: true },
    Parts { names: false, labels: false, fields: false, json: false },
];

fn file(parts: Parts) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    if parts.labels {
        writer.set_class_names(&["cat".to_owned(), "dog".to_owned()]);
        writer.set_box_class_names(&["dog".to_owned(), String::new(), "cat".to_owned()]);
    }
    for number in 0..COUNT {
        let key = format!("set/{number:02}.png");
        let json = format!(r#"{{"key":"{key}","label":{},"x":1}}"#, number + 3);
        let json = [MetadataBlock { kind: MetadataType::Json, data: json.into_bytes() }];
        let field = |extension: &str| Field {
            extension: extension.as_bytes().to_vec(),
            bytes: format!("{extension} of {number}").into_bytes(),
        };
        let fields = [field("txt"), field("seg.png")];
        let bytes = format!("sample number {number}");
        writer
            .write_sample(&NewSample {
                format: SampleFormat::Png,
                width: 3,
                height: 5,
                key: parts.names.then_some(key.as_bytes()),
                label: parts.labels.then_some((number % 2) as i64),
                fields: if parts.fields { &fields } else { &[] },
                metadata: if parts.json { &json } else { &[] },
                ..NewSample::new(bytes.as_bytes())
            })
            .unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// The parts of a file that `change` is tried on: all bytes but the header's and the samples'.
fn places(whole: &[u8]) -> Vec<usize> {
    let index_end = HEADER + 24 * COUNT as usize;
    let metadata = u64::from_le_bytes(*whole[24..].first_chunk().unwrap()) as usize;
    (HEADER..index_end).chain(metadata..whole.len()).collect()
}

/// Every damaged form of `whole` that the tests look at, with a description.
fn damaged(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for place in places(whole) {
        for bit in 0..8 {
            let mut bytes = whole.to_vec();
            bytes[place] ^= 1 << bit;
            files.push((format!("bit {bit} of byte {place}"), bytes));
        }
        let mut bytes = whole.to_vec();
        let end = (place + 16).min(whole.len());
        bytes[place..end].fill(0);
        files.push((format!("zeros from byte {place} on"), bytes));
        if place + 1 < whole.len() {
            let mut bytes = whole.to_vec();
            bytes.swap(place, place + 1);
            files.push((format!("bytes {place} and {} exchanged", place + 1), bytes));
        }
    }
    files.retain(|(_, bytes)| bytes != whole);
    files
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    key: Option<Vec<u8>>,
    label: Option<i64>,
}

fn open(bytes: &[u8]) -> Result<TblFile, ReadError> {
    TblFile::from_source(Source::from_bytes("t.tbl", bytes.to_vec()), ReadOptions::default())
}

fn content(source: &dyn SampleSource, index: u64) -> Result<Content, ReadError> {
    let entry = source.entry(index)?;
    Ok(Content { key: entry.key.map(|key| key.into_owned()), label: entry.label })
}

fn bytes_of(source: &dyn SampleSource, index: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    source.read_into(index, &mut bytes).map(|()| bytes)
}

fn fields_of(source: &dyn SampleSource, index: u64) -> Result<Vec<Field>, ReadError> {
    let mut fields = Vec::new();
    source.read_fields(index, &mut fields).map(|()| fields)
}

/// The fields `txt` of a sample, which has one if it has any fields.
fn texts_of(source: &dyn SampleSource, index: u64) -> Result<Vec<Field>, ReadError> {
    let mut fields = Vec::new();
    source.read_fields_where(index, &mut |extension, _| extension == b"txt", &mut fields)?;
    if fields.is_empty() {
        source.check_fields(index)?;
    }
    Ok(fields)
}

fn same_or_damage<T: PartialEq + std::fmt::Debug>(
    found: Result<T, ReadError>,
    expected: &T,
    what: &str,
) {
    match found {
        Ok(found) => assert_eq!(found, *expected, "{what}"),
        Err(error) => assert!(error.is_damage(), "{what}: {error}"),
    }
}

#[test]
fn damage_is_an_error_or_changes_nothing_that_is_read() {
    for parts in FILES {
        let whole = file(parts);
        let sound: [Box<dyn SampleSource>; 1] = [Box::new(open(&whole).unwrap())];
        let labels = Labels::resolve(&sound).unwrap();
        let sound_file = &*sound[0];
        for (what, bytes) in damaged(&whole) {
            let what = format!("{parts:?}: {what}");
            let file = match open(&bytes) {
                Ok(file) => file,
                Err(error) => {
                    assert!(error.is_damage(), "{what}: {error}");
                    continue;
                }
            };
            assert_eq!(file.class_names(), sound_file.class_names(), "{what}");
            assert_eq!(file.box_class_names(), sound_file.box_class_names(), "{what}");
            assert_eq!(file.sample_count(), COUNT, "{what}");
            for index in 0..COUNT {
                same_or_damage(content(&file, index), &content(sound_file, index).unwrap(), &what);
                let expected = bytes_of(sound_file, index).unwrap();
                same_or_damage(bytes_of(&file, index), &expected, &what);
                let expected = fields_of(sound_file, index).unwrap();
                same_or_damage(fields_of(&file, index), &expected, &what);
                same_or_damage(
                    texts_of(&file, index),
                    &texts_of(sound_file, index).unwrap(),
                    &what,
                );
            }
            let sources: [Box<dyn SampleSource>; 1] = [Box::new(file)];
            let found = match Labels::resolve(&sources) {
                Ok(found) => found,
                Err(error) => {
                    assert!(error.is_damage(), "{what}: {error}");
                    continue;
                }
            };
            for index in 0..COUNT {
                let expected = labels.label(0, index);
                same_or_damage(found.try_label(&sources, 0, index), &expected, &what);
            }
        }
    }
}

#[test]
fn a_scan_of_a_damaged_file_finds_what_its_entries_say() {
    for parts in FILES {
        for (what, bytes) in damaged(&file(parts)) {
            let Ok(file) = open(&bytes) else { continue };
            let mut found = Vec::new();
            let is_scanned = file.scan(0..file.sample_count(), &mut |sample| {
                found.push(sample.ok().map(|sample| sample.key.map(<[u8]>::to_vec)));
                ControlFlow::Continue(())
            });
            if is_scanned.unwrap() {
                let by_entry: Vec<_> = (0..COUNT)
                    .map(|index| content(&file, index).ok().map(|content| content.key))
                    .collect();
                assert_eq!(found, by_entry, "{parts:?}: {what}");
            }
        }
    }
}

/// Blocks of applications have no checksum but that of the whole section.
#[test]
fn metadata_of_applications_is_undamaged_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    writer.write_sample(&NewSample { key: Some(b"a.png"), ..NewSample::new(b"png") }).unwrap();
    writer.add_metadata(Some(0), MetadataType::Json, b"{\"of\":\"sample\"}").unwrap();
    writer.add_metadata(None, MetadataType::Json, b"{\"of\":\"file\"}").unwrap();
    writer.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let sound = open(&whole).unwrap();
    let expected = (sound.metadata(0).unwrap(), sound.file_metadata().unwrap());
    assert_eq!((expected.0.len(), expected.1.len()), (2, 1));
    for (what, bytes) in damaged(&whole) {
        let Ok(file) = open(&bytes) else { continue };
        if let Ok(found) = file.metadata(0) {
            assert_eq!(found, expected.0, "{what}");
        }
        if let Ok(found) = file.file_metadata() {
            assert_eq!(found, expected.1, "{what}");
        }
    }
}

/// Whether `tl verify` would call the file good.
fn is_good(path: &Path) -> bool {
    let go_on = &mut |_: tbl_io::Finding<'_>| ControlFlow::Continue(());
    verify(&Stores::new(), &[path], NonZeroUsize::MIN, AsStored::default, go_on)
        .is_ok_and(|summary| summary.is_good())
}

/// Copies the file as `tl convert` does; whether there is a copy.
fn try_copy(from: &Path, to: &Path) -> bool {
    let copy = || -> Result<(), tbl_io::ConvertError> {
        let sources = [tbl_io::open(from)?];
        let labels = Labels::resolve(&sources)?;
        let selection = Selection::all(&sources, &labels)?;
        let mut options = ConvertOptions::new(Target::Tbl2(Compression::None));
        options.sync = false;
        let go_on = &mut |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
        tbl_io::convert(&selection, to, &options, AsStored::default, go_on).map(drop)
    };
    match copy() {
        Ok(()) => true,
        Err(error) => {
            assert!(error.is_damage(), "{error}");
            assert!(!to.exists(), "{error}");
            false
        }
    }
}

#[test]
fn what_verify_refuses_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for parts in FILES {
        let whole = file(parts);
        std::fs::write(at("whole"), &whole).unwrap();
        assert!(is_good(&at("whole")) && try_copy(&at("whole"), &at("copy")));
        let expected = std::fs::read(at("copy")).unwrap();
        std::fs::remove_file(at("copy")).unwrap();
        for (what, bytes) in damaged(&whole).into_iter().step_by(5) {
            std::fs::write(at("bad"), &bytes).unwrap();
            let is_good = is_good(&at("bad"));
            let is_copied = try_copy(&at("bad"), &at("copy"));
            assert_eq!(is_good, is_copied, "{parts:?}: {what}");
            if is_copied {
                assert_eq!(std::fs::read(at("copy")).unwrap(), expected, "{parts:?}: {what}");
                std::fs::remove_file(at("copy")).unwrap();
            }
        }
    }
}

/// Samples that a repair keeps have their own label or none, in the copy too.
#[test]
fn a_repair_keeps_no_damaged_label() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = RepairOptions { sync: false, overwrite: true };
    for parts in FILES {
        let whole = file(parts);
        let sound = open(&whole).unwrap();
        for (what, bytes) in damaged(&whole).into_iter().step_by(7) {
            let what = format!("{parts:?}: {what}");
            std::fs::write(at("bad"), &bytes).unwrap();
            let summary = repair(&at("bad"), &at("saved"), options, AsStored, &mut |_| {}).unwrap();
            assert_eq!(summary.kept + summary.lost, COUNT, "{what}");
            let file = TblFile::open(at("saved")).unwrap();
            let mut missing = 0;
            for index in 0..file.sample_count() {
                let bytes = bytes_of(&file, index).unwrap();
                let number = u64::from(bytes[bytes.len() - 1] - b'0');
                let found = content(&file, index).unwrap();
                let expected = content(&sound, number).unwrap();
                assert!(found.label.is_none() || found.label == expected.label, "{what}");
                missing += u64::from(found.label != expected.label);
            }
            assert!(missing == 0 || !summary.is_complete(), "{what}: {summary:?}");
        }
    }
}
