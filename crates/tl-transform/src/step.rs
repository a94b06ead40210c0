//! Steps: operations with everything random decided, to be carried out on the pixels of an image.

mod color;
mod user;
mod warp;

use serde::{Deserialize, Serialize};

use crate::error::StepError;
use crate::pass::Pass;
use crate::runner::Stage;

pub use color::{Color, HueMethod};
pub use user::User;
pub(crate) use warp::Scratch as WarpScratch;
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
    /// Change colours.
    Color(Color),
    /// Take every pixel from another place.
    Warp(Warp),
    /// Run the user's code.
    User(User),
}

impl Step {
    /// Width and height afterwards, for an image of `size`.
    #[must_use]
    pub fn output_size(&self, size: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Pass(pass) => pass.output_size(),
            Self::Warp(warp) => warp.output_size(size),
            Self::Color(_) | Self::User(_) => size,
        }
    }

    /// Whether the step can be carried out on an image of this size.
    pub(crate) fn fits(&self, (width, height): (u32, u32)) -> bool {
        match self {
            Self::Pass(pass) => pass.fits(width, height),
            Self::Color(_) | Self::Warp(_) | Self::User(_) => true,
        }
    }

    /// Carries the step out.
    pub(crate) fn run(&self, stage: &mut Stage<'_>) -> Result<(), StepError> {
        match self {
            Self::Pass(pass) => stage.pass(pass),
            Self::Color(color) => color.run(stage),
            Self::Warp(warp) => warp.run(stage),
            Self::User(user) => return user.run(stage),
        }
        Ok(())
    }
}
