//! Images for a device that decodes: the parts of JPEG files that it gets instead of pixels.

use tl_cuda::{Picture, PictureResize, PictureWeights, Placement};
use tl_decode::{DecodeError, ImageInfo, JpegDecoder, JpegParts, JpegRequest, OnDamaged, RowIndex};
use tl_handoff::sync::{Arc, Ordering};
use tl_simd::jpeg::Scale;
use tl_simd::resample::{Rect, Resize};
use tl_transform::{Padding, Pass, Plan};

use super::SampleRenderer;
use super::parts::union;
use crate::delivery::DeviceDecode;
use crate::device_work::DeviceDecoding;
use crate::error::SampleFault;
use crate::kept_indexes::Kept;
use crate::render::{plane_resize, samples_read};

/// Bytes of a picture, at most: a batch in flight has as many as rows. The host decodes larger ones.
pub(super) const MOST_BYTES: usize = 4 << 20;

/// The memory for the parts of one image after the other.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    pub(super) decoding: DeviceDecoding,
    pub(super) parts: JpegParts,
    /// The parts of one of several views.
    view: JpegParts,
    pub(super) weights: PictureWeights,
    /// The row index that was made of a file.
    pub(super) index: Vec<u8>,
}

impl SampleRenderer {
    /// The same for a device that does this part of decoding.
    pub(crate) fn with_device(mut self, decoding: DeviceDecoding) -> Self {
        let decodes = decoding.decode != DeviceDecode::Never || decoding.nvjpeg;
        self.pictures = decodes.then(|| Pictures { decoding, ..Pictures::default() });
        self
    }

    /// Makes the `pictures` of a JPEG file whose plans are made, one for each; false, and none, where
    /// the host has to decode. Planes are decoded at `scale`, pixels without one.
    pub(super) fn prepare_pictures(
        &mut self,
        sample: u64,
        bytes: &[u8],
        info: &ImageInfo,
        request: &JpegRequest<'_>,
        scale: Option<Scale>,
        pictures: &mut Vec<Picture>,
    ) -> Result<bool, SampleFault> {
        let Some(maker) = &mut self.pictures else { return Ok(false) };
        let plans = self.outputs.plans();
        // Steps and erasing need pixels of the host.
        if !plans.iter().all(|plan| plan.is_one_pass() && plan.erasures.is_empty()) {
            return Ok(false);
        }
        let jpeg = self.decoder.jpeg();
        let size = (info.width, info.height);
        let file = File { sample, bytes, size, scale, plans };
        // As on the host, which the limits are for: all views at once.
        let region = union(self.outputs.all_plans().map(|plan| file.region(&plan.head)));
        let request = &JpegRequest { scale: scale.unwrap_or_default(), region, ..*request };
        if maker.has_nvjpeg() && maker.prepare_files(jpeg, &file, request, pictures) {
            return Ok(true);
        }
        let kept = maker.kept_index(jpeg, &file, request);
        if let Some(index) = kept.as_deref().and_then(|index| RowIndex::parse(index).ok()) {
            let request = JpegRequest { index: Some(index), ..*request };
            // An index that does not fit is of another version of the file.
            if let Ok(true) = maker.prepare(jpeg, &file, &request, true, pictures) {
                return Ok(true);
            }
        }
        let is_trusted = !maker.decoding.distrusts_stored.load(Ordering::Relaxed);
        let is_prepared = maker.prepare(jpeg, &file, request, is_trusted, pictures)?;
        if is_prepared {
            self.damage = maker.parts.decoded.damage;
        }
        Ok(is_prepared)
    }
}

/// A JPEG file and its use.
pub(super) struct File<'a> {
    pub(super) sample: u64,
    pub(super) bytes: &'a [u8],
    /// Width and height of the image.
    pub(super) size: (u32, u32),
    /// The scale of its planes, if these are resized.
    scale: Option<Scale>,
    pub(super) plans: &'a [Plan],
}

impl File<'_> {
    /// The region of the scaled image that a pass reads.
    fn region(&self, pass: &Pass) -> Rect {
        self.scale.map_or_else(|| pass.source(), |scale| samples_read(pass, scale))
    }
}

impl Pictures {
    /// Whether nvJPEG decodes files.
    pub(super) fn has_nvjpeg(&self) -> bool {
        self.decoding.nvjpeg
    }

    /// The row index of a file without one, made on the first call for a sample.
    fn kept_index(
        &mut self,
        jpeg: &mut JpegDecoder,
        file: &File<'_>,
        request: &JpegRequest<'_>,
    ) -> Option<Arc<[u8]>> {
        let DeviceDecoding { decode, kept, .. } = &self.decoding;
        let kept = kept.as_ref()?;
        let is_usable = request.index.is_none() && request.on_damaged == OnDamaged::Error;
        if !is_usable || *decode != DeviceDecode::Auto {
            return None;
        }
        match kept.find(file.sample) {
            Kept::Index(index) => return Some(index),
            Kept::Nothing => return None,
            Kept::Unknown => {}
        }
        // An image above the limits is not decoded for an index either.
        jpeg.check(file.bytes, request, file.scale.is_none()).ok()?;
        self.index.clear();
        // Whatever is wrong with the file is left to the way without an index.
        let is_made = jpeg.row_index(file.bytes, &mut self.index).unwrap_or(false);
        let index: Option<Arc<[u8]>> = is_made.then(|| Arc::from(&self.index[..]));
        kept.keep(file.sample, index.clone());
        index
    }

    /// Makes the pictures of all plans, and leaves the damage with the parts; false, and no picture,
    /// where the host has to decode. The device decodes by a trusted row index alone.
    fn prepare(
        &mut self,
        jpeg: &mut JpegDecoder,
        file: &File<'_>,
        request: &JpegRequest<'_>,
        is_trusted: bool,
        pictures: &mut Vec<Picture>,
    ) -> Result<bool, DecodeError> {
        let stage = self.decoding.decode.stage(request.index.is_some() && is_trusted);
        let Some(stage) = stage else { return Ok(false) };
        let is_pixels = file.scale.is_none();
        if jpeg.parts(file.bytes, request, stage, is_pixels, &mut self.parts)?.is_none() {
            return Ok(false);
        }
        pictures.resize_with(file.plans.len(), Picture::default);
        for (plan, picture) in file.plans.iter().zip(&mut *pictures) {
            if !self.picture(file, &plan.head, picture) {
                pictures.iter_mut().for_each(|picture| *picture = Picture::default());
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the picture of a view of the parts; false if the device cannot decode it.
    fn picture(&mut self, file: &File<'_>, pass: &Pass, picture: &mut Picture) -> bool {
        let Self { decoding, parts, view, weights, .. } = self;
        let &File { sample, scale, .. } = file;
        let parts = if file.plans.len() > 1 {
            view.cut(parts, file.region(pass));
            view
        } else {
            parts
        };
        let resize = match scale {
            None => PictureResize::Pixels(pixel_resize(pass).into()),
            Some(scale) => {
                // Of grey images the others do not matter.
                let [first, second, third] = [0, 1, 2].map(|number| {
                    let component = parts.components.get(number).or(parts.components.first());
                    component.map(|part| plane_resize(pass, scale, part.step, part.size))
                });
                let (Some(first), Some(second), Some(third)) = (first, second, third) else {
                    return false;
                };
                PictureResize::Planes([first, second, third])
            }
        };
        picture.prepare(sample, parts, &resize, &placement(pass), weights)
            && picture.scratch_bytes() <= decoding.scratch
            && picture.copied_bytes() <= MOST_BYTES.min(decoding.payload)
    }
}

/// The resize of the image's pixels.
pub(super) fn pixel_resize(pass: &Pass) -> Resize {
    let Pass { region, resized, window, .. } = *pass;
    Resize { region, resized, window, filter: pass.filter() }
}

/// The place of the resized window in the result.
pub(super) fn placement(pass: &Pass) -> Placement {
    let Pass { padding, fill, flip, flip_vertical, .. } = *pass;
    let size = pass.output_size();
    let Padding { left, top, .. } = padding;
    Placement { size, left, top, fill, flip, flip_vertical }
}
