//! Mixtures of a sample with another one by a factor, in the roundings of either library.

use crate::vector::color::ColorSimd;

/// A number as a C `float`.
#[expect(clippy::cast_possible_truncation, reason = "the rounding that both libraries make")]
#[inline(always)]
pub(super) fn to_f32(value: f64) -> f32 {
    value as f32
}

/// Truncated and clipped; NaN gives 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
#[inline(always)]
pub(super) fn clip(value: f32) -> u8 {
    value as u8
}

/// `a * b + c` rounded once, of samples, factors and their products: the product and in all cases
/// that matter the sum are exact in `f64`.
#[inline(always)]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    to_f32(f64::from(a) * f64::from(b) + f64::from(c))
}

/// The floats of a vector of bytes.
pub(super) type Floats<S> = [<S as crate::vector::Simd>::Floats; 4];

/// A way of mixing samples with others.
pub(super) trait Mix {
    /// The mixture before truncation; both samples are whole.
    fn define(&self, base: f32, sample: f32) -> f32;

    /// The same for vectors.
    fn run<S: ColorSimd>(&self, simd: S, base: Floats<S>, samples: Floats<S>) -> Floats<S>;
}

/// `Image.blend` of Pillow: `base + factor * (sample - base)`, every step rounded.
pub(super) struct Blend(pub(super) f32);

impl Mix for Blend {
    fn define(&self, base: f32, sample: f32) -> f32 {
        base + self.0 * (sample - base)
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, base: Floats<S>, samples: Floats<S>) -> Floats<S> {
        let factor = simd.splat_float(self.0);
        let mut mixed = samples;
        for (mixed, base) in mixed.iter_mut().zip(base) {
            let product = simd.mul_floats(factor, simd.sub_floats(*mixed, base));
            *mixed = simd.add_floats(base, product);
        }
        mixed
    }
}

/// `base.add_(sample - base, alpha=factor)` of PyTorch, which fuses the product with the sum.
pub(super) struct FusedBlend(pub(super) f32);

impl Mix for FusedBlend {
    fn define(&self, base: f32, sample: f32) -> f32 {
        fused(self.0, sample - base, base)
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, base: Floats<S>, samples: Floats<S>) -> Floats<S> {
        let factor = simd.splat_float(self.0);
        let mut mixed = samples;
        for (mixed, base) in mixed.iter_mut().zip(base) {
            *mixed = simd.fused(factor, simd.sub_floats(*mixed, base), base);
        }
        mixed
    }
}

/// `sample.mul(factor).add_(base, alpha=rest)` of PyTorch, which fuses the second product.
pub(super) struct WeightedSum {
    pub(super) factor: f32,
    pub(super) rest: f32,
}

impl Mix for WeightedSum {
    fn define(&self, base: f32, sample: f32) -> f32 {
        fused(base, self.rest, sample * self.factor)
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, base: Floats<S>, samples: Floats<S>) -> Floats<S> {
        let factor = simd.splat_float(self.factor);
        let rest = simd.splat_float(self.rest);
        let mut mixed = samples;
        for (mixed, base) in mixed.iter_mut().zip(base) {
            *mixed = simd.fused(base, rest, simd.mul_floats(*mixed, factor));
        }
        mixed
    }
}
