//! Images that the device decodes: what is copied there for each, and the kernels' way through it.

pub(crate) mod batch;
pub(crate) mod decoder;
mod descriptor;
mod file;
mod resizes;
mod source;

use std::fmt;

use tl_decode::{JpegParts, PlaneColor, Scale, Upsampling};
use tl_simd::resample::{Rect, ResizeArea, Weights};
use zerocopy::{Immutable, IntoBytes};

use descriptor::{Descriptor, Frame, PLANES, Pixels};
pub(crate) use file::FileCopy;
use file::JpegFile;

/// Bytes of the device that decoding one image may need, and of what is copied for it.
const SCRATCH_LIMIT: u64 = 256 << 20;

/// The alignment of what the kernels read and write.
const ALIGNMENT: usize = 16;

/// The way in which samples become pixels of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PictureResize {
    /// Samples are upsampled and converted to RGB, then resized, as Pillow does.
    Pixels(ResizeArea),
    /// The planes are resized as they are stored, each with its area, and converted afterwards. Grey
    /// images have the first one.
    Planes([ResizeArea; 3]),
}

/// The place of the resized window in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Width and height of the result.
    pub size: (u32, u32),
    /// Columns on the left of the window.
    pub left: u32,
    /// Rows above it.
    pub top: u32,
    /// The colour around it.
    pub fill: [u8; 3],
    /// Whether left and right change places, the colour around included.
    pub flip: bool,
    /// Whether top and bottom change places.
    pub flip_vertical: bool,
}

/// The weights of resizes, computed again only where they change. It is memory for one image after
/// the other.
#[derive(Debug, Default)]
pub struct PictureWeights {
    planes: [Weights; PLANES],
}

/// An image to be decoded on a device, with what is copied there. It is memory for one image after
/// the other.
#[derive(Default)]
pub struct Picture {
    pub(crate) sample: u64,
    descriptor: Descriptor,
    payload: Vec<u8>,
    /// Bytes of the scratch memory.
    scratch: usize,
    /// The file, if nvJPEG decodes it.
    file: JpegFile,
}

/// A picture of a batch.
#[derive(Clone, Copy, Debug)]
pub struct RowPicture<'a> {
    /// The number of the image in the batch.
    pub row: usize,
    /// The image.
    pub picture: &'a Picture,
}

impl Picture {
    /// Takes over what the kernels need to decode `parts`. False if they cannot, and the host has to:
    /// for four components, for scales other than [`Scale::HALVINGS`], for
    /// [`Upsampling::Fractional`] in [`PictureResize::Pixels`], and for images that are too large.
    ///
    /// `sample` is the number by which errors name the image.
    ///
    /// # Panics
    /// If the window of `resize` is empty or does not fit its image or `placement`, if `parts` do
    /// not have all the samples that count, or do not fit each other.
    pub fn prepare(
        &mut self,
        sample: u64,
        parts: &JpegParts,
        resize: &PictureResize,
        placement: &Placement,
        weights: &mut PictureWeights,
    ) -> bool {
        self.clear();
        if !is_supported(parts, resize) || source::payload_bytes(parts) > SCRATCH_LIMIT {
            return false;
        }
        let mut made = Descriptor {
            count: u32::try_from(parts.components.len()).expect("at most three"),
            is_ycc: (parts.color == PlaneColor::YCbCr).into(),
            ..Descriptor::default()
        };
        for (to, component) in made.components.iter_mut().zip(&parts.components) {
            *to = source::component(component);
        }
        let window = resizes::shape(&mut made, parts, resize, &mut weights.planes);
        made.frame = frame(placement, window);
        let Some(scratch) = lay_out(&mut made, parts) else { return false };

        self.sample = sample;
        self.scratch = scratch;
        source::write(&mut made, &mut self.payload, parts);
        resizes::write(&mut made, &mut self.payload, resize, &weights.planes);
        self.descriptor = made;
        true
    }

    /// Makes it empty; the memory is kept.
    pub fn clear(&mut self) {
        self.payload.clear();
        self.descriptor = Descriptor::default();
        self.scratch = 0;
        self.file.clear();
    }

    /// Whether there is nothing to decode.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptor.count == 0
    }

    /// Bytes that are copied for it, those of a file that nvJPEG reads included.
    #[must_use]
    pub fn copied_bytes(&self) -> usize {
        self.payload.len() + self.file.bytes.len()
    }

    /// Bytes of the device's memory that decoding it takes.
    #[must_use]
    pub fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    /// Bytes of memory that are kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.payload.capacity() + self.file.bytes.capacity()
    }

    /// The pixels of the result.
    fn pixels(&self) -> usize {
        let Frame { width, height, .. } = self.descriptor.frame;
        width as usize * height as usize
    }
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Picture")
            .field("sample", &self.sample)
            .field("payload", &self.payload.len())
            .field("scratch", &self.scratch)
            .finish_non_exhaustive()
    }
}

fn is_supported(parts: &JpegParts, resize: &PictureResize) -> bool {
    let has_all = match &parts.components[..] {
        [_] => parts.color == PlaneColor::Grey,
        components => {
            components.len() == PLANES && matches!(parts.color, PlaneColor::YCbCr | PlaneColor::Rgb)
        }
    };
    let is_pixels = matches!(resize, PictureResize::Pixels(_));
    has_all
        && parts.components.iter().all(|component| {
            let is_fractional = component.upsampling == Upsampling::Fractional;
            Scale::HALVINGS.contains(&component.scale) && !(is_pixels && is_fractional)
        })
}

fn frame(placement: &Placement, window: Rect) -> Frame {
    let Placement { size: (width, height), left, top, fill, flip, flip_vertical } = *placement;
    let placed = Rect { x: left, y: top, ..window };
    assert!(placed.fits(width, height), "{placed:?} leaves the result of {width}x{height}");
    let bytes = u64::from(width) * u64::from(height) * PLANES as u64;
    assert!(u32::try_from(bytes).is_ok(), "a result of {width}x{height} pixels");
    Frame {
        width,
        height,
        left,
        top,
        window_width: window.width,
        window_height: window.height,
        fill: fill.map(u32::from),
        flip: flip.into(),
        flip_vertical: flip_vertical.into(),
    }
}

/// Gives everything its place in the scratch memory; the bytes of that, or `None` for too many.
///
/// Each stage reads what the one before has written, and nothing older. So two parts of the memory
/// are enough, which the stages write in turn: coefficients, planes, pixels (where there are any),
/// what is between the passes of the resize, and its result.
fn lay_out(made: &mut Descriptor, parts: &JpegParts) -> Option<usize> {
    let components = &made.components[..parts.components.len()];
    let is_sparse = parts.entropy.rows.is_empty();
    let blocks: u64 = components.iter().map(source::blocks).sum();
    let coefficients = if is_sparse { 0 } else { blocks.saturating_mul(source::BLOCK_BYTES) };
    let tables = (parts.entropy.codes.len() as u64) << (TABLE_BYTES_LOG2);
    let planes = components.iter().map(source::plane_bytes).fold(0, u64::saturating_add);
    let Pixels { stride, height, .. } = made.pixels;
    let pixel_plane = aligned(u64::from(stride) * u64::from(height));
    let pixels = PLANES as u64 * pixel_plane;
    let resizes = &mut made.resizes[..parts.components.len()];
    let between: u64 = resizes.iter().map(resizes::between_bytes).sum();
    let result: u64 = resizes.iter().map(resizes::result_bytes).sum();
    let has_pixels = height > 0;
    let [even, odd] = if has_pixels {
        [coefficients.max(pixels).max(result), planes.max(between)]
    } else {
        [coefficients.max(between), planes.max(result)]
    };
    let scratch = [even, odd].into_iter().fold(tables, u64::saturating_add);
    if scratch > SCRATCH_LIMIT {
        return None;
    }
    let mut at = Places { even: tables, odd: tables + even };
    made.entropy.tables = 0;
    made.entropy.coefficients = place(at.even);
    let mut plane = at.odd;
    for component in &mut made.components[..parts.components.len()] {
        component.plane = place(plane);
        plane += source::plane_bytes(component);
    }
    if has_pixels {
        made.pixels.planes = [0, 1, 2].map(|number| place(at.even + number * pixel_plane));
        at = Places { even: at.odd, odd: at.even };
    }
    for (number, resize) in resizes.iter_mut().enumerate() {
        let plane =
            if has_pixels { made.pixels.planes[number] } else { made.components[number].plane };
        resize.source += plane;
        resize.between = place(at.even);
        at.even += resizes::between_bytes(resize);
        resize.result = place(at.odd);
        at.odd += resizes::result_bytes(resize);
    }
    usize::try_from(scratch).ok()
}

/// Bytes of a table of Huffman codes, as a power of two.
const TABLE_BYTES_LOG2: u32 = descriptor::TABLE_BITS + 3;

/// The parts of the scratch memory, by the stages that write there.
struct Places {
    even: u64,
    odd: u64,
}

/// A place within [`SCRATCH_LIMIT`].
fn place(at: u64) -> u32 {
    u32::try_from(at).expect("within the limit")
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT as u64)
}

/// Appends values to a payload; their place there.
fn append<T: IntoBytes + Immutable + ?Sized>(payload: &mut Vec<u8>, values: &T) -> u32 {
    let at = begin(payload);
    payload.extend_from_slice(values.as_bytes());
    at
}

/// The place of what is appended next.
fn begin(payload: &mut Vec<u8>) -> u32 {
    payload.resize(payload.len().next_multiple_of(ALIGNMENT), 0);
    place(payload.len() as u64)
}
