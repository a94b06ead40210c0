//! A service on a port of this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;

use http::Response;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::body::instant;
use crate::service::Service;

/// A service that answers on a port until this is dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Serving {
    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the process is ended.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic was printed where it happened.
            drop(thread.join());
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended already.
            stop.send(()).unwrap_or_default();
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Serves on 127.0.0.1, on any free port if `port` is 0. `/_stats` has the counts of requests.
///
/// # Errors
/// When the port is taken, or no thread can be started.
pub fn serve(service: Arc<Service>, port: u16) -> io::Result<Serving> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = runtime.block_on(TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let thread = thread::Builder::new().name("tl-store-server".to_owned()).spawn(move || {
        runtime.block_on(async move {
            tokio::select! {
                () = accept(listener, service) => {}
                _ = stopped => {}
            }
        });
        runtime.shutdown_background();
    })?;
    Ok(Serving { address, stop: Some(stop), thread: Some(thread) })
}

async fn accept(listener: TcpListener, service: Arc<Service>) {
    loop {
        // A connection that is gone before it is accepted is its client's business.
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Small answers should not wait for an acknowledgement.
        drop(stream.set_nodelay(true));
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let answer = |request: http::Request<hyper::body::Incoming>| {
                let service = Arc::clone(&service);
                async move {
                    let uri = request.uri();
                    if uri.path() == "/_stats" {
                        let counts = format!("{:?}\n", service.counts());
                        return Ok(Response::new(instant(counts.into())));
                    }
                    let (parts, body) = request.into_parts();
                    // A request that breaks off has no answer.
                    let body = body.collect().await?.to_bytes();
                    let request = http::Request::from_parts(parts, body);
                    Ok::<_, hyper::Error>(service.respond(&request).await)
                }
            };
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            // It ends with an error where a fault breaks it off.
            drop(connection.await);
        });
    }
}
