//! Values of IDV columns as JSON and as text.
//!
//! Missing ones are null: missing booleans, texts and times, and key 0. Floating point numbers
//! that JSON does not have are the strings `NaN`, `Infinity` and `-Infinity`.

use std::fmt;
use std::ops::Range;

use idv_format::{Codec, Item, Key, Number, Values, Vectors};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use turboloader::DateTime;

use super::Heading;
use crate::text::printable;

/// One value of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    codec: &'a Codec,
    values: &'a Values<'a>,
    index: usize,
}

impl<'a> Cell<'a> {
    /// Value `index` of `values`, which are of this codec.
    pub(crate) fn new(codec: &'a Codec, values: &'a Values<'a>, index: usize) -> Self {
        Self { codec, values, index }
    }

    /// The value for a table: text and times without quotes, nothing for a missing one, otherwise
    /// JSON.
    pub(crate) fn text(&self) -> String {
        // Writing numbers and text to memory succeeds.
        let json = serde_json::to_string(self).unwrap_or_default();
        match serde_json::from_str::<Option<String>>(&json) {
            Ok(text) => {
                text.map(|text| printable(text.as_bytes()).into_owned()).unwrap_or_default()
            }
            Err(_) => json,
        }
    }
}

/// The values of a row by the names of their columns.
pub(crate) struct Row<'a> {
    /// The names.
    pub(crate) names: &'a [String],
    /// As many values.
    pub(crate) cells: &'a [Cell<'a>],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len()))?;
        for (name, cell) in self.names.iter().zip(self.cells) {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = self.codec.item();
        if let Values::Vector(vectors) = self.values {
            return serialize_vector(item, vectors, self.index, serializer);
        }
        One { item, values: self.values, index: self.index }.serialize(serializer)
    }
}

/// The alignment of a column of this codec in a table.
pub(crate) fn idv_heading(name: &str, codec: &Codec) -> Heading {
    const MAX_NAME: usize = 24;
    let number_width = |number: Number| match number {
        Number::SByte | Number::Byte | Number::Int16 | Number::UInt16 => 6,
        Number::Int32 | Number::UInt32 => 11,
        Number::Single => 13,
        Number::Int64 | Number::UInt64 | Number::Double => 20,
    };
    let (width, is_right) = match codec {
        Codec::Vector(_) => (32, false),
        Codec::Item(item) => match item {
            Item::Number(number) | Item::Key(Key { number, .. }) => (number_width(*number), true),
            Item::TimeSpan => (20, true),
            Item::Boolean | Item::MissingBoolean => (5, false),
            Item::Text => (24, false),
            Item::DateTime => (27, false),
            Item::DateTimeOffset => (33, false),
            Item::RowId => (32, false),
        },
    };
    let name = printable(name.as_bytes()).into_owned();
    Heading { width: width.max(name.chars().count().min(MAX_NAME)), name, is_right }
}

/// The items of a dense vector; of a sparse one its length, and those items that it has with their
/// slots.
fn serialize_vector<S: Serializer>(
    item: &Item,
    vectors: &Vectors<'_>,
    index: usize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some(row) = vectors.row(index) else { return serializer.serialize_none() };
    let values = vectors.items();
    let items = Items { item, values: &values, range: row.items() };
    let Some(indices) = row.indices() else { return items.serialize(serializer) };
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("length", &row.length())?;
    map.serialize_entry("indices", indices)?;
    map.serialize_entry("values", &items)?;
    map.end()
}

struct Items<'a> {
    item: &'a Item,
    values: &'a Values<'a>,
    range: Range<usize>,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.range.len()))?;
        for index in self.range.clone() {
            items.serialize_element(&One { item: self.item, values: self.values, index })?;
        }
        items.end()
    }
}

/// A value that is not a vector.
struct One<'a> {
    item: &'a Item,
    values: &'a Values<'a>,
    index: usize,
}

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { item, values, index } = *self;
        // A key that is 0 is missing.
        let is_key = matches!(item, Item::Key(_));
        let unsigned = |number: Option<u64>| number.filter(|&number| number > 0 || !is_key);
        match values {
            Values::Byte(array) => {
                unsigned(array.get(index).map(|&number| number.into())).serialize(serializer)
            }
            Values::UInt16(array) => {
                unsigned(array.get(index).map(|&number| number.into())).serialize(serializer)
            }
            Values::UInt32(array) => {
                unsigned(array.get(index).map(|&number| number.into())).serialize(serializer)
            }
            Values::UInt64(array) => unsigned(array.get(index).copied()).serialize(serializer),
            Values::SByte(array) => array.get(index).serialize(serializer),
            Values::Int16(array) => array.get(index).serialize(serializer),
            Values::Int32(array) => array.get(index).serialize(serializer),
            Values::Int64(array) => serialize_ticks(item, array.get(index).copied(), serializer),
            Values::Single(array) => array.get(index).copied().map(Single).serialize(serializer),
            Values::Double(array) => array.get(index).copied().map(Double).serialize(serializer),
            Values::Boolean(array) => {
                let known = array.get(index).filter(|&&value| value < MISSING);
                known.map(|&value| value == 1).serialize(serializer)
            }
            Values::OffsetTime { offset_minutes, ticks } => {
                let parts = offset_minutes.get(index).zip(ticks.get(index));
                parts.map(|(&minutes, &ticks)| OffsetTime { minutes, ticks }).serialize(serializer)
            }
            Values::RowId(ids) => {
                let id = ids.get(index).copied().unwrap_or_default();
                serializer.collect_str(&format_args!("{:016x}{:016x}", id.high, id.low))
            }
            Values::Text(text) => text.get(index).serialize(serializer),
            // Vectors have no vectors for items.
            Values::Vector(_) => serializer.serialize_none(),
        }
    }
}

/// A boolean that is missing.
const MISSING: u8 = 2;
/// Ticks of a time that is missing.
const MISSING_TICKS: i64 = i64::MIN;

/// A number; or a span of time as its ticks; or a point of time as text where that has a year.
fn serialize_ticks<S: Serializer>(
    item: &Item,
    ticks: Option<i64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let is_time = matches!(item, Item::TimeSpan | Item::DateTime);
    let ticks = ticks.filter(|&ticks| !is_time || ticks != MISSING_TICKS);
    let clock = ticks.filter(|_| *item == Item::DateTime).and_then(DateTime::from_ticks);
    match clock {
        Some(clock) => serializer.collect_str(&clock),
        None => ticks.serialize(serializer),
    }
}

/// A floating point number, with text for those that JSON does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single(pub(crate) f32);

impl Serialize for Single {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match not_finite(self.0.into()) {
            None => serializer.serialize_f32(self.0),
            Some(name) => serializer.serialize_str(name),
        }
    }
}

impl fmt::Display for Single {
    /// As in JSON, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match not_finite(self.0.into()) {
            None => f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?),
            Some(name) => f.write_str(name),
        }
    }
}

struct Double(f64);

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match not_finite(self.0) {
            None => serializer.serialize_f64(self.0),
            Some(name) => serializer.serialize_str(name),
        }
    }
}

fn not_finite(value: f64) -> Option<&'static str> {
    if value.is_finite() {
        None
    } else if value.is_nan() {
        Some("NaN")
    } else {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

/// A point of time on a clock that is this many minutes ahead of UTC.
struct OffsetTime {
    minutes: i16,
    ticks: i64,
}

impl Serialize for OffsetTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { minutes, ticks } = *self;
        if ticks == MISSING_TICKS {
            return serializer.serialize_none();
        }
        match DateTime::from_ticks(ticks) {
            Some(clock) => {
                let sign = if minutes < 0 { '-' } else { '+' };
                let hours = minutes.unsigned_abs() / 60;
                let rest = minutes.unsigned_abs() % 60;
                serializer.collect_str(&format_args!("{clock}{sign}{hours:02}:{rest:02}"))
            }
            None => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("ticks", &ticks)?;
                map.serialize_entry("offset_minutes", &minutes)?;
                map.end()
            }
        }
    }
}
