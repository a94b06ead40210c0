//! Images in parts, for devices that decode them.

mod coefficients;
mod cut;
mod rows;

use tl_simd::resample::Rect;

use self::coefficients::CoefficientSink;
use super::JpegDecoder;
use super::frame::{PlaneColor, Process};
use super::geometry::{ComponentGeometry, Geometry};
use super::output::{self, Extent};
use super::parts::{JpegComponent, JpegParts, PartStage};
use super::request::{Decoded, JpegRequest};
use super::scans::{FrameSink, Opened, Scans};
use super::tables::Quantizer;
use crate::error::{DecodeError, Limit};

impl JpegDecoder {
    /// Decodes what `request` asks for up to `stage` into `parts`, for callers that compute the samples
    /// elsewhere. With `pixels` the parts hold all that the pixels of the region need, as
    /// [`JpegDecoder::decode`] makes them; without, the samples that
    /// [`JpegDecoder::decode_planes`] returns. [`JpegParts::cut`] makes the parts of a smaller region
    /// of them.
    ///
    /// Returns the stage that was reached: coefficients in place of entropy-coded rows where the
    /// request has no index, damage is to be kept, the file is progressive or has several scans, or
    /// restart markers stand inside of rows. `None`, and nothing to be used in `parts`, for files
    /// that only the host decodes: lossless ones, those of four components or, with `pixels`, of a
    /// sampling that is not upsampled, and images whose coefficients are too many for their
    /// places or for the limits.
    ///
    /// # Errors
    /// As those two functions, whose memory is charged too: an image that is above the limits for them
    /// has no parts. A defect of the data that only entropy decoding finds is not seen in
    /// entropy-coded rows.
    pub fn parts(
        &mut self,
        bytes: &[u8],
        request: &JpegRequest<'_>,
        stage: PartStage,
        pixels: bool,
        parts: &mut JpegParts,
    ) -> Result<Option<PartStage>, DecodeError> {
        parts.clear();
        let Some(image) = self.begin(bytes, request, pixels)? else { return Ok(None) };
        parts.color = image.color;
        let reached = self.fill_parts(image, request, stage, parts);
        match reached {
            // Planes and pixels take less memory than coefficients.
            Err(DecodeError::LimitExceeded { limit: Limit::WorkingBytes, .. }) => Ok(None),
            reached => reached,
        }
    }

    /// Refuses an image that [`JpegDecoder::decode`], or without `pixels`
    /// [`JpegDecoder::decode_planes`], refuses before it decodes any of its data: one above the
    /// limits, or with a bad header.
    ///
    /// # Errors
    /// As those two functions.
    pub fn check(
        &self,
        bytes: &[u8],
        request: &JpegRequest<'_>,
        pixels: bool,
    ) -> Result<(), DecodeError> {
        let Some(image) = self.begin(bytes, request, pixels)? else { return Ok(()) };
        let plane_bytes = image.plane_bytes;
        Scans::new(image.opened, request, self.level, &self.limits).charge_first(plane_bytes)
    }

    /// Begins with an image that may have parts, within the limits for its pixels or planes.
    fn begin<'a>(
        &self,
        bytes: &'a [u8],
        request: &JpegRequest<'_>,
        pixels: bool,
    ) -> Result<Option<Begun<'a>>, DecodeError> {
        let opened = Opened::new(bytes, request.on_damaged, &self.limits)?;
        let color = opened.color()?;
        let mut geometry = Geometry::new(&opened.frame, request.scale, request.region)?;
        if pixels {
            let size = &geometry.region;
            self.limits.charge_image(size.width, size.height, request.color.channels())?;
        } else {
            geometry.leave_out_margin();
        }
        let upsampled = !pixels || geometry.require_upsampling().is_ok();
        if opened.frame.process == Process::Lossless
            || geometry.components().len() > 3
            || !upsampled
        {
            return Ok(None);
        }
        let extent =
            if pixels { Extent::of_pixels(&opened, request.on_damaged) } else { Extent::Whole };
        let plane_bytes = output::bytes(&geometry, extent);
        self.limits.charge_working(plane_bytes)?;
        Ok(Some(Begun { opened, color, geometry, plane_bytes }))
    }

    fn fill_parts(
        &mut self,
        image: Begun<'_>,
        request: &JpegRequest<'_>,
        stage: PartStage,
        parts: &mut JpegParts,
    ) -> Result<Option<PartStage>, DecodeError> {
        let Begun { opened, geometry, plane_bytes, .. } = image;
        let JpegParts { components, coefficients, entropy, .. } = parts;
        if let (PartStage::EntropyRows, Some(index)) = (stage, rows::index_of(&opened, request)) {
            let charge = rows::Charge { limits: &self.limits, plane_bytes };
            rows::cut(&opened, &index, &geometry, charge, components, entropy)?;
            let orientation = opened.reader.prologue.orientation();
            parts.decoded = Decoded { orientation, damage: None };
            return Ok(Some(PartStage::EntropyRows));
        }
        let sink = CoefficientSink::new(&geometry, plane_bytes, coefficients);
        let Some(mut sink) = sink else { return Ok(None) };
        self.limits.charge_working(sink.bytes())?;
        sink.allocate();
        let scans = Scans::new(opened, request, self.level, &self.limits);
        parts.decoded = scans.decode(&mut self.entropy, &mut sink)?;
        sink.describe(components);
        Ok(Some(PartStage::Coefficients))
    }
}

/// An image before its first scan.
struct Begun<'a> {
    opened: Opened<'a>,
    color: PlaneColor,
    geometry: Geometry,
    /// Bytes of the planes that a decoder of samples needs.
    plane_bytes: u64,
}

/// A component with these blocks.
fn described(component: &ComponentGeometry, blocks: Rect, quantizer: &Quantizer) -> JpegComponent {
    let ComponentGeometry { scale, size, upsampling, .. } = *component;
    let step = component.step();
    JpegComponent { scale, size, step, upsampling, blocks, quantizer: *quantizer }
}
