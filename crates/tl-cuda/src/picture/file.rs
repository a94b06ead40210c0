//! Pictures of whole JPEG files, which nvJPEG decodes to planes in the scratch memory.

use tl_simd::resample::ResizeArea;

use super::descriptor::{Descriptor, PLANES};
use super::{
    Picture, PictureResize, PictureWeights, Placement, SCRATCH_LIMIT, frame, place, resizes,
};

/// Bytes that rows of a plane are a multiple of: kernels read four at once.
const ROW_ALIGNMENT: u32 = 16;

/// Planes of red, green and blue, each resized alike.
const PLANE_COUNT: u32 = 3;
const _: () = assert!(PLANE_COUNT as usize == PLANES);

/// The file of a picture; empty for other pictures.
#[derive(Debug, Default)]
pub(super) struct JpegFile {
    pub(super) bytes: Vec<u8>,
    size: (u32, u32),
}

impl JpegFile {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A file that was copied, and the place of its planes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCopy {
    /// The number of its picture in the batch.
    pub(crate) picture: usize,
    /// The first byte in the memory of the copy, and bytes.
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// Width and height of the image.
    pub(crate) size: (u32, u32),
    /// The first plane in the scratch memory.
    pub(crate) planes: usize,
}

impl FileCopy {
    /// Bytes from row to row of a plane.
    pub(crate) fn stride(&self) -> usize {
        stride(self.size.0) as usize
    }

    /// Bytes from plane to plane.
    pub(crate) fn plane_bytes(&self) -> usize {
        usize::try_from(plane_bytes(self.size)).expect("within the limit")
    }
}

fn stride(width: u32) -> u32 {
    width.next_multiple_of(ROW_ALIGNMENT)
}

fn plane_bytes(size: (u32, u32)) -> u64 {
    let (width, height) = size;
    u64::from(stride(width)) * u64::from(height)
}

impl Picture {
    /// Takes over a JPEG file, whose image has this width and height, for nvJPEG to decode and the
    /// kernels to resize. False if the image is too large for it.
    ///
    /// `sample` is the number by which errors name the image.
    ///
    /// # Panics
    /// If the window of `resize` is empty or does not fit its image or `placement`, or the image is not
    /// as large as `resize` reads.
    pub fn prepare_file(
        &mut self,
        sample: u64,
        bytes: &[u8],
        size: (u32, u32),
        resize: &ResizeArea,
        placement: &Placement,
        weights: &mut PictureWeights,
    ) -> bool {
        self.clear();
        let planes = (PLANES as u64).saturating_mul(plane_bytes(size));
        if planes > SCRATCH_LIMIT {
            return false;
        }
        let weights = &mut weights.planes;
        weights[0].prepare(resize);
        let source = weights[0].source();
        assert!(source.fits(size.0, size.1), "{source:?} leaves the image of {size:?}");
        let plane = resizes::of_image(&weights[0], stride(size.0));
        let mut made =
            Descriptor { count: PLANE_COUNT, resizes: [plane; PLANES], ..Descriptor::default() };
        made.frame = frame(placement, resize.window);
        let result = resizes::result_bytes(&plane);
        let between = resizes::between_bytes(&plane);
        // The results are where the planes were.
        let first = planes.max(PLANES as u64 * result);
        let scratch = first.saturating_add(PLANES as u64 * between);
        if scratch > SCRATCH_LIMIT {
            return false;
        }
        for (number, resize) in (0..).zip(&mut made.resizes) {
            resize.source += place(number * plane_bytes(size));
            resize.between = place(first + number * between);
            resize.result = place(number * result);
        }
        self.sample = sample;
        self.scratch = usize::try_from(scratch).expect("within the limit");
        let resize = PictureResize::Pixels(*resize);
        resizes::write(&mut made, &mut self.payload, &resize, weights);
        self.descriptor = made;
        self.file.size = size;
        self.file.bytes.extend_from_slice(bytes);
        true
    }

    /// The copy of the file at `at`, for picture number `picture` with scratch memory at `scratch`;
    /// `None` if nvJPEG does not decode it.
    pub(super) fn file_copy(&self, picture: usize, at: usize, scratch: usize) -> Option<FileCopy> {
        let JpegFile { bytes, size } = &self.file;
        let copy = FileCopy { picture, at, len: bytes.len(), size: *size, planes: scratch };
        (!bytes.is_empty()).then_some(copy)
    }
}
