//! Requests that write objects. Each is sent by the client of `object_store`, which signs it and reads
//! the answer of success; refusals are read here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap};
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{PutMode, PutOptions};
use tbl_io::RangeFault;
use tokio::time::{Instant, sleep, timeout};

use crate::answer;
use crate::bucket::{Bucket, failed};
use crate::cause::Cause;
use crate::clients::Client;
use crate::gate::{SENDING, Sending};
use crate::transfer::refusal;
use crate::tries::{Failed, tried};

/// A request is given up once none of its bytes left for so long, and no answer came: at most, and in
/// parts of the deadline.
const STALLED: Duration = Duration::from_secs(30);
const STALLED_PART: u32 = 6;
/// The looks at that in this time.
const LOOKS: u32 = 30;

/// An object to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewObject {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) path: Path,
    /// Whether an object that appears meanwhile is an error, where the store can tell.
    pub(crate) is_new: bool,
}

impl NewObject {
    fn client(&self) -> &Client {
        // Objects are made in buckets alone: see `RemoteStores::create`.
        let client = self.bucket.client();
        client.unwrap_or_else(|| unreachable!("web servers are not written to"))
    }

    /// The time without progress after which a request is sent again.
    fn patience(&self) -> Duration {
        STALLED.min(self.bucket.retry.deadline / STALLED_PART)
    }

    /// The same for the completion of an upload, in which a store may join parts for minutes.
    fn long_patience(&self) -> Duration {
        self.bucket.retry.deadline * 2 / 3
    }

    /// Stores the whole object; returns its tag.
    pub(crate) async fn put(&self, bytes: Bytes) -> Result<Option<String>, Failed<'_>> {
        let mode = if self.is_new { PutMode::Create } else { PutMode::Overwrite };
        tried(&self.bucket, |is_conditional| {
            let mode = if is_conditional { mode.clone() } else { PutMode::Overwrite };
            let payload = bytes.clone().into();
            async move {
                let sending = Sending::new(false);
                let mut extensions = Extensions::new();
                extensions.insert(sending.clone());
                let options = PutOptions { mode, extensions, ..PutOptions::default() };
                let put = self.client().store.put_opts(&self.path, payload, options);
                Ok(sent(sending, self.patience(), put).await?.e_tag)
            }
        })
        .await
    }

    /// Begins an upload of parts; returns its identity.
    pub(crate) async fn begin(&self) -> Result<String, Failed<'_>> {
        tried(&self.bucket, |_| {
            let begun = self.client().parts.create_multipart(&self.path);
            sent(Sending::new(false), self.patience(), begun)
        })
        .await
    }

    /// Sends a part, whose number is from 0 on.
    pub(crate) async fn part(
        &self,
        id: &String,
        number: usize,
        bytes: Bytes,
    ) -> Result<PartId, Failed<'_>> {
        tried(&self.bucket, |_| {
            let payload = bytes.clone().into();
            let put = self.client().parts.put_part(&self.path, id, number, payload);
            sent(Sending::new(false), self.patience(), put)
        })
        .await
    }

    /// Makes the object of the parts; returns its tag.
    pub(crate) async fn complete(
        &self,
        id: &String,
        parts: Vec<PartId>,
    ) -> Result<Option<String>, Failed<'_>> {
        tried(&self.bucket, |is_conditional| {
            let parts = parts.clone();
            async move {
                let client = self.client();
                let sending = Sending::new(self.is_new && is_conditional && client.is_s3());
                let completed = client.parts.complete_multipart(&self.path, id, parts);
                Ok(sent(sending, self.long_patience(), completed).await?.e_tag)
            }
        })
        .await
    }

    /// Ends an upload, whose parts the store removes.
    pub(crate) async fn abort(&self, id: &String) -> Result<(), RangeFault> {
        let aborted = tried(&self.bucket, |_| {
            let aborted = self.client().parts.abort_multipart(&self.path, id);
            sent(Sending::new(false), self.patience(), aborted)
        });
        match aborted.await {
            Err(failed) if failed.status() != Some(404) => Err(failed.fault()),
            // It is ended, or complete.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The result of a request that `sending` goes with.
async fn sent<T>(
    sending: Sending,
    patience: Duration,
    request: impl Future<Output = object_store::Result<T>>,
) -> Result<T, Cause> {
    let request = SENDING.scope(sending.clone(), request);
    let result = tokio::select! {
        result = request => result,
        silence = stalled(&sending, patience) => return Err(Cause::Silent(silence)),
    };
    match (sending.refused(), result) {
        (Some(Ok(answer)), _) => {
            let (parts, body) = answer.into_parts();
            Err(timeout(patience, refusal(&parts, body)).await.unwrap_or(Cause::Silent(patience)))
        }
        (Some(Err(no_answer)), _) => Err(no_answer.into()),
        (None, Ok(value)) => Ok(value),
        (None, Err(error)) if sending.was_sent() => Err(not_understood(&error)),
        (None, Err(error)) => Err(failed(&error)),
    }
}

/// Returns once nothing has moved for too long.
async fn stalled(sending: &Sending, patience: Duration) -> Duration {
    let mut moved = sending.moved();
    let mut since = Instant::now();
    while since.elapsed() < patience {
        sleep(patience / LOOKS).await;
        if std::mem::replace(&mut moved, sending.moved()) != moved {
            since = Instant::now();
        }
    }
    since.elapsed()
}

/// The cause of an answer of success that the client cannot use: S3 may say in it that an upload was
/// not completed.
fn not_understood(error: &object_store::Error) -> Cause {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut text = String::new();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Cause::Broken(std::io::Error::new(error.kind(), error.to_string()));
        }
        text = error.to_string();
        source = error.source();
    }
    match answer::error_code(&HeaderMap::new(), text.as_bytes()) {
        Some(code) => Cause::Status { status: 200, code: Some(code), retry_after: None },
        None => {
            let text = "the store's answer to a request that writes cannot be read";
            Cause::Broken(std::io::Error::new(std::io::ErrorKind::InvalidData, text))
        }
    }
}
