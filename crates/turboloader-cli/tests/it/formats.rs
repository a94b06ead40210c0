//! Files of the original's writers and their archives: what `tl` says about each equals what the
//! description next to it says, which an independent parser made.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{json_lines, sha256, tl};

fn listing(path: &Path) -> Vec<Value> {
    let run = tl(["ls".as_ref(), path.as_os_str(), "--json".as_ref(), "--hash".as_ref()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    json_lines(std::str::from_utf8(&run.stdout).expect("the output is UTF-8"))
}

fn samples_of_info(path: &Path) -> Value {
    let lines = json_lines(&tl(["info".as_ref(), path.as_os_str(), "--json".as_ref()]).text());
    lines[0]["samples"].clone()
}

fn cat(path: &Path, index: usize) -> Vec<u8> {
    tl(["cat".as_ref(), path.as_os_str(), index.to_string().as_ref()]).good()
}

fn description(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the description is readable");
    serde_json::from_str(&text).expect("the description is JSON")
}

/// Every TBL file of `folder`, with the path of its description.
fn tbl_files(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is readable")
        .map(|entry| entry.expect("the entry is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tbl"))
        .map(|path| (path.clone(), path.with_added_extension("json")))
        .collect();
    files.sort();
    files
}

fn check(path: &Path, described: &Value) {
    let samples = described["samples"].as_array().expect("samples is a list");
    let lines = listing(path);
    assert_eq!(lines.len(), samples.len(), "{}", path.display());
    assert_eq!(samples_of_info(path), described["num_samples"], "{}", path.display());
    for (index, (line, sample)) in lines.iter().zip(samples).enumerate() {
        let at = format!("{}: sample {index}: {line}", path.display());
        for (ours, theirs) in [
            ("index", "index"),
            ("offset", "offset"),
            ("stored_bytes", "size"),
            ("format", "format"),
            ("sha256", "sha256"),
        ] {
            assert_eq!(line[ours], sample[theirs], "{at}");
        }
        let bytes = sample.get("uncompressed_size").unwrap_or(&sample["size"]);
        assert_eq!(&line["bytes"], bytes, "{at}");
        for side in ["width", "height"] {
            assert_eq!(&line[side], sample.get(side).unwrap_or(&Value::Null), "{at}");
        }
        assert_eq!(sha256(&cat(path, index)), sample["sha256"], "{at}");
    }
}

#[tl_testdata::needs("formats")]
#[test]
fn tbl_files_of_the_original_are_read_as_described() {
    for part in ["tbl_v1", "tbl_v2"] {
        let folder = tl_testdata::path!("formats").join(part);
        let files = tbl_files(&folder);
        assert!(files.len() >= 3, "{part} has only {} files", files.len());
        for (path, beside) in files {
            check(&path, &description(&beside));
        }
    }
}

#[tl_testdata::needs("formats/tbl_v2")]
#[test]
fn names_and_labels_of_the_original_are_those_of_its_metadata() {
    let folder = tl_testdata::path!("formats/tbl_v2");
    let path = folder.join("mixed_raw_meta.tbl");
    let described = description(&folder.join("mixed_raw_meta.tbl.upstream_reader.json"));
    let samples = described["samples"].as_array().expect("samples is a list");
    let mut named = 0;
    for (line, sample) in listing(&path).iter().zip(samples) {
        let text = sample["metadata"][0].as_str().expect("metadata is text");
        let metadata = serde_json::from_str(text).unwrap_or(Value::Null);
        assert_eq!(line["key"], metadata["name"], "{line}");
        assert_eq!(line["label"], metadata["label"], "{line}");
        named += usize::from(line["key"].is_string());
    }
    assert!(named > 3, "only {named} samples have names");
}

#[tl_testdata::needs("formats")]
#[test]
fn archives_are_listed_as_the_tar_crate_reads_them() {
    let folder = tl_testdata::path!("formats");
    for (name, count) in [("mixed.tar", 25), ("jpegs.tar", 13)] {
        let path = folder.join(name);
        let lines = listing(&path);
        assert_eq!(lines.len(), count, "{name}");
        assert_eq!(samples_of_info(&path), count, "{name}");
        let mut archive = tar::Archive::new(File::open(&path).expect("the archive opens"));
        let entries = archive.entries().expect("the archive is readable");
        let entries = entries.map(|entry| entry.expect("the member is readable"));
        // Those that are not images are passed over.
        let images =
            entries.filter(|entry| !matches!(&*entry.path_bytes(), b"label.txt" | b"noext"));
        for (line, mut entry) in lines.iter().zip(images) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("the member is readable");
            assert_eq!(line["key"].as_str().map(str::as_bytes), Some(&*entry.path_bytes()));
            assert_eq!(line["offset"], entry.raw_file_position());
            assert_eq!(line["bytes"], bytes.len());
            assert_eq!(line["sha256"], sha256(&bytes));
        }
    }
}

#[tl_testdata::needs("formats")]
#[test]
fn an_archive_and_the_tbl_made_from_it_hold_the_same_samples() {
    let folder = tl_testdata::path!("formats");
    let described = description(&folder.join("tbl_v2/mixed_raw.tbl.json"));
    let samples = described["samples"].as_array().expect("samples is a list");
    // Those that are not images are passed over in the archive.
    let images = samples.iter().filter(|sample| sample["format"] != "UNKNOWN");
    for (line, sample) in listing(&folder.join("mixed.tar")).iter().zip(images) {
        assert_eq!(line["format"], sample["format"], "{line}");
        assert_eq!(line["sha256"], sample["sha256"], "{line}");
    }
}
