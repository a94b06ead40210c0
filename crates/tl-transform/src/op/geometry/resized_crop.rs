//! The random crop of ImageNet training.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::resample::Rect;

use super::{Size, yes};
use crate::bounds::{require, require_above, require_interval, round};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::interpolation::{Interpolation, Sampling};
use crate::op::{FixedSizes, Operation};
use crate::rng::Rng;
use crate::stream::Stream;

/// The number of tries to draw a crop before the middle of the image is taken (torchvision's).
const CROP_TRIES: u32 = 10;

/// Crops a random part of random aspect ratio and resizes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomResizedCrop {
    /// The size of the result.
    pub size: Size,
    /// Bounds of the part's area, as a share of the image's.
    #[serde(default = "default_scale")]
    pub scale: (f64, f64),
    /// Bounds of the part's width / height.
    #[serde(default = "default_ratio")]
    pub ratio: (f64, f64),
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whether shrinking takes all pixels into account, as it always does on Pillow images.
    #[serde(default = "yes")]
    pub antialias: bool,
}

const fn default_scale() -> (f64, f64) {
    (0.08, 1.0)
}

const fn default_ratio() -> (f64, f64) {
    (3.0 / 4.0, 4.0 / 3.0)
}

impl RandomResizedCrop {
    /// A square of `size` pixels, with torchvision's defaults: area 8 % to 100 %, ratio 3/4 to 4/3,
    /// bilinear.
    #[must_use]
    pub const fn new(size: u32) -> Self {
        Self {
            size: Size::Side(size),
            scale: default_scale(),
            ratio: default_ratio(),
            interpolation: Interpolation::Bilinear,
            antialias: true,
        }
    }
}

impl Operation for RandomResizedCrop {
    fn check(&self) -> Result<(), Invalid> {
        self.size.check()?;
        let (low, _) = self.scale;
        require(low >= 0.0 && low.is_finite(), "scale", low, "0 or a positive number")?;
        require_above("scale", self.scale)?;
        require_interval("ratio", self.ratio)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let crop = random_crop(drawing.size(), self.scale, self.ratio, &mut stream.rng());
        drawing.crop(crop)?;
        let Self { interpolation, antialias, .. } = *self;
        drawing.resize(self.size.of_crop(), Sampling { interpolation, antialias })
    }

    fn output_size(&self, _: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        Some(self.size.of_crop())
    }
}

impl fmt::Display for RandomResizedCrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, scale, ratio, interpolation, antialias } = *self;
        let (width, height) = size.of_crop();
        let sampling = Sampling { interpolation, antialias };
        write!(
            f,
            "({width}x{height}, scale {}..{}, ratio {:.4}..{:.4}, {sampling})",
            scale.0, scale.1, ratio.0, ratio.1
        )
    }
}

/// torchvision's `RandomResizedCrop.get_params`, in f64 where torchvision draws in f32.
///
/// Try `t` takes block `t` of the stream (area, then ratio); the position follows the last try.
fn random_crop(size: (u32, u32), scale: (f64, f64), ratio: (f64, f64), rng: &mut Rng) -> Rect {
    let (width, height) = size;
    let area = f64::from(width) * f64::from(height);
    for _ in 0..CROP_TRIES {
        let part = area * rng.uniform(scale.0, scale.1);
        let aspect = rng.log_uniform(ratio.0, ratio.1);
        let crop_width = round((part * aspect).sqrt());
        let crop_height = round((part / aspect).sqrt());
        if (1..=width).contains(&crop_width) && (1..=height).contains(&crop_height) {
            let y = rng.below(height - crop_height + 1);
            let x = rng.below(width - crop_width + 1);
            return Rect { x, y, width: crop_width, height: crop_height };
        }
    }
    largest_middle(width, height, ratio)
}

/// The largest centred crop of an admissible ratio, what torchvision falls back to.
fn largest_middle(width: u32, height: u32, ratio: (f64, f64)) -> Rect {
    let aspect = f64::from(width) / f64::from(height);
    let (crop_width, crop_height) = if aspect < ratio.0 {
        (width, round(f64::from(width) / ratio.0).clamp(1, height))
    } else if aspect > ratio.1 {
        (round(f64::from(height) * ratio.1).clamp(1, width), height)
    } else {
        (width, height)
    };
    let x = (width - crop_width) / 2;
    let y = (height - crop_height) / 2;
    Rect { x, y, width: crop_width, height: crop_height }
}
