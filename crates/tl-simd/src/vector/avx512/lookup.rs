//! Look-ups with VBMI: two permutes of 128 entries and a choice by the top bit.

#![expect(unsafe_code, reason = "vector instructions behind a token that proves the CPU has them")]

use super::{Avx512, load};
use crate::vector::lookup::LookupSimd;
use core::arch::x86_64::*;

impl LookupSimd for Avx512 {
    type Table = [__m512i; 4];

    #[inline(always)]
    fn table(self, entries: &[u8; 256]) -> Self::Table {
        // SAFETY: `self` exists, so `detect` saw the features of `table` on this CPU.
        unsafe { table(entries) }
    }

    #[inline(always)]
    fn lookup(self, table: &Self::Table, bytes: __m512i) -> __m512i {
        // SAFETY: `self` exists, so `detect` saw the features of `lookup` on this CPU.
        unsafe { lookup(table, bytes) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn table(entries: &[u8; 256]) -> [__m512i; 4] {
    [0, 64, 128, 192].map(|first| load(&entries[first..first + 64]))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn lookup(&[a, b, c, d]: &[__m512i; 4], bytes: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi8(a, bytes, b);
    let high = _mm512_permutex2var_epi8(c, bytes, d);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high)
}
