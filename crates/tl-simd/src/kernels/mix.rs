//! Mixing the images of a batch: rows of numbers blended, and rectangles copied between them.

use crate::Level;
use crate::kernels::normalize::{Dtype, Layout};
use crate::kernels::resample::Rect;
use crate::vector::color::ColorSimd;
use crate::vector::{Simd, dispatch};

/// Blends `row` with `other` in place: `other * (1 - lambda) + row * lambda`, rounded to the type
/// after each step. That is torchvision's `MixUp`, which has `other` be the row before.
///
/// # Panics
///
/// When the lengths differ or are not whole numbers, or the elements are integers, which torch
/// refuses to multiply by fractions.
pub fn blend(level: Level, dtype: Dtype, lambda: f64, row: &mut [u8], other: &[u8]) {
    assert_eq!(row.len(), other.len(), "two images of one size");
    assert!(row.len().is_multiple_of(dtype.bytes()), "whole numbers");
    assert!(dtype.is_float(), "integers are not blended");
    #[expect(clippy::cast_possible_truncation, reason = "torch's scalars have the tensor's type")]
    let rest = (1.0 - lambda) as f32;
    #[expect(clippy::cast_possible_truncation, reason = "torch's scalars have the tensor's type")]
    let lambda = lambda as f32;
    match dtype {
        Dtype::F32 => blend_as::<f32>(level, lambda, rest, row, other),
        Dtype::F16 => blend_as::<Half>(level, lambda, rest, row, other),
        Dtype::Bf16 => blend_as::<Brain>(level, lambda, rest, row, other),
        Dtype::U8 | Dtype::U16 => {}
    }
}

/// Copies `source` of one image to the place `to` of another of the same form.
///
/// # Panics
///
/// When a slice is not an image of `size`, or a rectangle leaves it.
pub fn copy_rect(format: Format, from: &[u8], source: Rect, into: &mut [u8], to: (u32, u32)) {
    let target = Rect { x: to.0, y: to.1, ..source };
    format.check(from, source);
    format.check(into, target);
    for (from_start, to_start, len) in format.lines(source, target) {
        into[to_start..][..len].copy_from_slice(&from[from_start..][..len]);
    }
}

/// [`copy_rect`] within one image, to a place that is not below or right of the source.
///
/// # Panics
///
/// When the slice is not an image of the format's size, a rectangle leaves it, or `to` is below or
/// right of the source.
pub fn move_rect(format: Format, image: &mut [u8], source: Rect, to: (u32, u32)) {
    assert!(to.0 <= source.x && to.1 <= source.y, "{source:?} to {to:?} is up and left");
    let target = Rect { x: to.0, y: to.1, ..source };
    format.check(image, source);
    for (from_start, to_start, len) in format.lines(source, target) {
        image.copy_within(from_start..from_start + len, to_start);
    }
}

/// The form of images that rectangles are copied between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// The type of the numbers.
    pub dtype: Dtype,
    /// The order of the numbers.
    pub layout: Layout,
    /// Numbers of a pixel.
    pub channels: usize,
}

impl Format {
    /// Bytes of an image.
    ///
    /// # Panics
    ///
    /// When it does not fit the address space.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { size, dtype, channels, .. } = self;
        let sides = [size.0 as usize, size.1 as usize, *channels, dtype.bytes()];
        let bytes = sides.into_iter().try_fold(1_usize, usize::checked_mul);
        bytes.expect("the image fits into the address space")
    }

    fn check(&self, image: &[u8], rect: Rect) {
        let (width, height) = self.size;
        assert_eq!(image.len(), self.bytes(), "bytes of a {width}x{height} image");
        assert!(rect.fits(width, height), "{rect:?} in an image of {width}x{height}");
    }

    /// The bytes of each line of the rectangles: where they start, and how many they are.
    fn lines(&self, source: Rect, target: Rect) -> impl Iterator<Item = (usize, usize, usize)> {
        let (planes, numbers) = match self.layout {
            Layout::Hwc => (1, self.channels),
            Layout::Chw => (self.channels, 1),
        };
        let pixel = numbers * self.dtype.bytes();
        let width = self.size.0 as usize;
        let height = self.size.1 as usize;
        let place = move |plane: usize, rect: Rect, line: usize| {
            (((plane * height) + rect.y as usize + line) * width + rect.x as usize) * pixel
        };
        let lines = source.height as usize;
        let len = source.width as usize * pixel;
        (0..planes).flat_map(move |plane| {
            (0..lines)
                .map(move |line| (place(plane, source, line), place(plane, target, line), len))
        })
    }
}

/// A type of number that is blended as `f32`.
trait Blended {
    const SIZE: usize;
    fn load(bytes: &[u8]) -> f32;
    fn store(value: f32, bytes: &mut [u8]);
    /// Rounds to this type.
    fn round(value: f32) -> f32;

    // The same for `S::FLOATS` numbers.
    fn load_all<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats;
    fn store_all<S: Simd>(simd: S, values: S::Floats, bytes: &mut [u8]);
    fn round_all<S: Simd>(simd: S, values: S::Floats) -> S::Floats;
}

fn blend_as<N: Blended>(level: Level, lambda: f32, rest: f32, row: &mut [u8], other: &[u8]) {
    dispatch!(
        level,
        scalar => define_blend::<N>(lambda, rest, row, other),
        simd => blend_vectors::<_, N>(simd, lambda, rest, row, other),
    );
}

/// Numbers that are blended together, so that each conversion is a separate loop.
const STEP: usize = 32;

fn define_blend<N: Blended>(lambda: f32, rest: f32, row: &mut [u8], other: &[u8]) {
    let others = other.chunks(STEP * N::SIZE);
    for (row, other) in row.chunks_mut(STEP * N::SIZE).zip(others) {
        let mut before = [0.0; STEP];
        let mut here = [0.0; STEP];
        for (number, bytes) in before.iter_mut().zip(other.chunks_exact(N::SIZE)) {
            *number = N::round(N::load(bytes) * rest);
        }
        for (number, bytes) in here.iter_mut().zip(row.chunks_exact(N::SIZE)) {
            *number = N::round(N::load(bytes) * lambda);
        }
        for ((here, before), bytes) in here.iter().zip(before).zip(row.chunks_exact_mut(N::SIZE)) {
            N::store(before + here, bytes);
        }
    }
}

#[inline(always)]
fn blend_vectors<S: ColorSimd, N: Blended>(
    simd: S,
    lambda: f32,
    rest: f32,
    row: &mut [u8],
    other: &[u8],
) {
    let factors = [simd.splat_float(rest), simd.splat_float(lambda)];
    let mut rows = row.chunks_exact_mut(S::FLOATS * N::SIZE);
    let mut others = other.chunks_exact(S::FLOATS * N::SIZE);
    for (row, other) in (&mut rows).zip(&mut others) {
        let before = simd.mul_floats(N::load_all(simd, other), factors[0]);
        let here = simd.mul_floats(N::load_all(simd, row), factors[1]);
        let sum = simd.add_floats(N::round_all(simd, before), N::round_all(simd, here));
        N::store_all(simd, sum, row);
    }
    define_blend::<N>(lambda, rest, rows.into_remainder(), others.remainder());
}

impl Blended for f32 {
    const SIZE: usize = 4;

    #[inline(always)]
    fn load(bytes: &[u8]) -> f32 {
        Self::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[inline(always)]
    fn store(value: f32, bytes: &mut [u8]) {
        bytes.copy_from_slice(&value.to_ne_bytes());
    }

    #[inline(always)]
    fn round(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    fn load_all<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats {
        simd.load_f32(bytes)
    }

    #[inline(always)]
    fn store_all<S: Simd>(simd: S, values: S::Floats, bytes: &mut [u8]) {
        simd.store_f32(values, bytes);
    }

    #[inline(always)]
    fn round_all<S: Simd>(_: S, values: S::Floats) -> S::Floats {
        values
    }
}

/// bfloat16, converted by integer arithmetic. The numbers of a batch are finite.
struct Brain;

impl Blended for Brain {
    const SIZE: usize = 2;

    #[inline(always)]
    fn load(bytes: &[u8]) -> f32 {
        f32::from_bits(u32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) << 16)
    }

    #[inline(always)]
    fn store(value: f32, bytes: &mut [u8]) {
        bytes.copy_from_slice(&((Self::round(value).to_bits() >> 16) as u16).to_ne_bytes());
    }

    #[inline(always)]
    fn round(value: f32) -> f32 {
        let bits = value.to_bits();
        f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
    }

    #[inline(always)]
    fn load_all<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats {
        simd.load_bf16(bytes)
    }

    #[inline(always)]
    fn store_all<S: Simd>(simd: S, values: S::Floats, bytes: &mut [u8]) {
        simd.store_bf16(values, bytes);
    }

    #[inline(always)]
    fn round_all<S: Simd>(simd: S, values: S::Floats) -> S::Floats {
        simd.round_bf16(values)
    }
}

/// An IEEE half, converted by integer arithmetic.
pub(super) struct Half;

impl Half {
    /// 2^112, the factor between the exponents of half and single precision.
    const SCALE: f32 = f32::from_bits((112 + 127) << 23);
    /// From here on a number rounds to infinity.
    const TOO_LARGE: u32 = 0x477F_F000;
    /// The smallest normal half.
    const SMALLEST: u32 = 0x3880_0000;

    /// The half nearest to `value`, ties to even; NaN is NaN, as conversion instructions have it.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "halves have 16 bits")]
    fn encode(value: f32) -> u16 {
        let bits = value.to_bits();
        let sign = bits >> 16 & 0x8000;
        let magnitude = bits & 0x7FFF_FFFF;
        let normal = (magnitude + 0xFFF + (magnitude >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
        // The last bit of 0.5 is worth as much as that of subnormal halves.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
        let half = select(magnitude < Self::SMALLEST, subnormal, normal);
        let half = select(magnitude >= Self::TOO_LARGE, 0x7C00, half);
        let half = select(magnitude > 0x7F80_0000, 0x7E00 | magnitude >> 13 & 0x3FF, half);
        (half | sign) as u16
    }

    #[inline(always)]
    pub(super) fn decode(half: u16) -> f32 {
        let sign = u32::from(half & 0x8000) << 16;
        let magnitude = u32::from(half & 0x7FFF);
        let finite = (f32::from_bits(magnitude << 13) * Self::SCALE).to_bits();
        let infinite = magnitude << 13 | 0x7F80_0000;
        f32::from_bits(select(magnitude >= 0x7C00, infinite, finite) | sign)
    }
}

/// A choice without a branch, which would keep a loop from being vectorised.
#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    let mask = u32::from(condition).wrapping_neg();
    yes & mask | no & !mask
}

impl Blended for Half {
    const SIZE: usize = 2;

    #[inline(always)]
    fn load(bytes: &[u8]) -> f32 {
        Self::decode(u16::from_ne_bytes([bytes[0], bytes[1]]))
    }

    #[inline(always)]
    fn store(value: f32, bytes: &mut [u8]) {
        bytes.copy_from_slice(&Self::encode(value).to_ne_bytes());
    }

    #[inline(always)]
    fn round(value: f32) -> f32 {
        Self::decode(Self::encode(value))
    }

    #[inline(always)]
    fn load_all<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats {
        simd.load_f16(bytes)
    }

    #[inline(always)]
    fn store_all<S: Simd>(simd: S, values: S::Floats, bytes: &mut [u8]) {
        simd.store_f16(values, bytes);
    }

    #[inline(always)]
    fn round_all<S: Simd>(simd: S, values: S::Floats) -> S::Floats {
        simd.round_f16(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn levels_agree_about_all_numbers_of_16_bits() {
        let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
        // The others are near 1 as halves, near 0.016 as bfloat16; the length leaves a rest at
        // every level.
        let all = &all[2..];
        let ones = [0x80, 0x3C].repeat(usize::from(u16::MAX));
        for dtype in [Dtype::F16, Dtype::Bf16] {
            let mut expected = all.to_vec();
            blend(Level::Scalar, dtype, 0.3, &mut expected, &ones);
            for level in Level::available() {
                let mut row = all.to_vec();
                blend(level, dtype, 0.3, &mut row, &ones);
                assert!(row == expected, "{level} {dtype:?}");
            }
        }
    }

    #[test]
    fn halves_are_those_of_the_half_crate() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            if half.is_nan() {
                continue;
            }
            assert_eq!(Half::decode(bits).to_bits(), half.to_f32().to_bits(), "{bits:#x}");
            let value = half.to_f32();
            // The half itself, its neighbours in f32, and the ties on both sides.
            let tie = |next: u16| (value + f16::from_bits(next).to_f32()) / 2.0;
            let ties = [tie(bits.wrapping_add(1)), tie(bits.wrapping_sub(1))];
            for near in [value, value.next_up(), value.next_down()]
                .into_iter()
                .chain(ties.into_iter().flat_map(|tie| [tie, tie.next_up(), tie.next_down()]))
                .filter(|near| !near.is_nan())
            {
                assert_eq!(Half::encode(near), f16::from_f32(near).to_bits(), "{near}");
                let brain = bf16::from_f32(near).to_f32();
                assert!(near.is_infinite() || Brain::round(near).to_bits() == brain.to_bits());
            }
        }
    }
}
