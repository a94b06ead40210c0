//! Memory of the host that copies are made from, used again.

use std::fmt;
use std::ops::{Deref, DerefMut};

use tl_handoff::sync::{Arc, Condvar, Mutex, lock, wait};

use super::pictures::with_room;
use crate::driver::{Device, PinnedMemory};
use crate::reason::DeviceReason;

/// The unit of memory without room for more.
const PAGE: usize = 4096;

/// Memory for copies, which returns to its pool when it is dropped: whatever reads or writes it has
/// ended by then.
pub(crate) struct CopyMemory {
    /// `None` only inside `drop`.
    memory: Option<Memory>,
    pool: Arc<CopyPool>,
}

/// Pinned memory, or ordinary where none can be pinned, from which the driver copies by way of its own.
enum Memory {
    Pinned(PinnedMemory),
    Ordinary(Vec<u8>),
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Pinned(memory) => memory,
            Self::Ordinary(memory) => memory,
        }
    }
}

impl Deref for CopyMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.as_deref().unwrap_or_default()
    }
}

impl DerefMut for CopyMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(Memory::Pinned(memory)) => memory,
            Some(Memory::Ordinary(memory)) => memory,
            None => &mut [],
        }
    }
}

impl Drop for CopyMemory {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool.put_back(memory);
        }
    }
}

impl fmt::Debug for CopyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyMemory").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

/// Memory that is used again.
pub(super) struct CopyPool {
    keep: usize,
    /// Whether memory that cannot be pinned is an error.
    is_required: bool,
    state: Mutex<State>,
    /// Signalled when memory is put back.
    changed: Condvar,
}

struct State {
    free: Vec<Memory>,
    /// Bytes that are free or in use, and how many there may be.
    bytes: u64,
    limit: u64,
    /// The first reason for which memory could not be pinned, until it is told.
    unpinned: Option<DeviceReason>,
    /// The reason for which copies under way do not end.
    failed: Option<DeviceReason>,
}

impl CopyPool {
    pub(super) fn new(keep: usize, is_required: bool) -> Self {
        let limit = u64::MAX;
        let state = State { free: Vec::new(), bytes: 0, limit, unpinned: None, failed: None };
        Self { keep, is_required, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Ends all waiting: memory of copies that failed does not come back.
    pub(super) fn fail(&self, reason: DeviceReason) {
        lock(&self.state).failed.get_or_insert(reason);
        self.changed.notify_all();
    }

    /// Bounds the bytes of all memory.
    pub(super) fn limit(&self, bytes: u64) {
        lock(&self.state).limit = bytes;
    }

    /// The first reason for which memory could not be pinned, on the first call after.
    pub(super) fn take_unpinned(&self) -> Option<DeviceReason> {
        lock(&self.state).unpinned.take()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        lock(&self.state).bytes
    }

    /// Memory of so many bytes or more. Where the limit leaves none, it waits for copies that are
    /// under way; one that is larger than the limit is alone.
    pub(super) fn take(
        self: &Arc<Self>,
        device: &Device,
        bytes: usize,
    ) -> Result<CopyMemory, DeviceReason> {
        let lent = |memory| CopyMemory { memory: Some(memory), pool: Arc::clone(self) };
        let mut state = lock(&self.state);
        let need = loop {
            state.free.sort_unstable_by_key(|memory| memory.len());
            if let Some(place) = state.free.iter().position(|memory| memory.len() >= bytes) {
                return Ok(lent(state.free.remove(place)));
            }
            // The largest that is too small makes way.
            let outgrown = state.free.pop();
            let freed = outgrown.as_ref().map_or(0, |memory| memory.len());
            state.bytes -= freed as u64;
            let is_bounded = state.limit < u64::MAX;
            let need = if is_bounded { bytes.next_multiple_of(PAGE) } else { with_room(bytes) };
            let fits = state.bytes.saturating_add(need as u64) <= state.limit;
            if fits || state.bytes == 0 {
                drop(outgrown);
                state.bytes += need as u64;
                break need;
            }
            if let Some(reason) = &state.failed {
                return Err(reason.clone());
            }
            if state.free.is_empty() {
                drop(outgrown);
                state = wait(&self.changed, state);
            }
        };
        drop(state);
        match device.pinned(need) {
            Ok(memory) => Ok(lent(Memory::Pinned(memory))),
            Err(reason @ (DeviceReason::OutOfMemory { .. } | DeviceReason::Library { .. }))
                if !self.is_required =>
            {
                lock(&self.state).unpinned.get_or_insert(reason);
                Ok(lent(Memory::Ordinary(vec![0; need])))
            }
            Err(reason) => {
                self.forget(need);
                Err(reason)
            }
        }
    }

    fn put_back(&self, memory: Memory) {
        let mut state = lock(&self.state);
        if state.free.len() < self.keep {
            state.free.push(memory);
            drop(state);
            self.changed.notify_all();
            return;
        }
        drop(state);
        let bytes = memory.len();
        drop(memory);
        self.forget(bytes);
    }

    /// Counts memory no more.
    fn forget(&self, bytes: usize) {
        lock(&self.state).bytes -= bytes as u64;
        self.changed.notify_all();
    }
}
