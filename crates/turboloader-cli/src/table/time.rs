//! Points of time as text (RFC 3339) and back, in the calendar that .NET and everyone else has.

use std::fmt;

const DAY_SECONDS: i64 = 86_400;
/// Days from the first of March of the year 0 to the start of 1970.
const EPOCH_DAY: i64 = 719_468;
/// Days from the start of the year 1 to that of 1970.
pub(crate) const DAYS_TO_1970: i64 = 719_162;
const TICKS: i64 = 10_000_000;
const NANOSECONDS: i64 = 1_000_000_000;

/// A date and a time of day, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Seconds since the start of 1970 on that clock.
    seconds: i64,
    /// What is left of a second.
    nanoseconds: u32,
}

impl Clock {
    /// Nanoseconds since 1970.
    pub(crate) fn from_unix(nanoseconds: u64) -> Self {
        let nanoseconds = i128::from(nanoseconds);
        let second = i128::from(NANOSECONDS);
        let seconds = i64::try_from(nanoseconds / second).unwrap_or(i64::MAX);
        Self { seconds, nanoseconds: u32::try_from(nanoseconds % second).unwrap_or(0) }
    }

    /// Ticks of 100 ns since the start of the year 1, `None` outside the years 1 to 9999.
    pub(crate) fn from_ticks(ticks: i64) -> Option<Self> {
        let seconds = ticks.div_euclid(TICKS) - DAYS_TO_1970 * DAY_SECONDS;
        let nanoseconds = u32::try_from(ticks.rem_euclid(TICKS) * 100).ok()?;
        let clock = Self { seconds, nanoseconds };
        (1..=9999).contains(&clock.date().0).then_some(clock)
    }

    /// Year, month and day.
    fn date(self) -> (i64, i64, i64) {
        // Years start in March, so that the leap day is the last one; an era has 400 of them.
        let day = self.seconds.div_euclid(DAY_SECONDS) + EPOCH_DAY;
        let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (era * 400 + year + next, month, day)
    }
}

impl fmt::Display for Clock {
    /// `2020-02-29T12:00:00.5`, with as many digits behind the point as there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let second = self.seconds.rem_euclid(DAY_SECONDS);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanoseconds == 0 {
            return Ok(());
        }
        let digits = format!("{:09}", self.nanoseconds);
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

/// The nanoseconds since 1970 of an RFC 3339 time or of a date, which starts at midnight UTC.
/// `None` for other text, and for times before 1970 or after 2554.
pub(crate) fn parse_unix(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        None => (text, "00:00:00Z"),
        Some(parts) => parts,
    };
    let day = parse_date(date)?;
    let split = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(split);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_fraction = fraction.bytes().all(|byte| byte.is_ascii_digit());
    if hour > 23 || minute > 59 || second > 59 || !is_fraction || !(1..=9).contains(&fraction.len())
    {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = day * DAY_SECONDS + hour * 3600 + minute * 60 + second - parse_zone(zone)?;
    let nanoseconds = i128::from(seconds) * i128::from(NANOSECONDS) + i128::from(fraction);
    u64::try_from(nanoseconds).ok()
}

/// Days since 1970.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    let (march_year, march_month) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * march_year + march_year.div_euclid(4) - march_year.div_euclid(100)
        + march_year.div_euclid(400)
        + (153 * march_month + 2) / 5
        + day
        - 1
        - EPOCH_DAY;
    // A day that the month does not have comes back as another one.
    let clock = Clock { seconds: days * DAY_SECONDS, nanoseconds: 0 };
    (clock.date() == (year, month, day)).then_some(days)
}

/// Seconds ahead of UTC.
fn parse_zone(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = text.split_at_checked(1)?;
    let [hour, minute] = numbers(rest, ':', [2, 2])?;
    let seconds = hour * 3600 + minute * 60;
    (hour < 24 && minute < 60).then_some(if sign == "-" { -seconds } else { seconds })
}

/// Numbers of so many digits each.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut found = [0; N];
    for (place, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *place = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(found)
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
