//! What a vector level does for the horizontal pass of one axis, laid out once and run for every
//! row: which source bytes go to which lane, and what they are multiplied with.
//!
//! Lanes are consecutive output bytes, so a channel is just another offset.
//! A block is `LANES` output bytes at most and takes as many steps as its longest filter needs; a
//! step multiplies `TAPS` source pixels of every lane.
//! Lanes come in groups that read one window of the row; where the filters of a group are too far
//! apart for a window, the group has fewer outputs.

use super::axis::{Axis, AxisKey, Taps};
use crate::Level;
use crate::vector::{Line, ROWS, Simd, WORDS};
use core::ops::Range;

/// The most groups a level has.
const GROUPS: usize = 2;

/// The widest window of any level: rows must have at least that many bytes.
pub(super) const WIDEST_WINDOW: usize = 64;

/// How far past a row's end the rows in `out` are written.
pub(super) const SLACK: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Where the groups' output begins.
    at: [u32; GROUPS],
    /// The end of its steps.
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProgramKey {
    axis: AxisKey,
    channels: usize,
    row_bytes: usize,
    level: Level,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    key: Option<ProgramKey>,
    blocks: Vec<Block>,
    /// Where the groups' windows begin, of every step.
    windows: Vec<[u32; GROUPS]>,
    /// Positions and coefficients of every step.
    lines: Vec<Line>,
}

/// A group of lanes being laid out.
struct Group {
    /// The output bytes it makes.
    bytes: Range<usize>,
    /// The first of its lanes.
    lane: usize,
    /// The first source byte of any lane's first step.
    source: usize,
}

impl Program {
    /// Makes `self` the program of `axis` for rows of `row_bytes`, at least [`WIDEST_WINDOW`].
    pub(super) fn prepare<S: Simd>(
        &mut self,
        _: S,
        level: Level,
        axis: &Axis,
        channels: usize,
        row_bytes: usize,
    ) {
        let key = axis.key().map(|axis| ProgramKey { axis, channels, row_bytes, level });
        if self.key == key {
            return;
        }
        self.key = key;
        self.blocks.clear();
        self.windows.clear();
        self.lines.clear();
        let end = axis.len() * channels;
        let mut next = 0;
        while next < end {
            let mut block = Block { at: [offset(next), offset(next + S::GROUP)], end: 0 };
            let first_step = self.windows.len();
            for group in 0..S::LANES / S::GROUP {
                if next < end {
                    block.at[group] = offset(next);
                    let group = Group::fit::<S>(axis, channels, next, group * S::GROUP);
                    next = group.bytes.end;
                    self.lay_out::<S>(axis, channels, row_bytes, first_step, &group);
                }
            }
            block.end = self.windows.len();
            self.blocks.push(block);
        }
    }

    /// Writes the steps of one group, from step `first_step` on.
    fn lay_out<S: Simd>(
        &mut self,
        axis: &Axis,
        channels: usize,
        row_bytes: usize,
        first_step: usize,
        group: &Group,
    ) {
        let lines = lines_of_a_step::<S>();
        let first = group.bytes.start / channels;
        let pixels = first..(group.bytes.end - 1) / channels + 1;
        let window =
            |step: usize| (group.source + step * S::TAPS * channels).min(row_bytes - S::WINDOW);
        let longest = pixels.clone().map(|pixel| axis.taps(pixel).weights.len()).max().unwrap_or(0);
        for step in 0..longest.div_ceil(S::TAPS) {
            let step = first_step + step;
            if step == self.windows.len() {
                self.windows.push([0; GROUPS]);
                self.lines.resize(self.lines.len() + lines, Line::default());
            }
            self.windows[step][group.lane / S::GROUP] = offset(window(step - first_step));
        }
        for pixel in pixels {
            let Taps { start, weights } = axis.taps(pixel);
            let whole = pixel * channels..(pixel + 1) * channels;
            let bytes = whole.start.max(group.bytes.start)..whole.end.min(group.bytes.end);
            for (step, weights) in weights.chunks(S::TAPS).enumerate() {
                let mut padded = [0; ROWS];
                padded[..weights.len()].copy_from_slice(weights);
                let parts = S::split(padded);
                let table = &mut self.lines[(first_step + step) * lines..][..lines];
                let source = (start + step * S::TAPS) * channels;
                for byte in bytes.clone() {
                    let lane = group.lane + byte - group.bytes.start;
                    let position = source + (byte - whole.start) - window(step);
                    *word::<S>(table, 0, lane) = S::positions(position, channels);
                    for (part, &value) in parts.iter().take(S::PARTS).enumerate() {
                        *word::<S>(table, part + 1, lane) = value;
                    }
                }
            }
        }
    }

    /// Runs the program on four rows.
    #[inline(always)]
    pub(super) fn run<S: Simd>(&self, simd: S, rows: [&[u8]; ROWS], mut out: [&mut [u8]; ROWS]) {
        // One length for all rows, so that one check of a window serves them all.
        let (row_bytes, out_bytes) = (rows[0].len(), out[0].len());
        let rows = rows.map(|row| &row[..row_bytes]);
        out = out.map(|row| &mut row[..out_bytes]);
        let lines_of_a_step = lines_of_a_step::<S>();
        let mut first = 0;
        for block in &self.blocks {
            let steps = first..block.end;
            first = block.end;
            let lines = &self.lines[steps.start * lines_of_a_step..steps.end * lines_of_a_step];
            let mut sums = simd.row_sums();
            for (&windows, step) in
                self.windows[steps].iter().zip(lines.chunks_exact(lines_of_a_step))
            {
                sums = simd.add_rows(sums, rows, windows, step);
            }
            simd.store_rows(sums, &mut out, block.at);
        }
    }
}

impl Group {
    /// As many output bytes from `start` on as the lanes from `lane` on can make.
    fn fit<S: Simd>(axis: &Axis, channels: usize, start: usize, lane: usize) -> Self {
        let first_tap = |byte: usize| axis.taps(byte / channels).start * channels + byte % channels;
        let (mut source, mut last) = (first_tap(start), first_tap(start));
        let mut end = start + 1;
        while end < (start + S::GROUP).min(axis.len() * channels) {
            // When enlarging, the next pixel's first channel can lie before this one's second.
            let (first, furthest) = (source.min(first_tap(end)), last.max(first_tap(end)));
            if furthest + (S::TAPS - 1) * channels - first >= S::WINDOW {
                break;
            }
            (source, last) = (first, furthest);
            end += 1;
        }
        Self { bytes: start..end, lane, source }
    }
}

/// `bytes` from the start of a row.
fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("`ImageView` has rows of less than 4 GiB")
}

const fn lines_of_a_step<S: Simd>() -> usize {
    (S::LANES * (1 + S::PARTS)).div_ceil(WORDS)
}

/// The word of a lane: plane 0 is the positions, the next ones the parts of the coefficients.
fn word<S: Simd>(table: &mut [Line], plane: usize, lane: usize) -> &mut u32 {
    let word = plane * S::LANES + lane;
    &mut table[word / WORDS].0[word % WORDS]
}
