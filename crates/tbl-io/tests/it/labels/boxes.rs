//! Classes of boxes over several sources.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tbl_io::{
    AsStored, Coco, Compression, ConvertError, ConvertOptions, ConvertSummary, Field, Folder,
    Labels, NewSample, SampleSource, Selection, Stores, StreamWriter, Target, TblFile, WriteError,
    WriteOptions, open_coco,
};

/// A folder with an image, and annotations of it with these numbers of categories.
fn coco(root: &Path, name: &str, categories: &[(i64, &str)], numbers: &[i64]) -> PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("1.jpg"), name).unwrap();
    let object = |number: &i64| json!({"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": number, "text": "é\n"});
    let category = |(id, name): &(i64, &str)| json!({"id": id, "name": name});
    let content = json!({
        "images": [{"id": 7, "file_name": "1.jpg"}],
        "annotations": numbers.iter().map(object).collect::<Vec<_>>(),
        "categories": categories.iter().map(category).collect::<Vec<_>>(),
    });
    let path = folder.join("instances.json");
    fs::write(&path, content.to_string()).unwrap();
    path
}

/// A folder with an image and these further files, which does not name categories.
fn nameless(root: &Path, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    for (file, bytes) in [("a.0.jpg", &b"jpeg"[..])].iter().chain(files) {
        fs::write(folder.join(file), bytes).unwrap();
    }
    folder
}

fn open(paths: &[PathBuf]) -> Vec<Box<dyn SampleSource>> {
    let open = |path: &PathBuf| match TblFile::open(path) {
        Ok(file) => Box::new(file) as Box<dyn SampleSource>,
        Err(_) if path.is_dir() => Box::new(Folder::open(path).unwrap()),
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
    try_convert(sources, labels, to, target).unwrap()
}

fn try_convert(
    sources: &[Box<dyn SampleSource>],
    labels: &Labels,
    to: &Path,
    target: Target,
) -> Result<ConvertSummary, ConvertError> {
    let selection = Selection::all(sources, labels).unwrap();
    let options = ConvertOptions { overwrite: true, ..ConvertOptions::new(target) };
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| std::ops::ControlFlow::Continue(());
    tbl_io::convert(&selection, to, &options, AsStored::default, &mut on_event)
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

/// The fields of the only sample of source number `source`, or the message of the error.
fn fields(
    sources: &[Box<dyn SampleSource>],
    labels: &Labels,
    source: usize,
) -> Result<Vec<(String, String)>, String> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let mut fields: Vec<Field> = Vec::new();
    labels
        .read_fields_where(sources, source, 0, &mut |_, _| true, &mut fields)
        .map_err(|error| error.to_string())?;
    let fields = fields.into_iter();
    Ok(fields.map(|Field { extension, bytes }| (text(extension), text(bytes))).collect())
}

#[test]
fn numbers_that_agree_stay() {
    let root = tempfile::tempdir().unwrap();
    let a = coco(root.path(), "a", &[(1, "dog"), (3, "cat")], &[3, 1]);
    let b = coco(root.path(), "b", &[(3, "cat"), (5, "bird")], &[5, 3]);
    // No source has a name for 99, which is therefore no other class.
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
fn a_number_never_gets_the_name_that_another_source_has_for_it() {
    let root = tempfile::tempdir().unwrap();
    let a = coco(root.path(), "a", &[(1, "dog"), (3, "cat")], &[3, 1]);
    let partly = coco(root.path(), "partly", &[(1, "dog")], &[1, 3]);
    let json = br#"{"annotations": [{"category_id": 7}, {"category_id": 1}]}"#;
    let none = nameless(root.path(), "none", &[("a.0.json", json)]);
    let other = nameless(root.path(), "other", &[("a.0.json", br#"{"annotations": [{}, 3]}"#)]);
    let sources = open(&[a, partly, none, other]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.box_class_names(), ["", "dog", "", "cat"]);
    let unnamed = "partly/instances.json: sample 0 (1.jpg): an annotation has category 3, which the \
                   source does not name";
    let nameless = "none: sample 0 (a.0.jpg): an annotation has category 1, which has no name because \
                    the source stores none";
    let advice = "; sources are joined by the names of categories: open a COCO file whose \
                  `categories` name it, or a TBL file made of one";
    for (source, expected) in [(1, unnamed), (2, nameless)] {
        let message = fields(&sources, &labels, source).unwrap_err();
        assert!(message.ends_with(&format!("{expected}{advice}")), "{message}");
    }
    let as_it_is = ("0.json".to_owned(), r#"{"annotations": [{}, 3]}"#.to_owned());
    assert_eq!(fields(&sources, &labels, 3).unwrap(), [as_it_is]);
    // Among sources without any names, all numbers are as they are.
    let labels = Labels::resolve(&sources[2..]).unwrap();
    let kept = fields(&sources[2..], &labels, 0).unwrap();
    assert_eq!(kept, [("0.json".to_owned(), String::from_utf8(json.to_vec()).unwrap())]);
}

#[test]
fn large_and_negative_numbers_are_joined_by_name() {
    const LARGE: i64 = 1_000_000_000_000;
    let root = tempfile::tempdir().unwrap();
    let a = coco(root.path(), "a", &[(LARGE, "dog"), (LARGE + 1, "cat")], &[LARGE, LARGE + 1]);
    let b = coco(root.path(), "b", &[(LARGE, "cat"), (-1, "dog")], &[-1, LARGE]);
    let sources = open(&[a, b]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.box_class_names(), ["cat", "dog"]);
    assert_eq!(categories(&sources, &labels), [vec!["dog", "cat"], vec!["dog", "cat"]]);
    // One of them keeps its numbers, which a list of names cannot have.
    let labels = Labels::resolve(&sources[..1]).unwrap();
    assert!(labels.box_class_names().is_empty());
    let first = document(&sources, &labels, 0);
    assert_eq!(first["annotations"][0]["category_id"], LARGE);
    // A TBL file would lose its names, and an archive has none.
    let out = root.path().join("out.tbl");
    let error = try_convert(&sources[..1], &labels, &out, Target::Tbl2(Compression::None));
    let number = match error {
        Err(ConvertError::Write(WriteError::UnlistedCategory { number, .. })) => Some(number),
        _ => None,
    };
    assert_eq!((number, out.exists()), (Some(LARGE), false));
    let summary = convert(&sources[..1], &labels, &root.path().join("out.tar"), Target::Tar);
    assert_eq!(summary.unstored.box_class_names, 2);
}

#[test]
fn the_field_json_is_renumbered_by_every_name_it_is_read_by_and_no_other_field() {
    let root = tempfile::tempdir().unwrap();
    let json = "{\"annotations\":[{\"category_id\":0}]}";
    let new = "{\"annotations\":[{\"category_id\":1}]}";
    let other = "{\"annotations\":[{\"category_id\":9}]}";
    let marked = format!("\u{feff}{json}");
    let all = [
        ("0.JSON", json),
        ("Json", &*marked),
        ("txt", json),
        ("panoptic.json", other),
        ("0.panoptic.json", other),
        ("9.json", other),
    ];
    let stored = root.path().join("a.tbl");
    let mut writer = StreamWriter::create(&stored, WriteOptions::default()).unwrap();
    writer.set_box_class_names(&["dog".to_owned()]);
    let field = |(name, text): (&str, &str)| Field { extension: name.into(), bytes: text.into() };
    let stored_fields = all.map(field);
    let sample =
        NewSample { key: Some(b"a.0.jpg"), fields: &stored_fields, ..NewSample::new(b"jpeg") };
    writer.write_sample(&sample).unwrap();
    writer.finish().unwrap();
    let b = coco(root.path(), "b", &[(1, "cat"), (2, "dog")], &[2]);
    let sources = open(&[stored, b]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.box_class_names(), ["cat", "dog"]);
    let expected = all.map(|(name, text)| {
        let is_json = ["0.JSON", "Json"].contains(&name);
        (name.to_owned(), if is_json { new } else { text }.to_owned())
    });
    assert_eq!(fields(&sources, &labels, 0).unwrap(), expected);
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
                    does not name; sources are joined by the names of categories: open a COCO file \
                    whose `categories` name it, or a TBL file made of one";
    assert!(message.ends_with(expected), "{message}");
}
