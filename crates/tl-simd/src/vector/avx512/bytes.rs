//! AVX-512 for sums over signed bytes.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{Avx512, load};
use crate::kernels::streams::STREAMS;
use crate::vector::avx2::total;
use crate::vector::bytes::ByteSimd;
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

impl ByteSimd for Avx512 {
    type ByteSums = [__m512i; 3];

    by_functions! {
        fn byte_sums(self) -> [__m512i; 3];
        fn add_bytes(self, sums: [__m512i; 3], bytes: &[u8], others: &[u8]) -> [__m512i; 3];
        fn total_bytes(self, sums: [[__m512i; 3]; STREAMS]) -> [[i32; STREAMS]; 3];
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
    let bytes = load(bytes);
    let others = load(others);
    let above = _mm512_set1_epi8(i8::MIN);
    [
        _mm512_dpbusd_epi32(products, _mm512_xor_si512(others, above), bytes),
        _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), bytes),
        _mm512_dpbusd_epi32(squares, _mm512_xor_si512(bytes, above), bytes),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total_bytes([a, b, c, d]: [[__m512i; 3]; STREAMS]) -> [[i32; STREAMS]; 3] {
    let mut products = total([halve(a[0]), halve(b[0]), halve(c[0]), halve(d[0])]);
    let sums = total([halve(a[1]), halve(b[1]), halve(c[1]), halve(d[1])]);
    let mut squares = total([halve(a[2]), halve(b[2]), halve(c[2]), halve(d[2])]);
    for ((products, squares), sum) in products.iter_mut().zip(&mut squares).zip(sums) {
        let added = sum.wrapping_mul(128);
        *products = products.wrapping_sub(added);
        *squares = squares.wrapping_sub(added);
    }
    [products, sums, squares]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn halve(sums: __m512i) -> __m256i {
    _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64::<1>(sums))
}
