//! The operations a recipe is made of, as data, with torchvision's names and defaults.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::RecipeError;

/// The longest output side: the limit of the image formats themselves.
pub(crate) const MAX_SIZE: u32 = 65_535;

/// How pixels are resampled, always antialiased, as Pillow does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interpolation {
    /// The nearest pixel (torch's `nearest-exact`).
    Nearest,
    /// The mean of the covered pixels.
    Box,
    /// Triangle filter, the default of torchvision.
    Bilinear,
    /// Hamming-windowed sinc of support 1.
    Hamming,
    /// Cubic with a = -0.5.
    Bicubic,
    /// Lanczos-windowed sinc of support 3.
    Lanczos,
}

impl fmt::Display for Interpolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nearest => "nearest",
            Self::Box => "box",
            Self::Bilinear => "bilinear",
            Self::Hamming => "hamming",
            Self::Bicubic => "bicubic",
            Self::Lanczos => "lanczos",
        })
    }
}

/// One step of a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Op {
    /// Crops a random part of random aspect ratio and resizes it to `width` x `height`.
    RandomResizedCrop {
        /// Output width in pixels.
        width: u32,
        /// Output height in pixels.
        height: u32,
        /// Bounds of the part's area, as a share of the image's.
        scale: (f64, f64),
        /// Bounds of the part's width / height.
        ratio: (f64, f64),
        /// The filter.
        interpolation: Interpolation,
    },
    /// Resizes so that the shorter side has `size` pixels.
    Resize {
        /// The shorter side afterwards.
        size: u32,
        /// The filter.
        interpolation: Interpolation,
    },
    /// Cuts `width` x `height` out of the middle; where the image is smaller, black is added first.
    CenterCrop {
        /// Output width in pixels.
        width: u32,
        /// Output height in pixels.
        height: u32,
    },
    /// Mirrors left and right with probability `p`.
    RandomHorizontalFlip {
        /// The probability.
        p: f64,
    },
    /// Maps 0..=255 to 0..=1: torchvision v2's `ToDtype(float32, scale=True)`.
    ToFloat,
    /// Subtracts `mean` and divides by `std`, per channel.
    Normalize {
        /// Subtracted first, for R, G and B.
        mean: [f32; 3],
        /// Divided by afterwards.
        std: [f32; 3],
    },
}

impl Op {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::RandomResizedCrop { .. } => "RandomResizedCrop",
            Self::Resize { .. } => "Resize",
            Self::CenterCrop { .. } => "CenterCrop",
            Self::RandomHorizontalFlip { .. } => "RandomHorizontalFlip",
            Self::ToFloat => "ToFloat",
            Self::Normalize { .. } => "Normalize",
        }
    }

    /// Whether the fused pass can run this operation directly after `before`.
    pub(crate) const fn may_follow(&self, before: &Self) -> bool {
        match self {
            Self::RandomResizedCrop { .. } | Self::Resize { .. } => false,
            Self::CenterCrop { .. } => matches!(before, Self::Resize { .. }),
            Self::RandomHorizontalFlip { .. } => matches!(
                before,
                Self::RandomResizedCrop { .. } | Self::Resize { .. } | Self::CenterCrop { .. }
            ),
            Self::ToFloat => !matches!(before, Self::ToFloat | Self::Normalize { .. }),
            Self::Normalize { .. } => matches!(before, Self::ToFloat),
        }
    }

    /// Whether the operation can be the first; all but the one that needs floats.
    pub(crate) const fn may_lead(&self) -> bool {
        !matches!(self, Self::Normalize { .. })
    }

    pub(crate) fn check_parameters(&self, position: usize) -> Result<(), RecipeError> {
        let check = |ok: bool, parameter, value, expected| {
            if ok {
                Ok(())
            } else {
                Err(RecipeError::Parameter { position, parameter, value, expected })
            }
        };
        let size = |parameter, value: u32| {
            check((1..=MAX_SIZE).contains(&value), parameter, f64::from(value), "1 to 65535")
        };
        let interval = |parameter, (low, high): (f64, f64)| {
            check(low > 0.0 && low.is_finite(), parameter, low, "a positive number")?;
            check(high >= low && high.is_finite(), parameter, high, "no less than the lower bound")
        };
        match self {
            Self::RandomResizedCrop { width, height, scale, ratio, .. } => {
                size("width", *width)?;
                size("height", *height)?;
                interval("scale", *scale)?;
                interval("ratio", *ratio)
            }
            Self::Resize { size: side, .. } => size("size", *side),
            Self::CenterCrop { width, height } => {
                size("width", *width)?;
                size("height", *height)
            }
            Self::RandomHorizontalFlip { p } => {
                check((0.0..=1.0).contains(p), "p", *p, "a probability")
            }
            Self::ToFloat => Ok(()),
            Self::Normalize { mean, std } => mean.iter().zip(std).try_for_each(|(mean, std)| {
                check(mean.is_finite(), "mean", f64::from(*mean), "a finite number")?;
                let usable = std.is_normal() && *std > 0.0;
                check(usable, "std", f64::from(*std), "a finite number above 0")
            }),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::RandomResizedCrop { width, height, scale, ratio, interpolation } => write!(
                f,
                "({width}x{height}, scale {}..{}, ratio {:.4}..{:.4}, {interpolation})",
                scale.0, scale.1, ratio.0, ratio.1
            ),
            Self::Resize { size, interpolation } => write!(f, "({size}, {interpolation})"),
            Self::CenterCrop { width, height } => write!(f, "({width}x{height})"),
            Self::RandomHorizontalFlip { p } => write!(f, "(p {p})"),
            Self::ToFloat => Ok(()),
            Self::Normalize { mean, std } => write!(f, "(mean {mean:?}, std {std:?})"),
        }
    }
}
