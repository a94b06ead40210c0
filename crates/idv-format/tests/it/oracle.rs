//! Whole files against what an independent parser, and ML.NET itself, found in them.

use std::fs;

use idv_format::{Codec, ColumnEntry, IdvFile, Item, MetadataEntry, Values, parse_lookup_table};
use serde_json::Value;

use crate::data::{Sample, hash, hex, own_files, read_all, samples};

type File = IdvFile<Vec<u8>>;

/// The type as the parser writes it.
fn type_name(codec: &Codec) -> String {
    let item = match codec.item() {
        Item::Key(key) if key.min > 0 => {
            format!("Key<{}, 1-{}> min={}", key.number.name(), key.count, key.min)
        }
        Item::MissingBoolean => "Boolean(NA-able)".to_owned(),
        other => other.to_string(),
    };
    match codec {
        Codec::Vector(vector) if vector.dimensions.is_empty() => format!("Vector<{item}, 0>"),
        Codec::Vector(vector) => {
            let extents: Vec<String> = vector.dimensions.iter().map(u32::to_string).collect();
            format!("Vector<{item}, {}>", extents.join("x"))
        }
        _ => item,
    }
}

/// The values as ML.NET returns them since version 0.6, which knows no missing ones.
fn missing_to_default(codec: &Codec, values: Values<'_>) -> Values<'static> {
    let zero_ticks = |ticks: &[i64]| -> Vec<i64> {
        ticks.iter().map(|&tick| if tick == i64::MIN { 0 } else { tick }).collect()
    };
    match (codec, values) {
        (_, Values::Boolean(values)) => Values::Boolean(values.iter().map(|&v| v & 1).collect()),
        (_, Values::Text(text)) => {
            Values::Text(text.iter().map(|text| Some(text.unwrap_or_default())).collect())
        }
        (Codec::Item(Item::TimeSpan | Item::DateTime), Values::Int64(ticks)) => {
            Values::Int64(zero_ticks(&ticks).into())
        }
        (_, Values::OffsetTime { offset_minutes, ticks }) => {
            let zero_offset = |&offset: &i16| if offset == i16::MIN { 0 } else { offset };
            Values::OffsetTime {
                offset_minutes: offset_minutes.iter().map(zero_offset).collect(),
                ticks: zero_ticks(&ticks).into(),
            }
        }
        (Codec::Vector(vector), Values::Vector(vectors)) => {
            // Time spans in vectors keep the missing one.
            let item = match &vector.item {
                Item::TimeSpan => Codec::number(idv_format::Number::Int64),
                item => Codec::Item(item.clone()),
            };
            let mut defaulted = idv_format::Vectors::empty(item.empty_values());
            let items = missing_to_default(&item, vectors.items());
            for row in vectors.rows() {
                let items = items.slice(row.items());
                defaulted.push(row.length(), row.indices(), &items).unwrap();
            }
            Values::Vector(defaulted)
        }
        (_, values) => values.into_owned(),
    }
}

fn check_file(sample: &Sample) {
    let expected = &sample.expected;
    let name = sample.path.display();
    let file = File::open(sample.bytes.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let header = file.header();
    let number = |key: &str| expected[key].as_u64().unwrap();
    assert_eq!(header.version.to_string(), expected["version"], "{name}");
    assert_eq!(header.compatible_version.to_string(), expected["compatible_version"], "{name}");
    assert_eq!(header.toc_offset, number("toc_offset"), "{name}");
    assert_eq!(header.tail_offset, number("tail_offset"), "{name}");
    assert_eq!(file.row_count(), number("row_count"), "{name}");
    let columns = expected["columns"].as_array().unwrap();
    assert_eq!(file.columns().len(), columns.len(), "{name}");
    for (index, (entry, expected)) in file.columns().iter().zip(columns).enumerate() {
        check_entry(&sample.bytes, &file, entry, expected);
        check_values(&file, index, entry, expected);
        check_metadata(&file, index, expected);
    }
}

fn check_entry(bytes: &[u8], file: &File, entry: &ColumnEntry, expected: &Value) {
    let number = |key: &str| expected[key].as_u64().unwrap();
    assert_eq!(entry.name, expected["name"]);
    assert_eq!(entry.storage.codec.name, expected["codec"]);
    assert_eq!(hex(&entry.storage.codec.parameters), expected["codec_params_hex"]);
    let compression = entry.storage.compression.map_or_else(u64::from, |known| known.code().into());
    assert_eq!(compression, number("compression"));
    assert_eq!(entry.rows_per_block, number("rows_per_block"));
    assert_eq!(entry.lookup_offset, number("lookup_offset"));
    assert_eq!(entry.metadata_offset.unwrap_or(0), number("metadata_toc_offset"));
    let rows = file.row_count();
    assert_eq!(entry.block_count(rows), number("blocks"));
    if rows > 0 {
        let range = entry.lookup_range(rows);
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
        let table = &bytes[start..end];
        let blocks = parse_lookup_table(table, range.start, file.header()).unwrap();
        let sum = |part: fn(&idv_format::Block) -> u32| -> u64 {
            blocks.iter().map(|block| u64::from(part(block))).sum()
        };
        assert_eq!(sum(|block| block.stored_bytes), number("compressed_bytes"));
        assert_eq!(sum(|block| block.bytes), number("uncompressed_bytes"));
    }
}

fn check_values(file: &File, index: usize, entry: &ColumnEntry, expected: &Value) {
    if expected["type"].is_null() {
        let dead = file.column(index).unwrap_err();
        assert!(matches!(dead, idv_format::ReadError::Dead { .. }), "{dead}");
        return;
    }
    let column = file.column(index).unwrap();
    assert_eq!(type_name(column.codec()), expected["type"]);
    let values = read_all(&column);
    assert_eq!(values.len() as u64, file.row_count());
    assert_eq!(hash(&values), expected["column_sha256"], "{}", entry.name);
    let defaulted = missing_to_default(column.codec(), values);
    assert_eq!(hash(&defaulted), expected["column_sha256_na_as_default"], "{}", entry.name);
}

fn check_metadata(file: &File, index: usize, expected: &Value) {
    let found = file.metadata(index).unwrap();
    let expected = expected["metadata"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(found.len(), expected.len());
    for (entry, expected) in found.iter().zip(expected) {
        let MetadataEntry { kind, storage, offset, stored_bytes, .. } = entry;
        assert_eq!(*kind, expected["kind"]);
        assert_eq!(storage.codec.name, expected["codec"]);
        assert_eq!(hex(&storage.codec.parameters), expected["codec_params_hex"]);
        let (codec, compression) = storage.known().unwrap();
        assert_eq!(type_name(codec), expected["type"]);
        assert_eq!(u64::from(compression.code()), expected["compression"].as_u64().unwrap());
        assert_eq!(*offset, expected["block_offset"].as_u64().unwrap());
        assert_eq!(*stored_bytes, expected["block_bytes"].as_u64().unwrap());
        assert_eq!(hash(&file.metadata_value(entry).unwrap()), expected["value_sha256"], "{kind}");
    }
}

#[test]
fn the_generators_files_read_as_it_says() {
    let samples = samples(&own_files());
    assert!(samples.len() >= 4, "{} files", samples.len());
    samples.iter().for_each(check_file);
}

#[tl_testdata::needs("formats/idv")]
#[test]
fn mlnets_files_read_as_the_independent_parser_says() {
    let folder = tl_testdata::path!("formats/idv");
    let samples = samples(&folder);
    assert_eq!(samples.len(), 48);
    samples.iter().for_each(check_file);
}

/// The hashes that the real loader's values gave, with missing values as it returns them.
#[tl_testdata::needs("formats/idv")]
#[test]
fn columns_have_the_values_that_mlnet_returned() {
    let folder = tl_testdata::path!("formats/idv");
    let hashes = fs::read(folder.join("mlnet_reader_column_hashes.json")).unwrap();
    let hashes: Value = serde_json::from_slice(&hashes).unwrap();
    let mut compared = 0;
    for sample in samples(&folder) {
        let name = sample.path.file_name().unwrap().to_string_lossy().into_owned();
        let file = File::open(sample.bytes).unwrap();
        for index in 0..file.columns().len() {
            let Ok(column) = file.column(index) else { continue };
            // Files of one name in other folders are other files.
            if sample.path.parent().is_some_and(|folder| folder.ends_with("history")) {
                continue;
            }
            if let Some(expected) = hashes[format!("{name}:{}", column.entry().name)].as_str() {
                let values = missing_to_default(column.codec(), read_all(&column));
                assert_eq!(hash(&values), expected, "{name}: {}", column.entry().name);
                compared += 1;
            }
        }
    }
    // The others are of files that are not there.
    assert_eq!(compared, 124);
}
