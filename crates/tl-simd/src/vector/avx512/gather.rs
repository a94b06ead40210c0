//! AVX-512 for warps: gathers, and packing by a byte permute.

#![expect(unsafe_code, reason = "vector instructions behind a token that proves the CPU has them")]

use super::Avx512;
use crate::vector::RGB;
use crate::vector::gather::{GATHERED, GatherSimd, Reachable};
use crate::vector::jpeg::by_functions;
use core::arch::x86_64::*;

impl GatherSimd for Avx512 {
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

/// Offsets that `bytes` can be read from, and by how many bits to shift what was read.
#[inline]
#[target_feature(enable = "avx512f")]
fn reach(data: Reachable<'_>, offsets: &[u32; GATHERED], bytes: usize) -> (__m512i, __m512i) {
    // SAFETY: the array has the 64 bytes that are read.
    let offsets = unsafe { _mm512_loadu_si512(offsets.as_ptr().cast()) };
    let last = i32::try_from(data.bytes().len() - bytes).unwrap_or(0);
    let near = _mm512_min_epu32(offsets, _mm512_set1_epi32(last));
    let missing = _mm512_sub_epi32(offsets, near);
    // More than 8 bytes shift everything out; the product must not wrap to less.
    let missing = _mm512_min_epu32(missing, _mm512_set1_epi32(8));
    (near, _mm512_slli_epi32::<3>(missing))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(data: Reachable<'_>, offsets: &[u32; GATHERED], out: &mut [u32; GATHERED]) {
    let (near, shift) = reach(data, offsets, size_of::<u32>());
    // SAFETY: `reach` limits every offset to four bytes before the end of the data, which
    // `Reachable` has, and whose length it keeps below 2^31.
    let words = unsafe { _mm512_i32gather_epi32::<1>(near, data.bytes().as_ptr().cast()) };
    let words = _mm512_srlv_epi32(words, shift);
    // SAFETY: `out` has the 64 bytes that are written.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), words) };
}

#[inline]
#[target_feature(enable = "avx512f")]
fn pairs<const STEP: usize>(
    data: Reachable<'_>,
    offsets: &[u32; GATHERED],
    [first, second]: [&mut [u32; GATHERED]; 2],
) {
    let (near, shift) = reach(data, offsets, size_of::<u64>());
    let next = _mm512_set1_epi64(8 * STEP.cast_signed() as i64);
    let halves = [
        (_mm512_castsi512_si256(near), _mm512_castsi512_si256(shift)),
        (_mm512_extracti64x4_epi64::<1>(near), _mm512_extracti64x4_epi64::<1>(shift)),
    ];
    let read = halves.map(|(near, shift)| {
        // SAFETY: `reach` limits every offset to eight bytes before the end of the data, which
        // `Reachable` has, and whose length it keeps below 2^31.
        let bytes = unsafe { _mm512_i32gather_epi64::<1>(near, data.bytes().as_ptr().cast()) };
        _mm512_srlv_epi64(bytes, _mm512_cvtepu32_epi64(shift))
    });
    let later = read.map(|bytes| _mm512_srlv_epi64(bytes, next));
    for (out, halves) in [(first, read), (second, later)] {
        let [low, high] = halves.map(|bytes| _mm512_cvtepi64_epi32(bytes));
        let words = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
        // SAFETY: `out` has the 64 bytes that are written.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), words) };
    }
}

/// `PACK[byte]` is where the byte of the packed pixels comes from.
const PACK: [u8; 64] = {
    let mut places = [0; 64];
    let mut byte = 0;
    while byte < GATHERED * RGB {
        places[byte] = (byte / RGB * 4 + byte % RGB).to_le_bytes()[0];
        byte += 1;
    }
    places
};

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn pack(words: &[u32; GATHERED], out: &mut [u8; GATHERED * RGB]) {
    // SAFETY: the array has the 64 bytes that are read.
    let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
    // SAFETY: the array has the 64 bytes that are read.
    let places = unsafe { _mm512_loadu_si512(PACK.as_ptr().cast()) };
    let pixels = _mm512_permutexvar_epi8(places, words);
    // SAFETY: the mask has a bit for each of the 48 bytes of `out`.
    unsafe {
        _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), (1 << (GATHERED * RGB)) - 1, pixels);
    };
}
