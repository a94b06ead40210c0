//! A tree of files has the same samples, labels and fields as a folder, as an archive in any order
//! and as a TBL file, and no image of it is lost.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_io::{
    AsStored, Compression, ConvertOptions, Field, IndexOptions, Labels, SampleSource,
    SampleSourceExt, Selection, Stores, Target, Unstored,
};

/// A sample as every source shows it, with its fields in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    key: Vec<u8>,
    bytes: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    label: Option<i64>,
    class: Option<String>,
}

fn open(paths: &[&Path]) -> Vec<Box<dyn SampleSource>> {
    paths.iter().map(|path| tbl_io::open(path).unwrap()).collect()
}

/// The samples of each source in the order of their names.
fn see(paths: &[&Path]) -> Vec<Vec<Seen>> {
    see_sources(&open(paths))
}

fn see_sources(sources: &[Box<dyn SampleSource>]) -> Vec<Vec<Seen>> {
    let labels = Labels::resolve(sources).unwrap();
    let see_sample = |number: usize, source: &dyn SampleSource, index| {
        let key = source.entry(index).unwrap().key.unwrap().into_owned();
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        source.read_into(index, &mut bytes).unwrap();
        source.read_fields(index, &mut fields).unwrap();
        let pair = |field: Field| (field.extension, field.bytes);
        let mut fields: Vec<_> = fields.into_iter().map(pair).collect();
        fields.sort();
        let label = labels.label(number, index);
        let class = label.and_then(|label| labels.class_names().get(usize::try_from(label).ok()?));
        Seen { key, bytes, fields, label, class: class.cloned() }
    };
    let samples = sources.iter().enumerate().map(|(number, source)| {
        let samples = (0..source.sample_count()).map(|index| see_sample(number, &**source, index));
        let mut samples: Vec<Seen> = samples.collect();
        samples.sort();
        samples
    });
    samples.collect()
}

fn convert(from: &Path, to: &Path, target: Target) -> Unstored {
    let sources = open(&[from]);
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut options = ConvertOptions::new(target);
    options.sync = false;
    let go_on = &mut |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    tbl_io::convert(&selection, to, &options, AsStored::default, go_on).unwrap().unstored
}

/// The content of a file: different for each, and a label where there is one.
fn content(number: usize, path: &str) -> Vec<u8> {
    match path.rsplit('.').next() {
        Some("cls") => (number % 7).to_string(),
        Some("json") => format!("{{\"label\": {}}}", number % 5),
        _ => format!("{number} {path}"),
    }
    .into_bytes()
}

fn write_tar(path: &Path, members: &[(usize, String)]) {
    let mut builder = tar::Builder::new(std::fs::File::create(path).unwrap());
    for (number, name) in members {
        let body = content(*number, name);
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        builder.append_data(&mut header, name, &body[..]).unwrap();
    }
    builder.finish().unwrap();
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part == "__MACOSX" || part == "Thumbs.db")
}

fn is_image(path: &[u8]) -> bool {
    SampleFormat::from_file_name(path).is_image()
}

/// The paths of all images that samples and fields hold.
fn images(samples: &[Seen]) -> BTreeSet<Vec<u8>> {
    let paths = samples.iter().flat_map(|Seen { key, fields, .. }| {
        let base = key.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let dot = key[base..].iter().position(|&byte| byte == b'.');
        let group = key[..dot.map_or(key.len(), |dot| base + dot)].to_vec();
        let fields = fields.iter().map(move |(name, _)| [&group, &b"."[..], name].concat());
        std::iter::once(key.clone()).chain(fields)
    });
    paths.filter(|path| is_image(path)).collect()
}

fn check(files: &[(usize, String)], shuffled: &[(usize, String)]) {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { root.path().join(name) };
    for (number, path) in files {
        let file = at("folder").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content(*number, path)).unwrap();
    }
    write_tar(&at("shuffled.tar"), shuffled);
    let lz4 = Target::Tbl2(Compression::Lz4);
    convert(&at("folder"), &at("folder.tbl"), lz4);
    convert(&at("shuffled.tar"), &at("tar.tbl"), lz4);
    let unstored = convert(&at("tar.tbl"), &at("back.tar"), Target::Tar);
    assert_eq!(unstored, Unstored { class_names: unstored.class_names, ..Unstored::default() });

    let expected = &see(&[&at("folder")])[0];
    let shards = ["shuffled.tar", "folder.tbl", "tar.tbl", "back.tar"].map(at);
    let options = IndexOptions { sync: false, ..IndexOptions::default() };
    tbl_io::index_shards(&Stores::new(), &shards, at("all.tlidx"), options).unwrap();
    let indexed = tbl_io::open_all(&[at("all.tlidx")]).unwrap();
    assert_eq!(see_sources(&indexed), see_sources(&tbl_io::open_all(&shards).unwrap()));
    for other in ["shuffled.tar", "folder.tbl", "tar.tbl", "back.tar"] {
        assert_eq!(&see(&[&at(other)])[0], expected, "{other} of {shuffled:?}");
    }
    assert_eq!(see(&[&at("folder"), &at("shuffled.tar")]), [&expected[..], expected]);
    let stored = files.iter().filter(|(_, path)| !is_hidden(path) && is_image(path.as_bytes()));
    let stored: BTreeSet<Vec<u8>> = stored.map(|(_, path)| path.clone().into_bytes()).collect();
    assert_eq!(images(expected), stored);
}

fn path() -> impl Strategy<Value = String> {
    let folder = prop::sample::select(vec![
        "",
        "",
        "",
        "cats/",
        "cats/",
        "dogs/",
        "cats/deep/",
        "ü ñ/",
        "v1.2/",
        ".git/",
        "__MACOSX/",
    ]);
    let stem = prop::sample::select(vec![
        "x",
        "x",
        "x",
        "y",
        "x.0",
        "x.1",
        "x.1.2",
        "x.1.3",
        "x.left",
        "x.right",
        "y.a1.b",
        "y.a2.b",
        "日本",
        "._x",
        ".h",
        "README",
        "Thumbs.db",
        "a b.c d",
    ]);
    let extension = prop::sample::select(vec![
        ".jpg", ".jpg", ".jpg", ".JPG", ".png", ".jpeg", ".cls", ".json", ".txt", ".seg.png",
        ".npy", ".tar.gz", ".", "..", "",
    ]);
    (folder, stem, extension)
        .prop_map(|(folder, stem, extension)| format!("{folder}{stem}{extension}"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_tree_has_the_same_samples_in_every_container(
        paths in prop::collection::btree_set(path(), 1..14),
        shuffle in any::<prop::sample::Index>(),
        step in prop::sample::select(vec![1_usize, 17, 19, 23]),
    ) {
        let files: Vec<(usize, String)> = paths.into_iter().enumerate().collect();
        // A step that has no factor in common with any length takes every file once.
        let start = shuffle.index(files.len());
        let at = |place: usize| files[(start + place * step) % files.len()].clone();
        let shuffled: Vec<(usize, String)> = (0..files.len()).map(at).collect();
        check(&files, &shuffled);
    }
}

#[test]
fn photographs_of_classes_with_numbers_are_samples_of_their_class() {
    let names =
        |class: &'static str| (0..4).map(move |number| format!("{class}/{class}.{number}.jpg"));
    let files: Vec<(usize, String)> = names("cat").chain(names("dog")).enumerate().collect();
    check(&files, &files);
    let root = tempfile::tempdir().unwrap();
    let archive = root.path().join("a.tar");
    write_tar(&archive, &files);
    let seen = &see(&[&archive])[0];
    let classes: Vec<_> = seen.iter().map(|sample| sample.class.as_deref()).collect();
    assert_eq!(classes, [[Some("cat"); 4], [Some("dog"); 4]].concat());
}

#[test]
fn every_image_of_a_group_comes_back() {
    let names = [
        "a.jpg",
        "a.png",
        "a.json",
        "b.jpg",
        "c.left.jpg",
        "c.cls",
        "c.right.jpg",
        "d.0.jpg",
        "d.0.cls",
        "d.1.jpg",
        "e.2.jpg",
        "e.3.jpg",
        "e.json",
    ];
    let files: Vec<(usize, String)> = names.map(str::to_owned).into_iter().enumerate().collect();
    check(&files, &files);
    let root = tempfile::tempdir().unwrap();
    let archive = root.path().join("a.tar");
    write_tar(&archive, &files);
    let labels = see(&[&archive])[0].iter().map(|sample| sample.label).collect::<Vec<_>>();
    assert_eq!(labels, [Some(2), None, Some(5), Some(1), None, Some(2)]);
}

#[test]
fn a_file_of_another_kind_is_refused_by_its_name() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("notes");
    let check = |content: &[u8], expected: &str| {
        std::fs::write(&path, content).unwrap();
        let error = tbl_io::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!(": at byte 0: {expected}")), "{error}");
        assert!(error.contains("expected a TAR archive or a TBL file"), "{error}");
    };
    check(b"text", "a text file");
    check(b"MMIDIDX\0\0", "an index of Megatron-LM");
    check("longer text ".repeat(100).as_bytes(), "a text file");
    check(b"", "an empty file");
    check(&[b"PAR1", &[0; 2000][..]].concat(), "a Parquet file");
    check(&[b"PK\x03\x04", &[0; 20][..]].concat(), "a ZIP archive");
    check(&[7; 40], "header needs 512 bytes");
    check(&[7; 2000], "not a TAR header: ");
    for (magic, by) in [(&b"\x1f\x8b\x08"[..], "gzip"), (b"BZh9", "bzip2")] {
        std::fs::write(&path, magic).unwrap();
        let error = tbl_io::open(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("compressed by {by}")), "{error}");
    }
}
