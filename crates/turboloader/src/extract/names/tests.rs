use std::borrow::Cow;

use tbl_format::SampleFormat;
use tbl_io::{Entry, Field};

use super::{NameDefect, Names, SamplePath};

fn entry(key: Option<&[u8]>, format: SampleFormat) -> Entry<'_> {
    Entry {
        key: key.map(Cow::Borrowed),
        label: None,
        format,
        width: 0,
        height: 0,
        offset: 0,
        stored_bytes: 0,
        bytes: 0,
    }
}

fn path(key: &str) -> SamplePath {
    SamplePath::new(0, &entry(Some(key.as_bytes()), SampleFormat::Jpeg)).unwrap()
}

fn field(extension: &str, bytes: &[u8]) -> Field {
    Field { extension: extension.into(), bytes: bytes.to_vec() }
}

fn assigned(names: &mut Names, key: &str, fields: &[Field]) -> (String, Vec<Option<String>>) {
    let text = |name: Vec<u8>| String::from_utf8(name).unwrap();
    let files = names.assign(&path(key), fields);
    (text(files.sample), files.fields.into_iter().map(|name| name.map(text)).collect())
}

#[test]
fn a_name_that_leaves_the_folder_is_refused() {
    for (key, defect) in [
        ("/etc/passwd", NameDefect::Absolute),
        ("..", NameDefect::Parent),
        ("a/../../b.jpg", NameDefect::Parent),
        ("../b.jpg", NameDefect::Parent),
        ("", NameDefect::Empty),
        ("./", NameDefect::Empty),
        ("a\0b.jpg", NameDefect::Nul),
    ] {
        let found = SamplePath::new(0, &entry(Some(key.as_bytes()), SampleFormat::Jpeg));
        assert_eq!(found, Err(defect), "{key:?}");
    }
}

#[test]
fn a_name_keeps_its_meaning() {
    for (key, expected) in [
        ("a/b.c.jpg", "a/b.c.jpg"),
        ("./a//b.jpg", "a/b.jpg"),
        ("...", "..."),
        ("a/..b.jpg", "a/..b.jpg"),
        ("noext", "noext"),
        (".hidden", ".hidden"),
    ] {
        assert_eq!(assigned(&mut Names::default(), key, &[]).0, expected);
    }
}

#[test]
fn unnamed_samples_are_numbered() {
    for (format, expected) in [
        (SampleFormat::Jpeg, "00000012.jpg"),
        (SampleFormat::Unknown, "00000012.bin"),
        (SampleFormat::RawU8, "00000012.rgb"),
        (SampleFormat::Other(200), "00000012.bin"),
    ] {
        let path = SamplePath::new(12, &entry(None, format)).unwrap();
        assert_eq!(path.file(1, &path.extension), expected.as_bytes());
    }
}

#[test]
fn raw_pixels_do_not_pose_as_the_image_they_came_from() {
    let path = SamplePath::new(0, &entry(Some(b"a/b.jpg"), SampleFormat::RawU8)).unwrap();
    assert_eq!(path.file(1, &path.extension), b"a/b.rgb");
}

#[test]
fn a_second_sample_of_a_name_is_numbered_with_its_fields() {
    let mut names = Names::default();
    let fields = [field("cls", b"1")];
    assert_eq!(
        assigned(&mut names, "a.jpg", &fields),
        ("a.jpg".into(), vec![Some("a.cls".into())])
    );
    let second = ("a_2.jpg".into(), vec![Some("a_2.cls".into())]);
    assert_eq!(assigned(&mut names, "a.jpg", &fields), second);
    assert_eq!(assigned(&mut names, "a_2.jpg", &[]).0, "a_2_2.jpg");
}

#[test]
fn samples_of_one_group_share_a_field_but_different_fields_stay_apart() {
    let mut names = Names::default();
    assigned(&mut names, "a.jpg", &[field("cls", b"1")]);
    assert_eq!(assigned(&mut names, "a.png", &[field("cls", b"1")]), ("a.png".into(), vec![None]));
    let other = ("a_2.bmp".into(), vec![Some("a_2.cls".into())]);
    assert_eq!(assigned(&mut names, "a.bmp", &[field("cls", b"2")]), other);
}
