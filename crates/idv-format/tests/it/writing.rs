//! Written files, read by this crate and an independent parser, and compared with ML.NET's bytes.

use std::fs;
use std::io::Cursor;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::process::Command;

use idv_format::{
    Codec, Compression, IdvFile, Item, NewColumn, NewMetadata, Number, Scratch, Values,
    ValuesError, Vector, Vectors, WriteError, WriteOptions, WriteSummary, Writer,
};
use serde_json::Value;

use crate::data::{all_samples, hash, outcome, read_all};

type File = IdvFile<Vec<u8>>;

/// The columns of a file that can be read, as they are to be written again.
fn columns(
    file: &File,
    compression: Option<Compression>,
) -> (Vec<NewColumn>, Vec<Values<'static>>) {
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for index in 0..file.columns().len() {
        let Ok(column) = file.column(index) else { continue };
        let entry = column.entry();
        let metadata = file.metadata(index).unwrap();
        let metadata = metadata.iter().map(|entry| NewMetadata {
            kind: entry.kind.clone(),
            codec: entry.storage.known().unwrap().0.clone(),
            value: file.metadata_value(entry).unwrap(),
        });
        columns.push(NewColumn {
            compression: compression.unwrap_or_else(|| entry.storage.known().unwrap().1),
            metadata: metadata.collect(),
            ..NewColumn::new(entry.name.clone(), column.codec().clone())
        });
        values.push(read_all(&column));
    }
    (columns, values)
}

fn options(rows_per_block: u32, threads: usize) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.rows_per_block = NonZeroU32::new(rows_per_block);
    options.threads = NonZeroUsize::new(threads).unwrap();
    options
}

/// Writes values in batches of `batch` rows.
fn write(
    columns: &[NewColumn],
    values: &[Values<'_>],
    options: WriteOptions,
    batch: usize,
) -> (Vec<u8>, WriteSummary) {
    let mut writer = Writer::new(Cursor::new(Vec::new()), columns.to_vec(), options).unwrap();
    let rows = values.first().map_or(0, Values::len);
    for start in (0..rows).step_by(batch) {
        let end = rows.min(start + batch);
        let part: Vec<_> = values.iter().map(|values| values.slice(start..end)).collect();
        writer.write(&part).unwrap();
    }
    let (sink, summary) = writer.finish().unwrap();
    assert_eq!(sink.get_ref().len() as u64, summary.bytes);
    assert_eq!(sink.position(), summary.bytes);
    (sink.into_inner(), summary)
}

const BLOCK_ROWS: [u32; 4] = [0, 1, 7, 64];
const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Deflate];

#[test]
fn written_again_every_column_is_the_same() {
    for sample in all_samples() {
        let expected: Vec<_> =
            outcome(sample.bytes.as_slice()).unwrap().into_iter().filter(Result::is_ok).collect();
        let file = File::open(sample.bytes).unwrap();
        for compression in COMPRESSIONS {
            let (columns, values) = columns(&file, Some(compression));
            for rows in BLOCK_ROWS {
                let (bytes, summary) = write(&columns, &values, options(rows, 1), usize::MAX);
                let name = sample.path.display();
                assert_eq!(outcome(bytes.as_slice()).unwrap(), expected, "{name}, {rows} rows");
                let written = File::open(bytes).unwrap();
                let count = if columns.is_empty() { 0 } else { file.row_count() };
                assert_eq!((written.row_count(), summary.rows), (count, count));
                check_metadata(&columns, &written);
            }
        }
    }
}

fn check_metadata(columns: &[NewColumn], written: &File) {
    for (index, column) in columns.iter().enumerate() {
        let entries = written.metadata(index).unwrap();
        assert_eq!(entries.len(), column.metadata.len());
        for (entry, expected) in entries.iter().zip(&column.metadata) {
            assert_eq!(entry.kind, expected.kind);
            let value = written.metadata_value(entry).unwrap();
            assert_eq!(hash(&value), hash(&expected.value));
        }
    }
}

/// The bytes depend on the values and on the options that are about the file.
#[test]
fn threads_and_batches_do_not_change_a_byte() {
    for sample in all_samples().into_iter().filter(|sample| sample.bytes.len() < 30_000) {
        let file = File::open(sample.bytes).unwrap();
        let (columns, values) = columns(&file, Some(Compression::Deflate));
        for rows in BLOCK_ROWS {
            let (expected, _) = write(&columns, &values, options(rows, 1), usize::MAX);
            for (threads, batch) in [(1, 1), (1, 10), (3, usize::MAX), (2, 17)] {
                let (bytes, _) = write(&columns, &values, options(rows, threads), batch);
                assert!(bytes == expected, "{}: {threads}, {batch}", sample.path.display());
            }
        }
    }
}

/// What the independent parser says of files in `folder`.
fn parse(parser: &Path, folder: &Path) {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let python = std::env::var_os("TURBOLOADER_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python).arg(parser).args(&files).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[tl_testdata::needs("formats/idv")]
#[test]
fn the_independent_parser_reads_what_is_written() {
    let folder = tl_testdata::path!("formats/idv");
    let parser = folder.join("../idv_parse.py");
    let target = std::env::temp_dir().join(format!("idv-format-{}", std::process::id()));
    fs::create_dir_all(&target).unwrap();
    let mut expected = Vec::new();
    for (number, sample) in all_samples().into_iter().enumerate() {
        // Every codec is in these; the parser is not fast.
        let whole = ["types.idv", "legacy.idv", "numbers.idv", "vectors_default.idv"];
        let rows = if whole.iter().any(|name| sample.path.ends_with(name)) {
            &BLOCK_ROWS[..]
        } else {
            &BLOCK_ROWS[number % 4..][..1]
        };
        let file = File::open(sample.bytes).unwrap();
        for compression in COMPRESSIONS {
            let (columns, values) = columns(&file, Some(compression));
            for &rows in rows {
                let (bytes, summary) = write(&columns, &values, options(rows, 1), usize::MAX);
                let path = target.join(format!("{number:03}_{compression}_{rows}.idv"));
                fs::write(&path, bytes).unwrap();
                let hashes: Vec<String> = values.iter().map(hash).collect();
                expected.push((path, summary, hashes));
            }
        }
    }
    parse(&parser, &target);
    let mut codecs = std::collections::BTreeSet::new();
    for (path, summary, hashes) in &expected {
        let found: Value =
            serde_json::from_slice(&fs::read(format!("{}.json", path.display())).unwrap()).unwrap();
        assert_eq!(found["row_count"].as_u64(), Some(summary.rows));
        assert_eq!(found["version"], "1.1.1.6");
        assert_eq!(found["unreferenced_ranges"], Value::Array(Vec::new()), "{}", path.display());
        let columns = found["columns"].as_array().unwrap();
        assert_eq!(columns.len(), hashes.len());
        for (column, hash) in columns.iter().zip(hashes) {
            assert_eq!(column["column_sha256"].as_str(), Some(hash.as_str()), "{column}");
            assert_eq!(column["rows_per_block"].as_u64(), Some(summary.rows_per_block));
            codecs.insert(column["codec"].as_str().unwrap().to_owned());
        }
    }
    fs::remove_dir_all(&target).unwrap();
    // Everything that is written was among them.
    let all = Number::ALL.map(Number::name);
    let others = [
        "Boolean",
        "DataViewRowId",
        "DateTime",
        "DateTimeOffset",
        "DvBool",
        "Key2",
        "TextSpan",
        "TimeSpan",
        "VBuffer",
    ];
    assert!(all.iter().chain(&others).all(|name| codecs.contains(*name)), "{codecs:?}");
}

/// ML.NET's uncompressed files, whose blocks are in order, made again from their values.
#[tl_testdata::needs("formats/idv")]
#[test]
fn uncompressed_files_have_the_bytes_of_mlnet() {
    let folder = tl_testdata::path!("formats/idv");
    for name in
        ["alltypes_rpb7_none", "array_sparse_rowid_rpb2_none", "mnist-tiny-sparse_rpb10_none"]
    {
        let expected = fs::read(folder.join(format!("mlnet_1.5/{name}.idv"))).unwrap();
        let theirs = File::open(expected.clone()).unwrap();
        let (columns, values) = columns(&theirs, None);
        let rows = u32::try_from(theirs.columns()[0].rows_per_block).unwrap();
        let (bytes, _) = write(&columns, &values, options(rows, 1), usize::MAX);
        assert!(bytes == expected, "{name}");
    }
}

/// Without a number of rows per block the writer takes the one that ML.NET takes.
#[tl_testdata::needs("formats/idv")]
#[test]
fn rows_per_block_are_those_of_mlnet() {
    let folder = tl_testdata::path!("formats/idv");
    let defaults = ["alltypes_default", "vectors_default", "breast-cancer", "iris", "adult.tiny"];
    for name in defaults {
        let bytes = fs::read(folder.join(format!("mlnet_1.5/{name}.idv"))).unwrap();
        let file = File::open(bytes).unwrap();
        let (columns, values) = columns(&file, None);
        let (_, summary) = write(&columns, &values, WriteOptions::default(), 10);
        assert_eq!(summary.rows_per_block, file.columns()[0].rows_per_block, "{name}");
    }
    let column = [NewColumn::new("x", Codec::number(Number::Int32))];
    let values = |rows: i32| [Values::Int32((0..rows).collect())];
    for (rows, expected) in [(0, 1), (5, 5), (8191, 8191), (8192, 8192), (20_000, 8192)] {
        for batch in [1000, usize::MAX] {
            let (bytes, summary) = write(&column, &values(rows), WriteOptions::default(), batch);
            assert_eq!(summary.rows_per_block, expected);
            let file = File::open(bytes).unwrap();
            assert_eq!(file.columns()[0].rows_per_block, expected);
            assert_eq!(hash(&read_all(&file.column(0).unwrap())), hash(&values(rows)[0]));
        }
    }
}

fn start(column: NewColumn) -> Result<Writer<Cursor<Vec<u8>>>, WriteError> {
    Writer::new(Cursor::new(Vec::new()), vec![column], WriteOptions::default())
}

#[test]
fn columns_that_nobody_could_read_are_refused() {
    let check = |column: NewColumn, expected: &str| {
        assert_eq!(start(column).unwrap_err().to_string(), expected);
    };
    let single = || Codec::number(Number::Single);
    let zlib = NewColumn { compression: Compression::Zlib, ..NewColumn::new("x", single()) };
    check(zlib, "column \"x\": zlib is not written");
    let key =
        |count| Codec::Item(Item::Key(idv_format::Key { number: Number::Byte, count, min: 0 }));
    check(NewColumn::new("k", key(0)), "column \"k\": key count at 12 is 0, expected 1 to 255");
    let huge = Vector { item: Item::Boolean, dimensions: vec![1 << 20, 1 << 20] };
    let expected = "column \"v\": vector dimensions at 22 multiply to more than 2147483647";
    check(NewColumn::new("v", Codec::Vector(huge)), expected);
    let metadata = |kind: &str, values: usize| NewMetadata {
        kind: kind.to_owned(),
        codec: single(),
        value: Values::Single(vec![0.0; values].into()),
    };
    let with = |metadata| NewColumn { metadata, ..NewColumn::new("m", single()) };
    let wrong = |kind, values| {
        format!(
            "column \"m\": invalid metadata {kind:?} of {values} values: expected a new, non-empty \
             kind and one value"
        )
    };
    check(with(vec![metadata("a", 2)]), &wrong("a", 2));
    check(with(vec![metadata("", 1)]), &wrong("", 1));
    check(with(vec![metadata("a", 1), metadata("a", 1)]), &wrong("a", 1));
}

#[test]
fn a_file_with_an_error_in_between_is_not_finished() {
    let mut writer = start(NewColumn::new("b", Codec::Item(Item::Boolean))).unwrap();
    let boolean = |value: u8| Values::Boolean(vec![value].into());
    writer.write(&[boolean(1)]).unwrap();
    // What is wrong with the shape of the rows leaves the file as it was.
    let error = writer.write(&[boolean(1), boolean(1)]).unwrap_err();
    assert!(matches!(error, WriteError::Columns { expected: 1, found: 2 }), "{error}");
    let error = writer.write(&[Values::Byte(vec![1].into())]).unwrap_err();
    assert!(
        matches!(error, WriteError::Values { source: ValuesError::Kind { .. }, .. }),
        "{error}"
    );
    let error = writer.write(&[boolean(1)]).unwrap_err();
    assert!(matches!(error, WriteError::Failed), "{error}");
    assert!(matches!(writer.finish(), Err(WriteError::Failed)));
    // A missing value is only found when its block is made.
    let mut writer = start(NewColumn::new("b", Codec::Item(Item::Boolean))).unwrap();
    writer.write(&[boolean(2)]).unwrap();
    let error = writer.finish().unwrap_err();
    let missing = ValuesError::MissingBoolean { item: 0 };
    assert!(matches!(error, WriteError::Values { source, .. } if source == missing));
}

#[test]
fn a_file_that_was_not_finished_is_none() {
    let mut sink = Cursor::new(Vec::new());
    let column = NewColumn::new("x", Codec::number(Number::Byte));
    let mut writer = Writer::new(&mut sink, vec![column], options(2, 1)).unwrap();
    writer.write(&[Values::Byte(vec![1, 2, 3].into())]).unwrap();
    drop(writer);
    assert!(sink.get_ref().len() > 256);
    let error = IdvFile::open(sink.into_inner()).unwrap_err();
    assert!(error.to_string().starts_with("signature at 0 is 0000000000000000"), "{error}");
}

/// A file can start anywhere, as those in ML.NET's models do.
#[test]
fn a_file_starts_where_its_destination_stands() {
    let mut sink = Cursor::new(b"front".to_vec());
    sink.set_position(5);
    let column = NewColumn::new("x", Codec::number(Number::Byte));
    let mut writer = Writer::new(sink, vec![column], WriteOptions::default()).unwrap();
    writer.write(&[Values::Byte(vec![1, 2, 3].into())]).unwrap();
    let bytes = writer.finish().unwrap().0.into_inner();
    assert!(bytes.starts_with(b"front"));
    assert_eq!(outcome(&bytes[5..]).unwrap().len(), 1);
}

/// Vectors put together by hand, of every shape.
#[test]
fn vectors_pushed_are_vectors_read() {
    let text = |texts: &[&str]| Values::Text(texts.iter().map(|&text| Some(text)).collect());
    let mut vectors = Vectors::empty(text(&[]));
    vectors.push(2, None, &text(&["a", "b"])).unwrap();
    vectors.push(3, Some(&[1]), &text(&["c"])).unwrap();
    vectors.push(1, Some(&[0]), &text(&["d"])).unwrap();
    vectors.push(4, Some(&[]), &text(&[])).unwrap();
    vectors.push(0, None, &text(&[])).unwrap();
    let refused = |length, indices: &[u32], items: &[&str]| {
        let error = vectors.clone().push(length, Some(indices), &text(items)).unwrap_err();
        assert!(matches!(error, ValuesError::VectorItems { vector: 5, .. }), "{error}");
    };
    refused(3, &[1, 1], &["x", "y"]);
    refused(3, &[3], &["x"]);
    refused(3, &[1], &["x", "y"]);
    let codec = Codec::Vector(Vector { item: Item::Text, dimensions: vec![0] });
    let values = Values::Vector(vectors);
    let (bytes, _) = write(&[NewColumn::new("v", codec)], &[values], options(2, 1), 3);
    let file = File::open(bytes).unwrap();
    let column = file.column(0).unwrap();
    let Values::Vector(found) = read_all(&column) else { panic!() };
    let rows: Vec<(u32, Option<Vec<u32>>)> =
        found.rows().map(|row| (row.length(), row.indices().map(<[u32]>::to_vec))).collect();
    let expected = [(2, None), (3, Some(vec![1])), (1, None), (4, Some(vec![])), (0, None)];
    assert_eq!(rows, expected);
    let Values::Text(dense) = found.dense_items(10).unwrap() else { panic!() };
    let dense: Vec<&str> = dense.iter().map(Option::unwrap).collect();
    assert_eq!(dense, ["a", "b", "", "c", "", "d", "", "", "", ""]);
    assert!(matches!(found.dense_items(9), Err(ValuesError::TooMany { found: 10, .. })));
    let mut scratch = Scratch::new();
    assert_eq!(column.read_block(2, &mut scratch).unwrap().len(), 1);
}
