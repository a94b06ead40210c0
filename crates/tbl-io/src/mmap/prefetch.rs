//! Hints to the processor about bytes that are read soon.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "an instruction without a safe name; docs/safety.md")
)]

/// The bytes that a processor brings into its caches at once.
const CACHE_LINE: usize = 64;

/// Starts to bring these bytes into all caches, on x86-64.
pub(super) fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(CACHE_LINE) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: SSE, which has the instruction, is part of x86-64; the instruction neither
            // faults nor changes anything that a program can read, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _: &[u8] = line;
    }
}
