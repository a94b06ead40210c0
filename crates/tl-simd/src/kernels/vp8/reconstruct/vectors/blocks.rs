//! Prediction block by block.

use super::differences::{Differences, add_residue};
use super::{Left, repeat_four};
use crate::kernels::vp8::predict::MEANS;
use crate::kernels::vp8::{BLOCK_LEN, BlockPrediction, LUMA_BLOCKS};
use crate::vector::vp8::Vp8Simd;

/// Looked up as zero.
const NONE: [u8; BLOCK_LEN] = [0x80; BLOCK_LEN];

/// The places of all that a block is made of: `(threes + twos + mean + above) + (left - corner) -
/// (corner - left)`, saturated, of which a mode has one or the last three. They are in the edge of
/// [`Vp8Simd::edge`], and those of `threes` and `twos` in the means of its neighbours.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Recipe {
    threes: [u8; BLOCK_LEN],
    twos: [u8; BLOCK_LEN],
    mean: [u8; BLOCK_LEN],
    above: [u8; BLOCK_LEN],
    left: [u8; BLOCK_LEN],
    corner: [u8; BLOCK_LEN],
}

// A static: the compiler takes shuffles that it knows apart into several.
static RECIPES: [Recipe; MEANS.len()] = {
    let empty =
        Recipe { threes: NONE, twos: NONE, mean: NONE, above: NONE, left: NONE, corner: NONE };
    let mut all = [empty; MEANS.len()];
    all[BlockPrediction::Dc as usize].mean = [0; BLOCK_LEN];
    let true_motion = &mut all[BlockPrediction::TrueMotion as usize];
    true_motion.above = repeat_four(8);
    true_motion.left = [6, 6, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 3, 3];
    true_motion.corner = [7; BLOCK_LEN];
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
    let mean = simd.look_up(mean, simd.load_samples(&recipe.mean));
    let above = simd.look_up(edge, simd.load_samples(&recipe.above));
    let left = simd.look_up(edge, simd.load_samples(&recipe.left));
    let corner = simd.look_up(edge, simd.load_samples(&recipe.corner));
    let base = simd.either(simd.either(threes, twos), simd.either(mean, above));
    let higher = simd.add_samples(base, simd.sub_samples(left, corner));
    simd.sub_samples(higher, simd.sub_samples(corner, left))
}

/// The last bytes of `right` are the samples above and to the right of the macroblock, which the lower blocks of the
/// last column take as well.
#[inline(always)]
pub(super) fn predict_blocks<S: Vp8Simd>(
    simd: S,
    modes: &[BlockPrediction; LUMA_BLOCKS],
    above: S::Samples,
    right: S::Samples,
    left: &Left<S::Samples>,
    differences: &Differences,
) -> [S::Samples; LUMA_BLOCKS] {
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
