//! Look-ups in sixteen steps of 16 entries.
//!
//! A byte shuffle gives zero where the top bit of a position is set, and otherwise looks at its low
//! four bits alone. Each step holds what its 16 entries differ in from the 16 before them, so that
//! the parts of all steps up to a byte's own give its entry; a step later positions are 16 smaller,
//! and have the top bit set once their own step is past.

#![expect(unsafe_code, reason = "vector instructions behind a token that proves the CPU has them")]

use super::{Avx2, load_half};
use crate::vector::lookup::LookupSimd;
use core::arch::x86_64::*;

/// Entries of a step.
const STEP: usize = 16;

impl LookupSimd for Avx2 {
    type Table = [__m256i; 16];

    #[inline(always)]
    fn table(self, entries: &[u8; 256]) -> Self::Table {
        // SAFETY: `self` exists, so `detect` saw the features of `table` on this CPU.
        unsafe { table(entries) }
    }

    #[inline(always)]
    fn lookup(self, table: &Self::Table, bytes: __m256i) -> __m256i {
        // SAFETY: `self` exists, so `detect` saw the features of `lookup` on this CPU.
        unsafe { lookup(table, bytes) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(entries: &[u8; 256]) -> [__m256i; 16] {
    let mut steps = [_mm256_setzero_si256(); 16];
    let mut before = _mm256_setzero_si256();
    for (index, (step, entries)) in steps.iter_mut().zip(entries.chunks_exact(STEP)).enumerate() {
        if index == 8 {
            before = _mm256_setzero_si256();
        }
        let entries = _mm256_broadcastsi128_si256(load_half(entries));
        *step = _mm256_xor_si256(entries, before);
        before = entries;
    }
    steps
}

#[inline]
#[target_feature(enable = "avx2")]
fn lookup(table: &[__m256i; 16], bytes: __m256i) -> __m256i {
    let step = _mm256_set1_epi8(16);
    let (low, high) = table.split_at(8);
    // Bytes from 128 on are negative in the first half, the others in the second one, and
    // saturation keeps them so.
    let mut position = bytes;
    let mut found = _mm256_setzero_si256();
    for entries in low {
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(*entries, position));
        position = _mm256_subs_epi8(position, step);
    }
    position = _mm256_xor_si256(bytes, _mm256_set1_epi8(i8::MIN));
    for entries in high {
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(*entries, position));
        position = _mm256_subs_epi8(position, step);
    }
    found
}
