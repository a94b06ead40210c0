//! Classes of boxes over several sources.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tbl_io::{
    AsStored, Coco, Compression, ConvertOptions, ConvertSummary, Field, Labels, SampleSource,
    Selection, Stores, Target, TblFile, open_coco,
};

/// A folder with an image, and annotations of it with these numbers of categories.
fn coco(root: &Path, name: &str, categories: &[(u64, &str)], numbers: &[u64]) -> PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("1.jpg"), name).unwrap();
    let object = |number: &u64| json!({"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": number, "text": "é\n"});
    let category = |(id, name): &(u64, &str)| json!({"id": id, "name": name});
    let content = json!({
        "images": [{"id": 7, "file_name": "1.jpg"}],
        "annotations": numbers.iter().map(object).collect::<Vec<_>>(),
        "categories": categories.iter().map(category).collect::<Vec<_>>(),
    });
    let path = folder.join("instances.json");
    fs::write(&path, content.to_string()).unwrap();
    path
}

fn open(paths: &[PathBuf]) -> Vec<Box<dyn SampleSource>> {
    let open = |path: &PathBuf| match TblFile::open(path) {
        Ok(file) => Box::new(file) as Box<dyn SampleSource>,
        Err(_) => Box::new(open_coco(&Stores::new(), path, &Coco::default()).unwrap()),
    };
    paths.iter().map(open).collect()
}

/// The document of the only sample of source number `source`.
fn document(sources: &[Box<dyn SampleSource>], labels: &Labels, source: usize) -> Value {
    let mut fields: Vec<Field> = Vec::new();
    labels.read_fields_where(sources, source, 0, &mut |_, _| true, &mut fields).unwrap();
    let [Field { extension, bytes }] = &fields[..] else { panic!("{fields:?}") };
    assert_eq!(extension, b"json");
    serde_json::from_slice(bytes).unwrap()
}

/// The names of the categories of the annotations of each source.
fn categories(sources: &[Box<dyn SampleSource>], labels: &Labels) -> Vec<Vec<String>> {
    let names = |source| {
        let document = document(sources, labels, source);
        let objects = document["annotations"].as_array().unwrap().clone();
        let number = |object: &Value| object["category_id"].as_u64().unwrap() as usize;
        objects.iter().map(|one| labels.box_class_names()[number(one)].clone()).collect()
    };
    (0..sources.len()).map(names).collect()
}

fn convert(
    sources: &[Box<dyn SampleSource>],
    labels: &Labels,
    to: &Path,
    target: Target,
) -> ConvertSummary {
    let selection = Selection::all(sources, labels).unwrap();
    let options = ConvertOptions { overwrite: true, ..ConvertOptions::new(target) };
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| std::ops::ControlFlow::Continue(());
    tbl_io::convert(&selection, to, &options, AsStored::default, &mut on_event).unwrap()
}

#[test]
fn different_numbers_are_joined_by_name_and_stay_joined_in_a_tbl_file() {
    let root = tempfile::tempdir().unwrap();
    let a = coco(root.path(), "a", &[(1, "dog"), (3, "cat")], &[3, 1]);
    let b = coco(root.path(), "b", &[(1, "cat"), (2, "bird")], &[1, 2, 1]);
    let sources = open(&[a, b]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.box_class_names(), ["bird", "cat", "dog"]);
    let expected = [vec!["cat", "dog"], vec!["cat", "bird", "cat"]];
    assert_eq!(categories(&sources, &labels), expected);
    let first = document(&sources, &labels, 0);
    let only = json!({"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": 1, "text": "é\n"});
    assert_eq!(first["annotations"][0], only);
    assert_eq!(first["image"], json!({"id": 7, "file_name": "1.jpg"}));

    let joined = root.path().join("joined.tbl");
    let summary = convert(&sources, &labels, &joined, Target::Tbl2(Compression::None));
    assert_eq!(summary.unstored.box_class_names, 0);
    let stored = TblFile::open(&joined).unwrap();
    assert_eq!(stored.box_class_names(), ["bird", "cat", "dog"]);
    // A third set joins the first two, from the TBL file.
    let c = coco(root.path(), "c", &[(0, "ant"), (5, "dog")], &[5, 0]);
    let sources = open(&[joined, c]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.box_class_names(), ["ant", "bird", "cat", "dog"]);
    let mut names = categories(&sources, &labels);
    assert_eq!(
        (names.remove(0), names.remove(0)),
        (["cat", "dog"].map(str::to_owned).to_vec(), ["dog", "ant"].map(str::to_owned).to_vec())
    );
    for target in [Target::Tar, Target::Tbl1] {
        let summary = convert(&sources, &labels, &root.path().join("lossy"), target);
        assert_eq!(summary.unstored.box_class_names, 4);
    }
}

#[test]
fn numbers_that_agree_stay() {
    let root = tempfile::tempdir().unwrap();
    let a = coco(root.path(), "a", &[(1, "dog"), (3, "cat")], &[3, 1]);
    let b = coco(root.path(), "b", &[(3, "cat"), (5, "bird")], &[5, 3]);
    let none = coco(root.path(), "none", &[], &[99]);
    let sources = open(&[a, none, b]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.box_class_names(), ["", "dog", "", "cat", "", "bird"]);
    for (source, expected) in [(0, [3, 1].as_slice()), (1, &[99]), (2, &[5, 3])] {
        let document = document(&sources, &labels, source);
        let numbers: Vec<u64> = document["annotations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["category_id"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn a_category_without_a_name_is_an_error_where_numbers_change() {
    let root = tempfile::tempdir().unwrap();
    let a = coco(root.path(), "a", &[(1, "dog")], &[1]);
    let b = coco(root.path(), "b", &[(2, "dog")], &[2, 9]);
    let sources = open(&[a, b]);
    let labels = Labels::resolve(&sources).unwrap();
    let mut fields = Vec::new();
    let read = labels.read_fields_where(&sources, 1, 0, &mut |_, _| true, &mut fields);
    let error = read.unwrap_err();
    assert_eq!((error.kind(), error.sample_index()), (tbl_io::ErrorKind::Data, Some(0)));
    let message = error.to_string();
    let expected = "instances.json: sample 0 (1.jpg): an annotation has category 9, which the source \
                    does not name; sources whose categories differ are joined by name";
    assert!(message.ends_with(expected), "{message}");
}
