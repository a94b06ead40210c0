//! Several crops of one image.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::resample::Rect;

use super::Size;
use super::crop::centered;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::op::{FixedSizes, Operation};
use crate::stream::Stream;

/// Cuts parts of one size out of the corners and the middle: a sample becomes five images.
///
/// Their order is torchvision's: top left, top right, bottom left, bottom right, middle. What is
/// done to them afterwards is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FiveCrop {
    /// The size of the result.
    pub size: Size,
}

impl FiveCrop {
    const VIEWS: u32 = 5;

    /// The part of an image that is one of the views.
    fn part(&self, view: u32, size: (u32, u32)) -> Result<Rect, PlanError> {
        let (width, height) = size;
        let crop = self.size.of_crop();
        let (Some(x), Some(y)) = (width.checked_sub(crop.0), height.checked_sub(crop.1)) else {
            return Err(PlanError::CropSize { crop, width, height });
        };
        let (x, y) = match view {
            0 => (0, 0),
            1 => (x, 0),
            2 => (0, y),
            3 => (x, y),
            _ => (centered(width, crop.0).start, centered(height, crop.1).start),
        };
        Ok(Rect { x, y, width: crop.0, height: crop.1 })
    }
}

impl Operation for FiveCrop {
    fn check(&self) -> Result<(), Invalid> {
        self.size.check()
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let view = drawing.view(Self::VIEWS);
        drawing.crop(self.part(view, drawing.size())?)
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        Some(self.size.of_crop())
    }

    fn views(&self) -> u32 {
        Self::VIEWS
    }
}

impl fmt::Display for FiveCrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size.of_crop();
        write!(f, "({width}x{height})")
    }
}

/// [`FiveCrop`] of the image, and then of the mirrored image: a sample becomes ten images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenCrop {
    /// The size of the result.
    pub size: Size,
    /// Whether the mirrored image has its top and bottom changed, not its left and right.
    #[serde(default)]
    pub vertical_flip: bool,
}

impl Operation for TenCrop {
    fn check(&self) -> Result<(), Invalid> {
        self.size.check()
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let view = drawing.view(self.views());
        let crop = FiveCrop { size: self.size };
        let part = crop.part(view % FiveCrop::VIEWS, drawing.size())?;
        if view >= FiveCrop::VIEWS {
            if self.vertical_flip {
                drawing.flip_vertical();
            } else {
                drawing.flip();
            }
        }
        drawing.crop(part)
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        Some(self.size.of_crop())
    }

    fn views(&self) -> u32 {
        2 * FiveCrop::VIEWS
    }
}

impl fmt::Display for TenCrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flip = if self.vertical_flip { ", vertical flip" } else { "" };
        let (width, height) = self.size.of_crop();
        write!(f, "({width}x{height}{flip})")
    }
}
