//! The inverse transforms, one block and one row or column at a time.
//!
//! The factorisation is that of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) as the Independent
//! JPEG Group's "islow" transform and its reduced ones use it. Widths follow libjpeg-turbo's x86
//! versions: products modulo 2^16, sums of inputs modulo 2^16, everything else modulo 2^32, each
//! pass saturated to 16 bits.

use super::weights::{EVEN_4, EVEN_8, ODD_2, ODD_4, ODD_8, SHARED_8};
use super::{CONST_BITS, MEAN_BITS, PASS1_BITS, SHIFTS_2, SHIFTS_4, SHIFTS_8, sized};
use crate::kernels::jpeg::{Block, SIDE, Scale};

type Words = [i16; SIDE];

/// One block after the other; see [`super::idct`]. The blocks are not cleared.
pub(super) fn idct(
    scale: Scale,
    quantizer: &[u16; SIDE * SIDE],
    blocks: &[Block],
    out: &mut [u8],
    stride: usize,
) {
    let side = scale.block_side();
    for (i, block) in blocks.iter().enumerate() {
        let rows = &mut out[i * side..];
        match scale {
            Scale::FULL => full(block, quantizer, rows, stride),
            Scale::HALF => half(block, quantizer, rows, stride),
            Scale::QUARTER => quarter(block, quantizer, rows, stride),
            Scale::EIGHTH => rows[0] = eighth(block.0[0], quantizer[0]),
            _ => sized::idct(side, block, quantizer, rows, stride),
        }
    }
}

fn full(block: &Block, quantizer: &[u16; SIDE * SIDE], out: &mut [u8], stride: usize) {
    let mut between = [[0; SIDE]; SIDE];
    let flat = block.0[SIDE..].iter().all(|&coefficient| coefficient == 0);
    for column in 0..SIDE {
        let words = dequantized(block, quantizer, column);
        let transformed = if flat {
            [words[0].wrapping_shl(PASS1_BITS.cast_unsigned()); SIDE]
        } else {
            pass_8(words, SHIFTS_8[0])
        };
        for (row, word) in between.iter_mut().zip(transformed) {
            row[column] = word;
        }
    }
    for (row, out) in between.iter().zip(out.chunks_mut(stride)) {
        let words = pass_8(*row, SHIFTS_8[1]);
        store(&words, out);
    }
}

fn half(block: &Block, quantizer: &[u16; SIDE * SIDE], out: &mut [u8], stride: usize) {
    let mut between = [[0; SIDE]; 4];
    let mut rows = block.0.chunks_exact(SIDE).enumerate();
    let flat = rows.all(|(row, words)| row == 0 || row == 4 || words.iter().all(|&word| word == 0));
    for column in 0..SIDE {
        let words = dequantized(block, quantizer, column);
        let transformed = if flat {
            [words[0].wrapping_shl(PASS1_BITS.cast_unsigned()); 4]
        } else {
            pass_4(words, SHIFTS_4[0])
        };
        for (row, word) in between.iter_mut().zip(transformed) {
            row[column] = word;
        }
    }
    for (row, out) in between.iter().zip(out.chunks_mut(stride)) {
        let words = pass_4(*row, SHIFTS_4[1]);
        store(&words, out);
    }
}

fn quarter(block: &Block, quantizer: &[u16; SIDE * SIDE], out: &mut [u8], stride: usize) {
    let columns: [[i32; 2]; SIDE] = core::array::from_fn(|column| {
        let words = dequantized(block, quantizer, column);
        let sums = pass_2(i32::from(words[0]), words);
        sums.map(|sum| descale(sum, SHIFTS_2[0]))
    });
    for (row, out) in out.chunks_mut(stride).enumerate().take(2) {
        // Only the first word of a row keeps its 32 bits between the passes.
        let words = columns.map(|column| saturate(column[row]));
        let sums = pass_2(columns[0][row], words);
        store(&sums.map(|sum| saturate(descale(sum, SHIFTS_2[1]))), out);
    }
}

/// The mean, wrapped to the ten bits that the Independent JPEG Group's range table takes.
fn eighth(coefficient: i16, quantizer: u16) -> u8 {
    const RANGE_BITS: u32 = 10;
    let product = i32::from(coefficient) * i32::from(quantizer.cast_signed());
    let mean = descale(product, MEAN_BITS);
    let wrapped = mean << (i32::BITS - RANGE_BITS) >> (i32::BITS - RANGE_BITS);
    sample(saturate(wrapped))
}

/// A column times the quantizer's.
fn dequantized(block: &Block, quantizer: &[u16; SIDE * SIDE], column: usize) -> Words {
    let mut words = [0; SIDE];
    for (row, word) in words.iter_mut().enumerate() {
        let place = row * SIDE + column;
        *word = block.0[place].wrapping_mul(quantizer[place].cast_signed());
    }
    words
}

/// The eight points of a one-dimensional transform.
fn pass_8(words: Words, shift: i32) -> Words {
    let even = {
        let sum = i32::from(words[0].wrapping_add(words[4])) << CONST_BITS;
        let difference = i32::from(words[0].wrapping_sub(words[4])) << CONST_BITS;
        let [outer, inner] = EVEN_8.map(|weights| rotate(words[2], words[6], weights));
        [
            sum.wrapping_add(outer),
            difference.wrapping_add(inner),
            difference.wrapping_sub(inner),
            sum.wrapping_sub(outer),
        ]
    };
    let odd = {
        let z3 = words[7].wrapping_add(words[3]);
        let z4 = words[5].wrapping_add(words[1]);
        let [third, fourth] = SHARED_8.map(|weights| rotate(z3, z4, weights));
        [
            rotate(words[7], words[1], ODD_8[0]).wrapping_add(fourth),
            rotate(words[5], words[3], ODD_8[1]).wrapping_add(third),
            rotate(words[5], words[3], ODD_8[2]).wrapping_add(fourth),
            rotate(words[7], words[1], ODD_8[3]).wrapping_add(third),
        ]
    };
    core::array::from_fn(|i| {
        let sum =
            if i < 4 { even[i].wrapping_add(odd[i]) } else { even[7 - i].wrapping_sub(odd[7 - i]) };
        saturate(descale(sum, shift))
    })
}

/// Four points of eight coefficients, the fifth of which has no part in them.
fn pass_4(words: Words, shift: i32) -> [i16; 4] {
    let first = i32::from(words[0]) << (CONST_BITS + 1);
    let second = rotate(words[2], words[6], EVEN_4);
    let even = [first.wrapping_add(second), first.wrapping_sub(second)];
    let odd = ODD_4.map(|[low, high]| {
        rotate(words[1], words[3], low).wrapping_add(rotate(words[5], words[7], high))
    });
    [
        even[0].wrapping_add(odd[0]),
        even[1].wrapping_add(odd[1]),
        even[1].wrapping_sub(odd[1]),
        even[0].wrapping_sub(odd[0]),
    ]
    .map(|sum| saturate(descale(sum, shift)))
}

/// Two points, not yet descaled, of `first` and the odd coefficients.
fn pass_2(first: i32, words: Words) -> [i32; 2] {
    let even = first << (CONST_BITS + 2);
    let odd =
        rotate(words[1], words[3], ODD_2[0]).wrapping_add(rotate(words[5], words[7], ODD_2[1]));
    [even.wrapping_add(odd), even.wrapping_sub(odd)]
}

fn rotate(a: i16, b: i16, [of_a, of_b]: [i16; 2]) -> i32 {
    i32::from(a) * i32::from(of_a) + i32::from(b) * i32::from(of_b)
}

fn descale(sum: i32, shift: i32) -> i32 {
    sum.wrapping_add(1 << (shift - 1)) >> shift
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to the range")]
fn saturate(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to the range")]
fn sample(word: i16) -> u8 {
    let signed = word.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
    signed.cast_unsigned() ^ 0x80
}

fn store(words: &[i16], out: &mut [u8]) {
    for (&word, out) in words.iter().zip(out) {
        *out = sample(word);
    }
}
