//! The languages of stores: what a request asks for, and how its answer looks.

use std::fmt::Write as _;

use crate::objects::Object;

/// The date of every object.
pub(crate) const MODIFIED: &str = "Sat, 01 Jan 2022 00:00:00 GMT";
/// The same in listings.
const LISTED: &str = "2022-01-01T00:00:00.000Z";

/// The language that a service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Amazon S3 with paths that begin with the bucket.
    S3,
    /// The XML interface of Google Cloud Storage.
    Gcs,
    /// Azure's blobs.
    Azure,
    /// The Hugging Face hub: buckets are data sets of the owner `o`, which have one commit. Requests
    /// for files are sent to another host, with an address that is signed.
    Hub,
    /// A web server, without listings.
    Http,
}

/// A request in any dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Object {
        bucket: String,
        key: String,
    },
    List {
        bucket: String,
        prefix: String,
        by_folder: bool,
        after: String,
        most: usize,
    },
    /// The commit of a bucket.
    Commit {
        bucket: String,
    },
    /// The place of a file.
    Address {
        bucket: String,
        key: String,
    },
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 5] = [Self::S3, Self::Gcs, Self::Azure, Self::Hub, Self::Http];

    pub(crate) fn ask(self, path: &str, query: &str) -> Ask {
        let path = unescape(path.trim_start_matches('/'));
        let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
        let value = |name: &str| query_value(query, name);
        if self == Self::Hub {
            let after = value("cursor").unwrap_or_default();
            return hub_ask(&path, value("recursive").is_none(), after);
        }
        let bucket = bucket.to_owned();
        if !key.is_empty() || self == Self::Http {
            return Ask::Object { bucket, key: key.to_owned() };
        }
        let token = if self == Self::Azure { "marker" } else { "continuation-token" };
        let most = if self == Self::Azure { "maxresults" } else { "max-keys" };
        Ask::List {
            bucket,
            prefix: value("prefix").unwrap_or_default(),
            by_folder: value("delimiter").is_some_and(|delimiter| delimiter == "/"),
            after: value(token).unwrap_or_default(),
            most: value(most).and_then(|most| most.parse().ok()).unwrap_or(1_000).min(1_000),
        }
    }

    /// The body of an error.
    pub(crate) fn error(self, code: &str) -> String {
        match self {
            Self::Http | Self::Hub => format!("{code}\n"),
            Self::S3 | Self::Gcs | Self::Azure => format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code>\
                 <Message>planted-secret-of-the-server</Message></Error>"
            ),
        }
    }

    /// A page of a listing: objects, folders, and the key to go on after.
    pub(crate) fn page(
        self,
        prefix: &str,
        objects: &[(String, Object)],
        folders: &[String],
        next: Option<&str>,
    ) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
        // Writing to a string does not fail.
        let written = match self {
            Self::Hub => return hub_page(objects, folders),
            Self::Azure => azure_page(&mut text, objects, folders, next),
            Self::S3 | Self::Gcs | Self::Http => s3_page(&mut text, prefix, objects, folders, next),
        };
        written.unwrap_or_default();
        text
    }
}

/// The state of every data set of the hub, unless the service has another.
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Entries of a page; the hub itself has 1000.
const HUB_PAGE: usize = 5;

fn hub_ask(path: &str, by_folder: bool, after: String) -> Ask {
    let of = |parts: &[&str]| (parts[0].to_owned(), parts[1..].join("/"));
    let parts: Vec<_> = path.split('/').collect();
    match &parts[..] {
        ["api", "datasets", "o", bucket, "revision", "main"] => {
            Ask::Commit { bucket: (*bucket).to_owned() }
        }
        ["api", "datasets", "o", bucket, "tree", commit, folders @ ..] if is_commit(commit) => {
            let prefix = folders.iter().map(|folder| format!("{folder}/")).collect();
            let bucket = (*bucket).to_owned();
            Ask::List { bucket, prefix, by_folder, after, most: HUB_PAGE }
        }
        ["datasets", "o", bucket, "resolve", commit, key @ ..] if is_commit(commit) => {
            Ask::Address { bucket: (*bucket).to_owned(), key: key.join("/") }
        }
        ["files", file @ ..] if file.len() > 1 => {
            let (bucket, key) = of(file);
            Ask::Object { bucket, key }
        }
        _ => Ask::Object { bucket: String::new(), key: path.to_owned() },
    }
}

/// Whether a revision is a commit. All of them have the same files.
fn is_commit(revision: &str) -> bool {
    revision.len() == COMMIT.len() && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hub_page(objects: &[(String, Object)], folders: &[String]) -> String {
    let text = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let files = objects.iter().map(|(key, object)| {
        format!(r#"{{"type":"file","path":"{}","size":{}}}"#, text(key), object.len())
    });
    let folders = folders.iter().map(|folder| {
        format!(r#"{{"type":"directory","path":"{}"}}"#, text(folder.trim_end_matches('/')))
    });
    format!("[{}]", files.chain(folders).collect::<Vec<_>>().join(","))
}

fn s3_page(
    text: &mut String,
    prefix: &str,
    objects: &[(String, Object)],
    folders: &[String],
    next: Option<&str>,
) -> std::fmt::Result {
    write!(text, "<ListBucketResult><Prefix>{}</Prefix>", escape(prefix))?;
    write!(text, "<KeyCount>{}</KeyCount>", objects.len() + folders.len())?;
    write!(text, "<IsTruncated>{}</IsTruncated>", next.is_some())?;
    if let Some(next) = next {
        write!(text, "<NextContinuationToken>{}</NextContinuationToken>", escape(next))?;
    }
    for (key, object) in objects {
        write!(
            text,
            "<Contents><Key>{}</Key><Size>{}</Size><LastModified>{LISTED}</LastModified>\
             <ETag>{}</ETag></Contents>",
            escape(key),
            object.len(),
            escape(&object.tag()),
        )?;
    }
    for folder in folders {
        write!(text, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(folder))?;
    }
    text.write_str("</ListBucketResult>")
}

fn azure_page(
    text: &mut String,
    objects: &[(String, Object)],
    folders: &[String],
    next: Option<&str>,
) -> std::fmt::Result {
    text.write_str("<EnumerationResults><Blobs>")?;
    for (key, object) in objects {
        write!(
            text,
            "<Blob><Name>{}</Name><Properties><Last-Modified>{MODIFIED}</Last-Modified>\
             <Content-Length>{}</Content-Length><Content-Type>application/octet-stream\
             </Content-Type><Etag>{}</Etag></Properties></Blob>",
            escape(key),
            object.len(),
            object.tag().trim_matches('"'),
        )?;
    }
    for folder in folders {
        write!(text, "<BlobPrefix><Name>{}</Name></BlobPrefix>", escape(folder))?;
    }
    let next = escape(next.unwrap_or_default());
    write!(text, "</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>")
}

/// The value of a name in a query.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(unescape(&value.replace('+', " ")))
}

/// The texts of all elements of this name, in a document that has no other markup than elements.
pub(crate) fn elements(document: &str, name: &str) -> Vec<String> {
    let mut rest = document;
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once(&format!("<{name}>")) {
        let Some((text, after)) = after.split_once(&format!("</{name}>")) else { break };
        found.push(text.replace("&quot;", "\"").replace("&amp;", "&"));
        rest = after;
    }
    found
}

/// The text of the first element of this name.
pub(crate) fn element(document: &str, name: &str) -> Option<String> {
    elements(document, name).into_iter().next()
}

/// Text for XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Reads `%41` as `A`.
pub(crate) fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_in_every_dialect() {
        let object = Ask::Object { bucket: "b".into(), key: "a b/ü".into() };
        for dialect in Dialect::ALL {
            let files = if dialect == Dialect::Hub { "/files" } else { "" };
            let path = format!("{files}/b/a%20b/%C3%BC");
            assert_eq!(dialect.ask(&path, "versionId=1"), object);
        }
        let list = |after: &str| Ask::List {
            bucket: "b".into(),
            prefix: "x/".into(),
            by_folder: true,
            after: after.into(),
            most: 1_000,
        };
        let query = "list-type=2&prefix=x%2F&delimiter=%2F&continuation-token=x%2Fk";
        assert_eq!(Dialect::S3.ask("/b", query), list("x/k"));
        let query = "list-type=2&prefix=a+b%2Bc%25";
        let Ask::List { prefix, .. } = Dialect::S3.ask("/b", query) else { panic!("no listing") };
        assert_eq!(prefix, "a b+c%");
        let query = "restype=container&comp=list&prefix=x%2F&delimiter=%2F";
        assert_eq!(Dialect::Azure.ask("/b", query), list(""));
    }
}
