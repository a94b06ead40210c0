//! Clips: frames of videos, chosen anew in every epoch, as the rows of batches.

mod columns;
mod frames;

use std::borrow::Cow;
use std::fmt;

use sha2::{Digest, Sha256};
use tl_decode::PixelType;
use tl_transform::{Channels, DecodeMode, Recipe};
use tl_video::Parity;

use crate::error::PipelineError;

pub use columns::ClipColumns;
pub(crate) use columns::Times;
pub(crate) use frames::frames;

/// The most frames of a clip.
const MAX_FRAMES: u32 = 1 << 16;

/// The work of making clips of videos.
#[derive(Clone, Debug, PartialEq)]
pub struct ClipWork {
    /// The operations on frames. Their random numbers are drawn once for all frames of a clip, which
    /// get the same crop, flip and colours.
    pub recipe: Recipe,
    /// The choice of frames.
    pub sampling: ClipSampling,
    /// The conversion of frames to RGB. [`ClipWork::new`] takes FFmpeg's, which models are mostly
    /// trained with.
    pub parity: Parity,
    /// Fields of samples that say which part of a video is the sample, and when clips begin.
    /// [`ClipWork::new`] takes none.
    pub columns: ClipColumns,
}

/// The frames of each video that become its clips.
///
/// ```
/// use tl_pipeline::{ClipSampling, Spacing};
///
/// // 16 frames, every fourth of the video, from anywhere.
/// let sampling = ClipSampling { spacing: Spacing::Frames(4), ..ClipSampling::default() };
/// assert_eq!((sampling.frames, sampling.clips), (16, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipSampling {
    /// Frames of a clip, 1 to 65 536. Default 16.
    pub frames: u32,
    /// Clips of a video, 1 to 256. Default 1.
    pub clips: u32,
    /// The distance between frames. Default 1 frame.
    pub spacing: Spacing,
    /// The place of clips in the video. Default random.
    pub start: ClipStart,
    /// The frames that a clip has where the video ends before it does. Default the last one.
    pub beyond: Beyond,
}

/// The distance between the frames of a clip.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Spacing {
    /// Every `n`-th frame, counted from the clip's first, whatever their times.
    Frames(u32),
    /// The frames that are on display this many seconds after each other.
    Seconds(f64),
    /// The frames that are on display at this rate, whatever that of the video.
    Fps(f64),
}

/// The place of clips in their video.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClipStart {
    /// Each clip begins at any frame from which it fits the video, all equally likely, drawn from the
    /// seed, the epoch and the sample. A video that is too short has it begin at the first frame.
    Random,
    /// The clips begin at equal distances: the first as early and the last as late as possible.
    Uniform,
    /// Each clip is in the middle of one of as many equal parts of the video as there are clips.
    Center,
    /// The clips begin at the frame that is on display at this time in seconds, of the video or of
    /// the part of it that is the sample.
    At(f64),
    /// The rows of the data set name the frames: each row of [`LeRobot`](crate::LeRobot) has a clip of
    /// every camera.
    Rows,
}

/// The frames that a clip has where the video ends before it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Beyond {
    /// The last frame that there is, again and again.
    RepeatLast,
    /// Those that there are, again and again.
    Wrap,
    /// None: it is an error of the sample.
    Error,
}

/// Tells the videos of a data set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct VideoId {
    /// The number of the source.
    pub(crate) shard: usize,
    /// The number of the video there: of its sample, or of its file if samples share files.
    pub(crate) number: u64,
}

impl Default for ClipSampling {
    fn default() -> Self {
        Self {
            frames: 16,
            clips: 1,
            spacing: Spacing::Frames(1),
            start: ClipStart::Random,
            beyond: Beyond::RepeatLast,
        }
    }
}

impl ClipWork {
    /// Clips with FFmpeg's colours.
    #[must_use]
    pub fn new(recipe: Recipe, sampling: ClipSampling) -> Self {
        let columns = ClipColumns::default();
        Self { recipe, sampling, parity: Parity::Ffmpeg, columns }
    }

    /// Refuses what makes no clips.
    pub(crate) fn check(&self) -> Result<(), PipelineError> {
        let Self { recipe, sampling, columns, .. } = self;
        sampling.check()?;
        columns.check(sampling)?;
        let unusable = |why: &dyn fmt::Display| {
            Err(PipelineError::Unusable(format!("clips of videos: recipe `{recipe}` {why}")))
        };
        if recipe.channels() != Channels::Rgb || recipe.pixels() != PixelType::U8 {
            return unusable(&"takes other pixels than RGB of 8 bits, which frames are decoded to");
        }
        // Only JPEG files are decoded in other ways than exactly; one of these leaves it to a device.
        if recipe.decode_mode() == DecodeMode::NvJpeg {
            return unusable(&"decodes with nvJPEG, which knows no videos: decode exactly or fast");
        }
        if recipe.views() > 1 {
            return unusable(&"makes several images of a frame: set the number of clips instead");
        }
        if !recipe.batch_ops().is_empty() {
            return unusable(&"mixes images of a batch, which clips are not");
        }
        if recipe.output_size().is_none() || recipe.is_of_any_size() {
            return unusable(
                &"keeps the sizes of videos, and clips need one size: add Resize with height and \
              width, RandomResizedCrop or CenterCrop",
            );
        }
        Ok(())
    }

    /// The recipe, with draws of its own for each clip of a video.
    pub(crate) fn recipe_of_clips(&self) -> Cow<'_, Recipe> {
        if self.sampling.clips == 1 {
            return Cow::Borrowed(&self.recipe);
        }
        // `check` has refused what has no such recipe.
        let recipe = self.recipe.clone().with_draws(self.sampling.clips);
        Cow::Owned(recipe.unwrap_or_else(|_| self.recipe.clone()))
    }
}

impl ClipSampling {
    /// Adds what decides which frames a clip has.
    pub(crate) fn hash(&self, hash: &mut Sha256) {
        let Self { frames, clips, spacing, start, beyond } = *self;
        hash.update(frames.to_le_bytes());
        hash.update(clips.to_le_bytes());
        let (name, number) = match spacing {
            Spacing::Frames(frames) => ("frames", frames.into()),
            Spacing::Seconds(seconds) => ("seconds", seconds),
            Spacing::Fps(fps) => ("fps", fps),
        };
        hash.update(name);
        hash.update(number.to_bits().to_le_bytes());
        let (name, number) = match start {
            ClipStart::Random => ("random", 0.0),
            ClipStart::Uniform => ("uniform", 0.0),
            ClipStart::Center => ("center", 0.0),
            ClipStart::At(seconds) => ("at", seconds),
            ClipStart::Rows => ("rows", 0.0),
        };
        hash.update(name);
        hash.update(number.to_bits().to_le_bytes());
        hash.update(match beyond {
            Beyond::RepeatLast => "repeat_last",
            Beyond::Wrap => "wrap",
            Beyond::Error => "error",
        });
    }

    fn check(&self) -> Result<(), PipelineError> {
        let Self { frames, clips, spacing, start, .. } = *self;
        let setting = |setting, value: u32, expected| {
            Err(PipelineError::Setting { setting, value: value.into(), expected })
        };
        if !(1..=MAX_FRAMES).contains(&frames) {
            return setting("frames of a clip", frames, "1 to 65536");
        }
        if !(1..=Recipe::MAX_VIEWS).contains(&clips) {
            return setting("clips of a video", clips, "1 to 256");
        }
        let (what, number) = match spacing {
            Spacing::Frames(0) => return setting("the spacing of frames", 0, "at least 1"),
            Spacing::Frames(_) => ("", 1.0),
            Spacing::Seconds(seconds) => ("the seconds between frames", seconds),
            Spacing::Fps(fps) => ("the frames a second of a clip", fps),
        };
        if !(number.is_finite() && number > 0.0) {
            let text = format!("{what} are {number}, expected a positive number");
            return Err(PipelineError::Unusable(text));
        }
        if let ClipStart::At(seconds) = start
            && !seconds.is_finite()
        {
            let text = format!("clips start at {seconds} seconds, expected a number");
            return Err(PipelineError::Unusable(text));
        }
        if matches!(start, ClipStart::At(_)) && clips > 1 {
            let text = format!(
                "{clips} clips of a video start at one time and would have the same frames: make one \
                 clip, or let them start at random, regular or central places"
            );
            return Err(PipelineError::Unusable(text));
        }
        Ok(())
    }
}
