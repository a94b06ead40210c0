//! AVX2 for scans over columns.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use crate::vector::mask::{Column, MaskSimd, WORD};
use crate::vector::{Avx2, Avx512};
use core::arch::x86_64::*;

impl MaskSimd for Avx2 {
    #[inline(always)]
    fn within<T: Column>(self, values: &[T; WORD], first: T, span: u64) -> u64 {
        // SAFETY: `self` exists, so `detect` saw the features of `within` on this CPU.
        unsafe { within(values, first, span) }
    }
}

// Comparisons to masks and whole lines were slower.
impl MaskSimd for Avx512 {
    #[inline(always)]
    fn within<T: Column>(self, values: &[T; WORD], first: T, span: u64) -> u64 {
        // SAFETY: `self` exists, so `detect` saw AVX-512 F on this CPU, which has all of AVX2.
        unsafe { within(values, first, span) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn within<T: Column>(values: &[T; WORD], first: T, span: u64) -> u64 {
    let bytes = size_of::<T>();
    let first = first.above(T::default());
    let mut outside = 0;
    for part in 0..2 * bytes {
        // SAFETY: `values` has 64 values of `bytes` bytes each, and `part` is below `2 * bytes`.
        let place = unsafe { values.as_ptr().cast::<u8>().add(32 * part) };
        // SAFETY: the 32 bytes from `place` on belong to `values`, and all are initialised (by
        // `Column`).
        let values = unsafe { _mm256_loadu_si256(place.cast()) };
        outside |= compare(bytes, values, first, span) << (WORD / 2 / bytes * part);
    }
    !outside
}

/// The numbers of `bytes` bytes that are more than `span` above `first`. Only signed comparisons
/// exist, so the lowest number stands for 0.
#[inline]
#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
fn compare(bytes: usize, values: __m256i, first: u64, span: u64) -> u64 {
    match bytes {
        1 => {
            let above = _mm256_sub_epi8(values, _mm256_set1_epi8(first as i8 ^ i8::MIN));
            let outside = _mm256_cmpgt_epi8(above, _mm256_set1_epi8(span as i8 ^ i8::MIN));
            _mm256_movemask_epi8(outside).cast_unsigned().into()
        }
        2 => {
            let above = _mm256_sub_epi16(values, _mm256_set1_epi16(first as i16 ^ i16::MIN));
            let outside = _mm256_cmpgt_epi16(above, _mm256_set1_epi16(span as i16 ^ i16::MIN));
            let upper = _mm256_extracti128_si256::<1>(outside);
            let packed = _mm_packs_epi16(_mm256_castsi256_si128(outside), upper);
            _mm_movemask_epi8(packed).cast_unsigned().into()
        }
        4 => {
            let above = _mm256_sub_epi32(values, _mm256_set1_epi32(first as i32 ^ i32::MIN));
            let outside = _mm256_cmpgt_epi32(above, _mm256_set1_epi32(span as i32 ^ i32::MIN));
            _mm256_movemask_ps(_mm256_castsi256_ps(outside)).cast_unsigned().into()
        }
        _ => {
            let first = first.cast_signed() ^ i64::MIN;
            let span = span.cast_signed() ^ i64::MIN;
            let above = _mm256_sub_epi64(values, _mm256_set1_epi64x(first));
            let outside = _mm256_cmpgt_epi64(above, _mm256_set1_epi64x(span));
            _mm256_movemask_pd(_mm256_castsi256_pd(outside)).cast_unsigned().into()
        }
    }
}
