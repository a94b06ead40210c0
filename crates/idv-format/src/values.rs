//! Values of a column in memory: one array per column, borrowed from the file where that is
//! possible.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

mod canonical;
mod dense;
mod error;
mod text;
mod vectors;

pub use error::ValuesError;
pub use text::Text;
pub(crate) use vectors::Rows;
pub use vectors::{VectorRow, Vectors};

/// A number of 128 bits that tells a row from others.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct RowId {
    /// The lower 64 bits.
    pub low: u64,
    /// The upper 64 bits.
    pub high: u64,
}

/// Values of one column, as they are stored. Their meaning follows from their
/// [`Codec`](crate::Codec): keys are unsigned integers, spans and points of time are
/// [`Int64`](Self::Int64).
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the variants of numbers say it by their names")]
pub enum Values<'a> {
    SByte(Cow<'a, [i8]>),
    Byte(Cow<'a, [u8]>),
    Int16(Cow<'a, [i16]>),
    UInt16(Cow<'a, [u16]>),
    Int32(Cow<'a, [i32]>),
    UInt32(Cow<'a, [u32]>),
    Int64(Cow<'a, [i64]>),
    UInt64(Cow<'a, [u64]>),
    Single(Cow<'a, [f32]>),
    Double(Cow<'a, [f64]>),
    /// 0 is false, 1 is true, 2 is missing.
    Boolean(Cow<'a, [u8]>),
    /// Points of time by a clock, with its distance to UTC: UTC is `ticks` less the offset.
    OffsetTime {
        /// Minutes that the clock is ahead of UTC.
        offset_minutes: Cow<'a, [i16]>,
        /// Ticks of 100 ns on that clock since the start of the year 1.
        ticks: Cow<'a, [i64]>,
    },
    /// Numbers of 128 bits.
    RowId(Cow<'a, [RowId]>),
    /// Text, possibly missing.
    Text(Text<'a>),
    /// A vector per row.
    Vector(Vectors<'a>),
}

/// Matches on a value, with one expression for all variants of single arrays.
macro_rules! on_arrays {
    ($values:expr, $array:ident => $body:expr, $($rest:tt)*) => {
        match $values {
            Values::SByte($array) => $body,
            Values::Byte($array) | Values::Boolean($array) => $body,
            Values::Int16($array) => $body,
            Values::UInt16($array) => $body,
            Values::Int32($array) => $body,
            Values::UInt32($array) => $body,
            Values::Int64($array) => $body,
            Values::UInt64($array) => $body,
            Values::Single($array) => $body,
            Values::Double($array) => $body,
            Values::RowId($array) => $body,
            $($rest)*
        }
    };
}

/// The same, with results that are values of the same variant.
macro_rules! map_arrays {
    ($values:expr, $array:ident => $body:expr, $($rest:tt)*) => {
        match $values {
            Values::SByte($array) => Values::SByte($body),
            Values::Byte($array) => Values::Byte($body),
            Values::Int16($array) => Values::Int16($body),
            Values::UInt16($array) => Values::UInt16($body),
            Values::Int32($array) => Values::Int32($body),
            Values::UInt32($array) => Values::UInt32($body),
            Values::Int64($array) => Values::Int64($body),
            Values::UInt64($array) => Values::UInt64($body),
            Values::Single($array) => Values::Single($body),
            Values::Double($array) => Values::Double($body),
            Values::Boolean($array) => Values::Boolean($body),
            Values::RowId($array) => Values::RowId($body),
            $($rest)*
        }
    };
}

pub(crate) use {map_arrays, on_arrays};

impl<'a> Values<'a> {
    pub(crate) fn boolean(values: Vec<u8>) -> Values<'static> {
        Values::Boolean(values.into())
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        on_arrays!(self, array => array.len(),
            Values::OffsetTime { ticks, .. } => ticks.len(),
            Values::Text(text) => text.len(),
            Values::Vector(vectors) => vectors.len(),
        )
    }

    /// Whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Part of the values, without copying them.
    ///
    /// # Panics
    /// When the range is not inside the values.
    pub fn slice(&self, range: Range<usize>) -> Values<'_> {
        map_arrays!(self, array => Cow::Borrowed(&array[range]),
            Values::OffsetTime { offset_minutes, ticks } => Values::OffsetTime {
                offset_minutes: Cow::Borrowed(&offset_minutes[range.clone()]),
                ticks: Cow::Borrowed(&ticks[range]),
            },
            Values::Text(text) => Values::Text(text.slice(range)),
            Values::Vector(vectors) => Values::Vector(vectors.slice(range)),
        )
    }

    /// The values on their own, copied if they are borrowed.
    pub fn into_owned(self) -> Values<'static> {
        map_arrays!(self, array => Cow::Owned(array.into_owned()),
            Values::OffsetTime { offset_minutes, ticks } => Values::OffsetTime {
                offset_minutes: Cow::Owned(offset_minutes.into_owned()),
                ticks: Cow::Owned(ticks.into_owned()),
            },
            Values::Text(text) => Values::Text(text.into_owned()),
            Values::Vector(vectors) => Values::Vector(vectors.into_owned()),
        )
    }

    /// Asks for room for as many more numbers, if that is to be had.
    #[cfg(feature = "std")]
    pub(crate) fn reserve(&mut self, rows: usize) {
        on_arrays!(self, array => drop(array.to_mut().try_reserve_exact(rows)),
            Values::OffsetTime { offset_minutes, ticks } => {
                drop(offset_minutes.to_mut().try_reserve_exact(rows));
                drop(ticks.to_mut().try_reserve_exact(rows));
            },
            // How long they become is not known from their number.
            Values::Text(_) | Values::Vector(_) => {},
        );
    }

    /// Copies more values of the same kind after these.
    ///
    /// # Errors
    /// [`ValuesError`] when they are of another kind, or when texts would become longer together
    /// than 32 bits count; `self` may then have grown.
    pub fn append(&mut self, more: &Values<'_>) -> Result<(), ValuesError> {
        match (&mut *self, more) {
            (Values::SByte(array), Values::SByte(more)) => extend(array, more),
            (Values::Byte(array), Values::Byte(more))
            | (Values::Boolean(array), Values::Boolean(more)) => extend(array, more),
            (Values::Int16(array), Values::Int16(more)) => extend(array, more),
            (Values::UInt16(array), Values::UInt16(more)) => extend(array, more),
            (Values::Int32(array), Values::Int32(more)) => extend(array, more),
            (Values::UInt32(array), Values::UInt32(more)) => extend(array, more),
            (Values::Int64(array), Values::Int64(more)) => extend(array, more),
            (Values::UInt64(array), Values::UInt64(more)) => extend(array, more),
            (Values::Single(array), Values::Single(more)) => extend(array, more),
            (Values::Double(array), Values::Double(more)) => extend(array, more),
            (Values::RowId(array), Values::RowId(more)) => extend(array, more),
            (
                Values::OffsetTime { offset_minutes, ticks },
                Values::OffsetTime { offset_minutes: more_offsets, ticks: more_ticks },
            ) => {
                extend(offset_minutes, more_offsets);
                extend(ticks, more_ticks);
            }
            (Values::Text(text), Values::Text(more)) => text.append(more)?,
            (Values::Vector(vectors), Values::Vector(more)) => vectors.append(more)?,
            (values, more) => {
                let codec = values.kind_name().to_string();
                return Err(ValuesError::Kind { codec, values: more.kind_name() });
            }
        }
        Ok(())
    }

    /// The kind of the values, for messages.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Values::SByte(_) => "SByte",
            Values::Byte(_) => "Byte",
            Values::Int16(_) => "Int16",
            Values::UInt16(_) => "UInt16",
            Values::Int32(_) => "Int32",
            Values::UInt32(_) => "UInt32",
            Values::Int64(_) => "Int64",
            Values::UInt64(_) => "UInt64",
            Values::Single(_) => "Single",
            Values::Double(_) => "Double",
            Values::Boolean(_) => "Boolean",
            Values::OffsetTime { .. } => "OffsetTime",
            Values::RowId(_) => "RowId",
            Values::Text(_) => "Text",
            Values::Vector(_) => "Vector",
        }
    }
}

fn extend<T: Clone>(array: &mut Cow<'_, [T]>, more: &[T]) {
    array.to_mut().extend_from_slice(more);
}
