//! Random perspectives.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{black, require_common, write_fill};
use crate::bounds::{require, require_probability};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::op::Operation;
use crate::rng::Rng;
use crate::step::{Perspective, Step, Warp};
use crate::stream::Stream;

/// Moves the corners inwards at random, with probability `p`.
///
/// torchvision's `RandomPerspective`. Where the corners drawn have no perspective, as those of an
/// image one pixel wide, the image stays as it is; torchvision raises an error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomPerspective {
    /// The largest move of a corner: a share of the way to the middle.
    pub distortion_scale: f64,
    /// The probability.
    pub p: f64,
    /// The filter: nearest, bilinear or bicubic.
    pub interpolation: Interpolation,
    /// The colour outside the image.
    pub fill: Option<Fill>,
}

impl Default for RandomPerspective {
    fn default() -> Self {
        let interpolation = Interpolation::Bilinear;
        Self { distortion_scale: 0.5, p: 0.5, interpolation, fill: black() }
    }
}

impl Operation for RandomPerspective {
    fn check(&self) -> Result<(), Invalid> {
        let Self { distortion_scale, p, interpolation, fill } = *self;
        let ok = (0.0..=1.0).contains(&distortion_scale);
        require(ok, "distortion_scale", distortion_scale, "a share, 0 to 1")?;
        require_probability(p)?;
        require_common(interpolation, fill, None)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut rng = stream.rng();
        if !rng.chance(self.p) {
            return Ok(());
        }
        let (from, to) = corners(drawing.size(), self.distortion_scale, &mut rng);
        let Some(coefficients) = Perspective::coefficients(from, to) else { return Ok(()) };
        let Self { interpolation, fill, .. } = *self;
        let perspective = Perspective { coefficients, interpolation, fill };
        drawing.step(Step::Warp(Warp::Perspective(perspective)))
    }
}

impl fmt::Display for RandomPerspective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { distortion_scale, p, interpolation, fill } = self;
        write!(f, "(distortion {distortion_scale}, p {p}, {interpolation}")?;
        write_fill(f, *fill)?;
        f.write_str(")")
    }
}

type Corners = [(u32, u32); 4];

/// The corners of the image and where they are moved, clockwise from the upper left one.
fn corners(size: (u32, u32), distortion: f64, rng: &mut Rng) -> (Corners, Corners) {
    let (width, height) = size;
    let across = reach(distortion, width);
    let down = reach(distortion, height);
    let right = width - 1;
    let bottom = height - 1;
    let mut corner = |x: u32, y: u32| {
        let x = x + rng.below(across);
        (x, y + rng.below(down))
    };
    let moved = [
        corner(0, 0),
        corner(width - across, 0),
        corner(width - across, height - down),
        corner(0, height - down),
    ];
    ([(0, 0), (right, 0), (right, bottom), (0, bottom)], moved)
}

/// How many places a corner has on a side: torchvision's `int(distortion * (side // 2)) + 1`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the side")]
fn reach(distortion: f64, side: u32) -> u32 {
    (distortion * f64::from(side / 2)) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_stay_within_their_quarters() {
        for (width, height) in [(1, 1), (2, 9), (7, 4), (640, 480)] {
            for epoch in 0..200 {
                let mut rng = Rng::new(1, epoch, 2, 3);
                let (from, to) = corners((width, height), 1.0, &mut rng);
                for ((from_x, from_y), (x, y)) in from.into_iter().zip(to) {
                    assert!(from_x.abs_diff(x) <= width / 2 && x < width, "{x} of {width}");
                    assert!(from_y.abs_diff(y) <= height / 2 && y < height, "{y} of {height}");
                }
            }
        }
    }
}
