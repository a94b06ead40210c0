//! The memory of what is decoded, which all files of the process share: a test without others beside it.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tbl_io::{SampleSource, Source, Stores};
use tl_arrow::{RowColumns, RowSource};

const FILES: usize = 50;
const ROWS: i64 = 40;
const IMAGE_BYTES: usize = 10_000;

/// A file of images and numbers, each page of which has a row.
fn write() -> Vec<u8> {
    let schema = "message schema { required binary image; required int64 number; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(1)
        .set_write_batch_size(1)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let image = |row: i64| {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(IMAGE_BYTES, u8::try_from(row).unwrap());
        ByteArray::from(bytes)
    };
    let images: Vec<ByteArray> = (0..ROWS).map(image).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&images, None, None).unwrap();
    column.close().unwrap();
    let numbers: Vec<i64> = (0..ROWS).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Of images, fields and columns of many open files.
#[test]
fn memory_does_not_grow_with_the_number_of_files() {
    let bytes = write();
    let source = |number| Source::from_bytes(format!("{number}.parquet"), bytes.clone());
    let open = |number| RowSource::open(&Stores::new(), source(number)).unwrap();
    let files: Vec<RowSource> = (0..FILES).map(open).collect();
    let open = |number| RowColumns::open(source(number)).unwrap();
    let tables: Vec<RowColumns> = (0..FILES).map(open).collect();
    let memory = files[0].block_memory().unwrap();
    assert!(std::ptr::addr_eq(memory, tables[0].block_memory()));
    let most = 1 << 20;
    let of_file = ROWS as u64 * IMAGE_BYTES as u64;
    assert!(most < FILES as u64 * of_file / 10);
    let reserved = memory.reserve(most);
    for (file, table) in files.iter().zip(&tables) {
        let mut image = Vec::new();
        for row in 0..ROWS as u64 {
            file.read_into(row, &mut image).unwrap();
            assert_eq!(image.len(), IMAGE_BYTES);
            file.read_fields_where(row, &mut |_, _| true, &mut Vec::new()).unwrap();
        }
        assert!(table.read(0, 0..ROWS as u64).unwrap().memory() > of_file);
        table.read(1, 0..ROWS as u64).unwrap();
        assert!(memory.used_bytes() <= most, "{}", memory.used_bytes());
    }
    assert!(memory.used_bytes() >= most / 2, "{}", memory.used_bytes());
    drop(reserved);
    drop((files, tables));
    assert_eq!(memory.used_bytes(), 0);
}
