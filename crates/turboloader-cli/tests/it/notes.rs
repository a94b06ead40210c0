//! Data sets that lose something without being damaged: each command says so.

use std::fs;
use std::path::Path;

use crate::support::{tar, tl, write};

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn class_folders_one_by_one_are_noted() {
    let root = tempfile::tempdir().expect("a temporary folder");
    for class in ["cats", "dogs"] {
        fs::create_dir(root.path().join(class)).expect("made");
        write(&root.path().join(class), "1.jpg", b"image");
    }
    let at = |name: &str| path(root.path(), name);
    let expected = format!(
        "tl: no labels in 2 folders without class folders or label files, first {}; to take the \
         folders as classes, pass the folder that holds them, {}\n",
        at("cats"),
        root.path().display()
    );
    for command in ["convert", "merge"] {
        let out = at(&format!("{command}.tar"));
        let run = tl([command, &at("cats"), &at("dogs"), "-o", &out]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains(&expected), "{command}: {}", run.stderr);
    }
}

#[test]
fn classes_that_look_like_splits_are_noted() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bytes = tar(&[(b"train/1.jpg", b"image"), (b"val/2.jpg", b"image")]);
    let tar = write(root.path(), "a.tar", &bytes);
    let tar = tar.to_str().expect("UTF-8");
    let expected = "the classes are the folders train and val, which look like parts";
    assert!(tl(["verify", tar]).text().contains(&format!("warning: {expected}")));
    assert!(tl(["info", tar]).text().contains(expected));
    let run = tl(["convert", tar, "-o", &path(root.path(), "a.tbl")]);
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn an_empty_folder_or_archive_is_not_copied() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| path(root.path(), name);
    fs::create_dir(at("empty")).expect("made");
    fs::create_dir(at("hidden")).expect("made");
    write(&root.path().join("hidden"), ".DS_Store", b"x");
    write(root.path(), "empty.tar", &[0; 1024]);
    let wrong = "no samples, expected at least one file that is not hidden";
    for (name, rest) in [
        ("empty", ""),
        ("hidden", "; passed over 1 hidden files, such as .DS_Store"),
        ("empty.tar", ""),
    ] {
        for (command, more) in [("convert", &[][..]), ("merge", &[]), ("split", &["--shards", "1"])]
        {
            let (from, out) = (at(name), at("out"));
            let run = tl([&[command, &from, "-o", &out][..], more].concat());
            assert_eq!(run.code, Some(1), "{command}");
            assert_eq!(run.stderr, format!("tl: {from}: {wrong}{rest}\n"), "{command}");
            assert!(!Path::new(&out).exists(), "{command}");
        }
    }
    // Others have samples.
    write(root.path(), "a.tar", &tar(&[(b"a.jpg", b"image")]));
    let run = tl(["convert", &at("empty"), &at("a.tar"), "-o", &at("out.tbl")]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("empty: no samples\n"), "{}", run.stderr);
}

#[test]
fn samples_without_an_image_are_noted() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let texts = write(root.path(), "a.tar", &tar(&[(b"1.txt", b"text"), (b"2.CSV", b"text")]));
    let texts = texts.to_str().expect("UTF-8");
    let expected = "none of 2 samples is an image by its name, found .csv, .txt files";
    assert!(tl(["verify", texts]).text().contains(&format!("warning: {expected}\n")));
    let run = tl(["convert", texts, "-o", &path(root.path(), "a.tbl")]);
    assert!(run.stderr.starts_with(&format!("tl: {texts}: {expected}\n")), "{}", run.stderr);
    let folder = root.path().join("shards");
    fs::create_dir(&folder).expect("a new folder");
    write(&folder, "0.tar", &tar(&[(b"1.jpg", b"image")]));
    let run = tl(["info", folder.to_str().expect("UTF-8")]);
    let expected = "none of 1 samples is an image by its name, found .tar files; archives are \
                    opened by their own names, not by their folder's";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn what_grouping_leaves_out_is_noted_once_for_each_source() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let members: [(&[u8], &[u8]); 10] = [
        (b"1.jpg", b"image"),
        (b"1.txt", b"text"),
        (b"1.cls", b"1"),
        (b"1.cls", b"2"),
        (b"1.txt", b"text"),
        (b"2.txt", b"text"),
        (b"x.0.jpg", b"image"),
        (b"x.1.jpg", b"image"),
        (b"x.1.cls", b"1"),
        (b"x.json", b"{}"),
    ];
    let archive = write(root.path(), "a.tar", &tar(&members));
    let archive = archive.to_str().expect("UTF-8");
    let notes = [
        "1 samples have several images; one is decoded, such as x.0.jpg, and the others are fields",
        "2 numbered images are not samples of their own but parts of 1 samples, and their labels \
         are fields, because of files without a number such as x.json",
        "1 samples without an image are passed over, 1 files in all, such as 2.txt: other samples \
         have images",
        "2 members are replaced by later ones of the same name, such as 1.cls; 1 have another label",
    ];
    let verified = tl(["verify", archive]).text();
    for note in notes {
        assert!(verified.contains(&format!("warning: {note}\n")), "{note}: {verified}");
    }
    let out = path(root.path(), "out.tbl");
    let run = tl(["merge", archive, archive, "-o", &out]);
    for note in notes {
        let expected = format!("tl: {archive}: {note}\n");
        assert_eq!(run.stderr.matches(&expected).count(), 1, "{}", run.stderr);
    }
}

#[test]
fn a_repair_says_what_it_keeps_and_refuses_the_name_of_another_format() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| path(root.path(), name);
    write(root.path(), "a.tar", &tar(&[(b"a.jpg", b"image"), (b"a.cls", b"dog")]));
    let run = tl(["repair", &at("a.tar"), "-o", &at("b.tar")]);
    assert_eq!(run.code, Some(1));
    let printed = String::from_utf8(run.stdout).expect("UTF-8");
    assert!(printed.contains("damage: kept as it is: "), "{printed}");
    let expected = "1 kept with a label that cannot be read\n";
    assert!(run.stderr.ends_with(expected), "{}", run.stderr);
    let run = tl(["repair", &at("a.tar"), "-o", &at("b.tbl")]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("expected a name that ends with .tar; tl convert"));
    assert!(!Path::new(&at("b.tbl")).exists());
}
