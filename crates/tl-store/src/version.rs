//! Versions of objects, as the headers of answers name them.

use http::HeaderMap;
use http::header::{ETAG, LAST_MODIFIED};
use md5::{Digest, Md5};
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

    /// The version that S3 gives an object of these bytes, unless it encrypts it with a key of its user.
    pub(crate) fn of_content(bytes: &[u8]) -> Self {
        Self::Tag { tag: hex(&Md5::digest(bytes)), is_weak: false }
    }

    /// The version that S3 gives an object of parts with these tags; `None` if they are not MD5s.
    pub(crate) fn of_parts<'a>(tags: impl ExactSizeIterator<Item = &'a str>) -> Option<Self> {
        let count = tags.len();
        let mut whole = Md5::new();
        for tag in tags {
            let Self::Tag { tag, is_weak: false } = Self::of_tag(tag) else { return None };
            let hash = u128::from_str_radix(&tag, 16).ok().filter(|_| tag.len() == 32)?;
            whole.update(hash.to_be_bytes());
        }
        Some(Self::Tag { tag: format!("{}-{count}", hex(&whole.finalize())), is_weak: false })
    }

    /// The value of `If-Match`, which compares strongly: a weak tag would never match.
    pub(crate) fn if_match(&self) -> Option<String> {
        match self {
            Self::Tag { tag, is_weak: false } => Some(format!("\"{tag}\"")),
            Self::Tag { .. } | Self::Modified(_) | Self::Unknown => None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    fn tags_of_s3_are_those_of_its_content() {
        let one = "\"900150983cd24fb0d6963f7d28e17f72\"";
        assert_eq!(Version::of_content(b"abc"), Version::of_tag(one));
        // By `md5sum` of that hash twice.
        let two = Version::of_tag("043a916d6cfeecedf5e04f0312ba762d-2");
        assert_eq!(Version::of_parts([one, one].into_iter()), Some(two));
        for other in ["\"abc-3\"", "0x8DC", "", "W/\"900150983cd24fb0d6963f7d28e17f72\""] {
            assert_eq!(Version::of_parts([one, other].into_iter()), None, "{other}");
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
