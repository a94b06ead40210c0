//! Plans: what a recipe does to one image, drawn before any of its pixels exist.

use tl_simd::resample::{Filter, Rect};

use crate::error::PlanError;
use crate::op::{Interpolation, Op};
use crate::recipe::Recipe;
use crate::rng::Rng;

/// How often a random crop is drawn before the middle of the image is taken (torchvision's number).
const CROP_TRIES: u32 = 10;

/// What to do with one image: crop, resize, cut, pad, flip.
///
/// The result equals Pillow's `image.crop(region).resize(resized, filter).crop(window)`, with
/// black added around it, mirrored when `flip` is set. The fields are public so that a plan drawn
/// elsewhere can be run, and one drawn here checked elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The part of the image that counts; pixels outside it never contribute.
    pub region: Rect,
    /// The size the region is resized to, width first.
    pub resized: (u32, u32),
    /// The part of the resized region that is wanted.
    pub window: Rect,
    /// Black pixels around the window.
    pub padding: Padding,
    /// Whether left and right change places, padding included.
    pub flip: bool,
    /// How to resample.
    pub filter: Filter,
}

/// Black pixels added on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// Columns on the left.
    pub left: u32,
    /// Rows above.
    pub top: u32,
    /// Columns on the right.
    pub right: u32,
    /// Rows below.
    pub bottom: u32,
}

impl Plan {
    /// The plan that leaves an image as it is.
    #[must_use]
    pub fn whole(width: u32, height: u32) -> Self {
        let region = Rect { x: 0, y: 0, width, height };
        let padding = Padding::default();
        let filter = Filter::Bilinear;
        Self { region, resized: (width, height), window: region, padding, flip: false, filter }
    }

    /// Width and height of the result.
    #[must_use]
    pub fn output_size(&self) -> (u32, u32) {
        let Padding { left, top, right, bottom } = self.padding;
        (left + self.window.width + right, top + self.window.height + bottom)
    }
}

impl Recipe {
    /// Draws the plan for one image of `width` x `height` pixels: a pure function of its arguments.
    ///
    /// # Errors
    /// [`PlanError::ImageSize`] when a side is 0 or above [`PlanError::MAX_SIDE`].
    pub fn plan(
        &self,
        width: u32,
        height: u32,
        seed: u64,
        epoch: u32,
        sample: u64,
    ) -> Result<Plan, PlanError> {
        let sides = 1..=PlanError::MAX_SIDE;
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(PlanError::ImageSize { width, height });
        }
        let mut plan = Plan::whole(width, height);
        for (op, number) in self.ops().iter().zip(0u8..) {
            let mut rng = Rng::new(seed, epoch, sample, number);
            match *op {
                Op::RandomResizedCrop { width, height, scale, ratio, interpolation } => {
                    plan.region = random_crop(plan.region, scale, ratio, &mut rng);
                    plan.resize((width, height), interpolation);
                }
                Op::Resize { size, interpolation } => {
                    let resized = shorter_side(plan.resized, size);
                    plan.resize(resized, interpolation);
                }
                Op::CenterCrop { width, height } => plan.center_crop(width, height),
                Op::RandomHorizontalFlip { p } => plan.flip = rng.chance(p),
                Op::ToFloat | Op::Normalize { .. } => {}
            }
        }
        Ok(plan)
    }
}

impl Plan {
    fn resize(&mut self, (width, height): (u32, u32), interpolation: Interpolation) {
        self.resized = (width, height);
        self.window = Rect { x: 0, y: 0, width, height };
        self.filter = interpolation.into();
    }

    fn center_crop(&mut self, width: u32, height: u32) {
        let across = centered(self.resized.0, width);
        let down = centered(self.resized.1, height);
        self.window =
            Rect { x: across.start, y: down.start, width: across.length, height: down.length };
        self.padding = Padding {
            left: across.before,
            top: down.before,
            right: across.after,
            bottom: down.after,
        };
    }
}

impl From<Interpolation> for Filter {
    fn from(interpolation: Interpolation) -> Self {
        match interpolation {
            Interpolation::Nearest => Self::Nearest,
            Interpolation::Box => Self::Box,
            Interpolation::Bilinear => Self::Bilinear,
            Interpolation::Hamming => Self::Hamming,
            Interpolation::Bicubic => Self::Bicubic,
            Interpolation::Lanczos => Self::Lanczos,
        }
    }
}

/// One axis of a centre crop.
struct Centered {
    start: u32,
    length: u32,
    before: u32,
    after: u32,
}

/// torchvision's `center_crop` on one axis: pad to `target` when short, else cut at half the
/// surplus, rounded half to even.
fn centered(side: u32, target: u32) -> Centered {
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

/// torchvision's `Resize(size)`: the longer side is `size * long / short`, truncated.
fn shorter_side((width, height): (u32, u32), size: u32) -> (u32, u32) {
    // Both factors are at most 65 535.
    let longer = |long: u32, short: u32| size * long / short;
    if width <= height { (size, longer(height, width)) } else { (longer(width, height), size) }
}

/// torchvision's `RandomResizedCrop.get_params`, in f64 where torchvision draws in f32.
///
/// Try `t` takes block `t` of the stream (area, then ratio); the position follows the last try.
fn random_crop(image: Rect, scale: (f64, f64), ratio: (f64, f64), rng: &mut Rng) -> Rect {
    let (width, height) = (image.width, image.height);
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
    let (x, y) = ((width - crop_width) / 2, (height - crop_height) / 2);
    Rect { x, y, width: crop_width, height: crop_height }
}

/// Python's `int(round(x))`: half to even. Sides are far below the bounds the cast saturates at.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn round(side: f64) -> u32 {
    side.round_ties_even() as u32
}

#[cfg(test)]
mod tests;
