//! Tables of the tests, made as they are needed.

use std::fs::{self, File};
use std::num::NonZeroU32;
use std::path::Path;

use idv_format::{
    Codec, Compression, Item, Key, NewColumn, NewMetadata, Number, Values, Vector, Vectors,
    WriteOptions, Writer,
};
use tbf_format::{BuildOptions, Node, Outcome, Relation, SegmentBuilder};
use tl_pipeline::{Batch, Columns, Dataset, Loader, LoaderConfig, Work};

use crate::memory::config;

/// Slots of the vectors.
pub(crate) const SLOTS: u32 = 4;

/// Row `row` of column `x`.
pub(crate) fn x(row: u64) -> f32 {
    row as f32 * 0.5 - 3.0
}

/// The dense vector of a row.
pub(crate) fn dense(row: u64) -> [f32; SLOTS as usize] {
    [0.0, 1.0, 2.0, 3.0].map(|slot| row as f32 + slot / 8.0)
}

/// The sparse vector of a row: one item, or none.
pub(crate) fn sparse(row: u64) -> [i16; SLOTS as usize] {
    let mut slots = [0; SLOTS as usize];
    if !row.is_multiple_of(5) {
        slots[(row % 4) as usize] = row as i16 + 1;
    }
    slots
}

/// Category 1 to 3, or 0 for a missing one.
pub(crate) fn key(row: u64) -> u8 {
    (row % 4) as u8
}

pub(crate) fn text(row: u64) -> String {
    "ab\u{fc}".repeat((row % 3) as usize)
}

/// Writes rows `rows` of a table with `id`, `x`, `flag`, `key`, `dense`, `sparse`, `text`, `list`.
pub(crate) fn write_idv(path: &Path, rows: std::ops::Range<u64>, compression: Compression) {
    let key_codec = Key { number: Number::Byte, count: 3, min: 0 };
    let vector =
        |item, dimensions: &[u32]| Codec::Vector(Vector { item, dimensions: dimensions.to_vec() });
    let columns = [
        ("id", Codec::number(Number::Int64)),
        ("x", Codec::number(Number::Single)),
        ("flag", Codec::Item(Item::Boolean)),
        ("key", Codec::Item(Item::Key(key_codec))),
        ("dense", vector(Item::Number(Number::Single), &[2, 2])),
        ("sparse", vector(Item::Number(Number::Int16), &[SLOTS])),
        ("text", Codec::Item(Item::Text)),
        ("list", vector(Item::Number(Number::UInt16), &[])),
    ];
    let columns =
        columns.map(|(name, codec)| NewColumn { compression, ..NewColumn::new(name, codec) });
    let mut options = WriteOptions::default();
    options.rows_per_block = NonZeroU32::new(7);
    let mut writer = Writer::new(File::create(path).unwrap(), columns.into(), options).unwrap();
    let all = |value: fn(u64) -> f32| rows.clone().map(value).collect::<Vec<f32>>();
    let dense: Vec<f32> = rows.clone().flat_map(dense).collect();
    let count = rows.clone().count();
    let mut sparse_vectors = Vectors::empty(Values::Int16(Vec::new().into()));
    let mut lists = Vectors::empty(Values::UInt16(Vec::new().into()));
    for row in rows.clone() {
        let slots = sparse(row);
        let place = slots.iter().position(|&item| item != 0);
        let indices: Vec<u32> = place.iter().map(|&place| place as u32).collect();
        let items: Vec<i16> = place.iter().map(|&place| slots[place]).collect();
        sparse_vectors.push(SLOTS, Some(&indices), &Values::Int16(items.into())).unwrap();
        let list: Vec<u16> = (0..row as u16 % 3).collect();
        lists.push(list.len() as u32, None, &Values::UInt16(list.into())).unwrap();
    }
    let texts: Vec<String> = rows.clone().map(text).collect();
    let values = [
        Values::Int64(rows.clone().map(|row| row as i64 - 2).collect::<Vec<i64>>().into()),
        Values::Single(all(x).into()),
        Values::Boolean(rows.clone().map(|row| u8::from(row % 3 == 0)).collect::<Vec<u8>>().into()),
        Values::Byte(rows.clone().map(key).collect::<Vec<u8>>().into()),
        Values::Vector(Vectors::dense(SLOTS, count, Values::Single(dense.into()))),
        Values::Vector(sparse_vectors),
        Values::Text(texts.iter().map(|text| Some(&**text)).collect()),
        Values::Vector(lists),
    ];
    writer.write(&values).unwrap();
    writer.finish().unwrap();
}

/// Writes rows `rows` of a table with `x`, `text` and `label`, which is row modulo 3, or 0.5 and so
/// no label in bad rows.
pub(crate) fn write_labelled(
    path: &Path,
    rows: std::ops::Range<u64>,
    compression: Compression,
    is_bad: impl Fn(u64) -> bool,
) {
    let columns = [
        ("x", Codec::number(Number::Single)),
        ("text", Codec::Item(Item::Text)),
        ("label", Codec::number(Number::Single)),
    ];
    let columns =
        columns.map(|(name, codec)| NewColumn { compression, ..NewColumn::new(name, codec) });
    let mut options = WriteOptions::default();
    options.rows_per_block = NonZeroU32::new(5);
    let mut writer = Writer::new(File::create(path).unwrap(), columns.into(), options).unwrap();
    let texts: Vec<String> = rows.clone().map(text).collect();
    let label = |row| if is_bad(row) { 0.5 } else { (row % 3) as f32 };
    let values = [
        Values::Single(rows.clone().map(x).collect::<Vec<f32>>().into()),
        Values::Text(texts.iter().map(|text| Some(&**text)).collect()),
        Values::Single(rows.map(label).collect::<Vec<f32>>().into()),
    ];
    writer.write(&values).unwrap();
    writer.finish().unwrap();
}

/// Writes a column `key` of one row, whose categories have names.
pub(crate) fn write_keys(path: &Path, names: &[&str]) {
    let key = Key { number: Number::Byte, count: names.len() as u64, min: 0 };
    let text = Vector { item: Item::Text, dimensions: vec![names.len() as u32] };
    let texts = Values::Text(names.iter().map(|name| Some(*name)).collect());
    let metadata = NewMetadata {
        kind: "KeyValues".into(),
        codec: Codec::Vector(text),
        value: Values::Vector(Vectors::dense(names.len() as u32, 1, texts)),
    };
    let column = NewColumn::new("key", Codec::Item(Item::Key(key)));
    let column = NewColumn { metadata: vec![metadata], ..column };
    let options = WriteOptions::default();
    let mut writer = Writer::new(File::create(path).unwrap(), vec![column], options).unwrap();
    writer.write(&[Values::Byte(vec![1].into())]).unwrap();
    writer.finish().unwrap();
}

/// Edges of node `node`: to the next `node % 5` ones, round and round.
pub(crate) fn targets(node: u32, nodes: u32) -> Vec<u32> {
    (1..=node % 5).map(|step| (node + step) % nodes).collect()
}

/// The vector of a node.
pub(crate) fn vector(node: u32) -> [f32; 3] {
    [node as f32, -(node as f32), 0.25]
}

/// Writes a segment of `nodes` nodes.
pub(crate) fn write_tbf(path: &Path, nodes: u32, options: BuildOptions) {
    let mut builder = SegmentBuilder::new(BuildOptions { dim: 3, ..options });
    for node in 0..nodes {
        let text = text(node.into());
        let of_node = Node {
            id: std::array::from_fn(|byte| node.to_le_bytes()[byte % 4]),
            timestamp: 1_000 + u64::from(node),
            context_hash: u64::MAX - u64::from(node),
            confidence: node as f32 / 64.0,
            outcome: Outcome::from_code((node % 4) as u8),
            text: Some(&text),
        };
        builder.push(&of_node, &vector(node)).unwrap();
        for target in targets(node, nodes) {
            builder.push_edge(node, target, Relation::Causal, 1.0);
        }
    }
    fs::write(path, builder.finish().unwrap().to_bytes()).unwrap();
}

/// A loader of `paths` for `columns`, with batches of 4 in full shuffle.
pub(crate) fn columns_of<P: AsRef<std::ffi::OsStr>>(paths: &[P], columns: Columns) -> Loader {
    loader_with(paths, columns, |config| config)
}

pub(crate) fn loader_with<P: AsRef<std::ffi::OsStr>>(
    paths: &[P],
    columns: Columns,
    change: impl FnOnce(LoaderConfig) -> LoaderConfig,
) -> Loader {
    let config = change(config(Work::Columns(columns)));
    Loader::new(Dataset::open(paths).unwrap(), config).unwrap()
}

/// All that a row of a batch has, to be compared.
pub(crate) fn row_of(batch: &Batch, row: usize, bytes_columns: usize) -> (u64, i64, bool, Vec<u8>) {
    let mut bytes = Vec::new();
    for column in batch.columns() {
        let width = column.bytes.len() / batch.len();
        bytes.extend_from_slice(&column.bytes[row * width..][..width]);
    }
    for column in 0..bytes_columns {
        bytes.extend_from_slice(batch.bytes(column, row).unwrap_or(b"none"));
    }
    (batch.indices()[row], batch.labels()[row], batch.valid()[row], bytes)
}
