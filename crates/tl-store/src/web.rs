//! The network: HTTP over TLS by `reqwest`.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::gate::{Body, Transport, is_loopback, is_metadata, is_metadata_address};

/// Connections are kept for so long without a request. Stores close them after some 20 s or more.
const IDLE: Duration = Duration::from_secs(15);
/// The wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Two pools of connections, so that a hedge takes another connection than the request that is
/// late, and most often another server.
#[derive(Debug)]
pub(crate) struct Web {
    pools: [reqwest::Client; 2],
    /// The same for hosts on this machine, which no proxy stands between.
    local: [reqwest::Client; 2],
}

impl Web {
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub(crate) fn new() -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(io::Error::other)?
            .with_no_client_auth();
        let pool = |is_local: bool| {
            let builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .http1_only()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .connect_timeout(CONNECT)
                .pool_idle_timeout(IDLE)
                .dns_resolver(Resolver);
            let builder = if is_local { builder.no_proxy() } else { builder };
            builder.build().map_err(io::Error::other)
        };
        Ok(Self { pools: [pool(false)?, pool(false)?], local: [pool(true)?, pool(true)?] })
    }
}

#[async_trait]
impl Transport for Web {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        pool: usize,
    ) -> io::Result<http::Response<Body>> {
        let is_local = request.uri().host().is_some_and(is_loopback);
        let pools = if is_local { &self.local } else { &self.pools };
        let request = reqwest::Request::try_from(request).map_err(|error| failed(&error))?;
        let sent = pools[pool % pools.len()].execute(request).await;
        let answer = http::Response::from(sent.map_err(|error| failed(&error))?);
        Ok(answer.map(|body: reqwest::Body| body.map_err(|error| failed(&error)).boxed()))
    }
}

/// The innermost reason, which says all that there is to say, without the URL.
fn failed(error: &reqwest::Error) -> io::Error {
    let mut kind = if error.is_connect() {
        io::ErrorKind::NotConnected
    } else if error.is_timeout() {
        io::ErrorKind::TimedOut
    } else {
        io::ErrorKind::ConnectionAborted
    };
    let mut text = String::new();
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            kind = error.kind();
        }
        text = error.to_string();
        source = error.source();
    }
    if text.is_empty() {
        text = "the request failed".to_owned();
    }
    io::Error::new(kind, text.escape_debug().to_string())
}

/// Resolves names by the system, and leaves out addresses where metadata servers are. Their own
/// names pass: the gate allows them only where the user asked for that.
#[derive(Clone, Copy, Debug)]
struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_metadata = is_metadata(name.as_str());
            let allowed = |address: &SocketAddr| is_metadata || !is_metadata_address(address.ip());
            let allowed: Vec<_> = found.filter(allowed).collect();
            if allowed.is_empty() {
                let text = "the name has no address outside the local link";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
