//! The network: HTTP over TLS by `reqwest`.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

use crate::gate::{Body, Sending, Transport, is_loopback, is_metadata, is_metadata_address};
use crate::options::OptionError;

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

/// Reads root certificates from a PEM file.
///
/// # Errors
/// When the file cannot be read, or has no certificate or an invalid one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OptionError> {
    let fault = |message: String| OptionError::Certificates { message };
    let text = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| fault(format!("invalid PEM: {error}")))?;
        roots.add(certificate.clone()).map_err(|error| fault(error.to_string()))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(fault("the file has no certificate".to_owned()));
    }
    Ok(certificates)
}

impl Web {
    /// Connections to servers whose certificates the system or one of `roots` vouches for.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub(crate) fn new(roots: &[CertificateDer<'static>]) -> io::Result<Self> {
        Self::resolving(roots, &Arc::new(Resolver))
    }

    /// As [`new`](Self::new), with names that `resolver` looks up.
    pub(crate) fn resolving<R: Resolve + 'static>(
        roots: &[CertificateDer<'static>],
        resolver: &Arc<R>,
    ) -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = roots.iter().cloned();
        let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider));
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier.map_err(io::Error::other)?))
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
                .dns_resolver(Arc::clone(resolver));
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
        let sending = request.extensions().get::<Sending>().cloned();
        let request = request.map(|bytes| match sending {
            None => reqwest::Body::from(bytes),
            Some(sending) => reqwest::Body::wrap(Watched { bytes, sending }),
        });
        let request = reqwest::Request::try_from(request).map_err(|error| failed(&error))?;
        let sent = pools[pool % pools.len()].execute(request).await;
        let answer = http::Response::from(sent.map_err(|error| failed(&error))?);
        Ok(answer.map(|body: reqwest::Body| body.map_err(|error| failed(&error)).boxed()))
    }
}

/// The body of a request, which counts the bytes that the network took.
struct Watched {
    bytes: Bytes,
    sending: Sending,
}

/// The bytes that are counted at once: a fraction of what a socket holds.
const FRAME: usize = 64 << 10;

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let len = self.bytes.len().min(FRAME);
        self.sending.advance(len);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
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
        if let Some(mut error) = error.downcast_ref::<io::Error>() {
            // One may hold another that is not its source.
            while let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
                error = inner;
            }
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::path::PathBuf;

    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, Stream};
    use tbl_io::{Location, RangeFault, ReadError, Storage};

    use super::*;
    use crate::options::StoreOptions;
    use crate::store::RemoteStores;

    /// A certificate of 127.0.0.1 that only itself vouches for, and its key. It is made for this test.
    const PEM: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBRzCB7qADAgECAgEBMAoGCCqGSM49BAMCMBsxGTAXBgNVBAMMEHR1cmJvbG9h\n\
ZGVyIHRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBsxGTAX\n\
BgNVBAMMEHR1cmJvbG9hZGVyIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n\
AATCGSgKcuAkMxqnQG/9ShsKUCifwHGlC1MvD0bKk/PQGBnz/13VfjrF91ru2Rzi\n\
L3a7uuJqHBclReCdg7oyscQhoyEwHzAPBgNVHREECDAGhwR/AAABMAwGA1UdEwEB\n\
/wQCMAAwCgYIKoZIzj0EAwIDSAAwRQIhAJmRRotRGiyV+Ws+EeECiiuxyi/Afe2b\n\
tB87Mrz1PmecAiAsM7194/OsrXJW0Ivgz1DiIM9MDT4A/BMfj06eFrNs6Q==\n\
-----END CERTIFICATE-----\n\
-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLmNbpZ0+vXmUtjpt\n\
5tgQ0KzvqNjRRCz9ox4eL+Bf6yuhRANCAATCGSgKcuAkMxqnQG/9ShsKUCifwHGl\n\
C1MvD0bKk/PQGBnz/13VfjrF91ru2RziL3a7uuJqHBclReCdg7oyscQh\n\
-----END PRIVATE KEY-----\n";

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("roots.pem");
        std::fs::write(&path, text).unwrap();
        (root, path)
    }

    #[test]
    fn only_files_with_certificates_are_roots() {
        let (_root, good) = file(PEM);
        assert_eq!(certificates(&good).unwrap().len(), 1, "a key is not a certificate");
        for (text, expected) in [
            ("", "the file has no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "invalid PEM: "),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "BadEncoding"),
        ] {
            let (_root, path) = file(text);
            let refused = certificates(&path).unwrap_err().to_string();
            assert!(refused.contains(expected) && refused.contains("ca_certificate"), "{refused}");
        }
        let missing = certificates(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(missing.contains("No such file"), "{missing}");
    }

    /// Answers requests for ranges of `0123456789`, over TLS.
    fn serve(listener: &TcpListener) {
        let certificate = CertificateDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = Stream::new(&mut connection, &mut socket);
            // A client that refuses the certificate breaks off.
            let Ok(1..) = stream.read(&mut [0; 4096]) else { continue };
            let answer = b"HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Length: 10\r\n\
                Content-Range: bytes 0-9/10\r\nConnection: close\r\n\r\n0123456789";
            stream.write_all(answer).unwrap();
            connection.send_close_notify();
            connection.complete_io(&mut socket).unwrap();
        }
    }

    #[test]
    fn a_root_of_the_user_vouches_for_a_server() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = Location::new(format!("https://{}/k", listener.local_addr().unwrap()));
        // It ends with the process.
        std::thread::spawn(move || serve(&listener));
        let (_root, path) = file(PEM);
        let mut options = StoreOptions::default();
        let refused = RemoteStores::new(options.clone()).open(&url, None).unwrap_err();
        let ReadError::Store { source: RangeFault::NoAnswer { tries: 1, source, .. }, .. } =
            refused
        else {
            panic!("{refused}");
        };
        assert!(source.to_string().contains("certificate"), "{source}");
        let path = path.to_str().unwrap().to_owned();
        options.options.insert("ca_certificate".to_owned(), path);
        let object = RemoteStores::new(options).open(&url, None).unwrap();
        let mut bytes = [0; 10];
        object.read_exact_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"0123456789");
    }
}
