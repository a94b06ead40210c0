//! AVX2 for the kernels of colours.
//!
//! Look-ups take sixteen steps of 16 entries. A byte shuffle gives zero where the top bit of a
//! position is set, and otherwise looks at its low four bits alone. Each step holds what its 16
//! entries differ in from the 16 before them, so that the parts of all steps up to a byte's own
//! give its entry; a step later positions are 16 smaller, and have the top bit set once their own
//! step is past.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{Avx2, load_half};
use crate::vector::color::ColorSimd;
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

/// Entries of a step.
const STEP: usize = 16;

impl ColorSimd for Avx2 {
    const CHEAP_TABLES: bool = false;
    type Table = [__m256i; 16];

    by_functions! {
        fn table(self, entries: &[u8; 256]) -> [__m256i; 16];
        fn lookup(self, table: &[__m256i; 16], bytes: __m256i) -> __m256i;
        fn to_floats(self, bytes: __m256i) -> [__m256; 4];
        fn truncate(self, floats: [__m256; 4]) -> __m256i;
        fn splat_float(self, value: f32) -> __m256;
        fn add_floats(self, a: __m256, b: __m256) -> __m256;
        fn sub_floats(self, a: __m256, b: __m256) -> __m256;
        fn mul_floats(self, a: __m256, b: __m256) -> __m256;
        fn fused(self, a: __m256, b: __m256, c: __m256) -> __m256;
        fn floor(self, values: __m256) -> __m256;
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(entries: &[u8; 256]) -> [__m256i; 16] {
    let mut steps = [_mm256_setzero_si256(); 16];
    let mut before = _mm256_setzero_si256();
    for (index, (step, entries)) in steps.iter_mut().zip(entries.chunks_exact(STEP)).enumerate() {
        if index == 8 {
            before = _mm256_setzero_si256();
        }
        let entries = _mm256_broadcastsi128_si256(load_half(entries));
        *step = _mm256_xor_si256(entries, before);
        before = entries;
    }
    steps
}

#[inline]
#[target_feature(enable = "avx2")]
fn lookup(table: &[__m256i; 16], bytes: __m256i) -> __m256i {
    let step = _mm256_set1_epi8(16);
    let (low, high) = table.split_at(8);
    // Bytes from 128 on are negative in the first half, the others in the second one, and
    // saturation keeps them so.
    let mut position = bytes;
    let mut found = _mm256_setzero_si256();
    for entries in low {
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(*entries, position));
        position = _mm256_subs_epi8(position, step);
    }
    position = _mm256_xor_si256(bytes, _mm256_set1_epi8(i8::MIN));
    for entries in high {
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(*entries, position));
        position = _mm256_subs_epi8(position, step);
    }
    found
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat_float(value: f32) -> __m256 {
    _mm256_set1_ps(value)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_floats(a: __m256, b: __m256) -> __m256 {
    _mm256_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub_floats(a: __m256, b: __m256) -> __m256 {
    _mm256_sub_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn mul_floats(a: __m256, b: __m256) -> __m256 {
    _mm256_mul_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn fused(a: __m256, b: __m256, c: __m256) -> __m256 {
    _mm256_fmadd_ps(a, b, c)
}

#[inline]
#[target_feature(enable = "avx2")]
fn floor(values: __m256) -> __m256 {
    _mm256_floor_ps(values)
}

#[inline]
#[target_feature(enable = "avx2")]
fn to_floats(bytes: __m256i) -> [__m256; 4] {
    let zero = _mm256_setzero_si256();
    let low = _mm256_unpacklo_epi8(bytes, zero);
    let high = _mm256_unpackhi_epi8(bytes, zero);
    [
        _mm256_cvtepi32_ps(_mm256_unpacklo_epi16(low, zero)),
        _mm256_cvtepi32_ps(_mm256_unpackhi_epi16(low, zero)),
        _mm256_cvtepi32_ps(_mm256_unpacklo_epi16(high, zero)),
        _mm256_cvtepi32_ps(_mm256_unpackhi_epi16(high, zero)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn truncate(floats: [__m256; 4]) -> __m256i {
    let most = _mm256_set1_ps(255.0);
    // In this order NaN stays NaN, and becomes the smallest integer.
    let [a, b, c, d] = floats.map(|floats| _mm256_cvttps_epi32(_mm256_min_ps(most, floats)));
    _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
}
