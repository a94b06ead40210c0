use std::borrow::Cow;

use tbl_format::SampleFormat;
use tbl_format::path::{PathDefect, RelativePath};
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
    let text = |name: &RelativePath| String::from_utf8(name.as_bytes().to_vec()).unwrap();
    let files = names.assign(&path(key), fields).unwrap();
    (text(&files.sample), files.fields.iter().map(|name| name.as_ref().map(text)).collect())
}

#[test]
fn a_name_that_leaves_the_folder_is_refused() {
    for (key, defect) in [
        ("/etc/passwd", PathDefect::Absolute),
        ("..", PathDefect::Parent),
        ("a/../../b.jpg", PathDefect::Parent),
        ("../b.jpg", PathDefect::Parent),
        ("", PathDefect::Empty),
        ("./", PathDefect::Empty),
        ("a\0b.jpg", PathDefect::ZeroByte),
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
        assert_eq!(path.sample(1).unwrap().as_bytes(), expected.as_bytes());
    }
}

#[test]
fn raw_pixels_do_not_pose_as_the_image_they_came_from() {
    let path = SamplePath::new(0, &entry(Some(b"a/b.jpg"), SampleFormat::RawU8)).unwrap();
    assert_eq!(path.sample(1).unwrap().as_bytes(), b"a/b.rgb");
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

#[test]
fn a_field_lies_beside_its_sample() {
    for (key, extension, expected) in [
        ("a/x.jpg", "cls", "a/x.cls"),
        ("a/x.jpg", "", "a/x"),
        (".hidden.jpg", "cls", ".hidden.cls"),
        ("a.", "cls", "a..cls"),
    ] {
        let files = assigned(&mut Names::default(), key, &[field(extension, b"1")]);
        assert_eq!(files, (key.to_owned(), vec![Some(expected.to_owned())]));
    }
}

#[test]
fn a_field_that_leaves_the_folder_is_refused() {
    for (key, extension, defect) in [
        ("k.jpg", "/../../evil", PathDefect::Parent),
        ("k.jpg", "a\0", PathDefect::ZeroByte),
        ("k.jpg", &"x".repeat(254), PathDefect::LongComponent { bytes: 256 }),
    ] {
        let field = [field(extension, b"1")];
        let found = Names::default().assign(&path(key), &field);
        assert_eq!(found, Err(defect.into()), "{extension:?}");
        let found = path(key).check(&[extension.as_bytes().to_vec()], 3);
        assert_eq!(found, Err(defect.into()), "{extension:?}");
    }
}

#[test]
fn the_folder_counts_for_the_limit_of_a_path() {
    let path = path(&("a/".repeat(2000) + "b.jpg"));
    assert_eq!(path.check(&[], 89), Ok(()));
    let defect = PathDefect::Long { bytes: 4096 };
    assert_eq!(path.check(&[], 90), Err(defect.into()));
    assert_eq!(path.check(&[b"json".to_vec()], 89), Err(defect.into()));
}

#[test]
fn two_files_of_one_name_are_refused() {
    for (key, fields) in [
        ("k.jpg", vec![field("jpg", b"1")]),
        ("k", vec![field("", b"1")]),
        ("k.jpg", vec![field("cls", b"1"), field("cls", b"1")]),
    ] {
        let found = Names::default().assign(&path(key), &fields);
        assert_eq!(found, Err(NameDefect::Clash), "{key}");
        let extensions: Vec<Vec<u8>> = fields.into_iter().map(|field| field.extension).collect();
        assert_eq!(path(key).check(&extensions, 3), Err(NameDefect::Clash), "{key}");
    }
}

#[test]
fn equal_names_take_a_number_of_tries_in_proportion() {
    const COUNT: u32 = 20_000;
    let text = |number: u32| number.to_string().into_bytes();
    // Equal names; equal stems whose fields differ; names that stand for the copies of others.
    let keys: [&dyn Fn(u32) -> String; 3] =
        [&|_| "a/same.jpg".into(), &|number| format!("a.{number}"), &|number| match number {
            0..10_000 => format!("a_{number}.jpg"),
            _ => "a.jpg".into(),
        }];
    for key in keys {
        let mut names = Names::default();
        for number in 0..COUNT {
            let fields = [field("cls", &text(number))];
            names.assign(&path(&key(number)), &fields).unwrap();
        }
        assert!(names.tries <= 4 * COUNT, "{} tries", names.tries);
    }
}
