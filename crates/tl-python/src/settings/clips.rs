//! The choice of frames of clips.

use pyo3::prelude::*;
use tl_pipeline::{Beyond, ClipColumns, ClipSampling, ClipStart, ClipWork, ColorParity, Spacing};
use tl_transform::Recipe;

use super::none_of;
use crate::error::Error;

/// `Clips` of Python, of whose distances it has one.
#[derive(FromPyObject)]
pub(super) struct ClipSettings {
    frames: u32,
    clips: u32,
    stride: Option<u32>,
    seconds: Option<f64>,
    fps: Option<f64>,
    start: Start,
    /// The column with the time at which clips begin.
    at: Option<String>,
    /// Those with the beginning and the end of samples.
    part: Option<(Option<String>, Option<String>)>,
    policy: String,
    colors: String,
}

#[derive(FromPyObject)]
enum Start {
    Named(String),
    At(f64),
}

impl ClipSettings {
    pub(super) fn work(&self, recipe: Recipe) -> Result<ClipWork, Error> {
        let Self { frames, clips, stride, seconds, fps, .. } = *self;
        let Self { start, at, part, policy, colors, .. } = self;
        let spacing = match (seconds, fps) {
            (Some(seconds), _) => Spacing::Seconds(seconds),
            (None, Some(fps)) => Spacing::Fps(fps),
            (None, None) => Spacing::Frames(stride.unwrap_or(1)),
        };
        let start = match start {
            Start::At(seconds) => ClipStart::At(*seconds),
            Start::Named(name) => match name.as_str() {
                "random" => ClipStart::Random,
                "regular" => ClipStart::Uniform,
                "center" => ClipStart::Center,
                // Data sets whose rows name frames set it.
                "rows" => ClipStart::Rows,
                other => return Err(none_of("start", other, "random, regular and center")),
            },
        };
        let beyond = match policy.as_str() {
            "repeat_last" => Beyond::RepeatLast,
            "wrap" => Beyond::Wrap,
            "error" => Beyond::Error,
            other => return Err(none_of("policy", other, "repeat_last, wrap and error")),
        };
        let parity = match colors.as_str() {
            "ffmpeg" => ColorParity::Ffmpeg,
            "exact" => ColorParity::Exact,
            other => return Err(none_of("colors", other, "ffmpeg and exact")),
        };
        let sampling = ClipSampling { frames, clips, spacing, start, beyond };
        let (from, to) = part.clone().unwrap_or_default();
        let columns = ClipColumns { from, to, at: at.clone() };
        Ok(ClipWork { recipe, sampling, parity, columns })
    }
}
