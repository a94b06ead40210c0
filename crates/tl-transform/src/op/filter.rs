//! Blurring and noise.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::Operation;
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::step::{Filter, MAX_KERNEL, MAX_NOISE, Noise, Step, is_deviation, is_kernel};
use crate::stream::Stream;

/// Blurs with a Gaussian of random width: torchvision's `GaussianBlur`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GaussianBlur {
    /// Columns and rows of the kernel, odd; in JSON also one number for both.
    #[serde(deserialize_with = "one_or_two")]
    pub kernel_size: (u32, u32),
    /// Bounds of the standard deviation in pixels; in JSON also one number for both.
    #[serde(default = "blur_sigma", deserialize_with = "one_or_two")]
    pub sigma: (f64, f64),
}

const fn blur_sigma() -> (f64, f64) {
    (0.1, 2.0)
}

impl GaussianBlur {
    /// torchvision's `GaussianBlur(kernel_size)`: sigma 0.1 to 2.
    #[must_use]
    pub const fn new(kernel_size: u32) -> Self {
        Self { kernel_size: (kernel_size, kernel_size), sigma: blur_sigma() }
    }
}

impl Operation for GaussianBlur {
    fn check(&self) -> Result<(), Invalid> {
        const { assert!(MAX_KERNEL == 255, "the message below") };
        for side in [self.kernel_size.0, self.kernel_size.1] {
            require(is_kernel(side), "kernel_size", side.into(), "an odd number, 1 to 255")?;
        }
        let (low, high) = self.sigma;
        require(is_deviation(low), "sigma", low, "a positive number")?;
        require(is_deviation(high) && high >= low, "sigma", high, "no less than the lower bound")
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let sigma = stream.rng().uniform(self.sigma.0, self.sigma.1);
        let Self { kernel_size, .. } = *self;
        drawing.step(Step::Filter(Filter::GaussianBlur { kernel_size, sigma: (sigma, sigma) }))
    }
}

impl fmt::Display for GaussianBlur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel_size: (columns, rows), sigma: (low, high) } = self;
        write!(f, "({columns}x{rows}, sigma {low}..{high})")
    }
}

/// Adds normal noise: torchvision's `GaussianNoise` on `uint8`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GaussianNoise {
    /// The mean, 1 being the whole range of samples.
    pub mean: f64,
    /// The standard deviation, 1 being the whole range of samples.
    pub sigma: f64,
    /// Whether sums are held within the range of samples; they wrap otherwise.
    pub clip: bool,
}

impl Default for GaussianNoise {
    fn default() -> Self {
        Self { mean: 0.0, sigma: 0.1, clip: true }
    }
}

impl Operation for GaussianNoise {
    fn check(&self) -> Result<(), Invalid> {
        let Self { mean, sigma, .. } = *self;
        require(mean.abs() <= MAX_NOISE, "mean", mean, "a number from -16 to 16")?;
        require((0.0..=MAX_NOISE).contains(&sigma), "sigma", sigma, "a number from 0 to 16")
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { mean, sigma, clip } = *self;
        let key = stream.rng().next_u64();
        drawing.step(Step::Noise(Noise::Gaussian { mean, sigma, clip, key }))
    }
}

impl fmt::Display for GaussianNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, sigma, clip } = self;
        write!(f, "(mean {mean}, sigma {sigma}{})", if *clip { "" } else { ", wrapping" })
    }
}

/// A pair, or one value that is both of its halves.
fn one_or_two<'de, T, D>(from: D) -> Result<(T, T), D::Error>
where
    T: Copy + Deserialize<'de>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number, or two of them")]
    enum OneOrTwo<T> {
        One(T),
        Two(T, T),
    }
    Ok(match OneOrTwo::deserialize(from)? {
        OneOrTwo::One(value) => (value, value),
        OneOrTwo::Two(first, second) => (first, second),
    })
}
