//! The work on every sample.

use std::borrow::Cow;

use tl_decode::Decoders;
use tl_transform::Recipe;

use crate::clips::{ClipStart, ClipWork};
use crate::dataset::Dataset;
use crate::error::PipelineError;
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

    /// Checks that the samples are of this kind, and that labels, if any, can be mixed like images.
    /// With decoders of the user's, images cannot be told by their names and first bytes.
    pub(crate) fn check_samples(
        &self,
        dataset: &Dataset,
        decoders: &Decoders,
    ) -> Result<(), PipelineError> {
        match self {
            Self::Images(recipe) => {
                check_rows(dataset, None)?;
                if decoders.is_empty() {
                    dataset.require_images()?;
                }
                check_mixing(recipe, dataset)
            }
            Self::Clips(clips) => {
                check_rows(dataset, Some(clips))?;
                clips.columns.fields().check_names(dataset)?;
                check_videos(dataset)
            }
            Self::Bytes | Self::Views | Self::Columns(_) | Self::Tokens(_) => {
                check_rows(dataset, None)
            }
        }
    }
}

fn names_frames(clips: Option<&ClipWork>) -> bool {
    clips.is_some_and(|clips| clips.sampling.start == ClipStart::Rows)
}

/// Fails where rows of LeRobot meet work on other samples, or the reverse.
#[cfg(feature = "arrow")]
fn check_rows(dataset: &Dataset, clips: Option<&ClipWork>) -> Result<(), PipelineError> {
    let unusable = |text: &str| Err(PipelineError::Unusable(text.to_owned()));
    let mut first: Option<&crate::lerobot::LeRobot> = None;
    for shard in dataset.shards() {
        match (crate::lerobot::LeRobot::of(&**shard), clips) {
            (Some(rows), Some(clips))
                if rows.sampling() == clips.sampling
                    && first.get_or_insert(rows).cameras() == rows.cameras() => {}
            (Some(_), _) => {
                return unusable(
                    "rows of LeRobot name their frames: leave clips at its default, and pass data \
                     sets with the same cameras and delta_timestamps",
                );
            }
            (None, _) if names_frames(clips) => {
                return unusable("clips at frames that rows name need a data set of LeRobot");
            }
            (None, _) => {}
        }
    }
    Ok(())
}

/// Fails where rows are asked for, which this build does not have.
#[cfg(not(feature = "arrow"))]
fn check_rows(_: &Dataset, clips: Option<&ClipWork>) -> Result<(), PipelineError> {
    if names_frames(clips) {
        let text = "clips at frames that rows name need a build with the feature `arrow`";
        return Err(PipelineError::Unusable(text.to_owned()));
    }
    Ok(())
}

fn check_mixing(recipe: &Recipe, dataset: &Dataset) -> Result<(), PipelineError> {
    match recipe.batch_ops().first() {
        Some(op) if recipe.num_classes().is_none() && dataset.is_labelled() => {
            let found = match dataset.class_names().len() {
                0 => " to the number of classes".to_owned(),
                classes => format!(", the data set names {classes} classes"),
            };
            Err(PipelineError::Unusable(format!(
                "{} without num_classes mixes images and leaves their labels as they are: set \
                num_classes{found}",
                op.name()
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Fails where the first sample is an image: images beside videos are the samples of a container.
fn check_videos(dataset: &Dataset) -> Result<(), PipelineError> {
    let Ok(facts) = dataset.facts(0) else { return Ok(()) };
    if !facts.format.is_image() {
        return Ok(());
    }
    Err(PipelineError::Unusable(
        "clips need videos, and the first sample is an image: where images are, they are the samples \
        of folders and archives, and videos next to them are files of theirs; pass the paths of the \
        videos"
            .to_owned(),
    ))
}
