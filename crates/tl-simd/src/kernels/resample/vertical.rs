//! The vertical pass: several rows to one.

use super::axis::ROUND;
use super::clip;
use crate::Level;
use crate::vector::{ROWS, Rows, Simd, dispatch};

/// The rows of one sum and their coefficients; the memory is reused.
#[derive(Debug, Default)]
pub(super) struct Column {
    /// The offset of each row, and the last one again up to a multiple of [`ROWS`].
    offsets: Vec<usize>,
    weights: Vec<i32>,
    /// The coefficients as the level multiplies them.
    parts: Vec<[u32; ROWS]>,
}

impl Column {
    /// Weights the rows that begin at `offsets`, one coefficient each, and adds them up to `out`.
    ///
    /// Each row is `out.len()` bytes of `data`.
    pub(super) fn combine(
        &mut self,
        level: Level,
        data: &[u8],
        offsets: impl Iterator<Item = usize>,
        weights: &[i32],
        out: &mut [u8],
    ) {
        self.offsets.clear();
        self.offsets.extend(offsets.take(weights.len()));
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        dispatch!(level, scalar => self.define(data, out), simd => self.run(simd, data, out));
    }

    fn define(&self, data: &[u8], out: &mut [u8]) {
        for (column, out) in out.iter_mut().enumerate() {
            let samples = self.offsets.iter().map(|offset| data[offset + column]);
            let products = samples.zip(&self.weights).map(|(s, &w)| i32::from(s).wrapping_mul(w));
            *out = clip(products.fold(ROUND, i32::wrapping_add));
        }
    }

    #[inline(always)]
    fn run<S: Simd>(&mut self, simd: S, data: &[u8], out: &mut [u8]) {
        let Some(last) = out.len().checked_sub(S::COLUMNS) else {
            return self.define(data, out);
        };
        let padded = self.weights.len().next_multiple_of(ROWS);
        self.weights.resize(padded, 0);
        self.offsets.resize(padded, self.offsets[0]);
        let (weights, _) = self.weights.as_chunks::<ROWS>();
        self.parts.clear();
        self.parts.extend(weights.iter().map(|&weights| S::split(weights)));
        let rows = Rows::new(data, self.offsets.as_chunks::<ROWS>().0, out.len());
        let mut start = 0;
        loop {
            let mut sums = simd.column_sums();
            for (group, parts) in self.parts.iter().enumerate() {
                sums = simd.add_columns(sums, &rows, group, start, parts);
            }
            simd.store_columns(sums, &mut out[start..start + S::COLUMNS]);
            if start == last {
                return;
            }
            // The last step overlaps the one before when the row is not a multiple of a step.
            start = (start + S::COLUMNS).min(last);
        }
    }
}
