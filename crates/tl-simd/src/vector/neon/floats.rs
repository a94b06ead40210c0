//! NEON for floats: rows of numbers of every type, read, rounded and written.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{load, store, store_half};
use crate::vector::{BELOW_HALF, Divisor};
use core::arch::aarch64::*;

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_floats(values: &[f32]) -> float32x4_t {
    let values: &[f32; 4] = values.try_into().expect("4 numbers");
    // SAFETY: the array has the 4 numbers that are read.
    unsafe { vld1q_f32(values.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store_floats(values: float32x4_t, out: &mut [f32]) {
    let out: &mut [f32; 4] = out.try_into().expect("4 numbers");
    // SAFETY: `out` has room for the 4 numbers that are written.
    unsafe { vst1q_f32(out.as_mut_ptr(), values) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_f32(bytes: &[u8]) -> float32x4_t {
    vreinterpretq_f32_u8(load(bytes))
}

#[inline]
#[target_feature(enable = "neon")]
fn load_half(bytes: &[u8]) -> uint8x8_t {
    let bytes: &[u8; 8] = bytes.try_into().expect("8 bytes");
    // SAFETY: the array has the 8 bytes that are read.
    unsafe { vld1_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_f16(bytes: &[u8]) -> float32x4_t {
    vcvt_f32_f16(vreinterpret_f16_u8(load_half(bytes)))
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_bf16(bytes: &[u8]) -> float32x4_t {
    vreinterpretq_f32_u32(vshll_n_u16::<16>(vreinterpret_u16_u8(load_half(bytes))))
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn round_f16(values: float32x4_t) -> float32x4_t {
    vcvt_f32_f16(vcvt_f16_f32(values))
}

/// The bits of the nearest bfloat16 in the upper halves; the lower ones are unspecified.
#[inline]
#[target_feature(enable = "neon")]
fn nearest_bf16(values: float32x4_t) -> uint32x4_t {
    let bits = vreinterpretq_u32_f32(values);
    let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
    let half = vaddq_u32(odd, vdupq_n_u32(BELOW_HALF.cast_unsigned()));
    vaddq_u32(bits, half)
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn round_bf16(values: float32x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(vandq_u32(nearest_bf16(values), vdupq_n_u32(0xFFFF_0000)))
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn normalize(samples: &[u8], scale: f32, by: Divisor<float32x4_t>) -> float32x4_t {
    let samples: &[u8; 4] = samples.try_into().expect("4 samples");
    let samples = vcreate_u8(u64::from(u32::from_le_bytes(*samples)));
    let samples = vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(samples))));
    let value = vsubq_f32(vmulq_f32(samples, vdupq_n_f32(scale)), by.mean);
    let near = vmulq_f32(value, by.inverse);
    let remainder = vfmsq_f32(value, near, by.std);
    vfmaq_f32(near, remainder, by.inverse)
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store_f32(values: float32x4_t, out: &mut [u8]) {
    store(vreinterpretq_u8_f32(values), out);
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store_f16(values: float32x4_t, out: &mut [u8]) {
    store_half(vreinterpret_u8_f16(vcvt_f16_f32(values)), out);
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store_bf16(values: float32x4_t, out: &mut [u8]) {
    store_half(vreinterpret_u8_u16(vshrn_n_u32::<16>(nearest_bf16(values))), out);
}
