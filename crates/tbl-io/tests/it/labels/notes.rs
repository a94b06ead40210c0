//! Notes on folders and on labels in JSON metadata.

use std::fs;
use std::path::Path;

use tbl_format::metadata::MetadataType;
use tbl_io::{
    AsStored, Compression, ConvertOptions, Labels, MetadataBlock, NewSample, SampleSource,
    Selection, StreamWriter, Target, WriteOptions,
};

use super::{named_sources, sources};

fn notes(sources: &[Box<dyn SampleSource>]) -> Vec<String> {
    let labels = Labels::resolve(sources).unwrap();
    labels.notes().iter().map(ToString::to_string).collect()
}

fn open(paths: &[&Path]) -> Vec<Box<dyn SampleSource>> {
    tbl_io::open_all(paths).unwrap()
}

fn write(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, b"1").unwrap();
}

#[test]
fn class_folders_one_by_one_have_no_labels_and_are_noted() {
    let root = tempfile::tempdir().unwrap();
    let (cats, dogs, other) =
        (root.path().join("cats"), root.path().join("dogs"), root.path().join("more/x"));
    write(&cats.join("1.jpg"));
    write(&dogs.join("1.jpg"));
    write(&other.join("1.jpg"));
    let parent = root.path().display();
    let noted = |folders: u64, parent: &str| {
        format!(
            "no labels in {folders} folders without class folders or label files, first {}; to \
             take the folders as classes, pass the folder that holds them{parent}",
            cats.display()
        )
    };
    assert_eq!(notes(&open(&[&cats, &dogs])), [noted(2, &format!(", {parent}"))]);
    assert_eq!(notes(&open(&[&cats, &dogs, &other])), [noted(3, "")]);
    assert!(notes(&open(&[&cats])).is_empty());
    assert!(notes(&open(&[root.path()])).is_empty());
    // Archives with numbers are a reason to join, so the samples without a label are noted as well.
    let mut joined = open(&[&cats, &dogs]);
    joined.extend(sources(&[&[("1.jpg", ""), ("1.cls", "1")]]));
    let [partly, separate] = &notes(&joined)[..] else { panic!("{:?}", notes(&joined)) };
    assert!(partly.starts_with("samples without a label among labelled ones: 2"), "{partly}");
    assert_eq!(*separate, noted(2, &format!(", {parent}")));
    // Separate labels, even ones that cannot be read.
    fs::write(cats.join("1.cls"), "1").unwrap();
    fs::write(dogs.join("1.cls"), "dog").unwrap();
    assert!(notes(&open(&[&cats, &dogs])).is_empty());
}

#[test]
fn classes_that_look_like_splits_are_noted_among_other_sources() {
    let splits = [("train/1.jpg", ""), ("val/2.jpg", "")];
    let classes = [("ant/1.jpg", ""), ("bee/2.jpg", "")];
    let expected = "the classes are the folders train and val, which look like parts of a data \
                    set: open one of them, unless these are the classes";
    assert_eq!(notes(&sources(&[&splits])), [expected]);
    assert_eq!(notes(&sources(&[&splits, &classes])), [expected]);
    assert_eq!(notes(&sources(&[&splits[..1], &splits[1..]])), [expected]);
    let mut named = sources(&[&splits]);
    named.extend(named_sources(&[(&["cat", "dog"], &[1, 0])]));
    assert_eq!(notes(&named), [expected]);
    assert!(notes(&sources(&[&classes, &splits[..1]])).is_empty());
}

#[test]
fn a_label_in_json_metadata_that_is_not_an_integer_is_noted_in_copies_too() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let text = MetadataBlock { kind: MetadataType::Json, data: br#"{"label": "cat"}"#.to_vec() };
    let mut writer = StreamWriter::create(&at("text.tbl"), WriteOptions::default()).unwrap();
    let metadata = [text];
    writer.write_sample(&NewSample { metadata: &metadata, ..NewSample::new(b"1") }).unwrap();
    writer.finish().unwrap();
    let mut writer = StreamWriter::create(&at("number.tbl"), WriteOptions::default()).unwrap();
    writer.write_sample(&NewSample { label: Some(3), ..NewSample::new(b"2") }).unwrap();
    writer.finish().unwrap();
    let sources = open(&[&at("number.tbl"), &at("text.tbl")]);
    let labels = Labels::resolve(&sources).unwrap();
    let target = Target::Tbl2(Compression::AsStored);
    tbl_io::convert(
        &Selection::all(&sources, &labels).unwrap(),
        &at("both.tbl"),
        &ConvertOptions::new(target),
        AsStored::default,
        &mut |_| std::ops::ControlFlow::Continue(()),
    )
    .unwrap();
    for (file, first) in [("text.tbl", 0), ("both.tbl", 1)] {
        let path = at(file);
        let noted = notes(&open(&[&path]));
        let expected = format!(
            "samples whose JSON metadata has a `label` that is not an integer and is not used: 1, \
             first {}: sample {first}",
            path.display()
        );
        assert_eq!(noted.first(), Some(&expected), "{noted:?}");
    }
    assert_eq!(notes(&open(&[&at("both.tbl")])).len(), 2, "and a sample has no label");
}
