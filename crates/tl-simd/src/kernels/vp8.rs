//! The sample arithmetic of VP8 key frames, which lossy WebP files hold: inverse transforms,
//! prediction, the loop filters, upsampling and colour conversion.
//!
//! All of it has the bits of libwebp on x86, also where its 16-bit vector arithmetic wraps because
//! a file's coefficients are larger than any photograph's.
//! Entropy coding, headers and the geometry of images are the caller's, who parses a row of
//! macroblocks, then calls [`reconstruct`], [`filter`] and [`upsample_rgb`].

mod color;
mod filter;
mod predict;
mod reconstruct;
mod residue;

pub use color::{Chroma, upsample_rgb};
pub use filter::{Filter, FilterKind, filter};
pub use reconstruct::{Above, reconstruct};
pub use residue::walsh_hadamard;

/// Samples along each side of a macroblock's luma.
pub const LUMA: usize = 16;
/// Samples along each side of a macroblock's chroma.
pub const CHROMA: usize = 8;
/// Samples along each side of a block.
pub(crate) const BLOCK: usize = 4;
/// Blocks of luma in a macroblock.
pub(crate) const LUMA_BLOCKS: usize = 16;
/// Blocks of each chroma plane in a macroblock.
pub(crate) const CHROMA_BLOCKS: usize = 4;
/// Blocks in a macroblock.
pub(crate) const BLOCKS: usize = LUMA_BLOCKS + 2 * CHROMA_BLOCKS;
/// Coefficients or samples of a block.
pub(crate) const BLOCK_LEN: usize = BLOCK * BLOCK;

/// Prediction of 16x16 samples of luma or 8x8 of chroma.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prediction {
    /// The mean of the samples above and to the left.
    #[default]
    Dc,
    /// The samples above.
    Vertical,
    /// The samples to the left.
    Horizontal,
    /// The sample above plus the one to the left minus the one in the corner.
    TrueMotion,
}

/// Prediction of 4x4 samples of luma, in the order of RFC 6386.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockPrediction {
    /// The mean of the samples above and to the left.
    #[default]
    Dc,
    /// The sample above plus the one to the left minus the one in the corner.
    TrueMotion,
    /// The samples above, smoothed.
    Vertical,
    /// The samples to the left, smoothed.
    Horizontal,
    /// Down to the left, at 45 degrees.
    LeftDown,
    /// Down to the right, at 45 degrees.
    RightDown,
    /// Steeply down to the right.
    VerticalRight,
    /// Steeply down to the left.
    VerticalLeft,
    /// Gently down to the right.
    HorizontalDown,
    /// Gently up to the right.
    HorizontalUp,
}

/// Prediction of a macroblock's luma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luma {
    /// All at once.
    Whole(Prediction),
    /// Block by block.
    Blocks([BlockPrediction; LUMA_BLOCKS]),
}

/// The coefficients of a block that can differ from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Residue {
    /// None.
    None,
    /// The first.
    Dc,
    /// The first three in the order of coding: 0, 1 and 4.
    Few,
    /// Any.
    Full,
}

/// The [`Residue`] of each block of a macroblock: 16 of Y, 4 of U, 4 of V.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residues(u64);

impl Residues {
    /// No coefficients at all.
    pub const NONE: Self = Self(0);

    /// Adds the residue of a block that had [`Residue::None`].
    #[inline(always)]
    pub const fn add(&mut self, block: usize, residue: Residue) {
        debug_assert!(block < BLOCKS, "a macroblock has 24 blocks");
        self.0 |= (residue as u64) << (2 * block);
    }

    /// The residue of a block.
    #[inline(always)]
    #[must_use]
    pub const fn of(self, block: usize) -> Residue {
        match self.0 >> (2 * block) & 3 {
            0 => Residue::None,
            1 => Residue::Dc,
            2 => Residue::Few,
            _ => Residue::Full,
        }
    }
}

/// A parsed macroblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Macroblock {
    /// Dequantised coefficients, block by block as in [`Residues`], row by row within a block.
    /// The transform of the luma's DC block is already in them.
    pub coefficients: [i16; BLOCKS * BLOCK_LEN],
    /// The coefficients that can differ from zero; all others are zero.
    pub residues: Residues,
    /// Prediction of luma.
    pub luma: Luma,
    /// Prediction of both chroma planes.
    pub chroma: Prediction,
}

impl Macroblock {
    /// Predicted by means, without coefficients.
    pub const ZERO: Self = Self {
        coefficients: [0; BLOCKS * BLOCK_LEN],
        residues: Residues::NONE,
        luma: Luma::Whole(Prediction::Dc),
        chroma: Prediction::Dc,
    };
}

impl Default for Macroblock {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Three planes of whole macroblocks, whose columns and rows are counted from the planes' first.
#[derive(Debug)]
pub struct PlanesMut<'a> {
    /// Luma.
    pub y: &'a mut [u8],
    /// Blue chroma.
    pub u: &'a mut [u8],
    /// Red chroma.
    pub v: &'a mut [u8],
    /// Bytes from one row of luma to the next.
    pub y_stride: usize,
    /// Bytes from one row of chroma to the next.
    pub uv_stride: usize,
}

impl PlanesMut<'_> {
    /// Panics unless macroblocks before `column` of row `row` are in the planes.
    fn check(&self, column: usize, row: usize) {
        let fits = |len: usize, stride: usize, side: usize| {
            let width = column * side;
            width <= stride && (row * side + side - 1) * stride + width <= len
        };
        assert!(fits(self.y.len(), self.y_stride, LUMA), "luma has room for the macroblocks");
        assert!(fits(self.u.len(), self.uv_stride, CHROMA), "U has room for the macroblocks");
        assert!(fits(self.v.len(), self.uv_stride, CHROMA), "V has room for the macroblocks");
    }
}

/// Limited to a byte.
#[inline(always)]
#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
fn clip(value: i32) -> u8 {
    value.clamp(0, 255) as u8
}

/// A weighted mean of samples, which is a sample itself.
#[inline(always)]
fn low_byte(mean: u32) -> u8 {
    mean.to_le_bytes()[0]
}
