//! Versions of objects, as the headers of answers name them.

use http::HeaderMap;
use http::header::{ETAG, LAST_MODIFIED};
use tbl_io::Pin;

/// Separates the version in a [`Pin`] from the endpoint that it was read from.
const AT: &str = " at ";

/// The version of an object, as an answer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// An `ETag` without its quotes, which some stores leave out in listings.
    Tag {
        tag: String,
        is_weak: bool,
    },
    /// The date of the last change.
    Modified(String),
    Unknown,
}

impl Version {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        match (text(ETAG).map_or(Self::Unknown, Self::of_tag), text(LAST_MODIFIED)) {
            (Self::Unknown, Some(date)) if !date.trim().is_empty() => {
                Self::Modified(date.trim().to_owned())
            }
            (version, _) => version,
        }
    }

    /// Every version of an object has the same empty tag, which is therefore none.
    pub(crate) fn of_tag(tag: &str) -> Self {
        let tag = tag.trim();
        let (strong, is_weak) = match tag.strip_prefix("W/") {
            Some(strong) => (strong, true),
            None => (tag, false),
        };
        let unquoted = strong.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
        let tag = unquoted.unwrap_or(strong);
        if tag.trim().is_empty() {
            Self::Unknown
        } else {
            Self::Tag { tag: tag.to_owned(), is_weak }
        }
    }

    /// Reads what [`pin`](Self::pin) wrote.
    pub(crate) fn of_pin(pin: &Pin) -> Self {
        let name = |text: &str| text.split_once(AT).map_or(text, |(name, _)| name).to_owned();
        match pin {
            Pin::Version(text) => Self::Tag { tag: name(text), is_weak: false },
            Pin::Weak(text) => match text.strip_prefix("W/") {
                Some(tag) => Self::Tag { tag: name(tag), is_weak: true },
                None => Self::Modified(name(text)),
            },
            Pin::Unknown | _ => Self::Unknown,
        }
    }

    /// The version for caches and messages. `endpoint` is the address of the store, unless it is the
    /// usual one of its kind.
    pub(crate) fn pin(&self, endpoint: Option<&str>) -> Pin {
        let at = |name: &str| match endpoint {
            Some(endpoint) => format!("{name}{AT}{endpoint}").into(),
            None => name.into(),
        };
        match self {
            Self::Tag { tag, is_weak: false } => Pin::Version(at(tag)),
            Self::Tag { tag, is_weak: true } => Pin::Weak(at(&format!("W/{tag}"))),
            Self::Modified(date) => Pin::Weak(at(date)),
            Self::Unknown => Pin::Unknown,
        }
    }

    /// The number of parts of an object of S3 by its tag, `HASH-PARTS`.
    pub(crate) fn parts(&self) -> Option<usize> {
        let Self::Tag { tag, is_weak: false } = self else { return None };
        let (hash, parts) = tag.split_once('-')?;
        let is_hash = hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        parts.parse().ok().filter(|_| is_hash)
    }

    /// The value of `If-Match`, which compares strongly: a weak tag would never match.
    pub(crate) fn if_match(&self) -> Option<String> {
        match self {
            Self::Tag { tag, is_weak: false } => Some(format!("\"{tag}\"")),
            Self::Tag { .. } | Self::Modified(_) | Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_reads_back_as_its_version() {
        let versions = [
            Version::of_tag("\"abc-3\""),
            Version::of_tag("W/\"abc\""),
            Version::of_tag("0x8DC"),
            Version::Modified("Sat, 01 Jan 2022 00:00:00 GMT".to_owned()),
            Version::Unknown,
        ];
        for version in versions {
            for endpoint in [None, Some("http://127.0.0.1:9000")] {
                assert_eq!(Version::of_pin(&version.pin(endpoint)), version);
            }
        }
    }

    #[test]
    fn tags_of_parts_have_their_number() {
        let parts = |tag: &str| Version::of_tag(tag).parts();
        assert_eq!(parts("\"0123456789abcdef0123456789abcdef-17\""), Some(17));
        for other in ["\"0123456789abcdef0123456789abcdef\"", "\"abc-3\"", "0x8DC", ""] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn an_empty_tag_is_none() {
        for tag in ["", " ", "\"\"", "W/\"\"", "W/", "\" \""] {
            assert_eq!(Version::of_tag(tag), Version::Unknown, "{tag:?}");
            let mut headers = HeaderMap::new();
            headers.insert(ETAG, tag.parse().unwrap());
            assert_eq!(Version::of(&headers), Version::Unknown, "{tag:?}");
            let date = "Sat, 01 Jan 2022 00:00:00 GMT";
            headers.insert(LAST_MODIFIED, date.parse().unwrap());
            assert_eq!(Version::of(&headers), Version::Modified(date.to_owned()), "{tag:?}");
        }
    }

    #[test]
    fn quotes_of_a_tag_do_not_matter() {
        assert_eq!(Version::of_tag("\"a\""), Version::of_tag("a"));
        assert_ne!(Version::of_tag("W/\"a\""), Version::of_tag("\"a\""));
        assert_eq!(Version::of_tag("a").if_match().as_deref(), Some("\"a\""));
        assert_eq!(Version::of_tag("W/\"a\"").if_match(), None);
    }
}
