//! Whole blocks in vectors: the samples of a block are 16 bytes, row by row, until its macroblock
//! is stored.

mod blocks;
mod differences;
mod store;

use super::{ABOVE_IMAGE, Above, LEFT_OF_IMAGE};
use crate::kernels::vp8::{
    BLOCK_LEN, CHROMA, CHROMA_BLOCKS, LUMA, LUMA_BLOCKS, Luma, Macroblock, PlanesMut, Prediction,
    Residues,
};
use crate::vector::vp8::Vp8Simd;
use blocks::predict_blocks;
use differences::{Differences, add_residue, transform};
use std::ops::Range;
use store::{keep, store_chroma, store_luma};

#[inline(always)]
pub(super) fn reconstruct<S: Vp8Simd>(
    simd: S,
    macroblocks: &mut [Macroblock],
    above: &mut Above,
    store: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    let mut left = Left::of_image(simd, above.first_row);
    let mut differences = Differences::NONE;
    for (column, macroblock) in macroblocks.iter_mut().enumerate() {
        let last = &above.rows[column];
        let at = Place { first_row: above.first_row, first_column: column == 0 };
        let differences = if macroblock.residues == Residues::NONE {
            &Differences::NONE
        } else {
            transform(simd, macroblock, &mut differences);
            &differences
        };
        let above_y = simd.load_samples(&last.y);
        let y = match &macroblock.luma {
            Luma::Whole(mode) => {
                let around = around_luma(simd, above_y, &left, at);
                predict_luma(simd, *mode, &around, &left.y, differences)
            }
            Luma::Blocks(modes) => {
                let right = match above.rows.get(column + 1) {
                    Some(next) => {
                        let places = const { repeat_four(0) };
                        simd.look_up(simd.load_samples(&next.y), simd.load_samples(&places))
                    }
                    None => simd.look_up(above_y, simd.splat_sample(15)),
                };
                predict_blocks(simd, modes, above_y, right, &left, differences)
            }
        };
        let above_uv = simd.load_samples(last.uv.as_flattened().try_into().expect("16 samples"));
        let around = around_chroma(simd, above_uv, &left, at);
        let u = predict_chroma(simd, macroblock.chroma, &around[0], &left.u, differences, 16);
        let v = predict_chroma(simd, macroblock.chroma, &around[1], &left.v, differences, 20);
        left = Left {
            y: [y[3], y[7], y[11], y[15]],
            u: [u[1], u[3]],
            v: [v[1], v[3]],
            corner_y: above_y,
            corner_uv: above_uv,
        };
        let last = &mut above.rows[column];
        if store.contains(&column) {
            let column = column - store.start;
            store_luma(simd, &y, last, planes, row, column);
            store_chroma(simd, &u, &v, last, planes, row, column);
        } else {
            keep(simd, &y, &u, &v, last);
        }
        macroblock.clear();
    }
}

/// Whether a macroblock is at the edges of the image.
#[derive(Clone, Copy, Debug)]
struct Place {
    first_row: bool,
    first_column: bool,
}

/// The last columns of the macroblock to the left, and the rows above it.
#[derive(Clone, Copy, Debug)]
struct Left<T> {
    y: [T; 4],
    u: [T; 2],
    v: [T; 2],
    corner_y: T,
    corner_uv: T,
}

impl<T: Copy> Left<T> {
    #[inline(always)]
    fn of_image<S: Vp8Simd<Samples = T>>(simd: S, first_row: bool) -> Self {
        let outside = simd.splat_sample(LEFT_OF_IMAGE);
        let corner = simd.splat_sample(if first_row { ABOVE_IMAGE } else { LEFT_OF_IMAGE });
        Self {
            y: [outside; 4],
            u: [outside; 2],
            v: [outside; 2],
            corner_y: corner,
            corner_uv: corner,
        }
    }
}

/// Four bytes from `first` on, in each row.
const fn repeat_four(first: u8) -> [u8; BLOCK_LEN] {
    let [a, b, c, d] = [first, first + 1, first + 2, first + 3];
    [a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d]
}

/// The last sample of each row.
const LAST_COLUMN: [u8; BLOCK_LEN] = [3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15];
/// A mask of the last sample of each row.
const IN_LAST_COLUMN: [u8; BLOCK_LEN] = [0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255];
const FIRST_HALF: [u8; BLOCK_LEN] =
    [255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
const SECOND_HALF: [u8; BLOCK_LEN] =
    [0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];

/// The samples around a plane of `N` times `N` blocks.
#[derive(Clone, Copy, Debug)]
struct Around<T, const N: usize> {
    /// The samples above each column of blocks, in every row.
    above: [T; N],
    corner: T,
    mean: T,
}

#[inline(always)]
fn around_luma<S: Vp8Simd>(
    simd: S,
    above: S::Samples,
    left: &Left<S::Samples>,
    at: Place,
) -> Around<S::Samples, 4> {
    let mask = simd.load_samples(&IN_LAST_COLUMN);
    let left_sum = simd.sum(simd.both(left.y[0], mask))
        + simd.sum(simd.both(left.y[1], mask))
        + simd.sum(simd.both(left.y[2], mask))
        + simd.sum(simd.both(left.y[3], mask));
    Around {
        above: [
            simd.look_up(above, simd.load_samples(&const { repeat_four(0) })),
            simd.look_up(above, simd.load_samples(&const { repeat_four(4) })),
            simd.look_up(above, simd.load_samples(&const { repeat_four(8) })),
            simd.look_up(above, simd.load_samples(&const { repeat_four(12) })),
        ],
        corner: simd.look_up(left.corner_y, simd.splat_sample(15)),
        mean: simd.splat_sample(mean(simd.sum(above), left_sum, LUMA.ilog2(), at)),
    }
}

/// The mean of the neighbours inside the image, from their sums.
#[inline(always)]
fn mean(above: u16, left: u16, bits: u32, at: Place) -> u8 {
    let [mean, _] = match at {
        Place { first_row: true, first_column: true } => 128,
        Place { first_row: true, first_column: false } => (left + (1 << (bits - 1))) >> bits,
        Place { first_row: false, first_column: true } => (above + (1 << (bits - 1))) >> bits,
        Place { first_row: false, first_column: false } => {
            (above + left + (1 << bits)) >> (bits + 1)
        }
    }
    .to_le_bytes();
    mean
}

/// U and V.
#[inline(always)]
fn around_chroma<S: Vp8Simd>(
    simd: S,
    above: S::Samples,
    left: &Left<S::Samples>,
    at: Place,
) -> [Around<S::Samples, 2>; 2] {
    let mask = simd.load_samples(&IN_LAST_COLUMN);
    let left_u = simd.sum(simd.both(left.u[0], mask)) + simd.sum(simd.both(left.u[1], mask));
    let left_v = simd.sum(simd.both(left.v[0], mask)) + simd.sum(simd.both(left.v[1], mask));
    let above_u = simd.sum(simd.both(above, simd.load_samples(&FIRST_HALF)));
    let above_v = simd.sum(simd.both(above, simd.load_samples(&SECOND_HALF)));
    let bits = CHROMA.ilog2();
    [
        Around {
            above: [
                simd.look_up(above, simd.load_samples(&const { repeat_four(0) })),
                simd.look_up(above, simd.load_samples(&const { repeat_four(4) })),
            ],
            corner: simd.look_up(left.corner_uv, simd.splat_sample(7)),
            mean: simd.splat_sample(mean(above_u, left_u, bits, at)),
        },
        Around {
            above: [
                simd.look_up(above, simd.load_samples(&const { repeat_four(8) })),
                simd.look_up(above, simd.load_samples(&const { repeat_four(12) })),
            ],
            corner: simd.look_up(left.corner_uv, simd.splat_sample(15)),
            mean: simd.splat_sample(mean(above_v, left_v, bits, at)),
        },
    ]
}

/// Masks of what a prediction is made of: `base + (left - corner) - (corner - left)`, saturated,
/// the base being the samples above or the mean.
#[derive(Clone, Copy, Debug)]
struct Parts {
    above: u8,
    mean: u8,
    left: u8,
    corner: u8,
}

impl Parts {
    #[inline(always)]
    const fn of(mode: Prediction) -> Self {
        const NONE: Parts = Parts { above: 0, mean: 0, left: 0, corner: 0 };
        const ALL: [Parts; 4] = [
            Parts { mean: 255, ..NONE },
            Parts { above: 255, ..NONE },
            Parts { left: 255, ..NONE },
            Parts { above: 255, mean: 0, left: 255, corner: 255 },
        ];
        ALL[mode as usize]
    }
}

/// The slopes that the rows of blocks add and subtract.
#[inline(always)]
fn slopes<S: Vp8Simd>(
    simd: S,
    parts: Parts,
    left: S::Samples,
    corner: S::Samples,
) -> [S::Samples; 2] {
    let left = simd.look_up(left, simd.load_samples(&LAST_COLUMN));
    let left = simd.both(left, simd.splat_sample(parts.left));
    [simd.sub_samples(left, corner), simd.sub_samples(corner, left)]
}

/// The samples of a block that is predicted with its plane.
#[inline(always)]
fn sum<S: Vp8Simd>(
    simd: S,
    base: S::Samples,
    slopes: [S::Samples; 2],
    differences: &Differences,
    block: usize,
) -> S::Samples {
    let predicted = simd.sub_samples(simd.add_samples(base, slopes[0]), slopes[1]);
    add_residue(simd, predicted, differences, block)
}

#[inline(always)]
fn base<S: Vp8Simd>(simd: S, parts: Parts, above: S::Samples, mean: S::Samples) -> S::Samples {
    let above = simd.both(above, simd.splat_sample(parts.above));
    simd.either(above, simd.both(mean, simd.splat_sample(parts.mean)))
}

#[inline(always)]
fn predict_luma<S: Vp8Simd>(
    simd: S,
    mode: Prediction,
    around: &Around<S::Samples, 4>,
    left: &[S::Samples; 4],
    differences: &Differences,
) -> [S::Samples; LUMA_BLOCKS] {
    let parts = Parts::of(mode);
    let corner = simd.both(around.corner, simd.splat_sample(parts.corner));
    let mut out = [around.mean; LUMA_BLOCKS];
    for y in 0..4 {
        let slopes = slopes(simd, parts, left[y], corner);
        for x in 0..4 {
            let base = base(simd, parts, around.above[x], around.mean);
            out[4 * y + x] = sum(simd, base, slopes, differences, 4 * y + x);
        }
    }
    out
}

/// The blocks of a plane, whose residues begin with block `first`.
#[inline(always)]
fn predict_chroma<S: Vp8Simd>(
    simd: S,
    mode: Prediction,
    around: &Around<S::Samples, 2>,
    left: &[S::Samples; 2],
    differences: &Differences,
    first: usize,
) -> [S::Samples; CHROMA_BLOCKS] {
    let parts = Parts::of(mode);
    let corner = simd.both(around.corner, simd.splat_sample(parts.corner));
    let left_base = base(simd, parts, around.above[0], around.mean);
    let right_base = base(simd, parts, around.above[1], around.mean);
    let upper = slopes(simd, parts, left[0], corner);
    let lower = slopes(simd, parts, left[1], corner);
    [
        sum(simd, left_base, upper, differences, first),
        sum(simd, right_base, upper, differences, first + 1),
        sum(simd, left_base, lower, differences, first + 2),
        sum(simd, right_base, lower, differences, first + 3),
    ]
}
