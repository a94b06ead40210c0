//! AVX-512 for warps: gathers, and packing by a byte permute.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

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

    #[inline(always)]
    fn transpose<const C: usize>(
        self,
        data: &[u8],
        rows: &[usize; GATHERED],
        out: &mut [u8],
        lines: &[usize; GATHERED],
    ) {
        // SAFETY: `self` exists, so `detect` saw the features of `transpose` on this CPU.
        unsafe { transpose::<C>(data, rows, out, lines) }
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

/// `UNPACK[byte]` is where the byte of words comes from whose lower three bytes are pixels.
const UNPACK: [u8; 64] = {
    let mut places = [0; 64];
    let mut byte = 0_usize;
    while byte < 64 {
        places[byte] = (byte / 4 * RGB + byte % 4).to_le_bytes()[0];
        byte += 1;
    }
    places
};

/// Pixels as words, of which the lower `C` bytes count.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack<const C: usize>(bytes: &[u8]) -> __m512i {
    if C == 1 {
        let bytes: &[u8; GATHERED] = bytes.try_into().expect("16 bytes");
        // SAFETY: the array has the 16 bytes that are read.
        let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        return _mm512_cvtepu8_epi32(bytes);
    }
    let bytes: &[u8; GATHERED * RGB] = bytes.try_into().expect("16 pixels");
    // SAFETY: the mask has a bit for each of the 48 bytes of the array.
    let pixels =
        unsafe { _mm512_maskz_loadu_epi8((1 << (GATHERED * RGB)) - 1, bytes.as_ptr().cast()) };
    // SAFETY: the array has the 64 bytes that are read.
    let places = unsafe { _mm512_loadu_si512(UNPACK.as_ptr().cast()) };
    _mm512_permutexvar_epi8(places, pixels)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn transpose<const C: usize>(
    data: &[u8],
    rows: &[usize; GATHERED],
    out: &mut [u8],
    lines: &[usize; GATHERED],
) {
    let mut tile = [_mm512_setzero_si512(); GATHERED];
    for (words, &row) in tile.iter_mut().zip(rows) {
        *words = unpack::<C>(&data[row..][..GATHERED * C]);
    }
    // Four rows at a time become columns within parts of 128 bits: of words, then of pairs.
    for [a, b, c, d] in tile.as_chunks_mut().0 {
        let ab = _mm512_unpacklo_epi32(*a, *b);
        let cd = _mm512_unpacklo_epi32(*c, *d);
        let ab_high = _mm512_unpackhi_epi32(*a, *b);
        let cd_high = _mm512_unpackhi_epi32(*c, *d);
        *a = _mm512_unpacklo_epi64(ab, cd);
        *b = _mm512_unpackhi_epi64(ab, cd);
        *c = _mm512_unpacklo_epi64(ab_high, cd_high);
        *d = _mm512_unpackhi_epi64(ab_high, cd_high);
    }
    // The parts of vectors 4, 8 and 12 apart are rows of the result.
    for column in 0..4 {
        let [a, b, c, d] = [tile[column], tile[column + 4], tile[column + 8], tile[column + 12]];
        let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
        let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
        let even_low = _mm512_shuffle_i32x4::<0b10_00_10_00>(c, d);
        let odd_low = _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d);
        tile[column] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even, even_low);
        tile[column + 4] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd, odd_low);
        tile[column + 8] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even, even_low);
        tile[column + 12] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd, odd_low);
    }
    for (words, &line) in tile.into_iter().zip(lines) {
        let out = &mut out[line..][..GATHERED * C];
        if let Ok(out) = <&mut [u8; GATHERED * RGB]>::try_from(&mut *out) {
            store_packed(words, out);
        } else {
            let out: &mut [u8; GATHERED] = out.try_into().expect("16 bytes");
            let bytes = _mm512_cvtepi32_epi8(words);
            // SAFETY: `out` has the 16 bytes that are written.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) };
        }
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
    store_packed(words, out);
}

/// Stores the lower three bytes of each word.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn store_packed(words: __m512i, out: &mut [u8; GATHERED * RGB]) {
    // SAFETY: the array has the 64 bytes that are read.
    let places = unsafe { _mm512_loadu_si512(PACK.as_ptr().cast()) };
    let pixels = _mm512_permutexvar_epi8(places, words);
    // SAFETY: the mask has a bit for each of the 48 bytes of `out`.
    unsafe {
        _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), (1 << (GATHERED * RGB)) - 1, pixels);
    };
}
