//! The sample arithmetic of JPEG decoding: inverse transforms, upsampling and colour conversion.
//!
//! All of it has the bits of libjpeg-turbo 3 on x86, also where its 16-bit vector arithmetic wraps
//! or saturates because a file's coefficients are larger than any photograph's.
//! Entropy coding, markers and the geometry of components are the caller's.

mod color;
mod idct;
mod upsample;

pub use color::{ycc_to_rgb, ycc_to_rgb_planar};
use core::fmt;
pub use idct::idct;
pub use upsample::{replicate, upsample_h1v2, upsample_h2v1, upsample_h2v2};

/// Coefficients of a row or column of a block.
pub(crate) const SIDE: usize = 8;

/// The coefficients of one 8x8 block, row by row, as they were coded: not yet dequantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [i16; SIDE * SIDE]);

impl Block {
    /// A block of mid grey.
    pub const ZERO: Self = Self([0; SIDE * SIDE]);
}

impl Default for Block {
    fn default() -> Self {
        Self::ZERO
    }
}

/// How many samples a block becomes along each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scale {
    /// 8x8 samples.
    #[default]
    Full,
    /// 4x4 samples.
    Half,
    /// 2x2 samples.
    Quarter,
    /// One sample, the mean.
    Eighth,
}

impl Scale {
    /// Every scale, the largest first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Half, Self::Quarter, Self::Eighth];

    /// Samples along each side of a block.
    #[must_use]
    pub const fn block_side(self) -> usize {
        match self {
            Self::Full => 8,
            Self::Half => 4,
            Self::Quarter => 2,
            Self::Eighth => 1,
        }
    }

    /// The scaled length of `len` samples, rounded up.
    #[must_use]
    pub const fn apply(self, len: u32) -> u32 {
        match self {
            Self::Full => len,
            Self::Half => len.div_ceil(2),
            Self::Quarter => len.div_ceil(4),
            Self::Eighth => len.div_ceil(8),
        }
    }
}

impl fmt::Display for Scale {
    /// The fraction: "1/2".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "1/1",
            Self::Half => "1/2",
            Self::Quarter => "1/4",
            Self::Eighth => "1/8",
        })
    }
}
