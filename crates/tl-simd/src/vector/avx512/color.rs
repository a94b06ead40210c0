//! AVX-512 for the kernels of colours. Look-ups are two permutes of 128 entries and a choice by the
//! top bit.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{Avx512, load};
use crate::vector::color::ColorSimd;
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

impl ColorSimd for Avx512 {
    const CHEAP_TABLES: bool = true;
    type Table = [__m512i; 4];

    by_functions! {
        fn table(self, entries: &[u8; 256]) -> [__m512i; 4];
        fn lookup(self, table: &[__m512i; 4], bytes: __m512i) -> __m512i;
        fn to_floats(self, bytes: __m512i) -> [__m512; 4];
        fn truncate(self, floats: [__m512; 4]) -> __m512i;
        fn splat_float(self, value: f32) -> __m512;
        fn add_floats(self, a: __m512, b: __m512) -> __m512;
        fn sub_floats(self, a: __m512, b: __m512) -> __m512;
        fn mul_floats(self, a: __m512, b: __m512) -> __m512;
        fn fused(self, a: __m512, b: __m512, c: __m512) -> __m512;
        fn floor(self, values: __m512) -> __m512;
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn table(entries: &[u8; 256]) -> [__m512i; 4] {
    [0, 64, 128, 192].map(|first| load(&entries[first..first + 64]))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn lookup(&[a, b, c, d]: &[__m512i; 4], bytes: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi8(a, bytes, b);
    let high = _mm512_permutex2var_epi8(c, bytes, d);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat_float(value: f32) -> __m512 {
    _mm512_set1_ps(value)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add_floats(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sub_floats(a: __m512, b: __m512) -> __m512 {
    _mm512_sub_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn mul_floats(a: __m512, b: __m512) -> __m512 {
    _mm512_mul_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn fused(a: __m512, b: __m512, c: __m512) -> __m512 {
    _mm512_fmadd_ps(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn floor(values: __m512) -> __m512 {
    _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(values)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn to_floats(bytes: __m512i) -> [__m512; 4] {
    let zero = _mm512_setzero_si512();
    let low = _mm512_unpacklo_epi8(bytes, zero);
    let high = _mm512_unpackhi_epi8(bytes, zero);
    [
        _mm512_cvtepi32_ps(_mm512_unpacklo_epi16(low, zero)),
        _mm512_cvtepi32_ps(_mm512_unpackhi_epi16(low, zero)),
        _mm512_cvtepi32_ps(_mm512_unpacklo_epi16(high, zero)),
        _mm512_cvtepi32_ps(_mm512_unpackhi_epi16(high, zero)),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn truncate(floats: [__m512; 4]) -> __m512i {
    let most = _mm512_set1_ps(255.0);
    // In this order NaN stays NaN, and becomes the smallest integer.
    let [a, b, c, d] = floats.map(|floats| _mm512_cvttps_epi32(_mm512_min_ps(most, floats)));
    _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d))
}
