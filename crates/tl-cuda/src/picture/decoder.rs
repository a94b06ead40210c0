//! Launches of the kernels that decode.
#![expect(unsafe_code, reason = "launches of kernels; docs/safety.md")]

use std::fmt;

use super::batch::{Chunk, Places};
use super::descriptor::{Axis, Descriptor, Resize, TABLE_BITS};
use crate::conversion::PTX;
use crate::driver::{BLOCK, Device, DeviceMemory, Kernel, Module, Stream};
use crate::reason::DeviceReason;

/// Threads of a block that decodes entropy-coded rows: few, so that the rows of a batch are spread
/// over the whole device.
const ENTROPY_BLOCK: u32 = 32;

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

/// The kernels that decode images.
pub struct PictureDecoder {
    clear: Kernel,
    codes: Kernel,
    entropy: Kernel,
    transform: Kernel,
    colours: Kernel,
    resize_first: Kernel,
    resize_second: Kernel,
    place: Kernel,
    /// Has the kernels.
    _module: Module,
}

/// Threads that each kernel needs for a picture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Threads {
    clear: u32,
    codes: u32,
    entropy: u32,
    transform: u32,
    colours: u32,
    resize_first: u32,
    resize_second: u32,
    place: u32,
}

impl Threads {
    pub(super) fn of(picture: &Descriptor) -> Self {
        let Descriptor { components, pixels, resizes, frame, entropy, .. } = picture;
        let most = |threads: fn(&Resize) -> u32| resizes.iter().map(threads).max().unwrap_or(0);
        let blocks = components.iter().map(|component| component.columns * component.rows);
        Self {
            clear: entropy.coefficient_bytes / 16,
            codes: entropy.code_count << TABLE_BITS,
            entropy: entropy.row_count,
            transform: blocks.max().unwrap_or(0),
            colours: pixels.stride / 4 * pixels.height,
            resize_first: most(|resize| match resize.is_vertical_first {
                0 => groups(&resize.columns, resize.source_height),
                _ => groups(&resize.rows, resize.source_width),
            }),
            resize_second: most(|resize| match resize.is_vertical_first {
                0 => groups(&resize.rows, resize.columns.count),
                _ => groups(&resize.columns, resize.rows.count),
            }),
            place: (frame.width * frame.height).div_ceil(4),
        }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            clear: self.clear.max(other.clear),
            codes: self.codes.max(other.codes),
            entropy: self.entropy.max(other.entropy),
            transform: self.transform.max(other.transform),
            colours: self.colours.max(other.colours),
            resize_first: self.resize_first.max(other.resize_first),
            resize_second: self.resize_second.max(other.resize_second),
            place: self.place.max(other.place),
        }
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
        let module = device.module(PTX)?;
        Ok(Self {
            clear: module.kernel(c"clear")?,
            codes: module.kernel(c"codes")?,
            entropy: module.kernel(c"entropy")?,
            transform: module.kernel(c"transform")?,
            colours: module.kernel(c"colours")?,
            resize_first: module.kernel(c"resize_first")?,
            resize_second: module.kernel(c"resize_second")?,
            place: module.kernel(c"place")?,
            _module: module,
        })
    }

    /// Enqueues the decoding of `chunk` of `pictures` pictures, whose copy is in `payload`.
    ///
    /// # Safety
    /// `payload` has what [`Gathering::write`](super::batch::Gathering::write) has written, `scratch`
    /// has as many bytes as it says, and `target` those of all images. Until the stream has come so
    /// far, all of these and the decoder live, and nobody else writes there.
    pub(crate) unsafe fn enqueue(
        &self,
        stream: &Stream,
        pictures: usize,
        chunk: &Chunk,
        payload: &DeviceMemory,
        scratch: &DeviceMemory,
        target: &DeviceMemory,
    ) -> Result<(), DeviceReason> {
        let argument = Arguments {
            pictures: payload.address + Places::of(pictures).descriptor(chunk.first) as u64,
            payload: payload.address,
            scratch: scratch.address,
            target: target.address,
            faults: payload.address + (chunk.first * size_of::<u32>()) as u64,
        };
        let images = u32::try_from(chunk.count).expect("limited by `Gathering`");
        let planes = images * 3;
        let Threads { clear, codes, entropy, transform, .. } = chunk.threads;
        let Threads { colours, resize_first, resize_second, place, .. } = chunk.threads;
        let launches = [
            (self.clear, clear, images, BLOCK),
            (self.codes, codes, images, BLOCK),
            (self.entropy, entropy, images, ENTROPY_BLOCK),
            (self.transform, transform, planes, BLOCK / 2),
            (self.colours, colours, images, BLOCK),
            (self.resize_first, resize_first, planes, BLOCK),
            (self.resize_second, resize_second, planes, BLOCK),
            (self.place, place, images, BLOCK),
        ];
        for (kernel, threads, rows, block) in launches {
            // SAFETY: the kernels take such an argument. Descriptors are made by `Picture::prepare`,
            // with all places inside the payload and the scratch memory of a picture; the caller
            // vouches for the rest.
            unsafe { stream.launch(kernel, threads, rows, block, argument) }?;
        }
        Ok(())
    }
}

impl fmt::Debug for PictureDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PictureDecoder").finish_non_exhaustive()
    }
}
