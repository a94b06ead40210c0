//! Requests that write objects: whole ones, and uploads of parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http::header::{DATE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use md5::{Digest, Md5};

use crate::body::instant;
use crate::dialect::{Dialect, element, elements, escape, query_value, unescape};
use crate::service::Service;

type Answer = Response<BoxBody<Bytes, io::Error>>;

/// The time of a listing of uploads, shortly after all of them were begun.
const NOW: &str = "Sat, 01 Jan 2022 00:00:02 GMT";

/// Parts that are not an object yet.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    begun: u64,
    /// By their identity. Azure has none: there it is the name of the object.
    pending: BTreeMap<String, Pending>,
}

/// An upload that was begun.
#[derive(Debug)]
struct Pending {
    /// `BUCKET/KEY`.
    name: String,
    parts: BTreeMap<String, Bytes>,
    begun: String,
}

/// An upload of parts, as the requests that a service got of it so far tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingUpload {
    /// `BUCKET/KEY`.
    pub name: String,
    /// The parts that have arrived.
    pub parts: usize,
}

/// A part that the request to complete an upload names.
struct Named {
    number: String,
    tag: Option<String>,
}

/// A request that writes an object, or lists uploads.
enum Ask {
    Put,
    Begin,
    Part {
        id: String,
        number: String,
    },
    Complete {
        id: String,
    },
    End {
        id: String,
    },
    /// Uploads below a prefix, after this one.
    List {
        prefix: String,
        after: String,
    },
}

impl Ask {
    fn of(dialect: Dialect, method: &Method, key: &str, query: &str) -> Option<Self> {
        let value = |name| query_value(query, name);
        let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
        match dialect {
            Dialect::S3 | Dialect::Gcs => match (method.as_str(), value("uploadId")) {
                ("GET", None) if key.is_empty() && has("uploads") => Some(Self::List {
                    prefix: value("prefix").unwrap_or_default(),
                    after: value("upload-id-marker").unwrap_or_default(),
                }),
                ("POST", None) if has("uploads") => Some(Self::Begin),
                ("POST", Some(id)) => Some(Self::Complete { id }),
                ("DELETE", Some(id)) => Some(Self::End { id }),
                ("PUT", Some(id)) => Some(Self::Part { id, number: value("partNumber")? }),
                ("PUT", None) => Some(Self::Put),
                _ => None,
            },
            Dialect::Azure => match (method.as_str(), value("comp").as_deref()) {
                ("PUT", Some("block")) => {
                    Some(Self::Part { id: key.to_owned(), number: value("blockid")? })
                }
                ("PUT", Some("blocklist")) => Some(Self::Complete { id: key.to_owned() }),
                ("PUT", None) => Some(Self::Put),
                _ => None,
            },
            Dialect::Hub | Dialect::Http => None,
        }
    }
}

impl Uploads {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// The uploads that are neither complete nor ended.
    #[must_use]
    pub fn pending_uploads(&self) -> Vec<PendingUpload> {
        let state = self.uploads.lock();
        let pending = state.pending.values();
        let pending =
            pending.map(|one| PendingUpload { name: one.name.clone(), parts: one.parts.len() });
        pending.collect()
    }

    /// Sets the time at which all pending uploads were begun.
    pub fn date_uploads(&self, time: &str) {
        for pending in self.uploads.lock().pending.values_mut() {
            time.clone_into(&mut pending.begun);
        }
    }

    /// Answers a request that writes; `None` for others.
    pub(crate) fn write(&self, request: &Request<Bytes>) -> Option<Answer> {
        let path = unescape(request.uri().path().trim_start_matches('/'));
        let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
        let query = request.uri().query().unwrap_or_default();
        let ask = Ask::of(self.dialect, request.method(), key, query)?;
        let name = format!("{bucket}/{key}");
        let headers = request.headers();
        Some(match ask {
            Ask::Put => self.put(&name, headers, request.body().clone()),
            Ask::Begin => self.begin(&name),
            Ask::Part { id, number } => self.part(&name, id, number, request.body()),
            Ask::Complete { id } => self.complete(&name, &id, headers, request.body()),
            Ask::End { id } => match self.uploads.lock().pending.remove(&id) {
                Some(_) => with_status(204, Response::new(instant(Bytes::new()))),
                None => self.refuse(404, "NoSuchUpload"),
            },
            Ask::List { prefix, after } => self.list_uploads(bucket, &prefix, &after),
        })
    }

    /// Whether a condition keeps an object from being made.
    fn is_in_the_way(&self, name: &str, headers: &HeaderMap) -> bool {
        let generation = headers.get("x-goog-if-generation-match");
        let creates = headers.get(IF_NONE_MATCH).is_some_and(|value| value == "*")
            || generation.is_some_and(|value| value == "0");
        creates && !self.ignores_conditions && self.objects.get(name).is_some()
    }

    fn in_the_way(&self) -> Answer {
        if self.dialect == Dialect::Azure {
            self.refuse(409, "BlobAlreadyExists")
        } else {
            self.refuse(412, "PreconditionFailed")
        }
    }

    fn put(&self, name: &str, headers: &HeaderMap, bytes: Bytes) -> Answer {
        if self.is_in_the_way(name, headers) {
            return self.in_the_way();
        }
        let tag = (self.dialect == Dialect::S3).then(|| tag_of(&bytes));
        self.objects.put_tagged(name, bytes, tag);
        self.tagged(name, Bytes::new())
    }

    /// An answer with the tag of a stored object.
    fn tagged(&self, name: &str, body: Bytes) -> Answer {
        let mut answer = Response::new(instant(body));
        let tag = self.objects.get(name).and_then(|object| object.tag().parse().ok());
        answer.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
        if self.dialect == Dialect::Azure {
            answer = with_status(201, answer);
        }
        answer
    }

    fn begin(&self, name: &str) -> Answer {
        let mut state = self.uploads.lock();
        state.begun += 1;
        let id = format!("upload/{}+=", state.begun);
        let begun = "2022-01-01T00:00:00.000Z".to_owned();
        let pending = Pending { name: name.to_owned(), parts: BTreeMap::new(), begun };
        state.pending.insert(id.clone(), pending);
        let (bucket, key) = name.split_once('/').unwrap_or_default();
        let key = escape(key);
        let text = format!(
            "<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{key}</Key>\
             <UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        );
        Response::new(instant(text.into()))
    }

    fn part(&self, name: &str, id: String, number: String, bytes: &Bytes) -> Answer {
        let mut state = self.uploads.lock();
        let pending = if self.dialect == Dialect::Azure {
            state.pending.entry(id).or_insert_with(|| Pending {
                name: name.to_owned(),
                parts: BTreeMap::new(),
                begun: String::new(),
            })
        } else {
            match state.pending.get_mut(&id).filter(|pending| pending.name == name) {
                Some(pending) => pending,
                None => return self.refuse(404, "NoSuchUpload"),
            }
        };
        let mut answer = Response::new(instant(Bytes::new()));
        let tag = tag_of(bytes).parse();
        pending.parts.insert(number, bytes.clone());
        if self.dialect == Dialect::Azure {
            return with_status(201, answer);
        }
        answer.headers_mut().extend(tag.ok().map(|tag| (ETAG, tag)));
        answer
    }

    fn complete(&self, name: &str, id: &str, headers: &HeaderMap, body: &Bytes) -> Answer {
        let mut state = self.uploads.lock();
        let Some(pending) = state.pending.get(id).filter(|pending| pending.name == name) else {
            return if self.dialect == Dialect::Azure {
                self.refuse(400, "InvalidBlockList")
            } else {
                self.refuse(404, "NoSuchUpload")
            };
        };
        if self.is_in_the_way(name, headers) {
            return self.in_the_way();
        }
        if self.completes_nothing {
            return self.refuse(503, "SlowDown");
        }
        let text = String::from_utf8_lossy(body);
        let named: Vec<Named> = if self.dialect == Dialect::Azure {
            let ids = elements(&text, "Uncommitted").into_iter().chain(elements(&text, "Latest"));
            ids.map(|number| Named { number, tag: None }).collect()
        } else {
            let part = |part: &String| Named {
                number: element(part, "PartNumber").unwrap_or_default(),
                tag: element(part, "ETag"),
            };
            elements(&text, "Part").iter().map(part).collect()
        };
        let len = pending.parts.values().map(Bytes::len).sum();
        let mut object = BytesMut::with_capacity(len);
        let mut tags = Md5::new();
        let mut first = None;
        for (place, Named { number, tag }) in named.iter().enumerate() {
            let Some(bytes) = pending.parts.get(number) else {
                return self.refuse(400, "InvalidPart");
            };
            let is_last = place + 1 == named.len();
            // Cloudflare R2 refuses parts of other lengths than the first one.
            let is_equal = bytes.len() == *first.get_or_insert(bytes.len());
            if self.dialect != Dialect::Azure && !is_last {
                if bytes.len() < self.least_part {
                    return self.refuse(400, "EntityTooSmall");
                }
                if self.wants_equal_parts && !is_equal {
                    return self.refuse(400, "InvalidPart");
                }
            }
            if tag.as_ref().is_some_and(|tag| *tag != tag_of(bytes)) {
                return self.refuse(400, "InvalidPart");
            }
            object.extend_from_slice(bytes);
            tags.update(Md5::digest(bytes));
        }
        state.pending.remove(id);
        let tag = format!("\"{}-{}\"", hex(&tags.finalize()), named.len());
        let tag = (self.dialect == Dialect::S3).then_some(tag);
        self.objects.put_tagged(name, object.freeze(), tag);
        let tag = self.objects.get(name).map(|object| escape(&object.tag())).unwrap_or_default();
        let text = format!(
            "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        );
        let body = if self.dialect == Dialect::Azure { Bytes::new() } else { text.into() };
        self.tagged(name, body)
    }

    fn list_uploads(&self, bucket: &str, prefix: &str, after: &str) -> Answer {
        let state = self.uploads.lock();
        let start = format!("{bucket}/{prefix}");
        let mut found: Vec<_> =
            state.pending.iter().filter(|(_, pending)| pending.name.starts_with(&start)).collect();
        found.sort_by(|(id, one), (other_id, other)| (&one.name, id).cmp(&(&other.name, other_id)));
        let skipped = found.iter().position(|(id, _)| *id == after).map_or(0, |place| place + 1);
        let rest = &found[skipped..];
        let page = &rest[..rest.len().min(self.uploads_per_page)];
        let mut text = String::from("<ListMultipartUploadsResult>");
        let key_of = |name: &str| escape(name.split_once('/').unwrap_or_default().1);
        for (id, Pending { name, begun, .. }) in page {
            // Writing to a string does not fail.
            let key = key_of(name);
            let written = write!(
                text,
                "<Upload><Key>{key}</Key><UploadId>{id}</UploadId><Initiated>{begun}</Initiated></Upload>"
            );
            written.unwrap_or_default();
        }
        let is_cut = page.len() < rest.len();
        if let Some((id, last)) = page.last().filter(|_| is_cut) {
            let key = key_of(&last.name);
            let written = write!(
                text,
                "<NextKeyMarker>{key}</NextKeyMarker><NextUploadIdMarker>{id}</NextUploadIdMarker>"
            );
            written.unwrap_or_default();
        }
        let end = format!("<IsTruncated>{is_cut}</IsTruncated></ListMultipartUploadsResult>");
        text.push_str(&end);
        let mut answer = Response::new(instant(text.into()));
        answer.headers_mut().insert(DATE, HeaderValue::from_static(NOW));
        answer
    }
}

/// The tag of an object or a part in S3, which is its MD5.
fn tag_of(bytes: &[u8]) -> String {
    format!("\"{}\"", hex(&Md5::digest(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn with_status(status: u16, mut answer: Answer) -> Answer {
    *answer.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    if status == 201 {
        let name = HeaderName::from_static("x-ms-request-server-encrypted");
        answer.headers_mut().extend("true".parse().ok().map(|value| (name, value)));
    }
    answer
}
