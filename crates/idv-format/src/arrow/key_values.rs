//! Dictionaries as keys: what their values are numbered by, over all arrays of a column.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_dictionary_array};

use super::KEY_VALUES;
use super::items::{Refusal, item_values};
use super::writer::ValueError;
use crate::codec::{Codec, Item, Number, Vector, count};
use crate::values::{Values, Vectors};
use crate::writer::NewMetadata;

/// The values of keys, numbered from 1 in the order in which they are first seen.
#[derive(Debug)]
pub(super) struct KeyValues {
    item: Item,
    values: Values<'static>,
    /// By the bytes that tell values apart.
    numbers: HashMap<Box<[u8]>, u64>,
    /// The dictionary of the last array: most often the next one has the same.
    last: Option<Numbered>,
}

/// A dictionary, with the number of each of its values.
#[derive(Debug)]
struct Numbered {
    dictionary: ArrayRef,
    filler: Option<usize>,
    numbers: Vec<u64>,
}

impl KeyValues {
    /// None yet; `item` is the codec of the values.
    pub(super) fn new(item: Item) -> Self {
        let values = Codec::Item(item.clone()).empty_values();
        Self { item, values, numbers: HashMap::new(), last: None }
    }

    /// How many different values there are.
    pub(super) fn len(&self) -> u64 {
        self.values.len() as u64
    }

    pub(super) fn into_metadata(self) -> Option<NewMetadata> {
        let values = self.values.len();
        // Nothing states that the categories are missing.
        let length = count("values of keys", values).ok().filter(|&length| length > 0)?;
        let length = length.unsigned_abs();
        let codec = Codec::Vector(Vector { item: self.item, dimensions: Vec::from([length]) });
        let value = Values::Vector(Vectors::dense(length, 1, self.values));
        Some(NewMetadata { kind: KEY_VALUES.into(), codec, value })
    }

    /// The keys of a dictionary array, 0 for those that are missing.
    pub(super) fn keys(
        &mut self,
        array: &dyn Array,
        number: Number,
    ) -> Result<Values<'static>, Refusal> {
        let dictionary = array.as_any_dictionary();
        let numbers = self.numbers_of(dictionary.values(), filler(array))?;
        let places = downcast_dictionary_array!(
            array => array.keys_iter().collect::<Vec<Option<usize>>>(),
            _ => Vec::new()
        );
        let key = |(index, place): (usize, Option<usize>)| match place {
            None => Ok(0),
            Some(key) => {
                let source = ValueError::NoKey { key };
                numbers.get(key).copied().ok_or(Refusal::Value { index, source })
            }
        };
        let keys = places.into_iter().enumerate().map(key);
        match number {
            Number::Byte => Ok(Values::Byte(narrow(keys, number, u8::MAX.into())?.into())),
            Number::UInt16 => Ok(Values::UInt16(narrow(keys, number, u16::MAX.into())?.into())),
            Number::UInt32 => Ok(Values::UInt32(narrow(keys, number, u32::MAX.into())?.into())),
            Number::UInt64
            | Number::SByte
            | Number::Int16
            | Number::Int32
            | Number::Int64
            | Number::Single
            | Number::Double => Ok(Values::UInt64(narrow(keys, number, u64::MAX)?.into())),
        }
    }

    /// The number of each value of a dictionary; 0 for one that is null, and for `filler`.
    fn numbers_of(
        &mut self,
        dictionary: &ArrayRef,
        filler: Option<usize>,
    ) -> Result<&[u64], Refusal> {
        let is_same =
            |last: &Numbered| Arc::ptr_eq(&last.dictionary, dictionary) && last.filler == filler;
        if !self.last.as_ref().is_some_and(is_same) {
            let numbers = self.add(dictionary, filler)?;
            let dictionary = Arc::clone(dictionary);
            self.last = Some(Numbered { dictionary, filler, numbers });
        }
        Ok(self.last.as_ref().map_or(&[], |last| &last.numbers))
    }

    fn add(&mut self, dictionary: &ArrayRef, filler: Option<usize>) -> Result<Vec<u64>, Refusal> {
        let mut numbers = Vec::with_capacity(dictionary.len());
        let mut bytes = Vec::new();
        for index in 0..dictionary.len() {
            if dictionary.is_null(index) || filler == Some(index) {
                numbers.push(0);
                continue;
            }
            let value = dictionary.slice(index, 1);
            let value = item_values(&self.item, value.as_ref())?;
            bytes.clear();
            value.canonical(&mut |part| bytes.extend_from_slice(part));
            let next = self.len() + 1;
            let number = match self.numbers.get(bytes.as_slice()) {
                Some(&number) => number,
                None => {
                    self.values.append(&value)?;
                    self.numbers.insert(bytes.as_slice().into(), next);
                    next
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }
}

/// The empty text of a dictionary that stands for nulls alone, which is not a value. The reader of
/// Parquet files makes such dictionaries of pages without one.
fn filler(array: &dyn Array) -> Option<usize> {
    let dictionary = array.as_any_dictionary();
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    if dictionary.values().is_empty() {
        return None;
    }
    let places = dictionary.normalized_keys();
    let rows = || places.iter().copied().zip(nulls.iter());
    let is_empty_text = |place: usize| is_empty_text(dictionary.values().as_ref(), place);
    let (filler, _) = rows().find(|&(place, present)| !present && is_empty_text(place))?;
    let is_value = rows().any(|(place, present)| present && place == filler);
    (!is_value).then_some(filler)
}

fn is_empty_text(values: &dyn Array, index: usize) -> bool {
    if values.is_null(index) {
        return false;
    }
    let is_empty = |text: &str| text.is_empty();
    values.as_string_opt::<i32>().is_some_and(|texts| is_empty(texts.value(index)))
        || values.as_string_opt::<i64>().is_some_and(|texts| is_empty(texts.value(index)))
        || values.as_string_view_opt().is_some_and(|texts| is_empty(texts.value(index)))
}

/// Keys as they are stored.
fn narrow<T: TryFrom<u64>>(
    keys: impl Iterator<Item = Result<u64, Refusal>>,
    number: Number,
    limit: u64,
) -> Result<Vec<T>, Refusal> {
    let narrow = |(index, key): (usize, Result<u64, Refusal>)| {
        let source = ValueError::Keys { number: number.name(), limit };
        T::try_from(key?).map_err(|_| Refusal::Value { index, source })
    };
    keys.enumerate().map(narrow).collect()
}
