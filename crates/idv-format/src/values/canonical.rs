//! Values as bytes that do not depend on how they were stored, to be hashed and compared.

use zerocopy::IntoBytes;

use crate::values::{Values, Vectors, on_arrays};

/// The bytes instead of a length when a text is missing.
const MISSING: [u8; 4] = [0xff; 4];

impl Values<'_> {
    /// Hands the values to `sink`, row by row, in a form that is the same for every way of
    /// storing them. All numbers are little-endian.
    ///
    /// | values | bytes of each |
    /// |---|---|
    /// | numbers, keys, spans and points of time | as stored |
    /// | booleans | one: 0, 1, or 2 for missing |
    /// | points of time with an offset | `i16` minutes, `i64` ticks |
    /// | row ids | `u64` low, `u64` high |
    /// | text | `u32` length in bytes and UTF-8; `ff ff ff ff` for missing |
    /// | vectors | `u32` length, then every slot; those left out are zero, false or empty |
    pub fn canonical(&self, sink: &mut impl FnMut(&[u8])) {
        if let Values::Vector(vectors) = self {
            canonical_vectors(vectors, sink);
        } else if let Some(bytes) = bytes_of(self).filter(|_| cfg!(target_endian = "little")) {
            sink(bytes);
        } else {
            (0..self.len()).for_each(|index| canonical_item(self, index, sink));
        }
    }
}

fn canonical_vectors(vectors: &Vectors<'_>, sink: &mut impl FnMut(&[u8])) {
    let items = vectors.items();
    for row in vectors.rows() {
        sink(&row.length().to_le_bytes());
        let Some(indices) = row.indices() else {
            items.slice(row.items()).canonical(sink);
            continue;
        };
        let mut stored = indices.iter().zip(row.items()).peekable();
        for slot in 0..row.length() {
            match stored.next_if(|&(&index, _)| index == slot) {
                Some((_, item)) => canonical_item(&items, item, sink),
                None => canonical_zero(&items, sink),
            }
        }
    }
}

/// The values as they lie in memory, when each is one number.
fn bytes_of<'v>(values: &'v Values<'_>) -> Option<&'v [u8]> {
    on_arrays!(values, array => Some(array.as_bytes()),
        Values::OffsetTime { .. } | Values::Text(_) | Values::Vector(_) => None,
    )
}

/// `index` is below the number of values.
fn canonical_item(values: &Values<'_>, index: usize, sink: &mut impl FnMut(&[u8])) {
    match values {
        Values::SByte(array) => sink(&array[index].to_le_bytes()),
        Values::Byte(array) | Values::Boolean(array) => sink(&[array[index]]),
        Values::Int16(array) => sink(&array[index].to_le_bytes()),
        Values::UInt16(array) => sink(&array[index].to_le_bytes()),
        Values::Int32(array) => sink(&array[index].to_le_bytes()),
        Values::UInt32(array) => sink(&array[index].to_le_bytes()),
        Values::Int64(array) => sink(&array[index].to_le_bytes()),
        Values::UInt64(array) => sink(&array[index].to_le_bytes()),
        Values::Single(array) => sink(&array[index].to_le_bytes()),
        Values::Double(array) => sink(&array[index].to_le_bytes()),
        Values::OffsetTime { offset_minutes, ticks } => {
            sink(&offset_minutes[index].to_le_bytes());
            sink(&ticks[index].to_le_bytes());
        }
        Values::RowId(ids) => {
            sink(&ids[index].low.to_le_bytes());
            sink(&ids[index].high.to_le_bytes());
        }
        Values::Text(text) => match text.get(index) {
            None => sink(&MISSING),
            Some(text) => {
                sink(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                sink(text.as_bytes());
            }
        },
        // Vectors have no vectors for items.
        Values::Vector(_) => {}
    }
}

/// Feeds an item that a sparse vector leaves out: as many zero bytes as an item has, or as the
/// length of a text.
fn canonical_zero(values: &Values<'_>, sink: &mut impl FnMut(&[u8])) {
    const ZEROS: [u8; 16] = [0; 16];
    fn item_bytes<T>(_: &[T]) -> usize {
        size_of::<T>()
    }
    let bytes = on_arrays!(values, array => item_bytes(array),
        Values::OffsetTime { .. } => size_of::<i16>() + size_of::<i64>(),
        Values::Text(_) => size_of::<u32>(),
        Values::Vector(_) => 0,
    );
    sink(ZEROS.get(..bytes).unwrap_or_default());
}
