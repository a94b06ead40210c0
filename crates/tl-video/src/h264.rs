//! H.264 by two crates: `rusty_h264-decoder`, which is fast, for progressive video of 8 bits and
//! 4:2:0, and `rust_h264` for what it does not decode. Both take a packet and return its picture.

mod units;

use rust_h264::decoder::ChromaFormat;
use rust_h264::nal::{NalUnitType, SpsInfo, parse_annex_b, parse_sps_info};
use rusty_h264_decoder::DecodeError;

use crate::codec::{Coded, Failure};
use crate::error::{CodecError, Limit};
use crate::info::{Color, FrameTimes};
use crate::limits::{Limits, check};
use crate::picture::{Chroma, Picture};
use crate::plan::MAX_REORDERED;
use units::Units;

/// Pictures that a decoder holds besides those that it refers to.
const PICTURES: u64 = 3;

/// Bytes that a decoder notes of a sample's block: vectors, modes, numbers of coefficients.
const NOTES: u64 = 1;

/// Features that the fast decoder refuses and the general one has, in the words of the former.
/// Parameters tell the others.
const OF_GENERAL: [&str; 2] = ["explicit B weighted prediction", "frame too large"];

/// A decoder of H.264.
pub(crate) struct H264 {
    units: Units,
    decoder: Decoder,
    /// Whether the parameter sets of the configuration were passed on.
    is_configured: bool,
    color: Color,
    /// Pictures that are held until their order of display is known.
    held: u64,
}

enum Decoder {
    Fast(Box<rusty_h264_decoder::Decoder>),
    General(Box<rust_h264::decoder::Decoder>),
}

impl std::fmt::Debug for H264 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("H264").field("units", &self.units).finish_non_exhaustive()
    }
}

impl H264 {
    /// The decoder of a video with an `avcC`, or without one.
    pub(crate) fn new(configuration: &[u8], times: FrameTimes) -> Self {
        let held = if times == FrameTimes::Counted { MAX_REORDERED + 1 } else { 0 };
        Self {
            units: Units::new(configuration),
            decoder: Decoder::Fast(Box::default()),
            is_configured: false,
            color: Color::default(),
            held,
        }
    }

    /// Forgets all pictures.
    pub(crate) fn restart(&mut self) {
        match &mut self.decoder {
            Decoder::Fast(decoder) => **decoder = rusty_h264_decoder::Decoder::new(),
            Decoder::General(decoder) => **decoder = rust_h264::decoder::Decoder::new(),
        }
        self.is_configured = false;
    }

    /// Changes to the general decoder, which conceals more. False if it is the current one.
    pub(crate) fn replace(&mut self) -> bool {
        let is_fast = matches!(self.decoder, Decoder::Fast(_));
        if is_fast {
            self.decoder = Decoder::General(Box::default());
            self.is_configured = false;
        }
        is_fast
    }

    /// Decodes a packet, which has one picture.
    pub(crate) fn decode(
        &mut self,
        packet: &[u8],
        limits: &Limits,
    ) -> Result<Option<Coded>, Failure> {
        if !self.is_configured {
            let configuration = self.units.configuration().to_vec();
            self.unit(&configuration, limits)?;
            self.is_configured = true;
        }
        let unit = self.units.byte_stream(packet).map_err(Failure::Codec)?;
        self.unit(&unit, limits)
    }

    /// Decodes NAL units in the byte stream format.
    fn unit(&mut self, unit: &[u8], limits: &Limits) -> Result<Option<Coded>, Failure> {
        let nals = parse_annex_b(unit);
        let mut starts_group = false;
        for nal in &nals {
            if nal.nal_unit_type == NalUnitType::Sps {
                let info = parse_sps_info(nal).map_err(|error| failed(&error))?;
                self.check_parameters(&info, limits)?;
            }
            starts_group |= nal.nal_unit_type == NalUnitType::SliceIdr;
        }
        let color = self.color;
        match &mut self.decoder {
            Decoder::Fast(decoder) => match decoder.decode(unit) {
                Ok(Some(frame)) => {
                    let order = decoder.last_poc().into();
                    let picture = Picture {
                        width: to_u32(frame.width),
                        height: to_u32(frame.height),
                        bit_depth: 8,
                        chroma: Chroma::Yuv420,
                        color,
                        planes: [frame.y, frame.u, frame.v],
                    };
                    Ok(Some(Coded { picture, order, starts_group }))
                }
                Ok(None) => Ok(None),
                Err(DecodeError::Unsupported(feature)) if OF_GENERAL.contains(&feature) => {
                    self.replace();
                    Err(Failure::Replaced)
                }
                Err(error) => Err(failed(&error)),
            },
            Decoder::General(decoder) => {
                for nal in &nals {
                    // A picture is returned by what follows it, which `flush` is for a packet.
                    decoder.decode_nal(nal).map_err(|error| failed(&error))?;
                }
                let Some(frame) = decoder.flush() else { return Ok(None) };
                let order = frame.pic_order_cnt.into();
                let picture = Picture {
                    width: frame.width,
                    height: frame.height,
                    bit_depth: frame.bit_depth,
                    chroma: match frame.chroma_format {
                        ChromaFormat::Yuv420 => Chroma::Yuv420,
                        ChromaFormat::Yuv422 => Chroma::Yuv422,
                    },
                    color,
                    planes: [frame.y, frame.u, frame.v],
                };
                Ok(Some(Coded { picture, order, starts_group }))
            }
        }
    }

    /// Charges what parameters ask for, and chooses the decoder that has them.
    fn check_parameters(&mut self, info: &SpsInfo, limits: &Limits) -> Result<(), Failure> {
        let samples = u64::from(info.coded_width).saturating_mul(info.coded_height.into());
        let depth = info.bit_depth_luma.max(info.bit_depth_chroma);
        let bytes = if depth > 8 { 2 } else { 1 };
        // Two planes of colour are at most as large as that of luma.
        let picture = samples.saturating_mul(2 * bytes + NOTES);
        let pictures = u64::from(info.reference_frames.min(16)) + PICTURES + self.held;
        let need = picture.saturating_mul(pictures);
        check(Limit::DecoderBytes, limits.max_decoder_bytes, need).map_err(Failure::Limit)?;
        self.color = Color {
            matrix: Color::specified(info.matrix.into()),
            full_range: Some(info.full_range),
        };
        let is_fast = info.progressive && depth == 8 && info.chroma_format == 1;
        if !is_fast && self.replace() {
            return Err(Failure::Replaced);
        }
        Ok(())
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Codec(CodecError { codec: "H.264", reason: error.to_string() })
}

fn to_u32(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
