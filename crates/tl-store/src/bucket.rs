//! Requests to one bucket or web server.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{IF_MATCH, IF_UNMODIFIED_SINCE, RANGE};
use http::{Extensions, Method, StatusCode};
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use reqwest::Url;
use tbl_io::RetryPolicy;
use tokio::time::Instant;

use crate::address::redact;
use crate::answer::{self, Head};
use crate::cause::Cause;
use crate::clients::Client;
use crate::connections::Connections;
use crate::counters::Counters;
use crate::gate::{Answer, BucketElsewhere, ForbiddenHost, Gate, Ticket};
use crate::hub::{Hub, HubOptions};
use crate::list::Page;
use crate::pace::{Pace, RETRY};
use crate::redirect::follow;
use crate::transfer::refusal;
use crate::version::Version;

/// A bucket, or a web server, and how it is doing.
pub(crate) struct Bucket {
    kind: Kind,
    /// The address of the store, unless it is the usual one of its kind.
    pub(crate) endpoint: Option<String>,
    /// Whether objects without a version may be read.
    pub(crate) unpinned: bool,
    pub(crate) has_hedges: bool,
    /// The tries of a request.
    pub(crate) retry: RetryPolicy,
    pub(crate) connections: Arc<Connections>,
    pub(crate) pace: Pace,
    pub(crate) counters: Arc<Counters>,
    random: AtomicU64,
}

enum Kind {
    Client(Client),
    Hub(Box<Hub>),
    Web(Gate),
}

/// An object of a bucket.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Path {
        path: Path,
        /// The version that the user named.
        version: Option<String>,
    },
    Url(Url),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, .. } => write!(f, "{:?}", path.as_ref()),
            // The query may sign the request.
            Self::Url(url) => write!(f, "{:?}", redact(url.as_str())),
        }
    }
}

/// The limits of a bucket's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) deadline: Duration,
    pub(crate) hedge: bool,
}

impl Bucket {
    pub(crate) fn of_client(client: Client, limits: Limits, counters: Arc<Counters>) -> Self {
        let endpoint = client.endpoint.clone();
        let unpinned = client.unpinned;
        Self::new(Kind::Client(client), endpoint, unpinned, limits, counters)
    }

    pub(crate) fn of_web(
        gate: Gate,
        unpinned: bool,
        limits: Limits,
        counters: Arc<Counters>,
    ) -> Self {
        Self::new(Kind::Web(gate), None, unpinned, limits, counters)
    }

    pub(crate) fn of_hub(
        hub: Hub,
        options: HubOptions,
        limits: Limits,
        counters: Arc<Counters>,
    ) -> Self {
        let HubOptions { common, endpoint, .. } = options;
        Self::new(Kind::Hub(Box::new(hub)), endpoint, common.unpinned, limits, counters)
    }

    fn new(
        kind: Kind,
        endpoint: Option<String>,
        unpinned: bool,
        limits: Limits,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            kind,
            endpoint,
            unpinned,
            has_hedges: limits.hedge,
            retry: RetryPolicy { deadline: limits.deadline, ..RETRY },
            connections: Arc::new(Connections::new(limits.connections)),
            pace: Pace::new(),
            counters,
            random: AtomicU64::new(RandomState::new().hash_one(0)),
        }
    }

    /// Whether requests have credentials.
    pub(crate) fn is_signed(&self) -> bool {
        match &self.kind {
            Kind::Client(client) => client.has_credentials,
            Kind::Hub(hub) => hub.has_token(),
            Kind::Web(_) => false,
        }
    }

    /// The client of a bucket; `None` for the hub and web servers, which are only read.
    pub(crate) fn client(&self) -> Option<&Client> {
        match &self.kind {
            Kind::Client(client) => Some(client),
            Kind::Hub(_) | Kind::Web(_) => None,
        }
    }

    /// Counts bytes of ranges.
    pub(crate) fn arrived(&self, bytes: usize) {
        self.connections.received(bytes);
        self.counters.received(bytes);
    }

    /// Slows the requests down where the answer asks for that.
    pub(crate) fn note(&self, cause: &Cause) {
        if cause.is_throttling() {
            self.connections.throttled();
        }
        if let Cause::Status { retry_after: Some(pause), status, code } = cause {
            self.connections.pause_growth(Instant::now() + *pause);
            self.pace.pause(*pause, *status, code.as_deref());
        }
    }

    /// A number from 0 to 1 for delays.
    pub(crate) fn random(&self) -> f64 {
        // SplitMix64 (Steele, Lea and Flood 2014) over a counter.
        let mut x = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((x ^ (x >> 31)) >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }

    /// Asks for a range of an object, in this version if one is given.
    pub(crate) async fn get(
        &self,
        key: &Key,
        range: &Range<u64>,
        version: Option<&Version>,
        pool: usize,
    ) -> Result<Answer, Cause> {
        match (&self.kind, key) {
            (Kind::Client(client), Key::Path { path, version: named }) => {
                let options = GetOptions {
                    range: Some(GetRange::Bounded(range.clone())),
                    if_match: version.and_then(Version::if_match),
                    version: named.clone(),
                    ..GetOptions::default()
                };
                signed(client, path, options, pool).await
            }
            (Kind::Web(gate), Key::Url(url)) => {
                let mut headers = vec![(RANGE, format!("bytes={}-{}", range.start, range.end - 1))];
                match version {
                    Some(Version::Modified(date)) => {
                        headers.push((IF_UNMODIFIED_SINCE, date.clone()));
                    }
                    Some(version) => headers.extend(version.if_match().map(|tag| (IF_MATCH, tag))),
                    None => {}
                }
                let answer = follow(gate, &Method::GET, url.clone(), &headers, pool, None).await;
                answer.map(|(answer, _)| answer)
            }
            (Kind::Hub(hub), Key::Path { path, .. }) => hub.get(path, range, version, pool).await,
            (Kind::Client(_) | Kind::Hub(_), Key::Url(_)) | (Kind::Web(_), Key::Path { .. }) => {
                unreachable!("keys are made for their bucket")
            }
        }
    }

    /// Asks for the length and the version of an object.
    pub(crate) async fn head(&self, key: &Key) -> Result<Head, Cause> {
        let answer = match (&self.kind, key) {
            (Kind::Client(client), Key::Path { path, version }) => {
                let version = version.clone();
                let options = GetOptions { head: true, version, ..GetOptions::default() };
                signed(client, path, options, 0).await?
            }
            (Kind::Web(gate), Key::Url(url)) => {
                follow(gate, &Method::HEAD, url.clone(), &[], 0, None).await?.0
            }
            (Kind::Hub(hub), Key::Path { path, .. }) => return hub.head(path).await,
            (Kind::Client(_) | Kind::Hub(_), Key::Url(_)) | (Kind::Web(_), Key::Path { .. }) => {
                unreachable!("keys are made for their bucket")
            }
        };
        let (parts, body) = answer.into_parts();
        if !parts.status.is_success() {
            return Err(refusal(&parts, body).await);
        }
        answer::check_head(&parts).map_err(Cause::Defect)
    }

    /// A page of the keys below a prefix. With `by_folder` it has the objects of the prefix itself,
    /// and the prefixes of those below. A web server, which lists nothing, is not asked.
    pub(crate) async fn page(
        &self,
        prefix: &str,
        by_folder: bool,
        token: Option<String>,
    ) -> Result<Page, Cause> {
        let client = match &self.kind {
            Kind::Client(client) => client,
            Kind::Hub(hub) => return hub.page(prefix, by_folder, token).await,
            Kind::Web(_) => return Err(Cause::Forbidden { host: Box::default() }),
        };
        let options = PaginatedListOptions {
            delimiter: by_folder.then_some("/".into()),
            page_token: token,
            ..PaginatedListOptions::default()
        };
        let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
        let page = client.pages.list_paginated(prefix, options).await;
        page.map(Page::from).map_err(|error| not_listed(&error))
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Has a request built and signed by the client, and takes its answer from the gate.
async fn signed(
    client: &Client,
    path: &Path,
    options: GetOptions,
    pool: usize,
) -> Result<Answer, Cause> {
    let ticket = Ticket::new(pool);
    let mut extensions = Extensions::new();
    extensions.insert(ticket.clone());
    let options = GetOptions { extensions, ..options };
    let result = client.store.get_opts(path, options).await;
    match (ticket.take(), result) {
        (Some(answer), _) => answer.map_err(Cause::from),
        (None, Err(error)) => Err(failed(&error)),
        (None, Ok(_)) => unreachable!("the gate gives no answer to a request with a ticket"),
    }
}

/// The cause of an error instead of a page.
fn not_listed(error: &object_store::Error) -> Cause {
    use object_store::path::Error::{BadSegment, EmptySegment};
    if let object_store::Error::InvalidPath { source } = error
        && let EmptySegment { path } | BadSegment { path, .. } = source
    {
        return Cause::Key(path.as_str().into());
    }
    let cause = failed(error);
    // The client's errors tell only by their text that an answer came: no credentials are missing.
    if matches!(cause, Cause::Credentials(_)) && error.to_string().contains("list response") {
        let text = "the store's answer is not a page of a listing";
        return Cause::Broken(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
    }
    cause
}

/// The cause of an error that the client found, or that a request without a ticket ended with.
pub(crate) fn failed(error: &object_store::Error) -> Cause {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut text = String::new();
    while let Some(error) = source {
        if let Some(ForbiddenHost(host)) = error.downcast_ref() {
            return Cause::Forbidden { host: host.clone() };
        }
        if let Some(BucketElsewhere(region)) = error.downcast_ref() {
            return Cause::OtherRegion { region: region.clone() };
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Cause::Broken(std::io::Error::new(error.kind(), error.to_string()));
        }
        text = error.to_string();
        source = error.source();
    }
    let Some(status) = status(&text) else {
        return Cause::Credentials(text.escape_debug().to_string().into());
    };
    let headers = http::HeaderMap::new();
    let code = answer::error_code(&headers, text.as_bytes());
    match answer::other_region(status, &headers, code.as_deref(), text.as_bytes()) {
        Some(region) => Cause::OtherRegion { region },
        None => Cause::Status { status: status.as_u16(), code, retry_after: None },
    }
}

/// The status in the text of the client's innermost error, which has no other way to tell it.
fn status(text: &str) -> Option<StatusCode> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}
