//! The horizontal pass: rows of interleaved pixels to rows of another width.

use super::axis::{Axis, ROUND};
use super::clip;
use super::program::{Program, SLACK, WIDEST_WINDOW};
use crate::Level;
use crate::vector::{Line, ROWS, dispatch};

/// The horizontal pass of one image.
#[derive(Debug, Default)]
pub(super) struct Horizontal {
    pub(super) axis: Axis,
    program: Program,
    /// Copies of rows that are shorter than a window.
    padded: Vec<u8>,
}

impl Horizontal {
    /// Bytes from one output row to the next.
    pub(super) fn stride(&self, channels: usize) -> usize {
        (self.axis.len() * channels + SLACK).next_multiple_of(size_of::<Line>())
    }

    /// Prepares for rows of `row_bytes`, once the axis is.
    pub(super) fn prepare(&mut self, level: Level, channels: usize, row_bytes: usize) {
        let row_bytes = row_bytes.max(WIDEST_WINDOW);
        dispatch!(
            level,
            scalar => (),
            simd => self.program.prepare(simd, level, &self.axis, channels, row_bytes),
        );
    }

    /// Resamples rows into `out`, each [`Horizontal::stride`] bytes long.
    pub(super) fn narrow(
        &mut self,
        level: Level,
        channels: usize,
        rows: [&[u8]; ROWS],
        out: [&mut [u8]; ROWS],
    ) {
        let short = rows[0].len();
        if short < WIDEST_WINDOW {
            self.padded.resize(ROWS * WIDEST_WINDOW, 0);
            for (padded, row) in self.padded.chunks_exact_mut(WIDEST_WINDOW).zip(rows) {
                padded[..short].copy_from_slice(row);
            }
        }
        let (padded, _) = self.padded.as_chunks::<WIDEST_WINDOW>();
        let rows = match padded {
            [a, b, c, d] if short < WIDEST_WINDOW => [a, b, c, d].map(|row| row.as_slice()),
            _ => rows,
        };
        dispatch!(
            level,
            scalar => for (row, out) in rows.into_iter().zip(out) {
                define(&self.axis, channels, row, out);
            },
            simd => self.program.run(simd, rows, out),
        );
    }
}

/// One row by the definition: every output byte is a rounded sum of products.
fn define(axis: &Axis, channels: usize, src: &[u8], out: &mut [u8]) {
    for (taps, out) in axis.iter().zip(out.chunks_exact_mut(channels)) {
        let src = &src[taps.start * channels..][..taps.weights.len() * channels];
        for (channel, out) in out.iter_mut().enumerate() {
            let samples = src[channel..].iter().step_by(channels);
            let products = samples.zip(taps.weights).map(|(&s, &w)| i32::from(s).wrapping_mul(w));
            *out = clip(products.fold(ROUND, i32::wrapping_add));
        }
    }
}
