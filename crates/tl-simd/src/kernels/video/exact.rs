//! The conversion to RGB that the matrix defines, rounded to the nearest level.
//!
//! A colour is a sum of two or three terms, all of them fractions. Their common denominator is at
//! most `73 * 224 * 10^8 * 16`: that of luma, that of chroma, that of the coefficients, which have
//! four decimals, over green's, and that of samples of 12 bits. So a sum that is not halfway between
//! two levels is further than `2^-46` from there. The tables hold the terms to within `2^-51`, so
//! that a sum is less than `2^-49` off. What is added before it is rounded down is a half and
//! `2^-48`: halves are rounded up, and all else to the nearest level.

use super::Matrix;
use crate::vector::RGB;

/// Fraction bits of the terms.
const BITS: u32 = 50;
const HALF: i64 = (1 << (BITS - 1)) + (1 << (BITS - 48));

/// Red's coefficient and blue's in ten-thousandths are whole numbers.
const ONE: i128 = 10_000;

/// The terms of every sample.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    y: Vec<i64>,
    v_to_r: Vec<i64>,
    u_to_g: Vec<i64>,
    v_to_g: Vec<i64>,
    u_to_b: Vec<i64>,
}

/// `factor * (sample - zero)`, the factor as a fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) zero: i128,
    pub(super) numerator: i128,
    pub(super) denominator: i128,
}

impl Matrix {
    /// The coefficients of red and of blue in luma, in ten-thousandths.
    const fn coefficients(self) -> [i128; 2] {
        match self {
            Self::Bt601 => [2990, 1140],
            Self::Bt709 => [2126, 722],
            Self::Bt2020 => [2627, 593],
            Self::Fcc => [3000, 1100],
            Self::Smpte240 => [2120, 870],
        }
    }

    /// The terms of Y, of V in red, of U and of V in green and of U in blue.
    pub(super) fn terms(self, is_full_range: bool, bits: u32) -> [Term; 5] {
        let [red, blue] = self.coefficients();
        let green = ONE - red - blue;
        let unit = 1 << (bits - 8);
        let most = (256 * unit) - 1;
        let (black, luma, chroma) =
            if is_full_range { (0, most, most) } else { (16 * unit, 219 * unit, 224 * unit) };
        let colour = |numerator: i128, denominator: i128| Term {
            zero: 128 * unit,
            numerator: 2 * 255 * numerator,
            denominator: chroma * denominator,
        };
        [
            Term { zero: black, numerator: 255, denominator: luma },
            colour(ONE - red, ONE),
            colour(-(ONE - blue) * blue, ONE * green),
            colour(-(ONE - red) * red, ONE * green),
            colour(ONE - blue, ONE),
        ]
    }
}

impl Tables {
    /// The tables for samples of `bits` bits, at most 12.
    pub(super) fn new(matrix: Matrix, is_full_range: bool, bits: u32) -> Self {
        let [y, v_to_r, u_to_g, v_to_g, u_to_b] =
            matrix.terms(is_full_range, bits).map(|term| table(term, bits));
        Self { y, v_to_r, u_to_g, v_to_g, u_to_b }
    }

    /// Samples of two bytes, without bits that the tables have no place for.
    pub(super) fn samples(&self, row: &[[u8; 2]]) -> impl Iterator<Item = u16> {
        let mask = u16::try_from(self.y.len() - 1).unwrap_or(u16::MAX);
        row.iter().map(move |&bytes| u16::from_le_bytes(bytes) & mask)
    }

    /// Converts a row. The samples have at most the bits that the tables are for.
    pub(super) fn convert<T: Into<usize>>(
        &self,
        [y, u, v]: [impl Iterator<Item = T>; RGB],
        out: &mut [u8],
    ) {
        for (((y, u), v), out) in y.zip(u).zip(v).zip(out.as_chunks_mut::<RGB>().0) {
            let [y, u, v]: [usize; RGB] = [y.into(), u.into(), v.into()];
            let y = self.y[y] + HALF;
            *out = [y + self.v_to_r[v], y + self.u_to_g[u] + self.v_to_g[v], y + self.u_to_b[u]]
                .map(level);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a term is below 2^10, with 50 bits more")]
fn table(term: Term, bits: u32) -> Vec<i64> {
    let nearest = |sample: i128| {
        let numerator = (term.numerator * (sample - term.zero)) << BITS;
        (2 * numerator + term.denominator).div_euclid(2 * term.denominator) as i64
    };
    (0..1 << bits).map(nearest).collect()
}

#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
fn level(sum: i64) -> u8 {
    (sum >> BITS).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The level of a sum of fractions, rounded without tables.
    fn rounded(terms: &[(Term, usize)]) -> u8 {
        let denominator: i128 = terms.iter().map(|(term, _)| term.denominator).product();
        let numerator: i128 = terms
            .iter()
            .map(|(term, sample)| {
                let distance = i128::try_from(*sample).expect("a sample") - term.zero;
                term.numerator * distance * (denominator / term.denominator)
            })
            .sum();
        let level = (2 * numerator + denominator).div_euclid(2 * denominator);
        u8::try_from(level.clamp(0, 255)).expect("a byte")
    }

    fn check(matrix: Matrix, is_full_range: bool, bits: u32, step: usize) {
        let [of_y, v_to_r, u_to_g, v_to_g, u_to_b] = matrix.terms(is_full_range, bits);
        let tables = Tables::new(matrix, is_full_range, bits);
        let samples = || (0..1 << bits).step_by(step);
        for y in samples() {
            for u in samples() {
                let v = (y * 31 + u * 17) % (1 << bits);
                let mut pixel = [0; RGB];
                tables.convert([[y], [u], [v]].map(IntoIterator::into_iter), &mut pixel);
                let expected = [
                    rounded(&[(of_y, y), (v_to_r, v)]),
                    rounded(&[(of_y, y), (u_to_g, u), (v_to_g, v)]),
                    rounded(&[(of_y, y), (u_to_b, u)]),
                ];
                assert_eq!(pixel, expected, "{matrix:?} {is_full_range} {bits}: {y} {u} {v}");
            }
        }
    }

    #[test]
    fn tables_give_the_nearest_levels() {
        use Matrix::{Bt601, Bt709, Bt2020, Fcc, Smpte240};
        for matrix in [Bt601, Bt709, Bt2020, Fcc, Smpte240] {
            for is_full_range in [false, true] {
                check(matrix, is_full_range, 8, 1);
                check(matrix, is_full_range, 10, 5);
                check(matrix, is_full_range, 12, 29);
            }
        }
    }
}
