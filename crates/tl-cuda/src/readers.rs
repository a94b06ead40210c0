//! The streams that read a memory.

use tl_handoff::sync::{Mutex, lock};

use crate::driver::{Device, Event, StreamHandle};
use crate::reason::DeviceReason;

/// Streams that read a memory, each with the event of its last use.
#[derive(Default)]
pub(crate) struct Readers {
    readers: Mutex<Vec<Reader>>,
}

struct Reader {
    stream: StreamHandle,
    last_use: Event,
}

impl Readers {
    /// Adds a stream of `device`.
    pub(crate) fn record(&self, device: &Device, stream: StreamHandle) -> Result<(), DeviceReason> {
        // Before the lock: a thread that a fork lacks may hold it.
        let last_use = device.event()?;
        // A failure at the end would reach nobody, so it is found now.
        last_use.record_end(stream)?;
        let mut readers = lock(&self.readers);
        if !readers.iter().any(|reader| reader.stream == stream) {
            readers.push(Reader { stream, last_use });
        }
        Ok(())
    }

    /// The events of the work that the streams have now. It fails for a lost device, for a stream that
    /// was destroyed too early, and for one that is being captured.
    pub(crate) fn end(&self) -> Result<Vec<Event>, DeviceReason> {
        let readers = std::mem::take(&mut *lock(&self.readers));
        let end = |Reader { stream, last_use }: Reader| {
            last_use.record_end(stream)?;
            Ok(last_use)
        };
        readers.into_iter().map(end).collect()
    }
}
