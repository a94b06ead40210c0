//! Manifests, metadata files, annotations and lists of images as arguments of commands.

use std::fs;
use std::path::{Path, PathBuf};

use tbl_io::{Labels, SampleSource, SampleSourceExt};

use crate::support::{json_lines, tl, write};

fn images(root: &Path) {
    for name in ["i/1.bmp", "i/2.bmp", "m/1.png"] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(path, name).expect("a file");
    }
}

/// Names, labels and fields of the samples.
fn samples(path: &Path) -> Vec<(String, Option<i64>, Vec<String>)> {
    let sources: Vec<Box<dyn SampleSource>> = tbl_io::open_all(&[path]).expect("a data set");
    let labels = Labels::resolve(&sources).expect("labels");
    let sample = |index| {
        let mut fields = Vec::new();
        sources[0].read_fields(index, &mut fields).expect("fields");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let key = sources[0].entry(index).expect("an entry").key.expect("a name").into_owned();
        let field =
            |field: tbl_io::Field| format!("{}={}", text(field.extension), text(field.bytes));
        (text(key), labels.label(0, index), fields.into_iter().map(field).collect())
    };
    (0..sources[0].sample_count()).map(sample).collect()
}

fn converted(
    root: &Path,
    list: &Path,
    options: &[&str],
) -> Vec<(String, Option<i64>, Vec<String>)> {
    let tbl = root.join("out.tbl");
    let mut args = vec!["convert", "-q", "-f", path(list), "-o", path(&tbl)];
    args.extend(options);
    let run = tl(args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    samples(&tbl)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn sample(name: &str, label: i64, fields: &[&str]) -> (String, Option<i64>, Vec<String>) {
    let label = Some(label).filter(|&label| label >= 0);
    (name.to_owned(), label, fields.iter().map(|&field| field.to_owned()).collect())
}

#[test]
fn a_manifest_converts_with_all_its_fields() {
    let root = tempfile::tempdir().expect("a folder");
    images(root.path());
    let csv = "image,kind,text,mask\n2.bmp,dog,\"a, b\",m/1.png\n1.bmp,cat,,\n";
    let list: PathBuf = write(root.path(), "list.csv", csv.as_bytes());
    let images = root.path().join("i");
    let root_option = format!("--root={}", images.display());
    let expected = [
        sample("2.bmp", 1, &["text=a, b", "mask=m/1.png"]),
        sample("1.bmp", 0, &["text=", "mask="]),
    ];
    let options = [&*root_option, "--label-column=kind"];
    assert_eq!(converted(root.path(), &list, &options), expected);
    let csv = "path,mask\ni/2.bmp,m/1.png\ni/1.bmp,\n";
    let list = write(root.path(), "list.csv", csv.as_bytes());
    let expected = [sample("i/2.bmp", -1, &["mask=m/1.png"]), sample("i/1.bmp", -1, &[])];
    assert_eq!(converted(root.path(), &list, &["--file-columns=mask"]), expected);
    let error = tl(["info", path(&list), "--label-column=nope"]).error(2);
    assert!(error.ends_with("list.csv: no column `nope`, expected one of: path, mask"), "{error}");
    let error = tl(["info", path(&list), "--labels=x"]).error(2);
    assert!(error.contains("--labels does not go with info"), "{error}");
}

#[test]
fn a_csv_file_still_converts_to_a_table() {
    let root = tempfile::tempdir().expect("a folder");
    let csv = write(root.path(), "a.csv", b"path,x\n1.jpg,2\n");
    let idv = root.path().join("a.idv");
    let run = tl(["convert", "-q", path(&csv), "-o", path(&idv)]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let error = tl(["convert", path(&csv), "-o", path(&root.path().join("a.tbl"))]).error(1);
    assert!(error.contains("line 2, column `path`: 1 named files do not exist"), "{error}");
}

#[test]
fn labels_come_from_a_file() {
    let root = tempfile::tempdir().expect("a folder");
    images(root.path());
    let folder = root.path().join("i");
    let labels = write(root.path(), "labels.csv", b"id,breed\n1,pug\n2,boxer\n");
    let option = format!("--labels={}", labels.display());
    let expected = [sample("1.bmp", 1, &[]), sample("2.bmp", 0, &[])];
    assert_eq!(converted(root.path(), &folder, &[&option]), expected);
    let rows = json_lines(&tl(["ls", "--json", path(&folder), &option]).text());
    let labels: Vec<_> = rows.iter().filter_map(|row| row["label"].as_i64()).collect();
    assert_eq!(labels, [1, 0]);
    write(root.path(), "labels.csv", b"id,breed\n1,pug\n");
    let error = tl(["ls", path(&folder), &option]).error(1);
    assert!(error.ends_with("1 of 2 samples have no label here, first `2.bmp`"), "{error}");
    let args = ["ls", path(&folder), &option, "--allow-unlabelled"];
    assert_eq!(tl(args).code, Some(0));
}

#[test]
fn annotations_and_metadata_files_are_opened_by_their_path() {
    let root = tempfile::tempdir().expect("a folder");
    images(root.path());
    let json = r#"{"images": [{"id": 1, "file_name": "2.bmp"}], "categories":
        [{"id": 7, "name": "cup"}], "annotations": [{"image_id": 1, "category_id": 7}]}"#;
    let list = write(root.path(), "instances.json", json.as_bytes());
    let images = root.path().join("i");
    let options = [&*format!("--root={}", images.display()), "--dense-categories"];
    let field = "json={\"image\":{\"id\": 1, \"file_name\": \"2.bmp\"},\
                 \"annotations\":[{\"image_id\":1,\"category_id\":0}]}";
    assert_eq!(converted(root.path(), &list, &options), [sample("2.bmp", -1, &[field])]);
    let stored = root.path().join("boxes.tbl");
    let args = ["convert", path(&list), options[0], "--dense-categories", "-qo", path(&stored)];
    assert_eq!(tl(args).code, Some(0));
    assert!(tl(["info", path(&stored)]).text().contains("\nbox classes  1: cup"));
    let info = json_lines(&tl(["info", "--json", path(&stored)]).text());
    assert_eq!(info[0]["box_classes"], serde_json::json!(["cup"]));
    write(&images, "metadata.csv", b"file_name,label\n2.bmp,5\n1.bmp,6\n");
    let expected = [sample("2.bmp", 5, &["label=5"]), sample("1.bmp", 6, &["label=6"])];
    assert_eq!(converted(root.path(), &images, &[]), expected);
    let files = [images.join("2.bmp"), images.join("1.bmp")];
    let rows = json_lines(&tl(["ls", "--json", path(&files[0]), path(&files[1])]).text());
    let keys: Vec<_> = rows.iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(keys, ["2.bmp", "1.bmp"]);
}

#[test]
fn images_are_opened_with_the_files_of_another_pattern() {
    let root = tempfile::tempdir().expect("a folder");
    images(root.path());
    let at = |name: &str| root.path().join(name);
    let pattern = at("i/*.{bmp,png}");
    let pair = format!("--pair=mask={}", at("m/*.png").display());
    let error = tl(["ls", path(&pattern), &pair]).error(1);
    assert!(error.contains("1 of 2 files have no partner"), "{error}");
    let kept = [sample("i/1.bmp", -1, &["mask=m/1.png"]), sample("i/2.bmp", -1, &[])];
    assert_eq!(converted(root.path(), &pattern, &[&pair, "--unpaired=keep"]), kept);
    assert_eq!(converted(root.path(), &pattern, &[&pair, "--unpaired=drop"]), kept[..1]);
    let split = write(root.path(), "train.txt", "\u{feff}1\r\n".as_bytes());
    let split = format!("--pair-split={}", split.display());
    assert_eq!(converted(root.path(), &pattern, &[&pair, &split]), kept[..1]);
    let field = tl(["cat", path(&pattern), "0", &pair, &split, "--field=mask"]);
    assert_eq!((field.code, &*field.stdout), (Some(0), &b"m/1.png"[..]), "{}", field.stderr);
    let error = tl(["ls", path(&pattern), "--pair=mask"]).error(2);
    assert!(error.contains("expected FIELD=PATTERN"), "{error}");
}

#[test]
fn validation_images_of_imagenet_get_their_labels() {
    let root = tempfile::tempdir().expect("a folder");
    for number in [1, 2] {
        write(root.path(), &format!("ILSVRC2012_val_{number:08}.JPEG"), b"image");
    }
    let kit = tempfile::tempdir().expect("a folder");
    write(kit.path(), "imagenet_2012_validation_synset_labels.txt", b"n02\nn01\n");
    let option = format!("--imagenet-labels={}", kit.path().display());
    let rows = json_lines(&tl(["ls", "--json", path(root.path()), &option]).text());
    let labels: Vec<_> = rows.iter().filter_map(|row| row["label"].as_i64()).collect();
    assert_eq!(labels, [1, 0]);
}

#[test]
fn cat_shows_annotations_with_the_numbers_that_a_joined_data_set_has() {
    let root = tempfile::tempdir().expect("a folder");
    images(root.path());
    for (number, category) in [(1, "dog"), (2, "cat")] {
        let json = format!(
            r#"{{"images": [{{"id": 1, "file_name": "i/{number}.bmp"}}],
            "categories": [{{"id": 3, "name": "{category}"}}],
            "annotations": [{{"image_id": 1, "category_id": 3}}]}}"#
        );
        write(root.path(), &format!("{number}.json"), json.as_bytes());
    }
    let pattern = root.path().join("{1..2}.json");
    for (index, number) in [("0", 1), ("1", 0)] {
        let json = tl(["cat", path(&pattern), index, "--field", "json"]).text();
        let expected = format!(r#""category_id":{number}"#);
        assert!(json.contains(&expected), "{index}: {json}");
    }
    let error = tl(["cat", path(&pattern), "2", "--field", "json"]).error(2);
    assert!(error.contains("sample 2"), "{error}");
}
