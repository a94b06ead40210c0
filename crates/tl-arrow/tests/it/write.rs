//! Files that this crate writes: what its reader, and the library of the Parquet project, find in them.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field as Cell, Row, RowAccessor};
use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_io::{
    AsStored, ConvertError, ConvertOptions, ConvertSummary, Field, Labels, NewSample, SampleSource,
    SampleSourceExt, Selection, Source, Stores, StreamWriter, Unstored, WriteOptions,
};
use tl_arrow::{PARQUET, RowSource};

/// A sample of a TBL file.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    bytes: Vec<u8>,
    key: Option<Vec<u8>>,
    label: Option<i64>,
    fields: Vec<(String, Vec<u8>)>,
}

#[derive(Clone, Debug)]
struct Set {
    samples: Vec<Sample>,
    class_names: Vec<String>,
    box_class_names: Vec<String>,
}

/// Values of a field: all of one kind, or of any.
fn value(kind: usize) -> BoxedStrategy<Vec<u8>> {
    match kind {
        0 => "[a-cü\"\n]{0,4}".prop_map(String::into_bytes).boxed(),
        1 => any::<i64>().prop_map(|number| number.to_string().into_bytes()).boxed(),
        2 => any::<f64>().prop_map(|number| number.to_string().into_bytes()).boxed(),
        3 => Just(b"\x89PNG\r\n\x1a\nrest".to_vec()).boxed(),
        4 => prop::collection::vec(any::<u8>(), 0..6).boxed(),
        _ => (0..5_usize).prop_flat_map(value).boxed(),
    }
}

fn set() -> impl Strategy<Value = Set> {
    let image = prop::collection::vec(any::<u8>(), 0..40);
    let image = image.prop_map(|bytes| [&b"\xff\xd8\xff"[..], &bytes].concat());
    let key = prop::option::of(prop_oneof![
        4 => "[a-c]{1,3}/[a-cü #]{1,3}\\.jpg".prop_map(String::into_bytes),
        1 => Just(b"a/\xff.jpg".to_vec()),
    ]);
    let names = ["caption", "id", "seg.png", "image", "label", "5.json"];
    let kinds = prop::collection::vec(0..6_usize, names.len());
    let samples = kinds.prop_flat_map(move |kinds| {
        let fields: Vec<_> = kinds.into_iter().map(|kind| prop::option::of(value(kind))).collect();
        let named = move |values: Vec<Option<Vec<u8>>>| {
            let named = names.iter().map(|&name| name.to_owned()).zip(values);
            named.filter_map(|(name, value)| Some((name, value?))).collect::<Vec<_>>()
        };
        let sample = (image.clone(), key.clone(), prop::option::of(-2_i64..4), fields);
        let sample = sample.prop_map(move |(bytes, key, label, fields)| {
            let fields = named(fields);
            Sample { bytes, key, label, fields }
        });
        prop::collection::vec(sample, 0..20)
    });
    let classes = prop::sample::select(vec![
        &[][..],
        &["a", "b \"c\"", "d", "e"],
        &["a", "b", "c", "d", "e", "f"],
        &["a", "a", "b", "b"],
    ]);
    let boxes = prop::sample::select(vec![&[][..], &["", "cat", "dög"]]);
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    (samples, classes, boxes).prop_map(move |(samples, classes, boxes)| Set {
        samples,
        class_names: owned(classes),
        box_class_names: owned(boxes),
    })
}

fn write_tbl(path: &Path, set: &Set) {
    let options = WriteOptions { sync: false, overwrite: true, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(path, options).unwrap();
    writer.set_class_names(&set.class_names);
    writer.set_box_class_names(&set.box_class_names);
    let encoder = writer.encoder();
    for Sample { bytes, key, label, fields } in &set.samples {
        let field = |(name, bytes): &(String, Vec<u8>)| Field {
            extension: name.clone().into_bytes(),
            bytes: bytes.clone(),
        };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let sample = NewSample {
            format: SampleFormat::Jpeg,
            key: key.as_deref(),
            // Labels need a name where there are any.
            label: label.filter(|&label| set.class_names.is_empty() || label >= 0),
            fields: &fields,
            ..NewSample::new(bytes)
        };
        writer.write(&encoder.encode(&sample).unwrap(), bytes).unwrap();
    }
    writer.finish().unwrap();
}

fn convert_with(from: &Path, to: &Path, workers: usize) -> Result<ConvertSummary, ConvertError> {
    let sources = [tbl_io::open(from)?];
    let labels = Labels::resolve(&sources)?;
    let selection = Selection::all(&sources, &labels)?;
    let mut options = ConvertOptions::new(PARQUET);
    options.sync = false;
    options.workers = NonZeroUsize::new(workers).unwrap();
    tbl_io::convert(&selection, to, &options, AsStored::default, &mut |_| ControlFlow::Continue(()))
}

fn open(path: &Path) -> RowSource {
    RowSource::open(&Stores::new(), Source::open(path).unwrap()).unwrap()
}

/// The samples of a source, with labels as data sets have them. Labels of -1 are null in Parquet files.
fn see(source: &dyn SampleSource, labels: &Labels) -> Vec<Sample> {
    let sample = |index| {
        let mut bytes = Vec::new();
        let mut fields = Vec::new();
        source.read_into(index, &mut bytes).unwrap();
        source.read_fields(index, &mut fields).unwrap();
        let field = |field: Field| (String::from_utf8(field.extension).unwrap(), field.bytes);
        let mut fields: Vec<_> = fields.into_iter().map(field).collect();
        fields.sort();
        let key = source.entry(index).unwrap().key.map(|key| key.into_owned());
        let label = labels.label(0, index).filter(|&label| label != -1);
        Sample { bytes, key, label, fields }
    };
    (0..source.sample_count()).map(sample).collect()
}

/// Fails unless a Parquet file has the samples of a TBL file.
fn check_same(from: &Path, to: &Path) {
    let tbl = [tbl_io::open(from).unwrap()];
    let parquet: [Box<dyn SampleSource>; 1] = [Box::new(open(to))];
    let of_tbl = Labels::resolve(&tbl).unwrap();
    let of_parquet = Labels::resolve(&parquet).unwrap();
    let mut expected = see(&*tbl[0], &of_tbl);
    for (number, sample) in expected.iter_mut().enumerate() {
        let is_text = |key: &Vec<u8>| str::from_utf8(key).is_ok();
        sample.key = sample.key.take().filter(is_text);
        sample.key.get_or_insert_with(|| format!("a#{number}.jpg").into_bytes());
    }
    assert_eq!(see(&*parquet[0], &of_parquet), expected);
    assert_eq!(of_parquet.class_names(), of_tbl.class_names());
    assert_eq!(of_parquet.box_class_names(), of_tbl.box_class_names());
    for (index, sample) in (0..).zip(&expected) {
        // Every image is where a single read finds it.
        assert_eq!(parquet[0].view(index).unwrap(), Some(&*sample.bytes));
    }
}

fn check(set: &Set) {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("a.tbl");
    let to = folder.path().join("a.parquet");
    write_tbl(&from, set);
    let summary = convert_with(&from, &to, 1).unwrap();
    let is_lost = |sample: &&Sample| sample.key.as_ref().is_some_and(|key| key.contains(&0xff));
    let keys = set.samples.iter().filter(is_lost).count() as u64;
    let metadata_blocks = summary.unstored.metadata_blocks;
    assert_eq!(summary.unstored, Unstored { keys, metadata_blocks, ..Unstored::default() });
    assert_eq!(summary.file_bytes, std::fs::metadata(&to).unwrap().len());
    check_same(&from, &to);
    check_library(&from, &to, set);
}

/// Compares the rows with those that the library reads.
fn check_library(from: &Path, to: &Path, set: &Set) {
    let labels = Labels::resolve(&[tbl_io::open(from).unwrap()]).unwrap();
    let reader = SerializedFileReader::try_from(to).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), set.samples.len() as i64);
    let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let is_field =
        |name| set.samples.iter().any(|sample| sample.fields.iter().any(|f| f.0 == name));
    let label_column = if is_field("label") { "class" } else { "label" };
    for (number, (row, sample)) in (0..).zip(rows.iter().zip(&set.samples)) {
        assert_eq!(row.get_group(0).unwrap().get_bytes(0).unwrap().data(), sample.bytes);
        for (name, cell) in row.get_column_iter().skip(1) {
            let found = if let Cell::Str(text) = cell {
                Some(text.clone().into_bytes())
            } else if let Cell::Bytes(bytes) = cell {
                Some(bytes.data().to_vec())
            } else if let Cell::Group(image) = cell {
                Some(image.get_bytes(0).unwrap().data().to_vec())
            } else if let Cell::Double(number) = cell {
                Some(number.to_string().into_bytes())
            } else {
                (*cell != Cell::Null).then(|| cell.to_string().into_bytes())
            };
            let field = sample.fields.iter().find(|(field, _)| field == name);
            let has_label = name == label_column;
            let label = labels.label(0, number).filter(|_| has_label);
            let label = label.map(|label| label.to_string().into_bytes());
            assert_eq!(found, field.map(|(_, bytes)| bytes.clone()).or(label), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn samples_come_back(set in set()) {
        check(&set);
    }
}

fn sample(number: usize, bytes: usize) -> Sample {
    let noise = (0..bytes).map(|at| (at * (number + 7) / 3).to_le_bytes()[0]);
    Sample {
        bytes: [0xff, 0xd8, 0xff].into_iter().chain(noise).collect(),
        key: Some(format!("cat/{number}.jpg").into_bytes()),
        label: Some(number as i64 % 3),
        fields: vec![
            ("caption".to_owned(), format!("caption {number}").repeat(100).into_bytes()),
            ("id".to_owned(), (number * 5).to_string().into_bytes()),
        ],
    }
}

fn set_of(samples: Vec<Sample>) -> Set {
    let class_names = ["ant", "bee", "cat"].map(str::to_owned).to_vec();
    Set { samples, class_names, box_class_names: Vec::new() }
}

#[test]
fn features_are_those_of_datasets() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut set = set_of((0..3).map(|number| sample(number, 10)).collect());
    set.samples[1].fields.push(("mask.png".to_owned(), b"\x89PNG\r\n\x1a\n".to_vec()));
    set.samples[1].fields.push(("half".to_owned(), b"0.5".to_vec()));
    set.samples[1].fields.push(("raw".to_owned(), b"\xff".to_vec()));
    write_tbl(&at("a.tbl"), &set);
    convert_with(&at("a.tbl"), &at("a.parquet"), 1).unwrap();
    let reader = SerializedFileReader::try_from(&*at("a.parquet")).unwrap();
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| metadata.iter().find(|pair| pair.key == key).unwrap().value.clone();
    let expected = "{\"info\": {\"features\": {\"image\": {\"_type\":\"Image\"}, \"label\": \
                    {\"_type\":\"ClassLabel\",\"names\":[\"ant\",\"bee\",\"cat\"]}, \"caption\": \
                    {\"_type\":\"Value\",\"dtype\":\"string\"}, \"id\": \
                    {\"_type\":\"Value\",\"dtype\":\"int64\"}, \"mask.png\": {\"_type\":\"Image\"}, \
                    \"half\": {\"_type\":\"Value\",\"dtype\":\"float64\"}, \"raw\": \
                    {\"_type\":\"Value\",\"dtype\":\"binary\"}}}}";
    assert_eq!(value("huggingface").unwrap(), expected);
    assert_eq!(value("turboloader").unwrap(), "{\"image\":\"image\",\"label\":\"label\"}");
}

#[test]
fn pages_and_row_groups_have_bounded_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut samples: Vec<Sample> = (0..60).map(|number| sample(number, 100_000)).collect();
    // 40 MiB of texts are more than is held in memory.
    for sample in &mut samples {
        sample.fields.push(("text".to_owned(), vec![b'a'; 700_000]));
    }
    let set = set_of(samples);
    write_tbl(&at("a.tbl"), &set);
    convert_with(&at("a.tbl"), &at("a.parquet"), 1).unwrap();
    check_same(&at("a.tbl"), &at("a.parquet"));
    check_library(&at("a.tbl"), &at("a.parquet"), &set);
    let reader = SerializedFileReader::try_from(&*at("a.parquet")).unwrap();
    let groups = reader.metadata().row_groups();
    let rows: Vec<i64> = groups.iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [48, 12]);
    for group in groups {
        let image = group.column(0);
        assert_eq!(image.compressed_size(), image.uncompressed_size());
        // 11 images in each page of 1 MiB, and 6 to 16 bytes for each page.
        let pages = i32::try_from(group.num_rows()).unwrap() / 11 + 1;
        let index = image.offset_index_length().unwrap();
        assert!((pages * 6..pages * 16).contains(&index), "{pages} pages, {index} bytes");
    }
}

#[test]
fn the_file_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tbl(&at("a.tbl"), &set_of((0..50).map(|number| sample(number, 5000)).collect()));
    convert_with(&at("a.tbl"), &at("1.parquet"), 1).unwrap();
    convert_with(&at("a.tbl"), &at("4.parquet"), 4).unwrap();
    let read = |name: &str| std::fs::read(at(name)).unwrap();
    assert!(read("1.parquet") == read("4.parquet"));
}

#[test]
fn a_file_is_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tbl(&at("a.tbl"), &set_of((0..9).map(|number| sample(number, 5000)).collect()));
    // The bytes of a sample in the middle.
    let mut bytes = std::fs::read(at("a.tbl")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(at("bad.tbl"), bytes).unwrap();
    let error = convert_with(&at("bad.tbl"), &at("a.parquet"), 1).unwrap_err();
    assert!(error.is_damage(), "{error}");
    assert!(!at("a.parquet").exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    convert_with(&at("a.tbl"), &at("a.parquet"), 1).unwrap();
    let error = convert_with(&at("a.tbl"), &at("a.parquet"), 1).unwrap_err().to_string();
    assert!(error.ends_with("a.parquet: the file exists already"), "{error}");
}

#[test]
fn raw_pixels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&at("a.tbl"), options).unwrap();
    let sample = NewSample {
        format: SampleFormat::RawU8,
        width: 1,
        height: 1,
        key: Some(b"a.jpg"),
        ..NewSample::new(b"rgb")
    };
    writer.write_sample(&sample).unwrap();
    writer.finish().unwrap();
    let error = convert_with(&at("a.tbl"), &at("a.parquet"), 1).unwrap_err().to_string();
    let expected = "a.tbl: sample 0 (a.jpg): RAW_U8 pixels do not say their own size and cannot go \
                    into a Parquet file";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn damage_of_a_written_file_is_an_error_or_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let set = set_of((0..4).map(|number| sample(number, 20)).collect());
    write_tbl(&at("a.tbl"), &set);
    convert_with(&at("a.tbl"), &at("a.parquet"), 1).unwrap();
    let bytes = std::fs::read(at("a.parquet")).unwrap();
    let open =
        |bytes: Vec<u8>| RowSource::open(&Stores::new(), Source::from_bytes("a.parquet", bytes));
    for end in 0..bytes.len() {
        let error = open(bytes[..end].to_vec()).unwrap_err();
        assert!(error.is_damage(), "{error}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let Ok(samples) = open(damaged) else { continue };
        for index in 0..samples.sample_count() {
            let mut read = Vec::new();
            // An error that names the sample, or bytes; page checksums cover fields.
            for result in [
                samples.read_into(index, &mut read).err(),
                samples.read_fields(index, &mut Vec::new()).err(),
            ] {
                assert!(result.is_none_or(|error| error.sample_index() == Some(index)));
            }
        }
    }
}
