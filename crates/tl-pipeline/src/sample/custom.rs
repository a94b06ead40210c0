//! Samples that are decoded by a decoder of the user's.

use tbl_format::SampleFormat;
use tl_decode::{Decoders, Image};

use super::{SampleRenderer, Stored};
use crate::error::SampleFault;

impl SampleRenderer {
    /// The same with the user's decoders.
    pub(crate) fn with_decoders(self, decoders: Decoders) -> Self {
        Self { decoders, ..self }
    }

    /// Whether any sample may be decoded by a decoder of the user's, so that names are needed.
    pub(crate) fn has_decoders(&self) -> bool {
        !self.decoders.is_empty()
    }

    /// Decodes the sample called `name`, if a decoder of the user's takes it, for
    /// [`SampleRenderer::render_decoded`]. False if none does.
    pub(crate) fn decode_custom(
        &mut self,
        name: &[u8],
        stored: &Stored<'_>,
    ) -> Result<bool, SampleFault> {
        if stored.format == SampleFormat::RawU8 {
            return Ok(false);
        }
        let found = self.decoders.find(name, stored.bytes)?;
        let Some(decoder) = found else { return Ok(false) };
        let options = self.decoder.options();
        decoder.decode(stored.bytes, options, &mut self.image).map_err(|source| {
            let decoder = decoder.name().to_owned();
            SampleFault::Decoder { decoder, source }
        })?;
        self.spread_grey()?;
        Ok(true)
    }

    /// The image of the last [`SampleRenderer::decode_custom`].
    pub(crate) fn decoded(&self) -> &Image {
        &self.image
    }
}
