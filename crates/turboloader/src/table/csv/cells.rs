//! Values as the text of cells, and back.

use std::fmt::{self, Write as _};

use idv_format::{Item, Number, RowId, Text, Values};

use crate::table::calendar::{self, TimeError};

/// A value without a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CellError {
    /// A time that the calendar does not have.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A key beyond the values that its metadata has.
    #[error("key {key} is not one of the {count} values")]
    Key { key: u64, count: u64 },
}

/// The value of a missing time, in files from before 2018.
const MISSING_TICKS: i64 = i64::MIN;

/// The values that keys stand for: a codec, and a value for each key.
pub(super) type KeyValues = (Item, Values<'static>);

/// Appends the value of number `index`; nothing for one that is missing.
pub(super) fn write(
    text: &mut String,
    item: &Item,
    values: &Values<'_>,
    index: usize,
    key_values: Option<&KeyValues>,
) -> Result<(), CellError> {
    match (item, values) {
        (Item::Key(_), values) => write_key(text, unsigned(values, index), key_values)?,
        (Item::TimeSpan, Values::Int64(ticks)) if ticks[index] == MISSING_TICKS => {}
        (Item::TimeSpan, Values::Int64(ticks)) => calendar::write_span(text, ticks[index]),
        (Item::DateTime, Values::Int64(ticks)) if ticks[index] == MISSING_TICKS => {}
        (Item::DateTime, Values::Int64(ticks)) => calendar::write_point(text, ticks[index])?,
        (_, Values::OffsetTime { ticks, .. }) if ticks[index] == MISSING_TICKS => {}
        (_, Values::OffsetTime { ticks, offset_minutes }) => {
            calendar::write_offset_point(text, ticks[index], offset_minutes[index])?;
        }
        (_, Values::Text(texts)) => text.push_str(texts.get(index).unwrap_or_default()),
        (_, Values::Boolean(values)) => {
            text.push_str(["false", "true"].get(usize::from(values[index])).unwrap_or(&""));
        }
        (_, values) => write_number(text, values, index).unwrap_or(()),
    }
    Ok(())
}

fn write_key(text: &mut String, key: u64, key_values: Option<&KeyValues>) -> Result<(), CellError> {
    match key_values {
        _ if key == 0 => Ok(()),
        None => {
            write!(text, "{key}").unwrap_or(());
            Ok(())
        }
        Some((item, values)) => {
            let count = values.len() as u64;
            let place = usize::try_from(key - 1).ok().filter(|&place| place < values.len());
            write(text, item, values, place.ok_or(CellError::Key { key, count })?, None)
        }
    }
}

fn unsigned(values: &Values<'_>, index: usize) -> u64 {
    match values {
        Values::Byte(keys) => keys[index].into(),
        Values::UInt16(keys) => keys[index].into(),
        Values::UInt32(keys) => keys[index].into(),
        Values::UInt64(keys) => keys[index],
        Values::SByte(_)
        | Values::Int16(_)
        | Values::Int32(_)
        | Values::Int64(_)
        | Values::Single(_)
        | Values::Double(_)
        | Values::Boolean(_)
        | Values::OffsetTime { .. }
        | Values::RowId(_)
        | Values::Text(_)
        | Values::Vector(_) => 0,
    }
}

fn write_number(text: &mut String, values: &Values<'_>, index: usize) -> fmt::Result {
    match values {
        Values::SByte(numbers) => write!(text, "{}", numbers[index]),
        Values::Byte(numbers) => write!(text, "{}", numbers[index]),
        Values::Int16(numbers) => write!(text, "{}", numbers[index]),
        Values::UInt16(numbers) => write!(text, "{}", numbers[index]),
        Values::Int32(numbers) => write!(text, "{}", numbers[index]),
        Values::UInt32(numbers) => write!(text, "{}", numbers[index]),
        Values::Int64(numbers) => write!(text, "{}", numbers[index]),
        Values::UInt64(numbers) => write!(text, "{}", numbers[index]),
        // The shortest text that is read as the same number, with a point or an exponent.
        Values::Single(numbers) => write!(text, "{:?}", numbers[index]),
        Values::Double(numbers) => write!(text, "{:?}", numbers[index]),
        Values::RowId(ids) => write!(text, "{:016x}{:016x}", ids[index].high, ids[index].low),
        Values::Boolean(_) | Values::OffsetTime { .. } | Values::Text(_) | Values::Vector(_) => {
            Ok(())
        }
    }
}

/// The expected content of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected(pub(super) Item);

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Appends the value of a cell; `None` when it is not of that codec. Empty cells are missing.
pub(super) fn parse(cell: &str, item: &Item, values: &mut Values<'static>) -> Option<()> {
    match (item, values) {
        (Item::Key(key), values) => {
            let is_key = cell.is_empty() || cell.parse().is_ok_and(|found| key.count >= found);
            parse_number(if is_key && cell.is_empty() { "0" } else { cell }, values)
                .filter(|()| is_key)?;
        }
        (Item::TimeSpan, Values::Int64(ticks)) => {
            ticks.to_mut().push(or_missing(cell, MISSING_TICKS, calendar::parse_span)?);
        }
        (Item::DateTime, Values::Int64(ticks)) => {
            ticks.to_mut().push(or_missing(cell, MISSING_TICKS, calendar::parse_point)?);
        }
        (_, Values::OffsetTime { offset_minutes, ticks }) => {
            let missing = (MISSING_TICKS, 0);
            let (tick, minutes) = or_missing(cell, missing, calendar::parse_offset_point)?;
            ticks.to_mut().push(tick);
            offset_minutes.to_mut().push(minutes);
        }
        (_, values @ Values::Text(_)) => {
            let text: Text<'_> = [Some(cell)].into_iter().collect();
            values.append(&Values::Text(text)).ok()?;
        }
        (_, Values::Boolean(values)) => {
            let value = boolean(cell).map(u8::from);
            let missing = (cell.is_empty() && *item == Item::MissingBoolean).then_some(2);
            values.to_mut().push(value.or(missing)?);
        }
        (_, Values::RowId(ids)) => {
            let is_id = cell.len() == 32 && cell.bytes().all(|byte| byte.is_ascii_hexdigit());
            let (high, low) = cell.split_at_checked(16).filter(|_| is_id)?;
            let half = |text| u64::from_str_radix(text, 16).ok();
            ids.to_mut().push(RowId { low: half(low)?, high: half(high)? });
        }
        (_, values) => parse_number(cell, values)?,
    }
    Some(())
}

fn or_missing<T>(cell: &str, missing: T, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    if cell.is_empty() { Some(missing) } else { parse(cell) }
}

fn parse_number(cell: &str, values: &mut Values<'static>) -> Option<()> {
    match values {
        Values::SByte(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::Byte(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::Int16(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::UInt16(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::Int32(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::UInt32(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::Int64(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::UInt64(numbers) => numbers.to_mut().push(integer(cell)?),
        Values::Single(numbers) => {
            numbers.to_mut().push(or_missing(cell, f32::NAN, |cell| cell.parse().ok())?);
        }
        Values::Double(numbers) => {
            numbers.to_mut().push(or_missing(cell, f64::NAN, |cell| cell.parse().ok())?);
        }
        Values::Boolean(_)
        | Values::OffsetTime { .. }
        | Values::RowId(_)
        | Values::Text(_)
        | Values::Vector(_) => return None,
    }
    Some(())
}

fn integer<T: std::str::FromStr>(cell: &str) -> Option<T> {
    cell.parse().ok()
}

/// As this and other programs write them.
pub(super) fn boolean(cell: &str) -> Option<bool> {
    match cell {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The number that a type of keys is stored as.
pub(super) const KEY_NUMBER: Number = Number::UInt32;
