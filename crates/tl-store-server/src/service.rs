//! Answers to requests.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_MATCH,
    LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use tokio::time::sleep;

use crate::body::{End, Link, instant, slow};
use crate::dialect::{Ask, COMMIT, Dialect, MODIFIED, query_value};
use crate::fault::{Fault, Faults, unit};
use crate::objects::{Object, Objects};
use crate::uploads::Uploads;

/// The speed of answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// The median time before the first byte.
    pub first_byte: Duration,
    /// The spread of that time: the standard deviation of its logarithm.
    pub sigma: f64,
    /// Bytes a second of one connection.
    pub rate: f64,
    /// Bytes a second of all connections together.
    pub link: f64,
}

impl Speed {
    /// Without any delay.
    pub const INSTANT: Self =
        Self { first_byte: Duration::ZERO, sigma: 0.0, rate: f64::INFINITY, link: f64::INFINITY };
}

/// Requests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests for bytes of objects.
    pub gets: u64,
    /// `HEAD` requests.
    pub heads: u64,
    /// Requests for pages of listings.
    pub lists: u64,
    /// Requests with bytes of objects.
    pub puts: u64,
    /// Bytes of objects that were received.
    pub received: u64,
    /// Bytes of bodies that were begun.
    pub bytes: u64,
    /// Requests under way at once, at most.
    pub most_at_once: u64,
}

/// A store in memory.
#[derive(Debug)]
pub struct Service {
    /// The stored objects.
    pub objects: Objects,
    /// The language it speaks.
    pub dialect: Dialect,
    /// The speed of its answers.
    pub speed: Speed,
    /// The faults of its answers.
    pub faults: Faults,
    /// The seed of the times of first bytes.
    pub seed: u64,
    /// Whether `If-Match` is overlooked, as some stores do.
    pub ignores_conditions: bool,
    /// Whether listings name the versions of objects, which some stores leave out.
    pub lists_versions: bool,
    /// The commit that every data set of the hub is at. Files can be read at any.
    pub commit: String,
    /// The name of the key that requests must be signed with; the signature is not checked.
    pub key: Option<String>,
    /// The least bytes of a part of an upload that is not the last: 5 MiB, as in S3.
    pub least_part: usize,
    /// Whether all parts of an upload but the last must have the same length, as in Cloudflare R2.
    pub wants_equal_parts: bool,
    /// Whether requests that complete an upload are refused with 503.
    pub completes_nothing: bool,
    /// The most uploads of a page of their listing.
    pub uploads_per_page: usize,
    pub(crate) uploads: Uploads,
    link: Link,
    requests: AtomicU64,
    gets: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    puts: AtomicU64,
    received: AtomicU64,
    bytes: AtomicU64,
    now: AtomicU64,
    most: AtomicU64,
}

/// One request under way.
struct Visit<'a>(&'a Service);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

type Answer = Response<BoxBody<Bytes, io::Error>>;

impl Service {
    /// A store without objects that answers at once.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            objects: Objects::default(),
            dialect,
            speed: Speed::INSTANT,
            faults: Faults::None,
            seed: 1,
            ignores_conditions: false,
            lists_versions: true,
            commit: COMMIT.to_owned(),
            key: None,
            least_part: 5 << 20,
            wants_equal_parts: true,
            completes_nothing: false,
            uploads_per_page: 1_000,
            uploads: Uploads::default(),
            link: Link::default(),
            requests: AtomicU64::new(0),
            gets: AtomicU64::new(0),
            heads: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            puts: AtomicU64::new(0),
            received: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            now: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }
    }

    /// Requests so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            gets: of(&self.gets),
            heads: of(&self.heads),
            lists: of(&self.lists),
            puts: of(&self.puts),
            received: of(&self.received),
            bytes: of(&self.bytes),
            most_at_once: of(&self.most),
        }
    }

    /// Answers a request.
    pub async fn respond(&self, request: &Request<Bytes>) -> Answer {
        let method = request.method();
        let uri = request.uri();
        let headers = request.headers();
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let _visit = Visit(self);
        let fault = self.faults.of(number);
        self.take(request.body().len()).await;
        sleep(self.first_byte(number)).await;
        match fault {
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::SlowDown) => return self.refuse(503, "SlowDown"),
            Some(Fault::TooMany) => {
                let mut answer = self.refuse(429, "TooManyRequests");
                answer.headers_mut().insert(RETRY_AFTER, 1.into());
                return answer;
            }
            Some(Fault::Forbidden) => return self.refuse(403, "AccessDenied"),
            Some(Fault::Missing) => return self.refuse(404, "NoSuchKey"),
            Some(Fault::Redirect) => {
                let mut answer = self.refuse(307, "TemporaryRedirect");
                let location = uri.to_string().parse();
                answer.headers_mut().extend(location.ok().map(|location| (LOCATION, location)));
                return answer;
            }
            _ => {}
        }
        let ask = self.dialect.ask(uri.path(), uri.query().unwrap_or_default());
        if self.dialect == Dialect::Hub && matches!(ask, Ask::Object { .. }) {
            // The address is signed; a token besides would be another's to see.
            if headers.contains_key(AUTHORIZATION) || uri.query() != Some("Signature=planted") {
                return self.refuse(403, "SignatureDoesNotMatch");
            }
        } else if let Some(key) = &self.key {
            let signed = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
            // The signature of a request may be in its query.
            let named = query_value(uri.query().unwrap_or_default(), "X-Amz-Credential");
            let named = named.map(|named| format!("={named}"));
            match signed.or(named.as_deref()) {
                None => return self.refuse(403, "AccessDenied"),
                Some(signed)
                    if self.dialect == Dialect::Hub && signed == format!("Bearer {key}") => {}
                Some(signed) if !signed.contains(&format!("={key}/")) => {
                    return self.refuse(403, "InvalidAccessKeyId");
                }
                Some(_) => {}
            }
        }
        if let Some(answer) = self.write(request) {
            if fault == Some(Fault::Lost) {
                std::future::pending::<()>().await;
            }
            return answer;
        }
        match ask {
            Ask::Commit { bucket } if self.objects.has_bucket(&bucket) => {
                let text = format!(r#"{{"sha":"{}"}}"#, self.commit);
                Response::new(instant(text.into()))
            }
            Ask::Commit { .. } => self.refuse(404, "RepoNotFound"),
            Ask::Address { bucket, key } => self.address(&bucket, &key, uri, headers),
            Ask::Object { bucket, key } => self.object(&bucket, &key, method, headers, fault),
            Ask::List { bucket, prefix, by_folder, after, most } => {
                self.lists.fetch_add(1, Ordering::Relaxed);
                self.list(&bucket, &prefix, by_folder, &after, most)
            }
        }
    }

    /// Sends a request for a file to another host, or to another name of this one.
    fn address(&self, bucket: &str, key: &str, uri: &http::Uri, headers: &HeaderMap) -> Answer {
        if self.objects.get(&format!("{bucket}/{key}")).is_none() {
            return self.refuse(404, "EntryNotFound");
        }
        let host = headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
        let port = host.or(uri.host()).and_then(|host| host.split_once(':')).map(|(_, port)| port);
        let host = port.map_or_else(|| "files.test".to_owned(), |port| format!("localhost:{port}"));
        let (_, at) = uri.path().split_once("/resolve/").unwrap_or_default();
        let (_, file) = at.split_once('/').unwrap_or_default();
        let location = format!("http://{host}/files/{bucket}/{file}?Signature=planted");
        let mut answer = self.refuse(302, "Found");
        answer.headers_mut().extend(location.parse().ok().map(|location| (LOCATION, location)));
        answer
    }

    /// Waits as long as the bytes of a request take.
    async fn take(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        let body = slow(vec![0; bytes].into(), self.speed, &self.link, End::Whole);
        if self.speed.rate.is_finite() || self.speed.link.is_finite() {
            // Bytes of zeros arrive as fast as those of the request.
            drop(http_body_util::BodyExt::collect(body).await);
        }
    }

    /// A time of a log-normal distribution, by the request's number.
    fn first_byte(&self, number: u64) -> Duration {
        // Box and Muller 1958.
        let radius = (-2.0 * (1.0 - unit(self.seed, number)).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * unit(!self.seed, number)).cos();
        self.speed.first_byte.mul_f64((self.speed.sigma * normal).exp())
    }

    pub(crate) fn refuse(&self, status: u16, code: &str) -> Answer {
        let body = instant(self.dialect.error(code).into());
        let mut answer = Response::new(body);
        *answer.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        answer
    }

    fn object(
        &self,
        bucket: &str,
        key: &str,
        method: &Method,
        headers: &HeaderMap,
        fault: Option<Fault>,
    ) -> Answer {
        let is_head = method == Method::HEAD;
        let counter = if is_head { &self.heads } else { &self.gets };
        counter.fetch_add(1, Ordering::Relaxed);
        if !is_head && method != Method::GET {
            return self.refuse(405, "MethodNotAllowed");
        }
        let Some(object) = self.objects.get(&format!("{bucket}/{key}")) else {
            let has_bucket = self.objects.has_bucket(bucket);
            return self.refuse(404, if has_bucket { "NoSuchKey" } else { "NoSuchBucket" });
        };
        let condition = headers.get(IF_MATCH).and_then(|value| value.to_str().ok());
        if condition.is_some_and(|tag| tag != object.tag()) && !self.ignores_conditions {
            return self.refuse(412, "PreconditionFailed");
        }
        let len = object.len();
        let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
        let range = match range.map(|range| bounds(range, len)) {
            None => 0..len,
            Some(Some(range)) => range,
            Some(None) => {
                let mut answer = self.refuse(416, "InvalidRange");
                let all = format!("bytes */{len}").parse();
                answer.headers_mut().extend(all.ok().map(|all| (CONTENT_RANGE, all)));
                return answer;
            }
        };
        let is_partial = headers.contains_key(RANGE) && fault != Some(Fault::Whole) && !is_head;
        let range = if is_partial { range } else { 0..len };
        self.range(&object, range, is_partial, is_head, fault)
    }

    fn range(
        &self,
        object: &Object,
        range: Range<u64>,
        is_partial: bool,
        is_head: bool,
        fault: Option<Fault>,
    ) -> Answer {
        let len = object.len();
        let shift = u64::from(fault == Some(Fault::OtherRange));
        let range = (range.start + shift).min(range.end)..range.end;
        let bytes = if is_head { Bytes::new() } else { object.bytes(range.clone()) };
        let half = bytes.slice(..bytes.len() / 2);
        let (body, end) = match fault {
            _ if is_head => (Bytes::new(), End::Whole),
            Some(Fault::Reset) => (half, End::Reset),
            Some(Fault::Short) => (half, End::Whole),
            Some(Fault::Stall) => (half, End::Stall),
            Some(Fault::Long) => {
                let mut longer = BytesMut::from(&*bytes);
                longer.extend_from_slice(b"7 bytes");
                (longer.freeze(), End::Whole)
            }
            _ => (bytes, End::Whole),
        };
        self.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let mut answer = Response::new(slow(body, self.speed, &self.link, end));
        let length = if is_head { len } else { range.end - range.start };
        let mut header = |name, value: String| {
            answer.headers_mut().extend(value.parse().ok().map(|value| (name, value)));
        };
        let tag = if fault == Some(Fault::OtherTag) { "\"other\"".into() } else { object.tag() };
        header(ETAG, tag);
        header(LAST_MODIFIED, MODIFIED.to_owned());
        header(ACCEPT_RANGES, "bytes".to_owned());
        // Without a length where the body has another: the connection's end is its end.
        if !matches!(fault, Some(Fault::Short | Fault::Long)) {
            header(CONTENT_LENGTH, length.to_string());
        }
        if self.dialect == Dialect::Gcs {
            let name = http::HeaderName::from_static("x-goog-generation");
            header(name, object.generation().to_string());
        }
        if fault == Some(Fault::Gzip) {
            header(CONTENT_ENCODING, "gzip".to_owned());
        }
        if is_partial {
            let last = range.end.saturating_sub(1);
            header(CONTENT_RANGE, format!("bytes {}-{last}/{len}", range.start));
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        answer
    }

    fn list(
        &self,
        bucket: &str,
        prefix: &str,
        by_folder: bool,
        after: &str,
        most: usize,
    ) -> Answer {
        if !self.objects.has_bucket(bucket) {
            return self.refuse(404, "NoSuchBucket");
        }
        let mut objects = Vec::new();
        let mut folders: Vec<String> = Vec::new();
        let mut next = None;
        let mut last = String::new();
        for (key, object) in self.objects.keys(bucket, prefix, after) {
            let below = key.get(prefix.len()..).and_then(|rest| rest.split_once('/'));
            let folder = below.filter(|_| by_folder).map(|(name, _)| format!("{prefix}{name}/"));
            // A page that ended with a folder went past its keys.
            let is_known = folder.as_ref().is_some_and(|folder| {
                folders.last() == Some(folder) || after.starts_with(folder.as_str())
            });
            if is_known {
                continue;
            }
            if objects.len() + folders.len() == most {
                next = Some(last);
                break;
            }
            match folder {
                Some(folder) => {
                    last.clone_from(&folder);
                    folders.push(folder);
                }
                None => {
                    last.clone_from(&key);
                    objects.push((key, object));
                }
            }
        }
        let mut page = self.dialect.page(prefix, &objects, &folders, next.as_deref());
        if !self.lists_versions {
            page = page.replace("ETag>", "Owner>");
        }
        let mut answer = Response::new(slow(page.into(), self.speed, &self.link, End::Whole));
        if let (Dialect::Hub, Some(next)) = (self.dialect, next) {
            let folder = prefix.trim_end_matches('/');
            let recursive = if by_folder { "" } else { "recursive=true&" };
            let link = format!(
                "</api/datasets/o/{bucket}/tree/{}/{folder}?{recursive}cursor={next}>; \
                 rel=\"next\"",
                self.commit
            );
            let link = link.replace(' ', "%20").replace(";%20", "; ");
            answer.headers_mut().extend(link.parse().ok().map(|link| (http::header::LINK, link)));
        }
        answer
    }
}

/// The range in `bytes=FIRST-[LAST]` or `bytes=-SUFFIX`; `None` outside the object.
fn bounds(range: &str, len: u64) -> Option<Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let suffix: u64 = last.parse().ok()?;
        return (suffix > 0 && len > 0).then(|| len.saturating_sub(suffix)..len);
    }
    let start: u64 = first.parse().ok()?;
    let end = last.parse().map_or(len, |last: u64| last.saturating_add(1).min(len));
    (start < end).then_some(start..end)
}
