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
            ClipStart::Center => video.centered(clip, clips, starts),
            ClipStart::At(seconds) => video.frame_at(seconds)?,
            // `Work::check_samples` refuses it for videos that no row points into.
            ClipStart::Rows => 0,
        };
        let time = match sampling.start {
            ClipStart::At(seconds) => ticks(seconds, index.info().time_base),
            ClipStart::Random | ClipStart::Uniform | ClipStart::Center | ClipStart::Rows => {
                video.pts(start) as f64
            }
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
                let latest = self.index.end_pts().saturating_sub(self.shown_at(self.later(last)));
                self.shown_before(latest)
            }
        };
        fitting.clamp(1, count)
    }

    /// Adds the frames of a clip from frame `start` and its time on.
    fn clip(&self, start: u64, time: f64, frames: &mut Vec<u64>) -> Result<(), ClipFault> {
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
                    let time = self.shown_at(time + self.later(number));
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

    /// The start of clip `clip` of `clips`, which is in the middle of its part of the video.
    fn centered(&self, clip: u64, clips: u64, starts: u64) -> u64 {
        let count = self.index.frame_count();
        // Twice the middle of the part, and the frames that a clip takes.
        let middle = (2 * clip + 1) * count / clips;
        let taken = count - starts + 1;
        (middle.saturating_sub(taken) / 2).min(starts - 1)
    }

    /// The ticks from a clip's first frame to frame `number`.
    fn later(&self, number: u32) -> f64 {
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

    /// The time at which the frame is looked up that is on display at `time`, in ticks. Times of
    /// frames are rounded to ticks, so one that falls a little short of a frame's is that frame's.
    fn shown_at(&self, time: f64) -> i64 {
        let ticks = self.index.end_pts().saturating_sub(self.index.first_pts());
        let frame = ticks as f64 / self.index.frame_count() as f64;
        #[expect(clippy::cast_possible_truncation, reason = "the nearest number that there is")]
        let shown = (time + (frame / 20.0).min(0.5)).floor() as i64;
        shown
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

/// A time in ticks.
fn ticks(seconds: f64, base: Ratio) -> f64 {
    seconds * f64::from(base.denominator) / f64::from(base.numerator)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a clip of the AVI file, whose clock has a tick for each of its frames, 25 a
    /// second.
    fn of_avi(sampling: ClipSampling) -> Vec<u64> {
        let clip = tl_testdata::shipped_bytes!("video/h264.avi");
        let index = VideoIndex::open(&clip[..], &tl_video::Limits::default()).unwrap();
        frames(&sampling, &index, Draw { seed: 0, epoch: 0, sample: 0 }).unwrap()
    }

    #[test]
    fn frames_are_those_on_display_where_a_tick_is_a_frame() {
        let clip = |start, spacing| {
            let start = ClipStart::At(start);
            of_avi(ClipSampling { frames: 6, start, spacing, ..ClipSampling::default() })
        };
        assert_eq!(clip(0.03, Spacing::Fps(25.0)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(clip(0.0, Spacing::Fps(10.0)), [0, 2, 5, 7, 10, 12]);
        assert_eq!(clip(0.0, Spacing::Seconds(0.1)), [0, 2, 5, 7, 10, 12]);
        // A little before a frame is that frame, as its time may have been rounded up.
        assert_eq!(clip(0.0, Spacing::Seconds(0.0399)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn centered_clips_are_in_the_middle_of_equal_parts() {
        let sampling = ClipSampling { frames: 4, clips: 2, ..ClipSampling::default() };
        let frames = of_avi(ClipSampling { start: ClipStart::Center, ..sampling });
        let count = 16;
        assert_eq!(frames[0], (count / 2 - 4) / 2);
        assert_eq!(frames[4], (3 * count / 2 - 4) / 2);
    }
}
