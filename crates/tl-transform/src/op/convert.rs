//! From pixels to the numbers of a batch.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Domain, Operation};
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::stream::Stream;

/// Maps 0..=255 to 0..=1: torchvision v2's `ToDtype(float32, scale=True)`, whose name `to_dtype` and
/// that of `ToTensor` are read as well. The numbers' type and layout are those of the recipe's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToFloat {}

impl Operation for ToFloat {
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        drawing.begin_floats();
        Ok(())
    }

    fn domain(&self) -> Domain {
        Domain::ToFloat
    }
}

impl fmt::Display for ToFloat {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Subtracts `mean` and divides by `std`, per channel. What is left out is ImageNet's, which
/// `image_net_normalize` is another name for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Normalize {
    /// Subtracted first, for R, G and B.
    pub mean: [f32; 3],
    /// Divided by afterwards.
    pub std: [f32; 3],
}

impl Normalize {
    /// Channel means and standard deviations of ImageNet, for values in 0..=1.
    pub const IMAGENET: Self = Self { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
}

impl Default for Normalize {
    fn default() -> Self {
        Self::IMAGENET
    }
}

impl Operation for Normalize {
    fn check(&self) -> Result<(), Invalid> {
        self.mean.iter().zip(&self.std).try_for_each(|(mean, std)| {
            require(mean.is_finite(), "mean", f64::from(*mean), "a finite number")?;
            let usable = std.is_normal() && *std > 0.0;
            require(usable, "std", f64::from(*std), "a finite number above 0")
        })
    }

    fn draw(&self, _: Stream, _: &mut Drawing<'_>) -> Result<(), PlanError> {
        Ok(())
    }

    fn domain(&self) -> Domain {
        Domain::Normalize
    }
}

impl fmt::Display for Normalize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(mean {:?}, std {:?})", self.mean, self.std)
    }
}
