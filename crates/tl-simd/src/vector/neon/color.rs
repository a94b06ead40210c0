//! NEON for the kernels of colours. Look-ups take four tables of 64 entries.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{Neon, load};
use crate::vector::color::ColorSimd;
use crate::vector::jpeg::by_functions;
use core::arch::aarch64::*;

/// Entries of one table instruction.
const STEP: usize = 64;

impl ColorSimd for Neon {
    const CHEAP_TABLES: bool = true;
    type Table = [uint8x16x4_t; 4];

    by_functions! {
        fn table(self, entries: &[u8; 256]) -> [uint8x16x4_t; 4];
        fn lookup(self, table: &[uint8x16x4_t; 4], bytes: uint8x16_t) -> uint8x16_t;
        fn to_floats(self, bytes: uint8x16_t) -> [float32x4_t; 4];
        fn truncate(self, floats: [float32x4_t; 4]) -> uint8x16_t;
        fn splat_float(self, value: f32) -> float32x4_t;
        fn add_floats(self, a: float32x4_t, b: float32x4_t) -> float32x4_t;
        fn sub_floats(self, a: float32x4_t, b: float32x4_t) -> float32x4_t;
        fn mul_floats(self, a: float32x4_t, b: float32x4_t) -> float32x4_t;
        fn fused(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t;
        fn floor(self, values: float32x4_t) -> float32x4_t;
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn table(entries: &[u8; 256]) -> [uint8x16x4_t; 4] {
    [0, 1, 2, 3].map(|step| {
        let part = |quarter: usize| load(&entries[step * STEP + quarter * 16..][..16]);
        uint8x16x4_t(part(0), part(1), part(2), part(3))
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn lookup(&[a, b, c, d]: &[uint8x16x4_t; 4], bytes: uint8x16_t) -> uint8x16_t {
    let step = vdupq_n_u8(64);
    let found = vqtbl4q_u8(a, bytes);
    let bytes = vsubq_u8(bytes, step);
    let found = vqtbx4q_u8(found, b, bytes);
    let bytes = vsubq_u8(bytes, step);
    let found = vqtbx4q_u8(found, c, bytes);
    let bytes = vsubq_u8(bytes, step);
    vqtbx4q_u8(found, d, bytes)
}

#[inline]
#[target_feature(enable = "neon")]
fn splat_float(value: f32) -> float32x4_t {
    vdupq_n_f32(value)
}

#[inline]
#[target_feature(enable = "neon")]
fn add_floats(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vaddq_f32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn sub_floats(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vsubq_f32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn mul_floats(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    vmulq_f32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn fused(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
    vfmaq_f32(c, a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn floor(values: float32x4_t) -> float32x4_t {
    vrndmq_f32(values)
}

#[inline]
#[target_feature(enable = "neon")]
fn to_floats(bytes: uint8x16_t) -> [float32x4_t; 4] {
    let low = vmovl_u8(vget_low_u8(bytes));
    let high = vmovl_high_u8(bytes);
    [
        vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
        vcvtq_f32_u32(vmovl_high_u16(low)),
        vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
        vcvtq_f32_u32(vmovl_high_u16(high)),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn truncate(floats: [float32x4_t; 4]) -> uint8x16_t {
    // The conversion clips at 0 and at 2^32, and turns NaN into 0.
    let [a, b, c, d] = floats.map(|floats| vqmovn_u32(vcvtq_u32_f32(floats)));
    vcombine_u8(vqmovn_u16(vcombine_u16(a, b)), vqmovn_u16(vcombine_u16(c, d)))
}
