//! AVX-512 for sums over signed bytes.

#![expect(unsafe_code, reason = "vector instructions behind a token that proves the CPU has them")]

use super::{Avx512, load};
use crate::vector::bytes::ByteSimd;
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

impl ByteSimd for Avx512 {
    type ByteSums = [__m512i; 3];

    by_functions! {
        fn byte_sums(self) -> [__m512i; 3];
        fn add_bytes(self, sums: [__m512i; 3], bytes: &[u8], others: &[u8]) -> [__m512i; 3];
        fn total_bytes(self, sums: [__m512i; 3]) -> [i32; 3];
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn byte_sums() -> [__m512i; 3] {
    [_mm512_setzero_si512(); 3]
}

/// The instruction multiplies bytes without a sign, which a byte has once 128 is added.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_bytes([products, sum, squares]: [__m512i; 3], bytes: &[u8], others: &[u8]) -> [__m512i; 3] {
    let (bytes, others) = (load(bytes), load(others));
    let above = _mm512_set1_epi8(i8::MIN);
    [
        _mm512_dpbusd_epi32(products, _mm512_xor_si512(others, above), bytes),
        _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), bytes),
        _mm512_dpbusd_epi32(squares, _mm512_xor_si512(bytes, above), bytes),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total_bytes([products, sum, squares]: [__m512i; 3]) -> [i32; 3] {
    let sum = _mm512_reduce_add_epi32(sum);
    let added = sum.wrapping_mul(128);
    [
        _mm512_reduce_add_epi32(products).wrapping_sub(added),
        sum,
        _mm512_reduce_add_epi32(squares).wrapping_sub(added),
    ]
}
