//! Buffers on a device: filled on one stream, read on the streams of others, and used again only
//! after those have read.
//!
//! The way back is what goes wrong elsewhere: memory that is free for the host is still read by
//! kernels that have been enqueued. So a buffer remembers the streams that it was given to. When it is
//! dropped, an event is recorded on each of them, and the next filling of the memory begins with a
//! wait for these events, on the device. No thread waits.

use std::fmt;

use tl_handoff::sync::{Arc, AtomicU64, Mutex, Ordering, lock};

use crate::driver::{Device, DeviceMemory, Event, Stream, StreamHandle};
use crate::reason::DeviceReason;

/// The bounds of the memory of a loader on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Bytes that may be allocated. Default what the device has.
    pub bytes: u64,
    /// Buffers that are kept for the next batches.
    pub keep: usize,
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self { bytes: u64::MAX, keep: 4 }
    }
}

/// The buffers of one uploader.
pub(crate) struct BufferPool {
    device: Device,
    limits: BufferLimits,
    allocated: AtomicU64,
    free: Mutex<Vec<Free>>,
}

/// Memory between two fillings.
struct Free {
    memory: DeviceMemory,
    /// The last filling is complete.
    ready: Arc<Event>,
    /// Streams have read it.
    last_uses: Vec<Event>,
}

impl Free {
    /// Waits for the last filling and its readers. If that fails the device is lost, and with it
    /// whoever reads.
    fn settle(&self) {
        let events = self.last_uses.iter().chain([&*self.ready]);
        let lost = events.map(Event::synchronize).find_map(Result::err);
        drop(lost);
    }
}

impl BufferPool {
    pub(crate) fn new(device: Device, limits: BufferLimits) -> Self {
        Self { device, limits, allocated: AtomicU64::new(0), free: Mutex::default() }
    }

    /// Bytes of the device that the pool has.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Memory of at least so many bytes, which work of `stream` may write from now on.
    pub(crate) fn take(&self, bytes: usize, stream: &Stream) -> Result<DeviceMemory, DeviceReason> {
        let recycled = {
            let mut free = lock(&self.free);
            let fitting = free.iter().enumerate().filter(|(_, free)| free.memory.bytes >= bytes);
            let smallest = fitting.min_by_key(|(_, free)| free.memory.bytes);
            smallest.map(|(place, _)| place).map(|place| free.swap_remove(place))
        };
        if let Some(free) = recycled {
            for event in &free.last_uses {
                if let Err(reason) = stream.wait(event) {
                    self.discard(&free);
                    return Err(reason);
                }
            }
            return Ok(free.memory);
        }
        match self.allocate(bytes) {
            Err(DeviceReason::OutOfMemory { .. }) if !lock(&self.free).is_empty() => {
                // Those that are free are too small.
                let outgrown = std::mem::take(&mut *lock(&self.free));
                for free in outgrown {
                    self.discard(&free);
                }
                self.allocate(bytes)
            }
            allocated => allocated,
        }
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
        let mut kept = lock(&self.free);
        if kept.len() < self.limits.keep {
            return kept.push(free);
        }
        drop(kept);
        self.discard(&free);
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        lock(&self.free).iter().for_each(Free::settle);
    }
}

/// The memory of a batch on a device. Dropping it makes the memory free for a later batch.
///
/// Streams that read it have to be named: by [`hold_back`](Self::hold_back), which orders them after
/// the copy, or by [`record_stream`](Self::record_stream). They have to exist until the buffer is
/// dropped.
pub struct DeviceBuffer {
    pool: Arc<BufferPool>,
    /// `None` only inside `drop`.
    memory: Option<DeviceMemory>,
    address: u64,
    bytes: usize,
    ready: Arc<Event>,
    readers: Mutex<Vec<StreamHandle>>,
    rest: Rest,
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
        let readers = Mutex::default();
        Self { pool, memory: Some(memory), address, bytes, ready, readers, rest: Rest::default() }
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

    /// Work that `stream` gets from now on begins after the copy, and the memory is used again only
    /// after the work that the stream has when the buffer is dropped.
    ///
    /// # Errors
    /// A call of the driver that failed; [`DeviceReason::Forked`].
    pub fn hold_back(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        self.ready.hold_back(stream)?;
        self.record_stream(stream);
        Ok(())
    }

    /// The memory is used again only after the work that `stream` has when the buffer is dropped.
    pub fn record_stream(&self, stream: StreamHandle) {
        let mut readers = lock(&self.readers);
        if !readers.contains(&stream) {
            readers.push(stream);
        }
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
        let device = self.device();
        let last_use = |&stream: &StreamHandle| {
            let event = device.event()?;
            event.record(stream)?;
            Ok::<_, DeviceReason>(event)
        };
        let readers = lock(&self.readers);
        match readers.iter().map(last_use).collect() {
            Ok(last_uses) => {
                let ready = Arc::clone(&self.ready);
                self.pool.put_back(Free { memory, ready, last_uses });
            }
            // A fork, a lost device, or a stream that was destroyed too early: nobody can say when
            // the memory is read, so it is never used again.
            Err(_) => std::mem::forget(memory),
        }
    }
}
