//! Points of time as text (RFC 3339) and back.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta};

/// .NET's ticks of 100 ns in a second.
const TICKS: i64 = 10_000_000;

/// A date and a time of day, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock(NaiveDateTime);

impl Clock {
    /// Nanoseconds since 1970.
    pub(crate) fn from_unix(nanoseconds: u64) -> Self {
        let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
        let since =
            TimeDelta::seconds(seconds.cast_signed()) + TimeDelta::nanoseconds(rest.cast_signed());
        Self(DateTime::UNIX_EPOCH.naive_utc() + since)
    }

    /// Ticks of 100 ns since the start of the year 1, `None` outside the years 1 to 9999.
    pub(crate) fn from_ticks(ticks: i64) -> Option<Self> {
        let rest = TimeDelta::nanoseconds(ticks.rem_euclid(TICKS) * 100);
        let since = TimeDelta::seconds(ticks.div_euclid(TICKS)) + rest;
        let start = NaiveDate::from_ymd_opt(1, 1, 1)?.and_hms_opt(0, 0, 0)?;
        let point = start.checked_add_signed(since)?;
        (1..=9999).contains(&point.year()).then_some(Self(point))
    }
}

impl fmt::Display for Clock {
    /// `2020-02-29T12:00:00.5`, with as many digits behind the point as there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.format("%Y-%m-%dT%H:%M:%S.%9f").to_string();
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The nanoseconds since 1970 of an RFC 3339 time or of a date, which starts at midnight UTC.
/// `None` for other text, and for times before 1970 or after 2554.
pub(crate) fn parse_unix(text: &str) -> Option<u64> {
    // Digits that nanoseconds have no place for would be cut off.
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    if fraction.bytes().take_while(u8::is_ascii_digit).count() > 9 {
        return None;
    }
    let point = match parse_date(text) {
        Some(date) => date.and_hms_opt(0, 0, 0)?.and_utc(),
        None => DateTime::parse_from_rfc3339(text).ok()?.to_utc(),
    };
    let nanoseconds = point.timestamp_subsec_nanos();
    let second = u64::try_from(point.timestamp()).ok()?;
    // A leap second, which is none in nanoseconds since 1970, has more of them.
    let is_within_second = nanoseconds < 1_000_000_000;
    let start = second.checked_mul(1_000_000_000).filter(|_| is_within_second)?;
    start.checked_add(nanoseconds.into())
}

/// A date as `2020-02-29`, to the digit.
pub(crate) fn parse_date(text: &str) -> Option<NaiveDate> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    NaiveDate::from_ymd_opt(digits(year, 4)?.try_into().ok()?, digits(month, 2)?, digits(day, 2)?)
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::{Clock, parse_unix};

    const SECOND: u64 = 1_000_000_000;

    /// Seconds by `date -u -d TEXT +%s`.
    #[test]
    fn times_come_back_as_they_were() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00", 0),
            ("2000-02-29T23:59:59", 951_868_799),
            ("2023-11-14T22:13:20", 1_700_000_000),
            ("2100-03-01T00:00:00", 4_107_542_400),
            ("2554-07-21T23:34:33", 18_446_744_073),
        ] {
            assert_eq!(Clock::from_unix(seconds * SECOND).to_string(), text);
            assert_eq!(parse_unix(&format!("{text}Z")), Some(seconds * SECOND), "{text}");
        }
        assert_eq!(Clock::from_unix(1_500_000_001).to_string(), "1970-01-01T00:00:01.500000001");
        assert_eq!(parse_unix("1970-01-01T00:00:01.500000001Z"), Some(1_500_000_001));
        assert_eq!(parse_unix("2000-02-29"), Some(951_782_400 * SECOND));
        assert_eq!(parse_unix("2000-03-01 00:30:00+01:00"), Some(951_867_000 * SECOND));
        assert_eq!(parse_unix("2000-02-29T12:00:00-11:30"), Some(951_867_000 * SECOND));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "1969-12-31T23:59:59Z",
            "2555-01-01",
            "2001-02-29",
            "2000-13-01",
            "2000-00-10",
            "2000-1-01",
            "2000-01-01T24:00:00Z",
            "2000-01-01T00:60:00Z",
            "2000-01-01T00:00:60Z",
            "2000-01-01T00:00:00",
            "2000-01-01T00:00:00.Z",
            "2000-01-01T00:00:00.0000000001Z",
            "2000-01-01T00:00:00+1:00",
            "2000-01-01T00:00:00+25:00",
            "2000-01-01T00:00Z",
            "+200-01-01",
        ] {
            assert_eq!(parse_unix(text), None, "{text:?}");
        }
    }

    #[test]
    fn ticks_count_from_the_year_1_to_9999() {
        let text = |ticks| Clock::from_ticks(ticks).map(|clock| clock.to_string());
        assert_eq!(text(0).as_deref(), Some("0001-01-01T00:00:00"));
        assert_eq!(text(633_636_000_000_000_000).as_deref(), Some("2008-11-30T00:00:00"));
        assert_eq!(text(635_113_028_960_000_001).as_deref(), Some("2013-08-05T12:34:56.0000001"));
        // `DateTime.MaxValue`.
        let last = 3_155_378_975_999_999_999;
        assert_eq!(text(last).as_deref(), Some("9999-12-31T23:59:59.9999999"));
        assert_eq!(text(last + 1), None);
        assert_eq!(text(-1), None);
        assert_eq!(text(i64::MIN), None);
        assert_eq!(text(i64::MAX), None);
    }
}
