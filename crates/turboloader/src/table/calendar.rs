//! .NET's spans and points of time as text, exact to the tick of 100 ns.
//!
//! Points of time are those of ISO 8601, spans those of .NET's constant format.

use std::fmt::Write as _;

use chrono::Datelike;

use crate::date_time::{DateTime, parse_date};

const TICKS_PER_SECOND: i64 = 10_000_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// A time without a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeError {
    /// Outside the calendar.
    #[error("{ticks} ticks of 100 ns are not within the years 1 to 9999")]
    Year { ticks: i64 },
    /// A distance to UTC of a day or more.
    #[error("{minutes} minutes ahead of UTC are not within a day")]
    Offset { minutes: i16 },
}

/// Appends a point of time, as in `2013-08-05T12:00:00` or with up to seven digits after the
/// second.
pub(crate) fn write_point(text: &mut String, ticks: i64) -> Result<(), TimeError> {
    let clock = DateTime::from_ticks(ticks).ok_or(TimeError::Year { ticks })?;
    write!(text, "{clock}").unwrap_or(());
    Ok(())
}

/// The same with the distance to UTC, as in `2013-08-05T12:00:00+02:00`.
pub(crate) fn write_offset_point(
    text: &mut String,
    ticks: i64,
    minutes: i16,
) -> Result<(), TimeError> {
    write_point(text, ticks)?;
    let distance = minutes.unsigned_abs();
    if distance >= 24 * 60 {
        return Err(TimeError::Offset { minutes });
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    write!(text, "{sign}{:02}:{:02}", distance / 60, distance % 60).unwrap_or(());
    Ok(())
}

/// Appends a span, as in `1.02:03:04.0000005`: days, if there are any, and the time of day.
pub(crate) fn write_span(text: &mut String, ticks: i64) {
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = ticks.unsigned_abs();
    let per_day = TICKS_PER_DAY.unsigned_abs();
    text.push_str(sign);
    if ticks >= per_day {
        write!(text, "{}.", ticks / per_day).unwrap_or(());
    }
    write_clock(text, (ticks % per_day).cast_signed());
}

fn write_clock(text: &mut String, ticks: i64) {
    let seconds = ticks / TICKS_PER_SECOND;
    let fraction = ticks % TICKS_PER_SECOND;
    let minutes = seconds / 60;
    let seconds = seconds % 60;
    write!(text, "{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60).unwrap_or(());
    if fraction > 0 {
        write!(text, ".{fraction:07}").unwrap_or(());
    }
}

/// Reads what [`write_point`] writes, also a date alone, or with a space before the time.
pub(crate) fn parse_point(text: &str) -> Option<i64> {
    let (date, clock) = match text.split_once(['T', ' ']) {
        Some((date, clock)) => (date, parse_clock(clock)?),
        None => (text, 0),
    };
    let date = parse_date(date).filter(|date| date.year() >= 1)?;
    let days = i64::from(date.num_days_from_ce()) - 1;
    Some(days * TICKS_PER_DAY + clock)
}

/// Reads what [`write_offset_point`] writes, also `Z` for UTC: ticks and minutes.
pub(crate) fn parse_offset_point(text: &str) -> Option<(i64, i16)> {
    if let Some(point) = text.strip_suffix('Z') {
        return Some((parse_point(point)?, 0));
    }
    let (point, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (sign, zone) = zone.split_at_checked(1)?;
    let (hours, minutes) = zone.split_once(':')?;
    let hours = clock_part(hours, 24)?;
    let minutes = clock_part(minutes, 60)?;
    let minutes = i16::try_from(hours * 60 + minutes).ok()?;
    let minutes = match sign {
        "+" => minutes,
        "-" => -minutes,
        _ => return None,
    };
    Some((parse_point(point)?, minutes))
}

/// Reads what [`write_span`] writes.
pub(crate) fn parse_span(text: &str) -> Option<i64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    // The first dot is that of the days, unless it follows the seconds.
    let (days, clock) = match text.split_once('.') {
        Some((days, clock)) if !days.contains(':') => (digits_of(days)?, clock),
        _ => (0, text),
    };
    // Below zero there is one more number than above.
    let ticks = i128::from(days) * i128::from(TICKS_PER_DAY) + i128::from(parse_clock(clock)?);
    i64::try_from(if is_negative { -ticks } else { ticks }).ok()
}

/// `12:00:00`, followed by up to seven digits.
fn parse_clock(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) if (1..=7).contains(&fraction.len()) => {
            let unit = 10_i64.pow(u32::try_from(7 - fraction.len()).ok()?);
            (clock, digits_of(fraction)? * unit)
        }
        Some(_) => return None,
        None => (text, 0),
    };
    let mut parts = clock.split(':');
    let mut part = |limit| clock_part(parts.next()?, limit);
    let seconds = (part(24)? * 60 + part(60)?) * 60 + part(60)?;
    parts.next().is_none().then_some(seconds * TICKS_PER_SECOND + fraction)
}

fn clock_part(text: &str, limit: i64) -> Option<i64> {
    let number = digits_of(text).filter(|_| text.len() == 2)?;
    (number < limit).then_some(number)
}

/// Digits alone, without a sign.
fn digits_of(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_point(ticks: i64, expected: &str) {
        let mut text = String::new();
        write_point(&mut text, ticks).unwrap();
        assert_eq!((text.as_str(), parse_point(expected)), (expected, Some(ticks)));
    }

    /// Ticks as .NET has them.
    #[test]
    fn points_are_those_of_the_calendar() {
        check_point(0, "0001-01-01T00:00:00");
        check_point(621_355_968_000_000_000, "1970-01-01T00:00:00");
        check_point(635_112_576_000_000_001, "2013-08-05T00:00:00.0000001");
        check_point(3_155_378_975_999_999_999, "9999-12-31T23:59:59.9999999");
        check_point(630_822_815_990_000_000, "1999-12-31T23:59:59");
        check_point(630_873_792_000_000_000, "2000-02-29T00:00:00");
        let error = write_point(&mut String::new(), 3_155_378_976_000_000_000).unwrap_err();
        assert_eq!(error, TimeError::Year { ticks: 3_155_378_976_000_000_000 });
    }

    #[test]
    fn every_day_has_one_date() {
        let mut before = String::new();
        for day in 0..3_652_059 {
            let mut text = String::new();
            write_point(&mut text, day * TICKS_PER_DAY).unwrap();
            assert_eq!(parse_point(&text), Some(day * TICKS_PER_DAY));
            assert!(before < text, "{before} {text}");
            before = text;
        }
        assert_eq!(before, "9999-12-31T00:00:00");
    }

    #[test]
    fn dates_that_are_none_are_refused() {
        assert_eq!(parse_point("2013-08-05"), Some(635_112_576_000_000_000));
        assert_eq!(parse_point("2013-08-05 01:00:00.5"), Some(635_112_612_005_000_000));
        for text in [
            "",
            "2013",
            "2013-8-05",
            "2013-02-29",
            "2013-13-01",
            "2013-00-01",
            "0000-01-01",
            "2013-08-05T24:00:00",
            "2013-08-05T23:60:00",
            "2013-08-05T23:00",
            "+013-08-05",
            "2013-08-05T00:00:00.",
            "2013-08-05T00:00:00.12345678",
            "2013-08-05-01",
        ] {
            assert_eq!(parse_point(text), None, "{text}");
        }
    }

    #[test]
    fn offsets_are_hours_and_minutes() {
        let check = |minutes, expected: &str| {
            let mut text = String::new();
            write_offset_point(&mut text, 0, minutes).unwrap();
            assert_eq!(text, expected);
            assert_eq!(parse_offset_point(expected), Some((0, minutes)));
        };
        check(0, "0001-01-01T00:00:00+00:00");
        check(-90, "0001-01-01T00:00:00-01:30");
        check(840, "0001-01-01T00:00:00+14:00");
        assert_eq!(parse_offset_point("0001-01-01T00:00:00Z"), Some((0, 0)));
        for text in ["", "0001-01-01T00:00:00", "0001-01-01T00:00:00 01:30", "é0001-01"] {
            assert_eq!(parse_offset_point(text), None, "{text}");
        }
    }

    #[test]
    fn spans_are_those_of_dot_net() {
        let check = |ticks, expected: &str| {
            let mut text = String::new();
            write_span(&mut text, ticks);
            assert_eq!((text.as_str(), parse_span(expected)), (expected, Some(ticks)));
        };
        check(0, "00:00:00");
        check(-1, "-00:00:00.0000001");
        check(937_840_000_005, "1.02:03:04.0000005");
        check(i64::MAX, "10675199.02:48:05.4775807");
        check(i64::MIN + 1, "-10675199.02:48:05.4775807");
        for text in ["", "-", "1.", "25:00:00", "10675199.02:48:05.4775808", "--00:00:00"] {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }
}
