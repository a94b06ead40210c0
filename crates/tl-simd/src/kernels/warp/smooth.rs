//! Smoothing planes of numbers, for random displacements.

use crate::Level;

/// Sums that are computed at once.
const LANES: usize = 64;

/// A separable Gaussian over planes of `f32`, and memory that it keeps from plane to plane.
///
/// At the edges a plane is reflected without repeating the edge itself, and again at the next edge
/// where it is smaller than the kernel. Sums are fused, first weight first; torch adds up the outer
/// product of the weights, which differs by some roundings.
#[derive(Clone, Debug, Default)]
pub struct Smoother {
    across: Vec<f32>,
    down: Vec<f32>,
    /// A row with what it reflects at both ends, in whole blocks.
    padded: Vec<f32>,
    /// The rows after the horizontal pass, each in whole blocks.
    between: Vec<f32>,
}

impl Smoother {
    /// Bytes that are kept for a plane of this size.
    #[must_use]
    pub const fn bytes(size: (u32, u32)) -> u64 {
        let (width, height) = size;
        (width as u64).next_multiple_of(LANES as u64) * height as u64 * size_of::<f32>() as u64
    }

    /// The weights of the pass over rows and of the pass over columns.
    ///
    /// # Panics
    ///
    /// When a row has an even number of weights.
    pub fn set_weights(&mut self, across: &[f32], down: &[f32]) {
        for (own, weights) in [(&mut self.across, across), (&mut self.down, down)] {
            assert!(weights.len() % 2 == 1, "{} weights, an odd number", weights.len());
            own.clear();
            own.extend_from_slice(weights);
        }
    }

    /// Smooths a plane of this size in place.
    ///
    /// # Panics
    ///
    /// When no weights were set, or `plane` is of another size.
    pub fn run(&mut self, level: Level, plane: &mut [f32], size: (u32, u32)) {
        let width = size.0 as usize;
        let height = size.1 as usize;
        assert!(!self.across.is_empty(), "weights are set first");
        assert_eq!(Some(plane.len()), width.checked_mul(height), "numbers of {width}x{height}");
        if !plane.is_empty() {
            level.vectorize(
                #[inline(always)]
                || self.passes(plane, width, height),
            );
        }
    }

    #[inline(always)]
    fn passes(&mut self, plane: &mut [f32], width: usize, height: usize) {
        let stride = width.next_multiple_of(LANES);
        let margin = self.across.len() / 2;
        self.padded.resize(stride + 2 * margin, 0.0);
        self.between.resize(stride * height, 0.0);
        let rows = plane.chunks_exact(width).zip(self.between.chunks_exact_mut(stride));
        for (row, between) in rows {
            self.padded[margin..][..width].copy_from_slice(row);
            for place in 1..=margin {
                self.padded[margin - place] = row[reflect(place, width)];
                self.padded[margin + width - 1 + place] = row[reflect(width - 1 + place, width)];
            }
            for (block, out) in between.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let places = (block * LANES..).zip(&self.across);
                *out = sum(places.map(
                    #[inline(always)]
                    |(place, weight)| (*weight, &self.padded[place..]),
                ));
            }
        }
        let margin = self.down.len() / 2;
        for (y, row) in plane.chunks_exact_mut(width).enumerate() {
            for (block, out) in row.chunks_mut(LANES).enumerate() {
                let taps = self.down.iter().enumerate().map(
                    #[inline(always)]
                    |(tap, weight)| {
                        let row = reflect((y + tap).abs_diff(margin), height);
                        (*weight, &self.between[row * stride + block * LANES..])
                    },
                );
                out.copy_from_slice(&sum(taps)[..out.len()]);
            }
        }
    }
}

/// The sum of the first numbers of slices, each times its weight.
#[inline(always)]
fn sum<'a>(taps: impl Iterator<Item = (f32, &'a [f32])>) -> [f32; LANES] {
    let mut sums = [0.0; LANES];
    for (weight, values) in taps {
        for (sum, value) in sums.iter_mut().zip(&values[..LANES]) {
            *sum = value.mul_add(weight, *sum);
        }
    }
    sums
}

/// The place, from 0, that `place` is a mirror image of.
#[inline(always)]
const fn reflect(place: usize, count: usize) -> usize {
    if place < count {
        return place;
    }
    if count == 1 {
        return 0;
    }
    let period = 2 * (count - 1);
    let place = place % period;
    if place < count { place } else { period - place }
}
