//! IDV files and blocks: whatever the bytes are, reading ends with values or errors, and values do
//! not depend on the way they are read or on how often they were written.

use idv_format::{Codec, IdvFile, Item, Key, Limits, Number, Scratch, Values, Vector, Vectors};

/// What blocks may inflate to, so that a run is fast.
const MAX_BYTES: u64 = 1 << 20;

/// Columns and blocks looked at in one input; thousands may lie in the same bytes.
const MAX_COLUMNS: usize = 32;
const MAX_BLOCKS: u64 = 32;

/// Slots of vectors that are compared one by one; a few bytes can say billions.
const MAX_SLOTS: u64 = 1 << 16;

/// Opens `data` as an IDV file and reads every column and all metadata.
pub fn idv_open(data: &[u8]) {
    let mut limits = Limits::default();
    limits.block_bytes = MAX_BYTES;
    limits.read_bytes = MAX_BYTES;
    limits.toc_bytes = MAX_BYTES;
    let Ok(file) = IdvFile::open_with(data, limits) else { return };
    for index in 0..file.columns().len().min(MAX_COLUMNS) {
        for entry in file.metadata(index).unwrap_or_default().iter().take(MAX_COLUMNS) {
            if let Ok(value) = file.metadata_value(entry) {
                assert_eq!(value.len(), 1);
            }
        }
        let Ok(column) = file.column(index) else {
            continue;
        };
        let mut scratch = Scratch::new();
        let mut all = Some(column.codec().empty_values());
        for block in 0..(column.blocks().len() as u64).min(MAX_BLOCKS) {
            let rows = column.block_rows(block);
            let read = column.read_block(block, &mut scratch);
            let Ok(values) = read else {
                all = None;
                assert!(column.read(rows).is_err(), "a damaged block has no rows");
                continue;
            };
            assert_eq!(values.len() as u64, rows.end - rows.start);
            if let Some(all) = &mut all {
                all.append(&values).expect("blocks of a column are of one kind");
            }
        }
        if let (Some(all), Ok(read)) = (all, column.read(0..file.row_count())) {
            same(&all, &read);
        }
    }
}

/// Decodes `data` as a block: a codec, a number of rows, and the block's bytes.
pub fn idv_codecs(data: &[u8]) {
    let Some((&[kind, shape, low, high], block)) = data.split_first_chunk::<4>() else { return };
    let codec = codec(kind, shape);
    let rows = usize::from(u16::from_le_bytes([low, high]));
    let Ok(values) = codec.decode(rows, block) else { return };
    assert_eq!(values.len(), rows);
    // At another address nothing, or something else, can be borrowed.
    let shifted = [&[0], block].concat();
    let again = codec.decode(rows, &shifted[1..]).expect("the same bytes");
    same(&values, &again);
    // In two halves, and put together again.
    let mut joined = codec.empty_values();
    joined.append(&values.slice(0..rows / 2)).expect("values of one kind");
    joined.append(&values.slice(rows / 2..rows)).expect("values of one kind");
    same(&values, &joined);
    same(&values, &again.into_owned());
    // Written and read again. A character that was cut in two makes the text longer.
    let mut written = Vec::new();
    codec.encode(&joined, &mut written).expect("what was decoded can be encoded");
    assert!(written.len() <= 2 * block.len() + 16);
    same(&values, &codec.decode(rows, &written).expect("what is written can be read"));
    if let Values::Vector(vectors) = &values {
        filled_up(vectors);
    }
}

/// Every codec, alone or as items of vectors of some lengths.
fn codec(kind: u8, shape: u8) -> Codec {
    let key = |number| Item::Key(Key { number, count: 100, min: 0 });
    let others = [
        key(Number::Byte),
        key(Number::UInt64),
        Item::Boolean,
        Item::MissingBoolean,
        Item::Text,
        Item::TimeSpan,
        Item::DateTimeOffset,
        Item::RowId,
    ];
    let numbers = Number::ALL.into_iter().map(Item::Number);
    let items: Vec<Item> = numbers.chain(others).collect();
    let item = items[usize::from(kind) % items.len()].clone();
    match shape % 4 {
        0 => Codec::Item(item),
        1 => Codec::Vector(Vector { item, dimensions: vec![0] }),
        2 => Codec::Vector(Vector { item, dimensions: Vec::new() }),
        _ => Codec::Vector(Vector { item, dimensions: vec![u32::from(shape >> 2) + 1] }),
    }
}

/// Values are the same when their canonical bytes are.
fn same(one: &Values<'_>, other: &Values<'_>) {
    assert_eq!(one.len(), other.len());
    if [one, other].iter().any(|values| slots(values) > MAX_SLOTS) {
        return;
    }
    let bytes = |values: &Values<'_>| {
        let mut bytes = Vec::new();
        values.canonical(&mut |part| bytes.extend_from_slice(part));
        bytes
    };
    assert_eq!(bytes(one), bytes(other));
}

fn slots(values: &Values<'_>) -> u64 {
    match values {
        Values::Vector(vectors) => vectors.slots(),
        other => other.len() as u64,
    }
}

/// A sparse vector and its dense form are the same.
fn filled_up(vectors: &Vectors<'_>) {
    let Ok(items) = vectors.dense_items(MAX_SLOTS) else {
        assert!(vectors.slots() > MAX_SLOTS);
        return;
    };
    let mut dense = Vectors::empty(items.slice(0..0));
    let mut start = 0;
    for row in vectors.rows() {
        let end = start + row.length() as usize;
        dense.push(row.length(), None, &items.slice(start..end)).expect("as long as the vector");
        start = end;
    }
    same(&Values::Vector(vectors.clone()), &Values::Vector(dense));
}
