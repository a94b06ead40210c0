//! The instruction set levels and the one place that chooses between them.

use crate::vector::{self, Simd, dispatch};
use core::fmt;
use std::env;
use std::error::Error;
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

/// The environment variable that [`Level::detect`] takes a level's name from.
pub const LEVEL_VARIABLE: &str = "TURBOLOADER_SIMD";

/// [`LEVEL_VARIABLE`] holds a name that is not a level of this CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    name: String,
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<_> = Level::available().map(|level| level.to_string()).collect();
        let name = self.name.escape_debug();
        let levels = levels.join(", ");
        write!(f, "{LEVEL_VARIABLE}={name}: expected a level of this CPU: {levels}")
    }
}

impl Error for LevelError {}

impl Level {
    /// The level to use: the one that [`LEVEL_VARIABLE`] names, otherwise the fastest of this CPU.
    /// Determined once per process.
    ///
    /// A name that is not a level of this CPU has no effect here. Programs that offer the variable
    /// to their users call [`requested`](Self::requested) at the start and report its error.
    #[must_use]
    pub fn detect() -> Self {
        static CHOSEN: OnceLock<Level> = OnceLock::new();
        *CHOSEN.get_or_init(|| match Self::requested() {
            Ok(Some(level)) => level,
            Ok(None) | Err(_) => Self::available().last().unwrap_or(Self::Scalar),
        })
    }

    /// The level that [`LEVEL_VARIABLE`] names, or `None` if the variable is unset or empty.
    ///
    /// # Errors
    /// If the CPU lacks that level, or no level has that name.
    pub fn requested() -> Result<Option<Self>, LevelError> {
        let name = env::var_os(LEVEL_VARIABLE).unwrap_or_default();
        if name.is_empty() {
            return Ok(None);
        }
        let name = name.to_string_lossy().into_owned();
        let level = Self::available().find(|level| level.to_string() == name);
        level.map(Some).ok_or(LevelError { name })
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
