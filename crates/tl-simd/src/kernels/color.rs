//! The arithmetic of colour augmentations on interleaved RGB samples, in place.
//!
//! Two conventions are followed, bit for bit: that of Pillow 13, which torchvision runs on Pillow
//! images, and that of torchvision v2 on `uint8` tensors; [`Arithmetic`] chooses. Everything that
//! depends on one sample alone is a table, applied by [`lookup`]; what a table holds is decided by
//! the caller, from [`histograms`], [`extremes`] or [`grey_sum`] where an operation needs them.

mod blend;
mod blocks;
mod grey;
mod hue;
mod lookup;
mod sharpness;
mod statistics;

pub use grey::{blend_with_grey, grey_sum, to_grey};
pub use hue::{shift_hue, shift_hue_bytes};
pub use lookup::{lookup, lookup_channels, permute};
pub use sharpness::sharpen;
pub use statistics::{Extremes, extremes, histograms};

/// The package whose rounding a kernel follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arithmetic {
    /// Pillow's: integer greys of 16 fraction bits, `f32` blends with every step rounded.
    Pillow,
    /// PyTorch's: greys and blends in `f32` with fused multiply-adds, truncated.
    Torch,
}
