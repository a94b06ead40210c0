//! AVX2: Haswell, Zen and later.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

mod bytes;
mod color;
mod floats;
mod gather;
mod jpeg;
mod mask;
pub(in crate::vector) mod vp8;

use super::jpeg::by_functions;
use super::shuffles::{FROM_PIXELS, TO_PIXELS};
use super::{Divisor, Fence, Line, RGB, ROWS, Rows, Simd};
use crate::kernels::resample::{PRECISION_BITS, ROUND};
pub(in crate::vector) use bytes::total;
use core::arch::x86_64::*;
use floats::{
    load_bf16, load_f16, load_f32, load_floats, normalize, round_bf16, round_f16, store_bf16,
    store_f16, store_f32, store_floats, stream_f32,
};

/// Proof that this CPU has the instructions of [`Level::Avx2`](crate::Level::Avx2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// The token, when the CPU has AVX2, FMA, the conversions F16C and the bit
    /// instructions of its generation.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }
}

/// Bits of the lower half of a coefficient.
const LOW_BITS: u32 = 12;

/// Sums for the lower and for the upper halves of the coefficients.
type Sums = [__m256i; 2];

impl Simd for Avx2 {
    const NAME: &'static str = "avx2";
    const LANES: usize = 8;
    const GROUP: usize = 4;
    const WINDOW: usize = 16;
    const TAPS: usize = 2;
    const PARTS: usize = 2;
    const COLUMNS: usize = 32;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        fn frame<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        // SAFETY: `self` exists, so `detect` saw these features on this CPU.
        unsafe { frame(f) }
    }

    #[inline(always)]
    fn split(weights: [i32; ROWS]) -> [u32; ROWS] {
        const LOW_SIGN: i32 = 1 << (LOW_BITS - 1);
        let high = weights.map(|weight| (weight + LOW_SIGN) >> LOW_BITS);
        let pair = |first: i32, second: i32| {
            (first & 0xFFFF).cast_unsigned() | (second << 16).cast_unsigned()
        };
        let low = |tap: usize| weights[tap] - (high[tap] << LOW_BITS);
        [pair(low(0), low(1)), pair(high[0], high[1]), pair(low(2), low(3)), pair(high[2], high[3])]
    }

    #[inline(always)]
    fn positions(first: usize, channels: usize) -> u32 {
        // A position with the top bit set reads as zero.
        const NONE: u8 = 0x80;
        let [first, second] = [first, first + channels].map(|byte| byte.to_le_bytes()[0]);
        u32::from_le_bytes([first, NONE, second, NONE])
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
        unsafe { add_rows(sums, rows, windows.map(|window| window as usize), step) }
    }

    #[inline(always)]
    fn store_rows(self, sums: Self::RowSums, out: &mut [&mut [u8]; ROWS], at: [u32; 2]) {
        // SAFETY: `self` exists, so `detect` saw the features of `store_rows` on this CPU.
        unsafe { store_rows(sums, out, at.map(|at| at as usize)) }
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

    const PIXELS: usize = 32;
    type Bytes = __m256i;

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

    const FLOATS: usize = 8;
    type Floats = __m256;

    #[inline(always)]
    fn load_floats(self, values: &[f32]) -> Self::Floats {
        // SAFETY: `self` exists, so `detect` saw the features of `load_floats` on this CPU.
        unsafe { load_floats(values) }
    }

    by_functions! {
        fn store_floats(self, values: __m256, out: &mut [f32]);
        fn load_f32(self, bytes: &[u8]) -> __m256;
        fn load_f16(self, bytes: &[u8]) -> __m256;
        fn load_bf16(self, bytes: &[u8]) -> __m256;
        fn round_f16(self, values: __m256) -> __m256;
        fn round_bf16(self, values: __m256) -> __m256;
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
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; 32] = bytes.try_into().expect("32 bytes");
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: __m256i, out: &mut [u8]) {
    let out: &mut [u8; 32] = out.try_into().expect("32 bytes");
    // SAFETY: `out` has the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) }
}

/// Waits until all stores of this thread are done, those past the caches included.
pub(super) fn wait_for_stores() {
    // SAFETY: every x86-64 has SSE.
    unsafe { _mm_sfence() }
}

/// Stores past the caches where `out` is aligned to its length.
#[inline]
#[target_feature(enable = "avx2")]
fn stream(bytes: __m256i, out: &mut [u8], _: &Fence) {
    let out: &mut [u8; 32] = out.try_into().expect("32 bytes");
    if !out.as_ptr().addr().is_multiple_of(32) {
        return store(bytes, out);
    }
    // SAFETY: `out` has the 32 bytes that are written and is aligned to them. The fence exists, so
    // this thread waits for the store before another can read the bytes; until then it does not
    // touch them again, which `Simd::stream_f32` asks of its callers.
    unsafe { _mm256_stream_si256(out.as_mut_ptr().cast(), bytes) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_half(bytes: __m128i, out: &mut [u8]) {
    let out: &mut [u8; 16] = out.try_into().expect("16 bytes");
    // SAFETY: `out` has the 16 bytes that are written.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_half(bytes: &[u8]) -> __m128i {
    let bytes: &[u8; 16] = bytes.try_into().expect("16 bytes");
    // SAFETY: the array has the 16 bytes that are read.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The `COLUMNS` bytes from `start` on of the rows of a group.
#[inline]
#[target_feature(enable = "avx2")]
fn load_columns(rows: &Rows<'_>, group: usize, start: usize) -> [__m256i; ROWS] {
    assert!(start <= rows.len && Avx2::COLUMNS <= rows.len - start, "the columns are in the rows");
    rows.offsets[group].map(|offset| {
        // SAFETY: the row begins at `offset` and is `rows.len` bytes long, all of them in `data` (by
        // `Rows::new`), and `start` is not above `rows.len`.
        let first = unsafe { rows.data.as_ptr().add(offset + start) };
        // SAFETY: the row has `COLUMNS` bytes from `start` on (the assertion above).
        unsafe { _mm256_loadu_si256(first.cast()) }
    })
}

/// Both halves of a line.
#[inline]
#[target_feature(enable = "avx2")]
fn load_line(line: &Line) -> [__m256i; 2] {
    let (first, second) = line.0.split_at(8);
    [first, second].map(|words| {
        // SAFETY: half a line has the 32 bytes that are read, and their alignment.
        unsafe { _mm256_load_si256(words.as_ptr().cast()) }
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn zeros() -> [Sums; ROWS] {
    [[_mm256_setzero_si256(); 2]; ROWS]
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_products(sums: &mut Sums, taps: __m256i, [low, high]: [__m256i; 2]) {
    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(taps, low));
    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(taps, high));
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_rows(
    mut sums: [Sums; ROWS],
    rows: [&[u8]; ROWS],
    [first, second]: [usize; 2],
    step: &[Line],
) -> [Sums; ROWS] {
    let [positions_low, high] = step else { unreachable!("a step has two lines") };
    let [positions, low] = load_line(positions_low);
    let [high, _] = load_line(high);
    for (sums, row) in sums.iter_mut().zip(rows) {
        let window = _mm256_inserti128_si256::<1>(
            _mm256_castsi128_si256(load_half(&row[first..first + Avx2::WINDOW])),
            load_half(&row[second..second + Avx2::WINDOW]),
        );
        add_products(sums, _mm256_shuffle_epi8(window, positions), [low, high]);
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_columns(
    mut sums: [Sums; ROWS],
    rows: [__m256i; ROWS],
    weights: &[u32; ROWS],
) -> [Sums; ROWS] {
    let zero = _mm256_setzero_si256();
    let weights = weights.map(|weight| _mm256_set1_epi32(weight.cast_signed()));
    for pair in 0..2 {
        let a = rows[2 * pair];
        let b = rows[2 * pair + 1];
        let low = _mm256_unpacklo_epi8(a, b);
        let high = _mm256_unpackhi_epi8(a, b);
        let taps = [
            _mm256_unpacklo_epi8(low, zero),
            _mm256_unpackhi_epi8(low, zero),
            _mm256_unpacklo_epi8(high, zero),
            _mm256_unpackhi_epi8(high, zero),
        ];
        for (sums, taps) in sums.iter_mut().zip(taps) {
            add_products(sums, taps, [weights[2 * pair], weights[2 * pair + 1]]);
        }
    }
    sums
}

/// The rounded sums as bytes: of each 128-bit lane, four of every argument in turn.
#[inline]
#[target_feature(enable = "avx2")]
fn pack(sums: [Sums; ROWS]) -> __m256i {
    let round = _mm256_set1_epi32(ROUND);
    let [a, b, c, d] = sums.map(|[low, high]| {
        let high = _mm256_slli_epi32::<{ LOW_BITS.cast_signed() }>(high);
        let sum = _mm256_add_epi32(high, _mm256_add_epi32(low, round));
        _mm256_srai_epi32::<{ PRECISION_BITS.cast_signed() }>(sum)
    });
    _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_rows(sums: [Sums; ROWS], out: &mut [&mut [u8]; ROWS], [first, second]: [usize; 2]) {
    let rows = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let packed = _mm256_permutevar8x32_epi32(pack(sums), rows);
    let packed = [
        _mm256_extract_epi64::<0>(packed),
        _mm256_extract_epi64::<1>(packed),
        _mm256_extract_epi64::<2>(packed),
        _mm256_extract_epi64::<3>(packed),
    ];
    for (out, packed) in out.iter_mut().zip(packed) {
        if second == first + Avx2::GROUP {
            out[first..first + Avx2::LANES].copy_from_slice(&packed.to_le_bytes());
        } else {
            let [a, b, c, d, e, f, g, h] = packed.to_le_bytes();
            out[first..first + Avx2::GROUP].copy_from_slice(&[a, b, c, d]);
            out[second..second + Avx2::GROUP].copy_from_slice(&[e, f, g, h]);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn reverse(bytes: __m256i) -> __m256i {
    let within = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let halves = _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(within));
    _mm256_permute2x128_si256::<0x01>(halves, halves)
}

/// The sum of three vectors shuffled within their halves; at most one has a byte in each place.
#[inline]
#[target_feature(enable = "avx2")]
fn merge(parts: [__m256i; RGB], shuffles: &[[u8; 16]; RGB]) -> __m256i {
    let [a, b, c] = [0, 1, 2].map(|part| {
        let shuffle = _mm256_broadcastsi128_si256(load_half(&shuffles[part]));
        _mm256_shuffle_epi8(parts[part], shuffle)
    });
    _mm256_or_si256(_mm256_or_si256(a, b), c)
}

#[inline]
#[target_feature(enable = "avx2")]
fn deinterleave(pixels: &[u8]) -> [__m256i; RGB] {
    let (first, second) = pixels.split_at(16 * RGB);
    let parts = [0, 16, 32].map(|start| {
        let first = _mm256_castsi128_si256(load_half(&first[start..start + 16]));
        _mm256_inserti128_si256::<1>(first, load_half(&second[start..start + 16]))
    });
    [0, 1, 2].map(|plane| merge(parts, &FROM_PIXELS[plane]))
}

#[inline]
#[target_feature(enable = "avx2")]
fn interleave(planes: [__m256i; RGB], pixels: &mut [u8]) {
    let (first, second) = pixels.split_at_mut(16 * RGB);
    for (part, shuffles) in TO_PIXELS.iter().enumerate() {
        let merged = merge(planes, shuffles);
        let place = part * 16..(part + 1) * 16;
        store_half(_mm256_castsi256_si128(merged), &mut first[place.clone()]);
        store_half(_mm256_extracti128_si256::<1>(merged), &mut second[place]);
    }
}
