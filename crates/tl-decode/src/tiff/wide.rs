//! Samples of more than 8 bits as the numbers that they are.

use super::directory::Order;
use super::layout::{Layout, Photometric};
use crate::error::{DecodeError, Feature};
use crate::image::{ImageInfo, PixelType, SampleFormat};
use crate::options::Color;
use crate::wide::StoredPixel;

/// Converts rows of samples to rows of an image of 16-bit samples or floats.
pub(super) struct WideConverter<'a> {
    layout: &'a Layout<'a>,
    color: Color,
    pixels: PixelType,
    stored: StoredPixel<f32>,
}

impl<'a> WideConverter<'a> {
    /// `alpha` is whether the sample after those of the colour is alpha.
    pub(super) fn new(
        layout: &'a Layout<'a>,
        info: &ImageInfo,
        alpha: bool,
        color: Color,
        pixels: PixelType,
    ) -> Result<Self, DecodeError> {
        let bits = layout.bits;
        let refused = |what| DecodeError::from(Feature::TiffWide { bits, what });
        let colors = match layout.photometric {
            Photometric::WhiteIsZero | Photometric::BlackIsZero => 1,
            Photometric::Rgb { premultiplied: false } => 3,
            Photometric::Rgb { premultiplied: true } => {
                return Err(refused("multiplied by alpha"));
            }
            Photometric::Palette(_)
            | Photometric::Cmyk
            | Photometric::YCbCr
            | Photometric::CieLab => return Err(refused("neither grey nor RGB")),
        };
        // Few enough bits for each of these numbers to be a float.
        let opaque = if layout.format == SampleFormat::Float || bits > 16 {
            1.0
        } else {
            let sign_bits = u16::from(layout.format == SampleFormat::Signed);
            let max = (1_u32 << (bits - sign_bits)) - 1;
            f32::from(u16::try_from(max).unwrap_or(u16::MAX))
        };
        let alpha = alpha && color == Color::Rgba;
        let samples =
            if layout.planar { colors + usize::from(alpha) } else { layout.samples.into() };
        let stored = StoredPixel { samples, colors, alpha, opaque, transparent: None };
        stored.require(info, color)?;
        Ok(Self { layout, color, pixels, stored })
    }

    /// Planes that a pixel needs, where each sample has its own.
    pub(super) fn planes_used(&self) -> usize {
        if self.layout.planar { self.stored.samples } else { 1 }
    }

    /// Samples of a pixel.
    pub(super) fn samples(&self) -> usize {
        self.stored.samples
    }

    /// Converts row `row` of the planes of a chunk, of which as many pixels count as `to` has.
    pub(super) fn convert<'p>(&self, row: impl Fn(usize) -> &'p [u8], to: &mut [u8]) {
        let samples = self.stored.samples;
        let pixels = to.len() / (usize::from(self.color.channels()) * self.pixels.bytes());
        let planes: [&[u8]; super::MAX_PLANES] =
            std::array::from_fn(|plane| if plane < self.planes_used() { row(plane) } else { &[] });
        let numbers = (0..pixels * samples).map(|index| {
            let place = if self.layout.planar { index / samples } else { index };
            let plane = if self.layout.planar { index % samples } else { 0 };
            self.number(planes[plane], place)
        });
        if self.pixels == PixelType::U16 {
            self.stored.map(whole).convert(numbers.map(whole), self.color, to);
        } else {
            self.stored.convert(numbers, self.color, to);
        }
    }

    /// Sample `index` of a row, which has all of them.
    fn number(&self, row: &[u8], index: usize) -> f32 {
        let order: Order = self.layout.order;
        let bits = usize::from(self.layout.bits);
        match (self.layout.format, bits) {
            (SampleFormat::Unsigned, 16) => order.u16(bytes(row, index)).into(),
            (SampleFormat::Signed, 16) => order.u16(bytes(row, index)).cast_signed().into(),
            (SampleFormat::Float, 32) => f32::from_bits(order.u32(bytes(row, index))),
            (SampleFormat::Float, 64) => single(f64::from_bits(order.u64(bytes(row, index)))),
            // 9 to 15 bits, packed from the most significant one on.
            _ => {
                let first = index * bits;
                let window = (0..3).fold(0_u32, |window, byte| {
                    window << 8 | u32::from(row.get(first / 8 + byte).copied().unwrap_or(0))
                });
                let value = window >> (24 - first % 8 - bits) & ((1 << bits) - 1);
                f32::from(u16::try_from(value).unwrap_or(u16::MAX))
            }
        }
    }
}

fn bytes<const N: usize>(row: &[u8], index: usize) -> [u8; N] {
    row.as_chunks::<N>().0.get(index).copied().unwrap_or([0; N])
}

/// The nearest float.
#[expect(clippy::cast_possible_truncation, reason = "rounds")]
fn single(value: f64) -> f32 {
    value as f32
}

/// A number of 16 bits, which every such number is as a float.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number")]
fn whole(value: f32) -> u16 {
    value as u16
}
