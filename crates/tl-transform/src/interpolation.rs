//! The filters, with torchvision's names.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::resample::Filter;

/// How pixels are resampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interpolation {
    /// The nearest pixel, as Pillow finds it (torch's `nearest-exact`).
    Nearest,
    /// The mean of the covered pixels.
    Box,
    /// Triangle filter, the default of torchvision.
    #[default]
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

impl From<Interpolation> for Filter {
    fn from(interpolation: Interpolation) -> Self {
        match interpolation {
            Interpolation::Nearest => Self::Nearest,
            Interpolation::Box => Self::Box,
            Interpolation::Bilinear => Self::Bilinear,
            Interpolation::Hamming => Self::Hamming,
            Interpolation::Bicubic => Self::Bicubic,
            Interpolation::Lanczos => Self::Lanczos,
        }
    }
}
