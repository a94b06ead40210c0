//! `extract`: everything comes back, and nothing is written outside the folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Run, files_below, tar, tl, write};

fn extract(archive: &Path, to: &Path, more: &[&str]) -> Run {
    let fixed = ["extract".as_ref(), archive.as_os_str(), "-o".as_ref(), to.as_os_str()];
    tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref())))
}

#[test]
fn samples_and_fields_come_back_under_their_names() {
    let members: [(&[u8], &[u8]); 5] = [
        (b"a/one.cls", b"4"),
        (b"a/one.jpg", b"JPEG"),
        (b"a/one.seg.png", b"mask"),
        (b"b/two.jpg", b""),
        (b"notes.bmp", b"text"),
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let out = folder.path().join("new/out");
    extract(&archive, &out, &[]).good();
    let mut expected: Vec<(String, Vec<u8>)> = members
        .iter()
        .map(|(name, bytes)| (String::from_utf8_lossy(name).into_owned(), bytes.to_vec()))
        .collect();
    expected.sort();
    assert_eq!(files_below(&out), expected);

    let some = folder.path().join("some");
    extract(&archive, &some, &["2", "1"]).good();
    assert_eq!(
        files_below(&some),
        [("b/two.jpg".to_owned(), vec![]), ("notes.bmp".to_owned(), b"text".to_vec())]
    );
    let message = extract(&archive, &folder.path().join("none"), &["0", "3"]).error(2);
    assert!(message.contains("sample 3 does not exist"), "{message}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn a_name_that_leaves_the_folder_stops_everything_before_it_starts() {
    for name in ["../evil.jpg", "/tmp/tl-evil.jpg", "a/../../evil.jpg"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let members: [(&[u8], &[u8]); 2] = [(b"good.jpg", b"1"), (name.as_bytes(), b"2")];
        let archive = write(folder.path(), "in.tar", &tar(&members));
        let message = extract(&archive, &folder.path().join("out"), &[]).error(1);
        assert!(
            message.contains("sample 1 (") && message.contains("unsafe member name"),
            "{message}"
        );
        assert_eq!(files_below(folder.path()).len(), 1, "only the archive is there");
        extract(&archive, &folder.path().join("out"), &["0"]).good();
    }
}

#[test]
fn a_path_beyond_the_file_systems_limits_stops_everything_before_it_starts() {
    let deep = "d/".repeat(50_000) + "deep.jpg";
    let wide = "w".repeat(300) + ".jpg";
    for (name, said) in [(&deep, "it has 100008 bytes"), (&wide, "a component has 304 bytes")] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let archive = tar(&[(b"good.jpg", b"1"), (name.as_bytes(), b"2")]);
        let archive = write(folder.path(), "in.tar", &archive);
        let out = folder.path().join("out");
        let message = extract(&archive, &out, &[]).error(1);
        assert!(message.contains("refusing to extract") && message.contains(said), "{message}");
        assert!(!out.exists());
    }
}

/// A file without extension is not a field, and is passed over next to images.
#[test]
fn a_file_without_extension_never_comes_back_under_another_name() {
    let files = [("a/x", "no extension"), ("a/x.cls", "3"), ("a/x.jpg", "JPEG")];
    let expected =
        [files[1], files[2]].map(|(name, bytes)| (name.to_owned(), bytes.as_bytes().to_vec()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("in/a")).expect("made");
    for (name, bytes) in files {
        write(&at("in"), name, bytes.as_bytes());
    }
    let convert = |from: &str, to: &str| {
        let arguments = [at(from).into_os_string(), "-o".into(), at(to).into_os_string()];
        tl(["convert".into(), "--no-sync".into()].into_iter().chain(arguments)).code
    };
    for (from, to) in [("in", "a.tar"), ("a.tar", "b.tbl"), ("b.tbl", "c.tar")] {
        assert_eq!(convert(from, to), Some(0), "{from} to {to}");
    }
    for from in ["in", "a.tar", "b.tbl", "c.tar"] {
        let out = at(&format!("{from}.out"));
        extract(&at(from), &out, &[]).good();
        assert_eq!(files_below(&out), expected, "{from}");
    }
}

#[test]
fn links_in_the_folder_are_not_followed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let members: [(&[u8], &[u8]); 1] = [(b"link/file.jpg", b"new")];
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let (out, outside) = (folder.path().join("out"), folder.path().join("outside"));
    fs::create_dir(&out).expect("made");
    fs::create_dir(&outside).expect("made");
    symlink(&outside, out.join("link")).expect("linked");
    for more in [&[][..], &["-f"]] {
        let message = extract(&archive, &out, more).error(2);
        assert!(message.contains("out/link/file.jpg: "), "{message}");
    }
    assert_eq!(fs::read_dir(&outside).expect("readable").count(), 0);
}

#[test]
fn existing_files_are_replaced_only_when_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = write(folder.path(), "in.tar", &tar(&[(b"a.jpg", b"new")]));
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("made");
    write(&out, "a.jpg", b"old");
    let message = extract(&archive, &out, &[]).error(2);
    assert!(message.ends_with("a.jpg: exists already (-f replaces it)"), "{message}");
    assert_eq!(files_below(&out), [("a.jpg".to_owned(), b"old".to_vec())]);
    extract(&archive, &out, &["-f"]).good();
    assert_eq!(files_below(&out), [("a.jpg".to_owned(), b"new".to_vec())]);
}

#[test]
fn samples_of_one_name_are_all_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let members: [(&[u8], &[u8]); 3] = [(b"a.jpg", b"1"), (b"a.jpg", b"2"), (b"a.jpg", b"3")];
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let out = folder.path().join("out");
    for more in [&[][..], &["-f"]] {
        extract(&archive, &out, more).good();
        let files = files_below(&out);
        let expected = [("a.jpg", "1"), ("a_2.jpg", "2"), ("a_3.jpg", "3")];
        assert_eq!(files.len(), expected.len());
        for ((name, bytes), (expected_name, expected)) in files.iter().zip(expected) {
            assert_eq!((name.as_str(), bytes.as_slice()), (expected_name, expected.as_bytes()));
        }
    }
}
