//! Estimates of AC coefficients that no scan has coded exactly, from the DC values of the 5x5 blocks
//! around (after T.81 K.8). This is part of the pixels of such files: libjpeg-turbo, and so Pillow,
//! does it by default. Complete files never get here.

use super::script::{MissingBits, UNKNOWN};
use crate::jpeg::scan::Block;

/// AC coefficients that are estimated, the first nine in zigzag order.
const ESTIMATED: usize = 9;

/// Their places in a block, in zigzag order.
const PLACES: [usize; ESTIMATED] = [1, 8, 16, 9, 2, 3, 10, 17, 24];

/// With some AC known: the first five, from the neighbours in their own direction.
const SHARP: [[i8; 25]; 5] = [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -7, 50, 0, -50, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, -7, 0, 0, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, -50, 0, 0, 0, 0, 7, 0, 0],
    [0, 0, -1, 0, 0, 0, 0, 13, 0, 0, 0, 0, -24, 0, 0, 0, 0, 13, 0, 0, 0, 0, -1, 0, 0],
    [0, -1, 0, 1, 0, -1, 10, 0, -10, 1, 0, 0, 0, 0, 0, 1, -10, 0, 10, -1, 0, 1, 0, -1, 0],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 13, -24, 13, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
];

/// With DC alone: all nine, from a Gaussian-like surface through the neighbours.
const SOFT: [[i8; 25]; ESTIMATED] = [
    [-1, -1, 0, 1, 1, -3, 13, 0, -13, 3, -3, 38, 0, -38, 3, -3, 13, 0, -13, 3, -1, -1, 0, 1, 1],
    [-1, -3, -3, -3, -1, -1, 13, 38, 13, -1, 0, 0, 0, 0, 0, 1, -13, -38, -13, 1, 1, 3, 3, 3, 1],
    [0, 0, 1, 0, 0, 0, 2, 7, 2, 0, 0, -5, -14, -5, 0, 0, 2, 7, 2, 0, 0, 0, 1, 0, 0],
    [-1, 0, 0, 0, 1, 0, 9, 0, -9, 0, 0, 0, 0, 0, 0, 0, -9, 0, 9, 0, 1, 0, 0, 0, -1],
    [0, 0, 0, 0, 0, 0, 2, -5, 2, 0, 1, 7, -14, 7, 1, 0, 2, -5, 2, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, 2, 0, -2, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 1, -3, 1, 0, 0, 0, 0, 0, 0, 0, -1, 3, -1, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, -3, 0, 3, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, -1, -2, -1, 0, 0, 0, 0, 0, 0],
];

/// The DC value itself where DC alone is known. Its sum is 256.
const SOFT_DC: [i16; 25] = [
    -2, -6, -8, -6, -2, -6, 6, 42, 6, -6, -8, 42, 152, 42, -8, -6, 6, 42, 6, -6, -2, -6, -8, -6, -2,
];

/// The DC values of 5x5 blocks, row by row; beyond an edge those of the nearest block.
pub(super) type Neighbourhood = [i32; 25];

/// The 25 places around `column` in five rows of DC values.
pub(super) fn neighbourhood(rows: [&[i16]; 5], column: usize) -> Neighbourhood {
    let mut around = [0; 25];
    for (row, out) in rows.iter().zip(around.chunks_exact_mut(5)) {
        let last = row.len() - 1;
        for (offset, value) in out.iter_mut().enumerate() {
            *value = row[(column + offset).saturating_sub(2).min(last)].into();
        }
    }
    around
}

/// Fills in what one block misses. `block` holds its DC value already.
pub(super) fn estimate(
    block: &mut Block,
    around: &Neighbourhood,
    missing: &MissingBits,
    quantizer: &[u16; 64],
) {
    let soft = missing[1..=ESTIMATED].iter().all(|&bits| bits == UNKNOWN);
    let weights: &[[i8; 25]] = if soft { &SOFT } else { &SHARP };
    let dc_step = i64::from(quantizer[0]);
    for ((weights, &place), &bits) in weights.iter().zip(&PLACES).zip(&missing[1..]) {
        if bits == 0 || block.0[place] != 0 {
            continue;
        }
        let sum = weighted(around, weights.map(i32::from));
        let largest = if bits > 0 { (1 << bits) - 1 } else { i64::MAX };
        block.0[place] = quotient(dc_step * sum, quantizer[place], largest);
    }
    if soft {
        let sum = weighted(around, SOFT_DC.map(i32::from));
        block.0[0] = quotient(dc_step * sum, quantizer[0], i64::MAX);
    }
}

/// The weights' sizes add up to less than 2^10, so the sum stays below 2^26.
fn weighted(around: &Neighbourhood, weights: [i32; 25]) -> i64 {
    around.iter().zip(weights).map(|(&dc, weight)| dc * weight).sum::<i32>().into()
}

/// `sum / (256 * step)`, rounded half away from zero and no larger than `largest` on either side.
#[expect(clippy::cast_possible_truncation, reason = "libjpeg stores the low 16 bits as well")]
fn quotient(sum: i64, step: u16, largest: i64) -> i16 {
    let step = i64::from(step);
    let size = (((step << 7) + sum.abs()) / (step << 8)).min(largest);
    (if sum < 0 { -size } else { size }) as i16
}

/// Whether the estimates can be divided by the quantiser; libjpeg makes none otherwise.
pub(super) fn can_divide(quantizer: &[u16; 64]) -> bool {
    quantizer[0] != 0 && PLACES.iter().all(|&place| quantizer[place] != 0)
}
