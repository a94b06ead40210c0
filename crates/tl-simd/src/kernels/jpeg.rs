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

/// The size to decode at: how many samples a block becomes along each side, of 8 at full size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale(u8);

impl Scale {
    /// 8x8 samples.
    pub const FULL: Self = Self(8);
    /// 4x4 samples.
    pub const HALF: Self = Self(4);
    /// 2x2 samples.
    pub const QUARTER: Self = Self(2);
    /// One sample, the mean.
    pub const EIGHTH: Self = Self(1);

    /// The scales that halve the sides, once or several times, the largest first.
    pub const HALVINGS: [Self; 4] = [Self::FULL, Self::HALF, Self::QUARTER, Self::EIGHTH];

    /// The largest number of eighths.
    pub const MOST_EIGHTHS: u8 = 16;

    /// The scale of `eighths` eighths, 1 to [`Self::MOST_EIGHTHS`].
    #[must_use]
    pub const fn from_eighths(eighths: u8) -> Option<Self> {
        match eighths {
            1..=Self::MOST_EIGHTHS => Some(Self(eighths)),
            _ => None,
        }
    }

    /// Every scale, the smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=Self::MOST_EIGHTHS).map(Self)
    }

    /// The scale in eighths.
    #[must_use]
    pub const fn eighths(self) -> u8 {
        self.0
    }

    /// Samples along each side of a block.
    #[must_use]
    pub const fn block_side(self) -> usize {
        self.0 as usize
    }

    /// The scaled length of `len` samples, rounded up; the largest number if it would be larger.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "compared before")]
    pub const fn apply(self, len: u32) -> u32 {
        let scaled = (len as u64 * self.0 as u64).div_ceil(SIDE as u64);
        if scaled > u32::MAX as u64 { u32::MAX } else { scaled as u32 }
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::FULL
    }
}

impl fmt::Display for Scale {
    /// The fraction: "1/2", or "5/4".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let halvings = self.0.trailing_zeros().min(SIDE.ilog2());
        write!(f, "{}/{}", self.0 >> halvings, SIDE >> halvings)
    }
}
