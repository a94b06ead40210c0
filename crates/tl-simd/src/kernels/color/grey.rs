//! Luma in both conventions: images made grey, their mean, and mixtures of pixels with their grey.

use super::Arithmetic;
use super::blend::{Blend, Floats, Mix, WeightedSum, clip, fused, to_f32};
use super::blocks::{self, Map};
use crate::Level;
use crate::vector::RGB;
use crate::vector::color::ColorSimd;

/// Makes every pixel grey: `convert("L")` of Pillow, or `rgb_to_grayscale` of torchvision on
/// tensors, in all three channels.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn to_grey(level: Level, arithmetic: Arithmetic, pixels: &mut [u8]) {
    match arithmetic {
        Arithmetic::Pillow => blocks::map(level, pixels, &ToGrey(Pillow)),
        Arithmetic::Torch => blocks::map(level, pixels, &ToGrey(Torch)),
    }
}

/// The sum of the greys of all pixels, of which both conventions of adjusting contrast take the mean.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
#[must_use]
pub fn grey_sum(level: Level, arithmetic: Arithmetic, pixels: &[u8]) -> u64 {
    match arithmetic {
        Arithmetic::Pillow => blocks::sum(level, pixels, &ToGrey(Pillow)),
        Arithmetic::Torch => blocks::sum(level, pixels, &ToGrey(Torch)),
    }
}

/// Moves every pixel by `factor` from its grey: `ImageEnhance.Color` of Pillow, or
/// `adjust_saturation` of torchvision on tensors.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn blend_with_grey(level: Level, arithmetic: Arithmetic, factor: f64, pixels: &mut [u8]) {
    match arithmetic {
        Arithmetic::Pillow => {
            let mix = Blend(to_f32(factor));
            blocks::map(level, pixels, &FromGrey { luma: Pillow, mix });
        }
        Arithmetic::Torch => {
            let mix = WeightedSum { factor: to_f32(factor), rest: to_f32(1.0 - factor) };
            blocks::map(level, pixels, &FromGrey { luma: Torch, mix });
        }
    }
}

/// A convention of what a pixel's grey is.
trait Luma {
    /// The grey, before truncation.
    fn define(&self, pixel: [f32; RGB]) -> f32;

    /// The same for vectors.
    fn run<S: ColorSimd>(&self, simd: S, planes: [Floats<S>; RGB]) -> Floats<S>;
}

/// ITU-R 601 luma as `L24` of Pillow's `Convert.c` rounds it: weights of 16 fraction bits, and a
/// half. The sum is below 2^24, and no float on the way to it is rounded.
struct Pillow;

impl Pillow {
    const WEIGHTS: [f32; RGB] = [19_595.0, 38_470.0, 7_471.0];
    const HALF: f32 = 32_768.0;
    const UNIT: f32 = 1.0 / 65_536.0;
}

impl Luma for Pillow {
    fn define(&self, [red, green, blue]: [f32; RGB]) -> f32 {
        let [red_weight, green_weight, blue_weight] = Self::WEIGHTS;
        let sum = red * red_weight + green * green_weight + blue * blue_weight;
        (sum + Self::HALF) * Self::UNIT
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, [red, green, blue]: [Floats<S>; RGB]) -> Floats<S> {
        let [red_weight, green_weight, blue_weight] = Self::WEIGHTS;
        let half = simd.splat_float(Self::HALF);
        let mut grey = red;
        for ((grey, green), blue) in grey.iter_mut().zip(green).zip(blue) {
            let sum = simd.fused(*grey, simd.splat_float(red_weight), half);
            let sum = simd.fused(green, simd.splat_float(green_weight), sum);
            let sum = simd.fused(blue, simd.splat_float(blue_weight), sum);
            *grey = simd.mul_floats(sum, simd.splat_float(Self::UNIT));
        }
        grey
    }
}

/// `r.mul(0.2989).add_(g, alpha=0.587).add_(b, alpha=0.114)` of PyTorch, which fuses the additions.
struct Torch;

impl Torch {
    const WEIGHTS: [f32; RGB] = [0.2989, 0.587, 0.114];
}

impl Luma for Torch {
    fn define(&self, [red, green, blue]: [f32; RGB]) -> f32 {
        let [red_weight, green_weight, blue_weight] = Self::WEIGHTS;
        fused(blue, blue_weight, fused(green, green_weight, red * red_weight))
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, [red, green, blue]: [Floats<S>; RGB]) -> Floats<S> {
        let [red_weight, green_weight, blue_weight] = Self::WEIGHTS;
        let mut grey = red;
        for ((grey, green), blue) in grey.iter_mut().zip(green).zip(blue) {
            let sum = simd.mul_floats(*grey, simd.splat_float(red_weight));
            let sum = simd.fused(green, simd.splat_float(green_weight), sum);
            *grey = simd.fused(blue, simd.splat_float(blue_weight), sum);
        }
        grey
    }
}

struct ToGrey<L>(L);

impl<L: Luma> Map for ToGrey<L> {
    fn define(&self, pixel: [u8; RGB]) -> [u8; RGB] {
        [clip(self.0.define(pixel.map(f32::from))); RGB]
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, [red, green, blue]: [S::Bytes; RGB]) -> [S::Bytes; RGB] {
        let planes = [simd.to_floats(red), simd.to_floats(green), simd.to_floats(blue)];
        let grey = simd.truncate(self.0.run(simd, planes));
        [grey, grey, grey]
    }
}

struct FromGrey<L, M> {
    luma: L,
    mix: M,
}

impl<L: Luma, M: Mix> Map for FromGrey<L, M> {
    fn define(&self, pixel: [u8; RGB]) -> [u8; RGB] {
        let pixel = pixel.map(f32::from);
        let grey = self.luma.define(pixel).floor();
        pixel.map(|sample| clip(self.mix.define(grey, sample)))
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, [red, green, blue]: [S::Bytes; RGB]) -> [S::Bytes; RGB] {
        let planes = [simd.to_floats(red), simd.to_floats(green), simd.to_floats(blue)];
        let mut grey = self.luma.run(simd, planes);
        for grey in &mut grey {
            *grey = simd.floor(*grey);
        }
        let [red, green, blue] = planes;
        [
            simd.truncate(self.mix.run(simd, grey, red)),
            simd.truncate(self.mix.run(simd, grey, green)),
            simd.truncate(self.mix.run(simd, grey, blue)),
        ]
    }
}
