//! AVX-512 with byte permutes (VBMI) and byte dot products (VNNI): Ice Lake, Zen 4 and later.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

mod bytes;
mod color;
mod floats;
mod gather;
mod jpeg;
mod vp8;

use super::jpeg::by_functions;
use super::{Divisor, Fence, Line, RGB, ROWS, Rows, Simd};
use crate::kernels::resample::{PRECISION_BITS, ROUND};
use core::arch::x86_64::*;
use floats::{
    load_bf16, load_f16, load_f32, load_floats, normalize, round_bf16, round_f16, store_bf16,
    store_f16, store_f32, store_floats, stream_f32,
};

/// Proof that this CPU has the instructions of [`Level::Avx512`](crate::Level::Avx512).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512(());

impl Avx512 {
    /// The token, when the CPU has AVX-512 F, BW, DQ, VL, VBMI and VNNI and the bit instructions of
    /// its generation.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }
}

/// The three signed bytes of a coefficient, lowest first: each lane's sums for that byte.
type Sums = [__m512i; 3];

impl Simd for Avx512 {
    const NAME: &'static str = "avx512";
    const LANES: usize = 16;
    const GROUP: usize = 16;
    const WINDOW: usize = 64;
    const TAPS: usize = 4;
    const PARTS: usize = 3;
    const COLUMNS: usize = 64;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        fn frame<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        // SAFETY: `self` exists, so `detect` saw these features on this CPU.
        unsafe { frame(f) }
    }

    #[inline(always)]
    fn split(weights: [i32; ROWS]) -> [u32; ROWS] {
        let mut parts = [0; ROWS];
        let mut rest = weights;
        for part in parts.iter_mut().take(Self::PARTS) {
            let digits = rest.map(|rest| i32::from(rest.to_le_bytes()[0].cast_signed()));
            *part = u32::from_le_bytes(digits.map(|digit| digit.to_le_bytes()[0]));
            for (rest, digit) in rest.iter_mut().zip(digits) {
                *rest = (*rest - digit) >> 8;
            }
        }
        parts
    }

    #[inline(always)]
    fn positions(first: usize, channels: usize) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|tap| (first + tap * channels).to_le_bytes()[0]))
    }

    type RowSums = [Sums; ROWS];

    #[inline(always)]
    fn row_sums(self) -> Self::RowSums {
        // SAFETY: `self` exists, so `detect` saw the features of `zeros` on this CPU.
        unsafe { zeros() }
    }

    #[inline(always)]
    fn add_rows(
        self,
        sums: Self::RowSums,
        rows: [&[u8]; ROWS],
        windows: [u32; 2],
        step: &[Line],
    ) -> Self::RowSums {
        // SAFETY: `self` exists, so `detect` saw the features of `add_rows` on this CPU.
        unsafe { add_rows(sums, rows, windows[0] as usize, step) }
    }

    #[inline(always)]
    fn store_rows(self, sums: Self::RowSums, out: &mut [&mut [u8]; ROWS], at: [u32; 2]) {
        // SAFETY: `self` exists, so `detect` saw the features of `store_rows` on this CPU.
        unsafe { store_rows(sums, out, at[0] as usize) }
    }

    type ColumnSums = [Sums; ROWS];

    #[inline(always)]
    fn column_sums(self) -> Self::ColumnSums {
        // SAFETY: `self` exists, so `detect` saw the features of `zeros` on this CPU.
        unsafe { zeros() }
    }

    #[inline(always)]
    fn add_columns(
        self,
        sums: Self::ColumnSums,
        rows: &Rows<'_>,
        group: usize,
        start: usize,
        weights: &[u32; ROWS],
    ) -> Self::ColumnSums {
        // SAFETY: `self` exists, so `detect` saw the features of `load_columns` on this CPU.
        let bytes = unsafe { load_columns(rows, group, start) };
        // SAFETY: `self` exists, so `detect` saw the features of `add_columns` on this CPU.
        unsafe { add_columns(sums, bytes, weights) }
    }

    #[inline(always)]
    fn store_columns(self, sums: Self::ColumnSums, out: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `pack` on this CPU.
        let packed = unsafe { pack(sums) };
        self.store_bytes(packed, out);
    }

    const PIXELS: usize = 64;
    type Bytes = __m512i;

    #[inline(always)]
    fn load_bytes(self, bytes: &[u8]) -> Self::Bytes {
        // SAFETY: `self` exists, so `detect` saw the features of `load` on this CPU.
        unsafe { load(bytes) }
    }

    #[inline(always)]
    fn store_bytes(self, bytes: Self::Bytes, out: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `store` on this CPU.
        unsafe { store(bytes, out) }
    }

    #[inline(always)]
    fn reverse(self, bytes: Self::Bytes) -> Self::Bytes {
        // SAFETY: `self` exists, so `detect` saw the features of `reverse` on this CPU.
        unsafe { reverse(bytes) }
    }

    const MIRRORED: usize = 21;

    #[inline(always)]
    fn mirror(self, pixels: &[u8], out: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `mirror` on this CPU.
        unsafe { mirror(pixels, out) }
    }

    #[inline(always)]
    fn deinterleave(self, pixels: &[u8]) -> [Self::Bytes; RGB] {
        // SAFETY: `self` exists, so `detect` saw the features of `deinterleave` on this CPU.
        unsafe { deinterleave(pixels) }
    }

    #[inline(always)]
    fn interleave(self, planes: [Self::Bytes; RGB], pixels: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `interleave` on this CPU.
        unsafe { interleave(planes, pixels) }
    }

    const FLOATS: usize = 16;
    type Floats = __m512;

    #[inline(always)]
    fn load_floats(self, values: &[f32]) -> Self::Floats {
        // SAFETY: `self` exists, so `detect` saw the features of `load_floats` on this CPU.
        unsafe { load_floats(values) }
    }

    by_functions! {
        fn store_floats(self, values: __m512, out: &mut [f32]);
        fn load_f32(self, bytes: &[u8]) -> __m512;
        fn load_f16(self, bytes: &[u8]) -> __m512;
        fn load_bf16(self, bytes: &[u8]) -> __m512;
        fn round_f16(self, values: __m512) -> __m512;
        fn round_bf16(self, values: __m512) -> __m512;
    }

    #[inline(always)]
    fn normalize(self, samples: &[u8], scale: f32, by: Divisor<Self::Floats>) -> Self::Floats {
        // SAFETY: `self` exists, so `detect` saw the features of `normalize` on this CPU.
        unsafe { normalize(samples, scale, by) }
    }

    #[inline(always)]
    fn store_f32(self, values: Self::Floats, out: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `store_f32` on this CPU.
        unsafe { store_f32(values, out) }
    }

    #[inline(always)]
    fn stream_f32(self, values: Self::Floats, out: &mut [u8], fence: &Fence) {
        // SAFETY: `self` exists, so `detect` saw the features of `stream_f32` on this CPU.
        unsafe { stream_f32(values, out, fence) }
    }

    #[inline(always)]
    fn store_f16(self, values: Self::Floats, out: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `store_f16` on this CPU.
        unsafe { store_f16(values, out) }
    }

    #[inline(always)]
    fn store_bf16(self, values: Self::Floats, out: &mut [u8]) {
        // SAFETY: `self` exists, so `detect` saw the features of `store_bf16` on this CPU.
        unsafe { store_bf16(values, out) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8]) -> __m512i {
    let bytes: &[u8; 64] = bytes.try_into().expect("64 bytes");
    // SAFETY: the array has the 64 bytes that are read.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(bytes: __m512i, out: &mut [u8]) {
    let out: &mut [u8; 64] = out.try_into().expect("64 bytes");
    // SAFETY: `out` has the 64 bytes that are written.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bytes) }
}

/// Stores past the caches where `out` is aligned to its length.
#[inline]
#[target_feature(enable = "avx512f")]
fn stream(bytes: __m512i, out: &mut [u8], _: &Fence) {
    let out: &mut [u8; 64] = out.try_into().expect("64 bytes");
    if !out.as_ptr().addr().is_multiple_of(64) {
        return store(bytes, out);
    }
    // SAFETY: `out` has the 64 bytes that are written and is aligned to them. The fence exists, so
    // this thread waits for the store before another can read the bytes; until then it does not
    // touch them again, which `Simd::stream_f32` asks of its callers.
    unsafe { _mm512_stream_si512(out.as_mut_ptr().cast(), bytes) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_half(bytes: __m256i, out: &mut [u8]) {
    let out: &mut [u8; 32] = out.try_into().expect("32 bytes");
    // SAFETY: `out` has the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) }
}

/// The `COLUMNS` bytes from `start` on of the rows of a group.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_columns(rows: &Rows<'_>, group: usize, start: usize) -> [__m512i; ROWS] {
    assert!(
        start <= rows.len && Avx512::COLUMNS <= rows.len - start,
        "the columns are in the rows"
    );
    rows.offsets[group].map(|offset| {
        // SAFETY: the row begins at `offset` and is `rows.len` bytes long, all of them in `data` (by
        // `Rows::new`), and `start` is not above `rows.len`.
        let first = unsafe { rows.data.as_ptr().add(offset + start) };
        // SAFETY: the row has `COLUMNS` bytes from `start` on (the assertion above).
        unsafe { _mm512_loadu_si512(first.cast()) }
    })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_line(line: &Line) -> __m512i {
    // SAFETY: a line has the 64 bytes that are read, and their alignment.
    unsafe { _mm512_load_si512(core::ptr::from_ref(line).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zeros() -> [Sums; ROWS] {
    [[_mm512_setzero_si512(); 3]; ROWS]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
fn add_rows(
    mut sums: [Sums; ROWS],
    rows: [&[u8]; ROWS],
    offset: usize,
    step: &[Line],
) -> [Sums; ROWS] {
    let [positions, low, middle, high] = step else { unreachable!("a step has four lines") };
    let positions = load_line(positions);
    let weights = [load_line(low), load_line(middle), load_line(high)];
    for (sums, row) in sums.iter_mut().zip(rows) {
        let window = load(&row[offset..offset + Avx512::WINDOW]);
        let taps = _mm512_permutexvar_epi8(positions, window);
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = _mm512_dpbusd_epi32(*sum, taps, weight);
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add_columns(
    mut sums: [Sums; ROWS],
    rows: [__m512i; ROWS],
    weights: &[u32; ROWS],
) -> [Sums; ROWS] {
    let [a, b, c, d] = rows;
    let ab = _mm512_unpacklo_epi8(a, b);
    let cd = _mm512_unpacklo_epi8(c, d);
    let ab_high = _mm512_unpackhi_epi8(a, b);
    let cd_high = _mm512_unpackhi_epi8(c, d);
    let taps = [
        _mm512_unpacklo_epi16(ab, cd),
        _mm512_unpackhi_epi16(ab, cd),
        _mm512_unpacklo_epi16(ab_high, cd_high),
        _mm512_unpackhi_epi16(ab_high, cd_high),
    ];
    for (part, &weight) in weights.iter().enumerate().take(Avx512::PARTS) {
        let weight = _mm512_set1_epi32(weight.cast_signed());
        for (sums, taps) in sums.iter_mut().zip(taps) {
            sums[part] = _mm512_dpbusd_epi32(sums[part], taps, weight);
        }
    }
    sums
}

/// The rounded sums as bytes: of each 128-bit lane, four of every argument in turn.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn pack(sums: [Sums; ROWS]) -> __m512i {
    let round = _mm512_set1_epi32(ROUND);
    let [a, b, c, d] = sums.map(|[low, middle, high]| {
        let upper = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), middle);
        let sum = _mm512_add_epi32(_mm512_slli_epi32::<8>(upper), _mm512_add_epi32(low, round));
        _mm512_srai_epi32::<PRECISION_BITS>(sum)
    });
    _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_rows(sums: [Sums; ROWS], out: &mut [&mut [u8]; ROWS], at: usize) {
    let rows = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let packed = _mm512_permutexvar_epi32(rows, pack(sums));
    let packed = [
        _mm512_extracti32x4_epi32::<0>(packed),
        _mm512_extracti32x4_epi32::<1>(packed),
        _mm512_extracti32x4_epi32::<2>(packed),
        _mm512_extracti32x4_epi32::<3>(packed),
    ];
    for (out, packed) in out.iter_mut().zip(packed) {
        let out = &mut out[at..at + Avx512::LANES];
        // SAFETY: `out` has the 16 bytes that are written.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), packed) };
    }
}

/// A choice of 64 bytes out of three vectors, as positions in all 192 bytes of them.
struct Pick {
    positions: [u8; 64],
    /// The bytes that come out of the third vector.
    from_third: u64,
}

impl Pick {
    const NONE: Self = Self { positions: [0; 64], from_third: 0 };

    const fn set(&mut self, byte: usize, position: usize) {
        self.positions[byte] = position.to_le_bytes()[0];
        if position >= 128 {
            self.from_third |= 1 << byte;
        }
    }
}

/// Each plane's bytes out of three vectors of pixels.
static FROM_PIXELS: [Pick; RGB] = {
    let mut picks = [Pick::NONE; RGB];
    let mut byte = 0;
    while byte < 64 * RGB {
        picks[byte % RGB].set(byte / RGB, byte);
        byte += 1;
    }
    picks
};

/// Each vector of pixels out of three planes.
static TO_PIXELS: [Pick; RGB] = {
    let mut picks = [Pick::NONE; RGB];
    let mut byte = 0;
    while byte < 64 * RGB {
        picks[byte / 64].set(byte % 64, byte % RGB * 64 + byte / RGB);
        byte += 1;
    }
    picks
};

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn pick([a, b, c]: [__m512i; RGB], pick: &Pick) -> __m512i {
    let positions = load(&pick.positions);
    // Either permute reads as many low bits of a position as it needs.
    let first_two = _mm512_permutex2var_epi8(a, positions, b);
    _mm512_mask_permutexvar_epi8(first_two, pick.from_third, positions, c)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn deinterleave(pixels: &[u8]) -> [__m512i; RGB] {
    let parts = [0, 64, 128].map(|start| load(&pixels[start..start + 64]));
    [0, 1, 2].map(|plane| pick(parts, &FROM_PIXELS[plane]))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn interleave(planes: [__m512i; RGB], pixels: &mut [u8]) {
    for (part, pixels) in TO_PIXELS.iter().zip(pixels.chunks_exact_mut(64)) {
        store(pick(planes, part), pixels);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn reverse(bytes: __m512i) -> __m512i {
    const LAST_FIRST: [u8; 64] = {
        let mut positions = [0; 64];
        let mut byte = 0_usize;
        while byte < 64 {
            positions[byte] = (63 - byte).to_le_bytes()[0];
            byte += 1;
        }
        positions
    };
    _mm512_permutexvar_epi8(load(&LAST_FIRST), bytes)
}

/// 21 pixels in one shuffle, where planes would take fifteen for 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn mirror(pixels: &[u8], out: &mut [u8]) {
    const BYTES: usize = Avx512::MIRRORED * RGB;
    const LOADED: __mmask64 = (1 << BYTES) - 1;
    /// Byte `b` of pixel `20 - p` for byte `b` of pixel `p`.
    const LAST_PIXEL_FIRST: [u8; 64] = {
        let mut positions = [0; 64];
        let mut byte = 0_usize;
        while byte < BYTES {
            positions[byte] = (BYTES - RGB - byte / RGB * RGB + byte % RGB).to_le_bytes()[0];
            byte += 1;
        }
        positions
    };
    let pixels: &[u8; BYTES] = pixels.try_into().expect("21 pixels");
    let out: &mut [u8; BYTES] = out.try_into().expect("21 pixels");
    // SAFETY: the mask has the 63 bytes of the array.
    let pixels = unsafe { _mm512_maskz_loadu_epi8(LOADED, pixels.as_ptr().cast()) };
    let mirrored = _mm512_permutexvar_epi8(load(&LAST_PIXEL_FIRST), pixels);
    // SAFETY: the mask has the 63 bytes of the array.
    unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), LOADED, mirrored) }
}
