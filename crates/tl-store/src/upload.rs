//! Objects under construction, for callers that block.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use object_store::multipart::PartId;
use tbl_io::{RangeFault, Upload};

use crate::answer::Head;
use crate::bucket::Key;
use crate::engine::{Task, received, stopped};
use crate::net::Net;
use crate::parts::{Assembly, Layout};
use crate::put::NewObject;
use crate::tries::{Failed, repeated};
use crate::version::Version;

/// Parts that are sent at once.
const AT_ONCE: usize = 8;
/// The bytes of parts in memory, unless those that one needs are larger: eight on their way, the
/// one that is written, and one that waits for the front of the object.
const HELD: u64 = 50 << 20;
/// The time in which a store may end an upload that nobody waits for.
const ABORT: Duration = Duration::from_secs(10);

/// An object of a store under construction: in memory while it is smaller than a part, then as parts
/// that the store keeps under an identity of their own until they are an object.
#[derive(Debug)]
pub(crate) struct StoreUpload {
    net: Arc<Net>,
    object: NewObject,
    /// The object that has the name now.
    earlier: Option<Head>,
    assembly: Assembly,
    /// The identity of the upload, once it is begun. It is ended when this is dropped.
    id: Option<Arc<String>>,
    done: Vec<Option<PartId>>,
    sender: mpsc::Sender<Arrival>,
    arrivals: mpsc::Receiver<Arrival>,
    under_way: HashMap<usize, UnderWay>,
    bytes_under_way: u64,
}

/// A part on its way, which stops when this is dropped.
#[derive(Debug)]
struct UnderWay {
    bytes: u64,
    _task: Task,
}

/// A part that the store has, or that failed.
#[derive(Debug)]
struct Arrival {
    number: usize,
    part: Result<PartId, io::Error>,
}

/// Tells of a part when its task ends, however that is.
struct Report {
    number: usize,
    sender: mpsc::Sender<Arrival>,
    part: Option<Result<PartId, io::Error>>,
}

impl Report {
    fn tell(mut self, part: io::Result<PartId>) {
        self.part = Some(part);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let part = self.part.take().unwrap_or_else(|| Err(io::Error::other(stopped())));
        // Nobody waits for the parts of an upload that has ended.
        drop(self.sender.send(Arrival { number: self.number, part }));
    }
}

impl StoreUpload {
    /// An upload that nothing is sent of yet. `earlier` is what has the name now.
    pub(crate) fn new(net: Arc<Net>, object: NewObject, earlier: Option<Head>) -> Self {
        let (sender, arrivals) = mpsc::channel();
        Self {
            net,
            object,
            earlier,
            assembly: Assembly::new(Layout::new(0)),
            id: None,
            done: Vec::new(),
            sender,
            arrivals,
            under_way: HashMap::new(),
            bytes_under_way: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn with_parts_of(mut self, len: u64) -> Self {
        self.assembly.set_layout(Layout::of_parts(len));
        self
    }

    /// Bytes of parts in memory.
    pub(crate) fn held(&self) -> u64 {
        self.assembly.held() + self.bytes_under_way
    }

    fn fill(&mut self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let more = self.assembly.needs(offset)?;
            while more > 0 && !self.under_way.is_empty() && self.held() + more > HELD {
                self.wait()?;
            }
            let (taken, complete) = self.assembly.write(offset, bytes)?;
            if let Some((number, part)) = complete {
                self.send(number, part)?;
            }
            offset += taken as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Sends a part, and begins the upload if it is the first.
    fn send(&mut self, number: usize, bytes: Bytes) -> io::Result<()> {
        while self.under_way.len() >= AT_ONCE {
            self.wait()?;
        }
        // A fault is known early.
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.arrived(arrival)?;
        }
        let id = match &self.id {
            Some(id) => Arc::clone(id),
            None => {
                let id = self.begin()?;
                Arc::clone(self.id.insert(id))
            }
        };
        let object = self.object.clone();
        let report = Report { number, sender: self.sender.clone(), part: None };
        let len = bytes.len() as u64;
        let task = self.net.engine().spawn(async move {
            report.tell(object.part(&id, number, bytes).await.map_err(refused));
        });
        let task = task.map_err(io::Error::other)?;
        self.bytes_under_way += len;
        self.under_way.insert(number, UnderWay { bytes: len, _task: task });
        Ok(())
    }

    /// Begins the upload. One whose identity does not arrive stays, without parts: a list of uploads does
    /// not tell it from that of another writer.
    fn begin(&self) -> io::Result<Arc<String>> {
        let object = self.object.clone();
        let begun = async move { object.begin().await.map_err(refused) };
        // An upload whose identity is known can be ended.
        let begun = self.net.engine().block_on_and_for(begun, ABORT);
        begun.map_err(io::Error::other)?.map(Arc::new)
    }

    /// Waits for one of the parts under way.
    fn wait(&mut self) -> io::Result<()> {
        if !self.net.engine().is_of_this_process() {
            return Err(io::Error::other(RangeFault::Forked));
        }
        let arrival = received(&self.arrivals).map_err(io::Error::other)?;
        self.arrived(arrival)
    }

    fn arrived(&mut self, Arrival { number, part }: Arrival) -> io::Result<()> {
        if let Some(part) = self.under_way.remove(&number) {
            self.bytes_under_way -= part.bytes;
        }
        if self.done.len() <= number {
            self.done.resize(number + 1, None);
        }
        self.done[number] = Some(part?);
        Ok(())
    }

    /// Ends the upload. Only the process that began it does so.
    ///
    /// # Errors
    /// The identity of an upload that may be left.
    fn abort(&mut self) -> Result<(), String> {
        self.under_way.clear();
        let Some(id) = self.id.take().filter(|_| self.net.engine().is_of_this_process()) else {
            return Ok(());
        };
        let object = self.object.clone();
        let own = Arc::clone(&id);
        let ended = async move { object.abort(&own).await.is_ok() };
        match self.net.engine().wait_for(ended, ABORT) {
            Some(true) => Ok(()),
            Some(false) | None => Err((*id).clone()),
        }
    }

    /// Ends the upload that an error stopped; the error says so if that fails.
    fn failed(&mut self, error: io::Error) -> io::Error {
        match self.abort() {
            Ok(()) => error,
            Err(id) => io::Error::new(error.kind(), Left { source: error, id }),
        }
    }

    fn complete(&mut self) -> io::Result<()> {
        let len = self.assembly.end();
        let left = self.assembly.finish()?;
        let object = self.object.clone();
        let earlier = self.earlier.take();
        let net = Arc::clone(&self.net);
        if self.id.is_none() {
            // At most the first part has bytes.
            let bytes = left.into_iter().next().map(|(_, bytes)| bytes).unwrap_or_default();
            let stored = async move {
                let tag = object.put(bytes.clone()).await;
                let made = Made { len, earlier: earlier.as_ref(), content: Content::Whole(bytes) };
                confirmed(&object, tag, made).await
            };
            return net.engine().finish(stored).map_err(io::Error::other)?.map(drop);
        }
        for (number, bytes) in left {
            self.send(number, bytes)?;
        }
        while !self.under_way.is_empty() {
            self.wait()?;
        }
        let id = self.id.clone().unwrap_or_default();
        let parts: Option<Vec<_>> = self.done.drain(..).collect();
        let parts = parts.ok_or_else(|| io::Error::other("a part of the upload is missing"))?;
        let completed = async move {
            if object.is_new && found(&object).await?.is_some() {
                return Err(exists());
            }
            let tag = object.complete(&id, parts.clone()).await;
            let made = Made { len, earlier: earlier.as_ref(), content: Content::Parts(parts) };
            confirmed(&object, tag, made).await
        };
        // Whether there is an object now must be known.
        if net.engine().finish(completed).map_err(io::Error::other)?? {
            // There is nothing to end.
            self.id = None;
        }
        Ok(())
    }
}

/// An error after which the store keeps parts of an upload.
#[derive(Debug, thiserror::Error)]
#[error(
    "{source}; the upload {id:?} could not be ended, and its parts are kept and paid for: end it with \
     `tl rm --uploads`"
)]
struct Left {
    source: io::Error,
    id: String,
}

impl Upload for StoreUpload {
    fn expect(&mut self, bytes: u64) {
        self.assembly.set_layout(Layout::new(bytes));
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.fill(self.assembly.end(), bytes).map_err(|error| self.failed(error))
    }

    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        self.assembly.skip_to(position)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.fill(offset, bytes).map_err(|error| self.failed(error))
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.complete().map_err(|error| self.failed(error))
    }
}

impl Drop for StoreUpload {
    fn drop(&mut self) {
        // `tl rm --uploads` lists what is left.
        drop(self.abort());
    }
}

/// An object as it should be.
struct Made<'a> {
    len: u64,
    /// The object that had the name before.
    earlier: Option<&'a Head>,
    content: Content,
}

enum Content {
    Whole(Bytes),
    Parts(Vec<PartId>),
}

/// Whether an object is the one that was written, when the answer to that got lost.
enum Origin {
    Here,
    Elsewhere,
    Unknown,
}

impl Made<'_> {
    fn origin(&self, head: &Head) -> Origin {
        let expected = match &self.content {
            Content::Whole(bytes) => Some(Version::of_content(bytes)),
            Content::Parts(parts) => {
                Version::of_parts(parts.iter().map(|part| part.content_id.as_str()))
            }
        };
        let is_earlier = || {
            let earlier = self.earlier.map(|earlier| &earlier.version);
            head.version != Version::Unknown && earlier == Some(&head.version)
        };
        if head.len != self.len {
            Origin::Elsewhere
        } else if expected.as_ref() == Some(&head.version) {
            Origin::Here
        } else if is_earlier() {
            Origin::Elsewhere
        } else {
            // Another writer's object may be as long, and not all stores hash what they store.
            Origin::Unknown
        }
    }
}

/// An error after which the store may have the object.
#[derive(Debug, thiserror::Error)]
#[error(
    "{source}; the answer that tells got lost, and the object may be there: look before it is written again"
)]
struct Unproven {
    source: io::Error,
}

fn is_s3(object: &NewObject) -> bool {
    object.bucket.client().is_some_and(crate::clients::Client::is_s3)
}

/// Reads back the length of an object that was written, and finds out whether it was if the answer
/// got lost. Returns whether it arrived.
///
/// # Errors
/// Also where the object cannot be told from that of another writer.
async fn confirmed(
    object: &NewObject,
    written: Result<Option<String>, Failed<'_>>,
    made: Made<'_>,
) -> io::Result<bool> {
    let len = made.len;
    let key = Key::Path { path: object.path.clone(), version: None };
    let head = async || repeated(&object.bucket, || object.bucket.head(&key)).await;
    let tag = match written {
        Ok(tag) => tag,
        Err(failed) if failed.may_be_done() => {
            let origin = match head().await {
                Ok(head) => made.origin(&head),
                Err(RangeFault::Refused { status: 404, .. }) => Origin::Elsewhere,
                Err(_) => Origin::Unknown,
            };
            return match origin {
                Origin::Here => Ok(false),
                Origin::Elsewhere => Err(not_made(object, failed)),
                Origin::Unknown => {
                    let source = refused(failed);
                    Err(io::Error::new(source.kind(), Unproven { source }))
                }
            };
        }
        Err(failed) => return Err(not_made(object, failed)),
    };
    let head = head().await.map_err(io::Error::other)?;
    if head.len != len {
        let text = format!("the store has {} bytes of the object, expected {len}", head.len);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    // Other stores have tags of other kinds.
    let tag = tag.as_deref().map_or(Version::Unknown, Version::of_tag);
    if is_s3(object) && tag != Version::Unknown && head.version != tag {
        let found = head.version.pin(object.bucket.endpoint.as_deref());
        return Err(io::Error::other(RangeFault::Changed { found }));
    }
    Ok(true)
}

/// The object that has the name now. Not all stores have a condition for uploads of parts.
async fn found(object: &NewObject) -> io::Result<Option<Head>> {
    let key = Key::Path { path: object.path.clone(), version: None };
    match repeated(&object.bucket, || object.bucket.head(&key)).await {
        Ok(head) => Ok(Some(head)),
        Err(RangeFault::Refused { status: 404, .. }) => Ok(None),
        Err(fault) => Err(io::Error::other(fault)),
    }
}

fn exists() -> io::Error {
    let text = "another writer made the object in the meantime";
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

/// The error of a request that the store refused.
fn refused(failed: Failed<'_>) -> io::Error {
    io::Error::other(failed.fault())
}

/// The error of a request that makes an object, which another may have made.
fn not_made(object: &NewObject, failed: Failed<'_>) -> io::Error {
    if object.is_new && failed.cause.is_in_the_way() {
        return exists();
    }
    refused(failed)
}
