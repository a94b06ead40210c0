//! `ls`, `cat`, `digest`, `info`: what a small archive looks like through each.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{command, finished, json_lines, photos, sha256, tar, tl, write};

const MEMBERS: [(&[u8], &[u8]); 7] = [
    (b"train/cat/one.jpg", b"\xff\xd8\xff one"),
    (b"train/cat/one.cls", b"4"),
    (b"train/dog/two.PNG", b""),
    (b"train/dog/two.json", b"{\"label\": -3, \"note\": \"x\"}"),
    (b"train/dog/odd\xff\t\\name.webp", b"RIFF"),
    (b"notes.bmp", b"text"),
    (b"train/cat/one.seg.png", b"mask"),
];

fn archive() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "small.tar", &tar(&MEMBERS));
    let path = path.to_str().expect("the path is UTF-8").to_owned();
    (folder, path)
}

/// The output of a run that may print notes.
fn stdout<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let run = tl(args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    String::from_utf8(run.stdout).expect("the output is UTF-8")
}

#[test]
fn json_lines_hold_what_the_archive_holds() {
    let (_folder, path) = archive();
    let lines = json_lines(&tl(["ls", &path, "--json", "--hash"]).text());
    let expected = [
        ("train/cat/one.jpg", json!(4), "JPEG", 512, MEMBERS[0].1),
        ("train/dog/two.PNG", json!(-3), "PNG", 2560, b""),
        ("train/dog/odd\\xff\t\\name.webp", Value::Null, "WEBP", 4096, b"RIFF"),
        ("notes.bmp", Value::Null, "BMP", 5120, b"text"),
    ];
    assert_eq!(lines.len(), expected.len());
    for (index, (line, (key, label, format, offset, bytes))) in
        lines.iter().zip(expected).enumerate()
    {
        let expected = json!({
            "index": index, "key": key, "label": label, "format": format,
            "width": null, "height": null, "offset": offset,
            "stored_bytes": bytes.len(), "bytes": bytes.len(), "sha256": sha256(bytes),
        });
        assert_eq!(line, &expected);
    }
}

#[test]
fn a_pipe_gets_tab_separated_values_with_escaped_names() {
    let (_folder, path) = archive();
    let text = tl(["ls", &path]).text();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0][..4], ["index", "key", "label", "format"]);
    assert!(lines.iter().all(|line| line.len() == 9), "{text}");
    assert_eq!(lines[1][..4], ["0", "train/cat/one.jpg", "4", "JPEG"]);
    assert_eq!(lines[3][1], "train/dog/odd\\xff\\x09\\x5cname.webp");
    let hashed = tl(["ls", &path, "--hash"]).text();
    assert!(hashed.lines().nth(4).is_some_and(|line| line.ends_with(&sha256(b"text"))), "{hashed}");
}

#[test]
fn classes_follow_from_folders() {
    let photos = photos();
    let lines = json_lines(&stdout(["ls".as_ref(), photos.as_os_str(), "--json".as_ref()]));
    let classes = ["animals", "food", "people", "science", "space", "textures"];
    assert_eq!(lines.len(), 12);
    for (index, line) in lines.iter().enumerate() {
        let class = index / 2;
        assert_eq!((&line["label"], &line["class"]), (&json!(class), &json!(classes[class])));
        assert!(line["key"].as_str().is_some_and(|key| key.starts_with(classes[class])));
    }
}

#[test]
fn cat_writes_the_bytes_of_a_sample_or_of_a_field() {
    let (folder, path) = archive();
    assert_eq!(tl(["cat", &path, "0"]).good(), MEMBERS[0].1);
    assert_eq!(tl(["cat", &path, "1"]).good(), b"");
    assert_eq!(tl(["cat", &path, "0", "--field", "seg.png"]).good(), b"mask");
    assert_eq!(tl(["cat", &path, "1", "--field", "json"]).good(), MEMBERS[3].1);
    let message = tl(["cat", &path, "3", "--field", "cls"]).error(2);
    assert!(message.ends_with("sample 3 (notes.bmp): no field `cls`"), "{message}");
    let message = tl(["cat", &path, "4"]).error(2);
    assert!(message.contains("sample 4 does not exist"), "{message}");

    let out = folder.path().join("out");
    let out = out.to_str().expect("the path is UTF-8");
    tl(["cat", &path, "3", "-o", out]).good();
    assert_eq!(fs::read(out).expect("it was written"), b"text");
    let message = tl(["cat", &path, "0", "-o", out]).error(2);
    assert!(message.ends_with("exists already (-f replaces it)"), "{message}");
    assert_eq!(fs::read(out).expect("it is still there"), b"text");
    tl(["cat", &path, "0", "-o", out, "-f"]).good();
    assert_eq!(fs::read(out).expect("it was replaced"), MEMBERS[0].1);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("readable").collect();
    assert_eq!(left.len(), 2, "no temporary file is left: {left:?}");
}

#[test]
fn the_digest_is_what_its_help_says() {
    let (_folder, path) = archive();
    let mut hashed = Vec::new();
    let samples: [(&[u8], i64, &[u8]); 4] = [
        (MEMBERS[0].0, 4, MEMBERS[0].1),
        (MEMBERS[2].0, -3, MEMBERS[2].1),
        (MEMBERS[4].0, i64::MIN, MEMBERS[4].1),
        (MEMBERS[5].0, i64::MIN, MEMBERS[5].1),
    ];
    for (index, (name, label, bytes)) in samples.into_iter().enumerate() {
        hashed.extend((index as u64).to_le_bytes());
        hashed.extend((name.len() as u64).to_le_bytes());
        hashed.extend(name);
        hashed.extend(label.to_le_bytes());
        hashed.extend((bytes.len() as u64).to_le_bytes());
        hashed.extend(bytes);
    }
    assert_eq!(tl(["digest", &path]).text(), format!("{}\n", sha256(&hashed)));
}

#[test]
fn a_data_set_keeps_its_digest_in_every_container() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let photos = photos();
    let digest = |path: &Path| tl(["digest".as_ref(), path.as_os_str()]).text();
    for (name, more) in [("a.tbl", &[][..]), ("b.tbl", &["--lz4"]), ("c.tar", &["--to", "tar"])] {
        let path = folder.path().join(name);
        let fixed = ["convert".as_ref(), photos.as_os_str(), "-qo".as_ref(), path.as_os_str()];
        tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref()))).good();
        assert_eq!(digest(&path), digest(&photos), "{name}");
    }
}

#[test]
fn info_counts_what_is_there() {
    let (_folder, path) = archive();
    let lines = json_lines(&tl(["info", &path, "--json"]).text());
    let [info] = lines.as_slice() else { panic!("one object, not {lines:?}") };
    assert_eq!(info["schema"], "tl.info/1");
    assert_eq!(info["kind"], "tar");
    assert_eq!(info["samples"], 4);
    assert_eq!(info["bytes"], 15);
    assert_eq!(info["formats"], json!({"BMP": 1, "JPEG": 1, "PNG": 1, "WEBP": 1}));
    assert_eq!(info["labelled"], 2);
    assert_eq!(info["end_marker"], true);
    let text = tl(["info", &path]).text();
    assert!(text.lines().any(|line| line.starts_with("samples") && line.ends_with(" 4")), "{text}");
}

#[test]
fn a_missing_file_is_one_line_and_exit_code_2() {
    for command in ["ls", "info", "digest"] {
        let message = tl([command, "/no/such/file.tar"]).error(2);
        assert!(message.starts_with("tl: /no/such/file.tar: No such file"), "{message}");
    }
}

#[test]
fn a_truncated_archive_is_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = tar(&MEMBERS);
    let path = write(folder.path(), "cut.tar", &whole[..700]);
    let path = path.to_str().expect("the path is UTF-8");
    for command in ["ls", "info", "digest"] {
        let message = tl([command, path]).error(1);
        assert!(message.contains("cut.tar: ") && message.contains("byte"), "{message}");
    }
}

#[test]
fn a_reader_that_stops_early_ends_the_listing_silently() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let names: Vec<String> = (0..20_000).map(|number| format!("{number:05}.jpg")).collect();
    let members: Vec<(&[u8], &[u8])> =
        names.iter().map(|name| (name.as_bytes(), &b""[..])).collect();
    let path = write(folder.path(), "many.tar", &tar(&members));
    let mut child = command(["ls".as_ref(), path.as_os_str(), "--json".as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tl starts");
    drop(child.stdout.take());
    let run = finished(child.wait_with_output().expect("tl ends"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn files_that_are_not_samples_are_counted_alike_in_folders_and_archives() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let names = ["._a.jpg", "LICENSE", "README.txt", "a.cls", "a.left.jpg", "a.right.jpg"];
    let below = folder.path().join("files");
    fs::create_dir(&below).expect("made");
    names.iter().for_each(|name| fs::write(below.join(name), b"7").expect("written"));
    let members = names.map(|name| (name.as_bytes(), &b"7"[..]));
    let archive = write(folder.path(), "files.tar", &tar(&members));
    for path in [&below, &archive] {
        let path = path.to_str().expect("UTF-8");
        let lines = json_lines(&stdout(["ls", path, "--json"]));
        assert_eq!(lines.len(), 1, "{path}");
        assert_eq!((&lines[0]["key"], &lines[0]["label"]), (&json!("a.left.jpg"), &json!(7)));
        let info = json_lines(&stdout(["info", path, "--json"]));
        assert_eq!(info[0]["skipped"], json!({"hidden": 1, "other_files": 2}));
        let notes = [
            "passed over 1 hidden files, 2 files without an image, such as ._a.jpg",
            "1 samples have several images; one is decoded, such as a.left.jpg, and the others \
             are fields",
        ];
        let expected = format!("tl: {path}: {}\ntl: {path}: {}\n", notes[1], notes[0]);
        assert_eq!(tl(["ls", path]).stderr, expected);
        assert_eq!(tl(["digest", path]).stderr, format!("tl: {path}: {}\n", notes[1]));
        let verified = tl(["verify", path]).text();
        assert!(verified.starts_with(&notes.map(|note| format!("warning: {note}\n")).concat()));
        assert!(verified.ends_with(": good: 1 samples, 1 bytes read, 2 warnings\n"), "{verified}");
    }
}

#[test]
fn what_is_passed_over_is_said_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut builder = tar::Builder::new(tar(&[(b"a.jpg", b"image")])[..1024].to_vec());
    for (kind, name) in
        [(tar::EntryType::Symlink, "to\x1bwhere"), (tar::EntryType::Link, "other.jpg")]
    {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(0);
        builder.append_link(&mut header, name, "a.jpg").expect("writing to a vector succeeds");
    }
    let mut bytes = builder.into_inner().expect("writing to a vector succeeds");
    bytes.extend_from_slice(b"garbage");
    let path = write(folder.path(), "odd.tar", &bytes);
    let (path, out) = (path.to_str().expect("UTF-8"), folder.path().join("out.tbl"));
    let out = out.to_str().expect("UTF-8");
    let expected = format!(
        "tl: {path}: passed over 1 symbolic links, 1 hard links, such as to\\x1bwhere\n\
         tl: {path}: bytes from byte 3072 on are not part of the archive\n"
    );
    for args in [
        &["ls", path][..],
        &["digest", path],
        &["info", path],
        &["cat", path, "0"],
        &["convert", path, "-o", out],
        &["extract", path, "-o", &format!("{out}.d")],
    ] {
        let run = tl(args);
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
        assert!(run.stderr.starts_with(&expected), "{args:?}: {}", run.stderr);
    }
    let empty = write(folder.path(), "empty.tar", &[0; 1024]);
    let empty = empty.to_str().expect("UTF-8");
    assert_eq!(tl(["ls", empty]).stderr, format!("tl: {empty}: no samples\n"));
}
