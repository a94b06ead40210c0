//! Points of time as text.

use std::fmt;

use chrono::{Datelike, NaiveDate, NaiveDateTime, TimeDelta};

/// .NET's ticks of 100 ns in a second.
const TICKS: i64 = 10_000_000;

/// A date and a time of day, without a zone. Prints as in `2020-02-29T12:00:00.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime(NaiveDateTime);

impl DateTime {
    /// Nanoseconds since 1970.
    #[must_use]
    pub fn from_unix(nanoseconds: u64) -> Self {
        let seconds = nanoseconds / 1_000_000_000;
        let rest = nanoseconds % 1_000_000_000;
        let since =
            TimeDelta::seconds(seconds.cast_signed()) + TimeDelta::nanoseconds(rest.cast_signed());
        Self(chrono::DateTime::UNIX_EPOCH.naive_utc() + since)
    }

    /// Ticks of 100 ns since the start of the year 1, `None` outside the years 1 to 9999.
    #[must_use]
    pub fn from_ticks(ticks: i64) -> Option<Self> {
        let rest = TimeDelta::nanoseconds(ticks.rem_euclid(TICKS) * 100);
        let since = TimeDelta::seconds(ticks.div_euclid(TICKS)) + rest;
        let start = NaiveDate::from_ymd_opt(1, 1, 1)?.and_hms_opt(0, 0, 0)?;
        let point = start.checked_add_signed(since)?;
        (1..=9999).contains(&point.year()).then_some(Self(point))
    }
}

impl fmt::Display for DateTime {
    /// `2020-02-29T12:00:00.5`, with as many digits after the point as needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.format("%Y-%m-%dT%H:%M:%S.%9f").to_string();
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A date as `2020-02-29`, to the digit.
pub(crate) fn parse_date(text: &str) -> Option<NaiveDate> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    NaiveDate::from_ymd_opt(digits(year, 4)?.try_into().ok()?, digits(month, 2)?, digits(day, 2)?)
}

/// A number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::DateTime;

    const SECOND: u64 = 1_000_000_000;

    /// Seconds by `date -u -d TEXT +%s`.
    #[test]
    fn seconds_count_from_1970() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00", 0),
            ("2000-02-29T23:59:59", 951_868_799),
            ("2023-11-14T22:13:20", 1_700_000_000),
            ("2100-03-01T00:00:00", 4_107_542_400),
            ("2554-07-21T23:34:33", 18_446_744_073),
        ] {
            assert_eq!(DateTime::from_unix(seconds * SECOND).to_string(), text);
        }
        assert_eq!(DateTime::from_unix(1_500_000_001).to_string(), "1970-01-01T00:00:01.500000001");
    }

    #[test]
    fn ticks_count_from_the_year_1_to_9999() {
        let text = |ticks| DateTime::from_ticks(ticks).map(|clock| clock.to_string());
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
