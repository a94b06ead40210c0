//! Copies of pictures and erasures to the device, and what becomes of the pictures there.
#![expect(unsafe_code, reason = "copies and kernels that continue after the call; docs/safety.md")]

use std::fmt;

use tl_handoff::sync::{Mutex, lock};

use super::lanes::PictureMemory;
use super::memory::CopyMemory;
use super::{ALIGNMENT, Images, Shared};
use crate::conversion::CHANNELS;
use crate::driver::{DeviceMemory, Stream};
use crate::erasures::Gathering as Erased;
use crate::nvjpeg::{NvJpegDecoder, PlanarFile};
use crate::picture::batch::{Chunk, Gathering, Places};
use crate::picture::decoder::{Memory, PictureDecoder};
use crate::picture::{FileCopy, RowPicture};
use crate::reason::DeviceReason;

/// More than `bytes`, so that a larger batch often fits as well.
pub(super) fn with_room(bytes: usize) -> usize {
    (bytes + bytes / 4).next_multiple_of(1 << 20)
}

/// The pictures of a batch in memory for copies, and after them what is erased.
#[derive(Debug)]
pub(crate) struct HostCopy {
    memory: CopyMemory,
    /// Bytes of the pictures, and the place of the erasures: files of nvJPEG are between them.
    bytes: usize,
    erasures: usize,
    /// Bytes on the device: of the copy at once, and between the kernels.
    device_bytes: usize,
    scratch: usize,
    chunks: Vec<Chunk>,
    samples: Vec<u64>,
    /// Whether rows are decoded by an index, which may be wrong.
    has_rows: bool,
    files: Vec<FileCopy>,
}

/// The pictures of a batch, and once they are decoded the knowledge whether all rows were those of
/// their index. The batch and the thread that waits for copies share it: the first to see the end of
/// the copy settles it.
pub(crate) struct Verdict {
    /// Whether a picture can have other rows.
    pub(crate) is_open: bool,
    state: Mutex<State>,
}

enum State {
    Decoding(HostCopy),
    /// The sample of the first picture with other rows.
    Settled(Option<u64>),
}

impl Verdict {
    pub(super) fn new(copy: HostCopy) -> Self {
        let is_open = copy.has_rows;
        Self { is_open, state: Mutex::new(State::Decoding(copy)) }
    }

    /// The sample of the first picture whose rows were not those of its index. The copy has to be
    /// complete: its memory is free for others from now on.
    pub(crate) fn settle(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        let fault = match &*state {
            State::Decoding(copy) => copy.fault(),
            State::Settled(fault) => *fault,
        };
        *state = State::Settled(fault);
        fault
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

impl HostCopy {
    /// Images that nvJPEG decodes.
    pub(super) fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// The first bytes of the erasures.
    pub(super) fn erasures(&self, bytes: usize) -> &[u8] {
        &self.memory[self.erasures..][..bytes]
    }

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
    /// Gathers the pictures of a batch whose images have so many pixels, and what is erased; `None`
    /// without either. It is one memory: threads that held a part of what they need could wait for
    /// each other.
    pub(super) fn gather(
        &self,
        pictures: &[RowPicture<'_>],
        pixels: usize,
        erased: &Option<Erased<'_>>,
    ) -> Result<Option<HostCopy>, DeviceReason> {
        let gathering = Gathering::new(pictures, pixels, self.room);
        // Other pixels, such as those of another decoder, would depend on the machine.
        if let Some(picture) = gathering.beyond(self.room.scratch) {
            let error = format!(
                "{} bytes are needed, expected {} at most: let the loader have more of the device's \
                 memory",
                picture.scratch_bytes(),
                self.room.scratch
            );
            let function = "memory for its pixels";
            return Err(DeviceReason::NvJpegFile { sample: picture.sample, function, error });
        }
        let bytes = if pictures.is_empty() { 0 } else { gathering.bytes };
        let erased = erased.as_ref().filter(|erased| erased.bytes > 0);
        let erasures = (bytes + gathering.file_bytes).next_multiple_of(ALIGNMENT);
        let all = erasures + erased.map_or(0, |erased| erased.bytes);
        if all == 0 {
            return Ok(None);
        }
        let mut memory = self.copies.take(&self.device, all)?;
        let files = gathering.write(&mut memory);
        if let Some(erased) = erased {
            erased.write(&mut memory[erasures..]);
        }
        let samples = gathering.samples();
        let has_rows = gathering.has_rows();
        let Gathering { chunks, scratch, device_bytes, .. } = gathering;
        Ok(Some(HostCopy {
            memory,
            bytes,
            erasures,
            device_bytes,
            scratch,
            chunks,
            samples,
            has_rows,
            files,
        }))
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

/// Enqueues the decoding of the files of a chunk to their places in `scratch`.
///
/// # Safety
/// As for [`NvJpegDecoder::decode_planes`]: `scratch` is that of the copy, and what is enqueued on
/// `stream` may use it before. `state` is used on this stream alone.
unsafe fn decode_files(
    stream: &Stream,
    copy: &HostCopy,
    chunk: &Chunk,
    decoder: &PictureDecoder,
    state: &mut Option<NvJpegDecoder>,
    scratch: &DeviceMemory,
) -> Result<(), DeviceReason> {
    let numbers = chunk.first..chunk.first + chunk.count;
    let files = copy.files.iter().filter(|file| numbers.contains(&file.picture));
    let files: Vec<PlanarFile<'_>> = files
        .map(|file| PlanarFile {
            sample: copy.samples[file.picture],
            bytes: &copy.memory[file.at..][..file.len],
            size: file.size,
            planes: scratch.address + file.planes as u64,
            stride: file.stride(),
            plane_bytes: file.plane_bytes(),
        })
        .collect();
    if files.is_empty() {
        return Ok(());
    }
    let nvjpeg = decoder.nvjpeg().expect("files are pictures for nvJPEG");
    let state = match state {
        Some(state) => state,
        None => state.insert(nvjpeg.decoder()?),
    };
    // SAFETY: `Picture::prepare_file` has laid out planes of these sizes within the scratch memory of
    // its picture; the caller vouches for the rest.
    unsafe { state.decode_planes(&files, stream) }
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
        copy: &mut HostCopy,
        decoder: &PictureDecoder,
        memory: &mut PictureMemory,
        to: &DeviceMemory,
    ) -> Result<usize, DeviceReason> {
        let PictureMemory { payload, scratch, nvjpeg } = memory;
        let pictures = copy.samples.len();
        let payloads = Places::of(pictures).payloads;
        let most = payloads.saturating_add(self.room.payload);
        let payload = self.reserve(stream, payload, copy.device_bytes, most)?;
        let scratch = self.reserve(stream, scratch, copy.scratch, self.room.scratch)?;
        let memory = Memory { payload, pictures, scratch, target: to };
        // SAFETY: the caller keeps the copy; the device's memory is freed only after a wait.
        unsafe { stream.copy_to_device(&copy.memory[..payloads], payload, 0) }?;
        for chunk in &copy.chunks {
            let bytes = &copy.memory[chunk.payload..][..chunk.payload_bytes];
            // SAFETY: as above, and the kernels of the chunk before have read theirs by then.
            unsafe { stream.copy_to_device(bytes, payload, payloads) }?;
            // SAFETY: the caller keeps the copy, whose scratch memory was reserved above for the chunks
            // one after the other. The decoder stays with the lane, whose stream this is.
            unsafe { decode_files(stream, copy, chunk, decoder, nvjpeg, scratch) }?;
            // SAFETY: `gather` has written the copy, whose scratch memory was reserved above;
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

    /// Memory of a lane with this stream, of at least so many bytes. What is allocated has room for
    /// more, up to `most` bytes.
    pub(super) fn reserve<'a>(
        &self,
        stream: &Stream,
        memory: &'a mut Option<DeviceMemory>,
        need: usize,
        most: usize,
    ) -> Result<&'a DeviceMemory, DeviceReason> {
        match memory.take() {
            Some(enough) if enough.bytes >= need => Ok(memory.insert(enough)),
            small => {
                stream.synchronize()?;
                drop(small);
                let bytes = with_room(need).min(most.max(need));
                Ok(memory.insert(self.device.allocate(bytes)?))
            }
        }
    }
}
