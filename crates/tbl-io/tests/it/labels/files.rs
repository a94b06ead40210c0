//! Label files: unreadable ones, stray ones next to class folders, samples without one.

use std::path::Path;

use tbl_io::{Folder, LabelOrigin, Labels, ReadError, SampleSource, SampleSourceExt};

use super::{check, sources};

/// The same files as an archive and as a folder.
fn both(root: &Path, files: &[(&str, &str)]) -> [Vec<Box<dyn SampleSource>>; 2] {
    for (name, body) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body).unwrap();
    }
    [sources(&[files]), vec![Box::new(Folder::open(root).unwrap())]]
}

fn label(sources: &[Box<dyn SampleSource>], index: u64) -> Result<Option<i64>, ReadError> {
    Labels::resolve(sources).unwrap().try_label(sources, 0, index)
}

/// One sample in the middle, with this label file. Returns its label.
fn in_the_middle(name: &str, body: &str) -> [Result<Option<i64>, ReadError>; 2] {
    let root = tempfile::tempdir().unwrap();
    let files = [
        ("1.jpg", ""),
        ("1.cls", "1"),
        ("2.jpg", ""),
        (name, body),
        ("3.jpg", ""),
        ("3.json", r#"{"label": 3}"#),
    ];
    both(root.path(), &files).map(|sources| {
        assert_eq!(label(&sources, 0).unwrap(), Some(1), "{body}");
        assert_eq!(label(&sources, 2).unwrap(), Some(3), "{body}");
        label(&sources, 1)
    })
}

#[test]
fn labels_that_are_integers_are_read() {
    for (body, expected) in [("3", 3), (" 4 ", 4), ("5\n", 5), ("007", 7), ("+2", 2), ("-1", -1)] {
        for found in in_the_middle("2.cls", body) {
            assert_eq!(found.unwrap(), Some(expected), "{body:?}");
        }
    }
    for (body, expected) in [("{\"label\": 3}", Some(3)), ("{\"label\": 2.0}", Some(2))] {
        for found in in_the_middle("2.json", body) {
            assert_eq!(found.unwrap(), expected, "{body}");
        }
    }
    let large = format!(r#"{{"text": "{}", "label": 6}}"#, "x".repeat(200 << 10));
    for found in in_the_middle("2.json", &large) {
        assert_eq!(found.unwrap(), Some(6));
    }
}

#[test]
fn json_without_a_label_is_none() {
    for body in [r#"{"caption": "a cat"}"#, "[1, 2]", "7"] {
        for found in in_the_middle("2.json", body) {
            assert_eq!(found.unwrap(), None, "{body}");
        }
    }
}

#[test]
fn labels_that_cannot_be_read_are_errors_of_their_samples() {
    let bad = [
        ("2.cls", "dog", "`dog`"),
        ("2.cls", "1.5", "`1.5`"),
        ("2.cls", "1e3", "`1e3`"),
        ("2.cls", "0x10", "`0x10`"),
        ("2.cls", "", "empty"),
        ("2.json", r#"{"label": "cat"}"#, "text `cat`"),
        ("2.json", r#"{"label": 2.5}"#, "2.5"),
        ("2.json", r#"{"label": null}"#, "null"),
        ("2.json", r#"{"label": [1, 2]}"#, "a list"),
        ("2.json", r#"{"label": 100000000000000000000}"#, "100000000000000000000"),
        ("2.json", "cat", "not JSON"),
        ("2.json", r#"{"label": 3"#, "not JSON"),
    ];
    for (name, body, expected) in bad {
        for found in in_the_middle(name, body) {
            let error = found.unwrap_err();
            assert!(error.is_damage() && error.sample_index() == Some(1), "{error}");
            let message = error.to_string();
            let place = format!("sample 1 (2.jpg): {name}: ");
            assert!(message.contains(&place) && message.contains(expected), "{body}: {message}");
        }
    }
}

/// The sample itself is as before: its bytes and its fields can be read.
#[test]
fn a_label_that_cannot_be_read_hides_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    for sources in both(root.path(), &[("1.jpg", "bytes"), ("1.cls", "dog")]) {
        let source = &sources[0];
        assert_eq!(source.entry(0).unwrap().label, None);
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        source.read_into(0, &mut bytes).unwrap();
        source.read_fields(0, &mut fields).unwrap();
        assert_eq!((&bytes[..], &fields[0].bytes[..]), (&b"bytes"[..], &b"dog"[..]));
        let error = label(&sources, 0).unwrap_err();
        assert_eq!(
            error.detail().to_string(),
            "1.cls: the label is `dog`, expected an integer (class folders give classes by name)"
        );
        assert_eq!(Labels::resolve(&sources).unwrap().label(0, 0), None);
    }
}

#[test]
fn stray_label_files_leave_class_folders_on() {
    let stray = [
        ("a/1.cls", "7", " with 7 in class `a`"),
        ("a/1.json", r#"{"label": 1}"#, " with 1 in class `a`"),
        ("a/1.cls", "dog", ", unreadable, in class `a`"),
        ("a/1.json", r#"{"label": "tench"}"#, ", unreadable, in class `a`"),
    ];
    for (name, body, expected) in stray {
        let root = tempfile::tempdir().unwrap();
        let files = [("a/1.jpg", ""), (name, body), ("a/2.jpg", ""), ("b/3.jpg", "")];
        for sources in both(root.path(), &files) {
            let labels = Labels::resolve(&sources).unwrap();
            assert_eq!(labels.origin(), LabelOrigin::ClassFolders, "{body}");
            let found: Vec<_> =
                (0..3).map(|index| labels.try_label(&sources, 0, index).unwrap()).collect();
            assert_eq!(found, [Some(0), Some(0), Some(1)], "{body}");
            let [note] = labels.notes() else { panic!("{:?}", labels.notes()) };
            let note = note.to_string();
            assert!(note.ends_with(&format!("sample 0 (a/1.jpg){expected}")), "{note}");
        }
    }
}

#[test]
fn stored_labels_that_agree_with_the_folders_are_no_conflict() {
    let sources = sources(&[&[("a/1.jpg", ""), ("b/2.jpg", ""), ("b/2.cls", "1")]]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!((labels.origin(), labels.notes()), (LabelOrigin::ClassFolders, &[][..]));
}

/// Text in JSON is metadata of images in class folders, however many have it.
#[test]
fn json_labels_that_cannot_be_read_do_not_outvote_class_folders() {
    let json = r#"{"label": "tench"}"#;
    let all = [("a/1.jpg", ""), ("a/1.json", json), ("b/2.jpg", ""), ("b/2.json", json)];
    check(&[&all], LabelOrigin::ClassFolders, &["a", "b"], &[&[Some(0), Some(1)]]);
    // A `.cls` file serves only as a label.
    let cls = [("a/1.jpg", ""), ("a/1.cls", "x"), ("b/2.jpg", ""), ("b/2.cls", "y")];
    let sources = sources(&[&cls]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.origin(), LabelOrigin::None);
    assert!((0..2).all(|index| labels.try_label(&sources, 0, index).is_err()));
}

#[test]
fn label_files_count_where_more_than_half_of_the_samples_have_one() {
    let members = [
        ("a/1.jpg", ""),
        ("a/1.cls", "8"),
        ("a/2.jpg", ""),
        ("a/2.cls", "9"),
        ("b/3.jpg", ""),
        ("b/3.cls", "x"),
        ("b/4.jpg", ""),
        ("b/5.jpg", ""),
    ];
    let sources = sources(&[&members]);
    let labels = Labels::resolve(&sources).unwrap();
    assert_eq!(labels.origin(), LabelOrigin::Explicit);
    let found: Vec<_> = (0..5).map(|index| labels.label(0, index)).collect();
    assert_eq!(found, [Some(8), Some(9), None, None, None]);
    assert!(labels.try_label(&sources, 0, 2).is_err());
    let notes: Vec<String> = labels.notes().iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        ["samples without a label among labelled ones: 2, first shard.tar: sample 3 (b/4.jpg)"]
    );
}

#[test]
fn samples_without_a_label_among_labelled_ones_are_noted_once() {
    let noted = |archives: &[&[(&str, &str)]]| {
        let labels = Labels::resolve(&sources(archives)).unwrap();
        labels.notes().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(noted(&[&[("1.jpg", ""), ("2.jpg", "")]]), [""; 0]);
    assert_eq!(noted(&[&[("1.jpg", ""), ("1.cls", "1")]]), [""; 0]);
    let notes = noted(&[
        &[("1.jpg", ""), ("1.cls", "1")],
        &[("2.jpg", ""), ("2.cls", "1"), ("3.jpg", "")],
        &[("4.jpg", "")],
    ]);
    assert_eq!(
        notes,
        ["samples without a label among labelled ones: 2, first shard.tar: sample 1 (3.jpg)"]
    );
}
