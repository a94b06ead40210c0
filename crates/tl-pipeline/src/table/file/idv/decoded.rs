//! A block of an IDV column that was decoded.

use std::ops::Range;

use idv_format::{Text, Values, VectorRow};
use zerocopy::IntoBytes;

use crate::error::TableError;
use crate::table::RowValues;

/// The most slots of a vector of variable length: a file can claim 2 GB of them in twelve bytes.
const MOST_SLOTS: u64 = 1 << 24;

/// Values of the rows of a block.
pub(super) struct Decoded {
    values: Values<'static>,
    bytes: u64,
}

impl Decoded {
    pub(super) fn new(values: Values<'_>) -> Self {
        let values = values.into_owned();
        let bytes = bytes_of(&values);
        Self { values, bytes }
    }

    /// The items of row `row`, and their slots where not every slot has one.
    fn row<'v>(values: &'v Values<'_>, row: usize) -> Option<Row<'v>> {
        let Values::Vector(vectors) = values else {
            let one = VectorItems { items: row..row.checked_add(1)?, indices: None, slots: 1 };
            return (row < values.len())
                .then(|| Row { values: values.slice(0..values.len()), row: one });
        };
        let row: VectorRow<'v> = vectors.row(row)?;
        let slots = row.length().into();
        let row = VectorItems { items: row.items(), indices: row.indices(), slots };
        Some(Row { values: vectors.items(), row })
    }
}

struct Row<'v> {
    values: Values<'v>,
    row: VectorItems<'v>,
}

struct VectorItems<'v> {
    items: Range<usize>,
    indices: Option<&'v [u32]>,
    slots: u64,
}

impl RowValues for Decoded {
    fn kept_bytes(&self) -> u64 {
        self.bytes
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let missing = || TableError::OutOfRange { what: "row of a block", number: row };
        let place = usize::try_from(row).map_err(|_| missing())?;
        if let Some((array, width)) = array_of(&self.values) {
            let start = place.checked_mul(width).ok_or_else(missing)?;
            let found = array.get(start..).and_then(|found| found.get(..out.len()));
            out.copy_from_slice(found.filter(|found| found.len() == width).ok_or_else(missing)?);
            return Ok(());
        }
        let row = Self::row(&self.values, place);
        let Row { values, row } = row.ok_or_else(missing)?;
        write_items(&values, row, out).ok_or_else(missing)
    }

    fn append_bytes(&self, row: u64, bytes: &mut Vec<u8>) -> Result<bool, TableError> {
        let missing = || TableError::OutOfRange { what: "row of a block", number: row };
        let place = usize::try_from(row).map_err(|_| missing())?;
        if let Values::Text(text) = &self.values {
            let found = text.get(place);
            bytes.extend_from_slice(found.unwrap_or_default().as_bytes());
            return Ok(found.is_some());
        }
        let Row { values, row } = Self::row(&self.values, place).ok_or_else(missing)?;
        if row.slots > MOST_SLOTS {
            return Err(TableError::Limit {
                what: "slots of a vector",
                need: row.slots,
                limit: MOST_SLOTS,
            });
        }
        let slots = usize::try_from(row.slots).map_err(|_| missing())?;
        if let Values::Text(text) = &values {
            append_texts(text, row, slots, bytes);
        } else {
            let start = bytes.len();
            bytes.resize(start + slots * array_of(&values).map_or(16, |(_, width)| width), 0);
            write_items(&values, row, &mut bytes[start..]).ok_or_else(missing)?;
        }
        Ok(true)
    }
}

/// Writes the items of a row, and zeros for missing ones.
fn write_items(values: &Values<'_>, row: VectorItems<'_>, out: &mut [u8]) -> Option<()> {
    let VectorItems { items, indices, slots } = row;
    let Some((array, width)) = array_of(values) else {
        return write_offset_times(values, items, indices, out);
    };
    let found = array.get(items.start * width..items.end * width)?;
    let Some(indices) = indices else {
        if found.len() != out.len() {
            return None;
        }
        out.copy_from_slice(found);
        return Some(());
    };
    if slots.checked_mul(width as u64)? != out.len() as u64 {
        return None;
    }
    out.fill(0);
    for (&slot, item) in indices.iter().zip(found.chunks_exact(width)) {
        out.get_mut(slot as usize * width..)?.get_mut(..width)?.copy_from_slice(item);
    }
    Some(())
}

/// Ticks and minutes of every item, as two numbers of 64 bits.
fn write_offset_times(
    values: &Values<'_>,
    items: Range<usize>,
    indices: Option<&[u32]>,
    out: &mut [u8],
) -> Option<()> {
    let Values::OffsetTime { offset_minutes, ticks } = values else { return None };
    out.fill(0);
    let pairs = ticks.get(items.clone())?.iter().zip(offset_minutes.get(items)?);
    for (place, (&ticks, &minutes)) in pairs.enumerate() {
        let slot = match indices {
            Some(indices) => *indices.get(place)? as usize,
            None => place,
        };
        let both = [ticks, minutes.into()];
        out.get_mut(slot * size_of_val(&both)..)?
            .get_mut(..size_of_val(&both))?
            .copy_from_slice(both.as_bytes());
    }
    Some(())
}

/// A JSON list of the texts of a row.
fn append_texts(text: &Text<'_>, row: VectorItems<'_>, slots: usize, bytes: &mut Vec<u8>) {
    let mut items = row.items;
    let mut texts = vec![Some(""); slots];
    match row.indices {
        Some(indices) => {
            for (&slot, item) in indices.iter().zip(items) {
                if let Some(place) = texts.get_mut(slot as usize) {
                    *place = text.get(item);
                }
            }
        }
        None => texts.iter_mut().for_each(|place| {
            *place = items.next().and_then(|item| text.get(item));
        }),
    }
    bytes.extend_from_slice(serde_json::json!(texts).to_string().as_bytes());
}

/// Numbers as they lie in memory, and the bytes of one item; `None` for values without such an
/// array.
fn array_of<'v>(values: &'v Values<'_>) -> Option<(&'v [u8], usize)> {
    fn bytes<N: IntoBytes + zerocopy::Immutable>(array: &[N]) -> Option<(&[u8], usize)> {
        Some((array.as_bytes(), size_of::<N>()))
    }
    match values {
        Values::SByte(array) => bytes(array),
        Values::Byte(array) | Values::Boolean(array) => bytes(array),
        Values::Int16(array) => bytes(array),
        Values::UInt16(array) => bytes(array),
        Values::Int32(array) => bytes(array),
        Values::UInt32(array) => bytes(array),
        Values::Int64(array) => bytes(array),
        Values::UInt64(array) => bytes(array),
        Values::Single(array) => bytes(array),
        Values::Double(array) => bytes(array),
        Values::RowId(array) => bytes(array),
        Values::OffsetTime { .. } | Values::Text(_) | Values::Vector(_) => None,
    }
}

/// The memory of values in bytes; an upper bound unless all vectors are dense.
fn bytes_of(values: &Values<'_>) -> u64 {
    if let Some((array, _)) = array_of(values) {
        return array.len() as u64;
    }
    if let Values::OffsetTime { ticks, .. } = values {
        return (ticks.len() * (size_of::<i64>() + size_of::<i16>())) as u64;
    }
    if let Values::Text(text) = values {
        let bytes = size_of_val(text.offsets()) + text.string().len() + text.missing().len();
        return bytes as u64;
    }
    let Values::Vector(vectors) = values else { return 0 };
    let items = vectors.items();
    let row = size_of::<u32>() + 2 * size_of::<usize>();
    let of_rows = match vectors.dense_length() {
        Some(_) => 0,
        None => vectors.len() * row + items.len() * size_of::<u32>(),
    };
    bytes_of(&items).saturating_add(of_rows as u64)
}
