//! FFmpeg's conversion to RGB on x86, in 16-bit integers.

use super::Matrix;
use crate::kernels::interleave::starts;
use crate::vector::RGB;
use crate::vector::vp8::Vp8Simd;

/// Factors of 13 fraction bits, of which products of 16 and 3 bits more are the upper halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Formula {
    y: i16,
    v_to_r: i16,
    u_to_g: i16,
    v_to_g: i16,
    u_to_b: i16,
    /// Eight times the level of black.
    black: i16,
}

/// Eight times the level of chroma without colour.
const GREY: i16 = 1024;

impl Matrix {
    /// The factors of V to red, U to blue, U to green and V to green, the last two negative, for
    /// chroma of limited range: 16 fraction bits, as FFmpeg's `ff_yuv2rgb_coeffs` has them.
    pub(super) const fn factors(self) -> [i64; 4] {
        match self {
            Self::Bt601 => [104_597, 132_201, -25_675, -53_279],
            Self::Bt709 => [117_489, 138_438, -13_975, -34_925],
            Self::Bt2020 => [110_013, 140_363, -12_277, -42_626],
            Self::Fcc => [104_448, 132_798, -24_759, -53_109],
            Self::Smpte240 => [117_579, 136_230, -16_907, -35_559],
        }
    }
}

impl Formula {
    pub(super) fn new(matrix: Matrix, is_full_range: bool) -> Self {
        let one = 1 << 16;
        let (y, black) = if is_full_range { (one, 0) } else { (one * 255 / 219, 8 * 16) };
        let [v_to_r, u_to_b, u_to_g, v_to_g] = matrix.factors().map(|factor| {
            // As C divides: to zero.
            if is_full_range { factor * 224 / 255 } else { factor }
        });
        Self {
            y: round(y),
            v_to_r: round(v_to_r),
            u_to_g: round(u_to_g),
            v_to_g: round(v_to_g),
            u_to_b: round(u_to_b),
            black,
        }
    }

    pub(super) fn define(&self, [y, u, v]: [&[u8]; RGB], out: &mut [u8]) {
        for (((y, u), v), out) in y.iter().zip(u).zip(v).zip(out.as_chunks_mut::<RGB>().0) {
            *out = self.pixel([*y, *u, *v]);
        }
    }

    fn pixel(&self, samples: [u8; RGB]) -> [u8; RGB] {
        let [y, u, v] = samples.map(|sample| 8 * i32::from(sample));
        let high = |value: i32, factor: i16| (value * i32::from(factor)) >> 16;
        let y = high(y - i32::from(self.black), self.y);
        let [u, v] = [u, v].map(|chroma| chroma - i32::from(GREY));
        [
            y + high(v, self.v_to_r),
            y + high(u, self.u_to_g) + high(v, self.v_to_g),
            y + high(u, self.u_to_b),
        ]
        .map(clip)
    }

    #[inline(always)]
    pub(super) fn run<S: Vp8Simd>(&self, simd: S, planes: [&[u8]; RGB], out: &mut [u8]) {
        let Some(starts) = starts(planes[0].len(), S::PIXELS) else {
            return self.define(planes, out);
        };
        let [y, u, v] = planes;
        for start in starts {
            let [y, y_last] = eightfold(simd, y, start, self.black);
            let [u, u_last] = eightfold(simd, u, start, GREY);
            let [v, v_last] = eightfold(simd, v, start, GREY);
            let [red, green, blue] = self.words(simd, y, u, v);
            let [red_last, green_last, blue_last] = self.words(simd, y_last, u_last, v_last);
            let pixels = [
                simd.pack(red, red_last),
                simd.pack(green, green_last),
                simd.pack(blue, blue_last),
            ];
            simd.interleave(pixels, &mut out[start * RGB..][..S::PIXELS * RGB]);
        }
    }

    #[inline(always)]
    fn words<S: Vp8Simd>(&self, simd: S, y: S::Words, u: S::Words, v: S::Words) -> [S::Words; RGB] {
        let y = simd.high(y, self.y);
        let green = simd.add(simd.high(u, self.u_to_g), simd.high(v, self.v_to_g));
        [
            simd.add(y, simd.high(v, self.v_to_r)),
            simd.add(y, green),
            simd.add(y, simd.high(u, self.u_to_b)),
        ]
    }
}

/// Eight times the samples from `start` on, less `zero`.
#[inline(always)]
fn eightfold<S: Vp8Simd>(simd: S, row: &[u8], start: usize, zero: i16) -> [S::Words; 2] {
    let [first, last] = simd.widen(simd.load_bytes(&row[start..][..S::PIXELS]));
    [eight_times(simd, first, zero), eight_times(simd, last, zero)]
}

#[inline(always)]
fn eight_times<S: Vp8Simd>(simd: S, words: S::Words, zero: i16) -> S::Words {
    let two = simd.add(words, words);
    let four = simd.add(two, two);
    simd.sub(simd.add(four, four), simd.splat_word(zero))
}

/// A factor of 16 fraction bits with 13, halves rounded up.
#[expect(clippy::cast_possible_truncation, reason = "every factor is below four")]
const fn round(factor: i64) -> i16 {
    ((factor + 4) >> 3) as i16
}

#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
fn clip(value: i32) -> u8 {
    value.clamp(0, 255) as u8
}
