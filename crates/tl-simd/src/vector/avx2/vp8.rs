//! AVX2 for the VP8 kernels, and the 16 bytes of a block for AVX-512.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

mod filter;

use super::Avx2;
use crate::vector::jpeg::by_functions;
use crate::vector::vp8::Vp8Simd;
use core::arch::x86_64::*;

impl Vp8Simd for Avx2 {
    type Samples = __m128i;

    by_functions! {
        fn load_blocks(self, blocks: &[[i16; 16]]) -> [__m256i; 4];
        fn high(self, words: __m256i, factor: i16) -> __m256i;
        fn zip_quads(self, a: __m256i, b: __m256i) -> [__m256i; 2];
        fn store_blocks(self, columns: [__m256i; 4], added: &mut [[u8; 16]], subtracted: &mut [[u8; 16]]);
        fn load_samples(self, samples: &[u8; 16]) -> __m128i;
        fn store_samples(self, samples: __m128i, out: &mut [u8; 16]);
        fn store_first(self, samples: __m128i, out: &mut [u8; 8]);
        fn store_second(self, samples: __m128i, out: &mut [u8; 8]);
        fn splat_sample(self, sample: u8) -> __m128i;
        fn add_samples(self, a: __m128i, b: __m128i) -> __m128i;
        fn sub_samples(self, a: __m128i, b: __m128i) -> __m128i;
        fn mean_of_two(self, a: __m128i, b: __m128i) -> __m128i;
        fn mean_of_three(self, a: __m128i, b: __m128i, c: __m128i) -> __m128i;
        fn sum(self, samples: __m128i) -> u16;
        fn mean_of_eight(self, samples: __m128i, mask: __m128i) -> __m128i;
        fn both(self, a: __m128i, b: __m128i) -> __m128i;
        fn either(self, a: __m128i, b: __m128i) -> __m128i;
        fn look_up(self, samples: __m128i, places: __m128i) -> __m128i;
        fn zip_fours(self, a: __m128i, b: __m128i) -> [__m128i; 2];
        fn zip_eights(self, a: __m128i, b: __m128i) -> [__m128i; 2];
        fn edge(self, left: __m128i, above_left: __m128i, above: __m128i, above_right: __m128i) -> __m128i;
        fn load_sums(self, sums: &[u16]) -> __m256i;
        fn shift_up(self, bytes: __m256i) -> [__m256i; 2];
        fn floor(self, sums: __m256i) -> __m256i;
        fn high_unsigned(self, words: __m256i, factor: u16) -> __m256i;
        fn sub_to_zero(self, a: __m256i, b: __m256i) -> __m256i;
        fn pack_64ths(self, even: __m256i, odd: __m256i) -> __m256i;
    }
}

/// A block, two rows in each half.
#[inline]
#[target_feature(enable = "avx2")]
fn load_block(block: &[i16; 16]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

/// Block 0 and 2 in the first half of each result, 1 and 3 in the second.
#[inline]
#[target_feature(enable = "avx2")]
fn load_blocks(blocks: &[[i16; 16]]) -> [__m256i; 4] {
    let [a, b, c, d]: &[[i16; 16]; 4] = blocks.try_into().expect("four blocks");
    let [a, b, c, d] = [load_block(a), load_block(b), load_block(c), load_block(d)];
    let [ac_even, ac_odd] = zip_quads(a, c);
    let [bd_even, bd_odd] = zip_quads(b, d);
    [
        _mm256_permute2x128_si256::<0x20>(ac_even, bd_even),
        _mm256_permute2x128_si256::<0x20>(ac_odd, bd_odd),
        _mm256_permute2x128_si256::<0x31>(ac_even, bd_even),
        _mm256_permute2x128_si256::<0x31>(ac_odd, bd_odd),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn high(words: __m256i, factor: i16) -> __m256i {
    _mm256_mulhi_epi16(words, _mm256_set1_epi16(factor))
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_quads(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
}

/// Two blocks in bytes, column by column in, row by row out.
#[inline]
#[target_feature(enable = "avx2")]
fn store_two_blocks(columns: __m256i, out: &mut [[u8; 16]]) {
    let turn = _mm256_broadcastsi128_si256(load_samples(&TURN));
    let rows = _mm256_shuffle_epi8(columns, turn);
    let out: &mut [[u8; 16]; 2] = out.try_into().expect("two blocks");
    // SAFETY: the arrays have the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), rows) }
}

/// The places of a block's columns, row by row.
pub(in crate::vector) const TURN: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

#[inline]
#[target_feature(enable = "avx2")]
fn store_bytes(columns: [__m256i; 4], out: &mut [[u8; 16]]) {
    let [a, b, c, d] = columns;
    let first = _mm256_castsi256_ps(_mm256_packus_epi16(a, b));
    let last = _mm256_castsi256_ps(_mm256_packus_epi16(c, d));
    let (out, others) = out.split_at_mut(2);
    store_two_blocks(_mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(first, last)), out);
    store_two_blocks(_mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(first, last)), others);
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_blocks(columns: [__m256i; 4], added: &mut [[u8; 16]], subtracted: &mut [[u8; 16]]) {
    store_bytes(columns, added);
    let [a, b, c, d] = columns;
    let zero = _mm256_setzero_si256();
    let negated = [
        _mm256_sub_epi16(zero, a),
        _mm256_sub_epi16(zero, b),
        _mm256_sub_epi16(zero, c),
        _mm256_sub_epi16(zero, d),
    ];
    store_bytes(negated, subtracted);
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn load_samples(samples: &[u8; 16]) -> __m128i {
    // SAFETY: the array has the 16 bytes that are read.
    unsafe { _mm_loadu_si128(samples.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn store_samples(samples: __m128i, out: &mut [u8; 16]) {
    // SAFETY: the array has the 16 bytes that are written.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), samples) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn store_first(samples: __m128i, out: &mut [u8; 8]) {
    // SAFETY: the array has the 8 bytes that are written.
    unsafe { _mm_storel_epi64(out.as_mut_ptr().cast(), samples) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn store_second(samples: __m128i, out: &mut [u8; 8]) {
    let samples = _mm_castsi128_pd(samples);
    // SAFETY: the array has the 8 bytes that are written.
    unsafe { _mm_storeh_pd(out.as_mut_ptr().cast(), samples) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn splat_sample(sample: u8) -> __m128i {
    _mm_set1_epi8(sample.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn add_samples(a: __m128i, b: __m128i) -> __m128i {
    _mm_adds_epu8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn sub_samples(a: __m128i, b: __m128i) -> __m128i {
    _mm_subs_epu8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn mean_of_two(a: __m128i, b: __m128i) -> __m128i {
    _mm_avg_epu8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn mean_of_three(a: __m128i, b: __m128i, c: __m128i) -> __m128i {
    let odd = _mm_and_si128(_mm_xor_si128(a, c), _mm_set1_epi8(1));
    _mm_avg_epu8(_mm_sub_epi8(_mm_avg_epu8(a, c), odd), b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_halves(samples: __m128i) -> __m128i {
    let halves = _mm_sad_epu8(samples, _mm_setzero_si128());
    _mm_add_epi16(halves, _mm_shuffle_epi32::<0b01_00_11_10>(halves))
}

#[inline]
#[target_feature(enable = "avx2")]
#[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "at most 16 * 255")]
pub(in crate::vector) fn sum(samples: __m128i) -> u16 {
    _mm_cvtsi128_si32(sum_of_halves(samples)) as u16
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn mean_of_eight(samples: __m128i, mask: __m128i) -> __m128i {
    let sum = sum_of_halves(_mm_and_si128(samples, mask));
    let mean = _mm_srli_epi16::<3>(_mm_add_epi16(sum, _mm_set1_epi16(4)));
    _mm_broadcastb_epi8(mean)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn both(a: __m128i, b: __m128i) -> __m128i {
    _mm_and_si128(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn either(a: __m128i, b: __m128i) -> __m128i {
    _mm_or_si128(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn look_up(samples: __m128i, places: __m128i) -> __m128i {
    _mm_shuffle_epi8(samples, places)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn zip_fours(a: __m128i, b: __m128i) -> [__m128i; 2] {
    [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn zip_eights(a: __m128i, b: __m128i) -> [__m128i; 2] {
    [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn edge(
    left: __m128i,
    above_left: __m128i,
    above: __m128i,
    above_right: __m128i,
) -> __m128i {
    const NONE: u8 = 0x80;
    const LEFT: [u8; 16] =
        [15, 15, 15, 15, 11, 7, 3, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE];
    const CORNER: [u8; 16] = [
        NONE, NONE, NONE, NONE, NONE, NONE, NONE, 15, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
        NONE,
    ];
    let corner = _mm_shuffle_epi8(above_left, load_samples(&CORNER));
    let above = _mm_blend_epi32::<0b1100>(corner, _mm_unpackhi_epi32(above, above_right));
    _mm_or_si128(above, _mm_shuffle_epi8(left, load_samples(&LEFT)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_sums(sums: &[u16]) -> __m256i {
    let sums: &[u16; 16] = sums.try_into().expect("16 sums");
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn shift_up(bytes: __m256i) -> [__m256i; 2] {
    [_mm256_slli_epi16::<8>(bytes), _mm256_and_si256(bytes, _mm256_set1_epi16(-0x100))]
}

#[inline]
#[target_feature(enable = "avx2")]
fn floor(sums: __m256i) -> __m256i {
    _mm256_and_si256(_mm256_slli_epi16::<4>(sums), _mm256_set1_epi16(-0x100))
}

#[inline]
#[target_feature(enable = "avx2")]
fn high_unsigned(words: __m256i, factor: u16) -> __m256i {
    _mm256_mulhi_epu16(words, _mm256_set1_epi16(factor.cast_signed()))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub_to_zero(a: __m256i, b: __m256i) -> __m256i {
    _mm256_subs_epu16(a, b)
}

/// The places of two times eight bytes, alternating.
pub(in crate::vector) const ALTERNATE: [u8; 16] =
    [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15];

#[inline]
#[target_feature(enable = "avx2")]
fn pack_64ths(even: __m256i, odd: __m256i) -> __m256i {
    let packed = _mm256_packus_epi16(_mm256_srli_epi16::<6>(even), _mm256_srli_epi16::<6>(odd));
    _mm256_shuffle_epi8(packed, _mm256_broadcastsi128_si256(load_samples(&ALTERNATE)))
}
