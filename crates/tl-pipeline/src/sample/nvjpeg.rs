//! JPEG files that nvJPEG decodes, for a recipe that says so. The choice depends on the file and the
//! plan alone, so that the result does not depend on the machine.

use tl_cuda::Picture;
use tl_decode::{JpegDecoder, JpegParts, JpegRequest, OnDamaged, PartStage, PlaneColor, RowIndex};
use tl_handoff::sync::Arc;
use tl_simd::resample::Rect;
use tl_transform::DecodeMode;

use super::SampleRenderer;
use super::pictures::{File, MOST_BYTES, Pictures, pixel_resize, placement};
use crate::error::SampleFault;
use crate::kept_indexes::Kept;

/// Pixels of a sample of the colour differences, across and down, in files that nvJPEG decodes.
const STEPS: [(f64, f64); 6] =
    [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.0, 2.0), (4.0, 1.0), (4.0, 2.0)];

/// The part that is looked at of a file.
const CORNER: Rect = Rect { x: 0, y: 0, width: 1, height: 1 };

impl SampleRenderer {
    /// Refuses a sample that a recipe wants to be decoded with nvJPEG, where no device does.
    pub(super) fn check_nvjpeg(&self) -> Result<(), SampleFault> {
        let has_nvjpeg = self.pictures.as_ref().is_some_and(Pictures::has_nvjpeg);
        if self.outputs.decode_mode() == DecodeMode::NvJpeg && !has_nvjpeg {
            return Err(SampleFault::NvJpeg);
        }
        Ok(())
    }
}

impl Pictures {
    /// Makes the `pictures` of a sound baseline file with one or three components; false, and none, for
    /// a file that is decoded exactly, or has a defect that exact decoding finds.
    pub(super) fn prepare_files(
        &mut self,
        jpeg: &mut JpegDecoder,
        file: &File<'_>,
        request: &JpegRequest<'_>,
        pictures: &mut Vec<Picture>,
    ) -> bool {
        let File { sample, bytes, size, plans, .. } = *file;
        // The limits are those of exact decoding, which has the error.
        if jpeg.check(bytes, request, true).is_err() {
            return false;
        }
        let kept;
        let index = if request.index.is_some() {
            request.index
        } else {
            kept = self.sound_index(jpeg, file);
            kept.as_deref().and_then(|index| RowIndex::parse(index).ok())
        };
        let Some(index) = index else { return false };
        // An index proves that the entropy-coded data was without defects when it was made, and has
        // their checksum.
        let request = JpegRequest {
            index: Some(index),
            region: Some(CORNER),
            on_damaged: OnDamaged::Error,
            ..*request
        };
        let reached = jpeg.parts(bytes, &request, PartStage::EntropyRows, true, &mut self.parts);
        if !matches!(reached, Ok(Some(PartStage::EntropyRows))) || !is_decoded(&self.parts) {
            return false;
        }
        pictures.resize_with(plans.len(), Picture::default);
        for (plan, picture) in plans.iter().zip(&mut *pictures) {
            let resize = pixel_resize(&plan.head).into();
            let placement = placement(&plan.head);
            let weights = &mut self.weights;
            if !picture.prepare_file(sample, bytes, size, &resize, &placement, weights)
                || picture.copied_bytes() > MOST_BYTES
            {
                pictures.iter_mut().for_each(|picture| *picture = Picture::default());
                return false;
            }
        }
        true
    }

    /// The row index of a file: kept from an epoch before, or made, which reads all of its data; `None`
    /// for damaged files and those that can have none.
    fn sound_index(&mut self, jpeg: &mut JpegDecoder, file: &File<'_>) -> Option<Arc<[u8]>> {
        let kept = self.decoding.kept.as_ref();
        let found = kept.map(|kept| kept.find(file.sample));
        if let Some(Kept::Index(index)) = found {
            return Some(index);
        }
        self.index.clear();
        let is_made = jpeg.row_index(file.bytes, &mut self.index).unwrap_or(false);
        let index: Option<Arc<[u8]>> = is_made.then(|| Arc::from(&self.index[..]));
        if let (Some(kept), Some(Kept::Unknown)) = (kept, found) {
            kept.keep(file.sample, index.clone());
        }
        index
    }
}

/// Whether nvJPEG decodes files with such components: grey, or luma and colour differences of the usual
/// samplings.
fn is_decoded(parts: &JpegParts) -> bool {
    match (parts.color, &parts.components[..]) {
        (PlaneColor::Grey, [_]) => true,
        (PlaneColor::YCbCr, [luma, blue, red]) => {
            let is_usual = STEPS.contains(&blue.step) && blue.step == red.step;
            luma.step == (1.0, 1.0) && is_usual
        }
        _ => false,
    }
}
