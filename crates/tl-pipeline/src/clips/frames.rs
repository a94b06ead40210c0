//! The frames of clips, as a function of the video's times, the settings and the draw.

use tl_transform::{Draw, Rng};
use tl_video::{Ratio, VideoIndex};

use super::{Beyond, ClipSampling, ClipStart, Spacing};
use crate::error::ClipFault;

/// The operation whose random numbers place clips: recipes have fewer.
const PLACES: u8 = u8::MAX;

/// The numbers of the frames of all clips, one clip after the other.
pub(crate) fn frames(
    sampling: &ClipSampling,
    index: &VideoIndex,
    draw: Draw,
) -> Result<Vec<u64>, ClipFault> {
    let video = Video { index, sampling };
    let mut rng = Rng::new(draw.seed, draw.epoch, draw.sample, PLACES);
    let starts = video.starts();
    let mut frames = Vec::new();
    for clip in 0..u64::from(sampling.clips) {
        let clips = u64::from(sampling.clips);
        let start = match sampling.start {
            ClipStart::Random => rng.below(u32::try_from(starts).unwrap_or(u32::MAX)).into(),
            ClipStart::Uniform => clip * (starts - 1) / (clips - 1).max(1),
            ClipStart::Center => (2 * clip + 1) * (starts - 1) / (2 * clips),
            ClipStart::At(seconds) => video.frame_at(seconds)?,
        };
        let time = match sampling.start {
            ClipStart::At(seconds) => ticks(seconds, index.info().time_base),
            ClipStart::Random | ClipStart::Uniform | ClipStart::Center => video.pts(start),
        };
        video.clip(start, time, &mut frames)?;
    }
    Ok(frames)
}

/// The frames of a video, with the distances between those of a clip.
struct Video<'a> {
    index: &'a VideoIndex,
    sampling: &'a ClipSampling,
}

impl Video<'_> {
    /// How many frames a clip may begin at: the first ones, from which it fits, and at least one.
    fn starts(&self) -> u64 {
        let last = self.sampling.frames - 1;
        let count = self.index.frame_count();
        let fitting = match self.sampling.spacing {
            Spacing::Frames(distance) => {
                count.saturating_sub(u64::from(last).saturating_mul(distance.into()))
            }
            Spacing::Seconds(_) | Spacing::Fps(_) => {
                let latest = self.index.end_pts().saturating_sub(self.later(last));
                self.shown_before(latest)
            }
        };
        fitting.clamp(1, count)
    }

    /// Adds the frames of a clip from frame `start` and its time on.
    fn clip(&self, start: u64, time: i64, frames: &mut Vec<u64>) -> Result<(), ClipFault> {
        let Self { index, sampling } = self;
        let first = frames.len();
        let count = index.frame_count();
        let mut have = 0;
        for number in 0..sampling.frames {
            let frame = match sampling.spacing {
                _ if number == 0 => Some(start),
                Spacing::Frames(distance) => {
                    let later = u64::from(number).saturating_mul(distance.into());
                    Some(start.saturating_add(later)).filter(|frame| *frame < count)
                }
                Spacing::Seconds(_) | Spacing::Fps(_) => {
                    let time = time.saturating_add(self.later(number));
                    let is_shown = time < index.end_pts();
                    is_shown.then(|| self.shown_before(time.saturating_add(1)).saturating_sub(1))
                }
            };
            have += u32::from(frame.is_some());
            let frame = frame.or_else(|| match sampling.beyond {
                Beyond::RepeatLast => frames.last().copied(),
                Beyond::Wrap => frames.get(first + (number % have) as usize).copied(),
                Beyond::Error => None,
            });
            let frames_of_clip = sampling.frames;
            let short = ClipFault::TooShort { start, have, frames: frames_of_clip, count };
            frames.push(frame.ok_or(short)?);
        }
        Ok(())
    }

    /// The ticks from a clip's first frame to frame `number`.
    fn later(&self, number: u32) -> i64 {
        let number = f64::from(number);
        let seconds = match self.sampling.spacing {
            Spacing::Seconds(seconds) => number * seconds,
            Spacing::Fps(fps) => number / fps,
            Spacing::Frames(_) => 0.0,
        };
        ticks(seconds, self.index.info().time_base)
    }

    fn frame_at(&self, seconds: f64) -> Result<u64, ClipFault> {
        let base = self.index.info().time_base;
        let in_seconds =
            |ticks: i64| ticks as f64 * f64::from(base.numerator) / f64::from(base.denominator);
        let first = in_seconds(self.index.first_pts());
        let end = in_seconds(self.index.end_pts());
        self.index.frame_at(seconds).ok_or(ClipFault::NoFrameAt { seconds, first, end })
    }

    fn pts(&self, frame: u64) -> i64 {
        self.index.frame(frame).map_or(i64::MAX, |frame| frame.pts)
    }

    /// How many frames begin before a time.
    fn shown_before(&self, time: i64) -> u64 {
        let mut low = 0;
        let mut high = self.index.frame_count();
        while low < high {
            let middle = low + (high - low) / 2;
            if self.pts(middle) < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A time in ticks, the nearest whole number: that of a frame at this time is rounded so, too.
fn ticks(seconds: f64, base: Ratio) -> i64 {
    let ticks = seconds * f64::from(base.denominator) / f64::from(base.numerator);
    #[expect(clippy::cast_possible_truncation, reason = "the nearest number that there is")]
    let ticks = ticks.round() as i64;
    ticks
}
