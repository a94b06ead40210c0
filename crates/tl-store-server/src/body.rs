//! Bodies that arrive slowly, or not wholly.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::time::{Instant, sleep_until};

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

/// The time that a body makes up for where it was late. Timers are late by a millisecond or two,
/// which is longer than a frame takes.
const CATCH_UP: Duration = Duration::from_millis(10);

/// The time at which the last frame of a connection or a link has passed.
#[derive(Clone, Copy, Debug)]
struct Pacer(Instant);

impl Pacer {
    /// Adds a frame that passes at `rate` bytes a second.
    #[expect(clippy::cast_precision_loss, reason = "a frame is small")]
    fn add(&mut self, bytes: usize, rate: f64) {
        let begun = self.0.max(Instant::now() - CATCH_UP);
        self.0 = begun + Duration::from_secs_f64(bytes as f64 / rate);
    }
}

/// A link that all connections share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link(Arc<Mutex<Option<Pacer>>>);

impl Link {
    /// Waits until these bytes have passed, after all before them, at `rate` bytes a second.
    async fn pass(&self, bytes: usize, rate: f64) {
        if !rate.is_finite() {
            return;
        }
        let passed = {
            let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = link.get_or_insert_with(|| Pacer(Instant::now()));
            passed.add(bytes, rate);
            *passed
        };
        sleep_until(passed.0 - CATCH_UP / 2).await;
    }
}

/// A body that arrives at once.
pub(crate) fn instant(bytes: Bytes) -> BoxBody<Bytes, io::Error> {
    slow(bytes, Speed::INSTANT, &Link::default(), End::Whole)
}

/// The rest of a body, and how fast it passes.
struct Rest {
    bytes: Bytes,
    passed: Pacer,
    link: Link,
}

/// A body that brings `speed.rate` bytes a second over a link, and ends in this way.
pub(crate) fn slow(bytes: Bytes, speed: Speed, link: &Link, end: End) -> BoxBody<Bytes, io::Error> {
    let rest = Rest { bytes, passed: Pacer(Instant::now()), link: link.clone() };
    let frames = stream::unfold(Some(rest), move |rest| async move {
        let Rest { mut bytes, mut passed, link } = rest?;
        if bytes.is_empty() {
            return match end {
                End::Whole => None,
                End::Reset => {
                    let kind = io::ErrorKind::ConnectionReset;
                    Some((Err(io::Error::new(kind, "connection reset")), None))
                }
                End::Stall => std::future::pending().await,
            };
        }
        let frame = bytes.split_to(bytes.len().min(FRAME));
        if speed.rate.is_finite() {
            passed.add(frame.len(), speed.rate);
            sleep_until(passed.0).await;
        }
        link.pass(frame.len(), speed.link).await;
        Some((Ok(Frame::data(frame)), Some(Rest { bytes, passed, link })))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(frames)))
}
