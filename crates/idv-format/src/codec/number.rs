//! Values that lie in a block as they lie in the memory of a little-endian machine.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codec::Number;
use crate::cursor::Cursor;
use crate::error::FormatError;
use crate::values::{RowId, Values};

/// A number that can be taken from its little-endian bytes.
pub(super) trait LittleEndian:
    FromBytes + IntoBytes + KnownLayout + Immutable + Copy
{
    /// The number with its bytes in the order of this machine, from the order of a file or back.
    fn swapped(self) -> Self;
}

macro_rules! integers {
    ($($number:ty),*) => {
        $(impl LittleEndian for $number {
            fn swapped(self) -> Self {
                Self::from_le(self)
            }
        })*
    };
}

integers!(i8, u8, i16, u16, i32, u32, i64, u64);

impl LittleEndian for f32 {
    fn swapped(self) -> Self {
        Self::from_bits(u32::from_le(self.to_bits()))
    }
}

impl LittleEndian for f64 {
    fn swapped(self) -> Self {
        Self::from_bits(u64::from_le(self.to_bits()))
    }
}

impl LittleEndian for RowId {
    fn swapped(self) -> Self {
        Self { low: u64::from_le(self.low), high: u64::from_le(self.high) }
    }
}

/// `count` numbers, borrowed where that is possible.
pub(super) fn take<'a, T: LittleEndian>(
    what: &'static str,
    count: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Cow<'a, [T]>, FormatError> {
    let bytes = cursor.take_items(what, count, size_of::<T>())?;
    if cfg!(target_endian = "little")
        && let Ok(numbers) = <[T]>::ref_from_bytes(bytes)
    {
        return Ok(Cow::Borrowed(numbers));
    }
    let mut numbers = Vec::with_capacity(count);
    let read = |bytes| T::read_from_bytes(bytes).ok().map(T::swapped);
    numbers.extend(bytes.chunks_exact(size_of::<T>()).filter_map(read));
    Ok(Cow::Owned(numbers))
}

pub(super) fn decode<'a>(
    number: Number,
    count: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Values<'a>, FormatError> {
    const WHAT: &str = "numbers";
    Ok(match number {
        Number::SByte => Values::SByte(take(WHAT, count, cursor)?),
        Number::Byte => Values::Byte(take(WHAT, count, cursor)?),
        Number::Int16 => Values::Int16(take(WHAT, count, cursor)?),
        Number::UInt16 => Values::UInt16(take(WHAT, count, cursor)?),
        Number::Int32 => Values::Int32(take(WHAT, count, cursor)?),
        Number::UInt32 => Values::UInt32(take(WHAT, count, cursor)?),
        Number::Int64 => Values::Int64(take(WHAT, count, cursor)?),
        Number::UInt64 => Values::UInt64(take(WHAT, count, cursor)?),
        Number::Single => Values::Single(take(WHAT, count, cursor)?),
        Number::Double => Values::Double(take(WHAT, count, cursor)?),
    })
}

/// All offsets come first, then all ticks.
pub(super) fn decode_offset_times<'a>(
    count: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Values<'a>, FormatError> {
    let offset_minutes = take("offsets to UTC", count, cursor)?;
    Ok(Values::OffsetTime { offset_minutes, ticks: take("ticks", count, cursor)? })
}

pub(super) fn decode_row_ids<'a>(
    count: usize,
    cursor: &mut Cursor<'a>,
) -> Result<Values<'a>, FormatError> {
    take("row ids", count, cursor).map(Values::RowId)
}

pub(super) fn empty(number: Number) -> Values<'static> {
    match number {
        Number::SByte => Values::SByte(Cow::default()),
        Number::Byte => Values::Byte(Cow::default()),
        Number::Int16 => Values::Int16(Cow::default()),
        Number::UInt16 => Values::UInt16(Cow::default()),
        Number::Int32 => Values::Int32(Cow::default()),
        Number::UInt32 => Values::UInt32(Cow::default()),
        Number::Int64 => Values::Int64(Cow::default()),
        Number::UInt64 => Values::UInt64(Cow::default()),
        Number::Single => Values::Single(Cow::default()),
        Number::Double => Values::Double(Cow::default()),
    }
}

/// Appends numbers, or gives `None` when `values` are of another kind.
pub(super) fn encode(number: Number, values: &Values<'_>, bytes: &mut Vec<u8>) -> Option<()> {
    match (number, values) {
        (Number::SByte, Values::SByte(numbers)) => encode_numbers(numbers, bytes),
        (Number::Byte, Values::Byte(numbers)) => encode_numbers(numbers, bytes),
        (Number::Int16, Values::Int16(numbers)) => encode_numbers(numbers, bytes),
        (Number::UInt16, Values::UInt16(numbers)) => encode_numbers(numbers, bytes),
        (Number::Int32, Values::Int32(numbers)) => encode_numbers(numbers, bytes),
        (Number::UInt32, Values::UInt32(numbers)) => encode_numbers(numbers, bytes),
        (Number::Int64, Values::Int64(numbers)) => encode_numbers(numbers, bytes),
        (Number::UInt64, Values::UInt64(numbers)) => encode_numbers(numbers, bytes),
        (Number::Single, Values::Single(numbers)) => encode_numbers(numbers, bytes),
        (Number::Double, Values::Double(numbers)) => encode_numbers(numbers, bytes),
        _ => return None,
    }
    Some(())
}

pub(super) fn encode_row_ids(ids: &[RowId], bytes: &mut Vec<u8>) {
    encode_numbers(ids, bytes);
}

pub(super) fn encode_numbers<T: LittleEndian>(numbers: &[T], bytes: &mut Vec<u8>) {
    if cfg!(target_endian = "little") {
        bytes.extend_from_slice(numbers.as_bytes());
    } else {
        bytes.reserve(size_of_val(numbers));
        numbers.iter().for_each(|number| bytes.extend_from_slice(number.swapped().as_bytes()));
    }
}
