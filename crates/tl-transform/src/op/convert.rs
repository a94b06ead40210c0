//! From pixels to the numbers of a batch.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Domain, Operation};
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::output::Channels;
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
    /// Subtracted first, for R, G and B, and A of images that have it.
    pub mean: ChannelValues,
    /// Divided by afterwards.
    pub std: ChannelValues,
}

/// A number for each channel: of three, or of four with alpha.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f32>", into = "Vec<f32>")]
pub struct ChannelValues {
    /// That of alpha is 0 where there are three.
    values: [f32; 4],
    count: usize,
}

impl ChannelValues {
    /// The numbers.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        &self.values[..self.count]
    }

    /// Four numbers, of which those of channels count.
    pub(crate) fn padded(self) -> [f32; 4] {
        self.values
    }

    /// Whether images of these channels are normalised with them; grey ones take the first.
    pub(crate) fn is_for(&self, channels: Channels, std: Self) -> bool {
        let count = if channels == Channels::Rgba { 4 } else { 3 };
        self.count == count && std.count == count
    }
}

impl From<[f32; 3]> for ChannelValues {
    fn from([r, g, b]: [f32; 3]) -> Self {
        Self { values: [r, g, b, 0.0], count: 3 }
    }
}

impl From<[f32; 4]> for ChannelValues {
    fn from(values: [f32; 4]) -> Self {
        Self { values, count: 4 }
    }
}

impl From<ChannelValues> for Vec<f32> {
    fn from(values: ChannelValues) -> Self {
        values.as_slice().to_vec()
    }
}

impl TryFrom<Vec<f32>> for ChannelValues {
    type Error = String;

    fn try_from(values: Vec<f32>) -> Result<Self, String> {
        match values[..] {
            [r, g, b] => Ok([r, g, b].into()),
            [r, g, b, a] => Ok([r, g, b, a].into()),
            _ => Err(format!(
                "{} numbers, expected one for each of 3 channels, or of 4",
                values.len()
            )),
        }
    }
}

impl fmt::Debug for ChannelValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl Normalize {
    /// Channel means and standard deviations of ImageNet, for values in 0..=1.
    pub const IMAGENET: Self = Self {
        mean: ChannelValues { values: [0.485, 0.456, 0.406, 0.0], count: 3 },
        std: ChannelValues { values: [0.229, 0.224, 0.225, 0.0], count: 3 },
    };
}

impl Default for Normalize {
    fn default() -> Self {
        Self::IMAGENET
    }
}

impl Operation for Normalize {
    fn check(&self) -> Result<(), Invalid> {
        let counts = (self.mean.count, self.std.count);
        #[expect(clippy::cast_precision_loss, reason = "3 or 4")]
        let std_count = counts.1 as f64;
        require(counts.0 == counts.1, "count of std", std_count, "as many numbers as mean has")?;
        self.mean.as_slice().iter().zip(self.std.as_slice()).try_for_each(|(mean, std)| {
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
