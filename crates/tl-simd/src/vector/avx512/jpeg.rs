//! AVX-512 for the JPEG kernels: four blocks at once.

use super::{Avx512, store, store_half};
use crate::kernels::jpeg::{Block, SIDE};
use crate::vector::jpeg::{JpegSimd, by_functions};
use core::arch::x86_64::*;

/// The numbers of the first halves of the parts, and of the second.
type Sums = [__m512i; 2];

impl JpegSimd for Avx512 {
    const BLOCKS: usize = 4;
    type Words = __m512i;
    type Sums = Sums;

    by_functions! {
        fn dequantize(self, blocks: &[Block], step: usize, quantizer: &[u16; SIDE * SIDE]) -> [__m512i; SIDE];
        fn splat_word(self, word: i16) -> __m512i;
        fn splat_sum(self, sum: i32) -> Sums;
        fn add(self, a: __m512i, b: __m512i) -> __m512i;
        fn sub(self, a: __m512i, b: __m512i) -> __m512i;
        fn shift_right<const N: i32>(self, words: __m512i) -> __m512i;
        fn scale(self, words: __m512i, factor: i16) -> __m512i;
        fn any_wide(self, words: __m512i) -> bool;
        fn add_sums(self, a: Sums, b: Sums) -> Sums;
        fn sub_sums(self, a: Sums, b: Sums) -> Sums;
        fn rotate(self, sums: Sums, a: __m512i, b: __m512i, weights: [i16; 2]) -> Sums;
        fn narrow<const N: i32>(self, sums: Sums) -> __m512i;
        fn zip_bytes(self, a: __m512i, b: __m512i) -> [__m512i; 2];
        fn zip_words(self, a: __m512i, b: __m512i) -> [__m512i; 2];
        fn zip_pairs(self, a: __m512i, b: __m512i) -> [__m512i; 2];
        fn widen(self, bytes: __m512i) -> [__m512i; 2];
        fn pack(self, a: __m512i, b: __m512i) -> __m512i;
        fn pack_centred(self, a: __m512i, b: __m512i) -> __m512i;
        fn load_words(self, bytes: &[u8]) -> __m512i;
        fn store_words(self, words: __m512i, out: &mut [u8]);
        fn store_pairs(self, first: __m512i, second: __m512i, out: &mut [u8]);
        fn store_halves(self, bytes: __m512i, upper: &mut [u8], lower: &mut [u8]);
    }

    #[inline(always)]
    fn to_words(self, bytes: __m512i) -> __m512i {
        bytes
    }

    #[inline(always)]
    fn to_bytes(self, words: __m512i) -> __m512i {
        words
    }
}

/// Half a block's coefficients, or a quantizer's.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_half_block(words: &[u16]) -> __m512i {
    let words: &[u16; 32] = words.try_into().expect("32 words");
    // SAFETY: the array has the 64 bytes that are read.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn dequantize(blocks: &[Block], step: usize, quantizer: &[u16; SIDE * SIDE]) -> [__m512i; SIDE] {
    let half = |first: usize| {
        let quantizer = load_half_block(&quantizer[first..first + 32]);
        let [a, b, c, d] = [0, 1, 2, 3].map(|part| {
            let words: &[i16] = &blocks[part * step].0[first..];
            let words: &[i16; 32] = words[..4 * SIDE].try_into().expect("32 words");
            // SAFETY: the array has the 64 bytes that are read.
            let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
            _mm512_mullo_epi16(words, quantizer)
        });
        let ab = _mm512_shuffle_i64x2::<0b01_00_01_00>(a, b);
        let ab_last = _mm512_shuffle_i64x2::<0b11_10_11_10>(a, b);
        let cd = _mm512_shuffle_i64x2::<0b01_00_01_00>(c, d);
        let cd_last = _mm512_shuffle_i64x2::<0b11_10_11_10>(c, d);
        [
            _mm512_shuffle_i64x2::<0b10_00_10_00>(ab, cd),
            _mm512_shuffle_i64x2::<0b11_01_11_01>(ab, cd),
            _mm512_shuffle_i64x2::<0b10_00_10_00>(ab_last, cd_last),
            _mm512_shuffle_i64x2::<0b11_01_11_01>(ab_last, cd_last),
        ]
    };
    let ([a, b, c, d], [e, f, g, h]) = (half(0), half(32));
    [a, b, c, d, e, f, g, h]
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn splat_word(word: i16) -> __m512i {
    _mm512_set1_epi16(word)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat_sum(sum: i32) -> Sums {
    [_mm512_set1_epi32(sum); 2]
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi16(a, b)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn sub(a: __m512i, b: __m512i) -> __m512i {
    _mm512_sub_epi16(a, b)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn shift_right<const N: i32>(words: __m512i) -> __m512i {
    // The immediate of the other form would be an expression of `N`.
    _mm512_sra_epi16(words, _mm_cvtsi32_si128(N))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn scale(words: __m512i, factor: i16) -> __m512i {
    _mm512_mulhrs_epi16(words, _mm512_set1_epi16(factor))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn any_wide(words: __m512i) -> bool {
    let shifted = _mm512_add_epi16(words, _mm512_set1_epi16(1 << 13));
    _mm512_test_epi16_mask(shifted, _mm512_set1_epi16(-1 << 14)) != 0
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add_sums(a: Sums, b: Sums) -> Sums {
    [_mm512_add_epi32(a[0], b[0]), _mm512_add_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sub_sums(a: Sums, b: Sums) -> Sums {
    [_mm512_sub_epi32(a[0], b[0]), _mm512_sub_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn rotate(sums: Sums, a: __m512i, b: __m512i, [of_a, of_b]: [i16; 2]) -> Sums {
    let weights = _mm512_set1_epi32(i32::from(of_b) << 16 | i32::from(of_a) & 0xFFFF);
    let [first, second] = zip_words(a, b);
    [_mm512_dpwssd_epi32(sums[0], first, weights), _mm512_dpwssd_epi32(sums[1], second, weights)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn narrow<const N: i32>(sums: Sums) -> __m512i {
    // As in `shift_right`.
    let count = _mm_cvtsi32_si128(N);
    let [first, second] = sums;
    _mm512_packs_epi32(_mm512_sra_epi32(first, count), _mm512_sra_epi32(second, count))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn zip_bytes(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)]
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn zip_words(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zip_pairs(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)]
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn widen(bytes: __m512i) -> [__m512i; 2] {
    zip_bytes(bytes, _mm512_setzero_si512())
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn pack(a: __m512i, b: __m512i) -> __m512i {
    _mm512_packus_epi16(a, b)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn pack_centred(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(_mm512_packs_epi16(a, b), _mm512_set1_epi8(i8::MIN))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn load_words(bytes: &[u8]) -> __m512i {
    let bytes: &[u8; 32] = bytes.try_into().expect("32 bytes");
    // SAFETY: the array has the 32 bytes that are read.
    let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    _mm512_cvtepu8_epi16(bytes)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn store_words(words: __m512i, out: &mut [u8]) {
    store_half(_mm512_cvtepi16_epi8(words), out);
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn store_pairs(first: __m512i, second: __m512i, out: &mut [u8]) {
    store(_mm512_or_si512(first, _mm512_slli_epi16::<8>(second)), out);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_halves(bytes: __m512i, upper: &mut [u8], lower: &mut [u8]) {
    let rows = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    let rows = _mm512_permutexvar_epi64(rows, bytes);
    store_half(_mm512_castsi512_si256(rows), upper);
    store_half(_mm512_extracti64x4_epi64::<1>(rows), lower);
}
