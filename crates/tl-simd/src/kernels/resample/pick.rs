//! The horizontal pass of filters that copy: every output pixel is a pixel of the row.

use super::axis::AxisKey;
use crate::Level;
use crate::vector::color::ColorSimd;
use crate::vector::dispatch;
use core::ops::Range;

/// Source bytes that one step chooses from.
const WINDOW: usize = 256;

/// The source of a row's pixels, kept while the axis stays the same.
#[derive(Debug, Default)]
pub(super) struct Picker {
    key: Option<(AxisKey, usize, usize, Level)>,
    /// The source pixel of every output pixel.
    columns: Vec<usize>,
    steps: Vec<Step>,
    /// For every output byte of every step, which byte of the step's window it is.
    positions: Vec<u8>,
}

#[derive(Debug)]
struct Step {
    /// The start of the output; the last step can overlap the one before.
    to: usize,
    /// The start of the window.
    from: usize,
}

impl Picker {
    /// Prepares for rows of `row_bytes`, which begin with the first pixel that `axis` reads.
    pub(super) fn prepare(
        &mut self,
        level: Level,
        axis: AxisKey,
        channels: usize,
        row_bytes: usize,
    ) {
        let key = Some((axis, channels, row_bytes, level));
        if self.key == key {
            return;
        }
        self.key = key;
        self.steps.clear();
        self.positions.clear();
        self.columns.clear();
        let first = axis.reads().start;
        axis.copied(|pixel| self.columns.push((pixel - first) as usize));
        let bytes = dispatch!(level, scalar => None, simd => step_bytes(simd));
        let out_bytes = self.columns.len() * channels;
        let last =
            row_bytes.checked_sub(WINDOW).zip(bytes.and_then(|bytes| out_bytes.checked_sub(bytes)));
        let (Some(bytes), Some((last_window, last_step))) = (bytes, last) else { return };
        for to in (0..out_bytes).step_by(bytes).map(|to| to.min(last_step)) {
            let from = (self.columns[to / channels] * channels).min(last_window);
            if !self.lay_out(channels, from, to..to + bytes) {
                self.steps.clear();
                return;
            }
            self.steps.push(Step { to, from });
        }
    }

    /// Whether a window has the bytes of all of a step's output.
    fn lay_out(&mut self, channels: usize, from: usize, out: Range<usize>) -> bool {
        let columns = &self.columns;
        let source = |byte: usize| columns[byte / channels] * channels + byte % channels;
        let wanted = self.positions.len() + out.len();
        self.positions.extend(out.map_while(|byte| u8::try_from(source(byte) - from).ok()));
        self.positions.len() == wanted
    }

    /// Writes one row.
    pub(super) fn run(&self, level: Level, channels: usize, row: &[u8], out: &mut [u8]) {
        if self.steps.is_empty() {
            return match channels {
                1 => self.define::<1>(row, out),
                3 => self.define::<3>(row, out),
                _ => self.define::<4>(row, out),
            };
        }
        dispatch!(level, scalar => (), simd => self.look_up(simd, row, out));
    }

    fn define<const CHANNELS: usize>(&self, row: &[u8], out: &mut [u8]) {
        let pixels = row.as_chunks::<CHANNELS>().0;
        for (&column, out) in self.columns.iter().zip(out.as_chunks_mut::<CHANNELS>().0) {
            *out = pixels[column];
        }
    }

    /// A window is a table, and the positions are looked up in it.
    #[inline(always)]
    fn look_up<S: ColorSimd>(&self, simd: S, row: &[u8], out: &mut [u8]) {
        for (step, positions) in self.steps.iter().zip(self.positions.chunks_exact(S::PIXELS)) {
            if let Some(window) = row[step.from..].first_chunk::<WINDOW>() {
                let picked = simd.lookup(&simd.table(window), simd.load_bytes(positions));
                simd.store_bytes(picked, &mut out[step.to..][..S::PIXELS]);
            }
        }
    }
}

/// Bytes that one step makes, where looking up in ever new tables is fast.
#[inline(always)]
fn step_bytes<S: ColorSimd>(_: S) -> Option<usize> {
    S::CHEAP_TABLES.then_some(S::PIXELS)
}
