//! Launches of the kernels that decode.
#![expect(unsafe_code, reason = "launches of kernels; docs/safety.md")]

use std::ffi::CStr;
use std::fmt;

use tl_handoff::sync::Arc;

use super::batch::{Chunk, Places};
use super::descriptor::{Axis, Descriptor, Resize, TABLE_BITS};
use crate::driver::{BLOCK, Device, DeviceMemory, Kernel, Module, Stream};
use crate::nvjpeg::NvJpeg;
use crate::reason::DeviceReason;

/// Threads of a warp.
const WARP: u32 = 32;

/// Threads of a block that decodes entropy-coded rows: few enough that the rows of a batch are spread
/// over the device, and so many that few multiprocessors read the look-up tables of a picture.
const ENTROPY_BLOCK: u32 = 128;

/// Threads of a block that transforms coefficients, which needs many registers.
const TRANSFORM_BLOCK: u32 = 128;

/// The argument of the kernels: `Decode` of `decode.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    pictures: u64,
    payload: u64,
    scratch: u64,
    target: u64,
    faults: u64,
}

/// The kernels, in their order. A row of the grid is a picture, or one of its planes.
const STAGES: [Stage; 7] = [
    Stage { name: c"codes", rows: 1, block: BLOCK },
    Stage { name: c"entropy", rows: 1, block: ENTROPY_BLOCK },
    Stage { name: c"transform", rows: 3, block: TRANSFORM_BLOCK },
    Stage { name: c"colours", rows: 1, block: BLOCK },
    Stage { name: c"resize_first", rows: 3, block: BLOCK },
    Stage { name: c"resize_second", rows: 3, block: BLOCK },
    Stage { name: c"place", rows: 1, block: BLOCK },
];

/// A kernel, the rows of the grid for a picture, and the threads of a block.
#[derive(Clone, Copy)]
struct Stage {
    name: &'static CStr,
    rows: u32,
    block: u32,
}

/// The kernels that decode images.
pub struct PictureDecoder {
    stages: [Stage; STAGES.len()],
    kernels: [Kernel; STAGES.len()],
    /// Has the kernels.
    _module: Arc<Module>,
    nvjpeg: Option<Arc<NvJpeg>>,
}

/// Memory of the device for the pictures of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    /// The copy that [`Gathering`](super::batch::Gathering) has written, of so many pictures.
    pub(crate) payload: &'a DeviceMemory,
    pub(crate) pictures: usize,
    /// As many bytes as the gathering says.
    pub(crate) scratch: &'a DeviceMemory,
    /// The pixels of all images, from the front on.
    pub(crate) target: &'a DeviceMemory,
}

/// Threads that each kernel needs for a picture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Threads([u32; STAGES.len()]);

impl Threads {
    pub(super) fn of(picture: &Descriptor) -> Self {
        let Descriptor { components, pixels, resizes, frame, entropy, .. } = picture;
        let most = |threads: fn(&Resize) -> u32| resizes.iter().map(threads).max().unwrap_or(0);
        let blocks = components.iter().map(|component| component.columns * component.rows);
        Self([
            entropy.code_count << TABLE_BITS,
            entropy.row_count.div_ceil(entropy.lanes.max(1)) * WARP,
            blocks.max().unwrap_or(0),
            pixels.stride / 4 * pixels.height,
            most(|resize| match resize.is_vertical_first {
                0 => groups(&resize.columns, resize.source_height),
                _ => groups(&resize.rows, resize.source_width),
            }),
            most(|resize| match resize.is_vertical_first {
                0 => groups(&resize.rows, resize.columns.count),
                _ => groups(&resize.columns, resize.rows.count),
            }),
            (frame.width * frame.height).div_ceil(4),
        ])
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self(std::array::from_fn(|stage| self.0[stage].max(other.0[stage])))
    }
}

/// Threads of a pass along an axis: four lines each.
fn groups(axis: &Axis, lines: u32) -> u32 {
    axis.count * lines.div_ceil(4)
}

impl PictureDecoder {
    /// The kernels on `device`.
    ///
    /// # Errors
    /// A call of the driver that failed; [`DeviceReason::Forked`].
    pub fn new(device: &Device) -> Result<Self, DeviceReason> {
        let module = device.kernels()?;
        let [codes, entropy, transform, colours, first, second, place] =
            STAGES.map(|stage| module.kernel(stage.name));
        let kernels = [codes?, entropy?, transform?, colours?, first?, second?, place?];
        Ok(Self { stages: STAGES, kernels, _module: module, nvjpeg: None })
    }

    /// The same with nvJPEG, for pictures that [`Picture::prepare_file`](super::Picture::prepare_file)
    /// has made.
    #[must_use]
    pub fn with_nvjpeg(self, nvjpeg: Arc<NvJpeg>) -> Self {
        Self { nvjpeg: Some(nvjpeg), ..self }
    }

    /// The library that decodes files, if there is one.
    #[must_use]
    pub fn nvjpeg(&self) -> Option<&Arc<NvJpeg>> {
        self.nvjpeg.as_ref()
    }

    /// The same with other blocks for the kernel of this name.
    #[cfg(test)]
    pub(crate) fn with_block(mut self, name: &CStr, block: u32) -> Self {
        let mut stages = self.stages.iter_mut();
        stages.find(|stage| stage.name == name).expect("a kernel").block = block;
        self
    }

    /// Enqueues the decoding of a chunk, and calls `seen` after each kernel.
    ///
    /// # Safety
    /// The memory is what [`Memory`] says. Until the stream has come so far, it and the decoder live,
    /// and nobody else writes there.
    pub(crate) unsafe fn enqueue(
        &self,
        stream: &Stream,
        chunk: &Chunk,
        memory: Memory<'_>,
        mut seen: impl FnMut(&'static CStr),
    ) -> Result<(), DeviceReason> {
        let Memory { payload, pictures, scratch, target } = memory;
        let argument = Arguments {
            pictures: payload.address + Places::of(pictures).descriptor(chunk.first) as u64,
            payload: payload.address,
            scratch: scratch.address,
            target: target.address,
            faults: payload.address + (chunk.first * size_of::<u32>()) as u64,
        };
        let pictures = u32::try_from(chunk.count).expect("limited by `Gathering`");
        let stages = self.stages.into_iter().zip(self.kernels).zip(chunk.threads.0);
        for ((Stage { name, rows, block }, kernel), threads) in stages {
            // SAFETY: the kernels take such an argument. Descriptors are made by `Picture::prepare`,
            // with all places inside the payload and the scratch memory of a picture; the caller
            // vouches for the rest.
            unsafe { stream.launch(kernel, threads, rows * pictures, block, argument) }?;
            seen(name);
        }
        Ok(())
    }
}

impl fmt::Debug for PictureDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PictureDecoder").finish_non_exhaustive()
    }
}
