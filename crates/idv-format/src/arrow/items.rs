//! Single values from arrays of one type.

#![expect(clippy::wildcard_enum_match_arm, reason = "only types that have a codec get here")]

use alloc::borrow::Cow;
use alloc::vec::Vec;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, GenericStringArray, OffsetSizeTrait};
use arrow_schema::{DataType, TimeUnit};

use super::time::{EPOCH, MISSING, TICKS_PER_MINUTE, ticks};
use super::writer::ValueError;
use crate::codec::{Item, Number};
use crate::values::ValuesError;
use crate::values::{RowId, Text, Values};

const SECONDS_PER_DAY: i64 = 86_400;

/// The reason why an array is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A value of it.
    Value { index: usize, source: ValueError },
    /// All together.
    Values(ValuesError),
}

impl From<ValuesError> for Refusal {
    fn from(error: ValuesError) -> Self {
        Self::Values(error)
    }
}

impl Refusal {
    /// Says the row of an item.
    pub(super) fn of_row(self, row: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Value { index, source } => Self::Value { index: row(index), source },
            Self::Values(source) => Self::Values(source),
        }
    }
}

/// `array` is of the type that `item` was made from, and no dictionary.
pub(super) fn item_values<'a>(item: &Item, array: &'a dyn Array) -> Result<Values<'a>, Refusal> {
    match item {
        Item::Number(number) => numbers(array, *number),
        Item::Key(key) => keys(array, key.number),
        Item::Boolean => {
            refuse_nulls(array, item.name())?;
            Ok(booleans(array))
        }
        Item::MissingBoolean => Ok(booleans(array)),
        Item::Text => texts(array).map(Values::Text),
        Item::TimeSpan => Ok(Values::Int64(times(array, 0)?.into())),
        Item::DateTime => Ok(Values::Int64(times(array, EPOCH)?.into())),
        Item::DateTimeOffset => offset_times(array),
        Item::RowId => {
            refuse_nulls(array, item.name())?;
            Ok(row_ids(array))
        }
    }
}

/// The first null is the error.
pub(super) fn refuse_nulls<A: Array + ?Sized>(
    array: &A,
    codec: &'static str,
) -> Result<(), Refusal> {
    let null = array.nulls().filter(|nulls| nulls.null_count() > 0);
    match null.and_then(|nulls| nulls.iter().position(|present| !present)) {
        Some(index) => Err(Refusal::Value { index, source: ValueError::Missing { codec } }),
        None => Ok(()),
    }
}

/// The numbers in place; with something else for nulls where a number for that is given.
fn primitives<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    missing: Option<T::Native>,
    codec: &'static str,
) -> Result<Cow<'a, [T::Native]>, Refusal> {
    let numbers = array.as_primitive::<T>();
    match missing {
        Some(missing) if numbers.null_count() > 0 => {
            Ok(numbers.iter().map(|number| number.unwrap_or(missing)).collect())
        }
        _ => {
            refuse_nulls(array, codec)?;
            Ok(Cow::Borrowed(numbers.values()))
        }
    }
}

fn numbers(array: &dyn Array, number: Number) -> Result<Values<'_>, Refusal> {
    let codec = number.name();
    Ok(match number {
        Number::SByte => Values::SByte(primitives::<Int8Type>(array, None, codec)?),
        Number::Byte => Values::Byte(primitives::<UInt8Type>(array, None, codec)?),
        Number::Int16 => Values::Int16(primitives::<Int16Type>(array, None, codec)?),
        Number::UInt16 => Values::UInt16(primitives::<UInt16Type>(array, None, codec)?),
        Number::Int32 => Values::Int32(primitives::<Int32Type>(array, None, codec)?),
        Number::UInt32 => Values::UInt32(primitives::<UInt32Type>(array, None, codec)?),
        Number::Int64 => Values::Int64(primitives::<Int64Type>(array, None, codec)?),
        Number::UInt64 => Values::UInt64(primitives::<UInt64Type>(array, None, codec)?),
        // What ML.NET takes for missing.
        Number::Single => Values::Single(primitives::<Float32Type>(array, Some(f32::NAN), codec)?),
        Number::Double => Values::Double(primitives::<Float64Type>(array, Some(f64::NAN), codec)?),
    })
}

/// Keys without values, as they are stored.
fn keys(array: &dyn Array, number: Number) -> Result<Values<'_>, Refusal> {
    const CODEC: &str = "Key2";
    match number {
        Number::Byte => Ok(Values::Byte(primitives::<UInt8Type>(array, Some(0), CODEC)?)),
        Number::UInt16 => Ok(Values::UInt16(primitives::<UInt16Type>(array, Some(0), CODEC)?)),
        Number::UInt32 => Ok(Values::UInt32(primitives::<UInt32Type>(array, Some(0), CODEC)?)),
        Number::UInt64 => Ok(Values::UInt64(primitives::<UInt64Type>(array, Some(0), CODEC)?)),
        Number::SByte
        | Number::Int16
        | Number::Int32
        | Number::Int64
        | Number::Single
        | Number::Double => numbers(array, number),
    }
}

fn booleans(array: &dyn Array) -> Values<'static> {
    let value = |value: Option<bool>| value.map_or(2, u8::from);
    Values::boolean(array.as_boolean().iter().map(value).collect())
}

fn texts(array: &dyn Array) -> Result<Text<'_>, Refusal> {
    let text = match array.data_type() {
        DataType::LargeUtf8 => strings(array.as_string::<i64>())?,
        DataType::Utf8View => pushed(array.as_string_view().iter())?,
        _ => strings(array.as_string::<i32>())?,
    };
    Ok(text)
}

/// The string goes over in one piece, unless there may be something after nulls.
fn strings<O: OffsetSizeTrait>(array: &GenericStringArray<O>) -> Result<Text<'_>, ValuesError> {
    let offsets = array.value_offsets();
    let bounds = offsets.first().zip(offsets.last());
    let (start, end) = bounds.map_or((0, 0), |(start, end)| (start.as_usize(), end.as_usize()));
    let bytes = array.value_data().get(start..end).unwrap_or_default();
    let found = bytes.len() as u64;
    let limit = u32::MAX.into();
    if found > limit {
        return Err(ValuesError::TooMany { what: "bytes of text", found, limit });
    }
    match core::str::from_utf8(bytes) {
        Ok(string) if array.null_count() == 0 => {
            let offset = |offset: &O| u32::try_from(offset.as_usize() - start).unwrap_or(u32::MAX);
            let offsets = offsets.iter().map(offset).collect();
            Ok(Text::new(offsets, Cow::Borrowed(string), Vec::new()))
        }
        _ => pushed(array.iter()),
    }
}

fn pushed<'t>(texts: impl Iterator<Item = Option<&'t str>>) -> Result<Text<'static>, ValuesError> {
    let mut all = Text::empty();
    for text in texts {
        all.push(text)?;
    }
    Ok(all)
}

fn row_ids(array: &dyn Array) -> Values<'static> {
    let half = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let id =
        |bytes: &[u8]| RowId { low: half(bytes), high: half(bytes.get(8..).unwrap_or_default()) };
    let ids = array.as_fixed_size_binary().iter();
    Values::RowId(ids.map(|bytes| id(bytes.unwrap_or_default())).collect())
}

/// Ticks of spans or points of time, which count from `since` of ours.
fn times(array: &dyn Array, since: i64) -> Result<Vec<i64>, Refusal> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match array.data_type() {
        DataType::Duration(Second) => in_ticks::<DurationSecondType>(array, Second, since),
        DataType::Duration(Millisecond) => {
            in_ticks::<DurationMillisecondType>(array, Millisecond, since)
        }
        DataType::Duration(Microsecond) => {
            in_ticks::<DurationMicrosecondType>(array, Microsecond, since)
        }
        DataType::Duration(Nanosecond) => {
            in_ticks::<DurationNanosecondType>(array, Nanosecond, since)
        }
        DataType::Timestamp(Second, _) => in_ticks::<TimestampSecondType>(array, Second, since),
        DataType::Timestamp(Millisecond, _) => {
            in_ticks::<TimestampMillisecondType>(array, Millisecond, since)
        }
        DataType::Timestamp(Microsecond, _) => {
            in_ticks::<TimestampMicrosecondType>(array, Microsecond, since)
        }
        DataType::Timestamp(Nanosecond, _) => {
            in_ticks::<TimestampNanosecondType>(array, Nanosecond, since)
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().iter();
            let seconds = days.map(|day| day.map(|day| i64::from(day) * SECONDS_PER_DAY));
            each_in_ticks(seconds, Second, since)
        }
        _ => in_ticks::<Date64Type>(array, Millisecond, since),
    }
}

fn in_ticks<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    unit: TimeUnit,
    since: i64,
) -> Result<Vec<i64>, Refusal> {
    each_in_ticks(array.as_primitive::<T>().iter(), unit, since)
}

fn each_in_ticks(
    times: impl Iterator<Item = Option<i64>>,
    unit: TimeUnit,
    since: i64,
) -> Result<Vec<i64>, Refusal> {
    let one = |(index, time): (usize, Option<i64>)| {
        let Some(time) = time else { return Ok(MISSING) };
        let ticks = ticks(time, unit).and_then(|ticks| ticks.checked_add(since));
        let source = ValueError::Time { time, unit };
        ticks.filter(|&ticks| ticks != MISSING).ok_or(Refusal::Value { index, source })
    };
    times.enumerate().map(one).collect()
}

/// Points of time on clocks: of UTC, unless the distance is stored with the time.
fn offset_times(array: &dyn Array) -> Result<Values<'static>, Refusal> {
    let DataType::Struct(_) = array.data_type() else {
        let ticks = times(array, EPOCH)?;
        let offset_minutes = alloc::vec![0; ticks.len()].into();
        return Ok(Values::OffsetTime { offset_minutes, ticks: ticks.into() });
    };
    let both = array.as_struct();
    let mut ticks = times(both.column(0), EPOCH)?;
    let mut offset_minutes = Vec::new();
    let offsets = both.column(1).as_primitive::<Int16Type>();
    for (index, (time, offset)) in ticks.iter_mut().zip(offsets).enumerate() {
        let missing = ValueError::Missing { codec: "part of DateTimeOffset" };
        if both.is_null(index) {
            *time = MISSING;
            offset_minutes.push(0);
            continue;
        }
        let offset = offset.filter(|_| *time != MISSING);
        let offset = offset.ok_or(Refusal::Value { index, source: missing })?;
        let local = time.checked_add(i64::from(offset) * TICKS_PER_MINUTE);
        let source = ValueError::Time { time: *time, unit: TimeUnit::Microsecond };
        *time = local.ok_or(Refusal::Value { index, source })?;
        offset_minutes.push(offset);
    }
    Ok(Values::OffsetTime { offset_minutes: offset_minutes.into(), ticks: ticks.into() })
}
