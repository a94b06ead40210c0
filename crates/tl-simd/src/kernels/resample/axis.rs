//! The fixed point coefficients of one axis, as `precompute_coeffs` and `normalize_coeffs_8bpc` of
//! Pillow's `Resample.c` make them, for the part of the output that is wanted.

use super::{Filter, filter};
use core::ops::Range;

/// Fraction bits of a coefficient: Pillow's `PRECISION_BITS`, 32 - 8 - 2.
pub(crate) const PRECISION_BITS: u32 = 22;

/// The coefficient 1.
pub(super) const ONE: i32 = 1 << PRECISION_BITS;

/// Added to a sum before its fraction bits are dropped.
pub(crate) const ROUND: i32 = ONE / 2;

/// The source pixels that make one output pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taps<'a> {
    /// The first source pixel.
    pub(super) start: usize,
    /// One coefficient for each source pixel from `start` on; never empty.
    pub(super) weights: &'a [i32],
}

impl Taps<'_> {
    /// The source pixel when the output pixel is a copy of it.
    pub(super) fn copied(&self) -> Option<usize> {
        (self.weights == [ONE]).then_some(self.start)
    }
}

/// What an axis was computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AxisKey {
    pub(super) filter: Filter,
    /// Source pixels.
    pub(super) input: u32,
    /// Pixels the source is resized to.
    pub(super) output: u32,
    /// The first output pixel wanted.
    pub(super) first: u32,
    /// How many output pixels are wanted.
    pub(super) count: u32,
}

impl AxisKey {
    /// Whether every output pixel is a copy of the source pixel of the same index.
    pub(super) const fn is_identity(&self) -> bool {
        self.input == self.output
    }
}

/// The coefficients of the wanted output pixels of one axis.
#[derive(Debug, Default)]
pub(super) struct Axis {
    key: Option<AxisKey>,
    /// First source pixel and end of the pixel's part of `weights`.
    bounds: Vec<(usize, usize)>,
    weights: Vec<i32>,
    exact: Vec<f64>,
}

impl Axis {
    /// Makes `self` the coefficients of `key`; free when it already is.
    pub(super) fn prepare(&mut self, key: AxisKey) {
        if self.key == Some(key) {
            return;
        }
        self.key = Some(key);
        self.bounds.clear();
        self.weights.clear();
        if key.is_identity() {
            self.copy_pixels(key.first..key.first + key.count);
            return;
        }
        match key.filter {
            Filter::Nearest => self.pick_nearest(key),
            Filter::Box => self.filter(key, filter::square),
            Filter::Bilinear => self.filter(key, filter::triangle),
            Filter::Hamming => self.filter(key, filter::hamming),
            Filter::Bicubic => self.filter(key, filter::cubic),
            Filter::Lanczos => self.filter(key, filter::lanczos),
        }
    }

    pub(super) fn key(&self) -> Option<AxisKey> {
        self.key
    }

    /// The source pixels that any output pixel needs.
    pub(super) fn source_pixels(&self) -> Range<usize> {
        let start = self.bounds.first().map_or(0, |&(start, _)| start);
        let end = self.iter().last().map_or(0, |taps| taps.start + taps.weights.len());
        start..end
    }

    pub(super) fn len(&self) -> usize {
        self.bounds.len()
    }

    pub(super) fn taps(&self, index: usize) -> Taps<'_> {
        let (start, end) = self.bounds[index];
        let from = index.checked_sub(1).map_or(0, |previous| self.bounds[previous].1);
        Taps { start, weights: &self.weights[from..end] }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Taps<'_>> {
        (0..self.len()).map(|index| self.taps(index))
    }

    fn copy_pixels(&mut self, pixels: impl Iterator<Item = u32>) {
        for pixel in pixels {
            self.weights.push(ONE);
            self.bounds.push((pixel as usize, self.weights.len()));
        }
    }

    /// The positions of Pillow's `ImagingScaleAffine`, which adds up the step instead of multiplying.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "Pillow truncates; the position is positive and below `input`"
    )]
    fn pick_nearest(&mut self, key: AxisKey) {
        let step = f64::from(key.input) / f64::from(key.output);
        let mut position = step * 0.5;
        for _ in 0..key.first {
            position += step;
        }
        let pixels = (0..key.count).map(|_| {
            let pixel = (position as u32).min(key.input - 1);
            position += step;
            pixel
        });
        self.copy_pixels(pixels);
    }

    /// `weigh` is the key's filter.
    fn filter(&mut self, key: AxisKey, weigh: impl Fn(f64) -> f64) {
        let input = f64::from(key.input);
        let scale = input / f64::from(key.output);
        let widening = scale.max(1.0);
        let support = key.filter.support() * widening;
        let narrowing = 1.0 / widening;
        for index in key.first..key.first + key.count {
            let center = (f64::from(index) + 0.5) * scale;
            let start = truncate(center - support + 0.5);
            let end = truncate((center + support + 0.5).min(input));
            let distances = (start..end).map(|pixel| f64::from(pixel) - center + 0.5);
            self.exact.clear();
            self.exact.extend(distances.map(|distance| weigh(distance * narrowing)));
            let sum: f64 = self.exact.iter().sum();
            let divisor = if sum == 0.0 { 1.0 } else { sum };
            self.weights.extend(self.exact.iter().map(|weight| fixed_point(weight / divisor)));
            self.bounds.push((start as usize, self.weights.len()));
        }
    }
}

/// `value` without its fraction, and 0 for what is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is the clamp that is wanted"
)]
fn truncate(value: f64) -> u32 {
    value as u32
}

#[expect(clippy::cast_possible_truncation, reason = "a normalised weight is below 2 in size")]
fn fixed_point(weight: f64) -> i32 {
    (weight * f64::from(ONE) + 0.5_f64.copysign(weight)) as i32
}

#[cfg(test)]
mod tests {
    use super::{Axis, AxisKey, Filter};

    const FILTERS: [Filter; 6] = [
        Filter::Nearest,
        Filter::Box,
        Filter::Bilinear,
        Filter::Hamming,
        Filter::Bicubic,
        Filter::Lanczos,
    ];

    /// The largest number of three signed bytes, which is how AVX-512 multiplies.
    const LARGEST: u32 = 0x7F_7F7F;

    #[test]
    fn every_coefficient_fits_three_signed_bytes() {
        let mut largest = 0;
        for filter in FILTERS {
            for (input, output) in (1..=60).flat_map(|i| (1..=130).map(move |o| (i, o))) {
                let mut axis = Axis::default();
                axis.prepare(AxisKey { filter, input, output, first: 0, count: output });
                for taps in axis.iter() {
                    assert!(!taps.weights.is_empty(), "{filter:?} {input} {output}");
                    assert!(taps.start + taps.weights.len() <= input as usize);
                    largest = taps.weights.iter().map(|w| w.unsigned_abs()).fold(largest, u32::max);
                }
            }
        }
        assert!(largest < LARGEST, "{largest}");
    }

    #[test]
    fn sums_stay_within_32_bits() {
        for filter in FILTERS {
            for (input, output) in [(2, 700), (3, 7), (500, 224), (65_535, 1), (40, 39)] {
                let mut axis = Axis::default();
                axis.prepare(AxisKey { filter, input, output, first: 0, count: output });
                for taps in axis.iter() {
                    let size: u64 = taps.weights.iter().map(|w| u64::from(w.unsigned_abs())).sum();
                    assert!(
                        size * 255 + (1 << 21) < 1 << 31,
                        "{filter:?} {input} {output}: {size}"
                    );
                }
            }
        }
    }
}
