//! NEON for the VP8 kernels.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

mod filter;

use super::Neon;
use crate::vector::jpeg::by_functions;
use crate::vector::vp8::Vp8Simd;
use core::arch::aarch64::*;

impl Vp8Simd for Neon {
    type Samples = uint8x16_t;

    by_functions! {
        fn load_blocks(self, blocks: &[[i16; 16]]) -> [int16x8_t; 4];
        fn high(self, words: int16x8_t, factor: i16) -> int16x8_t;
        fn zip_quads(self, a: int16x8_t, b: int16x8_t) -> [int16x8_t; 2];
        fn store_blocks(self, columns: [int16x8_t; 4], added: &mut [[u8; 16]], subtracted: &mut [[u8; 16]]);
        fn load_samples(self, samples: &[u8; 16]) -> uint8x16_t;
        fn store_samples(self, samples: uint8x16_t, out: &mut [u8; 16]);
        fn store_first(self, samples: uint8x16_t, out: &mut [u8; 8]);
        fn store_second(self, samples: uint8x16_t, out: &mut [u8; 8]);
        fn splat_sample(self, sample: u8) -> uint8x16_t;
        fn add_samples(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t;
        fn sub_samples(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t;
        fn mean_of_two(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t;
        fn mean_of_three(self, a: uint8x16_t, b: uint8x16_t, c: uint8x16_t) -> uint8x16_t;
        fn sum(self, samples: uint8x16_t) -> u16;
        fn mean_of_eight(self, samples: uint8x16_t, mask: uint8x16_t) -> uint8x16_t;
        fn both(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t;
        fn either(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t;
        fn look_up(self, samples: uint8x16_t, places: uint8x16_t) -> uint8x16_t;
        fn zip_fours(self, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2];
        fn zip_eights(self, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2];
        fn edge(self, left: uint8x16_t, above_left: uint8x16_t, above: uint8x16_t, above_right: uint8x16_t) -> uint8x16_t;
        fn load_sums(self, sums: &[u16]) -> int16x8_t;
        fn shift_up(self, bytes: uint8x16_t) -> [int16x8_t; 2];
        fn floor(self, sums: int16x8_t) -> int16x8_t;
        fn high_unsigned(self, words: int16x8_t, factor: u16) -> int16x8_t;
        fn sub_to_zero(self, a: int16x8_t, b: int16x8_t) -> int16x8_t;
        fn pack_64ths(self, even: int16x8_t, odd: int16x8_t) -> uint8x16_t;
    }
}

/// Half a block.
#[inline]
#[target_feature(enable = "neon")]
fn load_half_block(words: &[i16; 8]) -> int16x8_t {
    // SAFETY: the array has the 8 words that are read.
    unsafe { vld1q_s16(words.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_blocks(blocks: &[[i16; 16]]) -> [int16x8_t; 4] {
    let [a, b]: &[[i16; 16]; 2] = blocks.try_into().expect("two blocks");
    let (a, _) = a.as_chunks::<8>();
    let (b, _) = b.as_chunks::<8>();
    let [first, second] = zip_quads(load_half_block(&a[0]), load_half_block(&b[0]));
    let [third, fourth] = zip_quads(load_half_block(&a[1]), load_half_block(&b[1]));
    [first, second, third, fourth]
}

#[inline]
#[target_feature(enable = "neon")]
fn high(words: int16x8_t, factor: i16) -> int16x8_t {
    let first = vshrn_n_s32::<16>(vmull_n_s16(vget_low_s16(words), factor));
    vshrn_high_n_s32::<16>(first, vmull_high_n_s16(words, factor))
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_quads(a: int16x8_t, b: int16x8_t) -> [int16x8_t; 2] {
    let a = vreinterpretq_s64_s16(a);
    let b = vreinterpretq_s64_s16(b);
    [vreinterpretq_s16_s64(vzip1q_s64(a, b)), vreinterpretq_s16_s64(vzip2q_s64(a, b))]
}

#[inline]
#[target_feature(enable = "neon")]
fn store_bytes(columns: [int16x8_t; 4], out: &mut [[u8; 16]]) {
    const FIRST: [u8; 16] = [0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27];
    const SECOND: [u8; 16] = [4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31];
    let [a, b, c, d] = columns;
    let halves =
        uint8x16x2_t(vqmovun_high_s16(vqmovun_s16(a), b), vqmovun_high_s16(vqmovun_s16(c), d));
    let [first, second]: &mut [[u8; 16]; 2] = out.try_into().expect("two blocks");
    store_samples(vqtbl2q_u8(halves, load_samples(&FIRST)), first);
    store_samples(vqtbl2q_u8(halves, load_samples(&SECOND)), second);
}

#[inline]
#[target_feature(enable = "neon")]
fn store_blocks(columns: [int16x8_t; 4], added: &mut [[u8; 16]], subtracted: &mut [[u8; 16]]) {
    store_bytes(columns, added);
    let [a, b, c, d] = columns;
    store_bytes([vnegq_s16(a), vnegq_s16(b), vnegq_s16(c), vnegq_s16(d)], subtracted);
}

#[inline]
#[target_feature(enable = "neon")]
fn load_samples(samples: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the array has the 16 bytes that are read.
    unsafe { vld1q_u8(samples.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_samples(samples: uint8x16_t, out: &mut [u8; 16]) {
    // SAFETY: the array has the 16 bytes that are written.
    unsafe { vst1q_u8(out.as_mut_ptr(), samples) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_first(samples: uint8x16_t, out: &mut [u8; 8]) {
    super::store_half(vget_low_u8(samples), out);
}

#[inline]
#[target_feature(enable = "neon")]
fn store_second(samples: uint8x16_t, out: &mut [u8; 8]) {
    super::store_half(vget_high_u8(samples), out);
}

#[inline]
#[target_feature(enable = "neon")]
fn splat_sample(sample: u8) -> uint8x16_t {
    vdupq_n_u8(sample)
}

#[inline]
#[target_feature(enable = "neon")]
fn add_samples(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vqaddq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn sub_samples(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vqsubq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn mean_of_two(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vrhaddq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn mean_of_three(a: uint8x16_t, b: uint8x16_t, c: uint8x16_t) -> uint8x16_t {
    vrhaddq_u8(vhaddq_u8(a, c), b)
}

#[inline]
#[target_feature(enable = "neon")]
fn sum(samples: uint8x16_t) -> u16 {
    vaddlvq_u8(samples)
}

#[inline]
#[target_feature(enable = "neon")]
fn mean_of_eight(samples: uint8x16_t, mask: uint8x16_t) -> uint8x16_t {
    let [mean, _] = ((sum(vandq_u8(samples, mask)) + 4) >> 3).to_le_bytes();
    vdupq_n_u8(mean)
}

#[inline]
#[target_feature(enable = "neon")]
fn both(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vandq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn either(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vorrq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn look_up(samples: uint8x16_t, places: uint8x16_t) -> uint8x16_t {
    vqtbl1q_u8(samples, places)
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_fours(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
    let a = vreinterpretq_u32_u8(a);
    let b = vreinterpretq_u32_u8(b);
    [vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b))]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_eights(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
    let a = vreinterpretq_u64_u8(a);
    let b = vreinterpretq_u64_u8(b);
    [vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b))]
}

#[inline]
#[target_feature(enable = "neon")]
fn edge(
    left: uint8x16_t,
    above_left: uint8x16_t,
    above: uint8x16_t,
    above_right: uint8x16_t,
) -> uint8x16_t {
    /// Bytes of `left`, then of `above_left`.
    const LEFT: [u8; 16] = [15, 15, 15, 15, 11, 7, 3, 31, 0, 0, 0, 0, 0, 0, 0, 0];
    let left = vqtbl2q_u8(uint8x16x2_t(left, above_left), load_samples(&LEFT));
    let [_, above] = zip_fours(above, above_right);
    vcombine_u8(vget_low_u8(left), vget_high_u8(above))
}

#[inline]
#[target_feature(enable = "neon")]
fn load_sums(sums: &[u16]) -> int16x8_t {
    let sums: &[u16; 8] = sums.try_into().expect("8 sums");
    // SAFETY: the array has the 8 words that are read.
    vreinterpretq_s16_u16(unsafe { vld1q_u16(sums.as_ptr()) })
}

#[inline]
#[target_feature(enable = "neon")]
fn shift_up(bytes: uint8x16_t) -> [int16x8_t; 2] {
    let words = vreinterpretq_s16_u8(bytes);
    [vshlq_n_s16::<8>(words), vandq_s16(words, vdupq_n_s16(-0x100))]
}

#[inline]
#[target_feature(enable = "neon")]
fn floor(sums: int16x8_t) -> int16x8_t {
    vandq_s16(vshlq_n_s16::<4>(sums), vdupq_n_s16(-0x100))
}

#[inline]
#[target_feature(enable = "neon")]
fn high_unsigned(words: int16x8_t, factor: u16) -> int16x8_t {
    let words = vreinterpretq_u16_s16(words);
    let first = vshrn_n_u32::<16>(vmull_n_u16(vget_low_u16(words), factor));
    vreinterpretq_s16_u16(vshrn_high_n_u32::<16>(first, vmull_high_n_u16(words, factor)))
}

#[inline]
#[target_feature(enable = "neon")]
fn sub_to_zero(a: int16x8_t, b: int16x8_t) -> int16x8_t {
    vreinterpretq_s16_u16(vqsubq_u16(vreinterpretq_u16_s16(a), vreinterpretq_u16_s16(b)))
}

#[inline]
#[target_feature(enable = "neon")]
fn pack_64ths(even: int16x8_t, odd: int16x8_t) -> uint8x16_t {
    let even = vqshrn_n_u16::<6>(vreinterpretq_u16_s16(even));
    let odd = vqshrn_n_u16::<6>(vreinterpretq_u16_s16(odd));
    vcombine_u8(vzip1_u8(even, odd), vzip2_u8(even, odd))
}
