//! Whole files against the hashes that other readers have of their columns.

use std::fs;
use std::path::{Path, PathBuf};

use idv_format::{Codec, IdvFile, Item};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tl_pipeline::{Columns, Content, Dataset, Fields, Loader, LoaderConfig, Work};

use crate::memory::config;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Files with a JSON description, in the folders that exist.
fn samples(folder: &Path) -> Vec<(PathBuf, Value)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let of_path = |path: PathBuf| {
        if path.is_dir() {
            return samples(&path);
        }
        let json = fs::read(format!("{}.json", path.display()));
        let json = json.map(|json| serde_json::from_slice(&json).unwrap());
        json.map(|json| vec![(path, json)]).unwrap_or_default()
    };
    paths.into_iter().flat_map(of_path).collect()
}

/// Every column of a data set by name, each row as a batch has it, rows in the order of the file;
/// the first byte is 1 if the row has a value.
fn all_columns(path: &Path) -> Vec<(String, Vec<Option<Vec<u8>>>)> {
    let dataset = Dataset::open(&[path]).unwrap();
    let (mut columns, mut bytes) = (Vec::new(), Vec::new());
    let table = dataset.tables().next().unwrap();
    for (place, column) in table.columns().iter().enumerate() {
        let last = table.columns().iter().rposition(|last| last.name == column.name);
        let is_last = last == Some(place);
        if is_last && matches!(column.content, Content::Numbers { .. }) {
            columns.push(column.name.clone());
        } else if is_last && matches!(column.content, Content::Bytes { .. }) {
            bytes.push(column.name.clone());
        }
    }
    let rows = usize::try_from(dataset.len()).unwrap();
    let mut found: Vec<(String, Vec<Option<Vec<u8>>>)> =
        columns.iter().chain(&bytes).map(|name| (name.clone(), vec![None; rows])).collect();
    if found.is_empty() {
        return found;
    }
    if rows == 0 {
        assert!(dataset.require_samples().is_err());
        return found;
    }
    let work = Work::Columns(Columns {
        columns: Some(columns.iter().map(Into::into).collect()),
        block_bytes: 10_000,
        ..Columns::default()
    });
    let fields = Fields { bytes: bytes.clone(), ..Fields::default() };
    let loader = Loader::new(dataset, LoaderConfig { fields, ..config(work) }).unwrap();
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        for (row, &index) in batch.indices().iter().enumerate() {
            let index = usize::try_from(index).unwrap();
            for (place, column) in batch.columns().enumerate() {
                let width = column.bytes.len() / batch.len();
                found[place].1[index] = Some(column.bytes[row * width..][..width].to_vec());
            }
            for column in 0..bytes.len() {
                let value = batch.bytes(column, row).map(<[u8]>::to_vec);
                found[columns.len() + column].1[index] = value;
            }
        }
    }
    found
}

/// Bytes of one item as a batch has it.
fn item_bytes(item: &Item) -> usize {
    match item {
        Item::Boolean | Item::MissingBoolean => 1,
        Item::DateTimeOffset | Item::RowId => 16,
        Item::Number(_) | Item::Key(_) | Item::Text | Item::TimeSpan | Item::DateTime => {
            usize::try_from(Codec::Item(item.clone()).block_bytes(1).unwrap()).unwrap()
        }
    }
}

/// A row of a batch in the form that the hashes are of: `docs/idv.md`, "Comparing columns".
fn canonical(codec: &Codec, row: Option<&[u8]>, out: &mut Vec<u8>) {
    let text = |text: Option<&str>, out: &mut Vec<u8>| match text {
        None => out.extend([0xff; 4]),
        Some(text) => {
            out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            out.extend(text.as_bytes());
        }
    };
    let item = codec.item();
    let is_vector = matches!(codec, Codec::Vector(_));
    if *item == Item::Text && !is_vector {
        return text(row.map(|row| std::str::from_utf8(row).unwrap()), out);
    }
    let row = row.unwrap();
    if *item == Item::Text {
        let texts: Vec<Option<String>> = serde_json::from_slice(row).unwrap();
        out.extend(u32::try_from(texts.len()).unwrap().to_le_bytes());
        return texts.iter().for_each(|value| text(value.as_deref(), out));
    }
    if is_vector {
        out.extend(u32::try_from(row.len() / item_bytes(item)).unwrap().to_le_bytes());
    }
    if *item != Item::DateTimeOffset {
        return out.extend(row);
    }
    for item in row.chunks(16) {
        // Minutes in front of ticks, in 16 bits.
        out.extend_from_slice(&item[8..10]);
        out.extend_from_slice(&item[..8]);
    }
}

#[test]
fn columns_of_idv_files_are_those_that_other_readers_find() {
    let own = samples(&tl_testdata::shipped!("idv"));
    let mut compared = 0;
    for (path, expected) in own.into_iter().chain(samples(&tl_testdata::path!("formats/idv"))) {
        let name = path.display();
        let start = usize::try_from(expected["idv_starts_at"].as_u64().unwrap_or(0)).unwrap();
        let bytes = fs::read(&path).unwrap()[start..].to_vec();
        let root = tempfile::tempdir().unwrap();
        let alone = root.path().join("alone");
        fs::write(&alone, &bytes).unwrap();
        let file = IdvFile::open(bytes).unwrap();
        for (column, rows) in all_columns(&alone) {
            let place = file.find(&column).unwrap();
            let codec = file.column(place).unwrap().codec().clone();
            let mut found = Vec::new();
            rows.iter().for_each(|row| canonical(&codec, row.as_deref(), &mut found));
            let found = hex(&Sha256::digest(&found));
            let expected = &expected["columns"][place]["column_sha256"];
            if expected.is_null() {
                continue;
            }
            assert_eq!(found, expected.as_str().unwrap(), "{name} {column}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
    eprintln!("{compared} columns");
}

#[tl_testdata::needs("formats/tbf")]
#[test]
fn columns_of_tbf_segments_are_those_that_another_reader_finds() {
    for (path, expected) in samples(&tl_testdata::path!("formats/tbf")) {
        let hashes = &expected["column_sha256"];
        for (column, rows) in all_columns(&path) {
            let key = match &*column {
                "id" => "ids",
                "timestamp" => "timestamps",
                "context_hash" => "context_hashes",
                "confidence" => "confidences",
                "outcome_status" => "statuses",
                "embedding" => "embeddings_packed",
                other => panic!("{other}"),
            };
            let found = rows.into_iter().flatten().flatten().collect::<Vec<u8>>();
            let found = hex(&Sha256::digest(&found));
            assert_eq!(found, hashes[key].as_str().unwrap(), "{} {column}", path.display());
        }
    }
}
