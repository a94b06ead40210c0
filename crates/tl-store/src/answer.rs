//! Checks of an answer's head, before a byte of its body is used.

use std::ops::Range;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, RETRY_AFTER};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::time::Duration;
use tbl_io::Unusable;

use crate::version::Version;

/// The object behind an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its length in bytes.
    pub(crate) len: u64,
    pub(crate) version: Version,
}

/// A defect of an answer that claims success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The server cannot be used for ranges.
    Unusable(Unusable),
    /// The object is another one by now.
    Changed(Version),
}

/// Checks an answer to a request for `asked`, which is not empty and may end after the object does.
/// Returns the object, and the range that the body must have.
pub(crate) fn check_range(
    parts: &Parts,
    asked: &Range<u64>,
    expected: Option<&Head>,
) -> Result<(Head, Range<u64>), Defect> {
    let headers = &parts.headers;
    check_encoding(headers)?;
    if parts.status != StatusCode::PARTIAL_CONTENT {
        return Err(Defect::Unusable(Unusable::IgnoresRanges { status: parts.status.as_u16() }));
    }
    let (range, len) = content_range(headers).ok_or(Defect::Unusable(Unusable::OtherRange))?;
    let version = Version::of(headers);
    if let Some(expected) = expected
        && (version != expected.version || len != expected.len)
    {
        return Err(Defect::Changed(version));
    }
    if range.start != asked.start || range.end != asked.end.min(len) {
        return Err(Defect::Unusable(Unusable::OtherRange));
    }
    match number(headers, CONTENT_LENGTH.as_str()) {
        Some(length) if length != range.end - range.start => {
            Err(Defect::Unusable(Unusable::OtherRange))
        }
        _ => Ok((Head { len, version }, range)),
    }
}

/// Checks an answer to a `HEAD` request.
pub(crate) fn check_head(parts: &Parts) -> Result<Head, Defect> {
    check_encoding(&parts.headers)?;
    let len = number(&parts.headers, CONTENT_LENGTH.as_str());
    let len = len.ok_or(Defect::Unusable(Unusable::NoLength))?;
    Ok(Head { len, version: Version::of(&parts.headers) })
}

fn check_encoding(headers: &HeaderMap) -> Result<(), Defect> {
    match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().trim_ascii()) {
        None | Some(b"" | b"identity") => Ok(()),
        Some(_) => Err(Defect::Unusable(Unusable::Compressed)),
    }
}

/// The range and the object's length in `Content-Range: bytes FIRST-LAST/LENGTH` (RFC 9110, 14.4).
fn content_range(headers: &HeaderMap) -> Option<(Range<u64>, u64)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, len) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let start = digits(first)?;
    let len = digits(len)?;
    let end = digits(last)?.checked_add(1)?;
    (start < end && end <= len).then_some((start..end, len))
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    digits(headers.get(name)?.to_str().ok()?.trim())
}

/// A number without a sign, which `parse` alone would allow.
fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The time that the server asks to be left alone, where it says so in seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    number(headers, RETRY_AFTER.as_str()).map(|seconds| Duration::from_secs(seconds.min(3_600)))
}

/// The error code of a store's answer: `<Code>..</Code>` of S3, GCS and Azure, or the header that
/// Azure and Hugging Face send. Only letters, digits, `.`, `-` and `_` are kept.
pub(crate) fn error_code(headers: &HeaderMap, body: &[u8]) -> Option<Box<str>> {
    let header = ["x-ms-error-code", "x-error-code"].iter().find_map(|name| headers.get(*name));
    let code = match header {
        Some(value) => value.as_bytes(),
        None => element(body, b"<Code>", b"</Code>")?,
    };
    word(code)
}

/// The region that S3 names in its answer where the bucket is in another one than was asked.
pub(crate) fn other_region(
    status: StatusCode,
    headers: &HeaderMap,
    code: Option<&str>,
    body: &[u8],
) -> Option<Box<str>> {
    let is_other = status.is_redirection()
        || (status == StatusCode::BAD_REQUEST && code == Some("AuthorizationHeaderMalformed"));
    let header = headers.get("x-amz-bucket-region").map(HeaderValue::as_bytes);
    let region = header.or_else(|| element(body, b"<Region>", b"</Region>"))?;
    if is_other { word(region) } else { None }
}

/// A name that may stand in messages.
fn word(text: &[u8]) -> Option<Box<str>> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let is_word = (1..=64).contains(&text.len()) && text.iter().all(is_plain);
    is_word.then(|| String::from_utf8_lossy(text).into())
}

fn element<'a>(body: &'a [u8], start: &[u8], end: &[u8]) -> Option<&'a [u8]> {
    let rest = body.get(find(body, start)? + start.len()..)?;
    rest.get(..find(rest, end)?)
}

pub(crate) fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// The text that references in XML stand for; `None` if one is unknown.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        plain.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#')?;
                let number = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(number)?
            }
        });
        plain.push_str(rest);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)]) -> Parts {
        let mut builder = http::Response::builder().status(status);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    fn ranged(range: &str) -> Parts {
        answer(206, &[("content-range", range), ("etag", "\"a\"")])
    }

    #[test]
    fn an_answer_has_the_range_that_was_asked_for() {
        let head = Head { len: 10, version: Version::of_tag("a") };
        let checked = check_range(&ranged("bytes 2-5/10"), &(2..6), Some(&head));
        assert_eq!(checked, Ok((head.clone(), 2..6)));
        let shorter = check_range(&ranged("bytes 2-9/10"), &(2..100), None);
        assert_eq!(shorter, Ok((head, 2..10)), "the object ends before the range does");
    }

    #[test]
    fn other_ranges_are_refused() {
        let other = Err(Defect::Unusable(Unusable::OtherRange));
        for range in [
            "bytes 1-5/10",
            "bytes 2-6/10",
            "bytes 2-5/4",
            "bytes 5-2/10",
            "bytes 2-5/*",
            "bytes */10",
            "bytes +2-5/10",
            "bytes 2-18446744073709551615/18446744073709551615",
            "2-5/10",
            "",
        ] {
            assert_eq!(check_range(&ranged(range), &(2..6), None), other, "{range}");
        }
        let longer = [("content-range", "bytes 2-5/10"), ("content-length", "5")];
        assert_eq!(check_range(&answer(206, &longer), &(2..6), None), other);
    }

    #[test]
    fn another_version_or_length_is_a_change() {
        let head = Head { len: 10, version: Version::of_tag("a") };
        let other = answer(206, &[("content-range", "bytes 2-5/10"), ("etag", "\"b\"")]);
        let changed = |tag| Err(Defect::Changed(Version::of_tag(tag)));
        assert_eq!(check_range(&other, &(2..6), Some(&head)), changed("b"));
        assert_eq!(check_range(&ranged("bytes 2-5/11"), &(2..6), Some(&head)), changed("a"));
    }

    #[test]
    fn whole_and_compressed_bodies_are_refused() {
        let whole = answer(200, &[("content-length", "10")]);
        let ignores = Err(Defect::Unusable(Unusable::IgnoresRanges { status: 200 }));
        assert_eq!(check_range(&whole, &(2..6), None), ignores);
        let gzip = answer(206, &[("content-range", "bytes 2-5/10"), ("content-encoding", "gzip")]);
        let compressed = Defect::Unusable(Unusable::Compressed);
        assert_eq!(check_range(&gzip, &(2..6), None), Err(compressed.clone()));
        assert_eq!(check_head(&gzip), Err(compressed));
    }

    #[test]
    fn a_code_is_a_word_or_nothing() {
        let none = HeaderMap::new();
        let body = b"<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>";
        assert_eq!(error_code(&none, body).as_deref(), Some("SlowDown"));
        for body in ["<Code>a b</Code>", "<Code>\x1b[31m</Code>", "<Code></Code>", "<Code>x", ""] {
            assert_eq!(error_code(&none, body.as_bytes()), None, "{body:?}");
        }
        let region = |status: u16, headers: &[(&str, &str)], body: &[u8]| {
            let parts = answer(status, headers);
            let code = error_code(&parts.headers, body);
            other_region(parts.status, &parts.headers, code.as_deref(), body)
        };
        let header = [("x-amz-bucket-region", "eu-west-1")];
        let malformed = b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-2</Region>";
        assert_eq!(region(301, &header, b"").as_deref(), Some("eu-west-1"));
        assert_eq!(region(400, &[], malformed).as_deref(), Some("eu-2"));
        assert_eq!(region(400, &header, b"<Code>ExpiredToken</Code>"), None);
        assert_eq!(region(301, &[("x-amz-bucket-region", "a b")], b""), None);
        assert_eq!(region(301, &[], b""), None);
        let azure = answer(404, &[("x-ms-error-code", "BlobNotFound")]);
        assert_eq!(error_code(&azure.headers, b"").as_deref(), Some("BlobNotFound"));
    }
}
