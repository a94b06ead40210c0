//! Copies of pictures to the device, and what becomes of them there.
#![expect(unsafe_code, reason = "copies and kernels that continue after the call; docs/safety.md")]

use std::fmt;

use tl_handoff::sync::{Arc, Mutex, lock};

use super::memory::{CopyMemory, CopyPool};
use super::{Images, Shared};
use crate::conversion::CHANNELS;
use crate::driver::{DeviceMemory, Stream};
use crate::picture::RowPicture;
use crate::picture::batch::{Chunk, Gathering};
use crate::picture::decoder::{Memory, PictureDecoder};
use crate::reason::DeviceReason;

/// More than `bytes`, so that a larger batch often fits as well.
pub(super) fn with_room(bytes: usize) -> usize {
    (bytes + bytes / 4).next_multiple_of(1 << 20)
}

/// The pictures of a batch in memory for copies.
#[derive(Debug)]
pub(crate) struct PictureCopy {
    memory: CopyMemory,
    bytes: usize,
    scratch: usize,
    chunks: Vec<Chunk>,
    samples: Vec<u64>,
    /// Whether rows are decoded by an index, which may be wrong.
    has_rows: bool,
}

/// The pictures of a batch, and once they are decoded the knowledge whether all rows were those of
/// their index. The batch and the thread that waits for copies share it: the first to see the end of
/// the copy settles it.
pub(crate) struct Verdict {
    /// Whether a picture can have other rows.
    pub(crate) is_open: bool,
    state: Mutex<State>,
    /// The pool that the memory returns to.
    pool: Arc<CopyPool>,
}

enum State {
    Decoding(PictureCopy),
    /// The sample of the first picture with other rows.
    Settled(Option<u64>),
}

impl Verdict {
    pub(super) fn new(copy: PictureCopy, pool: Arc<CopyPool>) -> Self {
        let is_open = copy.has_rows;
        Self { is_open, state: Mutex::new(State::Decoding(copy)), pool }
    }

    /// The sample of the first picture whose rows were not those of its index. The copy has to be
    /// complete: its memory is free for others from now on.
    pub(crate) fn settle(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        let fault = match &*state {
            State::Decoding(copy) => copy.fault(),
            State::Settled(fault) => *fault,
        };
        if let State::Decoding(copy) = std::mem::replace(&mut *state, State::Settled(fault)) {
            self.pool.put_back(copy.memory);
        }
        fault
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

impl PictureCopy {
    /// The sample of the first picture whose rows were not those of its index. The copy has to be
    /// complete.
    fn fault(&self) -> Option<u64> {
        if !self.has_rows {
            return None;
        }
        let faults = self.memory.as_chunks::<4>().0;
        let mut samples = faults.iter().zip(&self.samples);
        samples.find(|(fault, _)| **fault != [0; 4]).map(|(_, sample)| *sample)
    }
}

impl Shared {
    /// Gathers the pictures of a batch whose images have so many pixels.
    pub(super) fn gather(
        &self,
        pictures: &[RowPicture<'_>],
        pixels: usize,
    ) -> Result<PictureCopy, DeviceReason> {
        let gathering = Gathering::new(pictures, pixels, self.scratch);
        let bytes = gathering.bytes;
        let mut memory = self.copies.take(&self.device, bytes)?;
        gathering.write(&mut memory);
        let samples = gathering.samples();
        let has_rows = gathering.has_rows();
        let Gathering { chunks, scratch, .. } = gathering;
        Ok(PictureCopy { memory, bytes, scratch, chunks, samples, has_rows })
    }
}

/// Enqueues the copies of the images that `pictures` does not have, to the front of `to`; their
/// bytes.
///
/// # Safety
/// As for [`Stream::copy_to_device`].
pub(super) unsafe fn copy_images(
    stream: &Stream,
    bytes: &[u8],
    images: &Images,
    pictures: &[RowPicture<'_>],
    to: &DeviceMemory,
) -> Result<usize, DeviceReason> {
    let image = images.pixels * CHANNELS;
    let mut copied = 0;
    let mut next = 0;
    let rows = pictures.iter().map(|picture| picture.row);
    for row in rows.chain([images.count]) {
        assert!(next <= row && row <= images.count, "row {row} after {next} rows");
        let run = &bytes[next * image..row * image];
        // SAFETY: the caller vouches for both.
        unsafe { stream.copy_to_device(run, to, next * image) }?;
        copied += run.len();
        next = row + 1;
    }
    Ok(copied)
}

impl Shared {
    /// Enqueues the copy of pictures and their decoding to `to`; the bytes of the copy.
    ///
    /// # Safety
    /// `copy` was made for the images of `to`. Until the stream has come so far, it lives and nobody
    /// looks at it; `decoder` and `to` live.
    pub(super) unsafe fn decode(
        &self,
        stream: &Stream,
        copy: &mut PictureCopy,
        decoder: &PictureDecoder,
        [payload, scratch]: [&mut Option<DeviceMemory>; 2],
        to: &DeviceMemory,
    ) -> Result<usize, DeviceReason> {
        let payload = self.reserve(stream, payload, copy.bytes, with_room)?;
        let scratch = self.reserve(stream, scratch, copy.scratch, with_room)?;
        let pictures = copy.samples.len();
        let memory = Memory { payload, pictures, scratch, target: to };
        // SAFETY: the caller keeps the copy; the device's memory is freed only after a wait.
        unsafe { stream.copy_to_device(&copy.memory[..copy.bytes], payload, 0) }?;
        for chunk in &copy.chunks {
            // SAFETY: `PinnedPool::copy` has written the copy, whose scratch memory was reserved above;
            // the caller vouches for the rest.
            unsafe { decoder.enqueue(stream, chunk, memory, |_| ()) }?;
        }
        if copy.has_rows {
            let faults = &mut copy.memory[..pictures * size_of::<u32>()];
            // SAFETY: the stream has read what is overwritten; the caller keeps the copy.
            unsafe { stream.copy_to_host(faults, payload) }?;
        }
        Ok(copy.bytes)
    }

    /// Memory of a lane with this stream, of at least so many bytes; `room` says how many are allocated
    /// for them.
    pub(super) fn reserve<'a>(
        &self,
        stream: &Stream,
        memory: &'a mut Option<DeviceMemory>,
        need: usize,
        room: fn(usize) -> usize,
    ) -> Result<&'a DeviceMemory, DeviceReason> {
        match memory.take() {
            Some(enough) if enough.bytes >= need => Ok(memory.insert(enough)),
            small => {
                stream.synchronize()?;
                drop(small);
                Ok(memory.insert(self.device.allocate(room(need))?))
            }
        }
    }
}
