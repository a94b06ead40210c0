//! AutoAugment: pairs of operations that a search found to help.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::tables::{self, SubPolicy};
use super::{Outside, nearest};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::op::Operation;
use crate::op::warp::require_common;
use crate::stream::Stream;

/// The magnitudes of AutoAugment are numbered 0 to 9.
const BINS: u32 = 10;

/// Applies one of 25 pairs of operations, each operation with its own probability.
///
/// torchvision's `AutoAugment`, after Cubuk et al., "AutoAugment: Learning Augmentation Policies
/// from Data" (2018). The pair is drawn first, then for each of its operations whether it is done,
/// and then the direction of its magnitude where that has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoAugment {
    /// The data set that the pairs were found on.
    pub policy: AutoAugmentPolicy,
    /// The filter: nearest, bilinear or bicubic.
    pub interpolation: Interpolation,
    /// The colour outside the image; by default black.
    pub fill: Option<Fill>,
}

/// The data set that a policy was found on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AutoAugmentPolicy {
    /// ImageNet.
    #[default]
    Imagenet,
    /// CIFAR-10.
    Cifar10,
    /// SVHN.
    Svhn,
}

impl AutoAugmentPolicy {
    pub(super) const fn pairs(self) -> &'static [SubPolicy; 25] {
        match self {
            Self::Imagenet => &tables::IMAGENET,
            Self::Cifar10 => &tables::CIFAR10,
            Self::Svhn => &tables::SVHN,
        }
    }
}

impl fmt::Display for AutoAugmentPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Imagenet => "imagenet",
            Self::Cifar10 => "cifar10",
            Self::Svhn => "svhn",
        })
    }
}

impl Default for AutoAugment {
    fn default() -> Self {
        Self { policy: AutoAugmentPolicy::Imagenet, interpolation: nearest(), fill: None }
    }
}

impl Operation for AutoAugment {
    fn check(&self) -> Result<(), Invalid> {
        require_common(self.interpolation, self.fill, None)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { policy, interpolation, fill } = *self;
        let mut rng = stream.rng();
        let pairs = policy.pairs();
        let pair = pairs[rng.index(pairs.len())];
        for (action, probability, bin) in pair {
            // As torchvision has it: no more than the probability.
            if rng.unit_f64() > probability {
                continue;
            }
            let bin = |_: &mut _| bin.unwrap_or_default();
            let outside = Outside { interpolation, fill };
            tables::AUTO.draw(action, bin, BINS, &mut rng, outside, drawing)?;
        }
        Ok(())
    }
}

impl fmt::Display for AutoAugment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, interpolation, fill } = *self;
        write!(f, "({policy}, {})", Outside { interpolation, fill })
    }
}
