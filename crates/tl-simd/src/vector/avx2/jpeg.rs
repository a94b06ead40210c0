//! AVX2 for the JPEG kernels: two blocks at once.

use super::{Avx2, store, store_half};
use crate::kernels::jpeg::{Block, SIDE};
use crate::vector::jpeg::{JpegSimd, by_functions};
use core::arch::x86_64::*;

/// The numbers of the first halves of the parts, and of the second.
type Sums = [__m256i; 2];

impl JpegSimd for Avx2 {
    const BLOCKS: usize = 2;
    type Words = __m256i;
    type Sums = Sums;

    by_functions! {
        fn dequantize(self, blocks: &[Block], step: usize, quantizer: &[u16; SIDE * SIDE]) -> [__m256i; SIDE];
        fn splat_word(self, word: i16) -> __m256i;
        fn splat_sum(self, sum: i32) -> Sums;
        fn add(self, a: __m256i, b: __m256i) -> __m256i;
        fn sub(self, a: __m256i, b: __m256i) -> __m256i;
        fn shift_right<const N: i32>(self, words: __m256i) -> __m256i;
        fn scale(self, words: __m256i, factor: i16) -> __m256i;
        fn any_wide(self, words: __m256i) -> bool;
        fn add_sums(self, a: Sums, b: Sums) -> Sums;
        fn sub_sums(self, a: Sums, b: Sums) -> Sums;
        fn rotate(self, sums: Sums, a: __m256i, b: __m256i, weights: [i16; 2]) -> Sums;
        fn narrow<const N: i32>(self, sums: Sums) -> __m256i;
        fn zip_bytes(self, a: __m256i, b: __m256i) -> [__m256i; 2];
        fn zip_words(self, a: __m256i, b: __m256i) -> [__m256i; 2];
        fn zip_pairs(self, a: __m256i, b: __m256i) -> [__m256i; 2];
        fn widen(self, bytes: __m256i) -> [__m256i; 2];
        fn pack(self, a: __m256i, b: __m256i) -> __m256i;
        fn pack_centred(self, a: __m256i, b: __m256i) -> __m256i;
        fn load_words(self, bytes: &[u8]) -> __m256i;
        fn store_words(self, words: __m256i, out: &mut [u8]);
        fn store_pairs(self, first: __m256i, second: __m256i, out: &mut [u8]);
        fn store_halves(self, bytes: __m256i, upper: &mut [u8], lower: &mut [u8]);
    }

    #[inline(always)]
    fn to_words(self, bytes: __m256i) -> __m256i {
        bytes
    }

    #[inline(always)]
    fn to_bytes(self, words: __m256i) -> __m256i {
        words
    }
}

/// Rows `row` and `row + 1` of the quantizer.
#[inline]
#[target_feature(enable = "avx2")]
fn load_two_rows(quantizer: &[u16; SIDE * SIDE], row: usize) -> __m256i {
    let words: &[u16; 16] = quantizer[row * SIDE..(row + 2) * SIDE].try_into().expect("16 words");
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn dequantize(blocks: &[Block], step: usize, quantizer: &[u16; SIDE * SIDE]) -> [__m256i; SIDE] {
    let two_rows = |row: usize| {
        let quantizer = load_two_rows(quantizer, row);
        let [a, b] = [0, 1].map(|part| {
            let words: &[i16] = &blocks[part * step].0[row * SIDE..];
            let words: &[i16; 16] = words[..2 * SIDE].try_into().expect("16 words");
            // SAFETY: the array has the 32 bytes that are read.
            let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
            _mm256_mullo_epi16(words, quantizer)
        });
        [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
    };
    let [[a, b], [c, d], [e, f], [g, h]] = [two_rows(0), two_rows(2), two_rows(4), two_rows(6)];
    [a, b, c, d, e, f, g, h]
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat_word(word: i16) -> __m256i {
    _mm256_set1_epi16(word)
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat_sum(sum: i32) -> Sums {
    [_mm256_set1_epi32(sum); 2]
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi16(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub(a: __m256i, b: __m256i) -> __m256i {
    _mm256_sub_epi16(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn shift_right<const N: i32>(words: __m256i) -> __m256i {
    _mm256_srai_epi16::<N>(words)
}

#[inline]
#[target_feature(enable = "avx2")]
fn scale(words: __m256i, factor: i16) -> __m256i {
    _mm256_mulhrs_epi16(words, _mm256_set1_epi16(factor))
}

#[inline]
#[target_feature(enable = "avx2")]
fn any_wide(words: __m256i) -> bool {
    let shifted = _mm256_add_epi16(words, _mm256_set1_epi16(1 << 13));
    _mm256_testz_si256(shifted, _mm256_set1_epi16(-1 << 14)) == 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_sums(a: Sums, b: Sums) -> Sums {
    [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub_sums(a: Sums, b: Sums) -> Sums {
    [_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate(sums: Sums, a: __m256i, b: __m256i, [of_a, of_b]: [i16; 2]) -> Sums {
    let weights = _mm256_set1_epi32(i32::from(of_b) << 16 | i32::from(of_a) & 0xFFFF);
    let [first, second] = zip_words(a, b);
    [
        _mm256_add_epi32(sums[0], _mm256_madd_epi16(first, weights)),
        _mm256_add_epi32(sums[1], _mm256_madd_epi16(second, weights)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn narrow<const N: i32>(sums: Sums) -> __m256i {
    let [first, second] = sums;
    _mm256_packs_epi32(_mm256_srai_epi32::<N>(first), _mm256_srai_epi32::<N>(second))
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_bytes(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_words(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_pairs(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen(bytes: __m256i) -> [__m256i; 2] {
    zip_bytes(bytes, _mm256_setzero_si256())
}

#[inline]
#[target_feature(enable = "avx2")]
fn pack(a: __m256i, b: __m256i) -> __m256i {
    _mm256_packus_epi16(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn pack_centred(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_packs_epi16(a, b), _mm256_set1_epi8(i8::MIN))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_words(bytes: &[u8]) -> __m256i {
    _mm256_cvtepu8_epi16(super::load_half(bytes))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_words(words: __m256i, out: &mut [u8]) {
    let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(words, words));
    store_half(_mm256_castsi256_si128(packed), out);
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_pairs(first: __m256i, second: __m256i, out: &mut [u8]) {
    store(_mm256_or_si256(first, _mm256_slli_epi16::<8>(second)), out);
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_halves(bytes: __m256i, upper: &mut [u8], lower: &mut [u8]) {
    let rows = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
    store_half(_mm256_castsi256_si128(rows), upper);
    store_half(_mm256_extracti128_si256::<1>(rows), lower);
}
