//! Tables of columns: whatever the bytes are, the rows of a Parquet file or of arrays are read, or there
//! is an error.

use std::sync::Arc;

use tbl_io::{ReadError, Source, Stores};
use tl_arrow::RowColumns;
use turboloader::pipeline::{ArrayTable, ColumnValues, Content, RowTable, RowValues, Table};

use crate::files::{Files, split};

/// Rows that are read of a block or an array, which may state any number.
const MAX_ROWS: u64 = 64;

/// Bytes of one row of numbers; without rows, dimensions may be of any size.
const MAX_ROW_BYTES: usize = 1 << 20;

/// Opens `data` as a table of a Parquet file and reads the first and the last block of every column.
/// Rows of the first block are those that are read alone.
pub fn parquet_columns(data: &[u8]) {
    let source = || Source::from_bytes("fuzz.parquet", data.to_vec());
    let table = match RowTable::from_source(source()) {
        Ok(table) => table,
        Err(error) => {
            assert!(error.to_string().starts_with("fuzz.parquet: "), "{error}");
            return;
        }
    };
    read_rows(&table);
    let file = RowColumns::open(source()).expect("it was opened before");
    for (number, column) in table.columns().iter().enumerate() {
        let rows = file.row_count().min(file.block_rows(number)).min(MAX_ROWS);
        if matches!(column.content, Content::Unreadable { .. }) {
            continue;
        }
        let Ok(block) = file.read(number, 0..rows) else { continue };
        for row in 0..rows {
            let alone = file.read(number, row..row + 1).expect("it was read with others");
            let place = usize::try_from(row).expect("few rows");
            let text = |error: Arc<ReadError>| error.to_string();
            let alone = alone.row(0).map_err(text);
            assert_eq!(alone, block.row(place).map_err(text), "row {row} of {}", column.name);
        }
    }
}

/// Opens `data` as a `.npy` or `.npz` file or as safetensors, and reads the first rows of every array.
pub fn arrays(data: &[u8]) {
    open_arrays(&Stores::new(), "fuzz.safetensors", data);
}

/// Opens `data` as the `zarr.json` of an array or a group, and the bytes after a zero byte as each of
/// their chunks.
pub fn zarr(data: &[u8]) {
    let (metadata, chunk) = split(data);
    let files = Files(vec![("zarr.json", metadata.to_vec()), ("", chunk.to_vec())]);
    let stores = Stores::new().with("mem", Arc::new(files));
    open_arrays(&stores, "mem://b/zarr.json", metadata);
}

fn open_arrays(stores: &Stores, name: &str, data: &[u8]) {
    match ArrayTable::open(stores, &Source::from_bytes(name, data.to_vec())) {
        Ok(table) => read_rows(&table.expect("the name is that of a table")),
        Err(error) => assert!(error.to_string().starts_with(&format!("{name}: ")), "{error}"),
    }
}

fn read_rows(table: &dyn Table) {
    for (number, column) in table.columns().iter().enumerate() {
        let Some(row_bytes) = row_bytes(&column.content) else { continue };
        match table.values(number).expect("the column can be read") {
            ColumnValues::Blocks { rows, .. } => {
                let last = table.row_count().saturating_sub(1) / rows;
                for block in [0, last] {
                    let count = table.row_count().saturating_sub(block * rows).min(rows);
                    if let Ok(values) = table.load(number, block) {
                        read_values(&*values, count, row_bytes);
                    }
                }
            }
            ColumnValues::Whole(values) => read_values(&*values, table.row_count(), row_bytes),
            other => panic!("{other:?}"),
        }
    }
}

/// The bytes of a row of numbers, none of bytes; `None` for rows that are not read.
fn row_bytes(content: &Content) -> Option<usize> {
    match content {
        Content::Numbers { number, shape, .. } => {
            let bytes =
                shape.iter().try_fold(number.bytes(), |bytes, &side| bytes.checked_mul(side));
            bytes.filter(|&bytes| bytes <= MAX_ROW_BYTES)
        }
        Content::Bytes { .. } => Some(0),
        _ => None,
    }
}

fn read_values(values: &dyn RowValues, count: u64, row_bytes: usize) {
    let mut numbers = vec![0; row_bytes];
    for row in 0..count.min(MAX_ROWS) {
        if row_bytes > 0 {
            values.write(row, &mut numbers).expect("the block was read");
        } else {
            values.append_bytes(row, &mut Vec::new()).expect("the block was read");
        }
    }
    assert!(row_bytes == 0 || values.write(count, &mut numbers).is_err(), "a row after the last");
}
