//! Arrow files and streams: images, labels, names and fields, as other readers find them in the files.

use serde_json::Value;
use tbl_io::{Labels, Note, SampleSource, SampleSourceExt, Source, SourceKind, Stores};
use tl_arrow::{RowOptions, RowSource};

use crate::support::{Case, read_all, sha256};

#[test]
fn images_and_labels_are_those_of_the_writers() {
    let cases = Case::all_arrow();
    assert_eq!(cases.len(), 17);
    for case in cases {
        let samples = case.open();
        assert_eq!(samples.kind(), SourceKind::Arrow);
        assert_eq!(samples.notes(), [], "{}", case.name);
        let images = read_all(&samples).into_iter();
        let images: Vec<_> = images.map(|bytes| bytes.ok().map(|bytes| sha256(&bytes))).collect();
        assert_eq!(images, case.texts("images"), "{}", case.name);
        let labels = case.expected["labels"].as_array().unwrap().iter();
        let labels: Vec<i64> = labels.map(|label| label.as_i64().unwrap()).collect();
        assert_eq!(samples.stored_labels().unwrap(), Some(labels.clone()), "{}", case.name);
        let names: Vec<_> = case.texts("class_names").into_iter().flatten().collect();
        assert_eq!(samples.class_names(), names, "{}", case.name);
        assert_eq!(samples.declares_classes(), case.name.starts_with("datasets"));
        let joined = Labels::resolve(&[Box::new(samples) as Box<dyn SampleSource>]).unwrap();
        let joined: Vec<i64> = (0..12).map(|index| joined.label(0, index).unwrap()).collect();
        assert_eq!(joined, labels, "{}", case.name);
    }
}

#[test]
fn names_are_paths_or_those_of_rows() {
    for case in Case::all_arrow() {
        let samples = case.open();
        let key = |index| {
            let entry = samples.entry(index).ok()?;
            assert!(entry.format.is_image() || case.name == "pyarrow_nulls");
            Some(String::from_utf8(entry.key?.into_owned()).unwrap())
        };
        let keys: Vec<Option<String>> = (0..samples.sample_count()).map(key).collect();
        if case.expected["keys"].is_null() {
            assert_eq!(keys[11], Some(format!("{}#11.jpg", case.name)));
            continue;
        }
        assert_eq!(keys, case.texts("keys"), "{}", case.name);
    }
}

#[test]
fn columns_are_fields() {
    for case in Case::all_arrow() {
        let samples = case.open();
        for (index, caption) in (0..).zip(case.texts("captions")) {
            let mut fields = Vec::new();
            let name: &[u8] = if case.name == "pyarrow_types" { b"text" } else { b"caption" };
            let mut is_wanted = |field: &[u8], _| field == name;
            samples.read_fields_where(index, &mut is_wanted, &mut fields).unwrap();
            let found = fields.iter().map(|field| (&*field.extension, &*field.bytes));
            let expected = caption.as_ref().map(|caption| (name, caption.as_bytes()));
            assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected), "{}", case.name);
        }
    }
}

#[test]
fn fields_of_all_types_have_their_values() {
    let case = Case::arrow("pyarrow_types");
    let samples = case.open();
    let fields = case.expected["fields"].as_object().unwrap();
    let numbers = case.expected["numbers"].as_object().unwrap();
    assert_eq!((fields.len(), numbers.len()), (15, 3));
    for index in 0..samples.sample_count() {
        let mut found = Vec::new();
        samples.read_fields(index, &mut found).unwrap();
        let row = usize::try_from(index).unwrap();
        let value = |name: &str| {
            let field = found.iter().find(|field| field.extension == name.as_bytes())?;
            Some(field.bytes.clone())
        };
        let text = |name| value(name).map(|bytes| String::from_utf8(bytes).unwrap());
        for (name, values) in fields {
            assert_eq!(text(name).as_deref(), values[row].as_str(), "{name} {row}");
        }
        for (name, values) in numbers {
            let found: f64 = text(name).unwrap().parse().unwrap();
            let expected = values[row].as_f64().unwrap();
            assert!((found - expected).abs() <= expected * 1e-7, "{name} {row}: {found}");
        }
        let mask = case.expected["masks"][row].as_str().map(str::to_owned);
        assert_eq!(value("mask").map(|mask| sha256(&mask)), mask);
        // Types that are not read give no field, as columns without a value.
        for name in ["photo", "label", "huge", "union", "runs", "nothing"] {
            assert_eq!(value(name), None, "{name}");
        }
    }
}

#[test]
fn lists_and_structures_are_json() {
    for (case, count) in [("pyarrow_nested", 8), ("duckdb_offsets", 1), ("duckdb_views", 1)] {
        let case = Case::arrow(case);
        let samples = case.open();
        let columns = case.expected["json"].as_object().unwrap();
        assert_eq!(columns.len(), count);
        for (name, expected) in columns {
            for (index, expected) in (0..).zip(expected.as_array().unwrap()) {
                let mut fields = Vec::new();
                let mut is_wanted = |found: &[u8], _| found == name.as_bytes();
                samples.read_fields_where(index, &mut is_wanted, &mut fields).unwrap();
                let parse = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap();
                let found = fields.first().map_or(Value::Null, |field| parse(&field.bytes));
                assert_eq!(&found, expected, "{name} of row {index}");
            }
        }
    }
}

#[test]
fn images_that_are_not_compressed_are_lent_where_they_are_in_the_file() {
    for case in Case::all_arrow() {
        let is_packed = ["lz4", "zstd", "nested"].iter().any(|part| case.name.contains(part));
        let samples = case.open();
        let file = case.bytes();
        let mut places = 0;
        for (index, bytes) in (0..).zip(read_all(&samples)) {
            let Ok(bytes) = bytes else { continue };
            let view = samples.view(index).unwrap();
            assert!(view.is_none_or(|view| view == bytes), "{} {index}", case.name);
            let facts = samples.facts(index).unwrap();
            assert_eq!(facts.bytes, bytes.len() as u64);
            let Some(stored) = samples.stored(index).unwrap() else { continue };
            let mut read = Vec::new();
            stored.read_into(&mut read).unwrap();
            assert_eq!((&read, view), (&bytes, Some(&*bytes)), "{} {index}", case.name);
            let start = usize::try_from(facts.offset).unwrap();
            assert_eq!(&file[start..start + bytes.len()], bytes);
            assert_eq!((facts.offset, facts.bytes), (stored.offset, stored.len));
            places += 1;
        }
        // One image of the file with nulls is a file of its own.
        let expected = if case.name == "pyarrow_nulls" { 8 } else { 12 };
        assert_eq!(places, if is_packed { 0 } else { expected }, "{}", case.name);
    }
}

#[test]
fn a_row_without_an_image_is_an_error_of_its_sample() {
    let samples = Case::arrow("pyarrow_nulls").open();
    let error = |index| {
        let error = samples.read_into(index, &mut Vec::new()).unwrap_err().to_string();
        let (_, error) = error.split_once(": ").unwrap();
        let (at, error) = error.split_once(" at byte ").unwrap();
        let (offset, error) = error.split_once(": ").unwrap();
        assert!(offset.parse::<u64>().is_ok_and(|offset| offset > 0));
        format!("{at} {error}")
    };
    let null = "the image is null, expected bytes or the path of a file";
    assert_eq!(error(1), format!("sample 1: {null}"));
    assert_eq!(error(6), format!("sample 6: {null}"));
    let unsafe_path = "the image has no bytes, and its path ../photographer.jpg is unsafe: it contains \
                       `..`; expected a file below the folder of the file";
    assert_eq!(error(5), format!("sample 5 (../photographer.jpg): {unsafe_path}"));
}

#[test]
fn a_stream_without_an_end_mark_has_its_rows_and_a_note() {
    let case = Case::arrow("datasets_5_2");
    let bytes = case.bytes();
    assert_eq!(bytes[bytes.len() - 8..], [255, 255, 255, 255, 0, 0, 0, 0]);
    let samples = case.open_bytes(bytes[..bytes.len() - 8].to_vec()).unwrap();
    assert_eq!((samples.sample_count(), samples.notes()), (12, vec![Note::NoStreamEnd]));
    // Streams one after the other would lose the rows of all but the first.
    let error = case.open_bytes([&*bytes, &*bytes].concat()).unwrap_err().to_string();
    let length = bytes.len();
    let end = format!(
        "at byte {length}: number of bytes after the end of the stream is {length}, expected at most 0"
    );
    assert!(error.ends_with(&end), "{error}");
}

#[test]
fn files_are_told_by_their_first_bytes() {
    let is = |bytes: &[u8]| RowSource::is(&Source::from_bytes("a", bytes.to_vec())).unwrap();
    assert!(is(b"ARROW1\0\0"));
    assert!(is(b"PAR1"));
    assert!(is(&Case::arrow("datasets_5_2").bytes()));
    assert!(!is(b"ARROW"));
    assert!(!is(&[0xff; 4096]));
    assert!(!is(b"FEA1 of another format"));
    let mut bytes = Case::arrow("datasets_5_2").bytes();
    bytes.truncate(300);
    assert!(is(&bytes));
    // The metadata are those of a record batch, and not of a schema.
    let mut bytes = Case::arrow("datasets_5_2").bytes();
    let second = bytes.windows(4).skip(1).position(|bytes| bytes == [0xff; 4]).unwrap();
    assert!(!is(&bytes.split_off(second + 1)));
    let open = |bytes: &[u8]| {
        let source = Source::from_bytes("a", bytes.to_vec());
        RowSource::open(&Stores::new(), source).unwrap_err().to_string()
    };
    assert_eq!(
        open(b"ARROW1\0\0"),
        "a: at byte 0: the file has 8 bytes, expected at least 18 of an Arrow file"
    );
    assert_eq!(
        open(b"ARROW1\0\0 and no footer"),
        "a: at byte 16: expected ARROW1, found footer; was the file written and copied completely?"
    );
}

#[test]
fn columns_are_selected_under_other_names() {
    let open = |case: &Case, columns: &[(&str, &str)], features: Option<&str>| {
        let owned = |&(stored, name): &(&str, &str)| (stored.to_owned(), name.to_owned());
        let columns = Some(columns.iter().map(owned).collect());
        let features = features.map(str::to_owned);
        let options = RowOptions { columns, features, ..RowOptions::default() };
        let source = Source::from_bytes("a", case.bytes());
        RowSource::open_with(&Stores::new(), source, &options)
    };
    let case = Case::arrow("pyarrow_types");
    let features = r#"{"info": {"features": {"image": {"_type": "Image"},
        "class": {"_type": "ClassLabel", "names": ["no", "yes"]}}}}"#;
    let columns = [("mask", "image"), ("label", "class"), ("text", "txt")];
    let samples = open(&case, &columns, Some(features)).unwrap();
    assert_eq!((samples.class_names().len(), samples.declares_classes()), (2, true));
    let mut fields = Vec::new();
    samples.read_fields(0, &mut fields).unwrap();
    assert_eq!(fields.len(), 1);
    assert_eq!(fields[0].extension, b"txt");
    let hash = sha256(read_all(&samples)[0].as_ref().unwrap());
    assert_eq!(Some(&*hash), case.expected["masks"][0].as_str());
    let error = open(&case, &[("masks", "image")], None).unwrap_err().to_string();
    assert!(error.starts_with("a: no column masks, the columns are photo, mask, "), "{error}");
    // Rows of Parquet files too.
    let samples = open(&Case::of("pyarrow_2"), &[("image", "photo")], None).unwrap();
    assert_eq!(samples.stored_labels().unwrap(), Some(Vec::new()));
    assert_eq!(read_all(&samples).len(), 12);
}
