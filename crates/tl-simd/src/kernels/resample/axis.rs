//! The coefficients of one axis, as `precompute_coeffs` and, in fixed point, `normalize_coeffs_8bpc`
//! of Pillow's `Resample.c` make them, for the part of the output that is wanted.

mod tensor;

use super::{Filter, TensorFilter, filter};
use core::ops::Range;

/// Fraction bits of a coefficient: Pillow's `PRECISION_BITS`, 32 - 8 - 2.
pub(crate) const PRECISION_BITS: u32 = 22;

/// The coefficient 1.
pub(super) const ONE: i32 = 1 << PRECISION_BITS;

/// Added to a sum before its fraction bits are dropped.
pub(crate) const ROUND: i32 = ONE / 2;

/// A type of coefficients.
pub(super) trait Weight: Copy {
    /// The coefficient 1.
    const ONE: Self;

    /// The coefficient for a normalised weight.
    fn of(weight: f64) -> Self;
}

/// In fixed point, for 8-bit samples.
impl Weight for i32 {
    const ONE: Self = ONE;

    fn of(weight: f64) -> Self {
        fixed_point(weight)
    }
}

/// As they are, for wider samples.
impl Weight for f64 {
    const ONE: Self = 1.0;

    fn of(weight: f64) -> Self {
        weight
    }
}

/// The source pixels that make one output pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taps<'a, W = i32> {
    /// The first source pixel.
    pub(super) start: usize,
    /// One coefficient for each source pixel from `start` on; never empty.
    pub(super) weights: &'a [W],
}

impl<W> Taps<'_, W> {
    /// The end of the source pixels.
    pub(super) fn end(&self) -> usize {
        self.start + self.weights.len()
    }
}

impl Taps<'_> {
    /// The source pixel when the output pixel is a copy of it.
    pub(super) fn copied(&self) -> Option<usize> {
        (self.weights == [ONE]).then_some(self.start)
    }
}

/// The key of a computed axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AxisKey {
    pub(super) filter: Filter,
    /// The part of the axis that is resized.
    pub(super) span: Span,
    /// Pixels it is resized to.
    pub(super) output: u32,
    /// The first output pixel wanted.
    pub(super) first: u32,
    /// How many output pixels are wanted; at least 1.
    pub(super) count: u32,
    /// Whether the sides of the result add up to no more than [`SMALL_SIDES`].
    pub(super) small: bool,
    /// Whether [`Filter::Nearest`] multiplies the step instead of adding it up, as Pillow does in
    /// mode `I;16` alone.
    pub(super) multiplies: bool,
}

/// Up to here torch finds the pixels of `nearest-exact` with another rounding.
pub(super) const SMALL_SIDES: u64 = 128;

/// A part of an axis of the source, which may begin and end within pixels.
///
/// It is kept relative to its first pixel, so that parts of the same form have the same
/// coefficients wherever they lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    /// How much of the first pixel is left out; 0 to 1.
    pub(super) offset: f64,
    /// Its length in pixels.
    pub(super) length: f64,
    /// Pixels that it touches; no other pixel contributes.
    pub(super) pixels: u32,
}

impl AxisKey {
    /// Whether every output pixel is a copy of the source pixel of the same index.
    pub(super) fn is_identity(&self) -> bool {
        self.span.offset == 0.0 && self.span.length == f64::from(self.output)
    }

    /// The most source pixels that one output pixel depends on, or a few more.
    pub(super) fn most_taps(&self) -> u64 {
        if self.is_identity() || self.filter.copies() {
            return 1;
        }
        let support = Reach::of(self).support;
        u64::from(truncate(2.0 * support).saturating_add(2).min(self.span.pixels))
    }

    /// The most bytes of its coefficients for samples wider than 8 bits.
    pub(super) fn table_bytes(&self) -> u64 {
        let taps = self.most_taps();
        let weight = size_of::<f64>() as u64;
        let bounds = size_of::<(usize, usize)>() as u64;
        u64::from(self.count) * (taps * weight + bounds) + taps * weight
    }

    /// The source pixels that the wanted output pixels depend on, counted from the span's first.
    pub(super) fn reads(&self) -> Range<u32> {
        let last = self.first + (self.count - 1);
        if self.is_identity() {
            return self.first..last + 1;
        }
        if self.filter.copies() {
            let mut pixels = self.span.pixels..0;
            self.copied(|pixel| pixels = pixels.start.min(pixel)..pixel + 1);
            return pixels;
        }
        let reach = Reach::of(self);
        reach.taps(self.first).start..reach.taps(last).end
    }

    /// Calls `take` with the source pixel of every wanted output pixel, for filters that copy.
    pub(super) fn copied(&self, take: impl FnMut(u32)) {
        if let Filter::Tensor(filter) = self.filter {
            tensor::nearest(self, filter).for_each(take);
        } else {
            self.nearest().for_each(take);
        }
    }

    /// The positions of Pillow's `ImagingScaleAffine`, which adds up the step instead of
    /// multiplying, or of its affine transform.
    fn nearest(&self) -> impl Iterator<Item = u32> {
        let Self { span, first, multiplies, .. } = *self;
        let step = span.length / f64::from(self.output);
        let mut sum = span.offset + step * 0.5;
        for _ in 0..if multiplies { 0 } else { first } {
            sum += step;
        }
        (first..first + self.count).map(move |index| {
            let product = step * (f64::from(index) + 0.5) + span.offset;
            let position = if multiplies { product } else { sum };
            sum += step;
            truncate(position).min(span.pixels - 1)
        })
    }
}

/// The reach of an output pixel into the source.
struct Reach {
    offset: f64,
    /// Source pixels per output pixel.
    scale: f64,
    support: f64,
    pixels: f64,
    /// Whether the taps are two or four, whatever the scale.
    plain: bool,
}

impl Reach {
    fn of(key: &AxisKey) -> Self {
        let Span { offset, length, pixels } = key.span;
        let scale = length / f64::from(key.output);
        let plain = matches!(
            key.filter,
            Filter::Tensor(TensorFilter::PlainBilinear | TensorFilter::PlainBicubic)
        );
        let widening = if plain { 1.0 } else { scale.max(1.0) };
        let support = key.filter.support() * widening;
        Self { offset, scale, support, pixels: f64::from(pixels), plain }
    }

    /// The middle of an output pixel, in source pixels.
    fn center(&self, index: u32) -> f64 {
        self.offset + (f64::from(index) + 0.5) * self.scale
    }

    /// The source pixels under the filter of an output pixel.
    fn taps(&self, index: u32) -> Range<u32> {
        if self.plain {
            return self.plain_taps(index).pixels;
        }
        let center = self.center(index);
        let start = truncate(center - self.support + 0.5);
        start..truncate((center + self.support + 0.5).min(self.pixels))
    }
}

/// The coefficients of the wanted output pixels of one axis.
///
/// Source pixels are counted from the first one of [`AxisKey::reads`].
#[derive(Debug, Default)]
pub(super) struct Axis<W = i32> {
    key: Option<AxisKey>,
    /// First source pixel and end of the pixel's part of `weights`.
    bounds: Vec<(usize, usize)>,
    weights: Vec<W>,
    exact: Vec<f64>,
}

impl Axis {
    /// Makes `self` the coefficients of `key`; free when it already is.
    pub(super) fn prepare(&mut self, key: AxisKey) {
        if self.key == Some(key) {
            return;
        }
        if let Filter::Tensor(filter) = key.filter
            && !key.filter.copies()
            && !key.is_identity()
        {
            self.renew(key);
            self.filter_tensor(key, filter);
        } else {
            self.prepare_pil(key);
        }
    }
}

impl Axis<f64> {
    /// Makes `self` the coefficients of `key`, whose filter is Pillow's or copies pixels; free when
    /// it already is.
    pub(super) fn prepare_wide(&mut self, key: AxisKey) {
        if self.key != Some(key) {
            self.prepare_pil(key);
        }
    }
}

impl<W: Weight> Axis<W> {
    fn renew(&mut self, key: AxisKey) {
        self.key = Some(key);
        self.bounds.clear();
        self.weights.clear();
    }

    fn prepare_pil(&mut self, key: AxisKey) {
        self.renew(key);
        if key.is_identity() {
            self.copy_pixels(0..key.count);
            return;
        }
        match key.filter {
            Filter::Nearest => self.copy_nearest(key),
            Filter::Box => self.filter(key, filter::square),
            Filter::Bilinear => self.filter(key, filter::triangle),
            Filter::Hamming => self.filter(key, filter::hamming),
            Filter::Bicubic => self.filter(key, filter::cubic),
            Filter::Lanczos => self.filter(key, filter::lanczos),
            Filter::Tensor(filter) => {
                assert!(key.filter.copies(), "{filter:?} is a filter of 8-bit samples");
                self.copy_nearest(key);
            }
        }
    }

    /// The bytes in use.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let Self { bounds, weights, exact, .. } = self;
        size_of_val(&bounds[..]) + size_of_val(&weights[..]) + size_of_val(&exact[..])
    }

    pub(super) fn key(&self) -> Option<AxisKey> {
        self.key
    }

    pub(super) fn len(&self) -> usize {
        self.bounds.len()
    }

    pub(super) fn taps(&self, index: usize) -> Taps<'_, W> {
        let (start, end) = self.bounds[index];
        let from = index.checked_sub(1).map_or(0, |previous| self.bounds[previous].1);
        Taps { start, weights: &self.weights[from..end] }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Taps<'_, W>> {
        (0..self.len()).map(|index| self.taps(index))
    }

    fn copy_nearest(&mut self, key: AxisKey) {
        let first = key.reads().start;
        key.copied(|pixel| self.copy_pixels(core::iter::once(pixel - first)));
    }

    fn copy_pixels(&mut self, pixels: impl Iterator<Item = u32>) {
        for pixel in pixels {
            self.weights.push(W::ONE);
            self.bounds.push((pixel as usize, self.weights.len()));
        }
    }

    /// `weigh` is the key's filter.
    fn filter(&mut self, key: AxisKey, weigh: impl Fn(f64) -> f64) {
        let reach = Reach::of(&key);
        let narrowing = 1.0 / reach.scale.max(1.0);
        let first = reach.taps(key.first).start;
        for index in key.first..key.first + key.count {
            let center = reach.center(index);
            let taps = reach.taps(index);
            let start = taps.start;
            let distances = taps.map(|pixel| f64::from(pixel) - center + 0.5);
            self.exact.clear();
            self.exact.extend(distances.map(|distance| weigh(distance * narrowing)));
            let sum: f64 = self.exact.iter().sum();
            let divisor = if sum == 0.0 { 1.0 } else { sum };
            self.weights.extend(self.exact.iter().map(|weight| W::of(weight / divisor)));
            self.bounds.push(((start - first) as usize, self.weights.len()));
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
    use super::{Axis, AxisKey, Filter, Span, TensorFilter};

    fn whole(filter: Filter, input: u32, output: u32) -> AxisKey {
        let span = Span { offset: 0.0, length: f64::from(input), pixels: input };
        AxisKey { filter, span, output, first: 0, count: output, small: false, multiplies: false }
    }

    const FILTERS: [Filter; 13] = [
        Filter::Nearest,
        Filter::Box,
        Filter::Bilinear,
        Filter::Hamming,
        Filter::Bicubic,
        Filter::Lanczos,
        Filter::Tensor(TensorFilter::Nearest),
        Filter::Tensor(TensorFilter::NearestExact),
        Filter::Tensor(TensorFilter::Bilinear),
        Filter::Tensor(TensorFilter::Bicubic),
        Filter::Tensor(TensorFilter::Lanczos),
        Filter::Tensor(TensorFilter::PlainBilinear),
        Filter::Tensor(TensorFilter::PlainBicubic),
    ];

    /// The largest number of three signed bytes, which is how AVX-512 multiplies.
    const LARGEST: u32 = 0x7F_7F7F;

    #[test]
    fn every_coefficient_fits_three_signed_bytes() {
        let mut largest = 0;
        for filter in FILTERS {
            for (input, output) in (1..=60).flat_map(|i| (1..=130).map(move |o| (i, o))) {
                let mut axis = Axis::default();
                axis.prepare(whole(filter, input, output));
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
                axis.prepare(whole(filter, input, output));
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
