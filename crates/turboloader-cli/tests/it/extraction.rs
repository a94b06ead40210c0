//! `extract`: everything comes back, and nothing is written outside the folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tbl_format::SampleFormat;
use tbl_io::{Field, Labels, NewSample, SampleSourceExt, StreamWriter, WriteOptions};

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
    // The label file belongs to one of three samples: the class folders decide, and a note reports
    // it.
    let run = extract(&archive, &out, &[]);
    assert_eq!(run.code, Some(0));
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    let mut expected: Vec<(String, Vec<u8>)> = members
        .iter()
        .map(|(name, bytes)| (String::from_utf8_lossy(name).into_owned(), bytes.to_vec()))
        .collect();
    expected.sort();
    assert_eq!(files_below(&out), expected);

    let some = folder.path().join("some");
    let run = extract(&archive, &some, &["2", "1"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("cannot store 2 class names"), "{}", run.stderr);
    assert_eq!(
        files_below(&some),
        [
            ("b/two.cls".to_owned(), b"1".to_vec()),
            ("b/two.jpg".to_owned(), vec![]),
            ("notes.bmp".to_owned(), b"text".to_vec()),
        ]
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
        assert_eq!(files_below(folder.path()).len(), 1, "only the archive exists");
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
        let run = extract(&archive, &out, more);
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.contains("2 samples renamed"), "{}", run.stderr);
        let files = files_below(&out);
        let expected = [("a-1.jpg", "2"), ("a-2.jpg", "3"), ("a.jpg", "1")];
        assert_eq!(files.len(), expected.len());
        for ((name, bytes), (expected_name, expected)) in files.iter().zip(expected) {
            assert_eq!((name.as_str(), bytes.as_slice()), (expected_name, expected.as_bytes()));
        }
    }
}

/// The digest covers names, labels and bytes of all samples.
#[test]
fn a_folder_has_the_labels_of_the_file_it_came_from() {
    let cases: [&[(&[u8], &[u8])]; 5] = [
        &[(b"a/1.jpg", b"1"), (b"a/1.cls", b"7"), (b"b/2.jpg", b"2"), (b"b/2.cls", b"-3")],
        &[(b"1.jpg", b"1"), (b"1.cls", b"900"), (b"2.jpg", b"2"), (b"2.cls", b"0")],
        &[(b"1.jpg", b"1"), (b"1.cls", b"4"), (b"2.jpg", b"2"), (b"3.jpg", b"3")],
        &[(b"x.0.jpg", b"1"), (b"x.0.cls", b"4"), (b"x.1.jpg", b"2"), (b"x.1.cls", b"5")],
        &[(b"a/1.jpg", b"1"), (b"b/2.jpg", b"2")],
    ];
    for members in cases {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let archive = write(folder.path(), "in.tar", &tar(members));
        let convert = |from: &Path, to: &Path| {
            let fixed = ["convert".as_ref(), "--no-sync".as_ref(), from.as_os_str()];
            let run = tl(fixed.into_iter().chain(["-o".as_ref(), to.as_os_str()]));
            assert_eq!(run.code, Some(0), "{}", run.stderr);
        };
        let digest = |path: &Path| {
            let run = tl(["digest".as_ref(), path.as_os_str()]);
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            run.stdout
        };
        convert(&archive, &at("a.tbl"));
        convert(&at("a.tbl"), &at("b.tar"));
        let expected = digest(&archive);
        for from in ["in.tar", "a.tbl", "b.tar"] {
            let out = at(&format!("{from}.out"));
            let run = extract(&at(from), &out, &[]);
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            assert_eq!(digest(&out), expected, "{members:?} from {from}");
        }
    }
}

#[test]
fn labels_survive_and_lost_class_names_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let members: [(&[u8], &[u8]); 2] = [(b"cat/1.jpg", b"1"), (b"dog/2.jpg", b"2")];
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let out = folder.path().join("out");
    let run = extract(&archive, &out, &["1"]);
    assert!(run.stderr.contains("cannot store 2 class names"), "{}", run.stderr);
    let expected = [("dog/2.cls", "1"), ("dog/2.jpg", "2")];
    let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes.as_bytes().to_vec()));
    assert_eq!(files_below(&out), expected);
}

/// The parts of a sample that extraction keeps: its label, its bytes, and those of its fields that
/// do not
/// contain the label. Names differ where readers would take two samples for one.
type Content = (Option<i64>, Vec<u8>, Vec<Vec<u8>>);

/// The samples of a data set in the order of their contents.
fn contents(path: &Path) -> Vec<Content> {
    let sources = [tbl_io::open(path).expect("a data set")];
    let labels = Labels::resolve(&sources).expect("labels");
    let source = &*sources[0];
    let sample = |index| {
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        source.read_into(index, &mut bytes).expect("read");
        source.read_fields(index, &mut fields).expect("read");
        fields.retain(|field| !field.extension.ends_with(b"cls"));
        let label = labels.try_label(&sources, 0, index).expect("a label");
        let label = label.filter(|&label| label >= 0);
        let mut fields: Vec<_> = fields.into_iter().map(|field| field.bytes).collect();
        fields.sort();
        (label, bytes, fields)
    };
    let mut samples: Vec<_> = (0..source.sample_count()).map(sample).collect();
    samples.sort();
    samples
}

#[test]
fn folders_and_archives_have_the_samples_of_the_table_they_came_from() {
    let mut state = 15_u32;
    let mut below = |count: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % count
    };
    for case in 0..200 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let mut writer = StreamWriter::create(&at("a.tbl"), WriteOptions::default()).expect("new");
        for number in 0..1 + below(9) {
            let dir = ["", "cat/", "dog/", "a.b/"][below(4) as usize];
            let stem = ["x", "x.0", "x.1", "x-1", "x_2", "00000001"][below(6) as usize];
            let extension = ["jpg", "png", "left.jpg"][below(3) as usize];
            let key = format!("{dir}{stem}.{extension}");
            let bytes = format!("{case} {number}");
            let label = (below(4) > 0).then_some(i64::from(below(2)));
            let field = |extension: &str, text: &str| Field {
                extension: extension.into(),
                bytes: text.into(),
            };
            let fields = match (below(4), label) {
                (0, _) => vec![field("txt", "text")],
                (1, Some(label)) => vec![field("cls", &label.to_string())],
                _ => Vec::new(),
            };
            let sample = NewSample {
                key: (below(5) > 0).then_some(key.as_bytes()),
                label,
                format: SampleFormat::Jpeg,
                fields: &fields,
                ..NewSample::new(bytes.as_bytes())
            };
            writer.write_sample(&sample).expect("written");
        }
        writer.finish().expect("written");
        let expected = contents(&at("a.tbl"));
        let (from, to) = (at("a.tbl"), at("a.tar"));
        let run = tl(["convert".as_ref(), from.as_path(), "-o".as_ref(), to.as_path()]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(contents(&at("a.tar")), expected, "case {case}, archive");
        let run = extract(&at("a.tbl"), &at("out"), &[]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(contents(&at("out")), expected, "case {case}, folder");
    }
}

/// Name, format, label and fields of a sample.
type Described<'a> = (&'a str, SampleFormat, Option<i64>, &'a [(&'a str, &'a str)]);

/// Writes a TBL file.
fn table(path: &Path, samples: &[Described<'_>]) {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).expect("new");
    for (number, &(key, format, label, fields)) in samples.iter().enumerate() {
        let field = |&(extension, text): &(&str, &str)| Field {
            extension: extension.into(),
            bytes: text.into(),
        };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let bytes = number.to_string().into_bytes();
        let (width, height) = if format == SampleFormat::RawU8 { (1, 1) } else { (0, 0) };
        let bytes = if format == SampleFormat::RawU8 { bytes.repeat(3) } else { bytes };
        let key = Some(key.as_bytes());
        let new = NewSample {
            key,
            label,
            format,
            width,
            height,
            fields: &fields,
            ..NewSample::new(&bytes)
        };
        writer.write_sample(&new).expect("written");
    }
    writer.finish().expect("written");
}

/// Extracts all of `samples` and returns the names of the files and what was said.
fn extracted(samples: &[Described<'_>]) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    table(&folder.path().join("a.tbl"), samples);
    let out = folder.path().join("out");
    let run = extract(&folder.path().join("a.tbl"), &out, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    (files_below(&out).into_iter().map(|(name, _)| name).collect(), run.stderr)
}

#[test]
fn images_of_one_stem_become_samples_of_their_own() {
    use SampleFormat::{Jpeg, Png};
    let (files, said) = extracted(&[
        ("a.png", Png, Some(1), &[("cls", "1")]),
        ("b.png", Png, Some(2), &[("cls", "2")]),
        ("a.jpg", Jpeg, Some(1), &[("cls", "1")]),
    ]);
    assert_eq!(files, ["a-2.cls", "a-2.jpg", "a.cls", "a.png", "b.cls", "b.png"]);
    assert!(said.contains("1 samples renamed"), "{said}");
    // Numbers do not meet stored names.
    let (files, _) = extracted(&[
        ("x/a.jpg", Jpeg, None, &[]),
        ("x/a.jpg", Jpeg, None, &[]),
        ("x/a-1.png", Png, Some(7), &[("cls", "7")]),
    ]);
    assert_eq!(files, ["x/a-1-1.jpg", "x/a-1.cls", "x/a-1.png", "x/a.jpg"]);
}

#[test]
fn raw_pixels_are_not_taken_for_fields_of_an_image() {
    use SampleFormat::{Jpeg, RawU8};
    let (files, said) = extracted(&[("a.jpg", RawU8, None, &[]), ("a.jpg", Jpeg, None, &[])]);
    assert_eq!(files, ["a-1.jpg", "a.rgb"]);
    assert!(said.contains("1 samples have hidden names, or are not images"), "{said}");
}

#[test]
fn samples_with_fields_that_readers_pass_over_are_counted() {
    use SampleFormat::{Jpeg, Unknown};
    let (files, said) = extracted(&[
        ("a.jpg", Jpeg, None, &[("txt", "1")]),
        ("b.a", Unknown, None, &[("txt", "2")]),
    ]);
    assert_eq!(files, ["a.jpg", "a.txt", "b.a", "b.txt"]);
    assert!(said.contains("1 samples have hidden names, or are not images"), "{said}");
    // This is a sample whose image is missing: `a` is next to an image as well.
    let (_, said) = extracted(&[
        ("a.jpg", Jpeg, None, &[("a", "{}"), ("txt", "1")]),
        ("b.a", Unknown, None, &[("txt", "2")]),
    ]);
    assert!(!said.contains("hidden"), "{said}");
}

#[test]
fn numbered_names_have_at_most_255_bytes() {
    let name = "\u{e9}".repeat(125) + "l.jpg";
    assert_eq!(name.len(), 255);
    let (files, _) = extracted(&[
        (&name, SampleFormat::Jpeg, None, &[]),
        (&name, SampleFormat::Jpeg, None, &[]),
        (&name, SampleFormat::Jpeg, None, &[]),
    ]);
    let stem = "\u{e9}".repeat(124);
    assert_eq!(files, [format!("{stem}-1.jpg"), format!("{stem}-2.jpg"), name]);
}

#[test]
fn label_files_that_cannot_be_read_come_out_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let members: [(&[u8], &[u8]); 4] =
        [(b"a.cls", b"x"), (b"a.jpg", b"1"), (b"b.cls", b"2"), (b"b.jpg", b"3")];
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let (all, one) = (folder.path().join("all"), folder.path().join("one"));
    assert_eq!(extract(&archive, &all, &[]).code, Some(0));
    let text = |(name, bytes): &(&[u8], &[u8])| {
        (String::from_utf8_lossy(name).into_owned(), bytes.to_vec())
    };
    assert_eq!(files_below(&all), members.iter().map(text).collect::<Vec<_>>());
    assert_eq!(extract(&archive, &one, &["0"]).code, Some(0));
    assert_eq!(files_below(&one), members[..2].iter().map(text).collect::<Vec<_>>());
}

#[test]
fn samples_that_readers_pass_over_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let (from, archive) = (at("a.tbl"), at("a.tar"));
    let mut writer = StreamWriter::create(&from, WriteOptions::default()).expect("new");
    for key in ["a.jpg", "._a.jpg", ".hidden/x.jpg", "__MACOSX/b.jpg", "notes"] {
        let sample = NewSample { key: Some(key.as_bytes()), ..NewSample::new(b"JPEG") };
        writer.write_sample(&sample).expect("written");
    }
    writer.finish().expect("written");
    let converted = tl(["convert".as_ref(), from.as_path(), "-o".as_ref(), archive.as_path()]);
    for (run, to) in [(converted, archive), (extract(&from, &at("out"), &[]), at("out"))] {
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let note = "4 samples have hidden names, or are not images while others are";
        assert!(run.stderr.contains(note), "{}", run.stderr);
        assert_eq!(contents(&to).len(), 1);
    }
}

#[test]
fn nameless_samples_get_the_extension_of_their_format_from_every_writer() {
    for code in 0..=9 {
        let format = SampleFormat::from_code(code);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stored = folder.path().join("a.tbl");
        let options = WriteOptions { sync: false, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&stored, options).expect("the folder can be written");
        let sample = NewSample { format, width: 1, height: 1, ..NewSample::new(b"rgb") };
        writer.write_sample(&sample).expect("a sample");
        writer.finish().expect("a file");

        let out = folder.path().join("out");
        assert_eq!(extract(&stored, &out, &[]).code, Some(0));
        let name = format!("00000000.{}", format.extension());
        assert_eq!(files_below(&out), [(name.clone(), b"rgb".to_vec())]);

        let read = if format.is_image() { format } else { SampleFormat::Unknown };
        let of = |path: &Path| {
            let source = tbl_io::open(path).expect("a data set");
            let entry = source.entry(0).expect("an entry");
            (entry.format, entry.key.map(|key| String::from_utf8_lossy(&key).into_owned()))
        };
        if format.is_image() {
            assert_eq!(of(&out), (read, Some(name.clone())));
        }
        if format != SampleFormat::RawU8 {
            let archive = folder.path().join("a.tar");
            let command =
                ["convert".as_ref(), stored.as_os_str(), "-o".as_ref(), archive.as_os_str()];
            assert_eq!(tl(command).code, Some(0));
            assert_eq!(of(&archive), (read, Some(name)));
        }
    }
}
