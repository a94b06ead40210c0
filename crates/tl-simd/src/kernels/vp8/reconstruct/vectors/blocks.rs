//! Prediction block by block.

use super::differences::{Differences, add_residue};
use super::{Left, repeat_four};
use crate::kernels::vp8::predict::MEANS;
use crate::kernels::vp8::{BLOCK, BLOCK_LEN, BlockPrediction, LUMA_BLOCKS};
use crate::vector::vp8::Vp8Simd;

/// The places of the means that make a block, in the edge of [`Vp8Simd::edge`], and masks of the
/// two modes that are made otherwise.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Recipe {
    threes: [u8; BLOCK_LEN],
    twos: [u8; BLOCK_LEN],
    mean: [u8; BLOCK_LEN],
    true_motion: [u8; BLOCK_LEN],
}

const RECIPES: [Recipe; MEANS.len()] = {
    /// Looked up as zero.
    const NONE: u8 = 0x80;
    let none = [NONE; BLOCK_LEN];
    let empty =
        Recipe { threes: none, twos: none, mean: [0; BLOCK_LEN], true_motion: [0; BLOCK_LEN] };
    let mut all = [empty; MEANS.len()];
    all[BlockPrediction::Dc as usize].mean = [255; BLOCK_LEN];
    all[BlockPrediction::TrueMotion as usize].true_motion = [255; BLOCK_LEN];
    let mut mode = BlockPrediction::Vertical as usize;
    while mode < all.len() {
        let mut at = 0;
        while at < BLOCK_LEN {
            match MEANS[mode][at] {
                place @ 0..16 => all[mode].threes[at] = place + 2,
                place => all[mode].twos[at] = place - 16 + 2,
            }
            at += 1;
        }
        mode += 1;
    }
    all
};

/// The eight samples nearest to a block, in the edge.
const NEAREST: [u8; BLOCK_LEN] = [0, 0, 0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 0, 0, 0, 0];
/// The next byte of the edge, its end repeated.
const NEXT: [u8; BLOCK_LEN] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15];
const SECOND_NEXT: [u8; BLOCK_LEN] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 15];
/// The samples to the left in the edge, from the top down.
const EDGE_LEFT: [u8; BLOCK_LEN] = [6, 6, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3];

/// The samples of a block without its residue. All modes are computed and one is taken, because
/// the next mode cannot be foreseen by a branch.
#[inline(always)]
fn predict_block<S: Vp8Simd>(simd: S, mode: BlockPrediction, edge: S::Samples) -> S::Samples {
    let recipe = &RECIPES[mode as usize];
    let next = simd.look_up(edge, simd.load_samples(&NEXT));
    let second_next = simd.look_up(edge, simd.load_samples(&SECOND_NEXT));
    let threes = simd.mean_of_three(edge, next, second_next);
    let twos = simd.mean_of_two(edge, next);
    let threes = simd.look_up(threes, simd.load_samples(&recipe.threes));
    let twos = simd.look_up(twos, simd.load_samples(&recipe.twos));
    let mean = simd.mean_of_eight(edge, simd.load_samples(&NEAREST));
    let mean = simd.both(mean, simd.load_samples(&recipe.mean));
    let above = simd.look_up(edge, simd.load_samples(&const { repeat_four(8) }));
    let left = simd.look_up(edge, simd.load_samples(&EDGE_LEFT));
    let corner = simd.look_up(edge, simd.splat_sample(7));
    let higher = simd.sub_samples(left, corner);
    let lower = simd.sub_samples(corner, left);
    let true_motion = simd.sub_samples(simd.add_samples(above, higher), lower);
    let true_motion = simd.both(true_motion, simd.load_samples(&recipe.true_motion));
    simd.either(simd.either(threes, twos), simd.either(mean, true_motion))
}

/// `right` are the samples above and to the right of the macroblock, which the lower blocks of the
/// last column take as well.
#[inline(always)]
pub(super) fn predict_blocks<S: Vp8Simd>(
    simd: S,
    modes: &[BlockPrediction; LUMA_BLOCKS],
    above: S::Samples,
    right: [u8; BLOCK],
    left: &Left<S::Samples>,
    differences: &Differences,
) -> [S::Samples; LUMA_BLOCKS] {
    let [a, b, c, d] = right;
    let right = simd.load_samples(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]);
    let mut rows_above = [
        left.corner_y,
        simd.look_up(above, simd.load_samples(&const { repeat_four(0) })),
        simd.look_up(above, simd.load_samples(&const { repeat_four(4) })),
        simd.look_up(above, simd.load_samples(&const { repeat_four(8) })),
        above,
        right,
    ];
    let mut out = [above; LUMA_BLOCKS];
    for y in 0..4 {
        let mut before = left.y[y];
        for x in 0..4 {
            let block = 4 * y + x;
            let edge = simd.edge(before, rows_above[x], rows_above[x + 1], rows_above[x + 2]);
            let predicted = predict_block(simd, modes[block], edge);
            before = add_residue(simd, predicted, differences, block);
            out[block] = before;
        }
        rows_above = [left.y[y], out[4 * y], out[4 * y + 1], out[4 * y + 2], before, right];
    }
    out
}
