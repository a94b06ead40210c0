//! AugMix: a mixture of an image and of its changed versions.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::tables::{MIX, MIX_PARTIAL};
use super::{Outside, Space};
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::op::Operation;
use crate::op::warp::require_common;
use crate::rng::Rng;
use crate::step::{Mix, Step};
use crate::stream::Stream;

/// The magnitudes of AugMix are numbered 0 to 9.
const BINS: u32 = 10;

/// The most chains of a mixture.
const MAX_WIDTH: usize = 16;

/// The most operations of a chain.
const MAX_DEPTH: i32 = 16;

/// Mixes an image with the ends of chains of operations on it.
///
/// torchvision's `AugMix`, after Hendrycks et al., "AugMix: A Simple Data Processing Method to
/// Improve Robustness and Uncertainty" (2019). torchvision does all of it on tensors, also for a
/// Pillow image, and so do both modes here. The weights are drawn first, then chain by chain the
/// number of operations, and each operation with its magnitude and the direction of that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugMix {
    /// The magnitudes are the least ones, this many of 10.
    pub severity: u32,
    /// How many chains there are.
    pub mixture_width: u32,
    /// How many operations a chain has; 1 to 3, drawn for every chain, when not above 0.
    pub chain_depth: i32,
    /// The parameter of the Dirichlet distributions of the weights; the less, the more unequal.
    pub alpha: f64,
    /// Whether brightness, colour, contrast and sharpness are changed too.
    pub all_ops: bool,
    /// The filter: nearest or bilinear.
    pub interpolation: Interpolation,
    /// The colour outside the image; by default images fade to black at their edges.
    pub fill: Option<Fill>,
}

impl Default for AugMix {
    fn default() -> Self {
        Self {
            severity: 3,
            mixture_width: 3,
            chain_depth: -1,
            alpha: 1.0,
            all_ops: true,
            interpolation: Interpolation::Bilinear,
            fill: None,
        }
    }
}

impl AugMix {
    const fn space(&self) -> &'static Space {
        if self.all_ops { &MIX } else { &MIX_PARTIAL }
    }

    /// How many operations the next chain has.
    fn depth(&self, rng: &mut Rng) -> u32 {
        u32::try_from(self.chain_depth)
            .ok()
            .filter(|depth| *depth > 0)
            .unwrap_or_else(|| 1 + rng.below(3))
    }
}

impl Operation for AugMix {
    fn check(&self) -> Result<(), Invalid> {
        let Self { severity, mixture_width, chain_depth, alpha, interpolation, fill, .. } = *self;
        require((1..=BINS).contains(&severity), "severity", f64::from(severity), "1 to 10")?;
        let width = (1..=MAX_WIDTH).contains(&(mixture_width as usize));
        require(width, "mixture_width", f64::from(mixture_width), "1 to 16")?;
        let depth = chain_depth <= MAX_DEPTH;
        require(depth, "chain_depth", f64::from(chain_depth), "at most 16")?;
        let least = 1e-6;
        let most = 1e6;
        require((least..=most).contains(&alpha), "alpha", alpha, "0.000001 to 1000000")?;
        let supported = interpolation != Interpolation::Bicubic;
        require(supported, "interpolation", f64::from(interpolation as u8), "nearest or bilinear")?;
        require_common(interpolation, fill, None)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { severity, mixture_width, alpha, interpolation, fill, .. } = *self;
        let mut rng = stream.rng();
        let [mut share, mut weights] = [[0.0; MAX_WIDTH]; 2];
        let share = &mut share[..2];
        let weights = &mut weights[..MAX_WIDTH.min(mixture_width as usize)];
        rng.dirichlet(alpha, share);
        rng.dirichlet(alpha, weights);
        let [of_image, of_chains] = [share[0], share[1]].map(to_f32);
        drawing.step(Step::Mix(Mix::Begin { weight: of_image }))?;
        let last = weights.len() - 1;
        for (place, weight) in weights.iter().enumerate() {
            for _ in 0..self.depth(&mut rng) {
                let action = self.space().choose(&mut rng);
                let bin = |rng: &mut Rng| rng.below(severity);
                let outside = Outside { interpolation, fill };
                self.space().draw(action, bin, BINS, &mut rng, outside, drawing)?;
            }
            let weight = to_f32(*weight) * of_chains;
            let mix = if place == last { Mix::End { weight } } else { Mix::Chain { weight } };
            drawing.step(Step::Mix(mix))?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "torchvision's weights are f32")]
const fn to_f32(value: f64) -> f32 {
    value as f32
}

impl fmt::Display for AugMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, mixture_width, chain_depth, alpha, all_ops, interpolation, fill } =
            *self;
        write!(f, "({mixture_width} chains of ")?;
        match chain_depth {
            1.. => write!(f, "{chain_depth}")?,
            _ => f.write_str("1 to 3")?,
        }
        let ops = if all_ops { "" } else { "no colours, " };
        let outside = Outside { interpolation, fill };
        write!(f, " ops, severity {severity}, alpha {alpha}, {ops}{outside})")
    }
}
