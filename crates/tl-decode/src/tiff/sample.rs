//! Samples of any depth to 8 bits, and pixels of any photometric interpretation to RGB or grey.

use super::chunk::JPEG;
use super::directory::Order;
use super::layout::{Layout, Photometric};
use crate::error::{DecodeError, Feature};
use crate::image::SampleFormat;
use crate::options::Color;
use crate::pixel::{self, Layout as Pixels};

/// The reduction of samples to bytes.
#[derive(Clone, Copy, Debug)]
enum Reduce {
    /// 8 bits, taken as they are.
    Byte,
    /// 1, 2 or 4 bits, packed from the most significant bit on.
    Packed { bits: u8, scale: u8 },
    /// 3 to 15 bits, packed the same way.
    Odd { bits: u32, is_index: bool },
    /// The most significant of this many bytes.
    HighByte(usize),
    /// 16 bits, clipped to 0..=255.
    ClipI16,
    /// 32 bits, clipped.
    ClipU32,
    /// 32 bits, clipped.
    ClipI32,
    /// Single precision, clipped.
    ClipF32,
    /// Double precision, clipped.
    ClipF64,
}

/// Converts rows of samples to rows of the image.
pub(super) struct RowConverter<'a> {
    layout: &'a Layout<'a>,
    reduce: Reduce,
    color: Color,
    /// Whether the sample after those of the colour is alpha, which is wanted.
    alpha: bool,
}

impl<'a> RowConverter<'a> {
    pub(super) fn new(
        layout: &'a Layout<'a>,
        alpha: bool,
        color: Color,
    ) -> Result<Self, DecodeError> {
        let is_index = matches!(layout.photometric, Photometric::Palette(_));
        let is_grey =
            matches!(layout.photometric, Photometric::BlackIsZero | Photometric::WhiteIsZero);
        let scale = |bits| if is_index { 1 } else { pixel::grey_scale(bits) };
        let reduce = match (layout.format, layout.bits) {
            (SampleFormat::Unsigned | SampleFormat::Signed, 8) => Reduce::Byte,
            (SampleFormat::Unsigned, 1) => Reduce::Packed { bits: 1, scale: scale(1) },
            (SampleFormat::Unsigned, 2) => Reduce::Packed { bits: 2, scale: scale(2) },
            (SampleFormat::Unsigned, 4) => Reduce::Packed { bits: 4, scale: scale(4) },
            (SampleFormat::Unsigned, bits @ 3..=15) => Reduce::Odd { bits: bits.into(), is_index },
            (SampleFormat::Unsigned, 16) => Reduce::HighByte(2),
            (SampleFormat::Unsigned, 24) => Reduce::HighByte(3),
            // As Pillow's modes I and F become L: grey values are kept and clipped.
            (SampleFormat::Unsigned, 32) if is_grey => Reduce::ClipU32,
            (SampleFormat::Unsigned, 32) => Reduce::HighByte(4),
            (SampleFormat::Signed, 16) if is_grey => Reduce::ClipI16,
            (SampleFormat::Signed, 32) if is_grey => Reduce::ClipI32,
            (SampleFormat::Float, 32) if is_grey => Reduce::ClipF32,
            (SampleFormat::Float, 64) if is_grey => Reduce::ClipF64,
            (format, bits) => {
                let format = match format {
                    SampleFormat::Unsigned => 1,
                    SampleFormat::Signed => 2,
                    SampleFormat::Float => 3,
                };
                return Err(Feature::TiffSamples { bits, format }.into());
            }
        };
        let alpha = alpha && color == Color::Rgba;
        Ok(Self { layout, reduce, color, alpha })
    }

    /// Planes that a pixel needs, where each sample has its own.
    pub(super) fn planes_used(&self) -> usize {
        let used = match self.layout.photometric {
            Photometric::WhiteIsZero | Photometric::BlackIsZero | Photometric::Palette(_) => 1,
            Photometric::Rgb { premultiplied: false }
            | Photometric::YCbCr
            | Photometric::CieLab => 3,
            Photometric::Rgb { premultiplied: true } | Photometric::Cmyk => 4,
        };
        let used = match self.layout.photometric {
            Photometric::BlackIsZero
            | Photometric::WhiteIsZero
            | Photometric::Rgb { premultiplied: false } => used + usize::from(self.alpha),
            Photometric::Palette(_)
            | Photometric::Rgb { premultiplied: true }
            | Photometric::Cmyk
            | Photometric::YCbCr
            | Photometric::CieLab => used,
        };
        if self.layout.planar { used } else { 1 }
    }

    /// Samples of a pixel in `pixels` of [`Self::convert`].
    pub(super) fn samples(&self) -> usize {
        if self.layout.planar { self.planes_used() } else { usize::from(self.layout.samples) }
    }

    /// Reduces the samples of `row` to bytes, as many as `to` has room for.
    pub(super) fn reduce(&self, row: &[u8], to: &mut [u8]) {
        let order = self.layout.order;
        match self.reduce {
            Reduce::Byte => {
                let count = row.len().min(to.len());
                to[..count].copy_from_slice(&row[..count]);
            }
            Reduce::Packed { bits, scale } => pixel::unpack(row, bits, scale, to),
            Reduce::Odd { bits, is_index } => unpack_odd(row, bits, is_index, to),
            Reduce::HighByte(size) => {
                let at = if order == Order::Big { 0 } else { size - 1 };
                for (value, to) in row.chunks_exact(size).zip(to) {
                    *to = value[at];
                }
            }
            Reduce::ClipI16 => words(row, to, |two| clip(order.u16(two).cast_signed().into())),
            Reduce::ClipU32 => words(row, to, |four| clip(order.u32(four).into())),
            Reduce::ClipI32 => words(row, to, |four| clip(order.u32(four).cast_signed().into())),
            Reduce::ClipF32 => {
                words(row, to, |four| clip_float(f32::from_bits(order.u32(four)).into()));
            }
            Reduce::ClipF64 => words(row, to, |eight| clip_float(f64::from_bits(order.u64(eight)))),
        }
    }

    /// Converts interleaved `pixels` of [`Self::samples`] bytes each to `to`; `scratch` has room
    /// for four bytes a pixel.
    pub(super) fn convert(&self, pixels: &[u8], scratch: &mut [u8], to: &mut [u8]) {
        let samples = self.samples();
        match &self.layout.photometric {
            Photometric::BlackIsZero if self.alpha => {
                pick(pixels, samples, scratch, |grey_alpha: [u8; 2]| grey_alpha);
                Pixels::GreyAlpha.convert(scratch, to, self.color);
            }
            Photometric::WhiteIsZero if self.alpha && self.layout.bits <= 8 => {
                pick(pixels, samples, scratch, |[grey, alpha]: [u8; 2]| [255 - grey, alpha]);
                Pixels::GreyAlpha.convert(scratch, to, self.color);
            }
            Photometric::Rgb { premultiplied: true } if self.alpha => {
                pick(pixels, samples, scratch, |pixel: [u8; 4]| {
                    let [r, g, b] = unpremultiply(pixel);
                    [r, g, b, pixel[3]]
                });
                Pixels::Rgba.convert(scratch, to, self.color);
            }
            Photometric::Rgb { premultiplied: false } if self.alpha => {
                pick(pixels, samples, scratch, |rgba: [u8; 4]| rgba);
                Pixels::Rgba.convert(scratch, to, self.color);
            }
            Photometric::BlackIsZero => {
                pick(pixels, samples, scratch, |[grey]: [u8; 1]| [grey]);
                Pixels::Grey.convert(scratch, to, self.color);
            }
            // Pillow inverts up to 8 bits only.
            Photometric::WhiteIsZero if self.layout.bits <= 8 => {
                pick(pixels, samples, scratch, |[grey]: [u8; 1]| [255 - grey]);
                Pixels::Grey.convert(scratch, to, self.color);
            }
            Photometric::WhiteIsZero => {
                pick(pixels, samples, scratch, |[grey]: [u8; 1]| [grey]);
                Pixels::Grey.convert(scratch, to, self.color);
            }
            Photometric::Palette(palette) => {
                pick(pixels, samples, scratch, |[index]: [u8; 1]| [index]);
                Pixels::Index(palette).convert(scratch, to, self.color);
            }
            Photometric::Cmyk => {
                pick(pixels, samples, scratch, |ink: [u8; 4]| ink);
                Pixels::Cmyk.convert(scratch, to, self.color);
            }
            Photometric::Rgb { premultiplied: true } => {
                pick(pixels, samples, scratch, unpremultiply);
                Pixels::Rgb.convert(scratch, to, self.color);
            }
            Photometric::YCbCr if self.layout.compression != JPEG => {
                pick(pixels, samples, scratch, ycc_to_rgb);
                Pixels::Rgb.convert(scratch, to, self.color);
            }
            Photometric::CieLab => {
                pick(pixels, samples, scratch, lab_to_rgb);
                Pixels::Rgb.convert(scratch, to, self.color);
            }
            Photometric::Rgb { premultiplied: false } | Photometric::YCbCr => match samples {
                3 => Pixels::Rgb.convert(pixels, to, self.color),
                4 => Pixels::Rgbx.convert(pixels, to, self.color),
                _ => {
                    pick(pixels, samples, scratch, |rgb: [u8; 3]| rgb);
                    Pixels::Rgb.convert(scratch, to, self.color);
                }
            },
        }
    }
}

/// Maps the first `N` of the `samples` bytes of each pixel to `M` bytes.
fn pick<const N: usize, const M: usize>(
    pixels: &[u8],
    samples: usize,
    to: &mut [u8],
    f: impl Fn([u8; N]) -> [u8; M],
) {
    for (pixel, to) in pixels.chunks_exact(samples).zip(to.as_chunks_mut().0) {
        if let Some(first) = pixel.first_chunk() {
            *to = f(*first);
        }
    }
}

fn words<const N: usize>(row: &[u8], to: &mut [u8], f: impl Fn([u8; N]) -> u8) {
    for (word, to) in row.as_chunks().0.iter().zip(to) {
        *to = f(*word);
    }
}

fn unpack_odd(row: &[u8], bits: u32, is_index: bool, to: &mut [u8]) {
    let mut window = 0u32;
    let mut held = 0u32;
    let mut bytes = row.iter();
    for to in to {
        while held < bits {
            window = window << 8 | u32::from(bytes.next().copied().unwrap_or(0));
            held += 8;
        }
        held -= bits;
        let max = (1 << bits) - 1;
        let value = window >> held & max;
        let byte = match (is_index, bits) {
            (true, _) => value,
            (false, 0..8) => value * 255 / max,
            (false, _) => value >> (bits - 8),
        };
        *to = u8::try_from(byte).unwrap_or(u8::MAX);
    }
}

fn clip(value: i64) -> u8 {
    u8::try_from(value.clamp(0, 255)).unwrap_or(0)
}

/// Rounds down as Pillow does; not-a-number is 0.
fn clip_float(value: f64) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates, which is the clipping wanted"
    )]
    {
        value as u8
    }
}

/// Pillow's `RGBa` to `RGB`.
fn unpremultiply([r, g, b, a]: [u8; 4]) -> [u8; 3] {
    if a == 0 {
        return [0; 3];
    }
    [r, g, b].map(|c| u8::try_from(u16::from(c) * 255 / u16::from(a)).unwrap_or(u8::MAX))
}

/// ITU-R 601 with full range, the defaults of the YCbCr tags.
fn ycc_to_rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let y = f64::from(y);
    let cb = f64::from(cb) - 128.0;
    let cr = f64::from(cr) - 128.0;
    [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb]
        .map(|c| clip_float(c + 0.5))
}

/// CIE L*a*b* (D50, 8 bits, a* and b* signed) to sRGB.
fn lab_to_rgb([l, a, b]: [u8; 3]) -> [u8; 3] {
    /// The D50 white point, and D50 XYZ to linear sRGB with Bradford adaptation (ICC sRGB v4).
    const WHITE: [f64; 3] = [0.9642, 1.0, 0.8249];
    const TO_SRGB: [[f64; 3]; 3] =
        [[3.1339, -1.6169, -0.4906], [-0.9785, 1.9160, 0.0333], [0.0720, -0.2290, 1.4057]];
    let fy = (f64::from(l) * 100.0 / 255.0 + 16.0) / 116.0;
    let f = [fy + f64::from(a.cast_signed()) / 500.0, fy, fy - f64::from(b.cast_signed()) / 200.0];
    let mut xyz = [0.0; 3];
    for ((to, f), white) in xyz.iter_mut().zip(f).zip(WHITE) {
        let linear = 3.0 * (6.0f64 / 29.0).powi(2) * (f - 4.0 / 29.0);
        *to = white * if f > 6.0 / 29.0 { f.powi(3) } else { linear };
    }
    TO_SRGB.map(|row| {
        let sum: f64 = row.iter().zip(xyz).map(|(weight, value)| weight * value).sum();
        let encoded =
            if sum <= 0.003_130_8 { 12.92 * sum } else { 1.055 * sum.powf(1.0 / 2.4) - 0.055 };
        clip_float(encoded * 255.0 + 0.5)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_depths_are_unpacked_from_the_most_significant_bit() {
        let mut out = [0; 2];
        unpack_odd(&[0xFF, 0x08, 0x01], 12, false, &mut out);
        assert_eq!(out, [0xFF, 0x80]);
        unpack_odd(&[0b1110_1000], 3, false, &mut out);
        assert_eq!(out, [255, 72]);
    }

    #[test]
    fn lab_grey_axis_is_grey() {
        for (l, grey) in [(0, 0), (255, 255), (137, 128)] {
            let rgb = lab_to_rgb([l, 0, 0]);
            assert!(rgb.iter().all(|c| c.abs_diff(grey) <= 1), "{l}: {rgb:?}");
        }
    }

    #[test]
    fn floats_are_clipped_not_wrapped() {
        assert_eq!([-1.0, 0.9, 254.9, 1e9, f64::NAN].map(clip_float), [0, 0, 254, 255, 0]);
    }
}
