//! Dequantisation and the inverse DCT, whole or reduced, of runs of blocks.

mod definition;
mod sized;
mod vectors;

use super::{Block, SIDE, Scale};
use crate::Level;
use crate::vector::dispatch;
use vectors::Run;

/// Fraction bits of the constants.
const CONST_BITS: i32 = 13;
/// Fraction bits that stay between the passes.
const PASS1_BITS: i32 = 2;
/// The mean of a full transform is an eighth of its first coefficient.
const MEAN_BITS: i32 = 3;

/// The bits that each pass takes away, for 8, 4 and 2 points.
const SHIFTS_8: [i32; 2] = [CONST_BITS - PASS1_BITS, CONST_BITS + PASS1_BITS + MEAN_BITS];
const SHIFTS_4: [i32; 2] = [SHIFTS_8[0] + 1, SHIFTS_8[1] + 1];
const SHIFTS_2: [i32; 2] = [SHIFTS_8[0] + 2, SHIFTS_8[1] + 2];

/// Products of cosines and square roots of two, with [`CONST_BITS`] fraction bits.
mod fixed {
    pub(super) const F_0_211: i16 = 1_730;
    pub(super) const F_0_298: i16 = 2_446;
    pub(super) const F_0_390: i16 = 3_196;
    pub(super) const F_0_509: i16 = 4_176;
    pub(super) const F_0_541: i16 = 4_433;
    pub(super) const F_0_601: i16 = 4_926;
    pub(super) const F_0_720: i16 = 5_906;
    pub(super) const F_0_765: i16 = 6_270;
    pub(super) const F_0_850: i16 = 6_967;
    pub(super) const F_0_899: i16 = 7_373;
    pub(super) const F_1_061: i16 = 8_697;
    pub(super) const F_1_175: i16 = 9_633;
    pub(super) const F_1_272: i16 = 10_426;
    pub(super) const F_1_451: i16 = 11_893;
    pub(super) const F_1_501: i16 = 12_299;
    pub(super) const F_1_847: i16 = 15_137;
    pub(super) const F_1_961: i16 = 16_069;
    pub(super) const F_2_053: i16 = 16_819;
    pub(super) const F_2_172: i16 = 17_799;
    pub(super) const F_2_562: i16 = 20_995;
    pub(super) const F_3_072: i16 = 25_172;
    pub(super) const F_3_624: i16 = 29_692;
}

/// The weights of a pair of coefficients in each sum of the transforms.
mod weights {
    use super::fixed::*;

    /// Eight points: coefficients 2 and 6 in the sums of points 0 and 7, and of 1 and 6.
    pub(super) const EVEN_8: [[i16; 2]; 2] =
        [[F_0_541 + F_0_765, F_0_541], [F_0_541, F_0_541 - F_1_847]];
    /// Coefficients 3 + 7 and 1 + 5, in the sums of points 1 and 3, and of 0 and 2.
    pub(super) const SHARED_8: [[i16; 2]; 2] =
        [[F_1_175 - F_1_961, F_1_175], [F_1_175, F_1_175 - F_0_390]];
    /// Coefficients 7 and 1, or 5 and 3, in the sums of points 0 to 3.
    pub(super) const ODD_8: [[i16; 2]; 4] = [
        [-F_0_899, F_1_501 - F_0_899],
        [-F_2_562, F_3_072 - F_2_562],
        [F_2_053 - F_2_562, -F_2_562],
        [F_0_298 - F_0_899, -F_0_899],
    ];

    /// Four points: coefficients 2 and 6.
    pub(super) const EVEN_4: [i16; 2] = [F_1_847, -F_0_765];
    /// Coefficients 1 and 3, then 5 and 7, in the sums of points 0 and 3, and of 1 and 2.
    pub(super) const ODD_4: [[[i16; 2]; 2]; 2] =
        [[[F_2_562, F_0_899], [-F_0_601, -F_0_509]], [[F_1_061, -F_2_172], [F_1_451, -F_0_211]]];

    /// Two points: coefficients 1 and 3, then 5 and 7.
    pub(super) const ODD_2: [[i16; 2]; 2] = [[F_3_624, -F_1_272], [F_0_850, -F_0_720]];
}

/// Dequantises and transforms a run of horizontal neighbours, and leaves the blocks all zero.
///
/// Block `i` becomes the `side` columns from `i * side` on of `side` rows that begin `stride` bytes
/// apart in `out`, where `side` is [`Scale::block_side`]. The coefficients of `quantizer` are row by
/// row, as those of the blocks.
///
/// # Panics
///
/// When the rows overlap or `out` ends before the last one.
pub fn idct(
    level: Level,
    scale: Scale,
    quantizer: &[u16; SIDE * SIDE],
    blocks: &mut [Block],
    out: &mut [u8],
    stride: usize,
) {
    if blocks.is_empty() {
        return;
    }
    let side = scale.block_side();
    let row = blocks.len() * side;
    assert!(row <= stride, "rows of {row} samples, {stride} apart, overlap");
    assert!((side - 1) * stride + row <= out.len(), "the last row leaves the output");
    dispatch!(
        level,
        scalar => definition::idct(scale, quantizer, blocks, out, stride),
        simd => vectors::idct(simd, scale, Run { quantizer, stride }, blocks, out),
    );
    blocks.fill(Block::ZERO);
}
