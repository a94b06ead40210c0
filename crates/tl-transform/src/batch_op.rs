//! Operations on whole batches: images mixed with those before them, and their labels.

mod draw;
mod mixing;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::{require, require_probability};
use crate::error::Invalid;
use crate::output::Dtype;

pub use mixing::Mixing;

/// One way of mixing the images of a batch. Of a recipe's ways each batch takes one, each as likely
/// as the others: torchvision's `RandomChoice([MixUp(...), CutMix(...)])`.
///
/// Every image is mixed with those before it in the batch, and the first ones with the last:
/// torchvision's `roll(1, 0)`. Images that were left out have no part in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BatchOp {
    /// Blends images.
    MixUp(MixUp),
    /// Puts a rectangle of another image into each.
    CutMix(CutMix),
    /// Makes each image of parts of four.
    Mosaic(Mosaic),
}

/// Blends every image with the one before it: torchvision's `MixUp` (Zhang et al., 2017), for
/// batches of floats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixUp {
    /// Both parameters of the Beta distribution that the weight is drawn from.
    pub alpha: f64,
    /// The probability.
    pub p: f64,
    /// How many classes soft labels have. A loader requires it where samples have labels.
    pub num_classes: Option<u32>,
}

/// Replaces a rectangle of every image by that of the one before it: torchvision's `CutMix` (Yun et
/// al., 2019).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CutMix {
    /// Both parameters of the Beta distribution that the rest of the area is drawn from.
    pub alpha: f64,
    /// The probability.
    pub p: f64,
    /// How many classes soft labels have. A loader requires it where samples have labels.
    pub num_classes: Option<u32>,
}

/// Puts four images around a random point: the mosaic of `YOLOv4` (Bochkovskiy et al., 2020) on a
/// canvas of the images' size.
///
/// The point is even over the middle half of the width and of the height. The image's lower right
/// corner touches it from the upper left; of the image before, the lower left corner from the upper
/// right; of the second before, the upper right corner from the lower left; of the third before, the
/// upper left corner from the lower right. Labels weigh as much as the areas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mosaic {
    /// The probability.
    pub p: f64,
    /// How many classes soft labels have. A loader requires it where samples have labels.
    pub num_classes: Option<u32>,
}

impl Default for MixUp {
    fn default() -> Self {
        Self { alpha: 1.0, p: 1.0, num_classes: None }
    }
}

impl Default for CutMix {
    fn default() -> Self {
        Self { alpha: 1.0, p: 1.0, num_classes: None }
    }
}

impl Default for Mosaic {
    fn default() -> Self {
        Self { p: 1.0, num_classes: None }
    }
}

impl BatchOp {
    /// The name, as torchvision's class has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::MixUp(_) => "MixUp",
            Self::CutMix(_) => "CutMix",
            Self::Mosaic(_) => "Mosaic",
        }
    }

    /// How many classes soft labels have, if it says.
    #[must_use]
    pub const fn num_classes(&self) -> Option<u32> {
        match self {
            Self::MixUp(MixUp { num_classes, .. })
            | Self::CutMix(CutMix { num_classes, .. })
            | Self::Mosaic(Mosaic { num_classes, .. }) => *num_classes,
        }
    }

    /// The probability of being done where it is chosen.
    fn p(&self) -> f64 {
        match self {
            Self::MixUp(MixUp { p, .. })
            | Self::CutMix(CutMix { p, .. })
            | Self::Mosaic(Mosaic { p, .. }) => *p,
        }
    }

    /// Whether it is defined for numbers of this type: torch does not multiply integers by fractions.
    pub(crate) fn takes(&self, dtype: Dtype) -> bool {
        !matches!((self, dtype), (Self::MixUp(_), Dtype::U8))
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        require_probability(self.p())?;
        if let Self::MixUp(MixUp { alpha, .. }) | Self::CutMix(CutMix { alpha, .. }) = *self {
            let usable = (MIN_ALPHA..=MAX_ALPHA).contains(&alpha);
            require(usable, "alpha", alpha, "a number from 0.001 to 1000")?;
        }
        let classes = self.num_classes();
        let number = classes.map_or(1.0, f64::from);
        require(classes != Some(0), "num_classes", number, "at least 1")
    }
}

/// Beyond these the distribution is 0 or 1, or one half.
const MIN_ALPHA: f64 = 0.001;
const MAX_ALPHA: f64 = 1000.0;

impl fmt::Display for BatchOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::MixUp(MixUp { alpha, p, .. }) | Self::CutMix(CutMix { alpha, p, .. }) => {
                write!(f, "(alpha {alpha}, p {p})")
            }
            Self::Mosaic(Mosaic { p, .. }) => write!(f, "(p {p})"),
        }
    }
}

macro_rules! from {
    ($($name:ident)*) => {
        $(impl From<$name> for BatchOp {
            fn from(op: $name) -> Self {
                Self::$name(op)
            }
        })*
    };
}

from!(MixUp CutMix Mosaic);

#[cfg(test)]
mod tests;
