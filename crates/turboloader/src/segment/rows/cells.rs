//! Values of Arrow arrays, whatever type of number or text they have.
#![expect(clippy::wildcard_enum_match_arm, reason = "nodes take few of Arrow's types")]

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, FixedSizeBinaryArray};
use arrow_schema::{DataType, TimeUnit};
use uuid::Uuid;

use super::NodeError;

/// The value of a row.
type At<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

/// A column and the number of its first row, for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    column: &'static str,
    base: u64,
}

impl Place {
    fn row(self, row: usize) -> u64 {
        self.base.saturating_add(row as u64)
    }

    fn invalid(self, row: usize, value: &dyn fmt::Display, expected: &'static str) -> NodeError {
        NodeError::Value {
            column: self.column,
            row: self.row(row),
            value: value.to_string(),
            expected,
        }
    }

    fn missing(self, row: usize, expected: &'static str) -> NodeError {
        NodeError::Missing { column: self.column, row: self.row(row), expected }
    }

    fn of_type(self, array: &dyn Array, expected: &'static str) -> NodeError {
        let found = Box::new(array.data_type().clone());
        NodeError::Type { column: self.column, found, expected }
    }
}

/// Whole numbers that are not negative, or none if the column does not exist.
pub(super) struct Integers<'a> {
    place: Place,
    array: Option<(&'a dyn Array, At<'a, i128>)>,
}

impl<'a> Integers<'a> {
    const EXPECTED: &'static str = "a whole number of 64 bits from 0 on";

    /// A column of integers.
    pub(super) fn new(
        column: &'static str,
        array: Option<&'a dyn Array>,
        base: u64,
    ) -> Result<Self, NodeError> {
        let place = Place { column, base };
        let Some(array) = array else { return Ok(Self { place, array: None }) };
        let numbers = integers(array).ok_or_else(|| place.of_type(array, "whole numbers"))?;
        Ok(Self { place, array: Some((array, numbers)) })
    }

    /// A column of nanoseconds since 1970, or of times.
    pub(super) fn times(
        column: &'static str,
        array: Option<&'a dyn Array>,
        base: u64,
    ) -> Result<Self, NodeError> {
        let Some((found, numbers)) = array.and_then(|array| Some((array, times(array)?))) else {
            return Self::new(column, array, base);
        };
        Ok(Self { place: Place { column, base }, array: Some((found, numbers)) })
    }

    /// The number of a row; `default` if the column does not exist.
    pub(super) fn or(&self, row: usize, default: u64) -> Result<u64, NodeError> {
        self.at(row, row, default)
    }

    /// The number at `place`, one of those of `row`.
    pub(super) fn at(&self, place: usize, row: usize, default: u64) -> Result<u64, NodeError> {
        let Some((array, numbers)) = &self.array else { return Ok(default) };
        if array.is_null(place) {
            return Err(self.place.missing(row, Self::EXPECTED));
        }
        let number = numbers(place);
        u64::try_from(number).map_err(|_| self.place.invalid(row, &number, Self::EXPECTED))
    }

    /// The error of a value.
    pub(super) fn invalid(
        &self,
        row: usize,
        value: &dyn fmt::Display,
        expected: &'static str,
    ) -> NodeError {
        self.place.invalid(row, value, expected)
    }
}

fn integers(array: &dyn Array) -> Option<At<'_, i128>> {
    fn of<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array) -> At<'_, i128> {
        let values = array.as_primitive::<T>().values();
        Box::new(|row| values.get(row).copied().map_or(0, Into::into))
    }
    Some(match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array),
        DataType::Int16 => of::<Int16Type>(array),
        DataType::Int32 => of::<Int32Type>(array),
        DataType::Int64 => of::<Int64Type>(array),
        DataType::UInt8 => of::<UInt8Type>(array),
        DataType::UInt16 => of::<UInt16Type>(array),
        DataType::UInt32 => of::<UInt32Type>(array),
        DataType::UInt64 => of::<UInt64Type>(array),
        _ => return None,
    })
}

/// Times as nanoseconds.
fn times(array: &dyn Array) -> Option<At<'_, i128>> {
    fn of<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array, factor: i128) -> At<'_, i128> {
        let values = array.as_primitive::<T>().values();
        Box::new(move |row| values.get(row).map_or(0, |&value| i128::from(value) * factor))
    }
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    Some(match unit {
        TimeUnit::Second => of::<TimestampSecondType>(array, 1_000_000_000),
        TimeUnit::Millisecond => of::<TimestampMillisecondType>(array, 1_000_000),
        TimeUnit::Microsecond => of::<TimestampMicrosecondType>(array, 1000),
        TimeUnit::Nanosecond => of::<TimestampNanosecondType>(array, 1),
    })
}

/// Numbers with fractions, or none if the column does not exist.
pub(super) struct Floats<'a> {
    place: Place,
    array: Option<(&'a dyn Array, At<'a, f64>)>,
}

impl<'a> Floats<'a> {
    const EXPECTED: &'static str = "a number that 32 bits hold";

    /// A column of floats.
    pub(super) fn new(
        column: &'static str,
        array: Option<&'a dyn Array>,
        base: u64,
    ) -> Result<Self, NodeError> {
        let place = Place { column, base };
        let Some(array) = array else { return Ok(Self { place, array: None }) };
        let numbers =
            floats(array).ok_or_else(|| place.of_type(array, "floating-point numbers"))?;
        Ok(Self { place, array: Some((array, numbers)) })
    }

    /// The number of a row; `default` if the column does not exist.
    pub(super) fn or(&self, row: usize, default: f32) -> Result<f32, NodeError> {
        self.at(row, row, default)
    }

    /// Appends the numbers of `places`, which are those of `row`.
    pub(super) fn append(
        &self,
        places: Range<usize>,
        row: usize,
        out: &mut Vec<f32>,
    ) -> Result<(), NodeError> {
        out.reserve(places.len());
        for place in places {
            out.push(self.at(place, row, 0.0)?);
        }
        Ok(())
    }

    /// The number at `place`, one of those of `row`.
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest; checked for range")]
    pub(super) fn at(&self, place: usize, row: usize, default: f32) -> Result<f32, NodeError> {
        let Some((array, numbers)) = &self.array else { return Ok(default) };
        if array.is_null(place) {
            return Err(self.place.missing(row, Self::EXPECTED));
        }
        let number = numbers(place);
        let single = number as f32;
        if number.is_finite() && !single.is_finite() {
            return Err(self.place.invalid(row, &number, Self::EXPECTED));
        }
        Ok(single)
    }
}

fn floats(array: &dyn Array) -> Option<At<'_, f64>> {
    Some(match array.data_type() {
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>().values();
            Box::new(|row| values.get(row).map_or(0.0, |value| value.to_f64()))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            Box::new(|row| values.get(row).map_or(0.0, |&value| value.into()))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            Box::new(|row| values.get(row).copied().unwrap_or(0.0))
        }
        _ => return None,
    })
}

/// Texts, `None` for a missing one.
pub(super) fn texts<'a>(
    column: &'static str,
    array: Option<&'a dyn Array>,
) -> Result<Option<At<'a, Option<&'a str>>>, NodeError> {
    let Some(array) = array else { return Ok(None) };
    let texts = text_of(array);
    let place = Place { column, base: 0 };
    texts.map(Some).ok_or_else(|| place.of_type(array, "text"))
}

fn text_of<'a>(array: &'a dyn Array) -> Option<At<'a, Option<&'a str>>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            Box::new(|row| texts.is_valid(row).then(|| texts.value(row)))
        }
        DataType::LargeUtf8 => {
            let texts = array.as_string::<i64>();
            Box::new(|row| texts.is_valid(row).then(|| texts.value(row)))
        }
        DataType::Utf8View => {
            let texts = array.as_string_view();
            Box::new(|row| texts.is_valid(row).then(|| texts.value(row)))
        }
        _ => return None,
    })
}

/// Codes of one byte: numbers, or their names.
pub(super) enum Cells<'a> {
    Numbers(Integers<'a>),
    Names { place: Place, texts: At<'a, Option<&'a str>>, code: fn(&str) -> Option<u8> },
}

impl<'a> Cells<'a> {
    const EXPECTED: &'static str = "a code of 8 bits or its name";

    /// A column of codes, whose names `code` knows.
    pub(super) fn codes(
        column: &'static str,
        array: Option<&'a dyn Array>,
        base: u64,
        code: fn(&str) -> Option<u8>,
    ) -> Result<Self, NodeError> {
        match array.and_then(text_of) {
            Some(texts) => Ok(Self::Names { place: Place { column, base }, texts, code }),
            None => Ok(Self::Numbers(Integers::new(column, array, base)?)),
        }
    }

    /// The code of a row; `default` if the column does not exist.
    pub(super) fn or(&self, row: usize, default: u8) -> Result<u8, NodeError> {
        self.at(row, row, default)
    }

    /// The code at `place`, one of those of `row`.
    pub(super) fn at(&self, place: usize, row: usize, default: u8) -> Result<u8, NodeError> {
        match self {
            Self::Numbers(numbers) => {
                let number = numbers.at(place, row, default.into())?;
                u8::try_from(number).map_err(|_| numbers.invalid(row, &number, Self::EXPECTED))
            }
            Self::Names { place: column, texts, code } => {
                let name = texts(place).ok_or_else(|| column.missing(row, Self::EXPECTED))?;
                code(name)
                    .ok_or_else(|| column.invalid(row, &format_args!("{name:?}"), Self::EXPECTED))
            }
        }
    }
}

/// Ids of nodes: UUIDs as text or as 16 bytes.
pub(super) struct Ids<'a> {
    place: Place,
    kind: IdKind<'a>,
}

enum IdKind<'a> {
    Absent,
    Texts(At<'a, Option<&'a str>>),
    Bytes(&'a FixedSizeBinaryArray),
}

impl<'a> Ids<'a> {
    const EXPECTED: &'static str = "a UUID";

    /// A column of ids.
    pub(super) fn new(
        column: &'static str,
        array: Option<&'a dyn Array>,
        base: u64,
    ) -> Result<Self, NodeError> {
        let place = Place { column, base };
        let Some(array) = array else { return Ok(Self { place, kind: IdKind::Absent }) };
        let kind = match (text_of(array), array.data_type()) {
            (Some(texts), _) => IdKind::Texts(texts),
            (None, DataType::FixedSizeBinary(16)) => IdKind::Bytes(array.as_fixed_size_binary()),
            (None, _) => return Err(place.of_type(array, "UUIDs as text or 16 bytes")),
        };
        Ok(Self { place, kind })
    }

    /// The id of a row.
    pub(super) fn needed(&self, row: usize) -> Result<[u8; 16], NodeError> {
        let missing = || self.place.missing(row, Self::EXPECTED);
        match &self.kind {
            IdKind::Texts(texts) => {
                let text = texts(row).ok_or_else(missing)?;
                let id = Uuid::parse_str(text);
                let shown: String = text.chars().take(60).collect();
                let invalid =
                    |_| self.place.invalid(row, &format_args!("{shown:?}"), Self::EXPECTED);
                Ok(id.map_err(invalid)?.into_bytes())
            }
            IdKind::Bytes(bytes) if bytes.is_valid(row) => {
                bytes.value(row).try_into().map_err(|_| missing())
            }
            IdKind::Absent | IdKind::Bytes(_) => Err(missing()),
        }
    }

    /// The error of an id that no node has.
    pub(super) fn no_node(&self, row: usize, id: [u8; 16]) -> NodeError {
        let id = Uuid::from_bytes(id);
        NodeError::NoNode { column: self.place.column, row: self.place.row(row), id }
    }
}

/// Lists of values.
pub(super) struct Lists<'a> {
    place: Place,
    array: &'a dyn Array,
    /// The values of all lists.
    pub(super) values: &'a dyn Array,
    ranges: At<'a, Range<usize>>,
}

impl<'a> Lists<'a> {
    /// A column of lists, if it exists.
    pub(super) fn new(
        column: &'static str,
        array: Option<&'a dyn Array>,
        base: u64,
    ) -> Result<Option<Self>, NodeError> {
        let place = Place { column, base };
        let Some(array) = array else { return Ok(None) };
        let start = |offset: Option<usize>| offset.unwrap_or(0);
        let (values, ranges): (&dyn Array, At<'a, Range<usize>>) = match array.data_type() {
            DataType::FixedSizeList(..) => {
                let lists = array.as_fixed_size_list();
                let length = usize::try_from(lists.value_length()).unwrap_or(0);
                let range = move |row: usize| {
                    let first = lists.value_offset_at(row);
                    first..first + length
                };
                (&**lists.values(), Box::new(range))
            }
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                let offset = |row: usize| lists.value_offsets().get(row).copied();
                let at = move |row| start(offset(row).and_then(|end| usize::try_from(end).ok()));
                (&**lists.values(), Box::new(move |row| at(row)..at(row + 1)))
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                let offset = |row: usize| lists.value_offsets().get(row).copied();
                let at = move |row| start(offset(row).and_then(|end| usize::try_from(end).ok()));
                (&**lists.values(), Box::new(move |row| at(row)..at(row + 1)))
            }
            _ => return Err(place.of_type(array, "lists of numbers")),
        };
        Ok(Some(Self { place, array, values, ranges }))
    }

    /// The places of the values of a row.
    pub(super) fn range(&self, row: usize) -> Result<Range<usize>, NodeError> {
        if self.array.is_null(row) {
            return Err(self.place.missing(row, "a list of numbers"));
        }
        Ok((self.ranges)(row))
    }

    /// As [`range`](Self::range), of a list that must have a value for each edge.
    pub(super) fn range_of(&self, row: usize, expected: usize) -> Result<Range<usize>, NodeError> {
        let range = self.range(row)?;
        let found = range.len();
        if found == expected {
            return Ok(range);
        }
        let column = self.place.column;
        Err(NodeError::EdgeLists { column, row: self.place.row(row), found, expected })
    }

    /// The values as floats.
    pub(super) fn floats(&self) -> Result<Floats<'a>, NodeError> {
        Floats::new(self.place.column, Some(self.values), self.place.base)
    }
}
