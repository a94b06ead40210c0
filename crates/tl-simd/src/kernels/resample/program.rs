//! The program of a vector level for the horizontal pass of one axis, laid out once and run for
//! every row: which source bytes go to which lane, and the weights they are multiplied with.
//!
//! Lanes are consecutive output bytes, so a channel is just another offset.
//! A block is `LANES` output bytes at most and takes as many steps as its longest filter needs; a
//! step multiplies `TAPS` source pixels of every lane.
//! Lanes come in groups that read one window of the row; where the filters of a group are too far
//! apart for a window, the group has fewer outputs.

use super::axis::{Axis, AxisKey, Taps};
use crate::Level;
use crate::vector::{Line, ROWS, Simd, WORDS};

/// The most groups a level has.
const GROUPS: usize = 2;

/// The widest window of any level: rows must have at least that many bytes.
pub(super) const WIDEST_WINDOW: usize = 64;

/// The number of pixels past a row's end that rows in `out` are written.
pub(super) const SLACK: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The starts of the groups' output.
    at: [u32; GROUPS],
    /// The end of its steps.
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The starts of the groups' windows, of every step.
    windows: Vec<[u32; GROUPS]>,
    /// Positions and coefficients of every step.
    lines: Vec<Line>,
}

/// An output byte.
#[derive(Clone, Copy)]
struct Place {
    pixel: usize,
    channel: usize,
}

/// The values that do not change while a program is laid out.
struct Plan<'a> {
    axis: &'a Axis,
    channels: usize,
    /// Bytes of a source row.
    row_bytes: usize,
}

/// A group of lanes.
struct Group {
    index: usize,
    first: Place,
    /// How many consecutive output bytes it makes.
    lanes: usize,
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
        let plan = Plan { axis, channels, row_bytes };
        let mut next = Place { pixel: 0, channel: 0 };
        let mut byte = 0;
        while next.pixel < axis.len() {
            let mut block = Block { at: [offset(byte), offset(byte + S::GROUP)], end: 0 };
            let first_step = self.windows.len();
            for index in 0..S::LANES / S::GROUP {
                if next.pixel < axis.len() {
                    block.at[index] = offset(byte);
                    let group = plan.group::<S>(next, index);
                    next = self.lay_out::<S>(&plan, first_step, &group);
                    byte += group.lanes;
                }
            }
            block.end = self.windows.len();
            self.blocks.push(block);
        }
    }

    /// Writes the steps of one group, from step `first_step` on, and returns what comes after it.
    fn lay_out<S: Simd>(&mut self, plan: &Plan<'_>, first_step: usize, group: &Group) -> Place {
        let lines_of_a_step = lines_of_a_step::<S>();
        let mut place = group.first;
        let mut lane = 0;
        while lane < group.lanes {
            let Taps { start, weights } = plan.axis.taps(place.pixel);
            let lanes = (plan.channels - place.channel).min(group.lanes - lane);
            for (step, weights) in weights.chunks(S::TAPS).enumerate() {
                let window = plan.window::<S>(group, step);
                let step_index = first_step + step;
                if step_index == self.windows.len() {
                    self.windows.push([0; GROUPS]);
                    self.lines.resize(self.lines.len() + lines_of_a_step, Line::default());
                }
                self.windows[step_index][group.index] = offset(window);
                let mut padded = [0; ROWS];
                padded[..weights.len()].copy_from_slice(weights);
                let parts = S::split(padded);
                let table = &mut self.lines[step_index * lines_of_a_step..][..lines_of_a_step];
                let source = (start + step * S::TAPS) * plan.channels + place.channel - window;
                for index in 0..lanes {
                    let lane = group.index * S::GROUP + lane + index;
                    *word::<S>(table, 0, lane) = S::positions(source + index, plan.channels);
                    for (plane, &part) in (1..=S::PARTS).zip(&parts) {
                        *word::<S>(table, plane, lane) = part;
                    }
                }
            }
            lane += lanes;
            place.channel += lanes;
            if place.channel == plan.channels {
                place = Place { pixel: place.pixel + 1, channel: 0 };
            }
        }
        place
    }

    /// Runs the program on four rows.
    #[inline(always)]
    pub(super) fn run<S: Simd>(&self, simd: S, rows: [&[u8]; ROWS], mut out: [&mut [u8]; ROWS]) {
        // One length for all rows, so that one check of a window serves them all.
        let row_bytes = rows[0].len();
        let out_bytes = out[0].len();
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

impl Plan<'_> {
    /// As many output bytes from `first` on as the lanes of group `index` can make.
    fn group<S: Simd>(&self, first: Place, index: usize) -> Group {
        let first_tap =
            |place: Place| self.axis.taps(place.pixel).start * self.channels + place.channel;
        let mut source = first_tap(first);
        let mut last = first_tap(first);
        let mut place = first;
        let mut lanes = 0;
        while lanes < S::GROUP && place.pixel < self.axis.len() {
            // When enlarging, the next pixel's first channel can lie before this one's second.
            let lowest = source.min(first_tap(place));
            let highest = last.max(first_tap(place));
            if highest + (S::TAPS - 1) * self.channels - lowest >= S::WINDOW {
                break;
            }
            (source, last) = (lowest, highest);
            lanes += 1;
            place.channel += 1;
            if place.channel == self.channels {
                place = Place { pixel: place.pixel + 1, channel: 0 };
            }
        }
        Group { index, first, lanes, source }
    }

    /// The start of a group's window in a step: it never leaves the row.
    fn window<S: Simd>(&self, group: &Group, step: usize) -> usize {
        (group.source + step * S::TAPS * self.channels).min(self.row_bytes - S::WINDOW)
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
