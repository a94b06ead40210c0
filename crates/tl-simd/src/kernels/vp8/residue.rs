//! The inverse transforms: RFC 6386, section 14.

use super::{BLOCK, BLOCK_LEN, Residue};

/// `sqrt(2) * cos(pi / 8)` beyond 1, in 65536ths.
pub(super) const COS_BEYOND_1: i16 = 20_091;
/// `sqrt(2) * sin(pi / 8)` beyond 1, in 65536ths.
pub(super) const SIN_BEYOND_1: i16 = -30_068;

/// The inverse Walsh-Hadamard transform: the first coefficients of the 16 blocks of luma.
#[inline]
#[must_use]
pub fn walsh_hadamard(dc: &[i16; BLOCK_LEN]) -> [i16; BLOCK_LEN] {
    let mut columns = [0; BLOCK_LEN];
    for i in 0..BLOCK {
        let [a, b, c, d] = [0, 4, 8, 12].map(|row| i32::from(dc[row + i]));
        let sums = butterfly(a, b, c, d);
        for (row, sum) in sums.into_iter().enumerate() {
            columns[row * BLOCK + i] = sum;
        }
    }
    let mut out = [0; BLOCK_LEN];
    for (row, out) in columns.as_chunks::<BLOCK>().0.iter().zip(out.as_chunks_mut::<BLOCK>().0) {
        let [a, b, c, d] = *row;
        *out = butterfly(a + 3, b, c, d).map(|sum| low_word(sum >> 3));
    }
    out
}

#[inline(always)]
fn butterfly(a: i32, b: i32, c: i32, d: i32) -> [i32; BLOCK] {
    [a + d + b + c, a - d + b - c, a + d - b - c, a - d - b + c]
}

/// Wraps, as libwebp does for coefficients that no encoder makes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low word is asked for")]
fn low_word(value: i32) -> i16 {
    value as i16
}

/// The differences that the coefficients of a block make to its samples.
///
/// Whole transforms wrap at 16 bits, those of few coefficients do not: so do libwebp's on x86.
pub(super) fn transform(coefficients: &[i16; BLOCK_LEN], residue: Residue) -> [i16; BLOCK_LEN] {
    match residue {
        Residue::None => [0; BLOCK_LEN],
        Residue::Dc => [low_word((i32::from(coefficients[0]) + 4) >> 3); BLOCK_LEN],
        Residue::Few => transform_few(coefficients[0], coefficients[1], coefficients[4]),
        Residue::Full => transform_full(coefficients),
    }
}

fn transform_few(dc: i16, horizontal: i16, vertical: i16) -> [i16; BLOCK_LEN] {
    let scaled =
        |value: i16, beyond: i16| i32::from(value) + ((i32::from(value) * i32::from(beyond)) >> 16);
    let wave = |value: i16| {
        let [outer, inner] = [scaled(value, COS_BEYOND_1), scaled(value, SIN_BEYOND_1)];
        [outer, inner, -inner, -outer]
    };
    let rows = wave(vertical);
    let columns = wave(horizontal);
    let sample = |i: usize| i32::from(dc) + 4 + rows[i / BLOCK] + columns[i % BLOCK];
    std::array::from_fn(|i| low_word(sample(i) >> 3))
}

fn transform_full(coefficients: &[i16; BLOCK_LEN]) -> [i16; BLOCK_LEN] {
    let mut columns = [0; BLOCK_LEN];
    for i in 0..BLOCK {
        let sums = points([0, 4, 8, 12].map(|row| coefficients[row + i]));
        for (row, sum) in sums.into_iter().enumerate() {
            columns[row * BLOCK + i] = sum;
        }
    }
    let mut out = [0; BLOCK_LEN];
    for (row, out) in columns.as_chunks::<BLOCK>().0.iter().zip(out.as_chunks_mut::<BLOCK>().0) {
        let [dc, a, b, c] = *row;
        *out = points([dc.wrapping_add(4), a, b, c]).map(|sum| sum >> 3);
    }
    out
}

/// Four points of a transform.
fn points([first, second, third, fourth]: [i16; BLOCK]) -> [i16; BLOCK] {
    let scaled = |value: i16, beyond: i16| {
        value.wrapping_add(low_word((i32::from(value) * i32::from(beyond)) >> 16))
    };
    let even = first.wrapping_add(third);
    let odd = first.wrapping_sub(third);
    let outer = scaled(second, COS_BEYOND_1).wrapping_add(scaled(fourth, SIN_BEYOND_1));
    let inner = scaled(second, SIN_BEYOND_1).wrapping_sub(scaled(fourth, COS_BEYOND_1));
    [
        even.wrapping_add(outer),
        odd.wrapping_add(inner),
        odd.wrapping_sub(inner),
        even.wrapping_sub(outer),
    ]
}
