//! Memory of the host that copies are made from, used again.

use std::ops::{Deref, DerefMut};

use tl_handoff::sync::{Mutex, lock};

use super::pictures::with_room;
use crate::driver::{Device, PinnedMemory};
use crate::reason::DeviceReason;

/// Memory for copies: pinned, or ordinary where none can be pinned, from which the driver copies by way
/// of its own.
#[derive(Debug)]
pub(crate) enum CopyMemory {
    Pinned(PinnedMemory),
    Ordinary(Vec<u8>),
}

impl Deref for CopyMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Pinned(memory) => memory,
            Self::Ordinary(memory) => memory,
        }
    }
}

impl DerefMut for CopyMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pinned(memory) => memory,
            Self::Ordinary(memory) => memory,
        }
    }
}

/// Memory that is used again.
pub(super) struct CopyPool {
    keep: usize,
    free: Mutex<Vec<CopyMemory>>,
}

impl CopyPool {
    pub(super) fn new(keep: usize) -> Self {
        Self { keep, free: Mutex::default() }
    }

    /// Memory of so many bytes or more.
    pub(super) fn take(&self, device: &Device, bytes: usize) -> Result<CopyMemory, DeviceReason> {
        let mut free = lock(&self.free);
        free.sort_unstable_by_key(|memory| memory.len());
        if let Some(place) = free.iter().position(|memory| memory.len() >= bytes) {
            return Ok(free.remove(place));
        }
        // The largest that is too small makes way.
        drop(free.pop());
        drop(free);
        match device.pinned(with_room(bytes)) {
            // Slabs are pinned first, and the loader says when that fails.
            Err(DeviceReason::OutOfMemory { .. } | DeviceReason::Library { .. }) => {
                Ok(CopyMemory::Ordinary(vec![0; with_room(bytes)]))
            }
            pinned => pinned.map(CopyMemory::Pinned),
        }
    }

    pub(super) fn put_back(&self, memory: CopyMemory) {
        let mut free = lock(&self.free);
        if free.len() < self.keep {
            free.push(memory);
        }
    }
}
