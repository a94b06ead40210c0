//! Ranges of time on the command line (RFC 3339).

use chrono::DateTime;

/// Timestamps from the first on and before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    /// The first timestamp that is in it.
    pub(crate) start: u64,
    /// The first nanosecond after it; `None` for an open end.
    pub(crate) end: Option<u64>,
}

/// Reads `A..B`.
pub(crate) fn time_range(text: &str) -> Result<TimeRange, String> {
    let (start, end) = text.split_once("..").ok_or(
        "expected A..B, such as 2026-11-20..2026-11-21T12:00:00Z or nanoseconds since 1970",
    )?;
    let time = |text: &str| {
        let number = text.parse().ok();
        let time = number.or_else(|| parse_unix(text));
        time.ok_or_else(|| {
            format!(
                "`{text}` is neither a time such as 2026-11-20T12:00:00Z nor nanoseconds since 1970"
            )
        })
    };
    Ok(TimeRange {
        start: if start.is_empty() { 0 } else { time(start)? },
        end: if end.is_empty() { None } else { Some(time(end)?) },
    })
}

/// The nanoseconds since 1970 of an RFC 3339 time or of a date, which starts at midnight UTC.
/// `None` for other text, and for times before 1970 or after 2554.
fn parse_unix(text: &str) -> Option<u64> {
    const DATE_LENGTH: usize = "2000-02-29".len();
    // Digits below nanoseconds would be cut off.
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    if fraction.bytes().take_while(u8::is_ascii_digit).count() > 9 {
        return None;
    }
    let point = if text.len() == DATE_LENGTH {
        DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z"))
    } else {
        DateTime::parse_from_rfc3339(text)
    };
    let point = point.ok()?;
    let nanoseconds = point.timestamp_subsec_nanos();
    let second = u64::try_from(point.timestamp()).ok()?;
    // A leap second has more of them; nanoseconds since 1970 cannot express it.
    let is_within_second = nanoseconds < 1_000_000_000;
    let start = second.checked_mul(1_000_000_000).filter(|_| is_within_second)?;
    start.checked_add(nanoseconds.into())
}

#[cfg(test)]
mod tests {
    use super::{TimeRange, parse_unix, time_range};

    const SECOND: u64 = 1_000_000_000;

    /// Seconds by `date -u -d TEXT +%s`.
    #[test]
    fn times_are_read_to_the_nanosecond() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("2554-07-21T23:34:33Z", 18_446_744_073),
            ("2000-02-29", 951_782_400),
            ("2000-03-01 00:30:00+01:00", 951_867_000),
            ("2000-02-29T12:00:00-11:30", 951_867_000),
        ] {
            assert_eq!(parse_unix(text), Some(seconds * SECOND), "{text}");
        }
        assert_eq!(parse_unix("1970-01-01T00:00:01.500000001Z"), Some(1_500_000_001));
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
    fn ranges_of_time_are_open_where_nothing_is_said() {
        let range = |start, end| Some(TimeRange { start, end });
        let read = |text| time_range(text).ok();
        assert_eq!(read("5..9"), range(5, Some(9)));
        assert_eq!(read("5.."), range(5, None));
        assert_eq!(read("..9"), range(0, Some(9)));
        assert_eq!(read(".."), range(0, None));
        let day = 86_400_000_000_000;
        assert_eq!(
            read("1970-01-02..1970-01-03T00:00:00.5Z"),
            range(day, Some(2 * day + 500_000_000))
        );
        for wrong in ["", "5", "5.9", "5..x", "-1..5", "1970-01-32.."] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
