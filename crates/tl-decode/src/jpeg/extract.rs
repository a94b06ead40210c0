//! Images in parts, for devices that decode them.

mod coefficients;
mod rows;

use tl_simd::resample::Rect;

use self::coefficients::CoefficientSink;
use super::JpegDecoder;
use super::frame::Process;
use super::geometry::{ComponentGeometry, Geometry};
use super::parts::{JpegComponent, JpegParts, PartStage};
use super::request::{Decoded, JpegRequest};
use super::scans::{FrameSink, Opened, Scans};
use super::tables::Quantizer;
use crate::error::{DecodeError, Limit};

impl JpegDecoder {
    /// Decodes what `request` asks for up to `stage` into `parts`, for callers that compute the samples
    /// elsewhere. With `pixels` the parts hold all that the pixels of the region need, as
    /// [`JpegDecoder::decode`] makes them; without, the samples that
    /// [`JpegDecoder::decode_planes`] returns.
    ///
    /// Returns the stage that was reached: coefficients in place of entropy-coded rows where the
    /// request has no index, damage is to be kept, the file is progressive or has several scans, or
    /// restart markers stand inside of rows. `None`, and nothing to be used in `parts`, for files
    /// that only the host decodes: lossless ones, those of four components or, with `pixels`, of a
    /// sampling that is not upsampled, and images whose coefficients are too many for their
    /// places or for the limits.
    ///
    /// # Errors
    /// As those two functions. A defect of the data that only entropy decoding finds is not seen in
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
        let opened = Opened::new(bytes, request.on_damaged, &self.limits)?;
        parts.color = opened.color()?;
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
        let reached = self.fill_parts(opened, request, stage, &geometry, parts);
        match reached {
            // Planes and pixels take less memory than coefficients.
            Err(DecodeError::LimitExceeded { limit: Limit::WorkingBytes, .. }) => Ok(None),
            reached => reached,
        }
    }

    fn fill_parts(
        &mut self,
        opened: Opened<'_>,
        request: &JpegRequest<'_>,
        stage: PartStage,
        geometry: &Geometry,
        parts: &mut JpegParts,
    ) -> Result<Option<PartStage>, DecodeError> {
        let JpegParts { components, coefficients, entropy, .. } = parts;
        if let (PartStage::EntropyRows, Some(index)) = (stage, rows::index_of(&opened, request)) {
            rows::cut(&opened, &index, geometry, &self.limits, components, entropy)?;
            let orientation = opened.reader.prologue.orientation();
            parts.decoded = Decoded { orientation, damage: None };
            return Ok(Some(PartStage::EntropyRows));
        }
        let Some(mut sink) = CoefficientSink::new(geometry, coefficients) else { return Ok(None) };
        self.limits.charge_working(sink.bytes())?;
        sink.allocate();
        let scans = Scans::new(opened, request, self.level, &self.limits);
        parts.decoded = scans.decode(&mut self.entropy, &mut sink)?;
        sink.describe(components);
        Ok(Some(PartStage::Coefficients))
    }
}

/// A component with these blocks.
fn described(component: &ComponentGeometry, blocks: Rect, quantizer: &Quantizer) -> JpegComponent {
    let ComponentGeometry { scale, size, upsampling, .. } = *component;
    let step = component.step();
    JpegComponent { scale, size, step, upsampling, blocks, quantizer: *quantizer }
}
