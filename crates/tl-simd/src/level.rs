//! The instruction set levels and the one place that chooses between them.

use core::fmt;
use std::sync::OnceLock;

/// An instruction set level that this CPU was seen to support.
///
/// Every kernel takes the level first and gives the same bits at every level.
/// A vector level carries a token that only [`Level::available`] and [`Level::detect`] make,
/// so that a `Level` which exists can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust: the definition of every kernel.
    Scalar,
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
        [Some(Self::Scalar)].into_iter().flatten()
    }

    /// The name used in benchmarks and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
