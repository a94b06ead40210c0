//! The parts of a URL that names an object.

use std::fmt;

use reqwest::Url;

/// An object of a store, or the prefix of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A key in a bucket, which Azure calls a container, and writes `CONTAINER@ACCOUNT` where a URL
    /// names the account.
    Bucket { store: Store, bucket: String, key: String, version: Option<String> },
    /// A file of a repository.
    Repository { repository: Repository, key: String },
    /// A file of a web server. Its query may sign the request.
    Web(Url),
}

/// A repository of the Hugging Face hub, in a state that a branch, a tag or a commit names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// `datasets`, `spaces` or `models`.
    pub(crate) kind: &'static str,
    pub(crate) owner: String,
    pub(crate) name: String,
    pub(crate) revision: String,
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
    NotARepository,
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
            Self::NotARepository => {
                "invalid name of a repository, expected hf://datasets/OWNER/NAME[@REVISION]/PATH"
            }
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
            "hf" => return Self::parse_repository(rest),
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
        check_key(key)?;
        Ok(Self::Bucket { store, bucket, key: key.to_owned(), version })
    }

    /// Reads what follows `hf://`: models have no kind in front. A slash in a revision is `%2F`,
    /// except in `refs/convert/NAME` and `refs/pr/NUMBER`.
    fn parse_repository(rest: &str) -> Result<Self, Defect> {
        let (kind, rest) = match rest.split_once('/') {
            Some(("datasets", rest)) => ("datasets", rest),
            Some(("spaces", rest)) => ("spaces", rest),
            _ => ("models", rest),
        };
        let (owner, rest) = rest.split_once('/').ok_or(Defect::NotARepository)?;
        let (name, key) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        let (revision, key) = if revision == "refs" {
            let mut parts = key.splitn(3, '/');
            let (Some(kind), Some(name)) = (parts.next(), parts.next()) else {
                return Err(Defect::NotARepository);
            };
            (format!("refs/{kind}/{name}"), parts.next().unwrap_or_default())
        } else {
            (revision.replace("%2F", "/").replace("%2f", "/"), key)
        };
        let is_name = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            name.bytes().all(is_plain) && name.bytes().any(|byte| byte != b'.')
        };
        if !(is_name(owner) && is_name(name) && revision.split('/').all(is_name)) {
            return Err(Defect::NotARepository);
        }
        check_key(key)?;
        let owner = owner.to_owned();
        let name = name.to_owned();
        let repository = Repository { kind, owner, name, revision };
        Ok(Self::Repository { repository, key: key.to_owned() })
    }

    fn parse_web(url: &str) -> Result<Self, Defect> {
        let url = Url::parse(url).map_err(|_| Defect::NotAUrl)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Defect::Password);
        }
        if url.host_str().is_none() { Err(Defect::NotAUrl) } else { Ok(Self::Web(url)) }
    }
}

/// Whether a client can request a key, or the prefix that ends with a slash.
fn check_key(key: &str) -> Result<(), Defect> {
    let parts = key.strip_suffix('/').unwrap_or(key);
    let is_bad = |part: &str| {
        matches!(part, "" | "." | "..") || part.bytes().any(|byte| byte.is_ascii_control())
    };
    let is_good = parts.is_empty() || !parts.split('/').any(is_bad);
    if is_good { Ok(()) } else { Err(Defect::BadKey) }
}

/// The URL without what may be secret: a user, a password, and the query of a web server's URL. In the
/// keys of other stores a question mark is a character like others.
pub(crate) fn redact(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let is_web = matches!(scheme, "http" | "https");
    let query = if is_web { rest.split_once('?') } else { None };
    let (rest, query) = query.map_or((rest, ""), |(rest, _)| (rest, "?..."));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        // abfss://CONTAINER@ACCOUNT
        Some((user, _)) if scheme.starts_with("abfs") && !user.contains(':') => host,
        Some((_, host)) => host,
        None => host,
    };
    format!("{scheme}://{host}{path}{query}")
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
    fn repositories_have_a_kind_and_a_revision() {
        let cases = [
            ("hf://datasets/o/n/a/b.tar", "datasets", "main", "a/b.tar"),
            ("hf://datasets/o/n@v1.0/", "datasets", "v1.0", ""),
            ("hf://datasets/o/n", "datasets", "main", ""),
            ("hf://o/n@a%2Fb/k", "models", "a/b", "k"),
            ("hf://spaces/o/n@refs/pr/3/k/l", "spaces", "refs/pr/3", "k/l"),
            ("hf://datasets/o/n@refs/convert/parquet/", "datasets", "refs/convert/parquet", ""),
        ];
        for (url, kind, revision, path) in cases {
            let Ok(Address::Repository { repository, key }) = Address::parse(url) else {
                panic!("{url}");
            };
            let Repository { kind: found, owner, name, revision: state } = repository;
            assert_eq!((found, &*owner, &*name, &*state, &*key), (kind, "o", "n", revision, path));
        }
    }

    #[test]
    fn defects_are_named() {
        let cases = [
            ("hf://datasets/o", Defect::NotARepository),
            ("hf://datasets/o/n@refs/pr", Defect::NotARepository),
            ("hf://datasets/o/n@../k", Defect::NotARepository),
            ("hf://datasets/o/n?k", Defect::NotARepository),
            ("hf://datasets/o/n/a//k", Defect::BadKey),
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
            ("https://host/k?versionId=1&X-Amz-Signature=abc", "https://host/k?..."),
            ("https://me:pw@host/k", "https://host/k"),
            ("s3://b/k?versionId=1", "s3://b/k?versionId=1"),
            ("s3://b/what?/k", "s3://b/what?/k"),
            ("s3://key:pw@b/k@1", "s3://b/k@1"),
            ("abfss://c@a.dfs.core.windows.net/k", "abfss://c@a.dfs.core.windows.net/k"),
            ("abfss://key:pw@c/k", "abfss://c/k"),
            ("https://host", "https://host"),
            ("https://host?sig=/abc", "https://host?..."),
        ];
        for (url, expected) in cases {
            assert_eq!(redact(url), expected, "{url}");
        }
    }
}
