//! AVX2 for sums over signed bytes.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{Avx2, load, load_half};
use crate::kernels::streams::STREAMS;
use crate::vector::bytes::ByteSimd;
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

impl ByteSimd for Avx2 {
    type ByteSums = [__m256i; 3];

    by_functions! {
        fn byte_sums(self) -> [__m256i; 3];
        fn add_bytes(self, sums: [__m256i; 3], bytes: &[u8], others: &[u8]) -> [__m256i; 3];
        fn total_bytes(self, sums: [[__m256i; 3]; STREAMS]) -> [[i32; STREAMS]; 3];
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn byte_sums() -> [__m256i; 3] {
    [_mm256_setzero_si256(); 3]
}

/// The products of pairs of bytes in 16 bits would saturate for -128, so bytes are widened first.
#[inline]
#[target_feature(enable = "avx2")]
fn add_bytes([products, sum, squares]: [__m256i; 3], bytes: &[u8], others: &[u8]) -> [__m256i; 3] {
    let wide = widen(bytes);
    let others = widen(others);
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), load(bytes));
    [
        _mm256_add_epi32(products, add_products(wide, others)),
        _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))),
        _mm256_add_epi32(squares, add_products(wide, wide)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen(bytes: &[u8]) -> [__m256i; 2] {
    let (lower, upper) = bytes.split_at(16);
    [_mm256_cvtepi8_epi16(load_half(lower)), _mm256_cvtepi8_epi16(load_half(upper))]
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_products([a, b]: [__m256i; 2], [c, d]: [__m256i; 2]) -> __m256i {
    _mm256_add_epi32(_mm256_madd_epi16(a, c), _mm256_madd_epi16(b, d))
}

#[inline]
#[target_feature(enable = "avx2")]
fn total_bytes([a, b, c, d]: [[__m256i; 3]; STREAMS]) -> [[i32; STREAMS]; 3] {
    [
        total([a[0], b[0], c[0], d[0]]),
        total([a[1], b[1], c[1], d[1]]),
        total([a[2], b[2], c[2], d[2]]),
    ]
}

/// The sum of each vector.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::vector) fn total([a, b, c, d]: [__m256i; STREAMS]) -> [i32; STREAMS] {
    let halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let upper = _mm256_extracti128_si256::<1>(halves);
    let totals = _mm_add_epi32(_mm256_castsi256_si128(halves), upper);
    [
        _mm_extract_epi32::<0>(totals),
        _mm_extract_epi32::<1>(totals),
        _mm_extract_epi32::<2>(totals),
        _mm_extract_epi32::<3>(totals),
    ]
}
