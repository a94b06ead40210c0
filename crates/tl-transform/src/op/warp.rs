//! Rotations, affine maps, and what all warps have in common.

mod elastic;
mod perspective;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FixedSizes, Operation, Range};
use crate::bounds::{require, require_name};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::rng::Rng;
use crate::step::{Affine, Rotate, Step, Warp};
use crate::stream::Stream;

pub use elastic::{ElasticTransform, PerAxis};
pub use perspective::RandomPerspective;

/// Rotates by a random angle.
///
/// torchvision's `RandomRotation`. Multiples of 90 degrees about the middle only move pixels, where
/// the result has the shape for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRotation {
    /// The angles: degrees counter-clockwise, or bounds of both directions.
    pub degrees: Range,
    /// The filter: nearest, bilinear or bicubic.
    #[serde(default = "nearest")]
    pub interpolation: Interpolation,
    /// Whether the image is enlarged to hold every corner.
    #[serde(default)]
    pub expand: bool,
    /// The point that stays, from the upper left corner; the middle by default.
    #[serde(default)]
    pub center: Option<(f64, f64)>,
    /// The colour outside the image.
    #[serde(default = "black")]
    pub fill: Option<Fill>,
}

pub(super) const fn nearest() -> Interpolation {
    Interpolation::Nearest
}

const fn black() -> Option<Fill> {
    Some(Fill::BLACK)
}

/// The largest number that a parameter can be: places in images stay far within `f64`.
const LARGEST: f64 = 1e6;

pub(super) fn require_finite(parameter: &'static str, value: f64) -> Result<(), Invalid> {
    require(value.abs() <= LARGEST, parameter, value, "a number from -1000000 to 1000000")
}

/// Refuses what Pillow cannot warp with, and fills and places that are not valid.
pub(super) fn require_common(
    interpolation: Interpolation,
    fill: Option<Fill>,
    center: Option<(f64, f64)>,
) -> Result<(), Invalid> {
    let ok = matches!(
        interpolation,
        Interpolation::Nearest
            | Interpolation::NearestExact
            | Interpolation::Bilinear
            | Interpolation::Bicubic
    );
    require_name(ok, "interpolation", interpolation.name(), "nearest, bilinear or bicubic")?;
    fill.map_or(Ok(()), |fill| fill.check())?;
    let (x, y) = center.unwrap_or_default();
    require_finite("center", x)?;
    require_finite("center", y)
}

/// Writes what is not the default.
pub(super) fn write_fill(f: &mut fmt::Formatter<'_>, fill: Option<Fill>) -> fmt::Result {
    match fill {
        Some(Fill::BLACK) => Ok(()),
        Some(fill) => write!(f, ", fill {fill}"),
        None => write!(f, ", no fill"),
    }
}

impl RandomRotation {
    /// Rotations by up to `degrees` in both directions, with torchvision's defaults.
    #[must_use]
    pub const fn new(degrees: f64) -> Self {
        Self {
            degrees: Range::Within(degrees),
            interpolation: nearest(),
            expand: false,
            center: None,
            fill: black(),
        }
    }
}

impl Operation for RandomRotation {
    fn check(&self) -> Result<(), Invalid> {
        self.degrees.check("degrees")?;
        require_common(self.interpolation, self.fill, self.center)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { interpolation, expand, center, fill, .. } = *self;
        let angle = self.degrees.draw(&mut stream.rng());
        let rotate = Rotate { angle, interpolation, expand: None, center, fill };
        let rotate =
            if expand { rotate.expanded(drawing.parity(), drawing.size()) } else { rotate };
        drawing.step(Step::Warp(Warp::Rotate(rotate)))
    }

    fn output_size(&self, before: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        before.filter(|_| !self.expand)
    }
}

impl fmt::Display for RandomRotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { degrees, interpolation, expand, center, fill } = self;
        let (low, high) = degrees.bounds();
        write!(f, "({low}..{high} degrees, {interpolation}")?;
        f.write_str(if *expand { ", expand" } else { "" })?;
        center.map_or(Ok(()), |(x, y)| write!(f, ", center {x} {y}"))?;
        write_fill(f, *fill)?;
        f.write_str(")")
    }
}

/// Rotates, shifts, scales and shears at random, the middle staying where it is.
///
/// torchvision's `RandomAffine`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomAffine {
    /// The angles, in degrees clockwise.
    pub degrees: Range,
    /// The largest shifts right and down, as shares of width and height.
    #[serde(default)]
    pub translate: Option<(f64, f64)>,
    /// Bounds of the factor of size.
    #[serde(default)]
    pub scale: Option<(f64, f64)>,
    /// The angles of shear.
    #[serde(default)]
    pub shear: Option<Shear>,
    /// The filter: nearest, bilinear or bicubic.
    #[serde(default = "nearest")]
    pub interpolation: Interpolation,
    /// The colour outside the image.
    #[serde(default = "black")]
    pub fill: Option<Fill>,
    /// The point that stays, from the upper left corner; the middle by default.
    #[serde(default)]
    pub center: Option<(f64, f64)>,
}

/// Angles of shear, in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or two or four bounds")]
pub enum Shear {
    /// Parallel to the x axis, from the opposite to this.
    Within(f64),
    /// Parallel to the x axis, from the first to the second.
    Across(f64, f64),
    /// Parallel to the x axis, from the first to the second, and to the y axis, from the third to
    /// the fourth.
    Both(f64, f64, f64, f64),
}

impl Shear {
    const fn ranges(self) -> (Range, Option<Range>) {
        match self {
            Self::Within(most) => (Range::Within(most), None),
            Self::Across(low, high) => (Range::Between(low, high), None),
            Self::Both(a, b, c, d) => (Range::Between(a, b), Some(Range::Between(c, d))),
        }
    }

    fn draw(self, rng: &mut Rng) -> (f64, f64) {
        let (across, down) = self.ranges();
        let across = across.draw(rng);
        (across, down.map_or(0.0, |down| down.draw(rng)))
    }
}

impl RandomAffine {
    /// Rotations by up to `degrees` in both directions and nothing else, torchvision's defaults.
    #[must_use]
    pub const fn new(degrees: f64) -> Self {
        Self {
            degrees: Range::Within(degrees),
            translate: None,
            scale: None,
            shear: None,
            interpolation: nearest(),
            fill: black(),
            center: None,
        }
    }
}

impl Operation for RandomAffine {
    fn check(&self) -> Result<(), Invalid> {
        self.degrees.check("degrees")?;
        let (x, y) = self.translate.unwrap_or_default();
        for share in [x, y] {
            require((0.0..=1.0).contains(&share), "translate", share, "a share, 0 to 1")?;
        }
        if let Some((low, high)) = self.scale {
            require(low >= 1.0 / LARGEST, "scale", low, "a number from 0.000001 on")?;
            Range::Between(low, high).check("scale")?;
        }
        if let Some(shear) = self.shear {
            let (across, down) = shear.ranges();
            across.check("shear")?;
            down.map_or(Ok(()), |down| down.check("shear"))?;
        }
        require_common(self.interpolation, self.fill, self.center)
    }

    /// Draws the angle, the shifts, the scale and the shear, each only where there is one.
    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { interpolation, fill, center, .. } = *self;
        let mut rng = stream.rng();
        let (width, height) = drawing.size();
        let angle = self.degrees.draw(&mut rng);
        let shift = |rng: &mut Rng, share: f64, side: u32| {
            let most = share * f64::from(side);
            rng.uniform(-most, most).round_ties_even()
        };
        let translate = self.translate.map_or((0.0, 0.0), |(x, y)| {
            let x = shift(&mut rng, x, width);
            (x, shift(&mut rng, y, height))
        });
        let scale = self.scale.map_or(1.0, |(low, high)| rng.uniform(low, high));
        let shear = self.shear.map_or((0.0, 0.0), |shear| shear.draw(&mut rng));
        let affine = Affine { angle, translate, scale, shear, interpolation, fill, center };
        drawing.step(Step::Warp(Warp::Affine(affine)))
    }
}

impl fmt::Display for RandomAffine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { degrees, translate, scale, shear, interpolation, fill, center } = self;
        let (low, high) = degrees.bounds();
        write!(f, "({low}..{high} degrees, {interpolation}")?;
        translate.map_or(Ok(()), |(x, y)| write!(f, ", translate {x} {y}"))?;
        scale.map_or(Ok(()), |(low, high)| write!(f, ", scale {low}..{high}"))?;
        if let Some((across, down)) = shear.map(Shear::ranges) {
            let (low, high) = across.bounds();
            write!(f, ", shear {low}..{high}")?;
            if let Some((low, high)) = down.map(Range::bounds) {
                write!(f, " {low}..{high}")?;
            }
        }
        center.map_or(Ok(()), |(x, y)| write!(f, ", center {x} {y}"))?;
        write_fill(f, *fill)?;
        f.write_str(")")
    }
}
