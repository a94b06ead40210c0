//! Steps: operations with everything random decided, to be carried out on the pixels of an image.

mod color;
mod erase;
mod filter;
mod memory;
mod mix;
mod noise;
mod pad;
mod stage;
mod user;
mod warp;

use serde::{Deserialize, Serialize};

use crate::annotations::{Coordinates, Mask};
use crate::bounds::is_size;
use crate::error::{AnnotationError, StepError};
use crate::pass::Pass;

pub(crate) use filter::{MAX_KERNEL, is_deviation, is_kernel};
pub(crate) use memory::Memory;
pub(crate) use noise::MAX_NOISE;
pub(crate) use stage::{Stage, Workspace};
pub(crate) use warp::{Scratch, Source};

pub use color::{Color, HueMethod};
pub use erase::{Erase, Filling};
pub use filter::Filter;
pub use mix::Mix;
pub use noise::Noise;
pub use pad::Pad;
pub use user::User;
pub use warp::{Affine, Elastic, Perspective, Rotate, Warp};

/// One thing that is done to an image of 8-bit RGB pixels.
///
/// Steps are data: they print, compare and serialise, so that what was drawn for a sample can be
/// looked at, and a test can say itself what is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Crop, resize, cut, pad with black, flip.
    Pass(Pass),
    /// Add a border.
    Pad(Pad),
    /// Change colours.
    Color(Color),
    /// Take every pixel from another place.
    Warp(Warp),
    /// Mix the image with its changed versions.
    Mix(Mix),
    /// Run the user's code.
    User(User),
    /// Apply a neighbourhood filter.
    Filter(Filter),
    /// Add noise.
    Noise(Noise),
    /// Replace a part.
    Erase(Erase),
}

impl Step {
    /// Width and height afterwards, for an image of `size`.
    #[must_use]
    pub fn output_size(&self, size: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Pass(pass) => pass.output_size(),
            Self::Pad(pad) => pad.output_size(size),
            Self::Warp(warp) => warp.output_size(size),
            Self::Color(_) | Self::Filter(_) | Self::Noise(_) | Self::Erase(_) | Self::Mix(_) => {
                size
            }
            Self::User(user) => user.output_size(size),
        }
    }

    /// Moves boxes or keypoints with the image.
    pub(crate) fn move_coordinates<C: Coordinates>(
        &self,
        coordinates: &mut C,
    ) -> Result<(), AnnotationError> {
        self.check(coordinates.canvas())?;
        match self {
            Self::Pass(pass) => pass.move_coordinates(coordinates),
            Self::Pad(pad) => pad.move_coordinates(coordinates),
            Self::Warp(warp) => {
                warp.move_coordinates(coordinates);
                Ok(())
            }
            Self::Color(_)
            | Self::Filter(_)
            | Self::Noise(_)
            | Self::Erase(_)
            | Self::Mix(_)
            | Self::User(_) => Ok(()),
        }
    }

    /// Moves a mask with the image.
    pub(crate) fn move_mask(&self, mask: &mut Mask) -> Result<(), AnnotationError> {
        self.check(mask.size())?;
        match self {
            Self::Pass(pass) => pass.move_mask(mask),
            Self::Pad(pad) => pad.move_mask(mask),
            Self::Warp(warp) => {
                warp.move_mask(mask);
                Ok(())
            }
            Self::Color(_)
            | Self::Filter(_)
            | Self::Noise(_)
            | Self::Erase(_)
            | Self::Mix(_)
            | Self::User(_) => Ok(()),
        }
    }

    /// Whether annotations of an image of this size can be moved.
    fn check(&self, size: (u32, u32)) -> Result<(), AnnotationError> {
        let (width, height) = size;
        if self.fits(size) { Ok(()) } else { Err(AnnotationError::Size { width, height }) }
    }

    /// Whether the step can be carried out on an image of this size: one that a plan may have, as
    /// the image afterwards has to be.
    pub(crate) fn fits(&self, size: (u32, u32)) -> bool {
        let fits = match self {
            Self::Pass(pass) => pass.fits(size.0, size.1),
            Self::Pad(pad) => pad.fits(size),
            Self::Warp(warp) => warp.fits(size),
            Self::Color(_) | Self::Mix(_) | Self::User(_) => true,
            Self::Filter(filter) => filter.is_defined(),
            Self::Noise(noise) => noise.is_defined(),
            Self::Erase(erase) => erase.fits(size),
        };
        fits && is_size(size) && is_size(self.output_size(size))
    }

    /// Carries the step out.
    pub(crate) fn run(&self, stage: &mut Stage<'_>) -> Result<(), StepError> {
        match self {
            Self::Pass(pass) => stage.pass(pass),
            Self::Pad(pad) => pad.run(stage),
            Self::Color(color) => color.run(stage),
            Self::Warp(warp) => warp.run(stage),
            Self::Mix(mix) => return mix.run(stage),
            Self::User(user) => return user.run(stage),
            Self::Filter(filter) => filter.run(stage),
            Self::Noise(noise) => noise.run(stage),
            Self::Erase(erase) => stage.erase(erase),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
