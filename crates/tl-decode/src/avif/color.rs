//! Y, U and V of a pixel to red, green and blue.
//!
//! libavif converts with libyuv where that has the coefficients, otherwise with its own formulas in
//! floating point. Both are reproduced, so that pixels are those of Pillow on x86.

use super::properties::Nclx;
use crate::error::{DecodeError, Feature};

/// The conversion of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Conversion {
    Fixed(Fixed),
    Float(Float),
}

/// Coefficients with 6 fraction bits (libyuv, `row_common.cc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// The factor of Y as 16 bits, of which the product's high half counts.
    y: u32,
    /// The offset of Y, with a half for rounding.
    offset: i32,
    blue_u: i32,
    green_u: i32,
    green_v: i32,
    red_v: i32,
}

/// The range of Y, 219 of 255 levels, scales it by 1.164.
const LIMITED: Fixed =
    Fixed { y: 18_997, offset: -1160, blue_u: 128, green_u: 0, green_v: 0, red_v: 0 };
const FULL: Fixed = Fixed { y: 16_320, offset: 32, blue_u: 0, green_u: 0, green_v: 0, red_v: 0 };
const BT601: Fixed = Fixed { green_u: 25, green_v: 52, red_v: 102, ..LIMITED };
const BT601_FULL: Fixed = Fixed { blue_u: 113, green_u: 22, green_v: 46, red_v: 90, ..FULL };
const BT709: Fixed = Fixed { green_u: 14, green_v: 34, red_v: 115, ..LIMITED };
const BT709_FULL: Fixed = Fixed { blue_u: 119, green_u: 12, green_v: 30, red_v: 101, ..FULL };
const BT2020: Fixed = Fixed { y: 19_003, green_u: 12, green_v: 42, red_v: 107, ..LIMITED };
const BT2020_FULL: Fixed = Fixed { blue_u: 120, green_u: 11, green_v: 37, red_v: 94, ..FULL };

/// Coefficients and ranges in floating point (H.273).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float {
    kind: FloatKind,
    luma: Range,
    chroma: Range,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FloatKind {
    /// The weights of red and blue in Y.
    Weights {
        red: f32,
        blue: f32,
    },
    /// Green, blue and red.
    Identity,
    YCgCo,
}

/// A sample is `(value - offset) / range`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    offset: f32,
    range: f32,
}

/// The numbers of an image's samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    pub(super) bit_depth: u8,
    pub(super) is_monochrome: bool,
    pub(super) is_subsampled: bool,
}

mod matrix {
    pub(super) const IDENTITY: u16 = 0;
    pub(super) const BT709: u16 = 1;
    pub(super) const UNSPECIFIED: u16 = 2;
    pub(super) const FCC: u16 = 4;
    pub(super) const BT470BG: u16 = 5;
    pub(super) const BT601: u16 = 6;
    pub(super) const SMPTE240: u16 = 7;
    pub(super) const YCGCO: u16 = 8;
    pub(super) const BT2020: u16 = 9;
    /// Derived from the primaries.
    pub(super) const DERIVED: u16 = 12;
}

impl Conversion {
    /// The conversion to red, green and blue.
    ///
    /// # Errors
    /// For coefficients that libavif does not convert from, and those of unusual primaries.
    pub(super) fn of(nclx: Nclx, samples: Samples) -> Result<Self, DecodeError> {
        let refused = || DecodeError::from(Feature::AvifMatrix(nclx.matrix));
        let code = match (nclx.matrix, nclx.primaries) {
            // Monochrome pictures have no colours to be identical.
            (matrix::IDENTITY, _) if samples.is_monochrome => matrix::BT601,
            (matrix::DERIVED, 1 | 2) => matrix::BT709,
            (matrix::DERIVED, 5 | 6) => matrix::BT601,
            (matrix::DERIVED, 9) => matrix::BT2020,
            (code, _) => code,
        };
        let fixed = match (code, nclx.full_range) {
            (matrix::BT709, false) => BT709,
            (matrix::BT709, true) => BT709_FULL,
            (matrix::UNSPECIFIED | matrix::BT470BG | matrix::BT601, false) => BT601,
            (matrix::UNSPECIFIED | matrix::BT470BG | matrix::BT601, true) => BT601_FULL,
            (matrix::BT2020, false) => BT2020,
            (matrix::BT2020, true) => BT2020_FULL,
            _ => {
                let kind = match code {
                    matrix::FCC => FloatKind::Weights { red: 0.30, blue: 0.11 },
                    matrix::SMPTE240 => FloatKind::Weights { red: 0.212, blue: 0.087 },
                    matrix::IDENTITY if !samples.is_subsampled => FloatKind::Identity,
                    matrix::YCGCO if nclx.full_range => FloatKind::YCgCo,
                    _ => return Err(refused()),
                };
                return Ok(Self::Float(Float::new(kind, samples.bit_depth, nclx.full_range)));
            }
        };
        Ok(Self::Fixed(fixed))
    }
}

impl Fixed {
    /// A pixel of 8 bits.
    pub(super) fn pixel(&self, y: u16, u: u16, v: u16) -> [u8; 3] {
        self.wide_pixel(u32::from(y) * 0x0101, u.into(), v.into())
    }

    /// A pixel with Y in 16 bits, U and V in 8.
    pub(super) fn wide_pixel(&self, y: u32, u: i32, v: i32) -> [u8; 3] {
        let luma = self.luma(y);
        let u = u.min(255) - 128;
        let v = v.min(255) - 128;
        let red = luma + v * self.red_v;
        let green = luma - (u * self.green_u + v * self.green_v);
        let blue = luma + u * self.blue_u;
        [red, green, blue].map(top)
    }

    /// A pixel without colour.
    pub(super) fn grey(&self, y: u16) -> u8 {
        top(self.luma(u32::from(y) * 0x0101))
    }

    fn luma(&self, y: u32) -> i32 {
        // The factor has 15 bits, so that the high half of the product is a positive `i32`.
        ((y * self.y) >> 16).cast_signed() + self.offset
    }
}

/// A number with 6 fraction bits as a level.
fn top(number: i32) -> u8 {
    (number >> 6).clamp(0, 255).to_le_bytes()[0]
}

impl Float {
    fn new(kind: FloatKind, bit_depth: u8, full_range: bool) -> Self {
        let scale = f32::from(1u16 << u32::from(bit_depth.clamp(8, 12) - 8));
        let max = 256.0 * scale - 1.0;
        let luma = match full_range {
            true => Range { offset: 0.0, range: max },
            false => Range { offset: 16.0 * scale, range: 219.0 * scale },
        };
        let range = if full_range { max } else { 224.0 * scale };
        let chroma = match kind {
            FloatKind::Identity => luma,
            FloatKind::Weights { .. } | FloatKind::YCgCo => Range { offset: 128.0 * scale, range },
        };
        Self { kind, luma, chroma }
    }

    /// The conversion of pictures without colours to grey.
    pub(super) fn of_grey(bit_depth: u8, full_range: bool) -> Self {
        Self::new(FloatKind::YCgCo, bit_depth, full_range)
    }

    /// A sample of U or V as a number around 0, or from 0 to 1 where it is one of the colours.
    pub(super) fn chroma(&self, sample: u16) -> f32 {
        self.chroma.of(f32::from(sample))
    }

    /// A pixel.
    pub(super) fn pixel(&self, y: u16, u: f32, v: f32) -> [u8; 3] {
        let y = self.luma.of(f32::from(y));
        let rgb = match self.kind {
            FloatKind::Identity => [v, y, u],
            FloatKind::YCgCo => [y - u + v, y + u, y - u - v],
            FloatKind::Weights { red, blue } => {
                let green = 1.0 - red - blue;
                let share = red * (1.0 - red) * v + blue * (1.0 - blue) * u;
                let with_red = 2.0 * (1.0 - red) * v;
                [y + with_red, y - 2.0 * share / green, y + 2.0 * (1.0 - blue) * u]
            }
        };
        rgb.map(byte_of)
    }

    /// A pixel without colour.
    pub(super) fn grey(&self, y: u16) -> u8 {
        byte_of(self.luma.of(f32::from(y)))
    }
}

impl Range {
    fn of(self, value: f32) -> f32 {
        (value - self.offset) / self.range
    }
}

/// The level of a number from 0 to 1, rounded; others are cut off.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0.5 to 255.5")]
pub(super) fn byte_of(number: f32) -> u8 {
    (0.5 + number.clamp(0.0, 1.0) * 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: Samples = Samples { bit_depth: 8, is_monochrome: false, is_subsampled: true };

    fn nclx(matrix: u16, full_range: bool) -> Nclx {
        Nclx { primaries: 1, matrix, full_range }
    }

    #[test]
    fn black_white_and_grey_are_exact() {
        for matrix in [1, 2, 5, 6, 9, 12] {
            for (full_range, black, white) in [(false, 16, 235), (true, 0, 255)] {
                let Conversion::Fixed(fixed) =
                    Conversion::of(nclx(matrix, full_range), EIGHT).unwrap()
                else {
                    panic!("libyuv has coefficients for {matrix}");
                };
                assert_eq!(fixed.pixel(black, 128, 128), [0; 3], "{matrix}");
                assert_eq!(fixed.pixel(white, 128, 128), [255; 3], "{matrix}");
                assert_eq!(fixed.grey(white), 255);
            }
        }
    }

    #[test]
    fn matrices_without_a_conversion_are_refused() {
        for matrix in [0, 3, 10, 11, 13, 14, 15, 255] {
            let error = Conversion::of(nclx(matrix, true), EIGHT).unwrap_err().to_string();
            let expected = format!("unsupported: AVIF with matrix coefficients {matrix}");
            assert_eq!(error, expected);
        }
        assert!(Conversion::of(nclx(8, false), EIGHT).is_err());
    }

    #[test]
    fn identity_gives_the_samples() {
        let samples = Samples { is_subsampled: false, ..EIGHT };
        let Conversion::Float(float) = Conversion::of(nclx(0, true), samples).unwrap() else {
            panic!("libyuv has no identity");
        };
        for sample in 0..=255 {
            let [red, green, blue] = float.pixel(sample, float.chroma(7), float.chroma(9));
            assert_eq!([u16::from(red), u16::from(green), u16::from(blue)], [9, sample, 7]);
        }
    }
}
