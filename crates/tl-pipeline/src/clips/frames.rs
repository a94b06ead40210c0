//! The frames of clips, as a function of the video's times, the settings and the draw.

use tl_transform::{Draw, Rng};
use tl_video::{Ratio, VideoIndex};

use super::{Beyond, ClipSampling, ClipStart, Spacing, Times};
use crate::error::ClipFault;

/// The operation whose random numbers place clips: recipes have fewer.
const PLACES: u8 = u8::MAX;

/// The numbers of the frames of all clips, one clip after the other.
pub(crate) fn frames(
    sampling: &ClipSampling,
    index: &VideoIndex,
    times: Times,
    draw: Draw,
) -> Result<Vec<u64>, ClipFault> {
    let video = Video::of(sampling, index, times)?;
    let mut rng = Rng::new(draw.seed, draw.epoch, draw.sample, PLACES);
    let starts = video.starts();
    let mut frames = Vec::new();
    for clip in 0..u64::from(sampling.clips) {
        let clips = u64::from(sampling.clips);
        let after = match sampling.start {
            ClipStart::Random => rng.below(u32::try_from(starts).unwrap_or(u32::MAX)).into(),
            ClipStart::Uniform => clip * (starts - 1) / (clips - 1).max(1),
            ClipStart::Center => video.centered(clip, clips, starts),
            // `Work::check_samples` refuses rows for videos that no row points into.
            ClipStart::At(_) | ClipStart::Rows => 0,
        };
        let at = match sampling.start {
            _ if times.at.is_some() => times.at,
            // 0.7 and 0.1 are less than 0.8.
            ClipStart::At(seconds) => {
                Some(times.from.map_or(seconds, |from| from + seconds + 1e-9))
            }
            ClipStart::Random | ClipStart::Uniform | ClipStart::Center | ClipStart::Rows => None,
        };
        let start = match at {
            Some(seconds) => video.frame_of_part(seconds, times)?,
            None => video.first + after,
        };
        let time = match at {
            Some(seconds) => ticks(seconds, index.info().time_base),
            None => video.pts(start) as f64,
        };
        video.clip(start, time, &mut frames)?;
    }
    Ok(frames)
}

/// The frames of a part of a video, with the distances between those of a clip.
struct Video<'a> {
    index: &'a VideoIndex,
    sampling: &'a ClipSampling,
    /// The number of the first frame.
    first: u64,
    /// The number after that of the last frame.
    end: u64,
    /// The time at which the last frame ends, in ticks.
    end_pts: i64,
}

impl<'a> Video<'a> {
    /// The part of the video that is the sample.
    fn of(
        sampling: &'a ClipSampling,
        index: &'a VideoIndex,
        times: Times,
    ) -> Result<Self, ClipFault> {
        let count = index.frame_count();
        let end_pts = index.end_pts();
        let mut video = Self { index, sampling, first: 0, end: count, end_pts };
        let Times { from, to, at: _ } = times;
        let begin = from.unwrap_or_else(|| video.in_seconds(index.first_pts()));
        if let Some(to) = to
            && to <= begin
        {
            return Err(ClipFault::EmptyPart { from: begin, to });
        }
        if let Some(from) = from {
            video.first = video.frame_at(from)?;
        }
        let Some(to) = to else { return Ok(video) };
        let end = video.in_seconds(end_pts);
        // Times in tables are rounded, or those of another stream.
        if to > end + 1.0 / index.average_fps() {
            return Err(ClipFault::PartBeyondEnd { to, end });
        }
        video.end = video.count_where(|pts| video.in_seconds(pts) < to);
        video.end_pts = if video.end < count { video.pts(video.end) } else { end_pts };
        Ok(video)
    }

    /// How many frames there are.
    fn count(&self) -> u64 {
        self.end - self.first
    }

    /// How many frames a clip may begin at: the first ones, from which it fits, and at least one.
    fn starts(&self) -> u64 {
        let last = self.sampling.frames - 1;
        let count = self.count();
        let fitting = match self.sampling.spacing {
            Spacing::Frames(distance) => {
                count.saturating_sub(u64::from(last).saturating_mul(distance.into()))
            }
            Spacing::Seconds(_) | Spacing::Fps(_) => {
                let latest = self.end_pts.saturating_sub(self.shown_at(self.later(last)));
                self.shown_before(latest).saturating_sub(self.first)
            }
        };
        fitting.clamp(1, count)
    }

    /// Adds the frames of a clip from frame `start` and its time on.
    fn clip(&self, start: u64, time: f64, frames: &mut Vec<u64>) -> Result<(), ClipFault> {
        let sampling = self.sampling;
        let first = frames.len();
        let mut have = 0;
        for number in 0..sampling.frames {
            let frame = match sampling.spacing {
                _ if number == 0 => Some(start),
                Spacing::Frames(distance) => {
                    let later = u64::from(number).saturating_mul(distance.into());
                    Some(start.saturating_add(later)).filter(|frame| *frame < self.end)
                }
                Spacing::Seconds(_) | Spacing::Fps(_) => {
                    let time = self.shown_at(time + self.later(number));
                    let is_shown = time < self.end_pts;
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
            let last = self.end - 1;
            let short = || ClipFault::TooShort { start, have, frames: frames_of_clip, last };
            frames.push(frame.ok_or_else(short)?);
        }
        Ok(())
    }

    /// The start of clip `clip` of `clips`, counted from the first frame: it is in the middle of one of
    /// as many parts.
    fn centered(&self, clip: u64, clips: u64, starts: u64) -> u64 {
        let count = self.count();
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

    /// The frame on display at a time.
    fn frame_at(&self, seconds: f64) -> Result<u64, ClipFault> {
        let first = self.in_seconds(self.index.first_pts());
        let end = self.in_seconds(self.index.end_pts());
        self.index.frame_at(seconds).ok_or(ClipFault::NoFrameAt { seconds, first, end })
    }

    /// The frame on display at a time, which is in the part.
    fn frame_of_part(&self, seconds: f64, times: Times) -> Result<u64, ClipFault> {
        let frame = self.frame_at(seconds)?;
        let is_before = times.from.is_some_and(|from| seconds < from);
        if is_before || frame >= self.end {
            let from = times.from.unwrap_or_else(|| self.in_seconds(self.index.first_pts()));
            let to = times.to.unwrap_or_else(|| self.in_seconds(self.end_pts));
            return Err(ClipFault::OutsidePart { seconds, from, to });
        }
        Ok(frame)
    }

    fn in_seconds(&self, ticks: i64) -> f64 {
        let base = self.index.info().time_base;
        ticks as f64 * f64::from(base.numerator) / f64::from(base.denominator)
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

    /// How many frames of the video begin before a time.
    fn shown_before(&self, time: i64) -> u64 {
        self.count_where(|pts| pts < time)
    }

    /// How many frames of the video begin at such times, which are the first ones.
    fn count_where(&self, is_counted: impl Fn(i64) -> bool) -> u64 {
        let mut low = 0;
        let mut high = self.index.frame_count();
        while low < high {
            let middle = low + (high - low) / 2;
            if is_counted(self.pts(middle)) {
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
        let draw = Draw { seed: 0, epoch: 0, sample: 0 };
        frames(&sampling, &index, Times::default(), draw).unwrap()
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
