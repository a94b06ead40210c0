//! Compressed files with many columns, whose buffers are unpacked once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use tbl_io::{Pin, RangeFault, Ranges, SampleSource, Source, Stores};
use tl_arrow::RowSource;

const COLUMNS: usize = 150;
const ROWS: usize = 40;
const BATCH_ROWS: usize = 20;

/// An object that counts reads.
#[derive(Debug)]
struct Object {
    bytes: Vec<u8>,
    pin: Pin,
    reads: AtomicU64,
}

impl Ranges for Object {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn pin(&self) -> &Pin {
        &self.pin
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let start = usize::try_from(offset).unwrap();
        bytes.copy_from_slice(&self.bytes[start..start + bytes.len()]);
        Ok(())
    }
}

fn text(row: usize, column: usize) -> String {
    format!("row {row} of column {column}, row {row} of column {column}")
}

fn write() -> Vec<u8> {
    let batch = |first: usize| {
        let rows = first..first + BATCH_ROWS;
        let image = |row: usize| format!("\u{89}PNG {row}").into_bytes();
        let images: Vec<Vec<u8>> = rows.clone().map(image).collect();
        let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
        let mut columns =
            vec![("image".to_owned(), Arc::new(BinaryArray::from(images)) as ArrayRef)];
        for column in 0..COLUMNS {
            let texts = rows.clone().map(|row| Some(text(row, column)));
            let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
            columns.push((format!("text{column}"), texts));
        }
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..ROWS).step_by(BATCH_ROWS).map(batch).collect();
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let mut bytes = Vec::new();
    let schema = &batches[0].schema();
    let mut writer = FileWriter::try_new_with_options(&mut bytes, schema, options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    bytes
}

#[test]
fn buffers_of_many_columns_are_unpacked_once() {
    let object =
        Arc::new(Object { bytes: write(), pin: Pin::Version("1".into()), reads: 0.into() });
    let source = Source::from_ranges("mem://wide.arrow", Arc::clone(&object) as _);
    let options = tl_arrow::RowOptions { image: Some("image".to_owned()), ..Default::default() };
    let samples = RowSource::open_with(&Stores::new(), source, &options).unwrap();
    let read_all = || {
        let before = object.reads.load(Ordering::Relaxed);
        for index in 0..ROWS {
            let mut fields = Vec::new();
            samples.read_fields_where(index as u64, &mut |_, _| true, &mut fields).unwrap();
            assert_eq!(fields.len(), COLUMNS);
            let last = &fields[COLUMNS - 1];
            assert_eq!(last.bytes, text(index, COLUMNS - 1).as_bytes());
        }
        object.reads.load(Ordering::Relaxed) - before
    };
    let buffers = 3 * COLUMNS * (ROWS / BATCH_ROWS);
    // Each is two reads: its length and its bytes.
    let reads = read_all();
    assert!((1..=2 * buffers as u64).contains(&reads), "{reads} of {buffers} buffers");
    assert_eq!(read_all(), 0);
}
