//! Inverse transforms to other sizes than 8, 4, 2 and 1: 3 to 16 points of up to eight
//! coefficients.
//!
//! Point `i` of `n` is the sum of coefficients `j` times `sqrt(2) cos((2 i + 1) j pi / 2 n)`, the
//! first one times 1. The Independent JPEG Group computes these sums with factors that are rounded
//! one by one, so some weights here differ from the rounded product by one or two, and the results are its
//! results in every bit. Widths are those of its C code, which has no vector version.

use super::{CONST_BITS, MEAN_BITS, PASS1_BITS};
use crate::kernels::jpeg::{Block, SIDE};

/// The most points.
const MOST: usize = 16;
/// The number of bits that the range table looks at.
const RANGE_BITS: u32 = 10;

/// One block: `side` rows of as many samples, `stride` bytes apart.
pub(super) fn idct(
    side: usize,
    block: &Block,
    quantizer: &[u16; SIDE * SIDE],
    out: &mut [u8],
    stride: usize,
) {
    let weights = weights(side);
    let coefficients = side.min(SIDE);
    let mut between = [[0i32; SIDE]; MOST];
    for column in 0..coefficients {
        let mut words = [0i64; SIDE];
        for (row, word) in words.iter_mut().enumerate().take(coefficients) {
            let place = row * SIDE + column;
            *word = i64::from(block.0[place]) * i64::from(quantizer[place].cast_signed());
        }
        let points = points(weights, side, words, CONST_BITS - PASS1_BITS);
        for (row, point) in between.iter_mut().zip(points).take(side) {
            row[column] = wrapped(point);
        }
    }
    for (row, out) in between.iter().zip(out.chunks_mut(stride)).take(side) {
        let words = row.map(i64::from);
        let points = points(weights, side, words, CONST_BITS + PASS1_BITS + MEAN_BITS);
        for (out, point) in out.iter_mut().zip(points).take(side) {
            *out = sample(point);
        }
    }
}

/// The points of a row or column, `shift` bits smaller and rounded.
fn points(weights: &[[i16; SIDE]], side: usize, words: [i64; SIDE], shift: i32) -> [i64; MOST] {
    let mut points = [0; MOST];
    let round = 1 << (shift - 1);
    for (i, weights) in weights.iter().enumerate() {
        // The even part of a point and of its mirror image are equal, the odd ones opposite.
        let [mut even, mut odd] = [round, 0];
        for (j, (&weight, &word)) in weights.iter().zip(&words).enumerate() {
            let part = if j.is_multiple_of(2) { &mut even } else { &mut odd };
            *part += i64::from(weight) * word;
        }
        points[i] = (even + odd) >> shift;
        points[side - 1 - i] = (even - odd) >> shift;
    }
    points
}

#[expect(clippy::cast_possible_truncation, reason = "as the C code stores it")]
fn wrapped(point: i64) -> i32 {
    point as i32
}

/// The sample of a point, wrapped to the bits that the range table takes.
#[expect(clippy::cast_possible_truncation, reason = "wrapped, and clamped to the range")]
fn sample(point: i64) -> u8 {
    let wrapped = (point as i32) << (i32::BITS - RANGE_BITS) >> (i32::BITS - RANGE_BITS);
    (wrapped.clamp(i8::MIN.into(), i8::MAX.into()) as i8).cast_unsigned() ^ 0x80
}

/// The weights of the first half of the points; 8, 4, 2 and 1 points have transforms of their own.
fn weights(side: usize) -> &'static [[i16; SIDE]] {
    match side {
        3 => &POINTS_3,
        5 => &POINTS_5,
        6 => &POINTS_6,
        7 => &POINTS_7,
        9 => &POINTS_9,
        10 => &POINTS_10,
        11 => &POINTS_11,
        12 => &POINTS_12,
        13 => &POINTS_13,
        14 => &POINTS_14,
        15 => &POINTS_15,
        _ => &POINTS_16,
    }
}

static POINTS_3: [[i16; SIDE]; 2] =
    [[8_192, 10_033, 5_793, 0, 0, 0, 0, 0], [8_192, 0, -11_586, 0, 0, 0, 0, 0]];
static POINTS_5: [[i16; SIDE]; 3] = [
    [8_192, 11_019, 9_372, 6_810, 3_580, 0, 0, 0],
    [8_192, 6_810, -3_580, -11_018, -9_372, 0, 0, 0],
    [8_192, 0, -11_584, 0, 11_584, 0, 0, 0],
];
static POINTS_6: [[i16; SIDE]; 3] = [
    [8_192, 11_190, 10_033, 8_192, 5_793, 2_998, 0, 0],
    [8_192, 8_192, 0, -8_192, -11_586, -8_192, 0, 0],
    [8_192, 2_998, -10_033, -8_192, 5_793, 11_190, 0, 0],
];
static POINTS_7: [[i16; SIDE]; 4] = [
    [8_192, 11_295, 10_438, 9_058, 7_223, 5_027, 2_578, 0],
    [8_192, 9_058, 2_578, -5_027, -10_438, -11_295, -7_223, 0],
    [8_192, 5_027, -7_223, -11_295, -2_578, 9_058, 10_438, 0],
    [8_192, 0, -11_585, 0, 11_585, 0, -11_585, 0],
];
static POINTS_9: [[i16; SIDE]; 5] = [
    [8_192, 11_409, 10_887, 10_033, 8_875, 7_447, 5_793, 3_962],
    [8_192, 10_033, 5_793, 0, -5_793, -10_033, -11_586, -10_033],
    [8_192, 7_447, -2_012, -10_033, -10_887, -3_962, 5_793, 11_409],
    [8_192, 3_962, -8_875, -10_033, 2_012, 11_409, 5_793, -7_447],
    [8_192, 0, -11_586, 0, 11_586, 0, -11_586, 0],
];
static POINTS_10: [[i16; SIDE]; 5] = [
    [8_192, 11_443, 11_019, 10_322, 9_373, 8_192, 6_810, 5_260],
    [8_192, 10_323, 6_810, 1_812, -3_580, -8_192, -11_018, -11_442],
    [8_192, 8_192, 0, -8_192, -11_586, -8_192, 0, 8_192],
    [8_192, 5_260, -6_810, -11_442, -3_580, 8_192, 11_018, 1_812],
    [8_192, 1_812, -11_019, -5_260, 9_373, 8_192, -6_810, -10_322],
];
static POINTS_11: [[i16; SIDE]; 6] = [
    [8_192, 11_468, 11_116, 10_538, 9_746, 8_756, 7_587, 6_264],
    [8_192, 10_538, 7_587, 3_264, -1_649, -6_263, -9_746, -11_467],
    [8_192, 8_756, 1_649, -6_263, -11_116, -10_537, -4_812, 3_264],
    [8_192, 6_264, -4_812, -11_467, -7_587, 3_264, 11_116, 8_756],
    [8_192, 3_264, -9_746, -8_755, 4_813, 11_467, 1_649, -10_538],
    [8_192, 0, -11_585, 0, 11_585, 0, -11_585, 0],
];
static POINTS_12: [[i16; SIDE]; 6] = [
    [8_192, 11_487, 11_190, 10_703, 10_033, 9_192, 8_192, 7_053],
    [8_192, 10_703, 8_192, 4_433, 0, -4_433, -8_192, -10_703],
    [8_192, 9_192, 2_998, -4_433, -10_033, -11_485, -8_192, -1_512],
    [8_192, 7_053, -2_998, -10_703, -10_033, -1_512, 8_192, 11_486],
    [8_192, 4_433, -8_192, -10_704, 0, 10_704, 8_192, -4_433],
    [8_192, 1_513, -11_190, -4_433, 10_033, 7_053, -8_192, -9_191],
];
static POINTS_13: [[i16; SIDE]; 7] = [
    [8_192, 11_499, 11_249, 10_832, 10_258, 9_534, 8_672, 7_682],
    [8_192, 10_832, 8_672, 5_384, 1_397, -2_773, -6_581, -9_534],
    [8_192, 9_534, 4_108, -2_773, -8_672, -11_502, -10_258, -5_384],
    [8_192, 7_682, -1_396, -9_534, -11_248, -5_384, 4_108, 10_832],
    [8_192, 5_384, -6_581, -11_500, -4_108, 7_682, 11_248, 2_773],
    [8_192, 2_773, -10_258, -7_682, 6_581, 10_832, -1_397, -11_500],
    [8_192, 0, -11_585, 0, 11_585, 0, -11_585, 0],
];
static POINTS_14: [[i16; SIDE]; 7] = [
    [8_192, 11_513, 11_295, 10_935, 10_438, 9_810, 9_058, 8_192],
    [8_192, 10_935, 9_058, 6_164, 2_578, -1_297, -5_026, -8_192],
    [8_192, 9_810, 5_027, -1_297, -7_223, -10_934, -11_295, -8_192],
    [8_192, 8_192, 0, -8_192, -11_586, -8_192, 0, 8_192],
    [8_192, 6_164, -5_027, -11_512, -7_223, 3_826, 11_295, 8_192],
    [8_192, 3_826, -9_058, -9_809, 2_578, 11_512, 5_026, -8_192],
    [8_192, 1_297, -11_295, -3_826, 10_438, 6_164, -9_058, -8_192],
];
static POINTS_15: [[i16; SIDE]; 8] = [
    [8_192, 11_522, 11_332, 11_018, 10_584, 10_033, 9_373, 8_609],
    [8_192, 11_019, 9_372, 6_810, 3_580, 0, -3_580, -6_810],
    [8_192, 10_033, 5_792, 0, -5_792, -10_033, -11_586, -10_033],
    [8_192, 8_609, 1_211, -6_810, -11_332, -10_033, -3_580, 4_712],
    [8_192, 6_810, -3_580, -11_018, -9_372, 0, 9_373, 11_018],
    [8_192, 4_712, -7_753, -11_018, -1_211, 10_033, 9_373, -2_409],
    [8_192, 2_409, -10_584, -6_810, 7_753, 10_033, -3_580, -11_522],
    [8_192, 0, -11_584, 0, 11_584, 0, -11_586, 0],
];
static POINTS_16: [[i16; SIDE]; 8] = [
    [8_192, 11_529, 11_363, 11_086, 10_703, 10_217, 9_632, 8_956],
    [8_192, 11_086, 9_633, 7_350, 4_433, 1_136, -2_260, -5_461],
    [8_192, 10_217, 6_437, 1_136, -4_433, -8_955, -11_363, -11_086],
    [8_192, 8_956, 2_260, -5_461, -10_703, -11_086, -6_436, 1_137],
    [8_192, 7_350, -2_260, -10_217, -10_703, -3_363, 6_436, 11_529],
    [8_192, 5_461, -6_437, -11_529, -4_433, 7_349, 11_363, 3_363],
    [8_192, 3_363, -9_633, -8_955, 4_433, 11_529, 2_260, -10_217],
    [8_192, 1_136, -11_363, -3_363, 10_703, 5_461, -9_632, -7_350],
];
