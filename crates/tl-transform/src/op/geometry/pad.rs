//! Borders.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::truncate;
use crate::bounds::{require, require_above, require_probability};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::op::forms::forms;
use crate::op::{FixedSizes, Operation};
use crate::pass::Padding;
use crate::step::{self, Step};
use crate::stream::Stream;

/// The pixels of a border: torchvision's `padding_mode`.
///
/// A mirrored border may be wider than the image, which is then mirrored again, as on Pillow
/// images; torch refuses that for tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PadMode {
    /// One colour.
    #[default]
    Constant,
    /// The outermost pixel repeated.
    Edge,
    /// Mirrored at the middle of the outermost pixels, which are not repeated.
    Reflect,
    /// Mirrored at the edge.
    Symmetric,
}

impl fmt::Display for PadMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Constant => "constant",
            Self::Edge => "edge",
            Self::Reflect => "reflect",
            Self::Symmetric => "symmetric",
        })
    }
}

/// Widths of a border, in the forms that torchvision's `padding` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Sides {
    /// The same on every side.
    All(u32),
    /// Left and right, top and bottom.
    Each([u32; 2]),
    /// Left, top, right, bottom.
    Every([u32; 4]),
}

forms!(
    Sides: All(u32), Each([_; 2]), Every([u32; 4]);
    "a padding is 0 to 65535 pixels, or a list of two or four such"
);

impl Default for Sides {
    fn default() -> Self {
        Self::All(0)
    }
}

impl Sides {
    pub(super) fn padding(self) -> Padding {
        let [left, top, right, bottom] = self.widths();
        Padding { left, top, right, bottom }
    }

    pub(super) fn check(self) -> Result<(), Invalid> {
        let widest = self.widths().into_iter().max().unwrap_or_default();
        require(widest <= PlanError::MAX_SIDE, "padding", f64::from(widest), "0 to 65535")
    }

    const fn widths(self) -> [u32; 4] {
        match self {
            Self::All(all) => [all; 4],
            Self::Each([across, down]) => [across, down, across, down],
            Self::Every(widths) => widths,
        }
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(all) => write!(f, "{all}"),
            Self::Each(widths) => write!(f, "{widths:?}"),
            Self::Every(widths) => write!(f, "{widths:?}"),
        }
    }
}

/// The look of a border.
pub(super) struct Border {
    pub(super) mode: PadMode,
    pub(super) fill: Fill,
}

impl Border {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        self.fill.check()
    }

    /// Adds it; only one of one colour is part of a pass.
    pub(super) fn draw(
        &self,
        padding: Padding,
        drawing: &mut Drawing<'_>,
    ) -> Result<(), PlanError> {
        padding.around(drawing.size())?;
        if self.mode == PadMode::Constant {
            return drawing.pad(padding, self.fill.pil());
        }
        if padding == Padding::default() {
            return Ok(());
        }
        drawing.step(Step::Pad(step::Pad { padding, mode: self.mode, fill: [0; 3] }))
    }
}

impl fmt::Display for Border {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mode == PadMode::Constant {
            write!(f, "fill {}", self.fill)
        } else {
            write!(f, "{}", self.mode)
        }
    }
}

/// Adds a border.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// The width on each side.
    pub padding: Sides,
    /// Its colour.
    #[serde(default)]
    pub fill: Fill,
    /// The kind of border.
    #[serde(default)]
    pub padding_mode: PadMode,
}

impl Operation for Pad {
    fn check(&self) -> Result<(), Invalid> {
        self.padding.check()?;
        Border { mode: self.padding_mode, fill: self.fill }.check()
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let border = Border { mode: self.padding_mode, fill: self.fill };
        border.draw(self.padding.padding(), drawing)
    }

    fn output_size(&self, before: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        before.and_then(|size| self.padding.padding().around(size).ok())
    }
}

impl fmt::Display for Pad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let border = Border { mode: self.padding_mode, fill: self.fill };
        write!(f, "({}, {border})", self.padding)
    }
}

/// Puts the image at a random place on a larger canvas, with probability `p`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomZoomOut {
    /// The canvas's colour.
    pub fill: Fill,
    /// Bounds of the factor between its sides and those of the image.
    pub side_range: (f64, f64),
    /// The probability.
    pub p: f64,
}

impl Default for RandomZoomOut {
    fn default() -> Self {
        Self { fill: Fill::BLACK, side_range: (1.0, 4.0), p: 0.5 }
    }
}

impl Operation for RandomZoomOut {
    fn check(&self) -> Result<(), Invalid> {
        let (low, _) = self.side_range;
        require(low >= 1.0 && low.is_finite(), "side_range", low, "a number from 1 on")?;
        require_above("side_range", self.side_range)?;
        self.fill.check()?;
        require_probability(self.p)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut rng = stream.rng();
        if !rng.chance(self.p) {
            return Ok(());
        }
        let factor = rng.uniform(self.side_range.0, self.side_range.1);
        let (width, height) = drawing.size();
        let canvas = |side: u32| truncate(f64::from(side) * factor);
        let more = (canvas(width) - width, canvas(height) - height);
        let left = truncate(f64::from(more.0) * rng.unit_f64());
        let top = truncate(f64::from(more.1) * rng.unit_f64());
        let right = more.0 - left;
        let bottom = more.1 - top;
        drawing.pad(Padding { left, top, right, bottom }, self.fill.pil())
    }

    fn output_size(&self, before: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        before.filter(|_| self.p <= 0.0)
    }
}

impl fmt::Display for RandomZoomOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fill, side_range: (low, high), p } = self;
        write!(f, "(sides {low}..{high}, fill {fill}, p {p})")
    }
}
