//! RandAugment and TrivialAugment: operations chosen without a search.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::tables::{RAND, WIDE};
use super::{Outside, nearest, require_bins};
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::op::Operation;
use crate::op::warp::require_common;
use crate::stream::Stream;

/// As many operations one after the other leave nothing of an image.
const MAX_OPS: u32 = 64;

/// Magnitudes that torchvision has by default.
const BINS: u32 = 31;

/// Does `num_ops` operations of 14, all at the same magnitude.
///
/// torchvision's `RandAugment`, after Cubuk et al., "RandAugment: Practical automated data
/// augmentation with a reduced search space" (2019). Each operation is drawn with the direction of
/// its magnitude, where that has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandAugment {
    /// How many operations are done, one after the other.
    pub num_ops: u32,
    /// The number of the magnitude, from 0.
    pub magnitude: u32,
    /// How many magnitudes there are.
    pub num_magnitude_bins: u32,
    /// The filter: nearest, bilinear or bicubic.
    pub interpolation: Interpolation,
    /// The colour outside the image; by default black.
    pub fill: Option<Fill>,
}

impl Default for RandAugment {
    fn default() -> Self {
        Self {
            num_ops: 2,
            magnitude: 9,
            num_magnitude_bins: BINS,
            interpolation: nearest(),
            fill: None,
        }
    }
}

impl Operation for RandAugment {
    fn check(&self) -> Result<(), Invalid> {
        let Self { num_ops, magnitude, num_magnitude_bins, interpolation, fill } = *self;
        require(num_ops <= MAX_OPS, "num_ops", f64::from(num_ops), "0 to 64")?;
        require_bins(num_magnitude_bins)?;
        let expected = "less than num_magnitude_bins";
        require(magnitude < num_magnitude_bins, "magnitude", f64::from(magnitude), expected)?;
        require_common(interpolation, fill, None)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { num_ops, magnitude, num_magnitude_bins, interpolation, fill } = *self;
        let mut rng = stream.rng();
        for _ in 0..num_ops {
            let action = RAND.choose(&mut rng);
            let bin = |_: &mut _| magnitude;
            let outside = Outside { interpolation, fill };
            RAND.draw(action, bin, num_magnitude_bins, &mut rng, outside, drawing)?;
        }
        Ok(())
    }
}

impl fmt::Display for RandAugment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_ops, magnitude, num_magnitude_bins, interpolation, fill } = *self;
        let outside = Outside { interpolation, fill };
        write!(f, "({num_ops} ops, magnitude {magnitude} of {num_magnitude_bins}, {outside})")
    }
}

/// Applies one of 14 operations at a random magnitude, over wider ranges than [`RandAugment`].
///
/// torchvision's `TrivialAugmentWide`, after Müller and Hutter, "TrivialAugment: Tuning-free Yet
/// State-of-the-Art Data Augmentation" (2021). The operation is drawn first, then its magnitude and
/// the direction of that, where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrivialAugmentWide {
    /// How many magnitudes there are.
    pub num_magnitude_bins: u32,
    /// The filter: nearest, bilinear or bicubic.
    pub interpolation: Interpolation,
    /// The colour outside the image; by default black.
    pub fill: Option<Fill>,
}

impl Default for TrivialAugmentWide {
    fn default() -> Self {
        Self { num_magnitude_bins: BINS, interpolation: nearest(), fill: None }
    }
}

impl Operation for TrivialAugmentWide {
    fn check(&self) -> Result<(), Invalid> {
        require_bins(self.num_magnitude_bins)?;
        require_common(self.interpolation, self.fill, None)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { num_magnitude_bins, interpolation, fill } = *self;
        let mut rng = stream.rng();
        let action = WIDE.choose(&mut rng);
        let bin = |rng: &mut crate::Rng| rng.below(num_magnitude_bins);
        let outside = Outside { interpolation, fill };
        WIDE.draw(action, bin, num_magnitude_bins, &mut rng, outside, drawing)
    }
}

impl fmt::Display for TrivialAugmentWide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_magnitude_bins, interpolation, fill } = *self;
        write!(f, "({num_magnitude_bins} magnitudes, {})", Outside { interpolation, fill })
    }
}
