//! Names of stored data.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::atomic_file::folder_of;
use crate::escape::Escaped;

/// The end of the name of the index next to a file, after the name of the file.
pub(crate) const OWN_INDEX: &[u8] = b".tlidx";

/// The name of stored data: a path of the local file system, or the URL of an object in a store.
///
/// `SCHEME://REST` in UTF-8 is a URL if the scheme is a letter followed by letters, digits, `+`, `-`
/// or `.`. Everything else is a path. A relative path of that form needs `./` in front.
///
/// Clones share the text. Two locations are equal if their texts are; no path is resolved.
///
/// ```
/// use tbl_io::Location;
///
/// let object = Location::new("s3://bucket/train.tar");
/// assert_eq!((object.scheme(), object.path()), (Some("s3"), None));
/// let file = Location::new("data/train.tar");
/// assert_eq!((file.scheme(), file.path()), (None, Some("data/train.tar".as_ref())));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(Arc<OsStr>);

impl Location {
    /// The location with this text.
    pub fn new(text: impl AsRef<OsStr>) -> Self {
        Self(text.as_ref().into())
    }

    /// The text, as it was given to [`new`](Self::new).
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// The path, unless this is a URL.
    pub fn path(&self) -> Option<&Path> {
        if self.scheme().is_none() { Some(Path::new(&self.0)) } else { None }
    }

    /// The URL, unless this is a path.
    pub fn url(&self) -> Option<&str> {
        self.scheme().and(self.0.to_str())
    }

    /// The URL's scheme, such as `s3`; `None` for a path.
    pub fn scheme(&self) -> Option<&str> {
        let (scheme, _) = self.0.to_str()?.split_once("://")?;
        let (first, rest) = scheme.as_bytes().split_first()?;
        let is_scheme = first.is_ascii_alphabetic()
            && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
        is_scheme.then_some(scheme)
    }

    /// The part of the last name that follows its last dot, such as `tbl`.
    pub fn extension(&self) -> Option<&OsStr> {
        Path::new(&self.0).extension()
    }

    /// The last name of the path, or of the URL without the query of a web server's.
    pub fn file_name(&self) -> &[u8] {
        let text = self.url().map_or(self.0.as_bytes(), |url| without_query(url).as_bytes());
        text.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// The folder that the file or object is in: the path without its last part, or the URL up to the
    /// last slash before the query of a web server's.
    #[must_use]
    pub fn folder(&self) -> Self {
        match self.url().map(without_query) {
            None => Self::new(folder_of(Path::new(&self.0))),
            Some(url) => Self::new(url.rfind('/').map_or(url, |slash| &url[..=slash])),
        }
    }

    /// A URL without what may be secret in any scheme: a user, a password and a query.
    #[must_use]
    pub(crate) fn without_secrets(&self) -> Self {
        let Some((scheme, rest)) = self.url().and_then(|url| url.split_once("://")) else {
            return self.clone();
        };
        let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?..."));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        Self::new(format!("{scheme}://{host}{path}{query}"))
    }

    /// The location of `name`, a relative path with slashes, in this folder.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        if let Some(path) = self.path() {
            return Self::new(path.join(OsStr::from_bytes(name)));
        }
        let slash: &[u8] = if self.0.as_bytes().ends_with(b"/") { b"" } else { b"/" };
        Self::new(OsStr::from_bytes(&[self.0.as_bytes(), slash, name].concat()))
    }
}

/// The URL of a web server without its query, which may be a signature. In the keys of other stores a
/// question mark is a character like others.
pub(crate) fn without_query(url: &str) -> &str {
    let is_web = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    if is_web { url.split_once('?').map_or(url, |(url, _)| url) } else { url }
}

impl Default for Location {
    /// The empty path.
    fn default() -> Self {
        Self::new("")
    }
}

impl AsRef<OsStr> for Location {
    fn as_ref(&self) -> &OsStr {
        &self.0
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for Location {
    fn from(text: &T) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Location {
    /// One line; control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped(self.0.as_bytes()).fmt(f)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_scheme_makes_a_url() {
        let cases = [
            ("s3://bucket/key", Some("s3")),
            ("a+b-c.1://x", Some("a+b-c.1")),
            ("./s3://bucket", None),
            ("s3:/bucket", None),
            ("3s://bucket", None),
            ("://bucket", None),
            ("a b://c", None),
            ("/data/train.tar", None),
            ("", None),
        ];
        for (text, scheme) in cases {
            let location = Location::new(text);
            assert_eq!(location.scheme(), scheme, "{text}");
            assert_eq!(location.url(), scheme.map(|_| text));
            assert_eq!(location.path(), scheme.is_none().then_some(Path::new(text)));
        }
        let bytes = Location::new(OsStr::from_bytes(b"s3://\xff"));
        assert!(bytes.path().is_some(), "URLs are UTF-8");
    }

    #[test]
    fn only_web_servers_have_queries() {
        for (location, expected) in [
            ("a/b?/c", "a/b?"),
            ("s3://b/what?/train.tlidx", "s3://b/what?/"),
            ("s3://b/k", "s3://b/"),
            ("https://h/a/k?path=/x", "https://h/a/"),
        ] {
            assert_eq!(Location::new(location).folder(), Location::new(expected));
        }
    }

    #[test]
    fn nothing_secret_is_left_of_an_unknown_scheme() {
        for (location, expected) in [
            ("HTTPS://me:secret@h/k?sig=secret", "HTTPS://h/k?..."),
            ("x://h", "x://h"),
            ("a?b", "a?b"),
        ] {
            assert_eq!(Location::new(location).without_secrets(), Location::new(expected));
        }
    }

    #[test]
    fn names_are_joined_by_one_slash() {
        for (folder, expected) in [
            ("s3://bucket/a", "s3://bucket/a/b/1.jpg"),
            ("s3://bucket/a/", "s3://bucket/a/b/1.jpg"),
            ("a", "a/b/1.jpg"),
            ("a/", "a/b/1.jpg"),
            ("", "b/1.jpg"),
        ] {
            assert_eq!(Location::new(folder).join(b"b/1.jpg"), Location::new(expected));
        }
    }
}
