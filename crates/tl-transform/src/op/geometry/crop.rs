//! Crops of one size: the middle, or a random part.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::resample::Rect;

use super::Size;
use super::pad::{Border, PadMode, Sides};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::op::{FixedSizes, Operation};
use crate::pass::Padding;
use crate::stream::Stream;

/// Cuts a part of one size out of the middle; where the image is smaller, black is added first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CenterCrop {
    /// The size of the result.
    pub size: Size,
}

impl CenterCrop {
    /// A square of `size` pixels.
    #[must_use]
    pub const fn new(size: u32) -> Self {
        Self { size: Size::Side(size) }
    }
}

impl Operation for CenterCrop {
    fn check(&self) -> Result<(), Invalid> {
        self.size.check()
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let (width, height) = drawing.size();
        // Boxes and masks move with the pixels; torchvision moves boxes by one pixel more than the
        // image where three columns are missing, or seven, and so on.
        let target = self.size.of_crop();
        let across = centered(width, target.0);
        let down = centered(height, target.1);
        let x = across.start;
        let y = down.start;
        drawing.crop(Rect { x, y, width: across.length, height: down.length })?;
        drawing.pad_black(Padding {
            left: across.before,
            top: down.before,
            right: across.after,
            bottom: down.after,
        })
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        Some(self.size.of_crop())
    }
}

impl fmt::Display for CenterCrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size.of_crop();
        write!(f, "({width}x{height})")
    }
}

/// Cuts a random part of one size out, of the image or of the image with a border.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomCrop {
    /// The size of the result.
    pub size: Size,
    /// A border that is added first.
    #[serde(default)]
    pub padding: Sides,
    /// Whether an image that is still too small gets as much on both sides as is missing.
    #[serde(default)]
    pub pad_if_needed: bool,
    /// The border's colour.
    #[serde(default)]
    pub fill: Fill,
    /// The kind of border.
    #[serde(default)]
    pub padding_mode: PadMode,
}

impl RandomCrop {
    /// A square of `size` pixels, without a border.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self {
            size: Size::Side(size),
            padding: Sides::default(),
            pad_if_needed: false,
            fill: Fill::BLACK,
            padding_mode: PadMode::Constant,
        }
    }
}

impl Operation for RandomCrop {
    fn check(&self) -> Result<(), Invalid> {
        self.size.check()?;
        self.padding.check()?;
        Border { mode: self.padding_mode, fill: self.fill }.check()
    }

    /// `y` comes before `x`, each is drawn only where there is a choice.
    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let crop = self.size.of_crop();
        let mut padding = self.padding.padding();
        let (mut width, mut height) = padding.around(drawing.size())?;
        if self.pad_if_needed {
            let missing = (crop.0.saturating_sub(width), crop.1.saturating_sub(height));
            padding.left += missing.0;
            padding.right += missing.0;
            padding.top += missing.1;
            padding.bottom += missing.1;
            (width, height) = padding.around(drawing.size())?;
        }
        if width < crop.0 || height < crop.1 {
            return Err(PlanError::CropSize { crop, width, height });
        }
        let mut rng = stream.rng();
        let mut place = |surplus: u32| if surplus == 0 { 0 } else { rng.below(surplus + 1) };
        let y = place(height - crop.1);
        let x = place(width - crop.0);
        Border { mode: self.padding_mode, fill: self.fill }.draw(padding, drawing)?;
        drawing.crop(Rect { x, y, width: crop.0, height: crop.1 })
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        Some(self.size.of_crop())
    }
}

impl fmt::Display for RandomCrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size.of_crop();
        write!(f, "({width}x{height}")?;
        if self.padding != Sides::default() {
            write!(f, ", padding {}", self.padding)?;
        }
        if self.pad_if_needed {
            f.write_str(", pad if needed")?;
        }
        if self.padding != Sides::default() || self.pad_if_needed {
            write!(f, ", {}", Border { mode: self.padding_mode, fill: self.fill })?;
        }
        f.write_str(")")
    }
}

/// One axis of a centre crop.
pub(super) struct Centered {
    pub(super) start: u32,
    length: u32,
    before: u32,
    after: u32,
}

/// torchvision's `center_crop` on one axis: pad to `target` when short, else cut at half the
/// surplus, rounded half to even.
pub(super) fn centered(side: u32, target: u32) -> Centered {
    if side < target {
        let missing = target - side;
        return Centered {
            start: 0,
            length: side,
            before: missing / 2,
            after: missing.div_ceil(2),
        };
    }
    let surplus = side - target;
    let half = surplus / 2;
    // An odd surplus is a tie between `half` and `half + 1`.
    let start = half + (surplus % 2) * (half % 2);
    Centered { start, length: target, before: 0, after: 0 }
}
