//! Streams that batches are on by turns, each with memory of its own.
//!
//! The device works on the batches of several streams at the same time. That pays where a batch takes
//! long and uses little of the device: its entropy-coded rows are decoded by a thread each, and it is
//! complete when the longest is.

use tl_handoff::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, lock, try_lock};

use crate::driver::{Device, DeviceMemory, Stream};
use crate::nvjpeg::NvJpegDecoder;
use crate::reason::DeviceReason;

/// The lanes of an uploader.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Batches that have taken a lane.
    taken: AtomicUsize,
}

struct Lane {
    stream: Stream,
    /// Locked while a batch is enqueued.
    memory: Mutex<LaneMemory>,
}

/// Memory of the device between copy and result. There is one for all batches of a lane, because the
/// work of a stream is done in order.
#[derive(Default)]
pub(super) struct LaneMemory {
    /// Pixels before they are converted.
    pub(super) pixels: Option<DeviceMemory>,
    pub(super) pictures: PictureMemory,
    /// Copies of what is erased.
    pub(super) erasures: Option<DeviceMemory>,
}

/// The part of it for decoding.
#[derive(Default)]
pub(super) struct PictureMemory {
    /// Copies of pictures.
    pub(super) payload: Option<DeviceMemory>,
    /// Memory between the kernels that decode.
    pub(super) scratch: Option<DeviceMemory>,
    /// The state of nvJPEG, with memory of its own.
    pub(super) nvjpeg: Option<NvJpegDecoder>,
}

/// A lane that a batch is enqueued to; nobody else enqueues there.
pub(super) struct Turn<'a> {
    pub(super) stream: &'a Stream,
    pub(super) memory: MutexGuard<'a, LaneMemory>,
}

impl Lanes {
    /// At least one lane.
    pub(super) fn new(device: &Device, count: usize) -> Result<Self, DeviceReason> {
        let lane = |_| Ok(Lane { stream: device.stream()?, memory: Mutex::default() });
        let lanes = (0..count.max(1)).map(lane).collect::<Result<_, DeviceReason>>()?;
        Ok(Self { lanes, taken: AtomicUsize::new(0) })
    }

    /// The next lane that nobody enqueues to; if there is none, the next one once it is free.
    pub(super) fn take(&self) -> Turn<'_> {
        let next = self.taken.fetch_add(1, Ordering::Relaxed) % self.lanes.len();
        let mut in_turn = self.lanes[next..].iter().chain(&self.lanes[..next]);
        let free = in_turn.find_map(|Lane { stream, memory }| {
            try_lock(memory).map(|memory| Turn { stream, memory })
        });
        free.unwrap_or_else(|| {
            let Lane { stream, memory } = &self.lanes[next];
            Turn { stream, memory: lock(memory) }
        })
    }

    #[cfg(test)]
    pub(super) fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.lanes.iter().map(|lane| &lane.stream)
    }
}
