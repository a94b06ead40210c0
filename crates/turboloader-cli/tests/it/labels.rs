//! Labels keep their classes through every way of joining containers, and none gets lost in silence.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{Dataset, Loader, LoaderConfig, Work};

use crate::support::{Run, json_lines, tar, tl, write};

/// The kinds of containers that hold one part of the photographs.
const KINDS: [&str; 7] =
    ["folder", "tar", "rooted.tar", "tbl", "lz4.tbl", "from_tar.tbl", "raw.tbl"];

/// A number of the part `part` as a separate photograph, in one of four classes of which the two
/// parts share two.
fn photo(part: usize, number: usize) -> (String, Vec<u8>) {
    let class = ["ant", "bee", "cat", "dog"][part + number % 3];
    let side = u32::try_from(8 + number).expect("a small number");
    let mut bmp = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bmp.extend_from_slice(&side.to_le_bytes());
    bmp.extend_from_slice(&side.to_le_bytes());
    bmp.extend_from_slice(&[1, 0, 24, 0]);
    bmp.resize(54, 0);
    bmp.resize(54 + (side * 3).next_multiple_of(4) as usize * side as usize, u8::from(part > 0));
    (format!("{class}/{part}{number}.bmp"), bmp)
}

/// Writes one part in each kind of container.
fn containers(root: &Path, part: usize) -> BTreeMap<&'static str, PathBuf> {
    let at = |kind: &str| root.join(format!("p{part}.{kind}"));
    let photos: Vec<_> = (0..7).map(|number| photo(part, number)).collect();
    for (name, bytes) in &photos {
        let path = at("folder").join(name);
        fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the folder is writable");
        fs::write(path, bytes).expect("the folder is writable");
    }
    let rooted: Vec<_> =
        photos.iter().map(|(name, bytes)| (format!("photos/{name}"), bytes)).collect();
    let members: Vec<(&[u8], &[u8])> =
        rooted.iter().map(|(name, bytes)| (name.as_bytes(), &bytes[..])).collect();
    write(root, &format!("p{part}.rooted.tar"), &tar(&members));
    let convert = |from: &str, to: &str, options: &[&str]| {
        let (from, to) = (at(from), at(to));
        let args = [
            "-q",
            "convert",
            from.to_str().expect("the path is UTF-8"),
            "-o",
            to.to_str().expect("the path is UTF-8"),
        ];
        tl(args.iter().chain(options)).good();
    };
    convert("folder", "tar", &[]);
    convert("folder", "tbl", &[]);
    convert("folder", "lz4.tbl", &["--lz4"]);
    convert("tar", "from_tar.tbl", &[]);
    convert("folder", "raw.tbl", &["--to", "raw", "--size", "8"]);
    KINDS.map(|kind| (kind, at(kind))).into()
}

/// The part of a name after its last slash.
fn base_name(key: Vec<u8>) -> String {
    let name = String::from_utf8(key).expect("the name is UTF-8");
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The label of a sample that has one.
fn class_number(dataset: &Dataset, index: u64) -> usize {
    let label = dataset.label(index).expect("it has a label");
    usize::try_from(label).expect("it is a class")
}

/// The class of every sample by the last part of its name.
fn classes(paths: &[&Path]) -> BTreeMap<String, String> {
    let dataset = Dataset::open(paths).expect("it opens");
    assert_eq!(dataset.label_notes(), [], "{paths:?}");
    let class = |index: u64| {
        let key =
            dataset.entry(index).expect("it is whole").key.expect("it has a name").into_owned();
        let name = base_name(key);
        let label = class_number(&dataset, index);
        (name, dataset.class_names()[label].clone())
    };
    (0..dataset.len()).map(class).collect()
}

#[test]
fn every_pair_of_containers_keeps_its_classes() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = [0, 1].map(|part| containers(root.path(), part));
    let expected: BTreeMap<String, String> = [0, 1]
        .into_iter()
        .flat_map(|part| (0..7).map(move |number| photo(part, number).0))
        .map(|name| {
            let (class, name) = name.split_once('/').unwrap();
            (name.to_owned(), class.to_owned())
        })
        .collect();
    for (one, first) in &first {
        for (other, second) in &second {
            for pair in [[first, second], [second, first]] {
                let paths = pair.map(PathBuf::as_path);
                assert_eq!(classes(&paths), expected, "{one}, {other}");
            }
            let is_raw = [one, other].iter().any(|kind| kind.starts_with("raw"));
            let targets = if is_raw { &["tbl"][..] } else { &["tbl", "tar"] };
            for target in targets {
                for command in ["merge", "convert"] {
                    let joined = root.path().join(format!("joined.{target}"));
                    let run = tl([command.as_ref(), first.as_os_str(), second.as_os_str()]
                        .into_iter()
                        .chain(["-q", "--force", "-o"].map(AsRef::as_ref))
                        .chain([joined.as_os_str()]));
                    assert_eq!(run.code, Some(0), "{}", run.stderr);
                    // Different roots in one archive are other class folders: it has numbers.
                    let has_names = Dataset::open(&[&joined]).unwrap().class_names().len() == 4;
                    assert_ne!(has_names, run.stderr.contains("cannot store 4 class names"));
                    let found = classes_by_number(&joined, *target == "tar", &[first, second]);
                    assert_eq!(found, expected, "{command} {one}, {other} to {target}");
                }
            }
        }
    }
}

/// As [`classes`], with the names of the sources where the archive has numbers only.
fn classes_by_number(
    joined: &Path,
    is_tar: bool,
    sources: &[&PathBuf],
) -> BTreeMap<String, String> {
    let dataset = Dataset::open(&[joined]).expect("it opens");
    let of_sources = Dataset::open(sources).expect("it opens");
    let names = if is_tar && dataset.class_names().is_empty() {
        of_sources.class_names()
    } else {
        dataset.class_names()
    };
    let class = |index: u64| {
        let key =
            dataset.entry(index).expect("it is whole").key.expect("it has a name").into_owned();
        let name = base_name(key);
        (name, names[class_number(&dataset, index)].clone())
    };
    (0..dataset.len()).map(class).collect()
}

/// A state of one pair is one of another: the fingerprint covers labels and names.
#[test]
fn the_fingerprint_does_not_depend_on_the_containers() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = [0, 1].map(|part| containers(root.path(), part));
    let of = |one: &str, other: &str| {
        Dataset::open(&[&first[one], &second[other]]).unwrap().fingerprint().unwrap()
    };
    let expected = of("tar", "tar");
    for (one, other) in [("folder", "tbl"), ("tbl", "folder"), ("tar", "lz4.tbl"), ("tbl", "tbl")] {
        assert_eq!(of(one, other), expected, "{one}, {other}");
    }
}

/// Samples are hashed in chunks of 65,536, which begin anywhere in a file.
#[test]
fn the_fingerprint_does_not_depend_on_the_borders_of_files() {
    const COUNT: u64 = 140_000;
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| root.path().join(name);
    let write = |name: &str, samples: Range<u64>, last_label: i64| {
        let options = WriteOptions { sync: false, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&path(name), options).expect("a new file");
        for sample in samples {
            let key = format!("{sample}.jpg");
            let label = Some(if sample == COUNT - 1 { last_label } else { 3 });
            let key = Some(key.as_bytes());
            let sample = NewSample { key, label, ..NewSample::new(b"\xff\xd8\xff\xd9") };
            writer.write_sample(&sample).expect("a sample");
        }
        writer.finish().expect("a file");
    };
    write("whole.tbl", 0..COUNT, 3);
    write("other.tbl", 0..COUNT, 4);
    write("first.tbl", 0..65_000, 3);
    write("second.tbl", 65_000..65_001, 3);
    write("third.tbl", 65_001..COUNT, 3);
    let of = |names: &[&str]| {
        let paths: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
        Dataset::open(&paths).expect("files").fingerprint().expect("a fingerprint")
    };
    let whole = of(&["whole.tbl"]);
    assert_eq!(of(&["first.tbl", "second.tbl", "third.tbl"]), whole);
    assert_ne!(of(&["other.tbl"]), whole);
    assert_ne!(of(&["third.tbl", "first.tbl", "second.tbl"]), whole);
}

/// A folder with label files, and an archive of the same.
fn labelled(root: &Path, files: &[(&str, &str)]) -> [PathBuf; 2] {
    let bmp = photo(0, 0).1;
    let body = |name: &str, body: &str| {
        if name.ends_with(".bmp") { bmp.clone() } else { body.as_bytes().to_vec() }
    };
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|&(name, text)| (name, body(name, text))).collect();
    for (name, bytes) in &files {
        let path = root.join("photos").join(name);
        fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the folder is writable");
        fs::write(path, bytes).expect("the folder is writable");
    }
    let members: Vec<(&[u8], &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_bytes(), &bytes[..])).collect();
    [root.join("photos"), write(root, "photos.tar", &tar(&members))]
}

fn run(path: &Path, command: &str, options: &[&str]) -> Run {
    tl([command, path.to_str().expect("the path is UTF-8")].iter().chain(options))
}

#[test]
fn a_label_that_cannot_be_read_is_reported_and_never_dropped() {
    let root = tempfile::tempdir().unwrap();
    let files = [("1.bmp", ""), ("1.cls", "3"), ("2.bmp", ""), ("2.cls", "dog")];
    for path in labelled(root.path(), &files) {
        let message = "2.cls: the label is `dog`, expected an integer";
        let verified = run(&path, "verify", &["--json"]);
        assert_eq!(verified.code, Some(1));
        let report: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!((&report["bad_samples"], &report["warnings"]), (&1.into(), &0.into()));
        let finding = &report["findings"][0];
        assert_eq!((&finding["index"], &finding["key"]), (&1.into(), &"2.bmp".into()));
        assert!(finding["reason"].as_str().unwrap().starts_with(message), "{finding}");

        for target in ["out.tbl", "out.tar"] {
            let to = root.path().join(target);
            let error = run(&path, "convert", &["-o", to.to_str().unwrap()]).error(1);
            assert!(error.contains(&format!("sample 1 (2.bmp): {message}")), "{error}");
            assert!(!to.exists());
        }
        let listed = run(&path, "ls", &["--json"]);
        assert_eq!(listed.code, Some(1));
        let lines = json_lines(std::str::from_utf8(&listed.stdout).unwrap());
        assert_eq!(lines[0]["label"], 3);
        assert!(lines[1]["error"].as_str().unwrap().contains(message), "{}", lines[1]);
        assert_eq!(run(&path, "info", &[]).code, Some(1));
        assert_eq!(run(&path, "digest", &[]).code, Some(1));
    }
}

#[test]
fn a_stray_label_file_is_a_warning() {
    let root = tempfile::tempdir().unwrap();
    let files = [("a/1.bmp", ""), ("a/1.cls", "7"), ("a/2.bmp", ""), ("b/3.bmp", "")];
    for path in labelled(root.path(), &files) {
        let verified = run(&path, "verify", &["--json"]);
        assert_eq!(verified.code, Some(0), "{}", verified.stderr);
        let report: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!((&report["good"], &report["warnings"]), (&true.into(), &1.into()));
        let reason = report["findings"][0]["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("samples whose class folder overrides a different label file"),
            "{reason}"
        );
        assert!(reason.ends_with("sample 0 (a/1.bmp) with 7 in class `a`"), "{reason}");

        let info = run(&path, "info", &[]).text();
        assert!(info.contains("labels       3 (class folders)"), "{info}");
        assert!(info.contains("label note   samples whose class folder overrides"), "{info}");
        for target in ["tbl", "tar"] {
            let to = root.path().join(format!("out.{target}"));
            let options = ["--force", "-q", "-o", to.to_str().unwrap()];
            let converted = run(&path, "convert", &options);
            assert_eq!(converted.code, Some(0));
            assert!(
                converted.stderr.contains("samples whose class folder"),
                "{}",
                converted.stderr
            );
            let dataset = Dataset::open(&[&to]).unwrap();
            let labels: Vec<_> = (0..3).map(|index| dataset.label(index)).collect();
            assert_eq!(labels, [Some(0), Some(0), Some(1)]);
            assert_eq!(dataset.class_names(), ["a", "b"]);
        }
    }
}

#[test]
fn samples_without_a_label_are_said_once() {
    let root = tempfile::tempdir().unwrap();
    let files = [("1.bmp", ""), ("1.cls", "1"), ("2.bmp", ""), ("3.bmp", "")];
    let note = "samples without a label among labelled ones: 2, first ";
    for path in labelled(root.path(), &files) {
        let verified = run(&path, "verify", &[]);
        assert_eq!(verified.code, Some(0));
        let text = String::from_utf8(verified.stdout).unwrap();
        assert!(text.starts_with(&format!("warning: {note}")), "{text}");
        assert!(text.contains("sample 1 (2.bmp)") && text.contains(", 1 warnings"), "{text}");
        let text = run(&path, "info", &[]).text();
        assert!(text.contains("labels       1 of 3 (explicit)"), "{text}");
        assert!(text.contains(&format!("label note   {note}")), "{text}");
        let json = json_lines(&run(&path, "info", &["--json"]).text());
        assert!(json[0]["label_notes"][0].as_str().unwrap().starts_with(note), "{}", json[0]);
        let dataset = Dataset::open(&[&path]).unwrap();
        let loader = Loader::new(dataset, LoaderConfig::new(Work::Bytes)).unwrap();
        let notes: Vec<String> = loader.notes().iter().map(ToString::to_string).collect();
        assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
    }
}

/// Samples without a label stay so in an archive, whatever folders they lie in.
#[test]
fn unlabelled_samples_in_folders_get_no_class_by_conversion() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("in.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    for (key, label) in [("x/1.bmp", Some(4)), ("x/2.bmp", None), ("y/3.bmp", None)] {
        let bytes = photo(0, 0).1;
        let key = Some(key.as_bytes());
        let sample = NewSample { key, label, ..NewSample::new(&bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    let to = root.path().join("out.tar");
    assert_eq!(run(&path, "convert", &["-q", "-o", to.to_str().unwrap()]).code, Some(0));
    let dataset = Dataset::open(&[&to]).unwrap();
    let labels: Vec<_> = (0..3).map(|index| dataset.label(index).unwrap_or(-1)).collect();
    assert_eq!((labels, dataset.class_names().len()), (vec![4, -1, -1], 0));
}

#[test]
fn numbers_and_class_folders_are_not_joined() {
    let root = tempfile::tempdir().unwrap();
    let [numbers, _] = labelled(root.path(), &[("1.bmp", ""), ("1.cls", "1")]);
    let folder = containers(root.path(), 0)["folder"].clone();
    let to = root.path().join("out.tbl");
    for command in ["convert", "merge"] {
        let paths = [&folder, &numbers, &to].map(|path| path.to_str().unwrap());
        let error = tl([command, paths[0], paths[1], "-o", paths[2]]).error(2);
        assert!(error.contains(paths[0]) && error.contains(paths[1]), "{error}");
        assert!(!to.exists());
    }
    assert!(Dataset::open(&[&folder, &numbers]).is_err());
}
