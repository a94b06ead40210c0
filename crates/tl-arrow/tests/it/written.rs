//! Files that the library of the Parquet project writes, with all kinds of settings.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;
use tbl_io::{IndexOptions, Source, Stores, index_shards};
use tl_arrow::RowSource;

use crate::rows::{Row, check_samples, rows};

const SCHEMA: &str = "message schema {
    optional group image { optional binary bytes; optional binary path (UTF8); }
    optional int64 label;
    optional binary caption (UTF8);
}";

#[derive(Clone, Debug)]
struct Settings {
    version: WriterVersion,
    compression: Compression,
    has_dictionary: bool,
    has_index: bool,
    page_rows: usize,
    group_rows: usize,
    encodings: [Encoding; 2],
}

fn settings() -> impl Strategy<Value = Settings> {
    let version = prop_oneof![Just(WriterVersion::PARQUET_1_0), Just(WriterVersion::PARQUET_2_0)];
    let gzip = GzipLevel::default();
    let zstd = ZstdLevel::default();
    let compression = prop_oneof![
        3 => Just(Compression::UNCOMPRESSED),
        2 => Just(Compression::SNAPPY),
        1 => Just(Compression::GZIP(gzip)),
        1 => Just(Compression::ZSTD(zstd)),
        2 => Just(Compression::LZ4_RAW),
    ];
    let of_bytes = prop_oneof![
        3 => Just(Encoding::PLAIN),
        1 => Just(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        1 => Just(Encoding::DELTA_BYTE_ARRAY),
    ];
    let of_numbers = prop_oneof![
        Just(Encoding::PLAIN),
        Just(Encoding::DELTA_BINARY_PACKED),
        Just(Encoding::BYTE_STREAM_SPLIT),
    ];
    let shape = (any::<bool>(), any::<bool>(), 1_usize..20, 1_usize..70);
    (version, compression, of_bytes, of_numbers, shape).prop_map(
        |(version, compression, of_bytes, of_numbers, shape)| {
            let (has_dictionary, has_index, page_rows, group_rows) = shape;
            let encodings = [of_bytes, of_numbers];
            Settings {
                version,
                compression,
                has_dictionary,
                has_index,
                page_rows,
                group_rows,
                encodings,
            }
        },
    )
}

fn properties(settings: &Settings) -> WriterProperties {
    let [of_bytes, of_numbers] = settings.encodings;
    let path =
        |parts: &[&str]| ColumnPath::new(parts.iter().map(|&part| part.to_owned()).collect());
    WriterProperties::builder()
        .set_writer_version(settings.version)
        .set_compression(settings.compression)
        .set_dictionary_enabled(settings.has_dictionary)
        .set_offset_index_disabled(!settings.has_index)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(settings.page_rows)
        .set_write_batch_size(1)
        .set_column_encoding(path(&["image", "bytes"]), of_bytes)
        .set_column_encoding(path(&["caption"]), of_bytes)
        .set_column_encoding(path(&["label"]), of_numbers)
        .build()
}

fn write(rows: &[Row], settings: &Settings) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = Arc::new(properties(settings));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for rows in rows.chunks(settings.group_rows) {
        let mut group = writer.next_row_group().unwrap();
        let bytes = rows.iter().map(|row| match &row.image {
            None => (0, None),
            Some(None) => (1, None),
            Some(Some(bytes)) => (2, Some(bytes.clone())),
        });
        write_texts(&mut group, bytes);
        let paths = rows.iter().map(|row| match (&row.image, &row.path) {
            (None, _) => (0, None),
            (Some(_), None) => (1, None),
            (Some(_), Some(path)) => (2, Some(path.clone().into_bytes())),
        });
        write_texts(&mut group, paths);
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.label.is_some())).collect();
        let labels: Vec<i64> = rows.iter().filter_map(|row| row.label).collect();
        column.typed::<Int64Type>().write_batch(&labels, Some(&levels), None).unwrap();
        column.close().unwrap();
        let captions = rows.iter().map(|row| match &row.caption {
            None => (0, None),
            Some(caption) => (1, Some(caption.clone().into_bytes())),
        });
        write_texts(&mut group, captions);
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn write_texts(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = (i16, Option<Vec<u8>>)>,
) {
    let mut levels = Vec::new();
    let mut texts = Vec::new();
    for (level, text) in values {
        levels.push(level);
        texts.extend(text.map(ByteArray::from));
    }
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None).unwrap();
    column.close().unwrap();
}

fn check(rows: &[Row], settings: &Settings) {
    let bytes = write(rows, settings);
    let source = Source::from_bytes("a.parquet", bytes.clone());
    check_samples(&RowSource::open(&Stores::new(), source).unwrap(), rows);
    // As a file by its part of an index.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    std::fs::write(&path, bytes).unwrap();
    let stores = tl_arrow::add_to(Stores::new());
    let target = folder.path().join("a.tlidx");
    let options = IndexOptions { sync: false, ..IndexOptions::default() };
    let summary = index_shards(&stores, &[&path], &target, options).unwrap();
    assert_eq!(summary.samples, rows.len() as u64);
    check_samples(&*tbl_io::open_in(&stores, &target).unwrap(), rows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_are_those_that_were_written(rows in rows(), settings in settings()) {
        check(&rows, &settings);
    }
}
