//! Look-ups in four tables of 64 entries, each of which gives zero outside.

#![expect(unsafe_code, reason = "vector instructions behind a token that proves the CPU has them")]

use super::{Neon, load};
use crate::vector::lookup::LookupSimd;
use core::arch::aarch64::*;

/// Entries of one table instruction.
const STEP: usize = 64;

impl LookupSimd for Neon {
    type Table = [uint8x16x4_t; 4];

    #[inline(always)]
    fn table(self, entries: &[u8; 256]) -> Self::Table {
        // SAFETY: `self` exists, so `detect` saw NEON on this CPU.
        unsafe { table(entries) }
    }

    #[inline(always)]
    fn lookup(self, table: &Self::Table, bytes: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` exists, so `detect` saw NEON on this CPU.
        unsafe { lookup(table, bytes) }
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
