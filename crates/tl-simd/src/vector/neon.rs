//! NEON, the 128-bit vectors of 64-bit ARM: every coefficient fits a multiplication as it is.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

mod bytes;
mod color;
mod floats;
mod jpeg;
mod vp8;

use super::jpeg::by_functions;
use super::{Divisor, Line, RGB, ROWS, Rows, Simd};
use crate::kernels::resample::{PRECISION_BITS, ROUND};
use core::arch::aarch64::*;
use floats::{
    load_bf16, load_f16, load_f32, load_floats, normalize, round_bf16, round_f16, store_bf16,
    store_f16, store_f32, store_floats,
};
use std::arch::is_aarch64_feature_detected;

/// Proof that this CPU has the instructions of [`Level::Neon`](crate::Level::Neon).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// The token, when the CPU has NEON.
    #[must_use]
    pub fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

impl Simd for Neon {
    const NAME: &'static str = "neon";
    const LANES: usize = 8;
    const GROUP: usize = 4;
    const WINDOW: usize = 16;
    const TAPS: usize = 1;
    const PARTS: usize = 1;
    const COLUMNS: usize = 16;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "neon")]
        fn frame<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        // SAFETY: `self` exists, so `detect` saw this feature on this CPU.
        unsafe { frame(f) }
    }

    #[inline(always)]
    fn split(weights: [i32; ROWS]) -> [u32; ROWS] {
        weights.map(i32::cast_unsigned)
    }

    #[inline(always)]
    fn positions(first: usize, _: usize) -> u32 {
        // A position past the window reads as zero.
        const NONE: u8 = 0xFF;
        u32::from_le_bytes([first.to_le_bytes()[0], NONE, NONE, NONE])
    }

    type RowSums = [[int32x4_t; 2]; ROWS];

    #[inline(always)]
    fn row_sums(self) -> Self::RowSums {
        // SAFETY: `self` exists, so `detect` saw the features of `zeros` on this CPU.
        [unsafe { zeros() }; ROWS]
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

    type ColumnSums = [int32x4_t; 4];

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

    const PIXELS: usize = 16;
    type Bytes = uint8x16_t;

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

    const FLOATS: usize = 4;
    type Floats = float32x4_t;

    #[inline(always)]
    fn load_floats(self, values: &[f32]) -> Self::Floats {
        // SAFETY: `self` exists, so `detect` saw the features of `load_floats` on this CPU.
        unsafe { load_floats(values) }
    }

    by_functions! {
        fn store_floats(self, values: float32x4_t, out: &mut [f32]);
        fn load_f32(self, bytes: &[u8]) -> float32x4_t;
        fn load_f16(self, bytes: &[u8]) -> float32x4_t;
        fn load_bf16(self, bytes: &[u8]) -> float32x4_t;
        fn round_f16(self, values: float32x4_t) -> float32x4_t;
        fn round_bf16(self, values: float32x4_t) -> float32x4_t;
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
#[target_feature(enable = "neon")]
fn load(bytes: &[u8]) -> uint8x16_t {
    let bytes: &[u8; 16] = bytes.try_into().expect("16 bytes");
    // SAFETY: the array has the 16 bytes that are read.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(bytes: uint8x16_t, out: &mut [u8]) {
    let out: &mut [u8; 16] = out.try_into().expect("16 bytes");
    // SAFETY: `out` has the 16 bytes that are written.
    unsafe { vst1q_u8(out.as_mut_ptr(), bytes) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_half(bytes: uint8x8_t, out: &mut [u8]) {
    let out: &mut [u8; 8] = out.try_into().expect("8 bytes");
    // SAFETY: `out` has the 8 bytes that are written.
    unsafe { vst1_u8(out.as_mut_ptr(), bytes) }
}

/// Four words of a table.
#[inline]
#[target_feature(enable = "neon")]
fn load_words(words: &[u32]) -> uint32x4_t {
    let words: &[u32; 4] = words.try_into().expect("4 words");
    // SAFETY: the array has the 4 words that are read.
    unsafe { vld1q_u32(words.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn zeros<const N: usize>() -> [int32x4_t; N] {
    [vdupq_n_s32(0); N]
}

#[inline]
#[target_feature(enable = "neon")]
fn add_rows(
    mut sums: [[int32x4_t; 2]; ROWS],
    rows: [&[u8]; ROWS],
    windows: [usize; 2],
    step: &[Line],
) -> [[int32x4_t; 2]; ROWS] {
    let [Line(words)] = step else { unreachable!("a step has one line") };
    for (group, window) in windows.into_iter().enumerate() {
        let positions = vreinterpretq_u8_u32(load_words(&words[group * 4..group * 4 + 4]));
        let weights = vreinterpretq_s32_u32(load_words(&words[group * 4 + 8..group * 4 + 12]));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let taps = vqtbl1q_u8(load(&row[window..window + Neon::WINDOW]), positions);
            sums[group] = vmlaq_s32(sums[group], vreinterpretq_s32_u8(taps), weights);
        }
    }
    sums
}

/// The `COLUMNS` bytes from `start` on of the rows of a group.
#[inline]
#[target_feature(enable = "neon")]
fn load_columns(rows: &Rows<'_>, group: usize, start: usize) -> [uint8x16_t; ROWS] {
    assert!(start <= rows.len && Neon::COLUMNS <= rows.len - start, "the columns are in the rows");
    rows.offsets[group].map(|offset| {
        // SAFETY: the row begins at `offset` and is `rows.len` bytes long, all of them in `data` (by
        // `Rows::new`), and `start` is not above `rows.len`.
        let first = unsafe { rows.data.as_ptr().add(offset + start) };
        // SAFETY: the row has `COLUMNS` bytes from `start` on (the assertion above).
        unsafe { vld1q_u8(first) }
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn add_columns(
    mut sums: [int32x4_t; 4],
    rows: [uint8x16_t; ROWS],
    weights: &[u32; ROWS],
) -> [int32x4_t; 4] {
    for (row, weight) in rows.into_iter().zip(weights) {
        let low = vmovl_u8(vget_low_u8(row));
        let high = vmovl_high_u8(row);
        let taps = [
            vmovl_u16(vget_low_u16(low)),
            vmovl_high_u16(low),
            vmovl_u16(vget_low_u16(high)),
            vmovl_high_u16(high),
        ];
        for (sum, taps) in sums.iter_mut().zip(taps) {
            *sum = vmlaq_n_s32(*sum, vreinterpretq_s32_u32(taps), weight.cast_signed());
        }
    }
    sums
}

/// The rounded sums as bytes.
#[inline]
#[target_feature(enable = "neon")]
fn pack_half(sums: [int32x4_t; 2]) -> uint8x8_t {
    let [low, high] = sums.map(|sum| {
        let rounded = vaddq_s32(sum, vdupq_n_s32(ROUND));
        vqmovn_s32(vshrq_n_s32::<{ PRECISION_BITS.cast_signed() }>(rounded))
    });
    vqmovun_s16(vcombine_s16(low, high))
}

#[inline]
#[target_feature(enable = "neon")]
fn pack([a, b, c, d]: [int32x4_t; 4]) -> uint8x16_t {
    vcombine_u8(pack_half([a, b]), pack_half([c, d]))
}

#[inline]
#[target_feature(enable = "neon")]
fn store_rows(
    sums: [[int32x4_t; 2]; ROWS],
    out: &mut [&mut [u8]; ROWS],
    [first, second]: [usize; 2],
) {
    for (out, sums) in out.iter_mut().zip(sums) {
        let packed = pack_half(sums);
        if second == first + Neon::GROUP {
            store_half(packed, &mut out[first..first + Neon::LANES]);
        } else {
            let words = vreinterpret_u32_u8(packed);
            let [low, high] = [vget_lane_u32::<0>(words), vget_lane_u32::<1>(words)];
            out[first..first + Neon::GROUP].copy_from_slice(&low.to_le_bytes());
            out[second..second + Neon::GROUP].copy_from_slice(&high.to_le_bytes());
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn reverse(bytes: uint8x16_t) -> uint8x16_t {
    let halves = vrev64q_u8(bytes);
    vextq_u8::<8>(halves, halves)
}

#[inline]
#[target_feature(enable = "neon")]
fn deinterleave(pixels: &[u8]) -> [uint8x16_t; RGB] {
    let pixels: &[u8; 16 * RGB] = pixels.try_into().expect("16 pixels");
    // SAFETY: the array has the 48 bytes that are read.
    let planes = unsafe { vld3q_u8(pixels.as_ptr()) };
    [planes.0, planes.1, planes.2]
}

#[inline]
#[target_feature(enable = "neon")]
fn interleave([r, g, b]: [uint8x16_t; RGB], pixels: &mut [u8]) {
    let pixels: &mut [u8; 16 * RGB] = pixels.try_into().expect("16 pixels");
    // SAFETY: the array has the 48 bytes that are written.
    unsafe { vst3q_u8(pixels.as_mut_ptr(), uint8x16x3_t(r, g, b)) }
}

/// A gather reads one place after the other in any case.
impl super::gather::GatherSimd for Neon {}

impl super::mask::MaskSimd for Neon {}
