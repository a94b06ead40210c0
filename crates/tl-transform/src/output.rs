//! The form in which results land in a batch: type and arrangement of the numbers.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::normalize::{self, Element};

/// The type of the numbers in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dtype {
    /// 32-bit floats.
    F32,
    /// 16-bit IEEE floats, rounded to nearest even from the 32-bit value.
    F16,
    /// The upper half of a 32-bit float, rounded to nearest even.
    Bf16,
    /// Pixels as they are.
    U8,
}

impl Dtype {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::U8 => "u8",
        }
    }
}

impl From<Dtype> for Element {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::Bf16 => Self::Bf16,
            Dtype::U8 => Self::U8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the numbers of one image are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layout {
    /// Three planes, as PyTorch wants it.
    Chw,
    /// Interleaved pixels, as TensorFlow and JAX want it.
    Hwc,
}

impl From<Layout> for normalize::Layout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Chw => Self::Chw,
            Layout::Hwc => Self::Hwc,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Chw => "CHW",
            Self::Hwc => "HWC",
        })
    }
}

/// The form in which a recipe's results land in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// The numbers.
    pub dtype: Dtype,
    /// Their arrangement.
    pub layout: Layout,
}
