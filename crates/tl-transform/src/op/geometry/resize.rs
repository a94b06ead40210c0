//! Resizes of whole images.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Size, truncate, yes};
use crate::bounds::{require, require_interval, require_name, require_size};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::interpolation::{Interpolation, Sampling};
use crate::op::forms::one_or_list;
use crate::op::{FixedSizes, Operation};
use crate::stream::Stream;

/// Resizes the whole image; nothing happens to one that has the size already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// The size afterwards; nothing where `max_size` alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The most that the longer side may have when the shorter one is given, and what it is to have
    /// when nothing else is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u32>,
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whether shrinking takes all pixels into account, as it always does on Pillow images.
    #[serde(default = "yes")]
    pub antialias: bool,
}

impl Resize {
    /// The shorter side becomes `size`, with torchvision's defaults: bilinear, antialiased.
    #[must_use]
    pub const fn new(size: u32) -> Self {
        Self {
            size: Some(Size::Side(size)),
            max_size: None,
            interpolation: Interpolation::Bilinear,
            antialias: true,
        }
    }

    /// An image of `width` x `height` becomes this large: `_compute_resized_output_size`.
    fn target(&self, size: (u32, u32)) -> (u32, u32) {
        let (width, height) = size;
        let short = width.min(height);
        let long = width.max(height);
        let (short, long) = match (self.size, self.max_size) {
            (Some(Size::Exact([height, width])), _) => return (width, height),
            (Some(Size::Side(size)), limit) => {
                let longer = scaled(size, long, short);
                match limit {
                    Some(limit) if longer > limit => (scaled(limit, size, longer), limit),
                    _ => (size, longer),
                }
            }
            (None, Some(limit)) => (scaled(limit, short, long), limit),
            (None, None) => (short, long),
        };
        if width <= height { (short, long) } else { (long, short) }
    }
}

impl Operation for Resize {
    fn check(&self) -> Result<(), Invalid> {
        match (self.size, self.max_size) {
            (None, None) => require_name(false, "size", "nothing", "a size or a max_size"),
            (None, Some(limit)) => require_size("max_size", limit),
            (Some(size @ Size::Exact(_)), limit) => {
                size.check()?;
                let value = limit.map_or(0.0, f64::from);
                require(
                    limit.is_none(),
                    "max_size",
                    value,
                    "none when size is a height and a width",
                )
            }
            (Some(Size::Side(size)), limit) => {
                require_size("size", size)?;
                limit.map_or(Ok(()), |limit| {
                    require_size("max_size", limit)?;
                    require(limit > size, "max_size", f64::from(limit), "more than the size")
                })
            }
        }
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let Self { interpolation, antialias, .. } = *self;
        drawing.resize(self.target(drawing.size()), Sampling { interpolation, antialias })
    }

    fn output_size(&self, before: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        match self.size {
            Some(Size::Exact([height, width])) => Some((width, height)),
            Some(Size::Side(_)) | None => before.map(|size| self.target(size)),
        }
    }
}

impl fmt::Display for Resize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interpolation, antialias, .. } = *self;
        f.write_str("(")?;
        if let Some(size) = self.size {
            write!(f, "{size}, ")?;
        }
        if let Some(limit) = self.max_size {
            write!(f, "at most {limit}, ")?;
        }
        write!(f, "{})", Sampling { interpolation, antialias })
    }
}

/// `side * part / whole`, truncated; beyond every side where it does not fit.
fn scaled(side: u32, part: u32, whole: u32) -> u32 {
    let product = u64::from(side) * u64::from(part);
    u32::try_from(product / u64::from(whole.max(1))).unwrap_or(u32::MAX)
}

/// Resizes the whole image by one factor; sides lose their fractions.
fn scale(drawing: &mut Drawing<'_>, factor: f64, sampling: Sampling) -> Result<(), PlanError> {
    let (width, height) = drawing.size();
    let side = |side: u32| truncate(f64::from(side) * factor);
    drawing.resize((side(width), side(height)), sampling)
}

/// Resizes the whole image so that the shorter side has a random one of several lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomShortestSize {
    /// The lengths; in files also one alone.
    #[serde(deserialize_with = "one_or_list")]
    pub min_size: Vec<u32>,
    /// The most that the longer side may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u32>,
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whether shrinking takes all pixels into account, as it always does on Pillow images.
    #[serde(default = "yes")]
    pub antialias: bool,
}

impl Operation for RandomShortestSize {
    fn check(&self) -> Result<(), Invalid> {
        require_name(!self.min_size.is_empty(), "min_size", "empty", "at least one length")?;
        self.min_size.iter().try_for_each(|&size| require_size("min_size", size))?;
        self.max_size.map_or(Ok(()), |limit| require_size("max_size", limit))
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let index = stream.rng().index(self.min_size.len());
        let Some(&shortest) = self.min_size.get(index) else { return Ok(()) };
        let (width, height) = drawing.size();
        let mut factor = f64::from(shortest) / f64::from(width.min(height));
        if let Some(limit) = self.max_size {
            factor = factor.min(f64::from(limit) / f64::from(width.max(height)));
        }
        let Self { interpolation, antialias, .. } = *self;
        scale(drawing, factor, Sampling { interpolation, antialias })
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        None
    }
}

impl fmt::Display for RandomShortestSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interpolation, antialias, .. } = *self;
        write!(f, "({:?}, ", self.min_size)?;
        if let Some(limit) = self.max_size {
            write!(f, "at most {limit}, ")?;
        }
        write!(f, "{})", Sampling { interpolation, antialias })
    }
}

/// Resizes the whole image to the largest size within a target, times a random factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleJitter {
    /// The target: what the width is to fit, and what the height is to fit. torchvision documents
    /// the reverse.
    pub target_size: (u32, u32),
    /// Bounds of the factor.
    #[serde(default = "default_scale_range")]
    pub scale_range: (f64, f64),
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whether shrinking takes all pixels into account, as it always does on Pillow images.
    #[serde(default = "yes")]
    pub antialias: bool,
}

const fn default_scale_range() -> (f64, f64) {
    (0.1, 2.0)
}

impl Operation for ScaleJitter {
    fn check(&self) -> Result<(), Invalid> {
        require_size("target_size", self.target_size.0)?;
        require_size("target_size", self.target_size.1)?;
        require_interval("scale_range", self.scale_range)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let times = stream.rng().uniform(self.scale_range.0, self.scale_range.1);
        let (width, height) = drawing.size();
        let across = f64::from(self.target_size.0) / f64::from(width);
        let down = f64::from(self.target_size.1) / f64::from(height);
        let Self { interpolation, antialias, .. } = *self;
        scale(drawing, across.min(down) * times, Sampling { interpolation, antialias })
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        None
    }
}

impl fmt::Display for ScaleJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target_size: (width, height), scale_range: (low, high), .. } = self;
        let Self { interpolation, antialias, .. } = *self;
        let sampling = Sampling { interpolation, antialias };
        write!(f, "(within {width}x{height}, times {low}..{high}, {sampling})")
    }
}
