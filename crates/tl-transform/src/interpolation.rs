//! The filters, with torchvision's names.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::resample::{Filter, TensorFilter};

/// The filter of resampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interpolation {
    /// The nearest pixel: in `pil` parity as Pillow finds it, in `tensor` parity torch's `nearest`,
    /// which leans to the top left.
    Nearest,
    /// The nearest pixel: in `pil` parity as Pillow finds it, in `tensor` parity as torch does.
    #[serde(alias = "nearest-exact")]
    NearestExact,
    /// The mean of the covered pixels.
    Box,
    /// Triangle filter, the default of torchvision.
    #[default]
    Bilinear,
    /// Hamming-windowed sinc of support 1.
    Hamming,
    /// Cubic with a = -0.5; -0.75 on tensors without antialiasing.
    Bicubic,
    /// Lanczos-windowed sinc of support 3.
    Lanczos,
}

impl fmt::Display for Interpolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Interpolation> for Filter {
    fn from(interpolation: Interpolation) -> Self {
        match interpolation {
            Interpolation::Nearest | Interpolation::NearestExact => Self::Nearest,
            Interpolation::Box => Self::Box,
            Interpolation::Bilinear => Self::Bilinear,
            Interpolation::Hamming => Self::Hamming,
            Interpolation::Bicubic => Self::Bicubic,
            Interpolation::Lanczos => Self::Lanczos,
        }
    }
}

impl Interpolation {
    /// The name, as torchvision has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::NearestExact => "nearest-exact",
            Self::Box => "box",
            Self::Bilinear => "bilinear",
            Self::Hamming => "hamming",
            Self::Bicubic => "bicubic",
            Self::Lanczos => "lanczos",
        }
    }

    /// Whether every pixel is a copy of another.
    pub(crate) const fn copies(self) -> bool {
        matches!(self, Self::Nearest | Self::NearestExact)
    }

    /// The filter of torch on uint8 tensors.
    ///
    /// Box and Hamming, which torch does not have, are Pillow's; Lanczos, which it does not have
    /// without antialiasing, is antialiased.
    pub(crate) fn tensor(self, antialias: bool) -> Filter {
        Filter::Tensor(match (self, antialias) {
            (Self::Nearest, _) => TensorFilter::Nearest,
            (Self::NearestExact, _) => TensorFilter::NearestExact,
            (Self::Bilinear, true) => TensorFilter::Bilinear,
            (Self::Bilinear, false) => TensorFilter::PlainBilinear,
            (Self::Bicubic, true) => TensorFilter::Bicubic,
            (Self::Bicubic, false) => TensorFilter::PlainBicubic,
            (Self::Lanczos, _) => TensorFilter::Lanczos,
            (Self::Box | Self::Hamming, _) => return self.into(),
        })
    }
}

/// The sampling of a resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub(crate) interpolation: Interpolation,
    /// Whether shrinking widens the filter; tensors only, Pillow always does.
    pub(crate) antialias: bool,
}

impl From<Interpolation> for Sampling {
    fn from(interpolation: Interpolation) -> Self {
        Self { interpolation, antialias: true }
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = if self.antialias { "" } else { ", no antialiasing on tensors" };
        write!(f, "{}{plain}", self.interpolation)
    }
}
