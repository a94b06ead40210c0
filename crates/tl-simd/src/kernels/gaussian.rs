//! Gaussian blur of RGB images, bit for bit torchvision's `gaussian_blur` on `uint8`.
//!
//! torchvision converts to `f32`, reflects the image at its edges, convolves with the outer product
//! of two rows of weights and rounds half to even. oneDNN, which does that for torch, adds the
//! products one after the other, row by row, each rounded once together with its addition: that
//! chain is the definition here.
//! It takes as many steps as the kernel has pixels, 529 for 23x23. A separable sum takes 46, and
//! can only give another byte where it falls closer to half way between two integers than the
//! rounding errors of both sums together. The fast sum therefore decides where it is certain, and
//! the chain is computed for the rest: the bits are the same at every level.

mod arithmetic;
mod bound;
mod weights;

use crate::Level;
use crate::vector::color::ColorSimd;
use crate::vector::{RGB, dispatch};
use arithmetic::{Arithmetic, Fused, Plain};
use bound::{Bound, trim};
pub use weights::weights;
use weights::weights_into;

/// Rows that one vertical pass makes.
const ROWS: usize = 2;
/// Samples in a vector of the chain, and vectors that are computed at once to hide its latency.
const EXACT: usize = 16;
const CHAINS: usize = 4;

/// Added to a number from 0 to 2^22, rounds it to an integer that is in the low bits then.
const ROUNDER: f32 = 12_582_912.0;

/// A blur: its weights, and memory that it keeps from image to image.
#[derive(Clone, Debug, Default)]
pub struct GaussianBlur {
    /// Columns and rows, and their deviations, that the weights are for.
    kernel: Option<[(usize, f64); 2]>,
    across: Vec<f32>,
    down: Vec<f32>,
    /// The outer product of the weights, row by row.
    products: Vec<f32>,
    /// The weights that the fast sum takes, and how many there are on each side of the middle.
    fast_across: Vec<f32>,
    fast_down: Vec<f32>,
    bound: Bound,
    /// Rows as floats, reflected at both ends; a row of the image has the slot of its number modulo
    /// the number of slots.
    padded: Vec<f32>,
    /// The same rows, weighted horizontally.
    filtered: Vec<f32>,
    shape: Shape,
}

/// The sizes of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    width: usize,
    height: usize,
    slots: usize,
    /// Floats from one padded row to the next, and from one filtered row to the next.
    padded_stride: usize,
    filtered_stride: usize,
}

impl GaussianBlur {
    /// Bytes of the rows that are kept for a kernel of this many columns and rows and an image of
    /// `width` pixels, at any level.
    #[must_use]
    pub const fn bytes(kernel: (usize, usize), width: u32) -> u64 {
        let (columns, rows) = kernel;
        let row = (width as u64 * RGB as u64).next_multiple_of(4 * EXACT as u64);
        let padded = row + (columns as u64 - 1) * RGB as u64;
        (rows + ROWS - 1) as u64 * (padded + row) * size_of::<f32>() as u64
    }

    /// Takes the [`weights`] of a kernel of this many columns and rows, with a deviation for each.
    ///
    /// # Panics
    ///
    /// As [`weights`].
    pub fn set(&mut self, kernel: (usize, usize), sigma: (f64, f64)) {
        let (columns, rows) = kernel;
        let (across, down) = sigma;
        let wanted = Some([(columns, across), (rows, down)]);
        if self.kernel == wanted {
            return;
        }
        self.kernel = None;
        weights_into(columns, across, &mut self.across);
        weights_into(rows, down, &mut self.down);
        let across = &self.across;
        let down = &self.down;
        self.products.clear();
        self.products.extend(down.iter().flat_map(|down| across.iter().map(move |w| down * w)));
        let dropped = trim(across, &mut self.fast_across) + trim(down, &mut self.fast_down);
        let fast_taps = self.fast_across.len() + self.fast_down.len();
        self.bound = Bound::new(&self.products, fast_taps, dropped);
        self.kernel = wanted;
    }

    /// Gives back memory for rows that is more than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        for rows in [&mut self.padded, &mut self.filtered] {
            if rows.capacity() * size_of::<f32>() > bytes {
                *rows = Vec::new();
            }
        }
    }

    /// Blurs an image of interleaved RGB samples in place.
    ///
    /// At the edges the image is reflected without repeating the edge itself, and again at the next
    /// edge where it is smaller than the kernel; torch refuses such images.
    ///
    /// # Panics
    ///
    /// When no kernel was set, or `image` does not hold `width * height` pixels.
    pub fn run(&mut self, level: Level, image: &mut [u8], width: usize, height: usize) {
        assert!(self.kernel.is_some(), "a kernel is set first");
        let samples = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(RGB));
        assert_eq!(Some(image.len()), samples, "samples of {width}x{height} pixels");
        if image.is_empty() {
            return;
        }
        dispatch!(
            level,
            scalar => self.blur::<1, Plain>(Plain, image, width, height),
            simd => self.vectors(simd, image, width, height),
        );
    }

    #[inline(always)]
    fn vectors<S: ColorSimd>(&mut self, simd: S, image: &mut [u8], width: usize, height: usize) {
        // So many blocks for each of the rows leave registers for what they are multiplied with.
        match S::FLOATS {
            16 => self.blur::<4, Fused<S, 1>>(Fused(simd), image, width, height),
            8 => self.blur::<2, Fused<S, 2>>(Fused(simd), image, width, height),
            _ => self.blur::<2, Fused<S, 4>>(Fused(simd), image, width, height),
        }
    }

    #[inline(always)]
    fn blur<const BLOCKS: usize, A: Arithmetic>(
        &mut self,
        by: A,
        image: &mut [u8],
        width: usize,
        height: usize,
    ) {
        self.prepare(BLOCKS * EXACT, width, height);
        let row_len = width * RGB;
        let below = self.down.len() / 2;
        let mut loaded = 0;
        let mut pending = Pending::default();
        for top in (0..height).step_by(ROWS) {
            let need = height.min(top + ROWS + below);
            for y in loaded..need {
                self.load::<BLOCKS, A>(by, y, &image[y * row_len..][..row_len]);
            }
            loaded = need;
            let rows = ROWS.min(height - top);
            let out = &mut image[top * row_len..][..rows * row_len];
            self.vertical::<BLOCKS, A>(by, top, out, &mut pending);
        }
    }

    /// Makes room for the rows of an image, in steps of `lanes` samples.
    fn prepare(&mut self, lanes: usize, width: usize, height: usize) {
        let filtered_stride = (width * RGB).next_multiple_of(lanes);
        let padded_stride = filtered_stride + (self.across.len() - 1) * RGB;
        let slots = self.down.len() + ROWS - 1;
        self.shape = Shape { width, height, slots, padded_stride, filtered_stride };
        let padded = slots * padded_stride;
        let filtered = slots * filtered_stride;
        if self.padded.len() < padded {
            self.padded.resize(padded, 0.0);
        }
        if self.filtered.len() < filtered {
            self.filtered.resize(filtered, 0.0);
        }
    }

    /// Puts row `y` into its slot and weights it horizontally.
    #[inline(always)]
    fn load<const BLOCKS: usize, A: Arithmetic>(&mut self, by: A, y: usize, row: &[u8]) {
        let Shape { width, slots, padded_stride, filtered_stride, .. } = self.shape;
        let slot = y % slots;
        let padded = &mut self.padded[slot * padded_stride..][..padded_stride];
        let beside = self.across.len() / 2;
        let (left, rest) = padded.split_at_mut(beside * RGB);
        let (middle, right) = rest.split_at_mut(row.len());
        for (float, &sample) in middle.iter_mut().zip(row) {
            *float = f32::from(sample);
        }
        for (distance, pixel) in (1..=beside).zip(left.chunks_exact_mut(RGB).rev()) {
            let source = reflect(distance, width);
            pixel.copy_from_slice(&middle[source * RGB..][..RGB]);
        }
        for (distance, pixel) in (0..beside).zip(right.chunks_exact_mut(RGB)) {
            let source = reflect(width + distance, width);
            pixel.copy_from_slice(&middle[source * RGB..][..RGB]);
        }
        let filtered = &mut self.filtered[slot * filtered_stride..][..filtered_stride];
        let skipped = (self.across.len() - self.fast_across.len()) / 2;
        let steps = filtered.as_chunks_mut::<EXACT>().0.as_chunks_mut::<BLOCKS>().0;
        for (start, step) in (skipped * RGB..).step_by(BLOCKS * EXACT).zip(steps) {
            let mut sums = [by.zeros(); BLOCKS];
            for (place, &weight) in (start..).step_by(RGB).zip(&self.fast_across) {
                let weight = by.weight(weight);
                let samples = lanes::<BLOCKS>(&padded[place..]);
                for (sums, samples) in sums.iter_mut().zip(samples) {
                    *sums = by.roughly(by.load(samples), weight, *sums);
                }
            }
            for (block, sums) in step.iter_mut().zip(sums) {
                by.store(sums, block);
            }
        }
    }

    /// Makes the rows from `top` on, as many as `out` has.
    #[inline(always)]
    fn vertical<const BLOCKS: usize, A: Arithmetic>(
        &self,
        by: A,
        top: usize,
        out: &mut [u8],
        pending: &mut Pending,
    ) {
        let Shape { width, height, slots, filtered_stride, .. } = self.shape;
        let row_len = width * RGB;
        let reach = self.fast_down.len() / 2;
        let taps = self.fast_down.len();
        for start in (0..row_len).step_by(BLOCKS * EXACT) {
            let mut sums = [[by.zeros(); BLOCKS]; ROWS];
            for tap in 0..taps + ROWS - 1 {
                let slot = reflect_from(top + tap, reach, height) % slots;
                let samples = lanes::<BLOCKS>(&self.filtered[slot * filtered_stride + start..]);
                for (row, sums) in sums.iter_mut().enumerate() {
                    let weight = tap.checked_sub(row).and_then(|tap| self.fast_down.get(tap));
                    let weight = by.weight(weight.copied().unwrap_or(0.0));
                    for (sums, samples) in sums.iter_mut().zip(samples) {
                        *sums = by.roughly(by.load(samples), weight, *sums);
                    }
                }
            }
            for (row, (sums, out)) in sums.iter().zip(out.chunks_exact_mut(row_len)).enumerate() {
                for (index, (&sums, out)) in
                    sums.iter().zip(out[start..].chunks_mut(EXACT)).enumerate()
                {
                    let mut rough = [0.0; EXACT];
                    by.store(sums, &mut rough);
                    if self.round(&rough, out) {
                        pending.push(row, start + index * EXACT);
                    }
                }
            }
            if pending.count > 0 && (pending.is_full(BLOCKS) || start + BLOCKS * EXACT >= row_len) {
                self.settle(by, top, out, pending);
            }
        }
    }

    /// Rounds the fast sums; whether one of them is too close to a tie.
    #[inline(always)]
    fn round(&self, sums: &[f32; EXACT], out: &mut [u8]) -> bool {
        let Bound { relative, absolute } = self.bound;
        let mut bytes = [0; EXACT];
        let mut close = 0_u32;
        for (&sum, byte) in sums.iter().zip(&mut bytes) {
            let shifted = sum + ROUNDER;
            let beside = (sum - (shifted - ROUNDER)).abs();
            close |= u32::from(beside + sum * relative > 0.5 - absolute);
            *byte = low_byte(shifted);
        }
        if let Some(out) = out.as_mut_array::<EXACT>() {
            *out = bytes;
        } else {
            let len = out.len();
            out.copy_from_slice(&bytes[..len]);
        }
        close != 0
    }

    /// Computes the chain for the pending blocks.
    #[inline(always)]
    fn settle<A: Arithmetic>(&self, by: A, top: usize, out: &mut [u8], pending: &mut Pending) {
        let Shape { width, height, slots, padded_stride, .. } = self.shape;
        let row_len = width * RGB;
        let (blocks, _) = pending.blocks.split_at_mut(pending.count.next_multiple_of(CHAINS));
        for blocks in blocks.chunks_exact(CHAINS) {
            let mut sums = [by.zeros(); CHAINS];
            for (tap, weights) in self.products.chunks_exact(self.across.len()).enumerate() {
                let mut places = [0; CHAINS];
                for (place, &(row, start)) in places.iter_mut().zip(blocks) {
                    let y = reflect_from(top + row + tap, self.down.len() / 2, height);
                    *place = y % slots * padded_stride + start;
                }
                for (offset, &weight) in (0..).step_by(RGB).zip(weights) {
                    let weight = by.weight(weight);
                    for (sums, place) in sums.iter_mut().zip(places) {
                        let [samples] = lanes::<1>(&self.padded[place + offset..]);
                        *sums = by.exactly(by.load(samples), weight, *sums);
                    }
                }
            }
            for (&sums, &(row, start)) in sums.iter().zip(blocks) {
                let mut exact = [0.0; EXACT];
                by.store(sums, &mut exact);
                let Some(out) = out.get_mut(row * row_len..).and_then(|out| out.get_mut(..row_len))
                else {
                    continue;
                };
                for (byte, sum) in out[start..].iter_mut().zip(exact) {
                    *byte = low_byte(sum + ROUNDER);
                }
            }
        }
        pending.count = 0;
    }
}

/// Blocks of the chain that wait: row and first sample. What is after `count` is computed along.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    blocks: [(usize, usize); 32],
    count: usize,
}

impl Pending {
    #[inline(always)]
    fn push(&mut self, row: usize, start: usize) {
        self.blocks[self.count] = (row, start);
        self.count += 1;
    }

    /// Whether another step of `blocks` in every row might not fit.
    #[inline(always)]
    fn is_full(&self, blocks: usize) -> bool {
        self.count + ROWS * blocks > self.blocks.len()
    }
}

/// The pixel of `0..len` that stands at `index`, 0 or more, of the image reflected at its edges.
#[inline(always)]
fn reflect(index: usize, len: usize) -> usize {
    if index < len {
        return index;
    }
    let period = (2 * (len - 1)).max(1);
    let index = index % period;
    index.min(period - index)
}

/// The same at `index - back`, which may be negative.
#[inline(always)]
fn reflect_from(index: usize, back: usize, len: usize) -> usize {
    reflect(index.abs_diff(back), len)
}

/// The first `BLOCKS` blocks.
#[inline(always)]
fn lanes<const BLOCKS: usize>(floats: &[f32]) -> &[[f32; EXACT]; BLOCKS] {
    let blocks = floats.as_chunks::<EXACT>().0;
    blocks.first_chunk().expect("a row has room after its last block")
}

/// The integer that adding [`ROUNDER`] has rounded to.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the integer")]
fn low_byte(shifted: f32) -> u8 {
    shifted.to_bits() as u8
}
