//! NEON for sums over signed bytes.

#![expect(unsafe_code, reason = "vector instructions, which a token proves the CPU to have")]

use super::{Neon, load};
use crate::kernels::streams::STREAMS;
use crate::vector::bytes::ByteSimd;
use crate::vector::jpeg::by_functions;
use core::arch::aarch64::*;

impl ByteSimd for Neon {
    type ByteSums = [int32x4_t; 3];

    by_functions! {
        fn byte_sums(self) -> [int32x4_t; 3];
        fn add_bytes(self, sums: [int32x4_t; 3], bytes: &[u8], others: &[u8]) -> [int32x4_t; 3];
        fn total_bytes(self, sums: [[int32x4_t; 3]; STREAMS]) -> [[i32; STREAMS]; 3];
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn byte_sums() -> [int32x4_t; 3] {
    [vdupq_n_s32(0); 3]
}

#[inline]
#[target_feature(enable = "neon")]
fn add_bytes(
    [products, sum, squares]: [int32x4_t; 3],
    bytes: &[u8],
    others: &[u8],
) -> [int32x4_t; 3] {
    let bytes = vreinterpretq_s8_u8(load(bytes));
    let others = vreinterpretq_s8_u8(load(others));
    [
        add_products(products, bytes, others),
        vpadalq_s16(sum, vpaddlq_s8(bytes)),
        add_products(squares, bytes, bytes),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn add_products(sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    vpadalq_s16(sums, vmull_high_s8(a, b))
}

#[inline]
#[target_feature(enable = "neon")]
fn total_bytes(sums: [[int32x4_t; 3]; STREAMS]) -> [[i32; STREAMS]; 3] {
    [0, 1, 2].map(|kind| sums.map(|sums| vaddvq_s32(sums[kind])))
}
