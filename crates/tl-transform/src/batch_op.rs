//! Operations on whole batches: images mixed with those before them, and their labels.

mod draw;
mod mixing;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::{require, require_probability};
use crate::error::Invalid;
use crate::op::operations;
use crate::output::Dtype;

pub use mixing::Mixing;

operations! {
    /// One way of mixing the images of a batch. Each batch takes one of a recipe's ways, all of them
    /// equally likely: torchvision's `RandomChoice([MixUp(...), CutMix(...)])`.
    ///
    /// Every image is mixed with those before it in the batch, and the first ones with the last:
    /// torchvision's `roll(1, 0)`. Images that were left out have no part in it.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "op", rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum BatchOp: dyn BatchOperation {
        /// Blends the images of a batch.
        ///
        /// Each is blended with the one before it, the first with the last.
        /// The result keeps the size; its floats come after `ToTensor`. Counterpart: `MixUp`.
        MixUp(
            /// Both parameters of the Beta distribution of the weight: more than 0.
            alpha: Number = 1.0,
            /// The number of classes of `batch["soft_label"]`, of shape (batch, classes) and
            /// `float32`; required where samples have labels.
            num_classes: Count = null,
            p: Probability = 1.0
        ),
        /// Puts a rectangle of another image into each of a batch.
        ///
        /// The other one is the image before it, for the first the last.
        /// The result keeps the size. Counterpart: `CutMix`.
        CutMix(
            /// Both parameters of the Beta distribution of the area that stays: more than 0.
            alpha: Number = 1.0,
            /// The number of classes of `batch["soft_label"]`, of shape (batch, classes) and
            /// `float32`; required where samples have labels.
            num_classes: Count = null,
            p: Probability = 1.0
        ),
        /// Makes each image of a batch of parts of four.
        ///
        /// They meet at a random point in the middle half, as in `YOLOv4` (Bochkovskiy et al., 2020).
        /// The result keeps the size. Counterpart: none.
        Mosaic(
            /// The number of classes of `batch["soft_label"]`, of shape (batch, classes) and
            /// `float32`; required where samples have labels.
            num_classes: Count = null,
            p: Probability = 1.0
        ),
    }
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

/// The parameters that ways of mixing have in common.
pub(crate) trait BatchOperation {
    /// The probability of being done where it is chosen.
    fn p(&self) -> f64;

    /// The number of classes of soft labels, if it is given.
    fn num_classes(&self) -> Option<u32>;

    /// The parameter of the distribution that the weight is drawn from, if there is one.
    fn alpha(&self) -> Option<f64> {
        None
    }
}

macro_rules! batch_operations {
    ($($name:ident $(($alpha:ident))?)*) => {
        $(impl BatchOperation for $name {
            fn p(&self) -> f64 {
                self.p
            }

            fn num_classes(&self) -> Option<u32> {
                self.num_classes
            }

            $(fn alpha(&self) -> Option<f64> {
                Some(self.$alpha)
            })?
        })*
    };
}

batch_operations!(MixUp(alpha) CutMix(alpha) Mosaic);

impl BatchOp {
    /// The number of classes of soft labels, if it is given.
    #[must_use]
    pub fn num_classes(&self) -> Option<u32> {
        self.operation().num_classes()
    }

    /// The probability of being done where it is chosen.
    fn p(&self) -> f64 {
        self.operation().p()
    }

    /// Whether it is defined for numbers of this type: torch does not multiply integers by fractions.
    pub(crate) fn takes(&self, dtype: Dtype) -> bool {
        dtype.is_float() || !matches!(self, Self::MixUp(_))
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        require_probability(self.p())?;
        if let Some(alpha) = self.operation().alpha() {
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
        let name = self.name();
        let p = self.p();
        match self.operation().alpha() {
            Some(alpha) => write!(f, "{name}(alpha {alpha}, p {p})"),
            None => write!(f, "{name}(p {p})"),
        }
    }
}

#[cfg(test)]
mod tests;
