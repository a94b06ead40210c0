//! AVX2 for the loop filters, which AVX-512 takes from here: an edge is 32 bytes.

use super::{TURN, load_samples};
use crate::vector::jpeg::by_functions;
use crate::vector::vp8::FilterSimd;
use crate::vector::{Avx2, Avx512};
use core::arch::x86_64::*;

macro_rules! filter_simd {
    ($level:ty) => {
        impl FilterSimd for $level {
            type Lanes = __m256i;

            by_functions! {
                fn join(self, luma: __m128i, chroma: __m128i) -> __m256i;
                fn split(self, lanes: __m256i) -> [__m128i; 2];
                fn splat_lanes(self, lane: u8) -> __m256i;
                fn load_eight(self, samples: &[u8; 8]) -> __m128i;
                fn load_fours(self, fours: [[u8; 4]; 4]) -> __m128i;
                fn merge_chroma(self, a: __m256i, b: __m256i) -> __m256i;
                fn zip_lanes(self, a: __m256i, b: __m256i) -> [__m256i; 2];
                fn zip_lane_fours(self, a: __m256i, b: __m256i) -> [__m256i; 2];
                fn zip_lane_eights(self, a: __m256i, b: __m256i) -> [__m256i; 2];
                fn turn_lanes(self, lanes: __m256i) -> __m256i;
                fn and(self, a: __m256i, b: __m256i) -> __m256i;
                fn without(self, a: __m256i, b: __m256i) -> __m256i;
                fn or(self, a: __m256i, b: __m256i) -> __m256i;
                fn centre(self, lanes: __m256i) -> __m256i;
                fn distance(self, a: __m256i, b: __m256i) -> __m256i;
                fn max(self, a: __m256i, b: __m256i) -> __m256i;
                fn at_most(self, a: __m256i, b: __m256i) -> __m256i;
                fn twice_and_half(self, a: __m256i, b: __m256i) -> __m256i;
                fn add_signed(self, a: __m256i, b: __m256i) -> __m256i;
                fn sub_signed(self, a: __m256i, b: __m256i) -> __m256i;
                fn eighth(self, lanes: __m256i) -> __m256i;
                fn half(self, lanes: __m256i) -> __m256i;
                fn weigh(self, lanes: __m256i) -> [__m256i; 3];
            }
        }
    };
}

filter_simd!(Avx2);
// Every CPU with AVX-512 F has AVX2.
filter_simd!(Avx512);

#[inline]
#[target_feature(enable = "avx2")]
fn join(luma: __m128i, chroma: __m128i) -> __m256i {
    _mm256_set_m128i(chroma, luma)
}

#[inline]
#[target_feature(enable = "avx2")]
fn split(lanes: __m256i) -> [__m128i; 2] {
    [_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat_lanes(lane: u8) -> __m256i {
    _mm256_set1_epi8(lane.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_eight(samples: &[u8; 8]) -> __m128i {
    // SAFETY: the array has the 8 bytes that are read.
    unsafe { _mm_loadl_epi64(samples.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_fours([first, second, third, fourth]: [[u8; 4]; 4]) -> __m128i {
    _mm_setr_epi32(
        i32::from_le_bytes(first),
        i32::from_le_bytes(second),
        i32::from_le_bytes(third),
        i32::from_le_bytes(fourth),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn merge_chroma(a: __m256i, b: __m256i) -> __m256i {
    _mm256_blend_epi32::<0b1111_0000>(a, _mm256_unpacklo_epi64(a, b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_lanes(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_lane_fours(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn zip_lane_eights(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn turn_lanes(lanes: __m256i) -> __m256i {
    _mm256_shuffle_epi8(lanes, _mm256_broadcastsi128_si256(load_samples(&TURN)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn and(a: __m256i, b: __m256i) -> __m256i {
    _mm256_and_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn without(a: __m256i, b: __m256i) -> __m256i {
    _mm256_andnot_si256(b, a)
}

#[inline]
#[target_feature(enable = "avx2")]
fn or(a: __m256i, b: __m256i) -> __m256i {
    _mm256_or_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn centre(lanes: __m256i) -> __m256i {
    _mm256_xor_si256(lanes, _mm256_set1_epi8(i8::MIN))
}

#[inline]
#[target_feature(enable = "avx2")]
fn distance(a: __m256i, b: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_subs_epu8(a, b), _mm256_subs_epu8(b, a))
}

#[inline]
#[target_feature(enable = "avx2")]
fn max(a: __m256i, b: __m256i) -> __m256i {
    _mm256_max_epu8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn at_most(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_subs_epu8(a, b), _mm256_setzero_si256())
}

#[inline]
#[target_feature(enable = "avx2")]
fn twice_and_half(a: __m256i, b: __m256i) -> __m256i {
    let half = _mm256_and_si256(_mm256_srli_epi16::<1>(b), _mm256_set1_epi8(0x7F));
    _mm256_adds_epu8(_mm256_adds_epu8(a, a), half)
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_signed(a: __m256i, b: __m256i) -> __m256i {
    _mm256_adds_epi8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub_signed(a: __m256i, b: __m256i) -> __m256i {
    _mm256_subs_epi8(a, b)
}

/// Of bytes that are 128 more, which is 16 eighths.
#[inline]
#[target_feature(enable = "avx2")]
fn eighth(lanes: __m256i) -> __m256i {
    let eighth = _mm256_and_si256(_mm256_srli_epi16::<3>(centre(lanes)), _mm256_set1_epi8(0x1F));
    _mm256_sub_epi8(eighth, _mm256_set1_epi8(16))
}

/// As the mean with 0, of bytes that are 128 more.
#[inline]
#[target_feature(enable = "avx2")]
fn half(lanes: __m256i) -> __m256i {
    centre(_mm256_avg_epu8(centre(lanes), _mm256_set1_epi8(i8::MIN)))
}

/// The products of pairs of bytes and 1 with the weight and 63.
#[inline]
#[target_feature(enable = "avx2")]
fn weigh_pairs(first: __m256i, second: __m256i, weight: i16) -> __m256i {
    let weights = _mm256_set1_epi16(63 << 8 | weight);
    let first = _mm256_srai_epi16::<7>(_mm256_maddubs_epi16(weights, first));
    let second = _mm256_srai_epi16::<7>(_mm256_maddubs_epi16(weights, second));
    _mm256_packs_epi16(first, second)
}

#[inline]
#[target_feature(enable = "avx2")]
fn weigh(lanes: __m256i) -> [__m256i; 3] {
    let [first, second] = zip_lanes(lanes, _mm256_set1_epi8(1));
    [weigh_pairs(first, second, 27), weigh_pairs(first, second, 18), weigh_pairs(first, second, 9)]
}
