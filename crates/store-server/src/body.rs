//! Bodies that arrive slowly, or not wholly.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::time::{Instant, sleep, sleep_until};

use crate::service::Speed;

/// The bytes of a frame.
const FRAME: usize = 64 << 10;

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// The connection breaks off.
    Reset,
    /// Nothing more comes.
    Stall,
}

/// A link that all connections share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link(Arc<Mutex<Option<Instant>>>);

impl Link {
    /// Waits until these bytes have passed, after all before them, at `rate` bytes a second.
    async fn pass(&self, bytes: usize, rate: f64) {
        if !rate.is_finite() {
            return;
        }
        let passed = {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let begun = free.map_or(now, |free| free.max(now));
            *free.insert(begun + time_of(bytes, rate))
        };
        sleep_until(passed).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a frame is small")]
fn time_of(bytes: usize, rate: f64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / rate)
}

/// A body that arrives at once.
pub(crate) fn instant(bytes: Bytes) -> BoxBody<Bytes, io::Error> {
    slow(bytes, Speed::INSTANT, &Link::default(), End::Whole)
}

/// A body that brings `speed.rate` bytes a second over a link, and ends in this way.
pub(crate) fn slow(bytes: Bytes, speed: Speed, link: &Link, end: End) -> BoxBody<Bytes, io::Error> {
    let frames = stream::unfold((Some(bytes), link.clone()), move |state| async move {
        let (bytes, link) = state;
        let mut bytes = bytes?;
        if bytes.is_empty() {
            return match end {
                End::Whole => None,
                End::Reset => {
                    let kind = io::ErrorKind::ConnectionReset;
                    Some((Err(io::Error::new(kind, "connection reset")), (None, link)))
                }
                End::Stall => std::future::pending().await,
            };
        }
        let frame = bytes.split_to(bytes.len().min(FRAME));
        if speed.rate.is_finite() {
            sleep(time_of(frame.len(), speed.rate)).await;
        }
        link.pass(frame.len(), speed.link).await;
        Some((Ok(Frame::data(frame)), (Some(bytes), link)))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(frames)))
}
