//! AVX2 for warps: gathers, and packing by shuffles.

#![expect(unsafe_code, reason = "vector instructions behind a token that proves the CPU has them")]

use super::Avx2;
use crate::vector::RGB;
use crate::vector::gather::{GATHERED, GatherSimd, Reachable};
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

/// Words of a register.
const LANES: usize = 8;

impl GatherSimd for Avx2 {
    by_functions! {
        fn words(self, data: Reachable<'_>, offsets: &[u32; GATHERED], out: &mut [u32; GATHERED]);
        fn pack(self, words: &[u32; GATHERED], out: &mut [u8; GATHERED * RGB]);
    }

    #[inline(always)]
    fn pairs<const STEP: usize>(
        self,
        data: Reachable<'_>,
        offsets: &[u32; GATHERED],
        out: [&mut [u32; GATHERED]; 2],
    ) {
        // SAFETY: `self` exists, so `detect` saw the features of `pairs` on this CPU.
        unsafe { pairs::<STEP>(data, offsets, out) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u32; LANES]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: __m256i, out: &mut [u32; LANES]) {
    // SAFETY: `out` has the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), words) }
}

/// Offsets that `bytes` can be read from, and by how many bits to shift what was read.
#[inline]
#[target_feature(enable = "avx2")]
fn reach(data: Reachable<'_>, offsets: &[u32; LANES], bytes: usize) -> (__m256i, __m256i) {
    let offsets = load(offsets);
    let last = i32::try_from(data.bytes().len() - bytes).unwrap_or(0);
    let near = _mm256_min_epu32(offsets, _mm256_set1_epi32(last));
    let missing = _mm256_sub_epi32(offsets, near);
    // More than 8 bytes shift everything out; the product must not wrap to less.
    let missing = _mm256_min_epu32(missing, _mm256_set1_epi32(8));
    (near, _mm256_slli_epi32::<3>(missing))
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(data: Reachable<'_>, offsets: &[u32; GATHERED], out: &mut [u32; GATHERED]) {
    for (offsets, out) in offsets.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        let (near, shift) = reach(data, offsets, size_of::<u32>());
        // SAFETY: `reach` limits every offset to four bytes before the end of the data, which
        // `Reachable` has, and whose length it keeps below 2^31.
        let words = unsafe { _mm256_i32gather_epi32::<1>(data.bytes().as_ptr().cast(), near) };
        store(_mm256_srlv_epi32(words, shift), out);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn pairs<const STEP: usize>(
    data: Reachable<'_>,
    offsets: &[u32; GATHERED],
    [first, second]: [&mut [u32; GATHERED]; 2],
) {
    let next = _mm256_set1_epi64x(8 * STEP.cast_signed() as i64);
    let outs = first.as_chunks_mut().0.iter_mut().zip(second.as_chunks_mut().0);
    for (offsets, (first, second)) in offsets.as_chunks().0.iter().zip(outs) {
        let (near, shift) = reach(data, offsets, size_of::<u64>());
        let halves = [
            (_mm256_castsi256_si128(near), _mm256_castsi256_si128(shift)),
            (_mm256_extracti128_si256::<1>(near), _mm256_extracti128_si256::<1>(shift)),
        ];
        let read = halves.map(|(near, shift)| {
            // SAFETY: `reach` limits every offset to eight bytes before the end of the data,
            // which `Reachable` has, and whose length it keeps below 2^31.
            let bytes = unsafe { _mm256_i32gather_epi64::<1>(data.bytes().as_ptr().cast(), near) };
            _mm256_srlv_epi64(bytes, _mm256_cvtepu32_epi64(shift))
        });
        store(low_words(read), first);
        store(low_words(read.map(|bytes| _mm256_srlv_epi64(bytes, next))), second);
    }
}

/// The lower halves of eight numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn low_words([low, high]: [__m256i; 2]) -> __m256i {
    const EVEN: i32 = 0b10_00_10_00;
    let mixed = _mm256_shuffle_ps::<EVEN>(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(mixed))
}

#[inline]
#[target_feature(enable = "avx2")]
fn pack(words: &[u32; GATHERED], out: &mut [u8; GATHERED * RGB]) {
    // The lower three bytes of each word, then nothing; pixels of both halves side by side.
    let bytes = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    ));
    let order = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    for (words, out) in words.as_chunks().0.iter().zip(out.as_chunks_mut::<{ LANES * RGB }>().0) {
        let pixels = _mm256_shuffle_epi8(load(words), bytes);
        let pixels = _mm256_permutevar8x32_epi32(pixels, order);
        let mut all = [0; 32];
        // SAFETY: the array has the 32 bytes that are written.
        unsafe { _mm256_storeu_si256(all.as_mut_ptr().cast(), pixels) };
        out.copy_from_slice(&all[..LANES * RGB]);
    }
}
