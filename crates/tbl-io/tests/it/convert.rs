//! Conversion between all kinds of data sets, and what splitting and merging keep.

mod metadata;
mod mutations;
mod repair;
mod unlabelled;
mod verify;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_io::{
    AsStored, Compression, ConvertError, ConvertEvent, ConvertOptions, ConvertSummary, Entry,
    Field, Labels, NewSample, Prepare, Prepared, SampleSource, SampleSourceExt, Selection,
    StreamWriter, TarArchive, TarOptions, TarWriter, Target, TblFile, Unstored, WriteOptions,
    ZstdLevel,
};

type Members = Vec<(Vec<u8>, Vec<u8>)>;

/// A sample as every source shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    key: Option<Vec<u8>>,
    label: Option<i64>,
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

fn see(sources: &[Box<dyn SampleSource>]) -> Vec<Seen> {
    let labels = Labels::resolve(sources).unwrap();
    let mut seen = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for index in 0..source.sample_count() {
            let key = source.entry(index).unwrap().key.map(|key| key.into_owned());
            let (mut bytes, mut fields) = (Vec::new(), Vec::new());
            source.read_into(index, &mut bytes).unwrap();
            source.read_fields(index, &mut fields).unwrap();
            seen.push(Seen { key, label: labels.label(number, index), bytes, fields });
        }
    }
    seen
}

fn open(paths: &[PathBuf]) -> Vec<Box<dyn SampleSource>> {
    paths.iter().map(|path| tbl_io::open(path).unwrap()).collect()
}

fn quick(target: Target) -> ConvertOptions {
    let mut options = ConvertOptions::new(target);
    options.sync = false;
    options
}

fn convert(from: &[PathBuf], to: &Path, options: &ConvertOptions) -> ConvertSummary {
    let sources = open(from);
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    tbl_io::convert(&selection, to, options, AsStored::default, &mut |_| ControlFlow::Continue(()))
        .unwrap()
}

fn write_tar(path: &Path, members: &[(&[u8], &[u8])]) {
    let options = TarOptions { sync: false, overwrite: true };
    let mut writer = TarWriter::create(path, options).unwrap();
    for (name, bytes) in members {
        writer.append(name, bytes).unwrap();
    }
    writer.finish().unwrap();
}

fn read_tar(path: &Path) -> Members {
    let mut archive = tar::Archive::new(std::fs::File::open(path).unwrap());
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            (entry.path_bytes().into_owned(), bytes)
        })
        .collect()
}

fn sorted(mut members: Members) -> Members {
    members.sort();
    members
}

/// Photographs compress badly; this does not.
fn compressible(number: usize) -> Vec<u8> {
    (0..2000 + 100 * number).map(|at| (at / 50 + number) as u8).collect()
}

/// WebDataset members with explicit labels and every kind of sidecar.
fn labelled() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut members = Vec::new();
    for number in 0..20 {
        let name = |extension: &str| format!("set/{number:04}.{extension}").into_bytes();
        members.push((name("jpg"), compressible(number)));
        members.push((name("cls"), (number % 3).to_string().into_bytes()));
        members.push((name("json"), format!("{{\"id\": {number}}}").into_bytes()));
        members.push((name("seg.png"), vec![number as u8; number]));
    }
    members
}

fn borrow(members: &Members) -> Vec<(&[u8], &[u8])> {
    members.iter().map(|(name, bytes)| (&**name, &**bytes)).collect()
}

const EVERY_TBL2: [Target; 3] = [
    Target::Tbl2(Compression::None),
    Target::Tbl2(Compression::Lz4),
    Target::Tbl2(Compression::Zstd(ZstdLevel::DEFAULT)),
];

#[test]
fn an_archive_comes_back_with_the_same_members() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    for target in EVERY_TBL2 {
        let summary = convert(&[at("in.tar")], &at("a.tbl"), &quick(target));
        assert_eq!(summary.samples, 20);
        assert_eq!(see(&open(&[at("in.tar")])), see(&open(&[at("a.tbl")])));
        convert(&[at("a.tbl")], &at("back.tar"), &quick(Target::Tar));
        assert_eq!(sorted(read_tar(&at("back.tar"))), sorted(labelled()));
        std::fs::remove_file(at("a.tbl")).unwrap();
        std::fs::remove_file(at("back.tar")).unwrap();
    }
}

#[test]
fn labels_of_class_folders_survive_without_new_members() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let members: Members = ["b/1.jpg", "a/1.jpg", "c/x.png", "a/2.jpg"]
        .iter()
        .map(|name| (name.as_bytes().to_vec(), name.as_bytes().to_vec()))
        .collect();
    write_tar(&at("in.tar"), &borrow(&members));
    convert(&[at("in.tar")], &at("a.tbl"), &quick(EVERY_TBL2[0]));
    let tbl = TblFile::open(at("a.tbl")).unwrap();
    assert_eq!(tbl.class_names(), ["a", "b", "c"]);
    let labels: Vec<_> = (0..4).map(|index| tbl.entry(index).unwrap().label).collect();
    assert_eq!(labels, [Some(1), Some(0), Some(2), Some(0)]);
    convert(&[at("a.tbl")], &at("back.tar"), &quick(Target::Tar));
    assert_eq!(read_tar(&at("back.tar")), members);
    // A part of it has other class folders, so that its labels have to be said.
    let sources = open(&[at("a.tbl")]);
    let resolved = Labels::resolve(&sources).unwrap();
    let part = Selection::all(&sources, &resolved).unwrap().part(0..1);
    tbl_io::convert(&part, &at("part.tar"), &quick(Target::Tar), AsStored::default, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let said = (b"b/1.cls".to_vec(), b"1".to_vec());
    assert_eq!(read_tar(&at("part.tar")), [members[0].clone(), said]);
}

#[test]
fn a_folder_becomes_a_file_with_its_classes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["dog/1.jpg", "cat/7.png", "cat/8.png"] {
        let path = at("photos").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    convert(&[at("photos")], &at("a.tbl"), &quick(EVERY_TBL2[1]));
    let tbl = TblFile::open(at("a.tbl")).unwrap();
    assert_eq!(tbl.class_names(), ["cat", "dog"]);
    assert_eq!(see(&open(&[at("photos")])), see(&open(&[at("a.tbl")])));
}

#[test]
fn labels_without_a_field_become_cls_members() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut writer = StreamWriter::create(&at("a.tbl"), WriteOptions::default()).unwrap();
    let old = [Field { extension: b"cls".to_vec(), bytes: b"2".to_vec() }];
    for sample in [
        NewSample { key: Some(b"x.jpg"), label: Some(7), ..NewSample::new(b"one") },
        NewSample { key: Some(b"y.jpg"), label: Some(9), fields: &old, ..NewSample::new(b"two") },
        NewSample { key: None, format: tbl_format::SampleFormat::Png, ..NewSample::new(b"three") },
    ] {
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    convert(&[at("a.tbl")], &at("b.tar"), &quick(Target::Tar));
    let archive = TarArchive::open(at("b.tar")).unwrap();
    let labels: Vec<_> = (0..3).map(|index| archive.entry(index).unwrap().label).collect();
    assert_eq!(labels, [Some(7), Some(9), None]);
    assert_eq!(archive.entry(2).unwrap().key.as_deref(), Some(&b"00000002.png"[..]));
}

#[test]
fn merging_brings_class_names_together_and_copies_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let zstd = Compression::Zstd(ZstdLevel::DEFAULT);
    for (file, classes, compression) in
        [("a", ["cat", "dog"], Compression::Lz4), ("b", ["ant", "cat"], zstd)]
    {
        let options = WriteOptions { compression, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&at(file), options).unwrap();
        writer.set_class_names(&classes.map(str::to_owned));
        for (number, label) in [(0, 0), (1, 1)] {
            let bytes = compressible(number);
            let sample = NewSample { label: Some(label), ..NewSample::new(&bytes) };
            writer.write_sample(&sample).unwrap();
        }
        writer.finish().unwrap();
    }
    let as_stored = quick(Target::Tbl2(Compression::AsStored));
    let summary = convert(&[at("a"), at("b")], &at("c"), &as_stored);
    assert_eq!(summary.compressed_samples, 4);
    let merged = TblFile::open(at("c")).unwrap();
    assert_eq!(merged.class_names(), ["ant", "cat", "dog"]);
    let labels: Vec<_> = (0..4).map(|index| merged.entry(index).unwrap().label).collect();
    assert_eq!(labels, [Some(1), Some(2), Some(0), Some(1)]);
    assert!(merged.flags().contains(tbl_format::v2::FileFlags::COMPRESSED));
    let stored = |file: &str, index| {
        let tbl = TblFile::open(at(file)).unwrap();
        let entry = tbl.entry(index).unwrap();
        let file = std::fs::read(at(file)).unwrap();
        file[entry.offset as usize..][..entry.stored_bytes as usize].to_vec()
    };
    for (index, from) in [("a", 0), ("a", 1), ("b", 0), ("b", 1)].into_iter().enumerate() {
        assert_eq!(stored("c", index as u64), stored(from.0, from.1));
    }
}

#[test]
fn parts_joined_again_are_the_whole_byte_for_byte() {
    for target in EVERY_TBL2 {
        join_parts(target);
    }
}

fn join_parts(target: Target) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    convert(&[at("in.tar")], &at("whole"), &quick(target));
    let as_stored = quick(Target::Tbl2(Compression::AsStored));
    let sources = open(&[at("whole")]);
    let labels = Labels::resolve(&sources).unwrap();
    let all = Selection::all(&sources, &labels).unwrap();
    for (name, range) in [("p1", 0..7), ("p2", 7..7), ("p3", 7..20), ("p4", 20..99)] {
        let part = all.part(range);
        tbl_io::convert(&part, &at(name), &as_stored, AsStored::default, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    }
    convert(&["p1", "p2", "p3", "p4"].map(at), &at("joined"), &as_stored);
    assert_eq!(std::fs::read(at("joined")).unwrap(), std::fs::read(at("whole")).unwrap());
}

/// The content of an archive as a reader finds it: names, labels and the number of fields.
fn names_and_labels(path: &Path) -> Vec<(String, Option<i64>, usize)> {
    let name = |key: Option<Vec<u8>>| String::from_utf8(key.unwrap()).unwrap();
    let seen = see(&open(&[path.to_owned()])).into_iter();
    seen.map(|sample| (name(sample.key), sample.label, sample.fields.len())).collect()
}

#[test]
fn shards_that_repeat_names_keep_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (file, label) in [("a.tar", b"1"), ("b.tar", b"2"), ("c.tar", b"3")] {
        write_tar(&at(file), &[(b"0.jpg", label), (b"0.cls", label), (b"0-1.jpg", b"other")]);
    }
    let shards = ["a.tar", "b.tar", "c.tar"].map(at);
    let summary = convert(&shards, &at("merged.tar"), &quick(Target::Tar));
    assert_eq!(summary.unstored.renamed, 4);
    let named = |name: &str, label, fields| (name.to_owned(), label, fields);
    let expected = [
        named("0.jpg", Some(1), 1),
        named("0-1.jpg", None, 0),
        named("0-2.jpg", Some(2), 1),
        named("0-1-3.jpg", None, 0),
        named("0-4.jpg", Some(3), 1),
        named("0-1-5.jpg", None, 0),
    ];
    assert_eq!(names_and_labels(&at("merged.tar")), expected);
    convert(&shards, &at("merged.tbl"), &quick(EVERY_TBL2[0]));
    convert(&[at("merged.tbl")], &at("again.tar"), &quick(Target::Tar));
    assert_eq!(std::fs::read(at("again.tar")).unwrap(), std::fs::read(at("merged.tar")).unwrap());
}

#[test]
fn as_many_images_come_back_as_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let field = |extension: &[u8]| [Field { extension: extension.to_vec(), bytes: b"f".to_vec() }];
    let (json, png) = (field(b"json"), field(b"png"));
    let mut writer = StreamWriter::create(&at("a.tbl"), WriteOptions::default()).unwrap();
    let samples: [(&[u8], &[Field]); 9] = [
        (b"x/a.jpg", &[]),
        (b"x/a.bin", &[]),
        (b"x/b.mp4", &[]),
        (b"x/b", &json),
        (b"x/b.png", &[]),
        (b"x/c.jpg", &json),
        (b"x/c.png", &json),
        (b"x/c.jpg", &json),
        (b"x/d.jpg", &png),
    ];
    for (key, fields) in samples {
        let sample = NewSample { key: Some(key), fields, ..NewSample::new(key) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    let summary = convert(&[at("a.tbl")], &at("b.tar"), &quick(Target::Tar));
    let Unstored { renamed, fields, passed_over, .. } = summary.unstored;
    assert_eq!((renamed, fields, passed_over), (4, 1, 3));
    let found: Vec<(String, usize)> = names_and_labels(&at("b.tar"))
        .into_iter()
        .map(|(name, _, fields)| (name, fields))
        .collect();
    // The field `json` could be a label that cannot be read, so `cls` says that there is none.
    let expected = [
        ("x/a.jpg", 0),
        ("x/b-4.png", 0),
        ("x/c.jpg", 2),
        ("x/c-6.png", 2),
        ("x/c-7.jpg", 2),
        ("x/d.jpg", 1),
    ];
    assert_eq!(found, expected.map(|(name, fields)| (name.to_owned(), fields)));
}

/// Slow and uneven, so that several workers finish out of order.
#[derive(Default)]
struct Uneven;

impl Prepare for Uneven {
    const COSTLY: bool = true;

    fn prepare(
        &mut self,
        entry: &Entry<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Prepared, Box<dyn std::error::Error + Send + Sync>> {
        let rounds = bytes.len() * 37 % 5000;
        bytes.push((0..rounds).fold(0, |sum, n| std::hint::black_box(sum ^ n as u8)));
        if bytes.len() == 2000 + 100 * 13 + 1 {
            return Err("the thirteenth".into());
        }
        Ok(Prepared::as_stored(entry))
    }
}

#[test]
fn the_number_of_workers_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let members: Members =
        labelled().into_iter().filter(|(name, _)| !name.contains(&b'3')).collect();
    write_tar(&at("in.tar"), &borrow(&members));
    let sources = open(&[at("in.tar")]);
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut files = Vec::new();
    for workers in [1, 2, 3, 7] {
        let mut options = quick(EVERY_TBL2[1]);
        options.workers = NonZeroUsize::new(workers).unwrap();
        options.overwrite = true;
        let mut written = Vec::new();
        tbl_io::convert(&selection, &at("a.tbl"), &options, Uneven::default, &mut |event| {
            if let ConvertEvent::Written { samples, .. } = event {
                written.push(samples);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(written, (1..=selection.sample_count()).collect::<Vec<_>>());
        files.push(std::fs::read(at("a.tbl")).unwrap());
    }
    assert!(files.iter().all(|file| *file == files[0]));
}

#[test]
fn a_refused_sample_is_named_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    let sources = open(&[at("in.tar")]);
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    for workers in [1, 3] {
        let mut options = quick(EVERY_TBL2[0]);
        options.workers = NonZeroUsize::new(workers).unwrap();
        let end = tbl_io::convert(&selection, &at("a.tbl"), &options, Uneven::default, &mut |_| {
            ControlFlow::Continue(())
        });
        let Err(error @ ConvertError::Prepare { index: 13, .. }) = end else { panic!("{end:?}") };
        let message = error.to_string();
        assert!(message.ends_with("in.tar: sample 13 (set/0013.jpg): the thirteenth"), "{message}");
        assert!(error.is_damage());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn whoever_hears_of_progress_can_end_it_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    let sources = open(&[at("in.tar")]);
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    for workers in [1, 3] {
        let mut options = quick(EVERY_TBL2[1]);
        options.workers = NonZeroUsize::new(workers).unwrap();
        let mut heard = 0;
        let end =
            tbl_io::convert(&selection, &at("a.tbl"), &options, AsStored::default, &mut |_| {
                heard += 1;
                if heard == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        assert!(matches!(end, Err(ConvertError::Stopped)), "{end:?}");
        assert_eq!(heard, 5);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn pixels_cannot_go_into_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut writer = StreamWriter::create(&at("raw.tbl"), WriteOptions::default()).unwrap();
    let format = tbl_format::SampleFormat::RawU8;
    let sample = NewSample { format, width: 1, height: 1, ..NewSample::new(b"rgb") };
    writer.write_sample(&sample).unwrap();
    writer.finish().unwrap();
    let sources = open(&[at("raw.tbl")]);
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let (to, options) = (at("raw.tar"), quick(Target::Tar));
    let end = tbl_io::convert(&selection, &to, &options, AsStored::default, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(end, Err(ConvertError::Prepare { index: 0, .. })), "{end:?}");
    assert!(!to.exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_archive_survives_the_way_through_a_tbl_file(
        members in proptest::collection::vec(
            ("[a-c]/[a-d]\\.(jpg|png|cls|json|txt)", proptest::collection::vec(0_u8..4, 0..200)),
            0..24,
        ),
        lz4 in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let members: Members = members
            .into_iter()
            .map(|(name, bytes)| {
                // Labels that cannot be read end a conversion.
                let is_label = name.ends_with(".cls") || name.ends_with(".json");
                let bytes = if is_label { bytes.len().to_string().into_bytes() } else { bytes };
                (name.into_bytes(), bytes)
            })
            .collect();
        write_tar(&at("in.tar"), &borrow(&members));
        convert(&[at("in.tar")], &at("a.tbl"), &quick(EVERY_TBL2[usize::from(lz4)]));
        prop_assert_eq!(see(&open(&[at("in.tar")])), see(&open(&[at("a.tbl")])));
        convert(&[at("a.tbl")], &at("back.tar"), &quick(Target::Tar));
        let (before, after) = (see(&open(&[at("in.tar")])), see(&open(&[at("back.tar")])));
        let renamed_or_not = |(before, after): (&Seen, &Seen)| {
            // A number in front of the extension is what a repeated name gets.
            let text = |seen: &Seen| String::from_utf8(seen.key.clone().unwrap()).unwrap();
            let (before, after) = (text(before), text(after));
            let (stem, extension) = before.split_once('.').unwrap();
            before == after
                || (after.starts_with(&format!("{stem}-")) && after.ends_with(extension))
        };
        prop_assert_eq!(before.len(), after.len());
        let names: BTreeSet<_> = after.iter().map(|sample| &sample.key).collect();
        prop_assert_eq!(names.len(), after.len());
        prop_assert!(before.iter().zip(&after).all(renamed_or_not));
        let without_order = |mut seen: Vec<Seen>| {
            for sample in &mut seen {
                sample.key = None;
                sample.fields.sort_by(|a, b| a.extension.cmp(&b.extension));
            }
            seen
        };
        prop_assert_eq!(without_order(before), without_order(after));
    }
}
