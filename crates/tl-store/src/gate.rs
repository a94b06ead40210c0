//! The only way from this crate to the network.
//!
//! Every request of every client passes [`Gate`]: it refuses hosts that the store does not consist
//! of, counts, and hands answers to reads of ranges before another library looks at them.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Method, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

use crate::answer::other_region;
use crate::counters::Counters;

/// The body of an answer, as it arrives.
pub(crate) type Body = BoxBody<Bytes, io::Error>;

/// An answer whose body has not been read.
pub(crate) type Answer = http::Response<Body>;

/// The largest answer that is not a range: a page of a listing, a token.
pub(crate) const MAX_DOCUMENT: usize = 32 << 20;

/// Sends requests. Tests have one that reaches a server in memory.
#[async_trait]
pub(crate) trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request over the pool of connections with this number, 0 or 1.
    ///
    /// # Errors
    /// When no answer arrives. [`InvalidData`](io::ErrorKind::InvalidData) is final: the server's
    /// certificate is refused, or it does not speak HTTP.
    async fn send(&self, request: http::Request<Bytes>, pool: usize) -> io::Result<Answer>;
}

/// The hosts that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// `SCHEME://HOST[:PORT]` of each.
    Only(Vec<String>),
    /// All hosts, encrypted or on this machine, except addresses of the local link.
    Web {
        /// Whether hosts elsewhere may be asked without encryption.
        allow_http: bool,
    },
}

impl Hosts {
    /// Whether a request may be sent there.
    pub(crate) fn allow(&self, uri: &Uri) -> bool {
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else { return false };
        match self {
            Self::Only(origins) => origins.iter().any(|origin| *origin == self::origin(uri)),
            Self::Web { allow_http } => {
                !is_metadata(host) && (scheme == "https" || is_loopback(host) || *allow_http)
            }
        }
    }
}

/// `SCHEME://HOST[:PORT]` of a URL.
pub(crate) fn origin(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{}", uri.scheme_str().unwrap_or_default(), host.to_ascii_lowercase())
}

/// Whether a host is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || address(host).is_some_and(|ip| ip.is_loopback())
}

/// Whether a host is where machines in clouds ask for their credentials: an address of the local
/// link, or one of the names and addresses that stand for it.
pub(crate) fn is_metadata(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    matches!(name.as_str(), "metadata" | "metadata.google.internal")
        || address(host).is_some_and(is_metadata_address)
}

/// As [`is_metadata`], for what a name resolves to.
pub(crate) fn is_metadata_address(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.octets() == [100, 100, 100, 200],
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => is_metadata_address(ip.into()),
            // fe80::/10, and fd00:ec2::/32 of AWS.
            None => ip.segments()[0] & 0xffc0 == 0xfe80 || ip.segments()[..2] == [0xfd00, 0x0ec2],
        },
    }
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Sends the requests of one store.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    transport: Arc<dyn Transport>,
    hosts: Arc<Hosts>,
    counters: Arc<Counters>,
}

/// The reason why a request was not answered.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    Forbidden { host: Box<str> },
    Broken(io::Error),
}

impl Gate {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        hosts: Hosts,
        counters: Arc<Counters>,
    ) -> Self {
        Self { transport, hosts: Arc::new(hosts), counters }
    }

    /// Sends a request to one of the allowed hosts.
    pub(crate) async fn send(
        &self,
        mut request: http::Request<Bytes>,
        pool: usize,
    ) -> Result<Answer, NoAnswer> {
        if !self.hosts.allow(request.uri()) {
            let host = request.uri().host().unwrap_or_default().into();
            return Err(NoAnswer::Forbidden { host });
        }
        // Not among the headers that are signed.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        self.counters.sent(&request);
        let answer = self.transport.send(request, pool).await.map_err(NoAnswer::Broken)?;
        self.counters.answered(answer.status());
        Ok(answer)
    }
}

/// The receiver of the answer to a request that [`object_store`] builds and signs. It travels as an
/// extension of the request to [`Gate`], which puts the answer in it.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pool: usize,
    answer: Arc<Mutex<Option<Result<Answer, NoAnswer>>>>,
}

impl Ticket {
    pub(crate) fn new(pool: usize) -> Self {
        Self { pool, answer: Arc::default() }
    }

    /// The answer; `None` if no request was sent.
    pub(crate) fn take(&self) -> Option<Result<Answer, NoAnswer>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

tokio::task_local! {
    /// The companion of the request that a task has [`object_store`] send.
    pub(crate) static SENDING: Sending;
}

/// A request that writes. It reaches [`Gate`] through [`SENDING`], or as an extension of the request;
/// requests for credentials on the way are not meant.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// Whether a request that completes an upload of S3 fails if there is an object.
    is_new: bool,
    shared: Arc<Sent>,
}

#[derive(Debug, Default)]
struct Sent {
    is_sent: AtomicBool,
    /// Bytes of the request that went to the network.
    moved: AtomicUsize,
    refused: Mutex<Option<Result<Answer, NoAnswer>>>,
}

impl Sending {
    pub(crate) fn new(is_new: bool) -> Self {
        Self { is_new, shared: Arc::default() }
    }

    /// The answer, if it was no success. [`object_store`] reads those of success.
    pub(crate) fn refused(&self) -> Option<Result<Answer, NoAnswer>> {
        self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the request itself was sent, and not only one for credentials.
    pub(crate) fn was_sent(&self) -> bool {
        self.shared.is_sent.load(Ordering::Relaxed)
    }

    /// The bytes that went to the network.
    pub(crate) fn moved(&self) -> usize {
        self.shared.moved.load(Ordering::Relaxed)
    }

    /// Counts bytes that went to the network.
    pub(crate) fn advance(&self, bytes: usize) {
        self.shared.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The one that a request belongs to.
    fn of<B>(request: &http::Request<B>) -> Option<Self> {
        let given = request.extensions().get::<Self>().cloned();
        given.or_else(|| {
            let query = request.uri().query().unwrap_or_default();
            let names = ["uploads", "uploadId", "comp"];
            let is_upload = query
                .split('&')
                .any(|pair| names.contains(&pair.split_once('=').map_or(pair, |(name, _)| name)));
            SENDING.try_with(Self::clone).ok().filter(|_| is_upload)
        })
    }

    /// Sends the request. The answer is one of success.
    async fn send(self, gate: &Gate, mut request: http::Request<Bytes>) -> Option<Answer> {
        self.shared.is_sent.store(true, Ordering::Relaxed);
        let query = request.uri().query().unwrap_or_default();
        let is_part = query.contains("partNumber=");
        if self.is_new && request.method() == Method::POST && query.contains("uploadId=") {
            // Not among the headers that are signed, which S3 asks for its own alone.
            request.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        request.extensions_mut().insert(self.clone());
        let refused = match gate.send(request, 0).await {
            Ok(answer) if answer.status().is_success() => {
                if !is_part || answer.headers().contains_key(ETAG) {
                    return Some(answer);
                }
                let text = "the store's answer to a part of an upload has no ETag";
                Err(NoAnswer::Broken(io::Error::new(io::ErrorKind::InvalidData, text)))
            }
            refused => refused,
        };
        *self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
        None
    }
}

/// The error that [`object_store`] gets in place of an answer that a [`Ticket`] has.
#[derive(Debug, thiserror::Error)]
#[error("the answer was taken")]
struct Taken;

/// A request that was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the host {0:?} may not be asked for this object")]
pub(crate) struct ForbiddenHost(pub(crate) Box<str>);

/// A request to another region than the bucket's, which the client would not name.
#[derive(Debug, thiserror::Error)]
#[error("the bucket is in {0}")]
pub(crate) struct BucketElsewhere(pub(crate) Box<str>);

#[async_trait]
impl HttpService for Gate {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        // Without a copy where it is in one piece.
        let body = body.collect().await?.to_bytes();
        let ticket = parts.extensions.get::<Ticket>().cloned();
        let request = http::Request::from_parts(parts, body);
        if let Some(ticket) = ticket {
            let answer = self.send(request, ticket.pool).await;
            *ticket.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            return Err(HttpError::new(HttpErrorKind::Unknown, Taken));
        }
        if let Some(sending) = Sending::of(&request) {
            let answer = sending.send(self, request).await.map(|answer| answer.map(document));
            return answer.ok_or_else(|| HttpError::new(HttpErrorKind::Unknown, Taken));
        }
        match self.send(request, 0).await {
            Ok(answer) => match other_region(answer.status(), answer.headers(), None, b"") {
                Some(region) => {
                    Err(HttpError::new(HttpErrorKind::Unknown, BucketElsewhere(region)))
                }
                None => Ok(answer.map(document)),
            },
            Err(NoAnswer::Forbidden { host }) => {
                Err(HttpError::new(HttpErrorKind::Unknown, ForbiddenHost(host)))
            }
            Err(NoAnswer::Broken(error)) => Err(HttpError::new(HttpErrorKind::Unknown, error)),
        }
    }
}

/// A body of bounded length.
fn document(body: Body) -> HttpResponseBody {
    let body = Limited::new(body, MAX_DOCUMENT);
    let error = |error| HttpError::new_boxed(HttpErrorKind::Interrupted, error);
    HttpResponseBody::new(body.map_err(error))
}

/// Gives [`object_store`] the gate in place of a client of its own.
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Gate);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hosts_of_a_store_are_asked() {
        let only = Hosts::Only(vec!["https://s3.eu.amazonaws.com".into(), "http://a:9000".into()]);
        let web = Hosts::Web { allow_http: false };
        let cases = [
            ("https://s3.eu.amazonaws.com/b/k", true, true),
            ("https://S3.EU.amazonaws.com/b/k", true, true),
            ("http://s3.eu.amazonaws.com/b/k", false, false),
            ("http://a:9000/k", true, false),
            ("http://a:9001/k", false, false),
            ("http://127.0.0.1:80/k", false, true),
            ("http://[::1]/k", false, true),
            ("https://169.254.169.254/latest", false, false),
            ("http://169.254.169.254/latest", false, false),
            ("https://[fe80::1]/", false, false),
            ("https://[fd00:ec2::254]/", false, false),
            ("https://[::ffff:169.254.169.254]/", false, false),
            ("https://metadata.google.internal./computeMetadata", false, false),
            ("https://100.100.100.200/", false, false),
            ("/k", false, false),
        ];
        for (uri, is_of_store, is_of_web) in cases {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(only.allow(&uri), is_of_store, "{uri}");
            assert_eq!(web.allow(&uri), is_of_web, "{uri}");
        }
        assert!(Hosts::Web { allow_http: true }.allow(&"http://host/k".parse().unwrap()));
    }
}
