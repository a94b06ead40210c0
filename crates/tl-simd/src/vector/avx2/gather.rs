//! AVX2 for warps: gathers, and packing by shuffles.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

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

/// Eight pixels as words, of which the lower `C` bytes count.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack<const C: usize>(bytes: &[u8]) -> __m256i {
    if C == 1 {
        let bytes: &[u8; LANES] = bytes.try_into().expect("8 bytes");
        return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*bytes)));
    }
    let bytes: &[u8; LANES * RGB] = bytes.try_into().expect("8 pixels");
    // SAFETY: the array has the 16 bytes that are read.
    let low = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    // SAFETY: the last 16 of the array's 24 bytes are read.
    let high = unsafe { _mm_loadu_si128(bytes[8..].as_ptr().cast()) };
    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
    // The last four of eight pixels begin at byte 12, which is byte 4 of the second half.
    let places = _mm256_setr_epi8(
        0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, 4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12,
        -1, 13, 14, 15, -1,
    );
    _mm256_shuffle_epi8(both, places)
}

/// Four squares of eight pixels on each side.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose<const C: usize>(
    data: &[u8],
    rows: &[usize; GATHERED],
    out: &mut [u8],
    lines: &[usize; GATHERED],
) {
    for (right, lines) in lines.as_chunks::<LANES>().0.iter().enumerate() {
        for (below, rows) in rows.as_chunks::<LANES>().0.iter().enumerate() {
            let mut tile = [_mm256_setzero_si256(); LANES];
            for (words, &row) in tile.iter_mut().zip(rows) {
                *words = unpack::<C>(&data[row + right * LANES * C..][..LANES * C]);
            }
            for (words, &line) in transpose_words(tile).into_iter().zip(lines) {
                store_packed(words, &mut out[line + below * LANES * C..][..LANES * C]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn transpose_words(mut tile: [__m256i; LANES]) -> [__m256i; LANES] {
    // Four rows at a time become columns within halves: of words, then of pairs.
    for [a, b, c, d] in tile.as_chunks_mut().0 {
        let ab = _mm256_unpacklo_epi32(*a, *b);
        let cd = _mm256_unpacklo_epi32(*c, *d);
        let ab_high = _mm256_unpackhi_epi32(*a, *b);
        let cd_high = _mm256_unpackhi_epi32(*c, *d);
        *a = _mm256_unpacklo_epi64(ab, cd);
        *b = _mm256_unpackhi_epi64(ab, cd);
        *c = _mm256_unpacklo_epi64(ab_high, cd_high);
        *d = _mm256_unpackhi_epi64(ab_high, cd_high);
    }
    for column in 0..4 {
        let above = tile[column];
        let below = tile[column + 4];
        tile[column] = _mm256_permute2x128_si256::<0x20>(above, below);
        tile[column + 4] = _mm256_permute2x128_si256::<0x31>(above, below);
    }
    tile
}

/// Stores the lower three bytes of each word, or the lowest where `out` has room for no more.
#[inline]
#[target_feature(enable = "avx2")]
fn store_packed(words: __m256i, out: &mut [u8]) {
    if let Ok(out) = <&mut [u8; LANES]>::try_from(&mut *out) {
        let bytes = _mm256_packus_epi32(words, words);
        let bytes = _mm256_permute4x64_epi64::<0b10_00>(bytes);
        let bytes = _mm256_castsi256_si128(_mm256_packus_epi16(bytes, bytes));
        *out = _mm_cvtsi128_si64(bytes).to_le_bytes();
        return;
    }
    let out: &mut [u8; LANES * RGB] = out.try_into().expect("8 pixels");
    // The lower three bytes of each word, then nothing; pixels of both halves side by side.
    let bytes = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    ));
    let order = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    let pixels = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(words, bytes), order);
    let (first, last) = out.split_at_mut(16);
    let start = _mm256_castsi256_si128(pixels);
    // SAFETY: `first` has the 16 bytes that are written.
    unsafe { _mm_storeu_si128(first.as_mut_ptr().cast(), start) };
    last.copy_from_slice(&_mm256_extract_epi64::<2>(pixels).to_le_bytes());
}

#[inline]
#[target_feature(enable = "avx2")]
fn pack(words: &[u32; GATHERED], out: &mut [u8; GATHERED * RGB]) {
    for (words, out) in words.as_chunks().0.iter().zip(out.as_chunks_mut::<{ LANES * RGB }>().0) {
        store_packed(load(words), out);
    }
}
