//! The work on every sample.

use std::borrow::Cow;

use tl_transform::Recipe;

use crate::clips::ClipWork;
use crate::table::Columns;
use crate::tokens::TokenWork;

/// The work on every sample.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Work {
    /// The stored bytes, read and checked but not decoded.
    Bytes,
    /// The stored bytes where they lie in the mapped files, neither copied nor checked against a
    /// checksum, where the container has them as they are; otherwise as [`Bytes`](Self::Bytes).
    Views,
    /// The decoded image, put through a recipe.
    Images(Recipe),
    /// Frames of a video, put through a recipe.
    Clips(ClipWork),
    /// Columns of the rows of a table.
    Columns(Columns),
    /// Sequences of tokens.
    Tokens(TokenWork),
}

impl Work {
    /// The recipe of images or of frames. That of several clips draws once for each of them.
    pub(crate) fn recipe(&self) -> Option<Cow<'_, Recipe>> {
        match self {
            Self::Images(recipe) => Some(Cow::Borrowed(recipe)),
            Self::Clips(clips) => Some(clips.recipe_of_clips()),
            Self::Bytes | Self::Views | Self::Columns(_) | Self::Tokens(_) => None,
        }
    }

    /// Frames of a clip, where samples are clips.
    pub(crate) fn frames(&self) -> Option<u32> {
        match self {
            Self::Clips(clips) => Some(clips.sampling.frames),
            Self::Images(_) | Self::Bytes | Self::Views | Self::Columns(_) | Self::Tokens(_) => {
                None
            }
        }
    }
}
