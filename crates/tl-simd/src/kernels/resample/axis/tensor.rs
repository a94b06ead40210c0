//! The coefficients of `torch.nn.functional.interpolate` on uint8 tensors: those of
//! `_compute_index_ranges_int16_weights` in torch's `UpSampleKernel.cpp`.

use super::{Axis, AxisKey, PRECISION_BITS, Reach, Span, truncate};
use crate::kernels::resample::TensorFilter;
use core::ops::Range;

/// Coefficients are below this in size.
const LIMIT: f64 = 32_768.0;

/// The taps of an output pixel whose filter is not widened.
pub(super) struct PlainTaps {
    /// The source pixels, without those outside the source.
    pub(super) pixels: Range<u32>,
    /// The source pixel of the first tap, which may be outside.
    first: f64,
    /// The distance of the middle from the last pixel before it; 0 to 1.
    fraction: f64,
}

impl Reach {
    /// How many taps a filter has that is not widened.
    fn tap_count(&self) -> u32 {
        truncate(self.support * 2.0)
    }

    /// The two or four source pixels of an output pixel.
    pub(super) fn plain_taps(&self, index: u32) -> PlainTaps {
        let position = self.center(index) - 0.5;
        let position = if self.tap_count() == 2 { position.max(0.0) } else { position };
        let last = self.pixels - 1.0;
        // torch takes the floor in single precision.
        let before = f64::from(single(position).floor()).min(last);
        let fraction = (position - before).clamp(0.0, 1.0);
        let first = before - self.support + 1.0;
        let end = truncate((before + self.support + 1.0).min(self.pixels));
        PlainTaps { pixels: truncate(first)..end, first, fraction }
    }

    /// The weights of [`Reach::plain_taps`]: those of taps outside go to the nearest pixel inside.
    fn plain_weights(&self, index: u32, filter: TensorFilter, weights: &mut Vec<f64>) {
        let PlainTaps { pixels, first, fraction } = self.plain_taps(index);
        let start = weights.len();
        weights.resize(start + pixels.len(), 0.0);
        let weights = &mut weights[start..];
        for tap in 0..self.tap_count() {
            let weight = filter.weigh(f64::from(tap) + 1.0 - self.support - fraction);
            let pixel = truncate(first + f64::from(tap)).clamp(pixels.start, pixels.end - 1);
            weights[(pixel - pixels.start) as usize] += weight;
        }
    }
}

impl Axis {
    /// The precision depends on the largest coefficient of the whole axis. All of them are computed
    /// therefore, and those of the window are kept.
    pub(super) fn filter_tensor(&mut self, key: AxisKey, filter: TensorFilter) {
        let reach = Reach::of(&key);
        let narrowing = if reach.scale >= 1.0 { 1.0 / reach.scale } else { 1.0 };
        let first = reach.taps(key.first).start;
        self.exact.clear();
        let window = key.first..key.first + key.count;
        let mut largest = 0.0;
        for index in 0..key.output {
            let start = self.exact.len();
            let taps = reach.taps(index);
            let from = taps.start;
            if reach.plain {
                reach.plain_weights(index, filter, &mut self.exact);
            } else {
                let center = reach.center(index);
                let distances = taps.map(|pixel| f64::from(pixel) - center + 0.5);
                self.exact.extend(distances.map(|distance| filter.weigh(distance * narrowing)));
                let sum: f64 = self.exact[start..].iter().sum();
                if sum != 0.0 {
                    self.exact[start..].iter_mut().for_each(|weight| *weight /= sum);
                }
            }
            largest = self.exact[start..].iter().copied().fold(largest, f64::max);
            if window.contains(&index) {
                self.bounds.push(((from - first) as usize, self.exact.len()));
            } else {
                self.exact.truncate(start);
            }
        }
        let bits = fraction_bits(largest);
        self.weights.extend(self.exact.iter().map(|&weight| fixed_point(weight, bits)));
    }
}

/// How many fraction bits coefficients up to `largest` have.
fn fraction_bits(largest: f64) -> u32 {
    let fits = |bits: u32| (0.5 + largest * f64::from(1_u32 << (bits + 1))).floor() < LIMIT;
    (0..PRECISION_BITS).find(|&bits| !fits(bits)).unwrap_or(PRECISION_BITS)
}

/// A coefficient of `bits` fraction bits, with zeros to make them [`PRECISION_BITS`].
#[expect(clippy::cast_possible_truncation, reason = "a coefficient has 16 bits")]
fn fixed_point(weight: f64, bits: u32) -> i32 {
    let scaled = weight * f64::from(1_u32 << bits);
    let half = if scaled < 0.0 { -0.5 } else { 0.5 };
    ((scaled + half) as i32) << (PRECISION_BITS - bits)
}

/// The source pixels of `nearest` and `nearest-exact`, found in single precision as torch does.
pub(super) fn nearest(key: &AxisKey, filter: TensorFilter) -> impl Iterator<Item = u32> {
    let Span { offset, length, pixels } = key.span;
    let scale = single(length) / single(f64::from(key.output));
    let exact = filter == TensorFilter::NearestExact;
    let small = key.small;
    (key.first..key.first + key.count).map(move |index| {
        let index = single(f64::from(index));
        let position = match (exact, small) {
            (false, _) => scale * index,
            (true, true) => scale * (index + 0.5),
            // A fused instruction: the product is not rounded before a half is taken off.
            (true, false) => {
                let product = f64::from(scale) * f64::from(index + 0.5);
                single(product - 0.5).max(0.0) + 0.5
            }
        };
        truncate(offset + f64::from(position)).min(pixels - 1)
    })
}

#[expect(clippy::cast_possible_truncation, reason = "the rounding is what torch does")]
fn single(value: f64) -> f32 {
    value as f32
}
