//! Bodies that arrive slowly, or not wholly.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::time::sleep;

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

/// A body that brings `rate` bytes a second, and ends in this way.
pub(crate) fn slow(bytes: Bytes, rate: f64, end: End) -> BoxBody<Bytes, io::Error> {
    let frames = stream::unfold(Some(bytes), move |bytes| async move {
        let mut bytes = bytes?;
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
        if rate.is_finite() {
            #[expect(clippy::cast_precision_loss, reason = "a frame is small")]
            sleep(Duration::from_secs_f64(frame.len() as f64 / rate)).await;
        }
        Some((Ok(Frame::data(frame)), Some(bytes)))
    });
    BodyExt::boxed(StreamBody::new(Box::pin(frames)))
}
