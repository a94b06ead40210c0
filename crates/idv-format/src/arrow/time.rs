//! Spans and points of time in Arrow's units.

use alloc::vec::Vec;

use arrow_schema::TimeUnit;

use super::ConvertError;

/// The missing value, in files before version 1.1.1.6.
pub(super) const MISSING: i64 = i64::MIN;

/// Ticks from the start of the year 1 to the start of 1970.
pub(super) const EPOCH: i64 = 719_162 * 86_400 * TICKS_PER_SECOND;
const TICKS_PER_SECOND: i64 = 10_000_000;
const NANOSECONDS_PER_TICK: i64 = 100;
pub(super) const TICKS_PER_MINUTE: i64 = 60 * TICKS_PER_SECOND;

/// Times in some unit, `None` for those that are missing.
pub(super) type Times = Vec<Option<i64>>;

pub(super) fn spans(ticks: &[i64], unit: TimeUnit) -> Result<Times, ConvertError> {
    convert(ticks, unit, |_, ticks| Some(ticks))
}

pub(super) fn points(ticks: &[i64], unit: TimeUnit) -> Result<Times, ConvertError> {
    convert(ticks, unit, |_, ticks| ticks.checked_sub(EPOCH))
}

/// Ticks on a clock that is `offsets` minutes ahead of UTC, in UTC.
pub(super) fn utc(ticks: &[i64], offsets: &[i16], unit: TimeUnit) -> Result<Times, ConvertError> {
    convert(ticks, unit, |index, ticks| {
        let ahead = i64::from(*offsets.get(index)?) * TICKS_PER_MINUTE;
        ticks.checked_sub(EPOCH)?.checked_sub(ahead)
    })
}

/// `since` moves the ticks to where Arrow counts from.
fn convert(
    ticks: &[i64],
    unit: TimeUnit,
    since: impl Fn(usize, i64) -> Option<i64>,
) -> Result<Times, ConvertError> {
    let one = |(index, &ticks): (usize, &i64)| {
        if ticks == MISSING {
            return Ok(None);
        }
        let time = since(index, ticks).and_then(|ticks| in_unit(ticks, unit));
        time.map(Some).ok_or(ConvertError::Time { index, ticks, unit })
    };
    ticks.iter().enumerate().map(one).collect()
}

/// `None` when the unit is too coarse or too fine for the number.
fn in_unit(ticks: i64, unit: TimeUnit) -> Option<i64> {
    let per_unit = match unit {
        TimeUnit::Second => TICKS_PER_SECOND,
        TimeUnit::Millisecond => TICKS_PER_SECOND / 1_000,
        TimeUnit::Microsecond => TICKS_PER_SECOND / 1_000_000,
        TimeUnit::Nanosecond => return ticks.checked_mul(NANOSECONDS_PER_TICK),
    };
    (ticks % per_unit == 0).then_some(ticks / per_unit)
}

/// Ticks of 100 ns; `None` when those are too coarse or too few for the number.
pub(super) fn ticks(time: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => time.checked_mul(TICKS_PER_SECOND),
        TimeUnit::Millisecond => time.checked_mul(TICKS_PER_SECOND / 1_000),
        TimeUnit::Microsecond => time.checked_mul(TICKS_PER_SECOND / 1_000_000),
        TimeUnit::Nanosecond => {
            (time % NANOSECONDS_PER_TICK == 0).then_some(time / NANOSECONDS_PER_TICK)
        }
    }
}
