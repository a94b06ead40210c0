//! Objects as sources of bytes.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use bytes::{Bytes, BytesMut};
use tbl_io::{BackgroundReads, Part, PartFault, Pin, RangeFault, Ranges};

use crate::ahead::{Budget, ReadAhead};
use crate::answer::Head;
use crate::bucket::{Bucket, Key};
use crate::engine::{Task, received};
use crate::net::Net;
use crate::read::{Need, read};

/// The largest range of one request: beyond it, several at once are faster.
const REQUEST: u64 = 8 << 20;

/// An object of a store, in the version that it had when it was opened.
pub(crate) struct StoredObject {
    pub(crate) net: Arc<Net>,
    pub(crate) version: ObjectVersion,
    pin: Pin,
    front: Mutex<Front>,
    /// For the fronts of all objects that are kept once they are open.
    fronts: Arc<Budget>,
    ahead: Arc<ReadAhead>,
}

/// The first bytes of an object, which came when it was opened.
#[derive(Default)]
struct Front {
    bytes: Option<Bytes>,
    /// Whether they are kept for the life of the object, at the expense of the budget.
    is_kept: bool,
}

/// One version of an object, and where it is.
#[derive(Clone)]
pub(crate) struct ObjectVersion {
    bucket: Arc<Bucket>,
    key: Key,
    head: Head,
}

impl ObjectVersion {
    /// Reads a range of it. `sink` gets the bytes in order, each once.
    pub(crate) async fn read(
        &self,
        range: Range<u64>,
        need: Need,
        sink: impl FnMut(Bytes),
    ) -> Result<(), RangeFault> {
        read(&self.bucket, &self.key, range, Some(&self.head), need, sink).await.map(drop)
    }
}

/// A part of a request, by its number: bytes in order, and then the end.
enum Arrival {
    Bytes(usize, Bytes),
    End(usize, Result<(), RangeFault>),
}

/// A request for a piece of a part.
struct Piece {
    part: usize,
    /// The place of its next byte in the part.
    at: usize,
}

impl StoredObject {
    pub(crate) fn new(
        net: Arc<Net>,
        bucket: Arc<Bucket>,
        key: Key,
        head: Head,
        front: Option<Bytes>,
        ahead: Arc<Budget>,
        fronts: Arc<Budget>,
    ) -> Self {
        let pin = head.version.pin(bucket.endpoint.as_deref());
        let ahead = Arc::new(ReadAhead::new(ahead));
        let version = ObjectVersion { bucket, key, head };
        let front = Mutex::new(Front { bytes: front, is_kept: false });
        Self { net, version, pin, front, fronts, ahead }
    }

    /// The bytes that came when the object was opened, if they are kept and have the whole range.
    pub(crate) fn in_front(&self, offset: u64, len: usize) -> Option<Bytes> {
        self.front_of(offset, len).filter(|bytes| bytes.len() == len)
    }

    /// The first bytes of a range, as far as they came when the object was opened and are kept.
    fn front_of(&self, offset: u64, len: usize) -> Option<Bytes> {
        self.check_process().ok()?;
        let front = self.front.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = front.bytes.as_ref()?;
        let start = usize::try_from(offset).ok().filter(|start| *start <= bytes.len())?;
        Some(bytes.slice(start..start.saturating_add(len).min(bytes.len())))
    }

    /// Releases the first bytes once the object is open. Those of a small object stay where there is
    /// room, which costs less than another request.
    fn release_front(&self, len: u64) {
        let mut front = self.front.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(have) = front.bytes.as_ref().map(|bytes| bytes.len() as u64) else { return };
        if len < have || front.is_kept {
            return;
        }
        front.is_kept = have == self.version.head.len && self.fronts.take(have);
        // A copy has no room to spare, as the buffer of an answer has.
        let kept = front.bytes.take().filter(|_| front.is_kept);
        front.bytes = kept.map(|bytes| Bytes::copy_from_slice(&bytes));
    }

    /// # Errors
    /// In a fork, where the locks of other threads are never released.
    fn check_process(&self) -> Result<(), RangeFault> {
        if self.net.engine().is_of_this_process() { Ok(()) } else { Err(RangeFault::Forked) }
    }

    /// Starts requests for what was announced, as far as the budget reaches.
    fn request_ahead(&self) {
        while let Some(request) = self.ahead.next() {
            let version = self.version.clone();
            let start = request.range.start;
            let number = request.number;
            let task = self.net.engine().spawn(async move {
                let mut bytes = BytesMut::new();
                let sink = |part: Bytes| bytes.extend_from_slice(&part);
                let range = request.range.clone();
                // A reader asks once more and gets the reason.
                if version.read(range, Need::Unknown, sink).await.is_ok() {
                    request.arrived(bytes);
                }
            });
            match task {
                Ok(task) => self.ahead.started(start, number, task),
                // In a fork nothing is requested; reads say so.
                Err(_) => return,
            }
        }
    }

    /// Starts the request for one piece.
    fn start_piece(
        &self,
        piece: usize,
        range: Range<u64>,
        arrivals: &mpsc::Sender<Arrival>,
    ) -> Result<Task, RangeFault> {
        let version = self.version.clone();
        let arrivals = arrivals.clone();
        self.net.engine().spawn(async move {
            let send = |arrival| drop(arrivals.send(arrival));
            let sink = |bytes| send(Arrival::Bytes(piece, bytes));
            let result = version.read(range, Need::Now, sink).await;
            send(Arrival::End(piece, result));
        })
    }
}

impl Ranges for StoredObject {
    fn len(&self) -> u64 {
        self.version.head.len
    }

    fn pin(&self) -> &Pin {
        &self.pin
    }

    fn hidden(&self) -> &str {
        match &self.version.key {
            Key::Url(url) => url.query().unwrap_or_default(),
            Key::Path { .. } => "",
        }
    }

    fn is_secret(&self) -> bool {
        !self.hidden().is_empty() || self.version.bucket.is_signed()
    }

    fn background(&self) -> Option<&dyn BackgroundReads> {
        Some(self)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        self.read_parts(&mut [Part { offset, bytes }]).map_err(|PartFault { fault, .. }| fault)
    }

    fn read_parts(&self, parts: &mut [Part<'_>]) -> Result<(), PartFault> {
        self.check_process().map_err(|fault| PartFault { part: 0, fault })?;
        let (sender, arrivals) = mpsc::channel();
        let mut pieces = Vec::new();
        let mut tasks = Vec::new();
        for (number, part) in parts.iter_mut().enumerate() {
            let end = part.offset + part.bytes.len() as u64;
            let front = self.front_of(part.offset, part.bytes.len()).unwrap_or_default();
            let (from_front, rest) = part.bytes.split_at_mut(front.len());
            from_front.copy_from_slice(&front);
            let mut start = part.offset + front.len() as u64;
            if start < end {
                start += self.ahead.read(start, rest) as u64;
            }
            while start < end {
                let stop = end.min(start + REQUEST);
                let at = usize::try_from(start - part.offset).unwrap_or(usize::MAX);
                let task = self.start_piece(pieces.len(), start..stop, &sender);
                tasks.push(task.map_err(|fault| PartFault { part: number, fault })?);
                pieces.push(Piece { part: number, at });
                start = stop;
            }
        }
        drop(sender);
        let mut left = pieces.len();
        while left > 0 {
            let part = pieces.first().map_or(0, |piece| piece.part);
            match received(&arrivals).map_err(|fault| PartFault { part, fault })? {
                Arrival::Bytes(piece, bytes) => {
                    let Some(Piece { part, at }) = pieces.get_mut(piece) else { continue };
                    let target = parts.get_mut(*part).and_then(|part| part.bytes.get_mut(*at..));
                    if let Some(target) = target.and_then(|target| target.get_mut(..bytes.len())) {
                        target.copy_from_slice(&bytes);
                    }
                    *at += bytes.len();
                }
                Arrival::End(piece, result) => {
                    let part = pieces.get(piece).map_or(0, |piece| piece.part);
                    result.map_err(|fault| PartFault { part, fault })?;
                    left -= 1;
                }
            }
        }
        self.request_ahead();
        Ok(())
    }

    fn will_need(&self, offset: u64, len: u64) {
        if self.check_process().is_err() {
            return;
        }
        let end = offset.saturating_add(len).min(self.version.head.len);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let start = offset + self.front_of(offset, len).map_or(0, |front| front.len() as u64);
        if start < end {
            self.ahead.announce(start..end);
            self.request_ahead();
        }
    }

    fn dont_need(&self, offset: u64, len: u64) {
        if self.check_process().is_err() {
            return;
        }
        if offset == 0 {
            self.release_front(len);
        }
        self.ahead.drop_range(&(offset..offset.saturating_add(len)));
    }
}

impl Drop for StoredObject {
    /// Ends the requests of what nobody will read.
    fn drop(&mut self) {
        let front = std::mem::take(self.front.get_mut().unwrap_or_else(PoisonError::into_inner));
        if front.is_kept {
            self.fronts.release(front.bytes.map_or(0, |bytes| bytes.len() as u64));
        }
        if self.check_process().is_ok() {
            self.ahead.drop_range(&(0..u64::MAX));
        }
    }
}

impl fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredObject")
            .field("key", &self.version.key)
            .field("head", &self.version.head)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tl_store_server::{Dialect, Service};

    use super::*;
    use crate::address::Address;
    use crate::bucket::Limits;
    use crate::gate::{Gate, Hosts};
    use crate::store;
    use crate::tests::InMemory;
    use crate::version::Version;

    /// An object of a web server, whose front is these bytes of it.
    fn object(net: Arc<Net>, front: &'static [u8], len: u64, fronts: &Arc<Budget>) -> StoredObject {
        let hosts = Hosts::Web { allow_http: true };
        let gate = Gate::new(net.transport(), hosts, Arc::default());
        let limits = Limits { connections: 1, deadline: Duration::from_secs(1), hedge: false };
        let bucket = Arc::new(Bucket::of_web(gate, false, limits, Arc::default()));
        let address = Address::parse("http://store.test/k?sig=planted-secret").unwrap();
        let head = Head { len, version: Version::of_tag("a") };
        let front = Some(Bytes::from_static(front));
        let ahead = Arc::new(Budget::new(1_000));
        let key = store::key(address).unwrap();
        StoredObject::new(net, bucket, key, head, front, ahead, Arc::clone(fronts))
    }

    fn transport() -> Arc<InMemory> {
        Arc::new(InMemory(Arc::new(Service::new(Dialect::Http))))
    }

    #[test]
    fn small_objects_are_kept_up_to_a_bound() {
        let net = Arc::new(Net::new(transport()).unwrap());
        let fronts = Arc::new(Budget::new(10));
        let object = |len| object(Arc::clone(&net), b"abcdef", len, &fronts);
        let is_kept = |object: &StoredObject| {
            let len = object.len();
            object.dont_need(0, 3);
            assert!(object.in_front(0, 6).is_some(), "a part is still needed");
            object.dont_need(0, len);
            object.dont_need(0, len);
            object.in_front(0, 6).is_some()
        };
        let first = object(6);
        assert!(is_kept(&first));
        assert!(!is_kept(&object(7)), "the object has more bytes");
        assert!(!is_kept(&object(6)), "two are 12 bytes");
        drop(first);
        assert!(is_kept(&object(6)) && is_kept(&object(6)), "what goes makes room");
    }

    #[test]
    fn a_fork_does_not_wait_for_what_its_parent_requested() {
        let net = Arc::new(Net::of_another_process(transport()).unwrap());
        let object = object(net, b"", 100, &Arc::new(Budget::new(0)));
        object.ahead.announce(0..50);
        let _pending = object.ahead.next().unwrap();
        let read = object.read_exact_at(0, &mut [0; 50]);
        assert!(matches!(read, Err(RangeFault::Forked)), "{read:?}");
    }

    #[test]
    fn a_representation_has_no_secret() {
        let net = Arc::new(Net::new(transport()).unwrap());
        let object = object(net, b"", 100, &Arc::new(Budget::new(0)));
        let text = format!("{object:?}");
        assert!(text.contains("http://store.test/k?..."), "{text}");
        assert_eq!(object.hidden(), "sig=planted-secret");
    }
}
