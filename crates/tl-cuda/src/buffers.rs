//! Buffers on a device: filled on streams of the uploader, read on those of others, and used again only
//! after these have read.
//!
//! The way back is what goes wrong elsewhere: memory that is free for the host is still read by
//! kernels that have been enqueued. So a buffer remembers the streams that it was given to. When it is
//! dropped, an event is recorded on each of them, and the next filling of the memory begins with a
//! wait for these events, on the device, and for the last filling, which may be on another stream.
//! The thread that drops it does not wait. The uploader's thread waits for readers whose streams nobody knows,
//! and before it frees what is too much.

use std::fmt;

use tl_handoff::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock};

use crate::driver::{Device, DeviceMemory, Event, Stream, StreamHandle};
use crate::jobs::{Job, Jobs};
use crate::readers::Readers;
use crate::reason::DeviceReason;
use crate::uploader::Verdict;

/// The bounds of the memory of a loader on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Bytes that may be allocated. Default what the device has.
    pub bytes: u64,
    /// Buffers that are kept for the next batches.
    pub keep: usize,
    /// Bytes in which pictures are decoded on a stream: as many at a time as fit, and at least one.
    pub scratch: usize,
    /// Bytes that are copied for the pictures that are decoded at a time: as many as fit, and at least
    /// one.
    pub payload: usize,
    /// Streams that batches are copied and decoded on by turns, each with memory of its own for what
    /// is between copy and result. At least 1, the default.
    pub lanes: usize,
    /// Whether memory of the host that cannot be pinned for copies is an error. Otherwise they are made
    /// from ordinary memory, the default, and [`Uploader::take_unpinned`](crate::Uploader) says so.
    pub requires_pinned: bool,
}

impl Default for BufferLimits {
    fn default() -> Self {
        let requires_pinned = false;
        let payload = 256 << 20;
        Self { bytes: u64::MAX, keep: 4, scratch: 1 << 30, payload, lanes: 1, requires_pinned }
    }
}

/// The buffers of one uploader.
pub(crate) struct BufferPool {
    device: Device,
    limits: BufferLimits,
    allocated: AtomicU64,
    free: Mutex<Vec<Free>>,
    /// Memory to wait for before it is used again or freed, by the thread that takes `jobs`.
    retired: Mutex<Vec<Free>>,
    /// Held by the thread that waits.
    settling: Mutex<()>,
    jobs: Arc<Jobs>,
}

/// Memory between two fillings.
struct Free {
    memory: DeviceMemory,
    /// The last filling is complete.
    ready: Arc<Event>,
    /// Streams have read it.
    last_uses: Vec<Event>,
    /// Streams that nobody knows may still read it.
    has_unknown_reader: bool,
}

impl Free {
    /// The events before the next filling.
    fn events(&self) -> impl Iterator<Item = &Event> {
        self.last_uses.iter().chain([&*self.ready])
    }

    /// Waits for the last filling and its readers. If that fails the device is lost, and with it
    /// whoever reads.
    fn settle(&self) {
        let lost = self.events().map(Event::synchronize).find_map(Result::err);
        drop(lost);
    }
}

impl BufferPool {
    pub(crate) fn new(device: Device, limits: BufferLimits, jobs: Arc<Jobs>) -> Self {
        let allocated = AtomicU64::new(0);
        let free = Mutex::default();
        let retired = Mutex::default();
        Self { device, limits, allocated, free, retired, settling: Mutex::default(), jobs }
    }

    /// Memory of at least so many bytes, which work of `stream` may write from now on.
    pub(crate) fn take(&self, bytes: usize, stream: &Stream) -> Result<DeviceMemory, DeviceReason> {
        if let Some(memory) = self.recycled(bytes, stream)? {
            return Ok(memory);
        }
        match self.allocate(bytes) {
            Err(DeviceReason::OutOfMemory { .. }) => {}
            allocated => return allocated,
        }
        self.settle_retired();
        if let Some(memory) = self.recycled(bytes, stream)? {
            return Ok(memory);
        }
        // Those that are free are too small.
        let outgrown = std::mem::take(&mut *lock(&self.free));
        for free in outgrown {
            self.discard(&free);
        }
        self.allocate(bytes)
    }

    fn recycled(
        &self,
        bytes: usize,
        stream: &Stream,
    ) -> Result<Option<DeviceMemory>, DeviceReason> {
        let recycled = {
            let mut free = lock(&self.free);
            let fitting = free.iter().enumerate().filter(|(_, free)| free.memory.bytes >= bytes);
            let smallest = fitting.min_by_key(|(_, free)| free.memory.bytes);
            // Of several the one that was dropped first: nobody may have to wait for it.
            smallest.map(|(place, _)| place).map(|place| free.remove(place))
        };
        let Some(free) = recycled else { return Ok(None) };
        for event in free.events() {
            if let Err(reason) = stream.wait(event) {
                self.discard(&free);
                return Err(reason);
            }
        }
        Ok(Some(free.memory))
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory, DeviceReason> {
        let need = bytes as u64;
        let limit = self.limits.bytes;
        let fits = |allocated: u64| allocated.checked_add(need).filter(|sum| *sum <= limit);
        let reserved = self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if let Err(allocated) = reserved {
            let free = limit.saturating_sub(allocated);
            return Err(DeviceReason::OutOfMemory { need, free });
        }
        self.device.allocate(bytes).inspect_err(|_| {
            self.allocated.fetch_sub(need, Ordering::Relaxed);
        })
    }

    /// Frees memory whose last readers are through.
    fn discard(&self, free: &Free) {
        free.settle();
        self.allocated.fetch_sub(free.memory.bytes as u64, Ordering::Relaxed);
    }

    fn put_back(&self, free: Free) {
        if !free.has_unknown_reader {
            let mut kept = lock(&self.free);
            if kept.len() < self.limits.keep {
                return kept.push(free);
            }
        }
        lock(&self.retired).push(free);
        if self.jobs.push(Job::Retired).is_err() {
            self.settle_retired();
        }
    }

    /// Waits for what has to be waited for, and makes it free or frees it.
    pub(crate) fn settle_retired(&self) {
        let one_at_a_time = lock(&self.settling);
        let retired = std::mem::take(&mut *lock(&self.retired));
        let waits = retired.iter().any(|free| free.has_unknown_reader);
        let is_idle = !waits || self.device.synchronize().is_ok();
        for free in retired {
            if free.has_unknown_reader && !is_idle {
                // A lost device, or a capture: nobody can say when the memory is read.
                std::mem::forget(free);
                continue;
            }
            let mut kept = lock(&self.free);
            if kept.len() < self.limits.keep {
                kept.push(Free { has_unknown_reader: false, ..free });
                continue;
            }
            drop(kept);
            self.discard(&free);
        }
        drop(one_at_a_time);
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        // In a fork nothing is freed, and threads that are not there may hold the locks.
        if !self.device.is_forked() {
            self.settle_retired();
            lock(&self.free).iter().for_each(Free::settle);
        }
    }
}

/// The memory of a batch on a device. Dropping it makes the memory free for a later batch.
///
/// Streams that read it have to be named: by [`hold_back`](Self::hold_back), which orders them after
/// the copy, or by [`record_stream`](Self::record_stream). They have to exist until the buffer is
/// dropped. If nobody knows them, [`record_unknown_reader`](Self::record_unknown_reader) does.
pub struct DeviceBuffer {
    pool: Arc<BufferPool>,
    /// `None` only inside `drop`.
    memory: Option<DeviceMemory>,
    address: u64,
    bytes: usize,
    ready: Arc<Event>,
    readers: Readers,
    has_unknown_reader: AtomicBool,
    rest: Rest,
    /// Of the pictures, if there are some.
    verdict: Option<Arc<Verdict>>,
}

/// The place of what was copied as it is, in its source and in the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rest {
    pub(crate) source: usize,
    pub(crate) target: usize,
}

impl DeviceBuffer {
    pub(crate) fn new(
        pool: Arc<BufferPool>,
        memory: DeviceMemory,
        bytes: usize,
        ready: Arc<Event>,
    ) -> Self {
        let address = memory.address;
        let readers = Readers::default();
        let has_unknown_reader = AtomicBool::new(false);
        let rest = Rest::default();
        Self {
            pool,
            memory: Some(memory),
            address,
            bytes,
            ready,
            readers,
            has_unknown_reader,
            rest,
            verdict: None,
        }
    }

    pub(crate) fn with_verdict(mut self, verdict: Option<Arc<Verdict>>) -> Self {
        self.verdict = verdict.filter(|verdict| verdict.is_open);
        self
    }

    pub(crate) fn with_rest(mut self, rest: Rest) -> Self {
        self.rest = rest;
        self
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.pool.device
    }

    /// The address on the device.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The place of a byte of the source that follows its images, or of any byte where none are
    /// converted.
    #[must_use]
    pub fn place(&self, offset: usize) -> usize {
        offset.saturating_sub(self.rest.source) + self.rest.target
    }

    pub(crate) fn rest(&self) -> Rest {
        self.rest
    }

    pub(crate) fn memory(&self) -> &DeviceMemory {
        self.memory.as_ref().expect("a buffer has its memory until it is dropped")
    }

    /// The length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The event that happens when the copy is complete.
    #[must_use]
    pub fn ready(&self) -> &Event {
        &self.ready
    }

    /// The sample of the first picture whose entropy-coded rows were not those of its index. The
    /// pixels of such pictures have no meaning, and may be those of pictures before. Waits for the
    /// end of the copy if a picture has such rows, and returns at once otherwise.
    ///
    /// # Errors
    /// A call of the driver that failed, also of the work before it; [`DeviceReason::Forked`].
    pub fn wrong_index(&self) -> Result<Option<u64>, DeviceReason> {
        let Some(verdict) = &self.verdict else { return Ok(None) };
        self.ready.synchronize()?;
        Ok(verdict.settle())
    }

    /// Work that `stream` gets from now on begins after the copy, and the memory is used again only
    /// after the work that the stream has when the buffer is dropped.
    ///
    /// # Errors
    /// A call of the driver that failed, as for a stream of another device or one that is being
    /// captured; [`DeviceReason::Forked`].
    pub fn hold_back(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        self.record_stream(stream)?;
        self.ready.hold_back(stream)
    }

    /// The memory is used again only after the work that `stream` has when the buffer is dropped.
    ///
    /// # Errors
    /// As [`hold_back`](Self::hold_back).
    pub fn record_stream(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        self.readers.record(self.device(), stream)
    }

    /// The memory is used again only after all work that the device's context has when the buffer is
    /// dropped: for readers whose streams are not known. The uploader's thread waits for it.
    pub fn record_unknown_reader(&self) {
        self.has_unknown_reader.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn lock_pool(&self) -> tl_handoff::sync::MutexGuard<'_, impl Sized> {
        lock(&self.pool.free)
    }

    /// The bytes, copied to the host when they are there.
    ///
    /// # Errors
    /// As [`hold_back`](Self::hold_back).
    pub fn read(&self) -> Result<Vec<u8>, DeviceReason> {
        let stream = self.device().stream()?;
        stream.wait(&self.ready)?;
        stream.read(self.memory(), self.bytes)
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("device", self.device())
            .field("address", &self.address)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        if self.device().is_forked() {
            // The memory is of the other process, and its threads may hold the locks.
            std::mem::forget(memory);
            return;
        }
        match self.readers.end() {
            Ok(last_uses) => {
                let ready = Arc::clone(&self.ready);
                let has_unknown_reader = self.has_unknown_reader.load(Ordering::Relaxed);
                self.pool.put_back(Free { memory, ready, last_uses, has_unknown_reader });
            }
            // A lost device, a stream that was destroyed too early, or one that is being captured:
            // nobody can say when the memory is read, so it is never used again.
            Err(_) => std::mem::forget(memory),
        }
    }
}
