//! Parquet and Arrow files in a store as samples, tables and tokens: the batches of local files, by few
//! requests.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "tables of tests have few rows, and small numbers"
)]

use std::fs::File;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tbl_io::Stores;
use tl_pipeline::{
    Blocks, Columns, Dataset, Fields, Loader, LoaderConfig, Shuffle, TokenNumber, TokenWork, Work,
};
use tl_tokens::{DocumentRows, Fill, Long, Sequences, TokenOptions, Windows};

use crate::arrow_files::write_arrow;
use crate::memory::{config, sample};
use crate::parquet_files::{Form, Row};
use crate::store::{MemoryStore, rows, upload};

const ROWS: usize = 60;

/// Rows of record batches and row groups of tables.
const BATCH_ROWS: usize = 500;

fn write_images(root: &Path, name: &str, form: Form, count: usize) -> PathBuf {
    let row = |number| {
        let stored = sample(number, tbl_format::SampleFormat::Bmp);
        let label = stored.label.unwrap().to_string();
        Row { name: stored.key, image: stored.bytes, label, text: format!("caption {number}") }
    };
    let rows: Vec<Row> = (0..u32::try_from(count).unwrap()).map(row).collect();
    let path = root.join(name);
    write_arrow(&path, form, &rows);
    path
}

#[test]
fn images_of_an_arrow_file_cost_a_request_each_and_together_few() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let opened = [15, ROWS].map(|count| {
        let path = write_images(root.path(), &format!("{count}.arrow"), Form::Plain, count);
        let url = upload(&store, &path);
        store.reads();
        let opened = store.open_all(&[&url]);
        (opened, path, store.reads())
    });
    let [(_, _, few), (opened, path, requests)] = opened;
    // Several ask for the first bytes, which sources of `tl-store` keep. Metadata, labels and offsets of
    // all record batches come with few requests, and not with some for each of the twelve.
    assert!(few <= 10 && requests <= 14, "{few} and {requests}");
    let local = || Dataset::open(&[&path]).unwrap();
    let mut bytes = Vec::new();
    store.received();
    for number in (0..ROWS as u64).rev() {
        opened.read_into(number, &mut bytes).unwrap();
        assert_eq!(store.reads(), 1, "{number}");
        assert_eq!(store.received(), local().facts(number).unwrap().bytes);
    }
    let url = format!("mem://bucket/{ROWS}.arrow");
    for sampler in [Shuffle::None, Shuffle::Block { blocks: Blocks::Source, window: 2 }] {
        let config = LoaderConfig { sampler: sampler.into(), ..config(Work::Bytes) };
        let expected = rows(local(), config.clone());
        let opened = store.open_all(&[&url]);
        store.reads();
        assert!(rows(opened, config) == expected, "{sampler}");
        let requests = store.reads();
        // The shuffle asks for the blocks too.
        assert!(requests <= ROWS as u64 + 5, "{sampler}: {requests}");
    }
}

#[test]
fn record_batches_are_the_blocks_of_an_arrow_file() {
    let root = tempfile::tempdir().unwrap();
    let ends: Vec<u64> = (5..=60).step_by(5).collect();
    for form in [Form::Plain, Form::Packed] {
        let path = write_images(root.path(), "a.arrow", form, ROWS);
        let dataset = Dataset::open(&[&path]).unwrap();
        let blocks = dataset.shards()[0].blocks().unwrap();
        assert_eq!(blocks.ends().unwrap(), ends, "{form:?}");
        let is_packed = form == Form::Packed;
        assert_eq!(blocks.unpacked_bytes().unwrap() > 0, is_packed, "{form:?}");
        let codec = if is_packed { "lz4" } else { "uncompressed" };
        assert_eq!(blocks.compressions(), [codec], "{form:?}");
    }
}

/// Rows of numbers, texts and lists of tokens.
fn table(count: usize) -> RecordBatch {
    let number: ArrayRef = Arc::new(Int64Array::from_iter((0..count as i64).map(|n| n * n)));
    let float = (0..count).map(|n| if n % 7 == 0 { None } else { Some(n as f32 / 3.0) });
    let float: ArrayRef = Arc::new(Float32Array::from_iter(float));
    let texts = (0..count).map(|n| format!("text {n}"));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..count {
        (0..row % 60).for_each(|token| lists.values().append_value((row + token) as i32));
        lists.append(true);
    }
    let ids: ArrayRef = Arc::new(lists.finish());
    let columns = [("number", number), ("float", float), ("text", text), ("input_ids", ids)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// The same table as Parquet file, Arrow file and Arrow stream.
fn write_tables(root: &Path, count: usize) -> [PathBuf; 3] {
    let table = table(count);
    let schema = table.schema();
    let starts = (0..count).step_by(BATCH_ROWS);
    let batch = |start| table.slice(start, BATCH_ROWS.min(count - start));
    let batches: Vec<RecordBatch> = starts.map(batch).collect();
    let paths = ["a.parquet", "a.arrow", "stream.arrow"].map(|name| root.join(name));
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(BATCH_ROWS)).build();
    let file = File::create(&paths[0]).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
    let mut writer = FileWriter::try_new(File::create(&paths[1]).unwrap(), &schema).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    let mut writer = StreamWriter::try_new(File::create(&paths[2]).unwrap(), &schema).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    paths
}

#[test]
fn tables_of_all_formats_make_the_same_batches_by_few_requests() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let paths = write_tables(root.path(), 2000);
    let batches: u64 = 4;
    let columns = ["number", "float"].map(Into::into).to_vec();
    let work = Work::Columns(Columns { columns: Some(columns), ..Columns::default() });
    let fields = Fields { bytes: vec!["text".to_owned()], ..Fields::default() };
    let block = Shuffle::Block { blocks: Blocks::Source, window: 2 };
    for shuffle in [Shuffle::None, Shuffle::Full, block] {
        let sampler = shuffle.into();
        let config = LoaderConfig { sampler, fields: fields.clone(), ..config(work.clone()) };
        let expected = rows(Dataset::open(&[&paths[0]]).unwrap(), config.clone());
        assert_eq!(expected.len(), 2000);
        for path in &paths {
            let local = rows(Dataset::open(&[path]).unwrap(), config.clone());
            assert!(local == expected, "{path:?} {shuffle}");
            let url = upload(&store, path);
            store.reads();
            let opened = store.open_all(&[&url]);
            let opening = store.reads();
            // The messages of a stream, with the schema and the end, follow each other.
            let most = if path.ends_with("stream.arrow") { 16 + 2 * (batches + 2) } else { 16 };
            assert!(opening <= most, "{path:?}: {opening}");
            assert!(rows(opened, config.clone()) == expected, "{url} {shuffle}");
            // Of each column and batch a page, or values, offsets and bits of missing ones.
            let reading = store.reads();
            assert!(reading <= 2 * 3 * 3 * batches, "{url} {shuffle}: {reading}");
        }
    }
}

#[test]
fn tokens_of_all_formats_are_the_same_by_few_requests() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let paths = write_tables(root.path(), 2000);
    let length = NonZeroU32::new(64).unwrap();
    let fill = Fill::default();
    let documents =
        Sequences::Documents(DocumentRows { length, targets: true, long: Long::Error, fill });
    for sequences in [Windows::new(length).into(), documents] {
        let all = |stores: &Stores, location: &str| {
            let options = TokenOptions::default();
            let opened = Dataset::open_tokens(stores, &[location], &options, sequences).unwrap();
            let opening = store.reads();
            let work = Work::Tokens(TokenWork { number: TokenNumber::I64 });
            let config = LoaderConfig { sampler: Shuffle::Full.into(), ..config(work) };
            let loader = Loader::new(opened, config).unwrap();
            let mut found = Vec::new();
            for batch in loader.epoch(0) {
                let batch = batch.unwrap();
                for row in 0..batch.len() {
                    found.push(batch.token_row::<i64>(row).unwrap().tokens.to_vec());
                }
            }
            (found, opening, store.reads())
        };
        let local = Stores::new();
        let (expected, ..) = all(&local, paths[0].to_str().unwrap());
        assert!(expected.len() > 500, "{}", expected.len());
        for path in &paths {
            assert!(all(&local, path.to_str().unwrap()).0 == expected, "{path:?}");
            let url = upload(&store, path);
            store.reads();
            let (found, opening, reading) = all(&store.stores(), &url);
            assert!(found == expected, "{url}");
            println!("{url}: {opening} to open, {reading} for {} rows", found.len());
        }
    }
}

#[test]
fn a_folder_that_datasets_saved_is_one_data_set_of_tokens() {
    let root = tempfile::tempdir().unwrap();
    let [_, _, stream] = write_tables(root.path(), 700);
    let folder = root.path().join("saved");
    std::fs::create_dir(&folder).unwrap();
    let names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"];
    for name in names {
        std::fs::copy(&stream, folder.join(name)).unwrap();
    }
    // A cache, which is not of the data set.
    std::fs::copy(&stream, folder.join("cache-0.arrow")).unwrap();
    let files: Vec<String> = names.map(|name| format!("{{\"filename\": \"{name}\"}}")).to_vec();
    let state = format!("{{\"_data_files\": [{}]}}", files.join(","));
    std::fs::write(folder.join("state.json"), state).unwrap();
    std::fs::write(folder.join("dataset_info.json"), "{}").unwrap();
    let windows = Windows::new(NonZeroU32::new(64).unwrap());
    let open = |path: &Path| {
        let options = TokenOptions::default();
        let stores = tl_pipeline::stores();
        Dataset::open_tokens(&stores, &[path], &options, windows.into()).unwrap().len()
    };
    assert_eq!(open(&folder), 2 * open(&stream));
}
