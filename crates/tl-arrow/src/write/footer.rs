//! The end of a file: offset indexes, schema, places of columns, and the features of `datasets`.

use std::fmt::Write;

use serde_json::json;

use crate::own;
use crate::write::column::ColumnPages;
use crate::write::thrift::ThriftWriter;

/// A column of rows.
#[derive(Debug)]
pub(super) struct RowColumn {
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// The stored columns of a column of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A structure of bytes and a path.
    Image,
    Bytes,
    Text,
    Integer,
    Double,
}

/// A stored column of a row group.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) pages: ColumnPages,
}

/// The stored columns of rows that are in the file.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) rows: u32,
    pub(super) chunks: Vec<Chunk>,
}

/// The place of an offset index.
struct IndexPlace {
    offset: u64,
    bytes: i32,
}

const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const OPTIONAL: i32 = 1;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const UNCOMPRESSED: i32 = 0;
const UTF8: i32 = 0;

/// The version of the format, which pyarrow states too.
const VERSION: i32 = 2;

impl Shape {
    /// The types of its stored columns, and their names if it is a structure.
    fn leaves(self) -> &'static [(Option<&'static str>, i32)] {
        match self {
            Self::Image => &[(Some("bytes"), BYTE_ARRAY), (Some("path"), BYTE_ARRAY)],
            Self::Bytes | Self::Text => &[(None, BYTE_ARRAY)],
            Self::Integer => &[(None, INT64)],
            Self::Double => &[(None, DOUBLE)],
        }
    }
}

/// Everything after the last page of a file, which begins at `start`. `metadata` are pairs of key and
/// value.
pub(super) fn footer(
    start: u64,
    columns: &[RowColumn],
    groups: &[Group],
    metadata: &[(&str, String)],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut indexes = Vec::new();
    for chunk in groups.iter().flat_map(|group| &group.chunks) {
        let index = offset_index(chunk);
        let offset = start + bytes.len() as u64;
        indexes.push(IndexPlace { offset, bytes: i32::try_from(index.len()).unwrap_or(i32::MAX) });
        bytes.extend(index);
    }
    let rows = groups.iter().map(|group| u64::from(group.rows)).sum();
    let mut writer = ThriftWriter::new();
    writer.i32(1, VERSION);
    let elements = elements(columns);
    writer.structures(2, &elements, |writer, element| element.write(writer));
    writer.i64(3, rows);
    let mut indexes = indexes.into_iter();
    let mut ordinal = 0_i16;
    writer.structures(4, groups, |writer, group| {
        write_group(writer, group, columns, &mut indexes);
        // Readers count row groups themselves where a file has more than 32,767.
        if ordinal < i16::MAX {
            writer.i16(7, ordinal);
            ordinal += 1;
        }
    });
    writer.structures(5, metadata, |writer, (key, value)| {
        writer.binary(1, key.as_bytes());
        writer.binary(2, value.as_bytes());
    });
    writer.binary(6, concat!("turboloader version ", env!("CARGO_PKG_VERSION")).as_bytes());
    let footer = writer.finish();
    let length = u32::try_from(footer.len()).unwrap_or(u32::MAX);
    bytes.extend(footer);
    bytes.extend(length.to_le_bytes());
    bytes.extend(crate::file::MAGIC);
    bytes
}

fn offset_index(chunk: &Chunk) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.structures(1, &chunk.pages.slots, |writer, slot| {
        writer.i64(1, chunk.start + slot.offset);
        writer.i32(2, slot.bytes.cast_signed());
        writer.i64(3, slot.first_row.into());
    });
    writer.finish()
}

/// An element of the schema.
struct Element<'a> {
    name: &'a str,
    physical: Option<i32>,
    children: usize,
    is_text: bool,
    is_root: bool,
}

impl Element<'_> {
    fn write(&self, writer: &mut ThriftWriter) {
        if let Some(physical) = self.physical {
            writer.i32(1, physical);
        }
        if !self.is_root {
            writer.i32(3, OPTIONAL);
        }
        writer.binary(4, self.name.as_bytes());
        if self.children > 0 || self.is_root {
            writer.i32(5, i32::try_from(self.children).unwrap_or(i32::MAX));
        }
        if self.is_text {
            writer.i32(6, UTF8);
            writer.union_of(10, 1);
        }
    }
}

fn elements(columns: &[RowColumn]) -> Vec<Element<'_>> {
    let children = columns.len();
    let root = Element { name: "schema", physical: None, children, is_text: false, is_root: true };
    let mut elements = vec![root];
    for RowColumn { name, shape } in columns {
        let leaves = shape.leaves();
        let element = |name, physical, children, is_text| Element {
            name,
            physical,
            children,
            is_text,
            is_root: false,
        };
        if *shape == Shape::Image {
            elements.push(element(name, None, leaves.len(), false));
        }
        for &(child, physical) in leaves {
            let is_text = *shape == Shape::Text || child == Some("path");
            elements.push(element(child.unwrap_or(name), Some(physical), 0, is_text));
        }
    }
    elements
}

fn write_group(
    writer: &mut ThriftWriter,
    group: &Group,
    columns: &[RowColumn],
    indexes: &mut impl Iterator<Item = IndexPlace>,
) {
    let leaves = columns.iter().flat_map(|column| {
        column.shape.leaves().iter().map(move |&(child, physical)| (column, child, physical))
    });
    let chunks: Vec<_> = group.chunks.iter().zip(leaves).collect();
    let bytes = group.chunks.iter().map(|chunk| chunk.pages.bytes).sum();
    writer.structures(1, &chunks, |writer, (chunk, (column, child, physical))| {
        writer.i64(2, 0);
        writer.structure(3, |metadata| {
            metadata.i32(1, *physical);
            metadata.i32s(2, &[PLAIN, RLE]);
            let path: Vec<&[u8]> =
                [Some(&*column.name), *child].into_iter().flatten().map(str::as_bytes).collect();
            metadata.binaries(3, path.into_iter());
            metadata.i32(4, UNCOMPRESSED);
            metadata.i64(5, group.rows.into());
            metadata.i64(6, chunk.pages.bytes);
            metadata.i64(7, chunk.pages.bytes);
            metadata.i64(9, chunk.start);
        });
        if let Some(IndexPlace { offset, bytes }) = indexes.next() {
            writer.i64(4, offset);
            writer.i32(5, bytes);
        }
    });
    writer.i64(2, bytes);
    writer.i64(3, group.rows.into());
    writer.i64(5, group.chunks.first().map_or(0, |chunk| chunk.start));
    writer.i64(6, bytes);
}

/// The use of a column in the features of `datasets`.
#[derive(Debug)]
pub(super) enum Feature<'a> {
    Image,
    /// Bytes and a path that are not those of an image.
    File,
    Class(&'a [String]),
    Value(&'static str),
}

/// The features of `datasets` for these columns.
pub(super) fn features<'a>(columns: impl Iterator<Item = (&'a str, Feature<'a>)>) -> String {
    let mut text = "{\"info\": {\"features\": {".to_owned();
    for (number, (name, feature)) in columns.enumerate() {
        let value = |dtype| json!({"dtype": dtype, "_type": "Value"});
        let feature = match feature {
            Feature::Image => json!({"_type": "Image"}),
            Feature::File => json!({"bytes": value("binary"), "path": value("string")}),
            Feature::Class(names) => json!({"names": names, "_type": "ClassLabel"}),
            Feature::Value(dtype) => value(dtype),
        };
        let separator = if number > 0 { ", " } else { "" };
        // Writing into a string cannot fail, and the order of columns is that of the schema.
        text.write_fmt(format_args!("{separator}{}: {feature}", json!(name))).unwrap_or_default();
    }
    text + "}}}"
}

/// The metadata of a file.
pub(super) fn metadata(features: String, own: &own::Own) -> [(&'static str, String); 2] {
    [(crate::features::KEY, features), (own::KEY, own.to_json())]
}
