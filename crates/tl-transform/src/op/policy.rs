//! Policies: recipes that others found by search, of a few operations of a certain strength each.

mod aug_mix;
mod auto_augment;
mod rand_augment;
mod tables;
#[cfg(test)]
mod tests;

use std::f64::consts::PI;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::warp::{nearest, write_fill};
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::rng::Rng;
use crate::step::{Affine, Color, Rotate, Step, Warp};

pub use aug_mix::AugMix;
pub use auto_augment::{AutoAugment, AutoAugmentPolicy};
pub use rand_augment::{RandAugment, TrivialAugmentWide};

/// An action of a policy, by torchvision's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Action {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

impl Action {
    /// Whether a magnitude has a direction, which is drawn.
    const fn is_signed(self) -> bool {
        match self {
            Self::ShearX
            | Self::ShearY
            | Self::TranslateX
            | Self::TranslateY
            | Self::Rotate
            | Self::Brightness
            | Self::Color
            | Self::Contrast
            | Self::Sharpness => true,
            Self::Identity
            | Self::Posterize
            | Self::Solarize
            | Self::AutoContrast
            | Self::Equalize
            | Self::Invert => false,
        }
    }

    /// The step that does it: torchvision's `_apply_image_or_video_transform`.
    fn step(self, magnitude: f64, outside: Outside) -> Option<Step> {
        let Outside { interpolation, fill } = outside;
        let affine = |affine: Affine| Step::Warp(Warp::Affine(affine));
        let still = Affine { interpolation, fill, ..Affine::default() };
        let degrees = libm::atan(magnitude) * (180.0 / PI);
        let corner = Some((0.0, 0.0));
        Some(match self {
            Self::Identity => return None,
            Self::ShearX => affine(Affine { shear: (degrees, 0.0), center: corner, ..still }),
            Self::ShearY => affine(Affine { shear: (0.0, degrees), center: corner, ..still }),
            Self::TranslateX => affine(Affine { translate: (magnitude.trunc(), 0.0), ..still }),
            Self::TranslateY => affine(Affine { translate: (0.0, magnitude.trunc()), ..still }),
            Self::Rotate => {
                let expand = None;
                let center = None;
                let rotate = Rotate { angle: magnitude, interpolation, expand, center, fill };
                Step::Warp(Warp::Rotate(rotate))
            }
            Self::Brightness => Step::Color(Color::Brightness(1.0 + magnitude)),
            Self::Color => Step::Color(Color::Saturation(1.0 + magnitude)),
            Self::Contrast => Step::Color(Color::Contrast(1.0 + magnitude)),
            Self::Sharpness => Step::Color(Color::Sharpness(1.0 + magnitude)),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 8 bits, and saturates"
            )]
            Self::Posterize => Step::Color(Color::Posterize(magnitude as u8)),
            Self::Solarize => Step::Color(Color::Solarize(255.0 * magnitude)),
            Self::AutoContrast => Step::Color(Color::Autocontrast),
            Self::Equalize => Step::Color(Color::Equalize),
            Self::Invert => Step::Color(Color::Invert),
        })
    }
}

/// The actions of a policy and their magnitudes: torchvision's `_AUGMENTATION_SPACE`.
struct Space {
    actions: &'static [Action],
    shear: f64,
    translate: Reach,
    rotate: f64,
    enhance: f64,
    /// Bits that are left at the least magnitude, and how many fewer at the greatest.
    posterize: (f32, f64),
}

/// The largest shift of an image.
enum Reach {
    /// A share of the side.
    Share(f64),
    /// A part of the side, which torchvision divides.
    Part(f64),
    /// Pixels.
    Pixels(f64),
}

impl Reach {
    fn pixels(&self, side: u32) -> f64 {
        let side = f64::from(side);
        match self {
            Self::Share(share) => share * side,
            Self::Part(parts) => side / parts,
            Self::Pixels(pixels) => *pixels,
        }
    }
}

impl Space {
    /// An action, each equally likely.
    fn choose(&self, rng: &mut Rng) -> Action {
        self.actions.get(rng.index(self.actions.len())).copied().unwrap_or(Action::Identity)
    }

    /// The magnitude number `bin` of `bins`, 0 for what has none, and for an image of `size`.
    fn magnitude(&self, action: Action, bin: u32, bins: u32, size: (u32, u32)) -> Option<f64> {
        let up_to = |end: f64| Some(linspace(0.0, end, bin, bins));
        match action {
            Action::ShearX | Action::ShearY => up_to(self.shear),
            Action::TranslateX => up_to(self.translate.pixels(size.0)),
            Action::TranslateY => up_to(self.translate.pixels(size.1)),
            Action::Rotate => up_to(self.rotate),
            Action::Brightness | Action::Color | Action::Contrast | Action::Sharpness => {
                up_to(self.enhance)
            }
            Action::Posterize => {
                let (most, fewer) = self.posterize;
                Some(bits(most, fewer, bin, bins))
            }
            Action::Solarize => Some(linspace(1.0, 0.0, bin, bins)),
            Action::Identity | Action::AutoContrast | Action::Equalize | Action::Invert => None,
        }
    }

    /// Does `action` at the magnitude number `bin` of `bins`. An action without magnitudes leaves the
    /// bin undrawn.
    fn draw(
        &self,
        action: Action,
        bin: impl FnOnce(&mut Rng) -> u32,
        bins: u32,
        rng: &mut Rng,
        outside: Outside,
        drawing: &mut Drawing<'_>,
    ) -> Result<(), PlanError> {
        let size = drawing.size();
        let magnitude = match self.magnitude(action, 0, bins, size) {
            None => 0.0,
            Some(_) => {
                let bin = bin(rng);
                let magnitude = self.magnitude(action, bin, bins, size).unwrap_or_default();
                let negative = action.is_signed() && rng.unit_f64() <= 0.5;
                if negative { -magnitude } else { magnitude }
            }
        };
        action.step(magnitude, outside).map_or(Ok(()), |step| drawing.step(step))
    }
}

/// Number `place` of `torch.linspace(start, end, count)` in `f32`: from the nearer end, product and
/// sum rounded once, as torch's code is compiled for CPUs with FMA.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "below 2^24")]
fn linspace(start: f64, end: f64, place: u32, count: u32) -> f64 {
    let start = start as f32;
    let end = end as f32;
    let last = count.saturating_sub(1);
    if last == 0 {
        return f64::from(start);
    }
    let step = (end - start) / last as f32;
    f64::from(if place < count / 2 {
        step.mul_add(place as f32, start)
    } else {
        (-step).mul_add((last - place.min(last)) as f32, end)
    })
}

/// torchvision's `(most - (torch.arange(count) / ((count - 1) / fewer))).round().int()`.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "below 2^24")]
fn bits(most: f32, fewer: f64, place: u32, count: u32) -> f64 {
    let bins_a_bit = (f64::from(count.saturating_sub(1)) / fewer) as f32;
    f64::from((most - place as f32 / bins_a_bit).round_ties_even())
}

/// The settings that all policies share: interpolation, and the fill outside the image.
#[derive(Clone, Copy)]
struct Outside {
    interpolation: Interpolation,
    fill: Option<Fill>,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.interpolation)?;
        if self.fill.is_some() { write_fill(f, self.fill) } else { Ok(()) }
    }
}

/// Refuses a number of magnitudes that has no step between them.
fn require_bins(bins: u32) -> Result<(), Invalid> {
    require((2..=65_535).contains(&bins), "num_magnitude_bins", f64::from(bins), "2 to 65535")
}
