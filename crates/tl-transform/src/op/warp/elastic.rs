//! Random elastic displacements.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{black, require_common, write_fill};
use crate::bounds::{require, require_name};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::op::Operation;
use crate::op::forms::forms;
use crate::step::{Elastic, Step, Warp};
use crate::stream::Stream;

/// Moves every pixel by a random displacement, neighbours by similar ones.
///
/// torchvision's `ElasticTransform`, which does the same to Pillow images as to tensors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ElasticTransform {
    /// Size of the displacements.
    pub alpha: PerAxis,
    /// Their smoothness: deviations of a Gaussian, in pixels; 0 for none.
    pub sigma: PerAxis,
    /// The filter: nearest or bilinear.
    pub interpolation: Interpolation,
    /// The colour outside the image.
    pub fill: Option<Fill>,
}

/// A number for both axes, or one for x and one for y.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PerAxis {
    /// The same for both.
    Same(f64),
    /// One for x, then one for y.
    Each([f64; 2]),
}

forms!(PerAxis: Same(f64), Each([_; 2]); "expected a number, or one for x and one for y");

impl PerAxis {
    const fn pair(self) -> (f64, f64) {
        match self {
            Self::Same(both) => (both, both),
            Self::Each([x, y]) => (x, y),
        }
    }
}

impl fmt::Display for PerAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(both) => write!(f, "{both}"),
            Self::Each([x, y]) => write!(f, "{x} {y}"),
        }
    }
}

impl Default for ElasticTransform {
    fn default() -> Self {
        Self {
            alpha: PerAxis::Same(50.0),
            sigma: PerAxis::Same(5.0),
            interpolation: Interpolation::Bilinear,
            fill: black(),
        }
    }
}

impl Operation for ElasticTransform {
    fn check(&self) -> Result<(), Invalid> {
        let alpha = self.alpha.pair();
        let sigma = self.sigma.pair();
        for alpha in [alpha.0, alpha.1] {
            super::require_finite("alpha", alpha)?;
        }
        for sigma in [sigma.0, sigma.1].into_iter().filter(|_| sigma != (0.0, 0.0)) {
            let smooths = Elastic::smooths(sigma);
            require(smooths, "sigma", sigma, "0.001 to 1000, or 0 for both axes")?;
        }
        let ok = self.interpolation != Interpolation::Bicubic;
        require_name(ok, "interpolation", self.interpolation.name(), "nearest or bilinear")?;
        require_common(self.interpolation, self.fill, None)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { interpolation, fill, .. } = *self;
        let alpha = self.alpha.pair();
        let sigma = self.sigma.pair();
        let elastic = Elastic { alpha, sigma, stream, interpolation, fill };
        drawing.step(Step::Warp(Warp::Elastic(elastic)))
    }
}

impl fmt::Display for ElasticTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alpha, sigma, interpolation, fill } = self;
        write!(f, "(alpha {alpha}, sigma {sigma}, {interpolation}")?;
        write_fill(f, *fill)?;
        f.write_str(")")
    }
}
