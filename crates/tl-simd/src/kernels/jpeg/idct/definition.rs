//! The inverse transforms, one block and one row or column at a time.
//!
//! The factorisation is that of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) as the Independent
//! JPEG Group's "islow" transform and its reduced ones use it. Widths follow libjpeg-turbo's x86
//! versions: products modulo 2^16, sums of inputs modulo 2^16, everything else modulo 2^32, each
//! pass saturated to 16 bits.

use super::{Block, SIDE, Scale};

/// Fraction bits of the constants.
const CONST_BITS: u32 = 13;
/// Fraction bits that stay between the passes.
const PASS1_BITS: u32 = 2;
/// The mean of a full transform is an eighth of its first coefficient.
const MEAN_BITS: u32 = 3;

type Words = [i16; SIDE];

/// One block after the other; see [`super::idct`].
pub(super) fn idct(
    scale: Scale,
    quantizer: &[u16; SIDE * SIDE],
    blocks: &mut [Block],
    out: &mut [u8],
    stride: usize,
) {
    let side = scale.block_side();
    for (i, block) in blocks.iter_mut().enumerate() {
        let mut coefficients = block.0;
        if scale != Scale::Eighth {
            for (coefficient, quantizer) in coefficients.iter_mut().zip(quantizer) {
                *coefficient = coefficient.wrapping_mul(quantizer.cast_signed());
            }
        }
        let rows = &mut out[i * side..];
        match scale {
            Scale::Full => full(block, &coefficients, rows, stride),
            Scale::Half => half(block, &coefficients, rows, stride),
            Scale::Quarter => quarter(&coefficients, rows, stride),
            Scale::Eighth => rows[0] = eighth(coefficients[0], quantizer[0]),
        }
        *block = Block::ZERO;
    }
}

fn full(block: &Block, coefficients: &[i16; SIDE * SIDE], out: &mut [u8], stride: usize) {
    let mut between = [[0; SIDE]; SIDE];
    let flat = block.0[SIDE..].iter().all(|&coefficient| coefficient == 0);
    for column in 0..SIDE {
        let words = column_of(coefficients, column);
        let transformed = if flat {
            [words[0].wrapping_shl(PASS1_BITS); SIDE]
        } else {
            pass_8(words, CONST_BITS - PASS1_BITS)
        };
        for (row, word) in between.iter_mut().zip(transformed) {
            row[column] = word;
        }
    }
    for (row, out) in between.iter().zip(out.chunks_mut(stride)) {
        let words = pass_8(*row, CONST_BITS + PASS1_BITS + MEAN_BITS);
        store(&words, out);
    }
}

fn half(block: &Block, coefficients: &[i16; SIDE * SIDE], out: &mut [u8], stride: usize) {
    let mut between = [[0; SIDE]; 4];
    let mut rows = block.0.chunks_exact(SIDE).enumerate();
    let flat = rows.all(|(row, words)| row == 0 || row == 4 || words.iter().all(|&word| word == 0));
    for column in 0..SIDE {
        let words = column_of(coefficients, column);
        let transformed = if flat {
            [words[0].wrapping_shl(PASS1_BITS); 4]
        } else {
            pass_4(words, CONST_BITS - PASS1_BITS + 1)
        };
        for (row, word) in between.iter_mut().zip(transformed) {
            row[column] = word;
        }
    }
    for (row, out) in between.iter().zip(out.chunks_mut(stride)) {
        let words = pass_4(*row, CONST_BITS + PASS1_BITS + MEAN_BITS + 1);
        store(&words, out);
    }
}

fn quarter(coefficients: &[i16; SIDE * SIDE], out: &mut [u8], stride: usize) {
    let columns: [[i32; 2]; SIDE] = core::array::from_fn(|column| {
        let words = column_of(coefficients, column);
        let sums = pass_2(i32::from(words[0]), words);
        sums.map(|sum| descale(sum, CONST_BITS - PASS1_BITS + 2))
    });
    for (row, out) in out.chunks_mut(stride).enumerate().take(2) {
        // Only the first word of a row keeps its 32 bits between the passes.
        let words = columns.map(|column| saturate(column[row]));
        let sums = pass_2(columns[0][row], words);
        let shift = CONST_BITS + PASS1_BITS + MEAN_BITS + 2;
        store(&sums.map(|sum| saturate(descale(sum, shift))), out);
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

fn column_of(coefficients: &[i16; SIDE * SIDE], column: usize) -> Words {
    core::array::from_fn(|row| coefficients[row * SIDE + column])
}

/// The eight points of a one-dimensional transform.
fn pass_8(words: Words, shift: u32) -> Words {
    let even = {
        let sum = i32::from(words[0].wrapping_add(words[4])) << CONST_BITS;
        let difference = i32::from(words[0].wrapping_sub(words[4])) << CONST_BITS;
        let outer = rotate(words[2], words[6], [4433 + 6270, 4433]);
        let inner = rotate(words[2], words[6], [4433, 4433 - 15137]);
        [
            sum.wrapping_add(outer),
            difference.wrapping_add(inner),
            difference.wrapping_sub(inner),
            sum.wrapping_sub(outer),
        ]
    };
    let odd = {
        let (z3, z4) = (words[7].wrapping_add(words[3]), words[5].wrapping_add(words[1]));
        let third = rotate(z3, z4, [9633 - 16069, 9633]);
        let fourth = rotate(z3, z4, [9633, 9633 - 3196]);
        [
            rotate(words[7], words[1], [-7373, 12299 - 7373]).wrapping_add(fourth),
            rotate(words[5], words[3], [-20995, 25172 - 20995]).wrapping_add(third),
            rotate(words[5], words[3], [16819 - 20995, -20995]).wrapping_add(fourth),
            rotate(words[7], words[1], [2446 - 7373, -7373]).wrapping_add(third),
        ]
    };
    core::array::from_fn(|i| {
        let sum =
            if i < 4 { even[i].wrapping_add(odd[i]) } else { even[7 - i].wrapping_sub(odd[7 - i]) };
        saturate(descale(sum, shift))
    })
}

/// Four points of eight coefficients, the fifth of which has no part in them.
fn pass_4(words: Words, shift: u32) -> [i16; 4] {
    let first = i32::from(words[0]) << (CONST_BITS + 1);
    let second = rotate(words[2], words[6], [15137, -6270]);
    let even = [first.wrapping_add(second), first.wrapping_sub(second)];
    let odd = [
        rotate(words[1], words[3], [20995, 7373]).wrapping_add(rotate(
            words[5],
            words[7],
            [-4926, -4176],
        )),
        rotate(words[1], words[3], [8697, -17799]).wrapping_add(rotate(
            words[5],
            words[7],
            [11893, -1730],
        )),
    ];
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
    let odd = rotate(words[1], words[3], [29692, -10426]).wrapping_add(rotate(
        words[5],
        words[7],
        [6967, -5906],
    ));
    [even.wrapping_add(odd), even.wrapping_sub(odd)]
}

fn rotate(a: i16, b: i16, [of_a, of_b]: [i32; 2]) -> i32 {
    i32::from(a) * of_a + i32::from(b) * of_b
}

fn descale(sum: i32, shift: u32) -> i32 {
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
