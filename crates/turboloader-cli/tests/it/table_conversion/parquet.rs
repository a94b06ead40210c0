//! From and to Parquet files.

use std::ops::ControlFlow;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray};
use turboloader_cli::TableConversion;

use super::*;

/// A Parquet file of one batch.
fn parquet_file(columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn categories() -> ArrayRef {
    let texts = [Some("y"), None, Some("x"), Some("y"), None, Some("\u{1f600}")];
    Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>())
}

/// The reader has no dictionary then, and makes one.
#[test]
fn nulls_of_pages_without_a_dictionary_are_no_category() {
    let folder = tempfile::tempdir().unwrap();
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let bytes = parquet_file(vec![("c", categories())], plain);
    let source = write(folder.path(), "in.parquet", &bytes);
    let table = convert(&source, &folder.path().join("out.idv"), &[]);
    check(&table, "c", &key(3), &Values::UInt32(vec![1, 0, 2, 1, 0, 3].into()));
    let metadata = table.metadata(0).unwrap();
    let Values::Vector(names) = table.metadata_value(&metadata[0]).unwrap() else { panic!() };
    let expected = texts(&[Some("y"), Some("x"), Some("\u{1f600}")]);
    assert_eq!(hash(&names.items()), hash(&expected));
}

/// Files with counts that once ended the process, for lack of memory, or kept it busy: the decoder
/// believed them.
#[test]
fn counts_are_checked_before_the_decoder_uses_them() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.idv");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions/parquet");
    for (name, expected) in [
        ("booleans_without_bytes", "byte 41: damaged header: 3 booleans, expected no list"),
        ("delta-count-1.parquet", "values of DELTA_BYTE_ARRAY in a page, expected at most"),
        ("delta-count-2.parquet", "values of DELTA_BYTE_ARRAY in a page, expected at most"),
        ("delta-count-3.parquet", "values of DELTA_BYTE_ARRAY in a page, expected at most"),
    ] {
        let error = run(&root.join(name), &output, &[]).error(1);
        assert!(error.contains(expected), "{error}");
    }
}

/// A footer whose metadata has a list of 2^31 - 1 booleans in a field of a later version.
#[test]
fn metadata_of_a_file_is_checked_before_the_decoder_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = parquet_file(vec![("c", categories())], WriterProperties::default());
    let (rest, footer) = bytes.split_at(bytes.len() - 8);
    let length = u32::from_le_bytes(footer[..4].try_into().unwrap());
    let (data, metadata) = rest.split_at(rest.len() - length as usize);
    // Field 100, a list of booleans, in front of the end of the structure.
    let field: [u8; 10] = [0x09, 0xc8, 0x01, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
    let length = (length + 9).to_le_bytes();
    let end = metadata.len() - 1;
    let bytes = [data, &metadata[..end], &field, &length, b"PAR1"].concat();
    let source = write(folder.path(), "in.parquet", &bytes);
    let error = run(&source, &folder.path().join("out.idv"), &[]).error(1);
    assert!(error.contains("metadata of the file: damaged header: 2147483647 bool"), "{error}");
}

/// Of damaged files some make the decoder panic.
#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Float64Array::from_iter((0..6).map(|row| (row != 2).then_some(row.into())));
    let text = StringArray::from_iter((0..6).map(|row| (row != 3).then(|| row.to_string())));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("c", categories()), ("x", Arc::new(numbers)), ("t", Arc::new(text))];
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(zstd).build();
    let bytes = parquet_file(columns, properties);
    let mut conversion = TableConversion::default();
    (conversion.overwrite, conversion.sync) = (true, false);
    let output = folder.path().join("out.idv");
    let (mut panics, mut errors) = (0, 0);
    for position in 4..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        let source = write(folder.path(), "in.parquet", &damaged);
        let told = &mut |_, _| ControlFlow::Continue(());
        let Err(error) = conversion.run(&source, &output, told) else { continue };
        let message = error.to_string();
        assert!(message.contains("in.parquet: ") && message.len() < 400, "{message}");
        errors += 1;
        panics += usize::from(message.contains("the Parquet decoder panicked"));
    }
    assert!(errors > bytes.len() / 4 && panics > 0, "{errors} errors, {panics} panics");
    for name in ["panic-1.parquet", "panic-2.parquet", "panic-3.parquet"] {
        let Some(damaged) = data_folder("formats/parquet_damaged") else { return };
        let error = run(&damaged.join(name), &output, &["-f"]).error(1);
        assert!(error.contains("row group 0, "), "{error}");
    }
}

#[test]
fn a_table_is_parquet_and_a_table_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut columns = columns();
    // The year 1 and a tick of 100 ns have no unit in common.
    for (column, values) in &mut columns {
        let seconds = |ticks: &[i64]| -> Vec<i64> {
            ticks
                .iter()
                .map(|&tick| if tick == i64::MIN { tick } else { tick - tick % 10 })
                .collect()
        };
        *values = match std::mem::replace(values, Values::Byte(vec![].into())) {
            Values::Int64(ticks) if column.name != "n" => Values::Int64(seconds(&ticks).into()),
            Values::OffsetTime { ticks, .. } => Values::OffsetTime {
                offset_minutes: vec![-90, 60, 0].into(),
                ticks: seconds(&ticks).into(),
            },
            other => other,
        };
    }
    let source = write(folder.path(), "in.idv", &idv(&columns));
    run(&source, &at("t.parquet"), &[]).good();
    let back = convert(&at("t.parquet"), &at("back.idv"), &[]);
    for (column, values) in &columns {
        if column.name == "label" {
            let renumbered = Values::UInt32(vec![1, 0, 2].into());
            check(&back, "label", &column.codec, &renumbered);
        } else {
            check(&back, &column.name, &column.codec, values);
        }
    }
    let chosen = convert(&at("t.parquet"), &at("some.idv"), &["--columns", "f"]);
    assert_eq!(chosen.columns().len(), 1);
}

/// The values of keys in sequence, and the lengths of vectors.
fn meanings(table: &Table, name: &str) -> (Vec<u32>, Vec<Option<Vec<u8>>>) {
    let metadata = table.metadata(table.find(name).unwrap()).unwrap();
    let entry = metadata.iter().find(|entry| entry.kind == "KeyValues").unwrap();
    let Values::Vector(meanings) = table.metadata_value(entry).unwrap() else { panic!() };
    let meanings = meanings.dense_items(1 << 30).unwrap();
    let (keys, lengths) = match read(table, name).1 {
        Values::Vector(vectors) => {
            let items = vectors.dense_items(1 << 30).unwrap().into_owned();
            (items, vectors.rows().map(|row| row.length()).collect())
        }
        keys => (keys, Vec::new()),
    };
    let keys: Vec<usize> = match keys {
        Values::Byte(keys) => keys.iter().map(|&key| usize::from(key)).collect(),
        Values::UInt16(keys) => keys.iter().map(|&key| usize::from(key)).collect(),
        Values::UInt32(keys) => keys.iter().map(|&key| key as usize).collect(),
        other => panic!("{other:?}"),
    };
    let meaning = |key: usize| hash(&meanings.slice(key - 1..key));
    (lengths, keys.into_iter().map(|key| (key > 0).then(|| meaning(key))).collect())
}

#[test]
fn every_file_comes_back_from_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let (parquet, back) = (folder.path().join("t.parquet"), folder.path().join("t.idv"));
    let (mut columns, mut refused) = (0, 0);
    for path in samples() {
        let table = open(&path);
        for (name, codec) in visible(&table) {
            if name.contains([',', '=']) || name.is_empty() {
                continue;
            }
            let write =
                |unit| run(&path, &parquet, &["--columns", &name, "-f", "--time-unit", unit]);
            let mut written = write("us");
            if written.code != Some(0) {
                written = write("ns");
            }
            if written.code != Some(0) {
                let is_time = matches!(codec.item(), Item::DateTime | Item::DateTimeOffset);
                assert!(is_time && written.stderr.contains("have no number of"), "{written:?}");
                refused += 1;
                continue;
            }
            let back = convert(&parquet, &back, &["-f"]);
            let (before, after) = (read(&table, &name).1, read(&back, &name).1);
            if matches!(codec.item(), Item::Key(_)) && has_key_values(&table, &name) {
                let [before, after] = [&table, &back].map(|table| meanings(table, &name));
                assert_eq!(before, after, "{}: {name}", path.display());
            } else {
                let expected = match before {
                    before @ Values::OffsetTime { .. } => as_csv_has_them(&before),
                    before => before,
                };
                assert_eq!(hash(&expected), hash(&after), "{}: {name}", path.display());
            }
            columns += 1;
        }
    }
    assert!(columns >= 20 && refused < columns, "{columns} columns, {refused} refused");
}
