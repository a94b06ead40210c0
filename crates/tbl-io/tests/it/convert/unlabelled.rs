//! Copies of data sets without labels, whose folders and fields a reader could take for labels.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tbl_io::{AsStored, Compression, LabelOrigin, Labels, Selection, Target};

use super::{EVERY_TBL2, convert, open, quick};

/// A manifest of images with these names, and its text.
fn manifest(folder: &Path, file: &str, images: &[&str], text: &str) -> PathBuf {
    for image in images {
        let image = folder.join(image);
        std::fs::create_dir_all(image.parent().unwrap()).unwrap();
        std::fs::write(image, b"\x89PNG\r\n\x1a\n").unwrap();
    }
    std::fs::write(folder.join(file), text).unwrap();
    folder.join(file)
}

/// The labels of a data set as loaders have them, after a check that none is unreadable.
fn labels_of(paths: &[PathBuf]) -> Vec<i64> {
    let sources = open(paths);
    let labels = Labels::resolve(&sources).unwrap();
    assert!(labels.class_names().is_empty(), "{:?}", labels.class_names());
    let mut found = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for index in 0..source.sample_count() {
            found.push(labels.try_label(&sources, number, index).unwrap().unwrap_or(-1));
        }
    }
    found
}

#[test]
fn a_copy_invents_no_labels_from_folders() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let images = ["a/0.png", "b/0.png"];
    let from = manifest(folder.path(), "m.csv", &images, "path,caption\na/0.png,x\nb/0.png,y\n");
    assert_eq!(labels_of(std::slice::from_ref(&from)), [-1, -1]);
    for (number, target) in EVERY_TBL2.into_iter().chain([Target::Tar]).enumerate() {
        let copy = at(&format!("{number}.copy"));
        convert(std::slice::from_ref(&from), &copy, &quick(target));
        assert_eq!(labels_of(std::slice::from_ref(&copy)), [-1, -1], "{target:?}");
        let again = at(&format!("{number}.again"));
        convert(&[copy], &again, &quick(Target::Tbl2(Compression::AsStored)));
        assert_eq!(labels_of(&[again]), [-1, -1], "{target:?}");
    }
    let copy = open(&[at("0.copy")]);
    let labels = Labels::resolve(&copy).unwrap();
    assert_eq!((labels.origin(), labels.label(0, 0)), (LabelOrigin::None, None));
    assert!(labels.notes().is_empty(), "{:?}", labels.notes());
}

#[test]
fn a_repair_keeps_samples_without_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let from =
        manifest(folder.path(), "m.csv", &["a/0.png", "b/0.png"], "path\na/0.png\nb/0.png\n");
    convert(&[from], &at("copy.tbl"), &quick(EVERY_TBL2[0]));
    let options = tbl_io::RepairOptions { sync: false, overwrite: false };
    tbl_io::repair(&at("copy.tbl"), &at("fixed.tbl"), options, AsStored, &mut |_| {}).unwrap();
    assert_eq!(labels_of(&[at("fixed.tbl")]), [-1, -1]);
    let whole = |name: &str| std::fs::read(at(name)).unwrap();
    assert_eq!(whole("fixed.tbl").len(), whole("copy.tbl").len());
}

#[test]
fn shards_of_one_folder_each_invent_no_labels_together() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let images = ["a/0.png", "a/1.png", "b/0.png"];
    let text = "path\na/0.png\na/1.png\nb/0.png\n";
    let sources = open(&[manifest(folder.path(), "m.csv", &images, text)]);
    let labels = Labels::resolve(&sources).unwrap();
    let all = Selection::all(&sources, &labels).unwrap();
    for (number, target) in [EVERY_TBL2[0], Target::Tar].into_iter().enumerate() {
        let shards = ["p", "q"].map(|name| at(&format!("{name}{number}")));
        for (shard, range) in shards.iter().zip([0..2, 2..3]) {
            let mut go_on = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
            let part = all.part(range);
            tbl_io::convert(&part, shard, &quick(target), AsStored::default, &mut go_on).unwrap();
        }
        assert_eq!(labels_of(&shards), [-1, -1, -1], "{target:?}");
    }
}

#[test]
fn one_folder_stays_a_class_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for class in ["cats", "dogs"] {
        let image = format!("{class}/0.jpg");
        super::write_tar(&at(&format!("{class}.tar")), &[(image.as_bytes(), b"bytes")]);
        let from = at(&format!("{class}.tar"));
        convert(&[from], &at(&format!("{class}.tbl")), &quick(EVERY_TBL2[0]));
    }
    let sources = open(&[at("cats.tbl"), at("dogs.tbl")]);
    assert_eq!(Labels::resolve(&sources).unwrap().class_names(), ["cats", "dogs"]);
}

#[test]
fn fields_of_a_copy_are_no_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let images = ["a/0.png", "a/1.png"];
    let line = |number: usize, rest: &str| format!("{{\"path\":\"a/{number}.png\",{rest}}}\n");
    for (name, values, left_out) in [
        ("json", [r#""json":{"label":3}"#, r#""json":{"label":4}"#], 0),
        ("text", [r#""json":{"label":"cat"}"#, r#""json":{"label":"dog"}"#], 0),
        ("cls", [r#""cls":3"#, r#""cls":4"#], 2),
        ("some", [r#""json":{"label":3}"#, r#""json":{"id":4}"#], 0),
    ] {
        let text = line(0, values[0]) + &line(1, values[1]);
        let from = manifest(folder.path(), &format!("{name}.jsonl"), &images, &text);
        assert_eq!(labels_of(std::slice::from_ref(&from)), [-1, -1], "{name}");
        let copy = at(&format!("{name}.tar"));
        let summary = convert(std::slice::from_ref(&from), &copy, &quick(Target::Tar));
        assert_eq!(summary.unstored.fields, left_out, "{name}");
        assert_eq!(labels_of(std::slice::from_ref(&copy)), [-1, -1], "{name}");
        convert(&[from], &at(&format!("{name}.tbl")), &quick(EVERY_TBL2[0]));
        assert_eq!(labels_of(&[at(&format!("{name}.tbl"))]), [-1, -1], "{name}");
    }
}
