//! Values of one column from its arrays.

#![expect(clippy::wildcard_enum_match_arm, reason = "most of Arrow's types have no codec")]

use alloc::vec::Vec;

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListArray, OffsetSizeTrait};
use arrow_schema::{DataType, Field};

use super::items::{Refusal, item_values, refuse_nulls};
use super::key_values::KeyValues;
use super::{DIMENSIONS, KEY_COUNT};
use crate::codec::{Codec, Item, Key, Number, Vector};
use crate::values::ValuesError;
use crate::values::{Rows, Values, Vectors};
use crate::writer::NewMetadata;

/// Makes values of arrays of one type.
#[derive(Debug)]
pub(super) struct Importer {
    item: Item,
    /// The extents of vectors, `None` for single values.
    dimensions: Option<Vec<u32>>,
    /// The values that keys stand for, of dictionaries.
    key_values: Option<KeyValues>,
}

impl Importer {
    /// # Errors
    /// The type that has no codec.
    pub(super) fn new(field: &Field) -> Result<Self, DataType> {
        let (item, dimensions) = match field.data_type() {
            DataType::FixedSizeList(item, length) => {
                let length = u32::try_from(*length).unwrap_or(0);
                (item.as_ref(), Some(dimensions(field, Some(length))))
            }
            DataType::List(item) | DataType::LargeList(item) => {
                (item.as_ref(), Some(dimensions(field, None)))
            }
            _ => (field, None),
        };
        let mut key_values = None;
        if let DataType::Dictionary(_, values) = item.data_type() {
            let values = Field::new("", values.as_ref().clone(), true);
            // The values of keys are always there.
            let values = match codec_item(&values).ok_or(item.data_type().clone())? {
                Item::MissingBoolean => Item::Boolean,
                item => item,
            };
            key_values = Some(KeyValues::new(values));
        }
        let item = codec_item(item).ok_or(item.data_type().clone())?;
        Ok(Self { item, dimensions, key_values })
    }

    /// The codec of the values: for keys, as far as their number is known.
    pub(super) fn codec(&self) -> Codec {
        let mut item = self.item.clone();
        if let (Item::Key(key), Some(values)) = (&mut item, &self.key_values) {
            key.count = values.len().max(1);
        }
        match &self.dimensions {
            None => Codec::Item(item),
            Some(dimensions) => Codec::Vector(Vector { item, dimensions: dimensions.clone() }),
        }
    }

    /// The metadata of the column, once all its arrays have been seen.
    pub(super) fn into_metadata(self) -> Option<NewMetadata> {
        self.key_values.and_then(KeyValues::into_metadata)
    }

    /// `array` is of the field's type.
    pub(super) fn values<'a>(&mut self, array: &'a dyn Array) -> Result<Values<'a>, Refusal> {
        match array.data_type() {
            DataType::FixedSizeList(_, length) => {
                let vectors = array.as_fixed_size_list();
                refuse_nulls(vectors, "VBuffer")?;
                let length = u32::try_from(*length).unwrap_or(0);
                let items = self.items(vectors.values().as_ref());
                let row = |item: usize| item / (length as usize).max(1);
                let items = items.map_err(|refusal| refusal.of_row(row))?;
                Ok(Values::Vector(Vectors::dense(length, vectors.len(), items)))
            }
            DataType::List(_) => self.lists(array.as_list::<i32>()),
            DataType::LargeList(_) => self.lists(array.as_list::<i64>()),
            _ => self.items(array),
        }
    }

    fn lists<O: OffsetSizeTrait>(
        &mut self,
        lists: &GenericListArray<O>,
    ) -> Result<Values<'static>, Refusal> {
        refuse_nulls(lists, "VBuffer")?;
        let offsets: Vec<usize> =
            lists.value_offsets().iter().map(|offset| offset.as_usize()).collect();
        let bounds = offsets.first().copied().zip(offsets.last().copied());
        let (start, end) = bounds.unwrap_or((0, 0));
        let mut rows = Rows::with_capacity(lists.len(), 0);
        for (before, &end) in offsets.iter().zip(offsets.iter().skip(1)) {
            let found = (end - before) as u64;
            let what = "slots of a vector";
            let limit = i32::MAX.unsigned_abs().into();
            let length = u32::try_from(found).ok().filter(|&length| u64::from(length) <= limit);
            let length = length.ok_or(ValuesError::TooMany { what, found, limit })?;
            rows.push(length, end - start);
        }
        let items = lists.values().slice(start, end - start);
        let row = |item: usize| offsets.partition_point(|&offset| offset <= start + item) - 1;
        let items = self.items(items.as_ref()).map_err(|refusal| refusal.of_row(row))?;
        Ok(Values::Vector(Vectors::from_rows(rows, items.into_owned())))
    }

    fn items<'a>(&mut self, array: &'a dyn Array) -> Result<Values<'a>, Refusal> {
        match (&self.item, &mut self.key_values) {
            (Item::Key(key), Some(key_values)) => key_values.keys(array, key.number),
            (item, _) => item_values(item, array),
        }
    }
}

/// The extents that a field's metadata has, if they make vectors of that length.
fn dimensions(field: &Field, length: Option<u32>) -> Vec<u32> {
    let stated = field.metadata().get(DIMENSIONS).map(|text| {
        let extents = text.split('x').map(|extent| extent.parse::<u32>().ok());
        extents.collect::<Option<Vec<u32>>>().unwrap_or_default()
    });
    let vector = |dimensions| Vector { item: Item::Boolean, dimensions };
    let stated = stated.map(vector).filter(|vector| vector.length() == length);
    stated.map_or_else(|| Vec::from([length.unwrap_or(0)]), |vector| vector.dimensions)
}

/// The storage of single values of a type.
fn codec_item(field: &Field) -> Option<Item> {
    Some(match field.data_type() {
        DataType::Boolean if field.is_nullable() => Item::MissingBoolean,
        DataType::Boolean => Item::Boolean,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Item::Text,
        DataType::Duration(_) => Item::TimeSpan,
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => Item::DateTime,
        // The clock's zone is not stored, so it is that of UTC.
        DataType::Timestamp(_, Some(_)) => Item::DateTimeOffset,
        DataType::Struct(_) if is_offset_time(field.data_type()) => Item::DateTimeOffset,
        DataType::FixedSizeBinary(16) => Item::RowId,
        DataType::Dictionary(number, _) => {
            Item::Key(Key { number: key_number(number)?, count: 1, min: 0 })
        }
        other => {
            let number = number(other)?;
            let count = field.metadata().get(KEY_COUNT).and_then(|count| count.parse().ok());
            match count.filter(|_| key_number(other) == Some(number)) {
                Some(count) => Item::Key(Key { number, count, min: 0 }),
                None => Item::Number(number),
            }
        }
    })
}

fn number(data_type: &DataType) -> Option<Number> {
    match data_type {
        DataType::Int8 => Some(Number::SByte),
        DataType::UInt8 => Some(Number::Byte),
        DataType::Int16 => Some(Number::Int16),
        DataType::UInt16 => Some(Number::UInt16),
        DataType::Int32 => Some(Number::Int32),
        DataType::UInt32 => Some(Number::UInt32),
        DataType::Int64 => Some(Number::Int64),
        DataType::UInt64 => Some(Number::UInt64),
        DataType::Float32 => Some(Number::Single),
        DataType::Float64 => Some(Number::Double),
        _ => None,
    }
}

/// The unsigned number with as many bits as an integer.
fn key_number(data_type: &DataType) -> Option<Number> {
    match data_type {
        DataType::Int8 | DataType::UInt8 => Some(Number::Byte),
        DataType::Int16 | DataType::UInt16 => Some(Number::UInt16),
        DataType::Int32 | DataType::UInt32 => Some(Number::UInt32),
        DataType::Int64 | DataType::UInt64 => Some(Number::UInt64),
        _ => None,
    }
}

/// Whether these are points of time with the distance of a clock.
fn is_offset_time(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else { return false };
    let [time, offset] = fields.iter().as_slice() else { return false };
    time.name() == "timestamp"
        && offset.name() == "offset_minutes"
        && matches!(time.data_type(), DataType::Timestamp(_, Some(_)))
        && *offset.data_type() == DataType::Int16
}
