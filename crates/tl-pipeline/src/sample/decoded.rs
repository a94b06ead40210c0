//! Samples that are decoded whole before they are rendered, for a cache of their pixels.

use std::mem;

use tbl_format::SampleFormat;
use tl_decode::{
    Color, Damage, DecodeOptions, Decoder, Format, Image, JpegRequest, PixelType, RowIndex,
};
use tl_transform::Plan;

use super::{Drawn, Input, SampleRenderer, Stored, Targets};
use crate::error::SampleFault;
use crate::metrics::WorkerMetrics;

impl SampleRenderer {
    /// As [`SampleRenderer::render_timed`] of what [`SampleRenderer::decode`] has decoded.
    pub(crate) fn render_decoded(
        &mut self,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<&[Plan], SampleFault> {
        let image = mem::replace(&mut self.image, Image::new());
        let input = Input::Pixels(&image.data, (image.width, image.height));
        let result = self.render_timed(input, drawn, targets, metrics).map(drop);
        self.image = image;
        result.map(|()| self.plans())
    }

    /// Decodes all of a sample for [`SampleRenderer::render_decoded`]. `None`, with the sample as it
    /// was, when anything is wrong with any part of it, or with its row index.
    pub(crate) fn decode(&mut self, stored: &mut Stored<'_>) -> Option<&Image> {
        self.reduced.look_at(stored, self.decoder.options());
        let parts = self.parts_of(stored).ok()?;
        let is_whole = if parts.is_some_and(|info| info.format == Format::Jpeg) {
            let index = stored.row_index.map(RowIndex::parse).transpose().ok()?;
            let on_damaged = self.decoder.options().on_damaged;
            let DecodeOptions { color, pixels, .. } = *self.decoder.options();
            let request =
                JpegRequest { color, pixels, on_damaged, index, ..JpegRequest::default() };
            let decoded = self.decoder.jpeg().decode(stored.bytes, &request, &mut self.image);
            decoded.is_ok_and(|decoded| decoded.damage.is_none())
        } else {
            decode_whole(&mut self.decoder, stored, &mut self.image).is_ok_and(|d| d.is_none())
        };
        (is_whole && self.spread_grey().is_ok()).then_some(&self.image)
    }
}

/// Makes all pixels of a sample; what was wrong with it, if damage is kept.
pub(super) fn decode_whole(
    decoder: &mut Decoder,
    stored: &mut Stored<'_>,
    image: &mut Image,
) -> Result<Option<Damage>, SampleFault> {
    if stored.format != SampleFormat::RawU8 {
        decoder.decode_into(stored.bytes, image)?;
        return Ok(decoder.damage());
    }
    let (width, height) = stored.size;
    let have = stored.bytes.len() as u64;
    let need = 3 * u64::from(width) * u64::from(height);
    if have != need || need == 0 {
        return Err(SampleFault::RawSize { width, height, need, have });
    }
    (image.width, image.height, image.channels) = (width, height, Color::Rgb.channels());
    image.pixels = PixelType::U8;
    mem::swap(stored.bytes, &mut image.data);
    decoder.convert_rgb(image)?;
    Ok(None)
}
