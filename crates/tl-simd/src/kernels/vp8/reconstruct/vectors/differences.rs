//! The residues of a macroblock: all blocks are transformed as whole ones.

use crate::kernels::vp8::reconstruct::definition;
use crate::kernels::vp8::residue::{COS_BEYOND_1, SIN_BEYOND_1};
use crate::kernels::vp8::{BLOCK, BLOCK_LEN, BLOCKS, Macroblock};
use crate::vector::vp8::Vp8Simd;

/// The residues of a macroblock's blocks, row by row in each: `(predicted + added) - subtracted`,
/// both saturated, is what the sum limited to a byte is.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Differences {
    added: [[u8; BLOCK_LEN]; BLOCKS],
    subtracted: [[u8; BLOCK_LEN]; BLOCKS],
}

impl Differences {
    pub(super) const NONE: Self =
        Self { added: [[0; BLOCK_LEN]; BLOCKS], subtracted: [[0; BLOCK_LEN]; BLOCKS] };

    /// By the definition, which does not wrap where few coefficients are large.
    #[cold]
    #[inline(never)]
    fn define(&mut self, macroblock: &Macroblock) {
        for (block, residue) in definition::residues(macroblock).iter().enumerate() {
            for (i, &residue) in residue.iter().enumerate() {
                let limited = |value: i16| value.clamp(0, 255).to_le_bytes()[0];
                self.added[block][i] = limited(residue);
                self.subtracted[block][i] = limited(residue.saturating_neg());
            }
        }
    }
}

/// The differences that the coefficients of each block make.
#[inline(always)]
pub(super) fn transform<S: Vp8Simd>(simd: S, macroblock: &Macroblock, out: &mut Differences) {
    let (blocks, _) = macroblock.coefficients.as_chunks::<BLOCK_LEN>();
    for first in (0..BLOCKS).step_by(S::TRANSFORMED) {
        let [a, b, c, d] = simd.load_blocks(&blocks[first..][..S::TRANSFORMED]);
        if simd.any_wide(a) || simd.any_wide(b) {
            return out.define(macroblock);
        }
        let [a, b, c, d] = turn(simd, points(simd, a, b, c, d));
        let a = simd.add(a, simd.splat_word(4));
        let [a, b, c, d] = points(simd, a, b, c, d);
        let columns = [
            simd.shift_right::<3>(a),
            simd.shift_right::<3>(b),
            simd.shift_right::<3>(c),
            simd.shift_right::<3>(d),
        ];
        let added = &mut out.added[first..][..S::TRANSFORMED];
        simd.store_blocks(columns, added, &mut out.subtracted[first..][..S::TRANSFORMED]);
    }
}

/// Four points of a transform.
#[inline(always)]
fn points<S: Vp8Simd>(
    simd: S,
    first: S::Words,
    second: S::Words,
    third: S::Words,
    fourth: S::Words,
) -> [S::Words; BLOCK] {
    let even = simd.add(first, third);
    let odd = simd.sub(first, third);
    let sum = simd.add(second, fourth);
    let step = simd.sub(second, fourth);
    let outer = simd.add(simd.high(second, COS_BEYOND_1), simd.high(fourth, SIN_BEYOND_1));
    let inner = simd.sub(simd.high(second, SIN_BEYOND_1), simd.high(fourth, COS_BEYOND_1));
    let outer = simd.add(outer, sum);
    let inner = simd.add(inner, step);
    [simd.add(even, outer), simd.add(odd, inner), simd.sub(odd, inner), simd.sub(even, outer)]
}

/// Rows to columns.
#[inline(always)]
fn turn<S: Vp8Simd>(simd: S, [a, b, c, d]: [S::Words; BLOCK]) -> [S::Words; BLOCK] {
    let [ab_first, ab_second] = simd.zip_words(a, b);
    let [cd_first, cd_second] = simd.zip_words(c, d);
    let [first_low, first_high] = simd.zip_pairs(ab_first, cd_first);
    let [second_low, second_high] = simd.zip_pairs(ab_second, cd_second);
    let [a, b] = simd.zip_quads(first_low, second_low);
    let [c, d] = simd.zip_quads(first_high, second_high);
    [a, b, c, d]
}

#[inline(always)]
pub(super) fn add_residue<S: Vp8Simd>(
    simd: S,
    predicted: S::Samples,
    differences: &Differences,
    block: usize,
) -> S::Samples {
    let added = simd.load_samples(&differences.added[block]);
    let subtracted = simd.load_samples(&differences.subtracted[block]);
    simd.sub_samples(simd.add_samples(predicted, added), subtracted)
}
