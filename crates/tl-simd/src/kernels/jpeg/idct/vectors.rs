//! The inverse transforms of several blocks at once.
//!
//! The widths are those of the definition, so that both agree whatever the coefficients, except for
//! two places where libjpeg-turbo does not saturate: it shifts a block without coefficients below
//! the first row as it is, and its 2x2 transform keeps one word wide between the passes.
//! That matters only to numbers that no photograph has, and the definition transforms their blocks.

use super::weights::{EVEN_4, EVEN_8, ODD_2, ODD_4, ODD_8, SHARED_8};
use super::{CONST_BITS, SHIFTS_2, SHIFTS_4, SHIFTS_8, definition};
use crate::kernels::interleave::starts;
use crate::kernels::jpeg::{Block, SIDE, Scale};
use crate::vector::jpeg::{JpegSimd, Rows8};

/// Samples in the largest group: four blocks of 8x8, as many of 4x4 as give that width.
const MOST_SAMPLES: usize = 4 * SIDE * SIDE;

/// The values that all groups of a run share.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) quantizer: &'a [u16; SIDE * SIDE],
    pub(super) stride: usize,
}

/// See [`super::idct`]; the blocks are not cleared.
#[inline(always)]
pub(super) fn idct<S: JpegSimd>(
    simd: S,
    scale: Scale,
    run: Run<'_>,
    blocks: &[Block],
    out: &mut [u8],
) {
    match scale {
        Scale::FULL => groups::<S, 8, 4>(simd, run, blocks, out),
        Scale::HALF => groups::<S, 4, 8>(simd, run, blocks, out),
        Scale::QUARTER => groups::<S, 2, 16>(simd, run, blocks, out),
        _ => definition::idct(scale, run.quantizer, blocks, out, run.stride),
    }
}

/// The blocks that give a full second pass.
const fn group<S: JpegSimd>(points: usize) -> usize {
    S::BLOCKS * sets(points)
}

/// First passes, with a block in each 128 bits, that give a full second pass.
const fn sets(points: usize) -> usize {
    SIDE / points
}

/// The last group overlaps the one before when the run is not a multiple of a group, which has at
/// most `MOST` blocks.
#[inline(always)]
fn groups<S: JpegSimd, const POINTS: usize, const MOST: usize>(
    simd: S,
    run: Run<'_>,
    blocks: &[Block],
    out: &mut [u8],
) {
    let group = group::<S>(POINTS);
    let Some(starts) = starts(blocks.len(), group) else {
        return short_run::<S, POINTS, MOST>(simd, run, blocks, out);
    };
    for start in starts {
        let blocks = &blocks[start..start + group];
        transform::<S, POINTS>(simd, run, blocks, &mut out[start * POINTS..]);
    }
}

/// A run of less than a group, as if there were more.
#[inline(always)]
fn short_run<S: JpegSimd, const POINTS: usize, const MOST: usize>(
    simd: S,
    run: Run<'_>,
    blocks: &[Block],
    out: &mut [u8],
) {
    let group = group::<S>(POINTS);
    let mut padded = [Block::ZERO; MOST];
    for (padded, block) in padded.iter_mut().zip(blocks) {
        *padded = *block;
    }
    let mut samples = [0; MOST_SAMPLES];
    let stride = group * POINTS;
    transform::<S, POINTS>(simd, Run { stride, ..run }, &padded[..group], &mut samples);
    for (row, out) in samples.chunks_exact(stride).zip(out.chunks_mut(run.stride)).take(POINTS) {
        let (row, _) = row.as_chunks::<POINTS>();
        let (out, _) = out.as_chunks_mut::<POINTS>();
        for (out, samples) in out.iter_mut().zip(row).take(blocks.len()) {
            *out = *samples;
        }
    }
}

/// A group of blocks.
#[inline(always)]
fn transform<S: JpegSimd, const POINTS: usize>(
    simd: S,
    run: Run<'_>,
    blocks: &[Block],
    out: &mut [u8],
) {
    let (scale, wide) = match POINTS {
        8 => (Scale::FULL, full(simd, run, blocks, out)),
        4 => (Scale::HALF, half(simd, run, blocks, out)),
        _ => (Scale::QUARTER, quarter(simd, run, blocks, out)),
    };
    if wide {
        definition::idct(scale, run.quantizer, blocks, out, run.stride);
    }
}

/// 8x8 samples; whether a number was too large for this.
#[inline(always)]
fn full<S: JpegSimd>(simd: S, run: Run<'_>, blocks: &[Block], out: &mut [u8]) -> bool {
    let words = simd.dequantize(blocks, 1, run.quantizer);
    let columns = transpose(simd, pass_8::<S, { SHIFTS_8[0] }>(simd, words));
    let [a, b, c, d, e, f, g, h] = pass_8::<S, { SHIFTS_8[1] }>(simd, columns);
    let left = rows_of_4(simd, [a, b, c, d]);
    let right = rows_of_4(simd, [e, f, g, h]);
    for (half, (left, right)) in left.into_iter().zip(right).enumerate() {
        let rows = simd.zip_pairs(left, right);
        store(simd, rows, &mut out[half * 4 * run.stride..], run.stride);
    }
    simd.any_wide(words[0])
}

/// 4x4 samples; whether a number was too large for this.
#[inline(always)]
fn half<S: JpegSimd>(simd: S, run: Run<'_>, blocks: &[Block], out: &mut [u8]) -> bool {
    const SETS: usize = sets(4);
    let mut between = [simd.splat_word(0); SIDE];
    let mut wide = false;
    for set in 0..SETS {
        let words = simd.dequantize(&blocks[set..], SETS, run.quantizer);
        wide |= simd.any_wide(words[0]);
        let rows = pass_4::<S, { SHIFTS_4[0] }>(simd, words);
        for (row, words) in rows.into_iter().enumerate() {
            between[row * SETS + set] = words;
        }
    }
    let columns = transpose(simd, between);
    let rows = rows_of_4(simd, pass_4::<S, { SHIFTS_4[1] }>(simd, columns));
    store(simd, rows, out, run.stride);
    wide
}

/// 2x2 samples; whether a number was too large for this.
#[inline(always)]
fn quarter<S: JpegSimd>(simd: S, run: Run<'_>, blocks: &[Block], out: &mut [u8]) -> bool {
    const SETS: usize = sets(2);
    let mut between = [simd.splat_word(0); SIDE];
    for set in 0..SETS {
        let words = simd.dequantize(&blocks[set..], SETS, run.quantizer);
        let rows = pass_2::<S, { SHIFTS_2[0] }>(simd, words);
        for (row, words) in rows.into_iter().enumerate() {
            between[row * SETS + set] = words;
        }
    }
    let columns = transpose(simd, between);
    let [a, b] = pass_2::<S, { SHIFTS_2[1] }>(simd, columns);
    let [rows, _] = simd.zip_bytes(simd.pack_centred(a, b), simd.pack_centred(b, a));
    store(simd, [simd.to_words(rows)], out, run.stride);
    simd.any_wide(columns[0])
}

/// Rows and columns of each block exchanged.
#[inline(always)]
fn transpose<S: JpegSimd>(simd: S, mut rows: Rows8<S>) -> Rows8<S> {
    // Each round moves one bit of the row's number to the lane's, and one back.
    for _ in 0..SIDE.ilog2() {
        let [a, b, c, d, e, f, g, h] = rows;
        let [[a, b], [c, d], [e, f], [g, h]] = [
            simd.zip_words(a, e),
            simd.zip_words(b, f),
            simd.zip_words(c, g),
            simd.zip_words(d, h),
        ];
        rows = [a, b, c, d, e, f, g, h];
    }
    rows
}

/// Samples of four columns as rows of four, the first four rows and the last.
#[inline(always)]
fn rows_of_4<S: JpegSimd>(simd: S, [a, b, c, d]: [S::Words; 4]) -> [S::Words; 2] {
    let [ab, cd] = simd.zip_bytes(simd.pack_centred(a, c), simd.pack_centred(b, d));
    simd.zip_words(simd.to_words(ab), simd.to_words(cd))
}

/// Stores rows of eight samples, two of them in each part of `pairs`.
#[inline(always)]
fn store<S: JpegSimd, const N: usize>(
    simd: S,
    pairs: [S::Words; N],
    out: &mut [u8],
    stride: usize,
) {
    for (i, pair) in pairs.into_iter().enumerate() {
        let (upper, lower) = out[2 * i * stride..].split_at_mut(stride);
        simd.store_halves(simd.to_bytes(pair), &mut upper[..S::WORDS], &mut lower[..S::WORDS]);
    }
}

/// Eight points, `SHIFT` bits smaller; as in the definition.
#[inline(always)]
fn pass_8<S: JpegSimd, const SHIFT: i32>(simd: S, words: Rows8<S>) -> Rows8<S> {
    const ONE: i16 = 1 << CONST_BITS;
    let [w0, w1, w2, w3, w4, w5, w6, w7] = words;
    let zero = simd.splat_sum(0);
    let round = simd.splat_sum(1 << (SHIFT - 1));
    let sum = simd.add(w0, w4);
    let difference = simd.sub(w0, w4);
    let sum_32 = simd.rotate(round, sum, difference, [ONE, 0]);
    let difference_32 = simd.rotate(round, sum, difference, [0, ONE]);
    let outer = simd.rotate(zero, w2, w6, EVEN_8[0]);
    let inner = simd.rotate(zero, w2, w6, EVEN_8[1]);
    let even = [
        simd.add_sums(sum_32, outer),
        simd.add_sums(difference_32, inner),
        simd.sub_sums(difference_32, inner),
        simd.sub_sums(sum_32, outer),
    ];
    let z3 = simd.add(w7, w3);
    let z4 = simd.add(w5, w1);
    let third = simd.rotate(zero, z3, z4, SHARED_8[0]);
    let fourth = simd.rotate(zero, z3, z4, SHARED_8[1]);
    let odd = [
        simd.rotate(fourth, w7, w1, ODD_8[0]),
        simd.rotate(third, w5, w3, ODD_8[1]),
        simd.rotate(fourth, w5, w3, ODD_8[2]),
        simd.rotate(third, w7, w1, ODD_8[3]),
    ];
    [
        sum_narrowed::<S, SHIFT>(simd, even[0], odd[0]),
        sum_narrowed::<S, SHIFT>(simd, even[1], odd[1]),
        sum_narrowed::<S, SHIFT>(simd, even[2], odd[2]),
        sum_narrowed::<S, SHIFT>(simd, even[3], odd[3]),
        difference_narrowed::<S, SHIFT>(simd, even[3], odd[3]),
        difference_narrowed::<S, SHIFT>(simd, even[2], odd[2]),
        difference_narrowed::<S, SHIFT>(simd, even[1], odd[1]),
        difference_narrowed::<S, SHIFT>(simd, even[0], odd[0]),
    ]
}

/// Four points, `SHIFT` bits smaller; as in the definition.
#[inline(always)]
fn pass_4<S: JpegSimd, const SHIFT: i32>(simd: S, words: Rows8<S>) -> [S::Words; 4] {
    const ONE: i16 = 1 << (CONST_BITS + 1);
    let [w0, w1, w2, w3, _, w5, w6, w7] = words;
    let zero = simd.splat_sum(0);
    let round = simd.splat_sum(1 << (SHIFT - 1));
    let first = simd.rotate(round, w0, w0, [ONE, 0]);
    let second = simd.rotate(zero, w2, w6, EVEN_4);
    let even = [simd.add_sums(first, second), simd.sub_sums(first, second)];
    let odd = [
        simd.rotate(simd.rotate(zero, w1, w3, ODD_4[0][0]), w5, w7, ODD_4[0][1]),
        simd.rotate(simd.rotate(zero, w1, w3, ODD_4[1][0]), w5, w7, ODD_4[1][1]),
    ];
    [
        sum_narrowed::<S, SHIFT>(simd, even[0], odd[0]),
        sum_narrowed::<S, SHIFT>(simd, even[1], odd[1]),
        difference_narrowed::<S, SHIFT>(simd, even[1], odd[1]),
        difference_narrowed::<S, SHIFT>(simd, even[0], odd[0]),
    ]
}

/// Two points, `SHIFT` bits smaller; as in the definition.
#[inline(always)]
fn pass_2<S: JpegSimd, const SHIFT: i32>(simd: S, words: Rows8<S>) -> [S::Words; 2] {
    /// Twice this is one, which would be too large for a weight.
    const HALF: i16 = 1 << (CONST_BITS + 1);
    let [w0, w1, _, w3, _, w5, _, w7] = words;
    let zero = simd.splat_sum(0);
    let round = simd.splat_sum(1 << (SHIFT - 1));
    let even = simd.rotate(round, w0, w0, [HALF, HALF]);
    let odd = simd.rotate(simd.rotate(zero, w1, w3, ODD_2[0]), w5, w7, ODD_2[1]);
    [sum_narrowed::<S, SHIFT>(simd, even, odd), difference_narrowed::<S, SHIFT>(simd, even, odd)]
}

#[inline(always)]
fn sum_narrowed<S: JpegSimd, const SHIFT: i32>(simd: S, a: S::Sums, b: S::Sums) -> S::Words {
    simd.narrow::<SHIFT>(simd.add_sums(a, b))
}

#[inline(always)]
fn difference_narrowed<S: JpegSimd, const SHIFT: i32>(simd: S, a: S::Sums, b: S::Sums) -> S::Words {
    simd.narrow::<SHIFT>(simd.sub_sums(a, b))
}
