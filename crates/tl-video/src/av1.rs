//! AV1 by rav1d. A packet has one picture that is shown.

use tl_av1::{Decoder, Error, Layout};

use crate::codec::{Coded, Failure};
use crate::error::{CodecError, Limit, VideoError};
use crate::info::Color;
use crate::limits::Limits;
use crate::picture::{Chroma, Picture};

/// Bytes of `av1C` before the sequence header.
const CONFIGURATION_FIELDS: usize = 4;

/// A decoder of AV1.
#[derive(Debug)]
pub(crate) struct Av1 {
    decoder: Decoder,
    /// The sequence header of `av1C`, for key pictures that have none.
    configuration: Vec<u8>,
}

impl Av1 {
    /// The decoder of a video with an `av1C`, or without one.
    pub(crate) fn new(configuration: &[u8], limits: &Limits) -> Self {
        let configuration = configuration.get(CONFIGURATION_FIELDS..).unwrap_or_default().to_vec();
        Self { decoder: Decoder::new(limits.max_decoder_bytes), configuration }
    }

    /// Forgets all pictures.
    pub(crate) fn restart(&mut self) {
        self.decoder.restart();
    }

    /// Decodes a packet.
    pub(crate) fn decode(&mut self, packet: &[u8]) -> Result<Option<Coded>, Failure> {
        let mut decoded = self.decoder.decode(packet);
        if decoded == Err(Error::NoSequenceHeader) && !self.configuration.is_empty() {
            self.decoder.decode(&self.configuration).map_err(failed)?;
            decoded = self.decoder.decode(packet);
        }
        let Some(picture) = decoded.map_err(failed)? else { return Ok(None) };
        // Packets are in the order of display.
        Ok(Some(Coded { picture: picture_of(picture), order: 0, starts_group: true }))
    }
}

fn picture_of(picture: tl_av1::Picture) -> Picture {
    let matrix = Color::specified(picture.matrix.into());
    Picture {
        width: picture.width,
        height: picture.height,
        bit_depth: picture.bit_depth,
        chroma: match picture.layout {
            Layout::Monochrome => Chroma::Monochrome,
            Layout::Yuv420 => Chroma::Yuv420,
            Layout::Yuv422 => Chroma::Yuv422,
            Layout::Yuv444 => Chroma::Yuv444,
        },
        color: Color { matrix, full_range: Some(picture.full_range) },
        planes: picture.planes,
    }
}

fn failed(error: Error) -> Failure {
    if let Error::TooLarge { max, need } = error {
        return Failure::Limit(VideoError::LimitExceeded { limit: Limit::DecoderBytes, max, need });
    }
    Failure::Codec(CodecError { codec: "AV1", reason: error.to_string() })
}
