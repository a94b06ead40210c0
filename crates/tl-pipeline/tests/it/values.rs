//! Numbers in sidecar files as columns of batches.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tbl_format::SampleFormat;
use tbl_io::{Field, NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{
    ColumnNumber, ColumnType, Dataset, Fields, Loader, LoaderConfig, OnError, PipelineError,
    Shuffle, TextFile, TextFormat, ValueField, ValueFormat, ValueKind, Work,
};
use tl_transform::Recipe;

use crate::memory::{bmp, config, loader, pixels, train};

/// A data set of a sample for each list of files.
fn dataset(folder: &Path, samples: &[Vec<(&str, Vec<u8>)>]) -> Dataset {
    let path = folder.join("values.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    for (number, files) in (0..).zip(samples) {
        let (width, height, own) = pixels(number);
        let field =
            |file: &(&str, Vec<u8>)| Field { extension: file.0.into(), bytes: file.1.clone() };
        let fields: Vec<Field> = files.iter().map(field).collect();
        let key = format!("{number:04}.bmp");
        let bytes = bmp(width, height, &own);
        let new = NewSample {
            format: SampleFormat::Bmp,
            width,
            height,
            key: Some(key.as_bytes()),
            fields: &fields,
            ..NewSample::new(&bytes)
        };
        writer.write_sample(&new).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(&[path]).unwrap()
}

fn with(work: Work, values: Vec<ValueField>) -> LoaderConfig {
    let fields = Fields { values, ..Fields::default() };
    LoaderConfig { fields, sampler: Shuffle::None.into(), ..config(work) }
}

/// The numbers of column `name` of all samples, and the dimensions of one.
fn column<N: ColumnNumber>(loader: &Loader, name: &str) -> (Vec<N>, Vec<usize>) {
    let mut numbers = Vec::new();
    let mut shape = Vec::new();
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        let column = batch.column_named(name).unwrap();
        numbers.extend_from_slice(column.numbers::<N>().unwrap());
        shape = column.spec.shape.clone();
    }
    (numbers, shape)
}

fn json_samples(values: &[Value]) -> Vec<Vec<(&'static str, Vec<u8>)>> {
    values.iter().map(|value| vec![("json", value.to_string().into_bytes())]).collect()
}

fn numbers(number: ColumnType, shape: &[usize]) -> ValueKind {
    ValueKind::Numbers { number: Some(number), shape: Some(shape.to_vec()) }
}

/// A file as `numpy.save` writes it.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    writeln!(header).unwrap();
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn numbers_come_from_json_text_and_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let json = |n: u8| json!({"score": f64::from(n) / 4.0, "box": [[n, 1], [2, 3]], "ok": n > 1});
    let samples: Vec<_> = (0..7_u8)
        .map(|n| {
            let array = npy("<i2", "(2, 1)", &[n, 0, 255, 255]);
            let text = format!(" {n}, 0.5\n-3e2 ").into_bytes();
            vec![("json", json(n).to_string().into_bytes()), ("vec.txt", text), ("npy", array)]
        })
        .collect();
    let value = |name: &str, column: &str, format| ValueField::new(name, column, format);
    let kind = numbers(ColumnType::I64, &[2, 2]);
    let values = vec![
        value("score", "json", ValueFormat::Json("/score".into())),
        ValueField { kind, ..value("box", "json", ValueFormat::Json("/box".into())) },
        value("text", "vec.txt", ValueFormat::Text),
        value("array", "npy", ValueFormat::Npy),
        ValueField {
            kind: numbers(ColumnType::Bool, &[]),
            ..value("ok", "json", ValueFormat::Json("/ok".into()))
        },
    ];
    let dataset = || dataset(folder.path(), &samples);
    let loader = loader(dataset(), with(train(), values.clone()));
    assert_eq!(column::<f32>(&loader, "score"), ((0..7).map(|n| n as f32 / 4.0).collect(), vec![]));
    let boxes: Vec<i64> = (0..7).flat_map(|n| [n, 1, 2, 3]).collect();
    assert_eq!(column::<i64>(&loader, "box"), (boxes, vec![2, 2]));
    let texts: Vec<f32> = (0..7).flat_map(|n| [n as f32, 0.5, -300.0]).collect();
    assert_eq!(column::<f32>(&loader, "text"), (texts, vec![3]));
    let arrays: Vec<i16> = (0..7).flat_map(|n| [n, -1]).collect();
    assert_eq!(column::<i16>(&loader, "array"), (arrays, vec![2, 1]));
    assert_eq!(column::<u8>(&loader, "ok").0, [0, 0, 1, 1, 1, 1, 1]);
    // Stored bytes and images of their own sizes have them too.
    std::fs::remove_file(folder.path().join("values.tbl")).unwrap();
    let bytes = Loader::new(dataset(), with(Work::Bytes, values.clone())).unwrap();
    for batch in bytes.epoch(0) {
        let batch = batch.unwrap();
        assert!((0..batch.len()).all(|row| !batch.sample(row).unwrap().bytes.is_empty()));
        assert_eq!(batch.columns().len(), 5);
    }
    std::fs::remove_file(folder.path().join("values.tbl")).unwrap();
    let lists = Loader::new(dataset(), with(Work::Images(Recipe::decode()), values)).unwrap();
    assert_eq!(column::<u8>(&lists, "ok").0.len(), 7);
}

#[test]
fn classes_are_found_by_name_and_several_become_ones() {
    let folder = tempfile::tempdir().unwrap();
    let text = |class: &str, tags: &str, numbers: &str| {
        let json = json!({"tags": tags.split('|').collect::<Vec<_>>()}).to_string();
        vec![
            ("class", class.as_bytes().to_vec()),
            ("tags", tags.as_bytes().to_vec()),
            ("numbers", numbers.as_bytes().to_vec()),
            ("json", json.into_bytes()),
        ]
    };
    let samples =
        [text("emu\n", "cat|emu", "2 0"), text("ant", "dog", ""), text("cat", "emu", "3,3")];
    let names: Vec<String> = ["ant", "cat", "dog", "emu"].map(String::from).to_vec();
    let hot =
        |names: &[String], number| ValueKind::MultiHot { count: 4, names: names.to_vec(), number };
    let new = |name: &str, column: &str, format, kind| ValueField {
        kind,
        ..ValueField::new(name, column, format)
    };
    let values = vec![
        new("class", "class", ValueFormat::Text, ValueKind::Class(names.clone())),
        new("tags", "tags", ValueFormat::Text, hot(&names, ColumnType::F32)),
        new("numbers", "numbers", ValueFormat::Text, hot(&[], ColumnType::U8)),
        new("json", "json", ValueFormat::Json("/tags".into()), hot(&names, ColumnType::I64)),
    ];
    let loader = loader(dataset(folder.path(), &samples), with(train(), values));
    assert_eq!(column::<i64>(&loader, "class").0, [3, 0, 1]);
    let tags = [0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1];
    assert_eq!(column::<f32>(&loader, "tags").0, tags.map(|tag| tag as f32));
    assert_eq!(column::<i64>(&loader, "json"), (tags.to_vec(), vec![4]));
    assert_eq!(column::<u8>(&loader, "numbers").0, [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn lists_as_json_lines_have_them_are_lists() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |tags: &str, vector: &str| -> Vec<(&str, Vec<u8>)> {
        vec![("tags", tags.as_bytes().to_vec()), ("vector", vector.as_bytes().to_vec())]
    };
    let samples = [
        sample(r#"["cat", "a, b"]"#, "[1, 2.5]"),
        sample("[]", " [3, 4]\n"),
        sample("[cat]|cat", "5 6"),
    ];
    let names: Vec<String> = ["cat", "a, b", "[cat]"].map(String::from).to_vec();
    let kind = ValueKind::MultiHot { count: 3, names, number: ColumnType::U8 };
    let values = vec![
        ValueField { kind, ..ValueField::new("tags", "tags", ValueFormat::Text) },
        ValueField::new("vector", "vector", ValueFormat::Text),
    ];
    let loader = loader(dataset(folder.path(), &samples), with(train(), values));
    assert_eq!(column::<u8>(&loader, "tags").0, [1, 1, 0, 0, 0, 0, 1, 0, 1]);
    assert_eq!(column::<f32>(&loader, "vector"), (vec![1.0, 2.5, 3.0, 4.0, 5.0, 6.0], vec![2]));
}

#[test]
fn missing_values_are_errors_or_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let samples = json_samples(&[json!({"x": 1}), json!({}), json!({"x": null}), json!({"x": 4})]);
    let mut samples = samples;
    samples.push(Vec::new());
    let value = ValueField::new("x", "json", ValueFormat::Json("/x".into()));
    let nan = ValueField { missing: Some(f64::NAN), ..value.clone() };
    let loader_of = |value: ValueField, on_error| {
        let config = LoaderConfig { on_error, ..with(train(), vec![value]) };
        if folder.path().join("values.tbl").exists() {
            std::fs::remove_file(folder.path().join("values.tbl")).unwrap();
        }
        loader(dataset(folder.path(), &samples), config)
    };
    let (found, _) = column::<f32>(&loader_of(nan, OnError::Raise), "x");
    assert_eq!(found.map_nan(), [1.0, -1.0, -1.0, 4.0, -1.0]);
    let raised = loader_of(value, OnError::Raise);
    let message = raised.epoch(0).find_map(Result::err).unwrap().to_string();
    let expected =
        "sidecar file `json`: no value; pass `missing`, a number for samples without one";
    assert!(message.contains("(0001.bmp)") && message.ends_with(expected), "{message}");
}

trait MapNan {
    /// The numbers, -1 for those that are none.
    fn map_nan(self) -> Vec<f32>;
}

impl MapNan for Vec<f32> {
    fn map_nan(self) -> Vec<f32> {
        self.into_iter().map(|number| if number.is_nan() { -1.0 } else { number }).collect()
    }
}

#[test]
fn faults_say_what_was_found_and_what_was_expected() {
    let check = |files: &[(&str, &[u8])], value: ValueField, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let files = files.iter().map(|(name, bytes)| (*name, bytes.to_vec())).collect();
        let loader = loader(dataset(folder.path(), &[files]), with(train(), vec![value]));
        let message = loader.epoch(0).find_map(Result::err).unwrap().to_string();
        assert!(message.contains("sample 0 (0000.bmp)"), "{message}");
        assert!(message.ends_with(expected), "{message}");
    };
    let new = |format, kind| ValueField { kind, ..ValueField::new("x", "f", format) };
    let json = || ValueFormat::Json("/a".into());
    let one = numbers(ColumnType::U8, &[]);
    let two = numbers(ColumnType::F32, &[2]);
    let array = npy("<f4", "(3,)", &[0; 12]);
    check(&[("f", b"7 dogs")], new(ValueFormat::Text, two.clone()), "`dogs` is not a number");
    check(&[("f", b"300")], new(ValueFormat::Text, one.clone()), "300 is not a number of type u8");
    check(
        &[("f", b"1 2 3")],
        new(ValueFormat::Text, two.clone()),
        "values of shape [3], expected [2]",
    );
    check(&[("f", b"{\"a\": \"x\"}")], new(json(), one.clone()), "at `/a`");
    check(&[("f", b"{\"a\": [1, [2]]}")], new(json(), two.clone()), "at `/a`");
    check(&[("f", b"{\"a\": [[1, 2]]}")], new(json(), two.clone()), "shape [1, 2], expected [2]");
    check(&[("f", b"{")], new(json(), one), "EOF while parsing an object at line 1 column 1");
    check(&[("f", &array)], new(ValueFormat::Npy, two.clone()), "shape [3], expected [2]");
    check(&[("f", &array[..9])], new(ValueFormat::Npy, two.clone()), "found 9");
    check(
        &[("f", b"PK")],
        new(ValueFormat::Npz("x".into()), two.clone()),
        "expected the end of a ZIP directory at byte 2",
    );
    check(&[("f", &[0xFF, b'1'])], new(ValueFormat::Text, two), "from index 0");
    let classes = |names: &[&str]| ValueKind::Class(names.iter().map(|&n| n.into()).collect());
    let unknown = "`cow` is not one of the 2 classes";
    check(&[("f", b"cow")], new(ValueFormat::Text, classes(&["cat", "dog"])), unknown);
    let hot = ValueKind::MultiHot { count: 3, names: Vec::new(), number: ColumnType::U8 };
    check(&[("f", b"1 3")], new(ValueFormat::Text, hot), "`3` is not one of the 3 classes");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let samples = json_samples(&[json!({"a": 1})]);
    let refused = |values: Vec<ValueField>| {
        let path = folder.path().join("values.tbl");
        if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
        let dataset = dataset(folder.path(), &samples);
        let error = Loader::new(dataset, with(train(), values)).map(drop).unwrap_err();
        assert!(
            matches!(error, PipelineError::Unusable(_) | PipelineError::UnknownField { .. }),
            "{error}"
        );
        error.to_string()
    };
    let value = |format| ValueField::new("x", "json", format);
    let json = || ValueFormat::Json("/a".into());
    let check = |values: Vec<ValueField>, expected: &str| {
        let message = refused(values);
        assert!(message.contains(expected), "{message}");
    };
    check(vec![value(json()), value(json())], "two fields are called `x`");
    check(vec![value(ValueFormat::Json("a".into()))], "invalid pointer `a`");
    let kind = ValueKind::Class(Vec::new());
    check(vec![ValueField { kind, ..value(json()) }], "no names of classes");
    let kind = numbers(ColumnType::F32, &[usize::MAX, 2]);
    check(vec![ValueField { kind, ..value(json()) }], "more than");
    let kind = numbers(ColumnType::U8, &[]);
    let missing = Some(-1.0);
    check(
        vec![ValueField { kind, missing, ..value(json()) }],
        "missing is -1, which u8 cannot hold",
    );
    check(
        vec![value(ValueFormat::Json("/b".into()))],
        "values `x` have no shape: no sample has them",
    );
    check(vec![value(ValueFormat::Npy)], "not a .npy file: it starts with 7b 22 61 22 3a 31");
    check(vec![ValueField::new("x", "jsn", json())], "the files are called: bmp, json");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Numbers that go through a file come back, for any type, order of workers and batch size.
    #[test]
    fn numbers_survive(
        rows in prop::collection::vec(prop::collection::vec(any::<i32>(), 3), 1..12),
        workers in 1_usize..4,
        batch_size in 1_usize..5,
        is_text: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<Vec<(&str, Vec<u8>)>> = rows
            .iter()
            .map(|row| {
                let bytes = row.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
                let text = row.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
                vec![("txt", text.into_bytes()), ("npy", npy("<i4", "(3,)", &bytes))]
            })
            .collect();
        let (file, format) = if is_text { ("txt", ValueFormat::Text) } else { ("npy", ValueFormat::Npy) };
        let kind = numbers(ColumnType::F64, &[3]);
        let value = ValueField { kind, ..ValueField::new("v", file, format) };
        let config = LoaderConfig { workers, batch_size, ..with(train(), vec![value]) };
        let loader = loader(dataset(folder.path(), &files), config);
        let expected: Vec<f64> = rows.iter().flatten().map(|&number| number.into()).collect();
        prop_assert_eq!(column::<f64>(&loader, "v").0, expected);
    }
}

#[test]
fn a_text_in_another_format_is_the_samples_error() {
    let folder = tempfile::tempdir().unwrap();
    let samples = [
        vec![("txt", "caf\u{e9}".into()), ("json", b"\xef\xbb\xbf[1, {}]".to_vec())],
        vec![],
        vec![("txt", b"caf\xe9!".to_vec()), ("json", b"[1, ".to_vec())],
    ];
    let bad = |column: &str, format| {
        let texts = vec![TextFile { file: column.into(), format }];
        let fields = Fields { texts, bytes: vec![column.into()], ..Fields::default() };
        let config = LoaderConfig { fields, on_error: OnError::Skip, ..with(train(), Vec::new()) };
        let loader = loader(dataset(folder.path(), &samples), config);
        let batches: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
        std::fs::remove_file(folder.path().join("values.tbl")).unwrap();
        let kept: Vec<u64> = batches.iter().flat_map(|batch| batch.indices().to_vec()).collect();
        let faults = loader.audit();
        (kept, faults.iter().map(|entry| entry.error.to_string()).collect::<Vec<_>>())
    };
    let (kept, faults) = bad("txt", TextFormat::Utf8);
    assert_eq!(kept, [0, 1]);
    assert!(faults[0].contains("sidecar file `txt`: invalid utf-8 sequence"), "{faults:?}");
    let (kept, faults) = bad("json", TextFormat::Json);
    assert_eq!(kept, [0, 1]);
    assert!(faults[0].contains("sidecar file `json`: EOF while parsing"), "{faults:?}");
}
