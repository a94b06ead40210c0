//! One array from the values of one column.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::HashMap;

use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, DurationMicrosecondArray,
    DurationMillisecondArray, DurationNanosecondArray, DurationSecondArray, FixedSizeBinaryArray,
    FixedSizeListArray, Int16Array, ListArray, PrimitiveArray, StringArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, TimeUnit};

use super::time::{Times, points, spans, utc};
use super::{ArrowOptions, ConvertError, DIMENSIONS, KEY_COUNT};
use crate::codec::{Codec, Item, Vector, count};
use crate::values::ValuesError;
use crate::values::{RowId, Text, Values, Vectors};

/// Arrow's name for a point of time with its distance to UTC.
const OFFSET_TIME_EXTENSION: &str = "arrow.timestamp_with_offset";

/// The conversion of a column's values into an array.
#[derive(Debug)]
pub(super) struct Converter {
    pub(super) options: ArrowOptions,
    /// The values of keys, in the order of the keys.
    pub(super) dictionary: Option<ArrayRef>,
}

impl Converter {
    /// The field of a column whose arrays have a type.
    pub(super) fn field(&self, name: String, codec: &Codec, data_type: DataType) -> Field {
        let vector = match codec {
            Codec::Item(item) => return item_field(name, item, data_type),
            Codec::Vector(vector) => vector,
        };
        let field = Field::new(name, data_type, false);
        if vector.dimensions.len() < 2 {
            return field;
        }
        let extents: Vec<String> = vector.dimensions.iter().map(u32::to_string).collect();
        field.with_metadata(HashMap::from([(DIMENSIONS.into(), extents.join("x"))]))
    }

    pub(super) fn array(
        &self,
        codec: &Codec,
        values: Values<'static>,
    ) -> Result<ArrayRef, ConvertError> {
        match (codec, values) {
            (Codec::Item(item), values) => self.item_array(item, values),
            (Codec::Vector(vector), Values::Vector(vectors)) => self.list(vector, &vectors),
            (Codec::Vector(_), values) => Err(wrong_kind("VBuffer", &values)),
        }
    }

    pub(super) fn item_array(
        &self,
        item: &Item,
        values: Values<'static>,
    ) -> Result<ArrayRef, ConvertError> {
        let unit = self.options.time_unit;
        Ok(match (item, values) {
            (Item::Key(_), values) => self.keys(values)?,
            (Item::TimeSpan, Values::Int64(ticks)) => durations(spans(&ticks, unit)?, unit),
            (Item::DateTime, Values::Int64(ticks)) => timestamps(points(&ticks, unit)?, unit, None),
            (Item::DateTimeOffset, Values::OffsetTime { offset_minutes, ticks }) => {
                offset_times(&ticks, offset_minutes, unit)?
            }
            (Item::RowId, Values::RowId(ids)) => row_ids(&ids)?,
            (Item::Boolean | Item::MissingBoolean, Values::Boolean(values)) => booleans(&values),
            (Item::Text, Values::Text(text)) => texts(&text)?,
            (Item::Number(_), values) => numbers(values)?,
            (item, values) => return Err(wrong_kind(item.name(), &values)),
        })
    }

    fn list(&self, vector: &Vector, vectors: &Vectors<'_>) -> Result<ArrayRef, ConvertError> {
        let items = vectors.dense_items(self.options.slots)?.into_owned();
        let items = self.item_array(&vector.item, items)?;
        let field = item_field("item".into(), &vector.item, items.data_type().clone());
        let field = Arc::new(field);
        if let Some(length) = vector.length() {
            let length = i32::try_from(length).unwrap_or(i32::MAX);
            return Ok(Arc::new(FixedSizeListArray::try_new(field, length, items, None)?));
        }
        count("slots of vectors", items.len())?;
        let lengths = vectors.rows().map(|row| row.length() as usize);
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(field, offsets, items, None)?))
    }

    /// Keys count from 1; 0 is missing.
    fn keys(&self, values: Values<'static>) -> Result<ArrayRef, ConvertError> {
        match values {
            Values::Byte(keys) => self.keys_of::<UInt8Type>(keys, |key| key.wrapping_sub(1)),
            Values::UInt16(keys) => self.keys_of::<UInt16Type>(keys, |key| key.wrapping_sub(1)),
            Values::UInt32(keys) => self.keys_of::<UInt32Type>(keys, |key| key.wrapping_sub(1)),
            Values::UInt64(keys) => self.keys_of::<UInt64Type>(keys, |key| key.wrapping_sub(1)),
            other @ (Values::SByte(_)
            | Values::Int16(_)
            | Values::Int32(_)
            | Values::Int64(_)
            | Values::Single(_)
            | Values::Double(_)
            | Values::Boolean(_)
            | Values::OffsetTime { .. }
            | Values::RowId(_)
            | Values::Text(_)
            | Values::Vector(_)) => Err(wrong_kind("Key2", &other)),
        }
    }

    fn keys_of<T>(
        &self,
        keys: Cow<'static, [T::Native]>,
        from_zero: impl Fn(T::Native) -> T::Native,
    ) -> Result<ArrayRef, ConvertError>
    where
        T: ArrowDictionaryKeyType,
        T::Native: Into<u64>,
    {
        let present = |key: &T::Native| (*key).into() != 0;
        let nulls = nulls(keys.iter().map(present));
        let Some(dictionary) = &self.dictionary else {
            let keys = ScalarBuffer::from(keys.into_owned());
            return Ok(Arc::new(PrimitiveArray::<T>::try_new(keys, nulls)?));
        };
        let count = dictionary.len() as u64;
        let is_beyond = |&(_, &key): &(usize, &T::Native)| key.into() > count;
        if let Some((index, &key)) = keys.iter().enumerate().find(is_beyond) {
            return Err(ConvertError::Key { index, key: key.into(), count });
        }
        // What stands for a missing key is not looked at, but has to be small.
        let number = |key: &T::Native| if present(key) { from_zero(*key) } else { *key };
        let keys: Vec<T::Native> = keys.iter().map(number).collect();
        let keys = PrimitiveArray::<T>::try_new(keys.into(), nulls)?;
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(dictionary))?))
    }
}

/// Numbers, booleans of one bit and row ids are always there, everything else can be missing.
fn item_field(name: String, item: &Item, data_type: DataType) -> Field {
    let nullable = !matches!(item, Item::Number(_) | Item::Boolean | Item::RowId);
    let is_dictionary = matches!(data_type, DataType::Dictionary(..));
    let field = Field::new(name, data_type, nullable);
    match item {
        Item::DateTimeOffset => field.with_metadata(HashMap::from([
            ("ARROW:extension:name".into(), OFFSET_TIME_EXTENSION.into()),
            ("ARROW:extension:metadata".into(), String::new()),
        ])),
        Item::Key(key) if !is_dictionary => {
            field.with_metadata(HashMap::from([(KEY_COUNT.into(), key.count.to_string())]))
        }
        Item::Number(_)
        | Item::Key(_)
        | Item::Boolean
        | Item::MissingBoolean
        | Item::Text
        | Item::TimeSpan
        | Item::DateTime
        | Item::RowId => field,
    }
}

/// The validity of the values; nothing when all are valid.
fn nulls(present: impl Iterator<Item = bool>) -> Option<NullBuffer> {
    let nulls = NullBuffer::from_iter(present);
    (nulls.null_count() > 0).then_some(nulls)
}

fn numbers(values: Values<'static>) -> Result<ArrayRef, ConvertError> {
    fn array<T: ArrowPrimitiveType>(numbers: Cow<'static, [T::Native]>) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(numbers.into_owned().into(), None))
    }
    Ok(match values {
        Values::SByte(numbers) => array::<Int8Type>(numbers),
        Values::Byte(numbers) => array::<UInt8Type>(numbers),
        Values::Int16(numbers) => array::<Int16Type>(numbers),
        Values::UInt16(numbers) => array::<UInt16Type>(numbers),
        Values::Int32(numbers) => array::<Int32Type>(numbers),
        Values::UInt32(numbers) => array::<UInt32Type>(numbers),
        Values::Int64(numbers) => array::<Int64Type>(numbers),
        Values::UInt64(numbers) => array::<UInt64Type>(numbers),
        Values::Single(numbers) => array::<Float32Type>(numbers),
        Values::Double(numbers) => array::<Float64Type>(numbers),
        other @ (Values::Boolean(_)
        | Values::OffsetTime { .. }
        | Values::RowId(_)
        | Values::Text(_)
        | Values::Vector(_)) => return Err(wrong_kind("number", &other)),
    })
}

fn booleans(values: &[u8]) -> ArrayRef {
    let value = |&value: &u8| match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    Arc::new(values.iter().map(value).collect::<BooleanArray>())
}

/// The string goes over in one piece.
fn texts(text: &Text<'_>) -> Result<ArrayRef, ConvertError> {
    let offsets = text.offsets();
    let (start, end) = offsets.first().zip(offsets.last()).map_or((0, 0), |(&s, &e)| (s, e));
    count("bytes of text", (end - start) as usize)?;
    let string = text.string().get(start as usize..end as usize).unwrap_or_default();
    let offsets: Vec<i32> = offsets.iter().map(|offset| (offset - start).cast_signed()).collect();
    let offsets = OffsetBuffer::new(offsets.into());
    let nulls = match text.missing() {
        [] => None,
        missing => nulls(missing.iter().map(|missing| !missing)),
    };
    Ok(Arc::new(StringArray::try_new(offsets, Buffer::from(string.as_bytes()), nulls)?))
}

/// Sixteen bytes each, the lowest first.
fn row_ids(ids: &[RowId]) -> Result<ArrayRef, ConvertError> {
    let bytes: Vec<u8> =
        ids.iter().flat_map(|id| [id.low.to_le_bytes(), id.high.to_le_bytes()]).flatten().collect();
    Ok(Arc::new(FixedSizeBinaryArray::try_new(16, bytes.into(), None)?))
}

fn durations(times: Times, unit: TimeUnit) -> ArrayRef {
    match unit {
        TimeUnit::Second => Arc::new(DurationSecondArray::from(times)),
        TimeUnit::Millisecond => Arc::new(DurationMillisecondArray::from(times)),
        TimeUnit::Microsecond => Arc::new(DurationMicrosecondArray::from(times)),
        TimeUnit::Nanosecond => Arc::new(DurationNanosecondArray::from(times)),
    }
}

fn timestamps(times: Times, unit: TimeUnit, zone: Option<&str>) -> ArrayRef {
    let zone: Option<Arc<str>> = zone.map(Arc::from);
    match unit {
        TimeUnit::Second => Arc::new(TimestampSecondArray::from(times).with_timezone_opt(zone)),
        TimeUnit::Millisecond => {
            Arc::new(TimestampMillisecondArray::from(times).with_timezone_opt(zone))
        }
        TimeUnit::Microsecond => {
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone_opt(zone))
        }
        TimeUnit::Nanosecond => {
            Arc::new(TimestampNanosecondArray::from(times).with_timezone_opt(zone))
        }
    }
}

/// A structure of a time in UTC and the minutes that the clock was ahead.
fn offset_times(
    ticks: &[i64],
    offsets: Cow<'static, [i16]>,
    unit: TimeUnit,
) -> Result<ArrayRef, ConvertError> {
    let times = utc(ticks, &offsets, unit)?;
    let nulls = nulls(times.iter().map(Option::is_some));
    // The parts have values even where the whole is missing.
    let times = times.into_iter().map(|time| Some(time.unwrap_or(0))).collect();
    let times = timestamps(times, unit, Some("UTC"));
    let fields = [
        Field::new("timestamp", times.data_type().clone(), false),
        Field::new("offset_minutes", DataType::Int16, false),
    ];
    let offsets = Arc::new(Int16Array::new(offsets.into_owned().into(), None));
    let fields = Vec::from(fields).into();
    Ok(Arc::new(StructArray::try_new(fields, [times, offsets].into(), nulls)?))
}

fn wrong_kind(codec: &str, values: &Values<'_>) -> ConvertError {
    ConvertError::Values(ValuesError::Kind { codec: codec.into(), values: values.kind_name() })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn numbers_are_not_copied() {
        let values = alloc::vec![1.5_f32; 4096];
        let place = values.as_ptr();
        let array = numbers(Values::Single(values.into())).unwrap();
        assert_eq!(array.as_primitive::<Float32Type>().values().as_ptr(), place);
    }
}
