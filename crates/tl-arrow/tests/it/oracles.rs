//! Images, labels, names and fields, as other readers find them in the files.

use serde_json::Value;
use tbl_io::{Labels, SampleSource, SampleSourceExt, SourceKind, Stores};
use tl_arrow::RowSource;

use crate::support::{Case, read_all, sha256};

#[test]
fn images_and_labels_are_those_of_the_writers() {
    let cases = Case::all();
    assert_eq!(cases.len(), 22 + 17);
    for case in cases {
        let samples = case.open();
        assert_eq!(samples.kind(), case.kind());
        assert_eq!(samples.notes(), [], "{}", case.file());
        let images = read_all(&samples).into_iter();
        let images: Vec<_> = images.map(|bytes| bytes.ok().map(|bytes| sha256(&bytes))).collect();
        assert_eq!(images, case.texts("images"), "{}", case.file());
        let labels = case.expected["labels"].as_array().unwrap().iter();
        let labels: Vec<i64> = labels.map(|label| label.as_i64().unwrap()).collect();
        assert_eq!(samples.stored_labels().unwrap(), Some(labels.clone()), "{}", case.file());
        let names: Vec<_> = case.texts("class_names").into_iter().flatten().collect();
        assert_eq!(samples.class_names(), names, "{}", case.file());
        assert_eq!(samples.declares_classes(), case.name.starts_with("datasets"));
        let joined = Labels::resolve(&[Box::new(samples) as Box<dyn SampleSource>]).unwrap();
        let joined: Vec<i64> = (0..12).map(|index| joined.label(0, index).unwrap()).collect();
        assert_eq!(joined, labels, "{}", case.file());
    }
}

#[test]
fn names_are_paths_or_those_of_rows() {
    for case in Case::all() {
        let samples = case.open();
        let key = |index| {
            let entry = samples.entry(index).ok()?;
            assert!(entry.format.is_image() || case.name.ends_with("nulls"));
            Some(String::from_utf8(entry.key?.into_owned()).unwrap())
        };
        let keys: Vec<Option<String>> = (0..samples.sample_count()).map(key).collect();
        if case.expected["keys"].is_null() {
            assert_eq!(keys[11], Some(format!("{}#11.jpg", case.name)));
            continue;
        }
        assert_eq!(keys, case.texts("keys"), "{}", case.file());
    }
}

#[test]
fn columns_are_fields() {
    for case in Case::all() {
        let samples = case.open();
        for (index, caption) in (0..).zip(case.texts("captions")) {
            let name = if case.name == "pyarrow_types" { "text" } else { "caption" };
            let found = field(&samples, index, name);
            assert_eq!(found, caption.map(String::into_bytes), "{} {index}", case.file());
        }
    }
}

/// The bytes of a field.
fn field(samples: &RowSource, index: u64, name: &str) -> Option<Vec<u8>> {
    let mut fields = Vec::new();
    let mut is_wanted = |found: &[u8], _| found == name.as_bytes();
    samples.read_fields_where(index, &mut is_wanted, &mut fields).unwrap();
    assert!(fields.len() < 2);
    fields.pop().map(|field| field.bytes)
}

#[test]
fn fields_of_all_types_and_encodings_have_their_values() {
    // Types that are not read give no field, as columns without a value.
    let unread = ["photo", "label", "huge", "union", "runs", "nothing"];
    for (file, counts) in [("pyarrow_types.parquet", [8, 2]), ("pyarrow_types.arrow", [15, 3])] {
        let case = Case::of(file);
        let samples = case.open();
        let fields = case.expected["fields"].as_object().unwrap();
        let numbers = case.expected["numbers"].as_object().unwrap();
        assert_eq!([fields.len(), numbers.len()], counts);
        for index in 0..samples.sample_count() {
            let row = usize::try_from(index).unwrap();
            let value = |name| field(&samples, index, name);
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
            assert!(unread.iter().all(|name| value(name).is_none()));
        }
    }
}

#[test]
fn lists_and_structures_are_json() {
    let mut columns = 0;
    for case in Case::all() {
        let Some(found) = case.expected["json"].as_object() else { continue };
        let samples = case.open();
        for (name, expected) in found {
            for (index, expected) in (0..).zip(expected.as_array().unwrap()) {
                let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes).unwrap();
                let found = field(&samples, index, name).map_or(Value::Null, parse);
                assert_eq!(&found, expected, "{} {name} of row {index}", case.file());
            }
            columns += 1;
        }
    }
    // Of pyarrow in both formats, and of DuckDB.
    assert_eq!(columns, 5 + 8 + 2);
}

/// Parquet files whose images are in the file as they are.
const IN_PLACE: [&str; 4] = ["datasets_5_2", "pyarrow_plain", "pyarrow_nulls", "spark_plain"];

/// Parquet files whose images are in no page as they are.
const NOT_IN_PLACE: [&str; 5] = ["datasets_3_6", "pyarrow_2", "polars", "spark_2", "spark_nulls"];

#[test]
fn images_are_lent_where_they_are_in_the_file() {
    for case in Case::all() {
        let is_in_place = if case.kind() == SourceKind::Arrow {
            !["lz4", "zstd", "nested"].iter().any(|part| case.name.contains(part))
        } else if IN_PLACE.contains(&&*case.name) {
            true
        } else if NOT_IN_PLACE.contains(&&*case.name) {
            false
        } else {
            continue;
        };
        let samples = case.open();
        let file = case.bytes();
        let mut places = 0;
        for (index, bytes) in (0..).zip(read_all(&samples)) {
            let Ok(bytes) = bytes else { continue };
            let view = samples.view(index).unwrap();
            assert!(view.is_none_or(|view| view == bytes), "{} {index}", case.file());
            let facts = samples.facts(index).unwrap();
            assert_eq!(facts.bytes, bytes.len() as u64);
            let Some(stored) = samples.stored(index).unwrap() else { continue };
            let mut read = Vec::new();
            stored.read_into(&mut read).unwrap();
            assert_eq!((&read, view), (&bytes, Some(&*bytes)), "{} {index}", case.file());
            let start = usize::try_from(facts.offset).unwrap();
            assert_eq!(&file[start..start + bytes.len()], bytes);
            assert_eq!((facts.offset, facts.bytes), (stored.offset, stored.len));
            places += 1;
        }
        // One image of the files with nulls is a file of its own.
        let expected = if case.name == "pyarrow_nulls" { 8 } else { 12 };
        assert_eq!(places, if is_in_place { expected } else { 0 }, "{}", case.file());
    }
}

#[test]
fn a_row_without_an_image_is_an_error_of_its_sample() {
    for file in ["pyarrow_nulls.parquet", "spark_nulls.parquet", "pyarrow_nulls.arrow"] {
        let samples = Case::of(file).open();
        let error = |index| {
            let error = samples.read_into(index, &mut Vec::new()).unwrap_err().to_string();
            let (_, error) = error.split_once(": ").unwrap();
            let (at, error) = error.split_once(" at byte ").unwrap();
            let (offset, error) = error.split_once(": ").unwrap();
            assert!(offset.parse::<u64>().is_ok_and(|offset| offset > 0));
            format!("{at} {error}")
        };
        let null = "the value is null, expected the bytes or the path of a sample";
        assert_eq!(error(1), format!("sample 1: {null}"));
        assert_eq!(error(6), format!("sample 6: {null}"));
        let unsafe_path = "the image has no bytes, and its path ../photographer.jpg is unsafe: it \
                           contains `..`; expected a file below the folder of the file";
        assert_eq!(error(5), format!("sample 5 (../photographer.jpg): {unsafe_path}"));
    }
}

#[test]
fn columns_are_named_where_there_is_a_choice() {
    let case = Case::of("pyarrow_types.parquet");
    let open = |image: Option<&str>, label: Option<&str>| {
        let mut options = tbl_io::ListOptions::default();
        options.manifest.image = image.map(str::to_owned);
        options.manifest.label = label.map(str::to_owned);
        let source = tbl_io::Source::from_bytes("a.parquet", case.bytes());
        RowSource::open(&Stores::new().with_list_options(options), source)
    };
    let message = |image, label| open(image, label).unwrap_err().to_string();
    assert_eq!(
        message(None, None),
        "a.parquet: the columns photo and mask have images; name that of the samples"
    );
    let columns = "photo, mask, int, small, unsigned, float, double, bool, decimal, text, prefixed, \
                   split, boxes, label";
    assert_eq!(
        message(Some("picture"), None),
        format!("a.parquet: no column picture, the columns are {columns}")
    );
    assert_eq!(
        message(Some("int"), None),
        "a.parquet: column int cannot be samples, expected texts, bytes, or structures of bytes and a path"
    );
    assert_eq!(
        message(Some("mask"), Some("double")),
        "a.parquet: column double cannot be labels, expected integers or texts"
    );
    let masks = open(Some("mask"), Some("small")).unwrap();
    assert_eq!(masks.stored_labels().unwrap(), Some((0..12).collect()));
    // Any column of bytes can be samples.
    let texts = open(Some("prefixed"), None).unwrap();
    assert_eq!(read_all(&texts)[0].as_deref().unwrap(), b"photographs/chelsea.jpg");
}

#[test]
fn files_that_declare_other_classes_are_refused() {
    let sources = || {
        let first = Case::of("datasets_5_2.parquet");
        let mut other = first.bytes();
        // The same number of bytes: "food" becomes "fool".
        let at = other.windows(6).rposition(|bytes| bytes == b"\"food\"").unwrap();
        other[at + 4] = b'l';
        let other = tbl_io::Source::from_bytes("other.parquet", other);
        let other = RowSource::open(&Stores::new(), other).unwrap();
        [Box::new(first.open()) as Box<dyn SampleSource>, Box::new(other)]
    };
    let error = Labels::resolve(&sources()).unwrap_err().to_string();
    assert!(error.starts_with("other.parquet: label 1 is class fool, in "), "{error}");
    let end = "datasets_5_2.parquet it is class food; files that declare their classes must declare \
               the same ones";
    assert!(error.ends_with(end), "{error}");
    // Texts are classes of any file, and joined by their names.
    let texts = Case::of("pyarrow_default.parquet");
    let sources = [Box::new(texts.open()) as Box<dyn SampleSource>, Box::new(texts.open())];
    assert_eq!(Labels::resolve(&sources).unwrap().class_names().len(), 6);
}
