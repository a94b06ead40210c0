//! The instruction set levels and the one place that chooses between them.

use crate::vector::{self, Simd, dispatch};
use core::fmt;
use std::sync::OnceLock;

/// An instruction set level that this CPU was seen to support.
///
/// Every kernel takes the level first and gives the same bits at every level.
/// A vector level carries a token that exists only where the CPU has the instructions, so that a
/// `Level` which exists can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust: the definition of every kernel.
    Scalar,
    /// 256-bit vectors: AVX2, FMA and F16C, with BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx2(vector::Avx2),
    /// 512-bit vectors: AVX-512 F, BW, DQ, VL, VBMI and VNNI, with BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx512(vector::Avx512),
    /// 128-bit vectors of 64-bit ARM.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(vector::Neon),
}

impl Level {
    /// The fastest level of this CPU, found once per process.
    #[must_use]
    pub fn detect() -> Self {
        static FASTEST: OnceLock<Level> = OnceLock::new();
        *FASTEST.get_or_init(|| Self::available().last().unwrap_or(Self::Scalar))
    }

    /// Every level of this CPU, slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        let levels = [
            Some(Self::Scalar),
            #[cfg(target_arch = "x86_64")]
            vector::Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            vector::Avx512::detect().map(Self::Avx512),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            vector::Neon::detect().map(Self::Neon),
        ];
        levels.into_iter().flatten()
    }

    /// Calls `f` compiled with the level's instructions.
    ///
    /// That reaches as far as inlining does: `f` and what it calls should be `#[inline(always)]`.
    ///
    /// ```
    /// let words = [1_u64, 0b111];
    /// let ones = tl_simd::Level::detect().vectorize(
    ///     #[inline(always)]
    ///     || words.iter().map(|word| word.count_ones()).sum::<u32>(),
    /// );
    /// assert_eq!(ones, 4);
    /// ```
    #[inline(always)]
    pub fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        dispatch!(self, scalar => f(), simd => f())
    }
}

impl fmt::Display for Level {
    /// The name used in benchmarks and reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(dispatch!(*self, scalar => "scalar", simd => name(simd)))
    }
}

fn name<S: Simd>(_: S) -> &'static str {
    S::NAME
}
