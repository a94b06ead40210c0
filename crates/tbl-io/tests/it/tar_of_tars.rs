//! An archive of archives, such as ImageNet's training set: one for each class.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_io::{
    GivenLabels, IndexOptions, Labels, ReadError, SampleSource, SampleSourceExt, Stores,
    TarArchive, TarOptions, TarWriter, index_shards,
};

type Members = Vec<(String, Vec<u8>)>;

fn tar(path: &Path, members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = TarWriter::create(path, TarOptions { sync: false, overwrite: true }).unwrap();
    for (name, bytes) in members {
        writer.append(name.as_bytes(), bytes).unwrap();
    }
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// The members of class `class`, as ImageNet names them.
fn class(class: &str, count: usize) -> Members {
    let name = |number: usize| (format!("{class}_{number}.JPEG"), vec![number as u8; 100 + number]);
    (0..count).map(name).collect()
}

fn imagenet(folder: &Path) -> (PathBuf, Members) {
    let classes = [("n01443537", 3), ("n01440764", 5), ("n01484850", 0), ("n01491361", 1)];
    let mut outer = Members::new();
    let mut expected = Members::new();
    for (name, count) in classes {
        let members = class(name, count);
        outer.push((format!("{name}.tar"), tar(&folder.join("inner.tar"), &members)));
        expected.extend(members.into_iter().map(|(base, bytes)| (format!("{name}/{base}"), bytes)));
    }
    let path = folder.join("ILSVRC2012_img_train.tar");
    tar(&path, &outer);
    (path, expected)
}

fn samples(source: &dyn SampleSource) -> Members {
    let mut bytes = Vec::new();
    let sample = |index| {
        source.read_into(index, &mut bytes).unwrap();
        let key = source.entry(index).unwrap().key.unwrap().into_owned();
        assert_eq!(source.view(index).unwrap(), Some(&bytes[..]));
        (String::from_utf8(key).unwrap(), bytes.clone())
    };
    (0..source.sample_count()).map(sample).collect()
}

#[test]
fn samples_are_those_of_the_inner_archives_with_their_names_as_classes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, expected) = imagenet(folder.path());
    let sources = [tbl_io::open(&path).unwrap()];
    assert!(samples(&*sources[0]) == expected);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.class_names(), ["n01440764", "n01443537", "n01491361"]);
    let found: Vec<_> = (0..9).map(|index| labels.label(0, index).unwrap()).collect();
    assert_eq!(found, [1, 1, 1, 0, 0, 0, 0, 0, 2]);
    let archive = TarArchive::open(&path).unwrap();
    assert_eq!(archive.member_counts().regular, 9);
    assert!(archive.has_end_marker());
    // A shard index has the same.
    let indexed = folder.path().join("a.tlidx");
    let options = IndexOptions { sync: false, ..IndexOptions::default() };
    index_shards(&Stores::new(), &[&path], &indexed, options).unwrap();
    assert!(samples(&*tbl_io::open(&indexed).unwrap()) == expected);
}

#[test]
fn archives_beside_other_files_are_files() {
    let folder = tempfile::tempdir().unwrap();
    let inner = tar(&folder.path().join("inner.tar"), &class("n1", 2));
    let path = folder.path().join("outer.tar");
    let check = |members: &[(&str, &[u8])], expected: &[&str]| {
        let members: Members =
            members.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        tar(&path, &members);
        let found = samples(&*tbl_io::open(&path).unwrap());
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected);
    };
    check(&[("n1.tar", &inner), ("._n1.tar", b"x")], &["n1/n1_0.JPEG", "n1/n1_1.JPEG"]);
    check(&[("a/n1.tar", &inner)], &["a/n1/n1_0.JPEG", "a/n1/n1_1.JPEG"]);
    check(&[("n1.tar", &inner), ("x.jpg", b"x")], &["x.jpg"]);
    check(&[("n1.tar", &inner), ("n2.tar", b"no archive")], &["n1.tar", "n2.tar"]);
    check(&[("n1.tar", &[b'x'; 2000])], &["n1.tar"]);
    check(&[("n1.tgz", &inner)], &["n1.tgz"]);
}

#[test]
fn damage_inside_is_named_by_its_offset_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = imagenet(folder.path());
    let mut bytes = std::fs::read(&path).unwrap();
    // The second header of the second archive.
    let name = b"n01440764_1.JPEG";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    match TarArchive::open(&path) {
        Err(ReadError::Tar { offset, .. }) => assert_eq!(offset, at as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn archives_of_one_class_each_have_their_names_as_classes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let open = |names: &[&str]| -> Vec<Box<dyn SampleSource>> {
        names.iter().map(|name| tbl_io::open(at(name)).unwrap()).collect()
    };
    let by_source = GivenLabels::classes_by_source();
    tar(&at("n01443537.tar"), &class("n01443537", 2));
    tar(&at("n01440764.tar"), &class("n01440764", 1));
    let labels = Labels::resolve(&open(&["n01443537.tar", "n01440764.tar"])).unwrap();
    assert_eq!(labels.class_names(), ["n01440764", "n01443537"]);
    let found = [(0, 0), (0, 1), (1, 0)].map(|(source, index)| labels.label(source, index));
    assert_eq!(found, [Some(1), Some(1), Some(0)]);
    let [note] = labels.notes() else { panic!("{:?}", labels.notes()) };
    let expected =
        format!("the classes are the names of 2 archives, first {}", at("n01443537.tar").display());
    assert_eq!(note.to_string(), expected);

    let given = Labels::given(&open(&["n01443537.tar", "n01440764.tar"]), &by_source).unwrap();
    assert_eq!(given.class_names(), labels.class_names());
    assert_eq!((given.label(0, 1), given.label(1, 0)), (Some(1), Some(0)));

    // One class is none, and names of shards or of other samples say nothing.
    let mut other = class("n01440764", 1);
    other.push(("n01443537_7.JPEG".to_owned(), vec![7]));
    tar(&at("n01491361.tar"), &other);
    tar(&at("cats.tar"), &class("cats", 1));
    tar(&at("dogs.tar"), &class("dogs", 1));
    for names in [
        &["n01443537.tar", "n01443537.tar"][..],
        &["n01443537.tar"],
        &["n01443537.tar", "n01491361.tar"],
        &["n01443537.tar", "cats.tar"],
        &["cats.tar", "dogs.tar"],
    ] {
        let labels = Labels::resolve(&open(names)).unwrap();
        assert_eq!(labels.class_names(), [""; 0], "{names:?}");
        assert_eq!(labels.notes(), [], "{names:?}");
    }
    // Unless the caller says so.
    let labels = Labels::given(&open(&["dogs.tar", "cats.tar", "dogs.tar"]), &by_source).unwrap();
    assert_eq!(
        (labels.class_names(), labels.notes()),
        (&["cats", "dogs"].map(str::to_owned)[..], &[][..])
    );
    assert_eq!([0, 1, 2].map(|source| labels.label(source, 0)), [Some(1), Some(0), Some(1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_mutation_makes_a_member_reach_beyond_its_archive(
        position in any::<prop::sample::Index>(),
        mask in 1..=255_u8,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = imagenet(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        let len = bytes.len();
        bytes[position.index(len)] ^= mask;
        bytes.truncate(cut.map_or(len, |cut| cut.index(len)));
        let source = tbl_io::Source::from_bytes("mutated", bytes);
        match tbl_io::open_source(source) {
            Ok(source) => {
                let mut bytes = Vec::new();
                for index in 0..source.sample_count() {
                    let read = source.read_into(index, &mut bytes);
                    prop_assert!(read.is_ok() || read.unwrap_err().is_damage());
                }
            }
            Err(error) => prop_assert!(error.is_damage(), "{}", error),
        }
    }
}
