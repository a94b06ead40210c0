//! The parts of a URL that names an object.

use std::fmt;

use reqwest::Url;

/// An object of a store, or the prefix of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A key in a bucket, which Azure calls a container, and writes `CONTAINER@ACCOUNT` where a URL
    /// names the account.
    Bucket { store: Store, bucket: String, key: String, version: Option<String> },
    /// A file of a web server. Its query may sign the request.
    Web(Url),
}

/// A kind of store with buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Store {
    S3,
    Gcs,
    Azure,
}

/// A defect of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    NoBucket,
    NoKey,
    BadKey,
    Password,
    NotAUrl,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBucket => "the URL has no bucket, expected SCHEME://BUCKET/KEY",
            Self::NoKey => "the URL has no key, expected SCHEME://BUCKET/KEY",
            Self::BadKey => {
                "the key has an empty part, a part `.` or `..`, or a control character, which the \
                 store's client cannot request"
            }
            Self::Password => {
                "the URL has a user or a password, expected credentials as options of the store"
            }
            Self::NotAUrl => "invalid URL, expected https://HOST/PATH",
        })
    }
}

impl Address {
    /// Reads a URL. A key is taken as it stands: only the URLs of web servers have escapes.
    pub(crate) fn parse(url: &str) -> Result<Self, Defect> {
        let Some((scheme, rest)) = url.split_once("://") else { return Err(Defect::NotAUrl) };
        let (store, versions) = match scheme {
            "s3" => (Store::S3, Some("?versionId=")),
            "gs" => (Store::Gcs, Some("?generation=")),
            "az" | "abfs" | "abfss" => (Store::Azure, None),
            _ => return Self::parse_web(url),
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        // abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY
        let bucket = match (scheme, bucket.split_once('@')) {
            ("abfs" | "abfss", Some((container, host))) => {
                let account = host.split_once('.').map_or(host, |(account, _)| account);
                format!("{container}@{account}")
            }
            (_, Some(_)) => return Err(Defect::Password),
            (_, None) => bucket.to_owned(),
        };
        if bucket.is_empty() || bucket.starts_with('@') || bucket.ends_with('@') {
            return Err(Defect::NoBucket);
        }
        let (key, version) = match versions.and_then(|query| key.rsplit_once(query)) {
            Some((key, version)) => (key, Some(version.to_owned())),
            None => (key, None),
        };
        let parts = key.strip_suffix('/').unwrap_or(key);
        let is_bad = |part: &str| {
            matches!(part, "" | "." | "..") || part.bytes().any(|byte| byte.is_ascii_control())
        };
        if !parts.is_empty() && parts.split('/').any(is_bad) {
            return Err(Defect::BadKey);
        }
        Ok(Self::Bucket { store, bucket, key: key.to_owned(), version })
    }

    fn parse_web(url: &str) -> Result<Self, Defect> {
        let url = Url::parse(url).map_err(|_| Defect::NotAUrl)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Defect::Password);
        }
        if url.host_str().is_none() { Err(Defect::NotAUrl) } else { Ok(Self::Web(url)) }
    }
}

/// The URL without what may be secret: a user, a password, and a query other than a version.
pub(crate) fn redact(url: &str) -> String {
    let (head, query) = url.split_once('?').unwrap_or((url, ""));
    let is_version = ["versionId=", "generation="].iter().any(|name| query.starts_with(name));
    let head = match head.split_once("://") {
        Some((scheme @ ("http" | "https" | "hf"), rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        _ => head.to_owned(),
    };
    match query {
        "" => head,
        query if is_version => format!("{head}?{query}"),
        _ => format!("{head}?..."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(store: Store, bucket: &str, key: &str, version: Option<&str>) -> Address {
        let version = version.map(str::to_owned);
        Address::Bucket { store, bucket: bucket.to_owned(), key: key.to_owned(), version }
    }

    #[test]
    fn keys_are_taken_as_they_stand() {
        let cases = [
            ("s3://b/k", bucket(Store::S3, "b", "k", None)),
            ("s3://b/a b/%41?x=1", bucket(Store::S3, "b", "a b/%41?x=1", None)),
            ("s3://b/k?versionId=3.x", bucket(Store::S3, "b", "k", Some("3.x"))),
            ("gs://b/k?generation=17", bucket(Store::Gcs, "b", "k", Some("17"))),
            ("az://c/d/", bucket(Store::Azure, "c", "d/", None)),
            ("abfs://c/k", bucket(Store::Azure, "c", "k", None)),
            ("abfss://c@a.dfs.core.windows.net/k", bucket(Store::Azure, "c@a", "k", None)),
            ("s3://b", bucket(Store::S3, "b", "", None)),
            ("s3://b/ü/日本.tar", bucket(Store::S3, "b", "ü/日本.tar", None)),
        ];
        for (url, expected) in cases {
            assert_eq!(Address::parse(url), Ok(expected), "{url}");
        }
        let web = Address::parse("https://host:1/a%20b.tar?sig=1");
        assert!(matches!(web, Ok(Address::Web(url)) if url.path() == "/a%20b.tar"));
    }

    #[test]
    fn defects_are_named() {
        let cases = [
            ("s3:///k", Defect::NoBucket),
            ("abfss://@a.dfs.core.windows.net/k", Defect::NoBucket),
            ("abfss://c@/k", Defect::NoBucket),
            ("s3://key:secret@b/k", Defect::Password),
            ("https://me:secret@host/k", Defect::Password),
            ("s3://b/a//k", Defect::BadKey),
            ("s3://b/../k", Defect::BadKey),
            ("s3://b/a\nk", Defect::BadKey),
            ("https://", Defect::NotAUrl),
        ];
        for (url, expected) in cases {
            assert_eq!(Address::parse(url), Err(expected), "{url}");
        }
    }

    #[test]
    fn nothing_secret_is_left() {
        let cases = [
            ("https://host/k?X-Amz-Signature=abc", "https://host/k?..."),
            ("https://me:pw@host/k", "https://host/k"),
            ("s3://b/k?versionId=1", "s3://b/k?versionId=1"),
            ("s3://b/k", "s3://b/k"),
            ("https://host", "https://host"),
        ];
        for (url, expected) in cases {
            assert_eq!(redact(url), expected, "{url}");
        }
    }
}
