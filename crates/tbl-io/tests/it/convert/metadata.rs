//! Metadata blocks through convert, merge, split and repair.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_format::checksum::payload_crc16;
use tbl_format::metadata::{BlockHeader, MetadataType};
use tbl_format::v2::{EntryFlags, FileFlags, FileHeader, IndexEntry, Payload};
use tbl_format::{SampleFormat, v1};
use tbl_io::{
    AsStored, Compression, ConvertSummary, Field, Labels, MetadataBlock, MetadataDefect, NewSample,
    SampleSource, SampleSourceExt, Selection, StreamWriter, Target, TblFile, TblVersion,
    WriteError, WriteOptions,
};

use super::repair::repair_file;
use super::{convert, open, quick};

const WHOLE_FILE: u64 = BlockHeader::WHOLE_FILE;
const AS_STORED: Target = Target::Tbl2(Compression::AsStored);

fn block(kind: MetadataType, data: &[u8]) -> MetadataBlock {
    MetadataBlock { kind, data: data.to_vec() }
}

fn json(text: &str) -> MetadataBlock {
    block(MetadataType::Json, text.as_bytes())
}

/// A version 2 file as the original writes it: header, index, samples, blocks in this order.
fn original(samples: &[&[u8]], blocks: &[(u64, MetadataBlock)]) -> Vec<u8> {
    let mut offset = (FileHeader::SIZE + IndexEntry::SIZE * samples.len()) as u64;
    let (mut index, mut section) = (Vec::new(), Vec::new());
    for (number, bytes) in samples.iter().enumerate() {
        let size = bytes.len() as u32;
        let checksum = payload_crc16(bytes);
        let payload = Payload { offset, stored_bytes: size, bytes: size, checksum };
        let has_metadata = blocks.iter().any(|(sample, _)| *sample == number as u64);
        let flags = if has_metadata { EntryFlags::HAS_METADATA } else { EntryFlags::NONE };
        index.extend(IndexEntry::new(payload, (0, 0), SampleFormat::Jpeg, flags).to_bytes());
        offset += u64::from(size);
    }
    for (sample, MetadataBlock { kind, data }) in blocks {
        section.extend(BlockHeader::new(*sample, *kind, data.len() as u64).unwrap().to_bytes());
        section.extend(data);
    }
    let metadata = offset..offset + section.len() as u64;
    let header = FileHeader::new(samples.len() as u64, metadata, FileFlags::HAS_CHECKSUMS).unwrap();
    [header.to_bytes().to_vec(), index, samples.concat(), section].concat()
}

/// The blocks of each sample and of the whole file, without our extension blocks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Blocks {
    samples: Vec<Vec<MetadataBlock>>,
    file: Vec<MetadataBlock>,
}

fn blocks_of(path: &Path) -> Blocks {
    let file = TblFile::open(path).unwrap();
    file.verify_structure().unwrap();
    let own = |index| {
        let mut blocks = file.metadata(index).unwrap();
        blocks.retain(|block| !block.is_extension());
        blocks
    };
    Blocks {
        samples: (0..file.sample_count()).map(own).collect(),
        file: file.file_metadata().unwrap(),
    }
}

/// Writes the samples of `from` in parts of at most this many samples.
fn split(from: &Path, samples: u64, folder: &Path) -> Vec<PathBuf> {
    let sources = open(&[from.to_owned()]);
    let labels = Labels::resolve(&sources).unwrap();
    let all = Selection::all(&sources, &labels).unwrap();
    let cut = |part: u64| {
        let path = folder.join(format!("part-{part}"));
        let range = part * samples..(part + 1) * samples;
        let selection = all.part(range);
        let written =
            tbl_io::convert(&selection, &path, &quick(AS_STORED), AsStored::default, &mut |_| {
                std::ops::ControlFlow::Continue(())
            });
        written.unwrap();
        path
    };
    (0..all.sample_count().div_ceil(samples).max(1)).map(cut).collect()
}

/// One step of a file's life that keeps its samples.
#[derive(Clone, Copy, Debug)]
enum Step {
    Convert,
    ConvertWithLz4,
    SplitAndMerge,
    MergeWithNothing,
    Repair,
}

impl Step {
    fn run(self, from: &Path, to: &Path) {
        let folder = tempfile::tempdir().unwrap();
        match self {
            Self::Convert => drop(convert(&[from.to_owned()], to, &quick(AS_STORED))),
            Self::ConvertWithLz4 => {
                let mut options = quick(Target::Tbl2(Compression::Lz4));
                options.workers = 3.try_into().unwrap();
                let summary = convert(&[from.to_owned()], to, &options);
                assert_eq!((summary.unstored, summary.unreachable_metadata), Default::default());
            }
            Self::SplitAndMerge => {
                let parts = split(from, 2, folder.path());
                convert(&parts, to, &quick(AS_STORED));
            }
            Self::MergeWithNothing => {
                let empty = folder.path().join("empty");
                std::fs::write(&empty, original(&[], &[])).unwrap();
                convert(&[from.to_owned(), empty], to, &quick(AS_STORED));
            }
            Self::Repair => {
                let (lost, summary) = repair_file(from, to);
                assert_eq!((lost, summary.is_complete()), (vec![], true));
            }
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    prop::sample::select(vec![
        Step::Convert,
        Step::ConvertWithLz4,
        Step::SplitAndMerge,
        Step::MergeWithNothing,
        Step::Repair,
    ])
}

fn any_block() -> impl Strategy<Value = MetadataBlock> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let kind = prop::sample::select(vec![0, 1, 2, 3, 7, 255]).prop_map(MetadataType::from_code);
    let told = (0..3u8, 0..3i64).prop_map(|(key, label)| match key {
        0 => json(&format!(r#"{{"key":"k{label}","label":{label}}}"#)),
        1 => {
            json(&format!(r#"{{"key": "k{label}", "label": {label}, "extra": {{"camera": "x"}}}}"#))
        }
        _ => json(&format!(r#"{{"name":"n","label":"{label}"}}"#)),
    });
    prop_oneof![(kind, bytes).prop_map(|(kind, data)| block(kind, &data)), told]
}

fn any_blocks() -> impl Strategy<Value = Vec<(u64, MetadataBlock)>> {
    let sample = prop_oneof![4 => 0..5u64, 1 => Just(WHOLE_FILE)];
    prop::collection::vec((sample, any_block()), 0..12)
}

/// The blocks that should be read of a file with these.
fn expected(samples: usize, blocks: &[(u64, MetadataBlock)]) -> Blocks {
    let of = |sample: u64| {
        let found = blocks.iter().filter(|(other, _)| *other == sample);
        found.map(|(_, block)| block.clone()).collect()
    };
    Blocks { samples: (0..samples as u64).map(of).collect(), file: of(WHOLE_FILE) }
}

const SAMPLES: [&[u8]; 5] = [b"one", b"", b"three", &[4; 400], b"five"];

/// Zeros where the length of the rest would be, in a section as long as our first block.
#[test]
fn a_section_that_ends_with_zeros_is_not_taken_for_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros");
    let kind = MetadataType::from_code(0);
    let blocks = [(0, block(kind, &[0; 16])), (0, block(kind, &[]))];
    std::fs::write(&path, original(&SAMPLES, &blocks)).unwrap();
    assert_eq!(blocks_of(&path), expected(SAMPLES.len(), &blocks));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn blocks_of_the_original_survive_every_two_steps(
        blocks in any_blocks(),
        first in any_step(),
        second in any_step(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), original(&SAMPLES, &blocks)).unwrap();
        let expected = expected(SAMPLES.len(), &blocks);
        prop_assert_eq!(&blocks_of(&at("a")), &expected);
        first.run(&at("a"), &at("b"));
        prop_assert_eq!(&blocks_of(&at("b")), &expected, "{:?}", first);
        second.run(&at("b"), &at("c"));
        prop_assert_eq!(blocks_of(&at("c")), expected, "{:?}, {:?}", first, second);
    }

    #[test]
    fn a_merge_of_two_keeps_the_blocks_of_both(
        first in any_blocks(),
        second in any_blocks(),
        step in any_step(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), original(&SAMPLES, &first)).unwrap();
        std::fs::write(at("b"), original(&SAMPLES, &second)).unwrap();
        convert(&[at("a"), at("b")], &at("c"), &quick(AS_STORED));
        let mut expected = expected(SAMPLES.len(), &first);
        let Blocks { samples, mut file } = self::expected(SAMPLES.len(), &second);
        expected.samples.extend(samples);
        file.retain(|block| !expected.file.contains(block));
        expected.file.extend(file);
        prop_assert_eq!(&blocks_of(&at("c")), &expected);
        step.run(&at("c"), &at("d"));
        prop_assert_eq!(blocks_of(&at("d")), expected, "{:?}", step);
    }

    #[test]
    fn blocks_that_are_added_late_survive_every_two_steps(
        blocks in any_blocks(),
        named: bool,
        first in any_step(),
        second in any_step(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let options = WriteOptions { sync: false, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&at("a"), options).unwrap();
        let fields = [Field { extension: b"txt".to_vec(), bytes: b"f".to_vec() }];
        for bytes in SAMPLES {
            let sample = NewSample { fields: &fields, ..NewSample::new(bytes) };
            let key = Some(&b"k"[..]).filter(|_| named);
            writer.write_sample(&NewSample { key, label: Some(1), ..sample }).unwrap();
        }
        for (sample, MetadataBlock { kind, data }) in &blocks {
            let sample = Some(*sample).filter(|&sample| sample != WHOLE_FILE);
            writer.add_metadata(sample, *kind, data).unwrap();
        }
        writer.finish().unwrap();
        let mut expected = expected(SAMPLES.len(), &blocks);
        let ours = json(if named { r#"{"key":"k","label":1}"# } else { r#"{"label":1}"# });
        expected.samples.iter_mut().for_each(|blocks| blocks.push(ours.clone()));
        prop_assert_eq!(&blocks_of(&at("a")), &expected);
        first.run(&at("a"), &at("b"));
        second.run(&at("b"), &at("c"));
        prop_assert_eq!(blocks_of(&at("c")), expected, "{:?}, {:?}", first, second);
    }
}

#[test]
fn added_metadata_is_what_the_original_reader_returns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for key in [b"a", b"b", b"c"] {
        let sample = NewSample { key: Some(key), ..NewSample::new(b"bytes") };
        writer.write_sample(&sample).unwrap();
    }
    writer.write_sample(&NewSample::new(b"without a name")).unwrap();
    for (sample, data) in [(3, "third"), (1, "first"), (3, "again")] {
        writer.add_metadata(Some(sample), MetadataType::Protobuf, data.as_bytes()).unwrap();
    }
    let refused = writer.add_metadata(Some(4), MetadataType::Json, b"{}").unwrap_err();
    let WriteError::Metadata { source, .. } = refused else { panic!("{refused}") };
    assert_eq!(source, MetadataDefect::NoSample { sample_count: 4 });
    for sample in [None, Some(0)] {
        let field = b"TBLX\x01\0\x10\0checksum\x03\0txtfield";
        let refused = writer.add_metadata(sample, MetadataType::Custom, field);
        let WriteError::Metadata { source, .. } = refused.unwrap_err() else { panic!("other") };
        assert_eq!(source, MetadataDefect::Reserved);
    }
    writer.finish().unwrap();
    // The original's reader looks at bit 1 of the entry and takes the first block.
    let bytes = std::fs::read(&path).unwrap();
    let entry = |index| &bytes[FileHeader::SIZE + IndexEntry::SIZE * index..];
    let entries: Vec<_> = (0..4).map(|index| IndexEntry::parse(entry(index)).unwrap()).collect();
    assert!(entries.iter().all(|entry| entry.flags().contains(EntryFlags::HAS_METADATA)));
    let file = TblFile::open(&path).unwrap();
    let first = |index| String::from_utf8(file.metadata(index).unwrap().remove(0).data).unwrap();
    let firsts: Vec<String> = (0..4).map(first).collect();
    assert_eq!(firsts, [r#"{"key":"a"}"#, "first", r#"{"key":"c"}"#, "third"]);
    file.verify_structure().unwrap();
}

#[test]
fn renumbered_classes_renumber_the_label_in_json_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let told = r#"{ "key":"x", "label": 1, "extra": {"camera": "c", "label": 1} }"#;
    for (file, classes) in [("a", ["cat", "dog"]), ("b", ["ant", "bee"])] {
        let mut writer = StreamWriter::create(&at(file), WriteOptions::default()).unwrap();
        writer.set_class_names(&classes.map(str::to_owned));
        let metadata = [json(told), json(r#"{"label": 2}"#), block(MetadataType::MsgPack, b"\x01")];
        let sample = NewSample { key: Some(b"x"), label: Some(1), ..NewSample::new(b"bytes") };
        writer.write_sample(&NewSample { metadata: &metadata, ..sample }).unwrap();
        writer.finish().unwrap();
    }
    convert(&[at("a"), at("b")], &at("c"), &quick(AS_STORED));
    let merged = TblFile::open(at("c")).unwrap();
    assert_eq!(merged.class_names(), ["ant", "bee", "cat", "dog"]);
    let texts = |index| -> Vec<Vec<u8>> {
        let blocks = merged.metadata(index).unwrap().into_iter();
        blocks.map(|block| block.data).collect()
    };
    let renumbered = told.replacen("1", "3", 1).into_bytes();
    assert_eq!(texts(0), [renumbered, br#"{"label": 2}"#.to_vec(), vec![1]]);
    assert_eq!(texts(1), [told.as_bytes().to_vec(), br#"{"label": 2}"#.to_vec(), vec![1]]);
    assert_eq!(merged.entry(0).unwrap().label, Some(3));
}

#[test]
fn merged_files_keep_every_block_of_a_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (x, y) = (json(r#"{"x":1}"#), block(MetadataType::MsgPack, b"y"));
    let z = block(MetadataType::Custom, b"z");
    std::fs::write(at("a"), original(&[b"1"], &[(WHOLE_FILE, x.clone()), (0, y.clone())])).unwrap();
    let both = [(WHOLE_FILE, y.clone()), (WHOLE_FILE, x.clone()), (WHOLE_FILE, y.clone())];
    std::fs::write(at("b"), original(&[b"2"], &both)).unwrap();
    std::fs::write(at("c"), original(&[], &[(WHOLE_FILE, z.clone())])).unwrap();
    let sources = open(&["a", "b", "c"].map(at));
    let labels = Labels::resolve(&sources).unwrap();
    let more = [json("{}")];
    let selection = Selection::all(&sources, &labels).unwrap().with_file_metadata(&more);
    tbl_io::convert(&selection, &at("d"), &quick(AS_STORED), AsStored::default, &mut |_| {
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let merged = blocks_of(&at("d"));
    assert_eq!(merged.file, [x, y.clone(), y.clone(), z, json("{}")]);
    assert_eq!(merged.samples, [vec![y], vec![]]);
}

fn left_out(summary: ConvertSummary) -> (u64, u64) {
    (summary.unstored.metadata_blocks, summary.unreachable_metadata)
}

#[test]
fn what_a_target_has_no_place_for_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let blocks = [
        (WHOLE_FILE, json(r#"{"x":1}"#)),
        (0, block(MetadataType::Protobuf, b"p")),
        (0, json(r#"{"camera":"x"}"#)),
        (1, json(r#"{"key":"k.jpg","label":1}"#)),
        (2, block(MetadataType::MsgPack, b"m")),
        (2, json(r#"{"key":"l.jpg","label":1}"#)),
        (9, json("{}")),
        (WHOLE_FILE, block(MetadataType::Custom, b"TBLX\x02\0\x09\0later version")),
    ];
    std::fs::write(at("a"), original(&[b"1", b"2", b"3"], &blocks)).unwrap();
    let convert = |to: &str, target| left_out(convert(&[at("a")], &at(to), &quick(target)));
    // Keys and labels are counted as such, or kept.
    assert_eq!(convert("a.tar", Target::Tar), (4, 2));
    assert_eq!(convert("a.tbl1", Target::Tbl1), (4, 2));
    assert_eq!(convert("a.tbl", AS_STORED), (0, 2));
    let totals = TblFile::open(at("a")).unwrap().metadata_totals().unwrap();
    let counts = [(MetadataType::Json, 3), (MetadataType::Protobuf, 1), (MetadataType::MsgPack, 1)];
    assert_eq!(totals.samples, counts);
    assert_eq!(totals.file, [(MetadataType::Json, 1)]);
    assert_eq!((totals.without_sample, totals.later_version), (1, 1));
}

#[test]
fn an_empty_object_next_to_fields_is_not_more_than_key_and_label() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut writer = StreamWriter::create(&at("a"), WriteOptions::default()).unwrap();
    let fields = [Field { extension: b"txt".to_vec(), bytes: b"f".to_vec() }];
    writer.write_sample(&NewSample { fields: &fields, ..NewSample::new(b"1") }).unwrap();
    let metadata = [json("{}")];
    writer.write_sample(&NewSample { metadata: &metadata, ..NewSample::new(b"2") }).unwrap();
    writer.finish().unwrap();
    let blocks = blocks_of(&at("a"));
    assert_eq!(blocks.samples, [vec![json("{}")], vec![json("{}")]]);
    for (to, target) in [("b", AS_STORED), ("b.tar", Target::Tar)] {
        let summary = convert(&[at("a")], &at(to), &quick(target));
        assert_eq!(left_out(summary), (0, 0), "{to}");
    }
    assert_eq!(blocks_of(&at("b")), blocks);
}

/// A version 1 file of these samples with the application's fields in its header.
fn version_1(samples: &[&[u8]], custom: v1::CustomMetadata) -> Vec<u8> {
    let count = samples.len() as u64;
    let header = v1::FileHeader::new(count).unwrap().with_custom_metadata(custom);
    let mut offset = v1::index_end(count).unwrap();
    let mut index = Vec::new();
    for bytes in samples {
        let size = bytes.len() as u32;
        index.extend(v1::IndexEntry::new(offset, size, SampleFormat::Jpeg).to_bytes());
        offset += u64::from(size);
    }
    [header.to_bytes().to_vec(), index, samples.concat()].concat()
}

const CUSTOM: v1::CustomMetadata = v1::CustomMetadata {
    creation_timestamp: 1_700_000_000_123,
    dataset_version: 7,
    custom_flags: 0x8000_0001,
};

#[test]
fn fields_of_a_version_1_header_go_through_version_2_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a"), version_1(&SAMPLES, CUSTOM)).unwrap();
    let told = json(
        r#"{"creation_timestamp":1700000000123,"dataset_version":7,"custom_flags":2147483649}"#,
    );
    for (from, to, target) in [
        ("a", "same", Target::Tbl1),
        ("a", "b", AS_STORED),
        ("b", "c", Target::Tbl2(Compression::Lz4)),
        ("c", "back", Target::Tbl1),
    ] {
        let summary = convert(&[at(from)], &at(to), &quick(target));
        assert_eq!(left_out(summary), (0, 0));
        assert_eq!(blocks_of(&at(to)).file, std::slice::from_ref(&told), "{to}");
    }
    let bytes = std::fs::read(at("a")).unwrap();
    assert_eq!(std::fs::read(at("same")).unwrap(), bytes);
    assert_eq!(std::fs::read(at("back")).unwrap(), bytes);
    assert_eq!(left_out(convert(&[at("a")], &at("a.tar"), &quick(Target::Tar))), (1, 0));
    let (lost, summary) = repair_file(&at("a"), &at("saved"));
    assert_eq!((lost, summary.is_complete()), (vec![], true));
    assert_eq!(std::fs::read(at("saved")).unwrap(), bytes);
}

#[test]
fn version_1_files_with_different_fields_say_whose_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let other = v1::CustomMetadata { dataset_version: 8, ..CUSTOM };
    std::fs::write(at("a"), version_1(&[b"1"], CUSTOM)).unwrap();
    std::fs::write(at("b"), version_1(&[b"2"], other)).unwrap();
    std::fs::write(at("c"), version_1(&[b"3"], CUSTOM)).unwrap();
    let shards = ["a", "b", "c"].map(at);
    assert_eq!(left_out(convert(&shards, &at("d"), &quick(Target::Tbl1))), (1, 0));
    assert_eq!(TblFile::open(at("d")).unwrap().custom_metadata(), Some(CUSTOM));
    assert_eq!(left_out(convert(&shards, &at("e"), &quick(AS_STORED))), (0, 0));
    assert_eq!(blocks_of(&at("e")).file.len(), 2);
}

#[test]
fn a_damaged_size_in_a_version_1_header_is_not_taken_for_fields() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let version = TblVersion::V1;
    let options = WriteOptions { version, sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&at("a"), options).unwrap();
    for bytes in SAMPLES {
        writer.write_sample(&NewSample::new(bytes)).unwrap();
    }
    writer.finish().unwrap();
    let bytes = std::fs::read(at("a")).unwrap();
    for position in 16..20 {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x24;
        std::fs::write(at("bad"), damaged).unwrap();
        repair_file(&at("bad"), &at("saved"));
        assert_eq!(std::fs::read(at("saved")).unwrap(), bytes);
    }
}

#[test]
fn a_repair_keeps_the_blocks_of_kept_samples() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let blocks: Vec<_> = (0..5)
        .map(|sample| (sample, json(&format!(r#"{{"camera":{sample}}}"#))))
        .chain([(WHOLE_FILE, block(MetadataType::Protobuf, b"p"))])
        .collect();
    let mut bytes = original(&SAMPLES, &blocks);
    let first = FileHeader::SIZE + IndexEntry::SIZE * SAMPLES.len();
    bytes[first] ^= 1;
    std::fs::write(at("a"), bytes).unwrap();
    let (lost, _) = repair_file(&at("a"), &at("b"));
    assert_eq!(lost, [0]);
    let mut expected = expected(5, &blocks);
    expected.samples.remove(0);
    assert_eq!(blocks_of(&at("b")), expected);
}
