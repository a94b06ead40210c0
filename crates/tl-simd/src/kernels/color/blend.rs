//! Mixtures of a sample with another one by a factor.
//!
//! Both conventions compute `base + factor * (sample - base)` in `f32`, clip and truncate. There are
//! 511 differences, so that a factor can be checked once against arithmetic in 16 bits, which is
//! four times faster; the few factors for which that could differ take the floats.

use super::blocks::BLOCK;

/// The samples of one channel of a block.
pub(super) type Plane = [u8; BLOCK];

/// A way to mix samples with others.
pub(super) trait Mix {
    /// Replaces `samples` by their mixtures with `base`.
    fn mix(&self, base: &Plane, samples: &mut Plane);
}

/// The faster way to mix by one factor that is exact.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blend {
    /// In integers, checked to give what the floats give.
    Fixed(Fixed),
    /// In floats.
    Exact(Exact),
}

impl Blend {
    /// `Image.blend` of Pillow: the product is rounded before it is added.
    pub(super) fn pillow(factor: f64) -> Self {
        let factor = to_f32(factor);
        Self::of(Exact { factor, fused: false })
    }

    /// `add_(other, alpha=factor)` of PyTorch: product and sum are rounded together.
    pub(super) fn torch(factor: f64) -> Self {
        Self::of(Exact { factor: to_f32(factor), fused: true })
    }

    fn of(exact: Exact) -> Self {
        Fixed::checked(exact).map_or(Self::Exact(exact), Self::Fixed)
    }
}

/// A number as a C `float`.
#[expect(clippy::cast_possible_truncation, reason = "the rounding that both libraries make")]
pub(super) fn to_f32(value: f64) -> f32 {
    value as f32
}

/// The nearest byte below or at `value`; what is no number gives 0.
///
/// A vector of floats has no conversion that saturates, but in a sum with 2^23 the last bits of
/// the significand count ones.
#[expect(clippy::manual_clamp, reason = "`clamp` keeps what is no number")]
#[inline(always)]
pub(super) fn clip(value: f32) -> u8 {
    const ONES: f32 = 8_388_608.0;
    let [low, ..] = (value.max(0.0).min(255.0).floor() + ONES).to_bits().to_le_bytes();
    low
}

/// Mixing in floats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    factor: f32,
    fused: bool,
}

impl Exact {
    /// `factor * difference`, rounded where that is a step of its own.
    fn product(self, difference: i16) -> f64 {
        if self.fused {
            f64::from(self.factor) * f64::from(difference)
        } else {
            f64::from(self.factor * f32::from(difference))
        }
    }
}

impl Mix for Exact {
    #[inline(always)]
    fn mix(&self, base: &Plane, samples: &mut Plane) {
        let Self { factor, fused } = *self;
        for (sample, &base) in samples.iter_mut().zip(base) {
            let difference = f32::from(i16::from(*sample) - i16::from(base));
            let base = f32::from(base);
            let fused_sum = difference.mul_add(factor, base);
            *sample = clip(if fused { fused_sum } else { base + factor * difference });
        }
    }
}

/// Mixing in integers of 16 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// The factor, times 2 to the power of `16 + shift`: whole multiples of 65536 and the rest.
    high: i16,
    low: i16,
    shift: u32,
}

/// The largest magnitude of a scaled factor: its product with 255 has to stay within 31 bits.
const MOST: f64 = 8_323_072.0;

/// Above this the fraction of a product could be rounded up to 1 when a sample is added: a sum
/// below 256 is a multiple of 2 to the power of -16.
const LARGEST_FRACTION: f64 = 1.0 - 1.0 / 65_536.0;

impl Fixed {
    /// The integers for `exact`, if they give the same for every difference.
    fn checked(exact: Exact) -> Option<Self> {
        // With fewer fraction bits than 6 the check would fail anyway.
        let factor = f64::from(exact.factor);
        let shift = (0..=6_u32).rev().find(|&shift| factor.abs() * scale(shift) <= MOST)?;
        let scaled = (factor * scale(shift)).floor();
        [scaled, scaled + 1.0].into_iter().find_map(|scaled| {
            let fixed = Self::of(scaled, shift)?;
            fixed.agrees(exact).then_some(fixed)
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "whole, and at most 2^23")]
    fn of(scaled: f64, shift: u32) -> Option<Self> {
        let scaled = scaled as i32;
        let high = (scaled + (1 << 15)) >> 16;
        let low = scaled - (high << 16);
        Some(Self { high: high.try_into().ok()?, low: low.try_into().ok()?, shift })
    }

    fn agrees(self, exact: Exact) -> bool {
        (-255..=255_i16).all(|difference| {
            let product = exact.product(difference);
            let below = product.floor();
            below == f64::from(self.product(difference)) && product - below <= LARGEST_FRACTION
        })
    }

    /// The whole number below `factor * difference`.
    #[inline(always)]
    fn product(self, difference: i16) -> i16 {
        let low = ((i32::from(difference) * i32::from(self.low)) >> 16) as i16;
        difference.wrapping_mul(self.high).wrapping_add(low) >> self.shift
    }
}

impl Mix for Fixed {
    #[expect(clippy::cast_sign_loss, reason = "clipped")]
    #[inline(always)]
    fn mix(&self, base: &Plane, samples: &mut Plane) {
        for (sample, &base) in samples.iter_mut().zip(base) {
            let base = i16::from(base);
            let product = self.product(i16::from(*sample) - base);
            *sample = base.saturating_add(product).clamp(0, 255) as u8;
        }
    }
}

/// 2 to the power of `16 + shift`.
fn scale(shift: u32) -> f64 {
    f64::from(1_u32 << (16 + shift))
}
