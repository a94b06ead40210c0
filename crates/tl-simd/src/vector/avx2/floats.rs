//! AVX2 for floats: rows of numbers of every type, read, rounded and written.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{load, load_half, store, store_half, stream};
use crate::vector::{BELOW_HALF, Divisor, Fence};
use core::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_floats(values: &[f32]) -> __m256 {
    let values: &[f32; 8] = values.try_into().expect("8 numbers");
    // SAFETY: the array has the 8 numbers that are read.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_floats(values: __m256, out: &mut [f32]) {
    let out: &mut [f32; 8] = out.try_into().expect("8 numbers");
    // SAFETY: `out` has room for the 8 numbers that are written.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), values) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_f32(bytes: &[u8]) -> __m256 {
    _mm256_castsi256_ps(load(bytes))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn load_f16(bytes: &[u8]) -> __m256 {
    _mm256_cvtph_ps(load_half(bytes))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_bf16(bytes: &[u8]) -> __m256 {
    let wide = _mm256_cvtepu16_epi32(load_half(bytes));
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn round_f16(values: __m256) -> __m256 {
    _mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values))
}

/// The bits of the nearest bfloat16 in the upper halves; the lower ones are unspecified.
#[inline]
#[target_feature(enable = "avx2")]
fn nearest_bf16(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let half = _mm256_add_epi32(odd, _mm256_set1_epi32(BELOW_HALF));
    _mm256_add_epi32(bits, half)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn round_bf16(values: __m256) -> __m256 {
    let upper = _mm256_set1_epi32(i32::MIN >> 15);
    _mm256_castsi256_ps(_mm256_and_si256(nearest_bf16(values), upper))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn normalize(samples: &[u8], scale: f32, by: Divisor<__m256>) -> __m256 {
    let samples: &[u8; 8] = samples.try_into().expect("8 samples");
    let samples = _mm_cvtsi64_si128(i64::from_le_bytes(*samples));
    let samples = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(samples));
    let value = _mm256_sub_ps(_mm256_mul_ps(samples, _mm256_set1_ps(scale)), by.mean);
    let near = _mm256_mul_ps(value, by.inverse);
    let remainder = _mm256_fnmadd_ps(near, by.std, value);
    _mm256_fmadd_ps(remainder, by.inverse, near)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_f32(values: __m256, out: &mut [u8]) {
    store(_mm256_castps_si256(values), out);
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn stream_f32(values: __m256, out: &mut [u8], fence: &Fence) {
    stream(_mm256_castps_si256(values), out, fence);
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn store_f16(values: __m256, out: &mut [u8]) {
    store_half(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values), out);
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_bf16(values: __m256, out: &mut [u8]) {
    let rounded = _mm256_srli_epi32::<16>(nearest_bf16(values));
    let packed = _mm256_packus_epi32(rounded, rounded);
    let packed = _mm256_permute4x64_epi64::<0b10_00>(packed);
    store_half(_mm256_castsi256_si128(packed), out);
}
