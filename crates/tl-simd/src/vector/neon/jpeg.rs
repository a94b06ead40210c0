//! NEON for the JPEG kernels: one block at a time.

use super::{Neon, store, store_half};
use crate::kernels::jpeg::{Block, SIDE};
use crate::vector::jpeg::{JpegSimd, by_functions};
use core::arch::aarch64::*;

/// The numbers of the first half, and of the second.
type Sums = [int32x4_t; 2];

impl JpegSimd for Neon {
    const BLOCKS: usize = 1;
    type Words = int16x8_t;
    type Sums = Sums;

    by_functions! {
        fn dequantize(self, blocks: &[Block], step: usize, quantizer: &[u16; SIDE * SIDE]) -> [int16x8_t; SIDE];
        fn splat_word(self, word: i16) -> int16x8_t;
        fn splat_sum(self, sum: i32) -> Sums;
        fn add(self, a: int16x8_t, b: int16x8_t) -> int16x8_t;
        fn sub(self, a: int16x8_t, b: int16x8_t) -> int16x8_t;
        fn shift_right<const N: i32>(self, words: int16x8_t) -> int16x8_t;
        fn scale(self, words: int16x8_t, factor: i16) -> int16x8_t;
        fn any_wide(self, words: int16x8_t) -> bool;
        fn add_sums(self, a: Sums, b: Sums) -> Sums;
        fn sub_sums(self, a: Sums, b: Sums) -> Sums;
        fn rotate(self, sums: Sums, a: int16x8_t, b: int16x8_t, weights: [i16; 2]) -> Sums;
        fn narrow<const N: i32>(self, sums: Sums) -> int16x8_t;
        fn zip_bytes(self, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2];
        fn zip_words(self, a: int16x8_t, b: int16x8_t) -> [int16x8_t; 2];
        fn zip_pairs(self, a: int16x8_t, b: int16x8_t) -> [int16x8_t; 2];
        fn to_words(self, bytes: uint8x16_t) -> int16x8_t;
        fn to_bytes(self, words: int16x8_t) -> uint8x16_t;
        fn widen(self, bytes: uint8x16_t) -> [int16x8_t; 2];
        fn pack(self, a: int16x8_t, b: int16x8_t) -> uint8x16_t;
        fn pack_centred(self, a: int16x8_t, b: int16x8_t) -> uint8x16_t;
        fn load_words(self, bytes: &[u8]) -> int16x8_t;
        fn store_words(self, words: int16x8_t, out: &mut [u8]);
        fn store_pairs(self, first: int16x8_t, second: int16x8_t, out: &mut [u8]);
        fn store_halves(self, bytes: uint8x16_t, upper: &mut [u8], lower: &mut [u8]);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn dequantize(blocks: &[Block], _: usize, quantizer: &[u16; SIDE * SIDE]) -> [int16x8_t; SIDE] {
    let (rows, _) = blocks[0].0.as_chunks::<SIDE>();
    let (quantizer, _) = quantizer.as_chunks::<SIDE>();
    [0, 1, 2, 3, 4, 5, 6, 7].map(|row| {
        // SAFETY: the array has the 8 words that are read.
        let words = unsafe { vld1q_s16(rows[row].as_ptr()) };
        // SAFETY: the array has the 8 words that are read.
        let quantizer = unsafe { vld1q_u16(quantizer[row].as_ptr()) };
        vmulq_s16(words, vreinterpretq_s16_u16(quantizer))
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn splat_word(word: i16) -> int16x8_t {
    vdupq_n_s16(word)
}

#[inline]
#[target_feature(enable = "neon")]
fn splat_sum(sum: i32) -> Sums {
    [vdupq_n_s32(sum); 2]
}

#[inline]
#[target_feature(enable = "neon")]
fn add(a: int16x8_t, b: int16x8_t) -> int16x8_t {
    vaddq_s16(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn sub(a: int16x8_t, b: int16x8_t) -> int16x8_t {
    vsubq_s16(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn shift_right<const N: i32>(words: int16x8_t) -> int16x8_t {
    vshrq_n_s16::<N>(words)
}

#[inline]
#[target_feature(enable = "neon")]
fn scale(words: int16x8_t, factor: i16) -> int16x8_t {
    vqrdmulhq_n_s16(words, factor)
}

#[inline]
#[target_feature(enable = "neon")]
fn any_wide(words: int16x8_t) -> bool {
    let shifted = vreinterpretq_u16_s16(vaddq_s16(words, vdupq_n_s16(1 << 13)));
    vmaxvq_u16(shifted) >= 1 << 14
}

#[inline]
#[target_feature(enable = "neon")]
fn add_sums(a: Sums, b: Sums) -> Sums {
    [vaddq_s32(a[0], b[0]), vaddq_s32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "neon")]
fn sub_sums(a: Sums, b: Sums) -> Sums {
    [vsubq_s32(a[0], b[0]), vsubq_s32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "neon")]
fn rotate(sums: Sums, a: int16x8_t, b: int16x8_t, [of_a, of_b]: [i16; 2]) -> Sums {
    let first = vmlal_n_s16(sums[0], vget_low_s16(a), of_a);
    let second = vmlal_high_n_s16(sums[1], a, of_a);
    [vmlal_n_s16(first, vget_low_s16(b), of_b), vmlal_high_n_s16(second, b, of_b)]
}

#[inline]
#[target_feature(enable = "neon")]
fn narrow<const N: i32>(sums: Sums) -> int16x8_t {
    let first = vqmovn_s32(vshrq_n_s32::<N>(sums[0]));
    vqmovn_high_s32(first, vshrq_n_s32::<N>(sums[1]))
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_bytes(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
    [vzip1q_u8(a, b), vzip2q_u8(a, b)]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_words(a: int16x8_t, b: int16x8_t) -> [int16x8_t; 2] {
    [vzip1q_s16(a, b), vzip2q_s16(a, b)]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_pairs(a: int16x8_t, b: int16x8_t) -> [int16x8_t; 2] {
    let [a, b] = [a, b].map(|words| vreinterpretq_s32_s16(words));
    [vzip1q_s32(a, b), vzip2q_s32(a, b)].map(|words| vreinterpretq_s16_s32(words))
}

#[inline]
#[target_feature(enable = "neon")]
fn to_words(bytes: uint8x16_t) -> int16x8_t {
    vreinterpretq_s16_u8(bytes)
}

#[inline]
#[target_feature(enable = "neon")]
fn to_bytes(words: int16x8_t) -> uint8x16_t {
    vreinterpretq_u8_s16(words)
}

#[inline]
#[target_feature(enable = "neon")]
fn widen(bytes: uint8x16_t) -> [int16x8_t; 2] {
    [vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)].map(|words| vreinterpretq_s16_u16(words))
}

#[inline]
#[target_feature(enable = "neon")]
fn pack(a: int16x8_t, b: int16x8_t) -> uint8x16_t {
    vqmovun_high_s16(vqmovun_s16(a), b)
}

#[inline]
#[target_feature(enable = "neon")]
fn pack_centred(a: int16x8_t, b: int16x8_t) -> uint8x16_t {
    let packed = vqmovn_high_s16(vqmovn_s16(a), b);
    veorq_u8(vreinterpretq_u8_s8(packed), vdupq_n_u8(0x80))
}

#[inline]
#[target_feature(enable = "neon")]
fn load_words(bytes: &[u8]) -> int16x8_t {
    let bytes: &[u8; 8] = bytes.try_into().expect("8 bytes");
    // SAFETY: the array has the 8 bytes that are read.
    let bytes = unsafe { vld1_u8(bytes.as_ptr()) };
    vreinterpretq_s16_u16(vmovl_u8(bytes))
}

#[inline]
#[target_feature(enable = "neon")]
fn store_words(words: int16x8_t, out: &mut [u8]) {
    store_half(vmovn_u16(vreinterpretq_u16_s16(words)), out);
}

#[inline]
#[target_feature(enable = "neon")]
fn store_pairs(first: int16x8_t, second: int16x8_t, out: &mut [u8]) {
    let pairs = vorrq_s16(first, vshlq_n_s16::<8>(second));
    store(vreinterpretq_u8_s16(pairs), out);
}

#[inline]
#[target_feature(enable = "neon")]
fn store_halves(bytes: uint8x16_t, upper: &mut [u8], lower: &mut [u8]) {
    store_half(vget_low_u8(bytes), upper);
    store_half(vget_high_u8(bytes), lower);
}
