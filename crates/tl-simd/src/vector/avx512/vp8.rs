//! AVX-512 for the VP8 kernels.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::Avx512;
use crate::vector::avx2::vp8::{
    ALTERNATE, TURN, add_samples, both, edge, either, load_samples, look_up, mean_of_eight,
    mean_of_three, mean_of_two, splat_sample, store_first, store_samples, store_second,
    sub_samples, sum, zip_eights, zip_fours,
};
use crate::vector::jpeg::by_functions;
use crate::vector::vp8::Vp8Simd;
use core::arch::x86_64::*;

// Every CPU with AVX-512 F has AVX2, whose functions work on single blocks.
impl Vp8Simd for Avx512 {
    type Samples = __m128i;

    by_functions! {
        fn load_blocks(self, blocks: &[[i16; 16]]) -> [__m512i; 4];
        fn high(self, words: __m512i, factor: i16) -> __m512i;
        fn zip_quads(self, a: __m512i, b: __m512i) -> [__m512i; 2];
        fn store_blocks(self, columns: [__m512i; 4], added: &mut [[u8; 16]], subtracted: &mut [[u8; 16]]);
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
        fn load_sums(self, sums: &[u16]) -> __m512i;
        fn shift_up(self, bytes: __m512i) -> [__m512i; 2];
        fn floor(self, sums: __m512i) -> __m512i;
        fn high_unsigned(self, words: __m512i, factor: u16) -> __m512i;
        fn sub_to_zero(self, a: __m512i, b: __m512i) -> __m512i;
        fn pack_64ths(self, even: __m512i, odd: __m512i) -> __m512i;
    }
}

/// Two blocks.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_two(blocks: &[[i16; 16]; 2]) -> __m512i {
    // SAFETY: the arrays have the 64 bytes that are read.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
}

/// Block 0 and 4 in the first 128 bits of each result, 1 and 5 in the second.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_blocks(blocks: &[[i16; 16]]) -> [__m512i; 4] {
    let (pairs, _) = blocks.as_chunks::<2>();
    let [a, b, c, d]: &[[[i16; 16]; 2]; 4] = pairs.try_into().expect("eight blocks");
    let [a, b, c, d] = [load_two(a), load_two(b), load_two(c), load_two(d)];
    let [ac_even, ac_odd] = zip_quads(a, c);
    let [bd_even, bd_odd] = zip_quads(b, d);
    [
        _mm512_shuffle_i64x2::<0b10_00_10_00>(ac_even, bd_even),
        _mm512_shuffle_i64x2::<0b10_00_10_00>(ac_odd, bd_odd),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(ac_even, bd_even),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(ac_odd, bd_odd),
    ]
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn high(words: __m512i, factor: i16) -> __m512i {
    _mm512_mulhi_epi16(words, _mm512_set1_epi16(factor))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zip_quads(a: __m512i, b: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)]
}

/// Four blocks in bytes, column by column in, row by row out.
#[inline]
#[target_feature(enable = "avx512bw")]
fn store_four_blocks(columns: __m512i, out: &mut [[u8; 16]]) {
    let turn = _mm512_broadcast_i32x4(load_samples(&TURN));
    let rows = _mm512_shuffle_epi8(columns, turn);
    let out: &mut [[u8; 16]; 4] = out.try_into().expect("four blocks");
    // SAFETY: the arrays have the 64 bytes that are written.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), rows) }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn store_bytes(columns: [__m512i; 4], out: &mut [[u8; 16]]) {
    let [a, b, c, d] = columns;
    let first = _mm512_castsi512_ps(_mm512_packus_epi16(a, b));
    let last = _mm512_castsi512_ps(_mm512_packus_epi16(c, d));
    let (out, others) = out.split_at_mut(4);
    store_four_blocks(_mm512_castps_si512(_mm512_shuffle_ps::<0b10_00_10_00>(first, last)), out);
    store_four_blocks(_mm512_castps_si512(_mm512_shuffle_ps::<0b11_01_11_01>(first, last)), others);
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn store_blocks(columns: [__m512i; 4], added: &mut [[u8; 16]], subtracted: &mut [[u8; 16]]) {
    store_bytes(columns, added);
    let [a, b, c, d] = columns;
    let zero = _mm512_setzero_si512();
    let negated = [
        _mm512_sub_epi16(zero, a),
        _mm512_sub_epi16(zero, b),
        _mm512_sub_epi16(zero, c),
        _mm512_sub_epi16(zero, d),
    ];
    store_bytes(negated, subtracted);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_sums(sums: &[u16]) -> __m512i {
    let sums: &[u16; 32] = sums.try_into().expect("32 sums");
    // SAFETY: the array has the 64 bytes that are read.
    unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn shift_up(bytes: __m512i) -> [__m512i; 2] {
    [_mm512_slli_epi16::<8>(bytes), _mm512_and_si512(bytes, _mm512_set1_epi16(-0x100))]
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn floor(sums: __m512i) -> __m512i {
    _mm512_and_si512(_mm512_slli_epi16::<4>(sums), _mm512_set1_epi16(-0x100))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn high_unsigned(words: __m512i, factor: u16) -> __m512i {
    _mm512_mulhi_epu16(words, _mm512_set1_epi16(factor.cast_signed()))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn sub_to_zero(a: __m512i, b: __m512i) -> __m512i {
    _mm512_subs_epu16(a, b)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn pack_64ths(even: __m512i, odd: __m512i) -> __m512i {
    let packed = _mm512_packus_epi16(_mm512_srli_epi16::<6>(even), _mm512_srli_epi16::<6>(odd));
    _mm512_shuffle_epi8(packed, _mm512_broadcast_i32x4(load_samples(&ALTERNATE)))
}
