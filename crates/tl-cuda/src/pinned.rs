//! Batches in pinned memory that streams of the program copy from.
//!
//! A copy from pinned memory continues after the call that enqueues it, so the memory is not free when
//! nobody on the host uses it any more. It is kept until the streams that were named, and the legacy
//! stream, have come so far. A thread waits for them, and nobody else.

use std::fmt;

use tl_handoff::sync::{Arc, process_id, thread};

use crate::driver::{Device, Event, StreamHandle};
use crate::jobs::Jobs;
use crate::readers::Readers;
use crate::reason::DeviceReason;
use crate::uploader::HostBytes;

/// The thread that keeps batches until streams have read them.
pub struct PinnedKeeper {
    device: Device,
    process: u32,
    held: Arc<Jobs<Held>>,
    /// `None` only inside `drop`.
    thread: Option<thread::JoinHandle<()>>,
}

/// Memory that streams may still read.
struct Held {
    device: Device,
    source: Arc<dyn HostBytes>,
    /// The ends of the reading, or none if they cannot be told.
    last_uses: Option<Vec<Event>>,
}

impl Held {
    /// Drops the memory when it has been read. If waiting fails the device is lost, or a stream is being
    /// captured: nobody can say when the memory is read, so it is never used again.
    fn settle(self) {
        let Self { device, source, last_uses } = self;
        let waited = match &last_uses {
            Some(last_uses) => last_uses.iter().try_for_each(Event::synchronize),
            None => device.synchronize(),
        };
        if waited.is_err() {
            std::mem::forget(source);
        }
    }
}

impl PinnedKeeper {
    /// A keeper for copies to `device`.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn new(device: &Device) -> Result<Self, DeviceReason> {
        let held = Arc::new(Jobs::default());
        let kept: Arc<Jobs<Held>> = Arc::clone(&held);
        let thread = thread::Builder::new().name("tl-pinned".to_owned());
        let thread = thread.spawn(move || {
            while let Some(held) = kept.next() {
                held.settle();
            }
        });
        let thread = thread.map_err(|error| DeviceReason::Library {
            function: "a thread for pinned memory",
            error: error.to_string(),
        })?;
        Ok(Self { device: device.clone(), process: process_id(), held, thread: Some(thread) })
    }

    /// Keeps `source` while the result exists and afterwards, until its streams have read it.
    #[must_use]
    pub fn keep(&self, source: Arc<dyn HostBytes>) -> PinnedUse {
        let device = self.device.clone();
        let held = Arc::clone(&self.held);
        PinnedUse { device, source: Some(source), readers: Readers::default(), held }
    }
}

impl fmt::Debug for PinnedKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedKeeper").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Drop for PinnedKeeper {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != process_id() {
            // The thread, and maybe the release of a lock, are in the other process.
            std::mem::forget(thread);
            return;
        }
        self.held.close();
        if thread.join().is_err() {
            debug_assert!(false, "the thread calls the driver and drops values");
        }
    }
}

/// The use of pinned memory by a program. Once it is dropped, the memory is kept until the work that
/// these streams have then is done: the legacy one, and those that were named. They have to exist until
/// it is dropped.
pub struct PinnedUse {
    device: Device,
    /// `None` only inside `drop`.
    source: Option<Arc<dyn HostBytes>>,
    readers: Readers,
    held: Arc<Jobs<Held>>,
}

impl PinnedUse {
    /// The device that the memory was pinned with.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Names a stream of the device that copies from the memory.
    ///
    /// # Errors
    /// A call of the driver that failed, as for a stream of another device or one that is being
    /// captured; [`DeviceReason::Forked`].
    pub fn record_stream(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        self.readers.record(&self.device, stream)
    }
}

impl fmt::Debug for PinnedUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedUse").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Drop for PinnedUse {
    fn drop(&mut self) {
        let Some(source) = self.source.take() else { return };
        if self.device.is_forked() {
            return;
        }
        let legacy = self.record_stream(StreamHandle::LEGACY);
        let last_uses = legacy.and_then(|()| self.readers.end()).ok();
        let held = Held { device: self.device.clone(), source, last_uses };
        if let Err(held) = self.held.push(held) {
            held.settle();
        }
    }
}
