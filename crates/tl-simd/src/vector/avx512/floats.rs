//! AVX-512 for floats: rows of numbers of every type, read, rounded and written.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{load, store, store_half, stream};
use crate::vector::{BELOW_HALF, Divisor, Fence};
use core::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_floats(values: &[f32]) -> __m512 {
    let values: &[f32; 16] = values.try_into().expect("16 numbers");
    // SAFETY: the array has the 16 numbers that are read.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_floats(values: __m512, out: &mut [f32]) {
    let out: &mut [f32; 16] = out.try_into().expect("16 numbers");
    // SAFETY: `out` has room for the 16 numbers that are written.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), values) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_f32(bytes: &[u8]) -> __m512 {
    _mm512_castsi512_ps(load(bytes))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_half(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; 32] = bytes.try_into().expect("32 bytes");
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_f16(bytes: &[u8]) -> __m512 {
    _mm512_cvtph_ps(load_half(bytes))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_bf16(bytes: &[u8]) -> __m512 {
    let wide = _mm512_cvtepu16_epi32(load_half(bytes));
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn round_f16(values: __m512) -> __m512 {
    _mm512_cvtph_ps(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values))
}

/// The bits of the nearest bfloat16 in the upper halves; the lower ones are unspecified.
#[inline]
#[target_feature(enable = "avx512f")]
fn nearest_bf16(values: __m512) -> __m512i {
    let bits = _mm512_castps_si512(values);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let half = _mm512_add_epi32(odd, _mm512_set1_epi32(BELOW_HALF));
    _mm512_add_epi32(bits, half)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn round_bf16(values: __m512) -> __m512 {
    let upper = _mm512_set1_epi32(i32::MIN >> 15);
    _mm512_castsi512_ps(_mm512_and_si512(nearest_bf16(values), upper))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn normalize(samples: &[u8], scale: f32, by: Divisor<__m512>) -> __m512 {
    let samples: &[u8; 16] = samples.try_into().expect("16 samples");
    // SAFETY: the array has the 16 bytes that are read.
    let samples = unsafe { _mm_loadu_si128(samples.as_ptr().cast()) };
    let samples = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(samples));
    let value = _mm512_sub_ps(_mm512_mul_ps(samples, _mm512_set1_ps(scale)), by.mean);
    let near = _mm512_mul_ps(value, by.inverse);
    let remainder = _mm512_fnmadd_ps(near, by.std, value);
    _mm512_fmadd_ps(remainder, by.inverse, near)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_f32(values: __m512, out: &mut [u8]) {
    store(_mm512_castps_si512(values), out);
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn stream_f32(values: __m512, out: &mut [u8], fence: &Fence) {
    stream(_mm512_castps_si512(values), out, fence);
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_f16(values: __m512, out: &mut [u8]) {
    store_half(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values), out);
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_bf16(values: __m512, out: &mut [u8]) {
    let rounded = _mm512_srli_epi32::<16>(nearest_bf16(values));
    store_half(_mm512_cvtepi32_epi16(rounded), out);
}
