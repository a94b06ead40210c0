//! Codecs: how the values of a column are stored, and what they are.
//!
//! [`Codec::decode`] turns an uncompressed block into [`Values`], [`Codec::encode`] goes back.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::values::{Text, Values, ValuesError, Vectors};

mod boolean;
mod definition;
mod number;
mod text;
mod vector;

pub use definition::{CodecDefinition, Unknown};
pub(crate) use definition::{write_leb128, write_string};

/// An integer or floating point number of a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Number {
    SByte,
    Byte,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Single,
    Double,
}

impl Number {
    /// All of them, in the order of their names in the format's description.
    pub const ALL: [Self; 10] = [
        Self::SByte,
        Self::Byte,
        Self::Int16,
        Self::UInt16,
        Self::Int32,
        Self::UInt32,
        Self::Int64,
        Self::UInt64,
        Self::Single,
        Self::Double,
    ];

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::SByte => "SByte",
            Self::Byte => "Byte",
            Self::Int16 => "Int16",
            Self::UInt16 => "UInt16",
            Self::Int32 => "Int32",
            Self::UInt32 => "UInt32",
            Self::Int64 => "Int64",
            Self::UInt64 => "UInt64",
            Self::Single => "Single",
            Self::Double => "Double",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::SByte | Self::Byte => 1,
            Self::Int16 | Self::UInt16 => 2,
            Self::Int32 | Self::UInt32 | Self::Single => 4,
            Self::Int64 | Self::UInt64 | Self::Double => 8,
        }
    }
}

/// A category: 0 is missing, 1 to `count` are the categories.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The type of the stored number: an unsigned integer.
    pub number: Number,
    /// How many categories there are, at least one.
    pub count: u64,
    /// The number that the first category is shown as: 0 in every file since 2019. Stored values do
    /// not depend on it.
    pub min: u64,
}

/// Vectors of items, dense or sparse.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vector {
    /// The codec of the items, which is not a vector itself.
    pub item: Item,
    /// The extents of the dimensions, the last one varying fastest. Empty or with a zero in it when
    /// vectors differ in length.
    pub dimensions: Vec<u32>,
}

impl Vector {
    /// The length that all vectors have, `None` when each has its own.
    pub fn length(&self) -> Option<u32> {
        let length =
            self.dimensions.iter().try_fold(1u32, |slots, &extent| slots.checked_mul(extent));
        length.filter(|&length| length > 0 && !self.dimensions.is_empty())
    }
}

/// The storage of single values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// A number.
    Number(Number),
    /// A key.
    Key(Key),
    /// True or false, in one bit.
    Boolean,
    /// True, false or missing, in two bits: `DvBool`, before version 1.1.1.6.
    MissingBoolean,
    /// Text in Unicode, possibly missing.
    Text,
    /// A span of time in ticks of 100 ns; `i64::MIN` is missing in files before version 1.1.1.6.
    TimeSpan,
    /// Ticks of 100 ns since the start of the year 1; `i64::MIN` is missing in older files.
    DateTime,
    /// Ticks of 100 ns since the start of the year 1 on a clock, and its distance to UTC in minutes.
    DateTimeOffset,
    /// A number of 128 bits.
    RowId,
}

/// The storage of a column's values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// One value a row.
    Item(Item),
    /// One vector a row.
    Vector(Vector),
}

impl Codec {
    /// Shorthand for a column of numbers.
    pub const fn number(number: Number) -> Self {
        Self::Item(Item::Number(number))
    }

    /// The codec of the values, or of the items of vectors.
    pub fn item(&self) -> &Item {
        match self {
            Self::Item(item) => item,
            Self::Vector(vector) => &vector.item,
        }
    }

    /// Reads the `rows` values of an uncompressed block. Values that lie in `bytes` as they lie in
    /// memory are borrowed from there: numbers where the machine is little-endian and the block is
    /// aligned, and text.
    ///
    /// Nothing is allocated before `bytes` have been seen to hold as much: at most eight times
    /// their size for booleans, five times for vectors, and twice for other values.
    ///
    /// # Errors
    /// [`FormatError`], also when bytes are left after the last value.
    pub fn decode<'a>(&self, rows: usize, bytes: &'a [u8]) -> Result<Values<'a>, FormatError> {
        let mut cursor = Cursor::new(bytes, 0);
        let values = match self {
            Self::Item(item) => item.decode(rows, &mut cursor)?,
            Self::Vector(vector) => Values::Vector(vector::decode(vector, rows, &mut cursor)?),
        };
        cursor.finish()?;
        Ok(values)
    }

    /// Appends the block of `values` to `bytes`.
    ///
    /// # Errors
    /// [`ValuesError`] when the values are not of this codec or do not fit into a block; `bytes`
    /// may then have grown.
    pub fn encode(&self, values: &Values<'_>, bytes: &mut Vec<u8>) -> Result<(), ValuesError> {
        match (self, values) {
            (Self::Vector(vector), Values::Vector(values)) => vector::encode(vector, values, bytes),
            (Self::Item(item), values) => item.encode(values, bytes),
            (Self::Vector(_), values) => {
                Err(ValuesError::Kind { codec: "VBuffer".to_owned(), values: values.kind_name() })
            }
        }
    }

    /// Values of this kind, none yet.
    pub fn empty_values(&self) -> Values<'static> {
        match self {
            Self::Item(item) => item.empty_values(),
            Self::Vector(vector) => Values::Vector(Vectors::empty(vector.item.empty_values())),
        }
    }

    /// The size of an uncompressed block of `rows` values, where that follows from their number.
    pub fn block_bytes(&self, rows: u64) -> Option<u64> {
        match self {
            Self::Item(Item::Boolean) => Some(rows.div_ceil(8)),
            Self::Item(Item::MissingBoolean) => rows.div_ceil(16).checked_mul(4),
            Self::Item(Item::Text) | Self::Vector(_) => None,
            Self::Item(Item::Number(number) | Item::Key(Key { number, .. })) => {
                rows.checked_mul(number.bytes() as u64)
            }
            Self::Item(Item::TimeSpan | Item::DateTime) => rows.checked_mul(8),
            Self::Item(Item::DateTimeOffset) => rows.checked_mul(10),
            Self::Item(Item::RowId) => rows.checked_mul(16),
        }
    }
}

impl Item {
    fn decode<'a>(&self, count: usize, cursor: &mut Cursor<'a>) -> Result<Values<'a>, FormatError> {
        match self {
            Self::Number(number) | Self::Key(Key { number, .. }) => {
                number::decode(*number, count, cursor)
            }
            Self::TimeSpan | Self::DateTime => number::decode(Number::Int64, count, cursor),
            Self::DateTimeOffset => number::decode_offset_times(count, cursor),
            Self::RowId => number::decode_row_ids(count, cursor),
            Self::Boolean => boolean::decode_bits(count, cursor).map(Values::boolean),
            Self::MissingBoolean => boolean::decode_pairs(count, cursor).map(Values::boolean),
            Self::Text => text::decode(count, cursor).map(Values::Text),
        }
    }

    fn encode(&self, values: &Values<'_>, bytes: &mut Vec<u8>) -> Result<(), ValuesError> {
        match (self, values) {
            (Self::Boolean, Values::Boolean(values)) => boolean::encode_bits(values, bytes),
            (Self::MissingBoolean, Values::Boolean(values)) => boolean::encode_pairs(values, bytes),
            (Self::Text, Values::Text(text)) => text::encode(text, bytes),
            (Self::DateTimeOffset, Values::OffsetTime { offset_minutes, ticks }) => {
                number::encode_numbers(offset_minutes, bytes);
                number::encode_numbers(ticks, bytes);
                Ok(())
            }
            (Self::RowId, Values::RowId(ids)) => {
                number::encode_row_ids(ids, bytes);
                Ok(())
            }
            (Self::Number(number) | Self::Key(Key { number, .. }), values) => {
                number::encode(*number, values, bytes).ok_or_else(|| wrong_kind(self, values))
            }
            (Self::TimeSpan | Self::DateTime, values) => {
                number::encode(Number::Int64, values, bytes).ok_or_else(|| wrong_kind(self, values))
            }
            _ => Err(wrong_kind(self, values)),
        }
    }

    fn empty_values(&self) -> Values<'static> {
        match self {
            Self::Number(number) | Self::Key(Key { number, .. }) => number::empty(*number),
            Self::TimeSpan | Self::DateTime => number::empty(Number::Int64),
            Self::DateTimeOffset => {
                Values::OffsetTime { offset_minutes: Vec::new().into(), ticks: Vec::new().into() }
            }
            Self::RowId => Values::RowId(Vec::new().into()),
            Self::Boolean | Self::MissingBoolean => Values::boolean(Vec::new()),
            Self::Text => Values::Text(Text::empty()),
        }
    }
}

fn wrong_kind(item: &Item, values: &Values<'_>) -> ValuesError {
    ValuesError::Kind { codec: item.name().to_owned(), values: values.kind_name() }
}

/// The largest count of a block.
const MAX_COUNT: u64 = i32::MAX.unsigned_abs() as u64;

/// A count as a block stores it.
pub(crate) fn count(what: &'static str, found: usize) -> Result<i32, ValuesError> {
    let too_many = ValuesError::TooMany { what, found: found as u64, limit: MAX_COUNT };
    i32::try_from(found).map_err(|_| too_many)
}

#[cfg(test)]
mod tests;
