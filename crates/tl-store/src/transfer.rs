//! One request for a range, and its body.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use tbl_io::Unusable;

use crate::answer::{self, Defect, Head};
use crate::bucket::{Bucket, Key};
use crate::cause::Cause;
use crate::gate::{Answer, Body};

/// The largest body of an error that is read for its code.
const MAX_ERROR: usize = 64 << 10;

type Opening = Pin<Box<dyn Future<Output = Result<(Head, Range<u64>, Body), Cause>> + Send>>;

/// A request under way. All methods may be cancelled at any await and called again.
pub(crate) struct Transfer {
    state: State,
    /// The next byte that [`next`](Self::next) returns.
    pub(crate) at: u64,
    /// The end of the range; the end of the object, once it is known, if that comes first.
    pub(crate) end: u64,
    /// The object, once the answer has begun.
    pub(crate) head: Option<Head>,
}

enum State {
    Opening(Opening),
    Flowing(Body),
    Over,
}

impl Transfer {
    /// A request for `range` of the object, in the version `expected` if that is given. Nothing is
    /// sent before the first call of [`next`](Self::next).
    pub(crate) fn new(
        bucket: &Arc<Bucket>,
        key: &Key,
        range: Range<u64>,
        expected: Option<&Head>,
        pool: usize,
    ) -> Self {
        let at = range.start;
        let end = range.end;
        let bucket = Arc::clone(bucket);
        let key = key.clone();
        let expected = expected.cloned();
        let opening = async move {
            let version = expected.as_ref().map(|head| &head.version);
            let answer = bucket.get(&key, &range, version, pool).await?;
            open(answer, &range, expected.as_ref()).await
        };
        Self { state: State::Opening(Box::pin(opening)), at, end, head: None }
    }

    /// The next bytes of the range; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Cause> {
        if let State::Opening(opening) = &mut self.state {
            let opened = opening.await;
            self.state = State::Over;
            let (head, range, body) = opened?;
            self.end = range.end;
            self.head = Some(head);
            self.state = State::Flowing(body);
        }
        let State::Flowing(body) = &mut self.state else { return Ok(None) };
        loop {
            let Some(frame) = body.frame().await else {
                self.state = State::Over;
                let received = self.at;
                return if received == self.end {
                    Ok(None)
                } else {
                    Err(Cause::Short { received })
                };
            };
            let bytes = match frame.map_err(Cause::Broken)?.into_data() {
                Ok(bytes) if !bytes.is_empty() => bytes,
                Ok(_) | Err(_) => continue,
            };
            self.at += bytes.len() as u64;
            if self.at > self.end {
                return Err(Cause::Defect(Defect::Unusable(Unusable::TooLong)));
            }
            return Ok(Some(bytes));
        }
    }
}

/// Checks the head of an answer, and reads the code of one that refuses.
async fn open(
    answer: Answer,
    asked: &Range<u64>,
    expected: Option<&Head>,
) -> Result<(Head, Range<u64>, Body), Cause> {
    let (parts, body) = answer.into_parts();
    if !parts.status.is_success() {
        return Err(refusal(&parts, body).await);
    }
    let (head, range) = answer::check_range(&parts, asked, expected).map_err(Cause::Defect)?;
    Ok((head, range, body))
}

/// The cause that an answer without success states.
pub(crate) async fn refusal(parts: &http::response::Parts, mut body: Body) -> Cause {
    let mut text = Vec::new();
    // The status says enough if the body breaks off.
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(bytes) = frame.into_data() {
            let room = MAX_ERROR - text.len();
            text.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            if text.len() == MAX_ERROR {
                break;
            }
        }
    }
    let code = answer::error_code(&parts.headers, &text);
    if let Some(region) = answer::other_region(parts.status, &parts.headers, code.as_deref(), &text)
    {
        return Cause::OtherRegion { region };
    }
    Cause::Status {
        status: parts.status.as_u16(),
        code,
        retry_after: answer::retry_after(&parts.headers),
    }
}
