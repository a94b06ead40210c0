use tbl_format::path::{PathDefect, RelativePath};

use super::{NameDefect, SampleFiles};

fn files(name: &str, extensions: &[&str]) -> Result<SampleFiles, NameDefect> {
    SampleFiles::new(name.as_bytes(), extensions.iter().map(|extension| extension.as_bytes()))
}

fn text(path: &RelativePath) -> &str {
    std::str::from_utf8(path.as_bytes()).unwrap()
}

#[test]
fn a_name_that_leaves_the_folder_is_refused() {
    for (name, defect) in [
        ("/etc/passwd", PathDefect::Absolute),
        ("..", PathDefect::Parent),
        ("a/../../b.jpg", PathDefect::Parent),
        ("../b.jpg", PathDefect::Parent),
        ("", PathDefect::Empty),
        ("./", PathDefect::Empty),
        ("a\0b.jpg", PathDefect::ZeroByte),
    ] {
        assert_eq!(files(name, &[]), Err(defect.into()), "{name:?}");
    }
}

#[test]
fn a_name_keeps_its_meaning() {
    for (name, expected) in [
        ("a/b.c.jpg", "a/b.c.jpg"),
        ("./a//b.jpg", "a/b.jpg"),
        ("...", "..."),
        ("a/..b.jpg", "a/..b.jpg"),
        ("noext", "noext"),
        (".hidden", ".hidden"),
    ] {
        assert_eq!(text(&files(name, &[]).unwrap().sample), expected);
    }
}

#[test]
fn a_field_is_next_to_its_sample() {
    for (name, extension, expected) in [
        ("a/x.jpg", "cls", "a/x.cls"),
        ("a/x.jpg", "", "a/x"),
        (".hidden.jpg", "cls", ".hidden.cls"),
        ("a.", "cls", "a..cls"),
    ] {
        let files = files(name, &[extension]).unwrap();
        assert_eq!((text(&files.sample), text(&files.fields[0])), (name, expected));
    }
}

#[test]
fn a_field_that_leaves_the_folder_is_refused() {
    for (extension, defect) in [
        ("/../../evil", PathDefect::Parent),
        ("a\0", PathDefect::ZeroByte),
        (&"x".repeat(254), PathDefect::LongComponent { bytes: 256 }),
    ] {
        assert_eq!(files("k.jpg", &[extension]), Err(defect.into()), "{extension:?}");
    }
}

#[test]
fn the_folder_counts_for_the_limit_of_a_path() {
    let name = "a/".repeat(2000) + "b.jpg";
    let check = |extensions: &[&str], bytes| files(&name, extensions).unwrap().check_length(bytes);
    assert_eq!(check(&[], 89), Ok(()));
    let defect = PathDefect::Long { bytes: 4096 };
    assert_eq!(check(&[], 90), Err(defect.into()));
    assert_eq!(check(&["json"], 89), Err(defect.into()));
}

#[test]
fn two_files_of_one_name_are_refused() {
    for (name, extensions) in [("k.jpg", &["jpg"][..]), ("k", &[""]), ("k.jpg", &["cls", "cls"])] {
        assert_eq!(files(name, extensions), Err(NameDefect::Clash), "{name}");
    }
}
