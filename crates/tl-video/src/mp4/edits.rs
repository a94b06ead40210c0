//! Edit lists, applied as FFmpeg applies them (`mov_fix_index` of `libavformat/mov.c`).
//!
//! An edit shows a part of the media. It starts at a key frame; frames before its first and after
//! its last time are decoded and not shown. Frames of an edit keep their distances, and the first
//! frame that is shown is at zero, or after the empty edits at the front.

use super::boxes::BoxRef;
use super::tables::Sample;
use crate::error::VideoError;
use crate::packets::Packets;
use crate::read::Reader;

/// An edit, in ticks of the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// The first time of the media; `None` if nothing is shown.
    start: Option<i64>,
    duration: i64,
}

impl Edit {
    pub(super) fn read(
        list: &BoxRef<'_>,
        time_scale: u32,
        movie_scale: u32,
    ) -> Result<Vec<Self>, VideoError> {
        let is_large = list.version()? == 1;
        let size = if is_large { 20 } else { 12 };
        let mut edits = Vec::new();
        for entry in list.entries(4, size)?.chunks_exact(size) {
            let entry = BoxRef { body: entry, ..*list };
            let (duration, start) = if is_large {
                (entry.u64(0)?, entry.u64(8)?.cast_signed())
            } else {
                (entry.u32(0)?.into(), entry.u32(4)?.cast_signed().into())
            };
            if start < -1 {
                let expected = "at least -1";
                return Err(list.value("media time", start.cast_unsigned(), expected));
            }
            // To the nearest tick of the media.
            let scale = i128::from(movie_scale);
            let ticks = (i128::from(duration) * i128::from(time_scale) + scale / 2) / scale;
            let duration = i64::try_from(ticks).unwrap_or(i64::MAX);
            edits.push(Self { start: (start >= 0).then_some(start), duration });
        }
        Ok(edits)
    }
}

/// The ticks by which frames of fragments are shown earlier than their media says: the start of the
/// first edit less an empty one before it.
pub(super) fn time_offset(edits: &[Edit]) -> i64 {
    match edits {
        [Edit { start: None, duration }, Edit { start: Some(start), .. }, ..] => {
            start.saturating_sub(*duration)
        }
        [Edit { start: None, duration }, ..] => duration.saturating_neg(),
        [Edit { start: Some(start), .. }, ..] => *start,
        [] => 0,
    }
}

/// A sample with its time of decoding after edits.
#[derive(Clone, Copy, Debug)]
struct Edited {
    sample: Sample,
    dts: i64,
    edit: u32,
    is_shown: bool,
}

impl Edited {
    fn pts(&self) -> i64 {
        self.dts.saturating_add(self.sample.shift.into())
    }
}

/// Adds the packets of all edits.
pub(super) fn apply(
    edits: &[Edit],
    samples: &[Sample],
    reader: &Reader<'_>,
    packets: &mut Packets,
) -> Result<(), VideoError> {
    let has_shifts = samples.iter().any(|sample| sample.shift != 0);
    let mut edited = Vec::new();
    let mut empty = 0_i64;
    let mut end = 0_i64;
    let mut searched = 0;
    for (number, edit) in (0_u32..).zip(edits) {
        let dts = end;
        end = end.saturating_add(edit.duration);
        match edit.start {
            // Later empty edits leave a gap.
            None if edited.is_empty() => empty = end,
            None => {}
            Some(start) => {
                let window = Window { start, duration: edit.duration, has_shifts, number };
                let from = window.first_sample(samples);
                // Short edits far from a key frame could each search the whole file.
                searched += from.searched;
                reader.limits.charge_headers(searched)?;
                window.append(samples, from.sample, dts, packets, &mut edited)?;
            }
        }
    }
    // Only frames that are shown decide where the first one is.
    let first = edited.iter().filter(|one| one.is_shown).map(Edited::pts).min().unwrap_or(empty);
    let late = first.saturating_sub(empty).max(0);
    for one in edited {
        let pts = one.pts().saturating_sub(late);
        packets.push(reader, one.sample.shown_at(pts, one.edit, one.is_shown))?;
    }
    Ok(())
}

/// The part of the media that an edit shows.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: i64,
    duration: i64,
    has_shifts: bool,
    number: u32,
}

impl Window {
    /// Appends the samples of an edit whose first frame is decoded at `dts`.
    fn append(
        self,
        samples: &[Sample],
        from: usize,
        mut dts: i64,
        packets: &Packets,
        edited: &mut Vec<Edited>,
    ) -> Result<(), VideoError> {
        let first = edited.len();
        let end = self.start.saturating_add(self.duration);
        let mut is_started = false;
        let mut is_after_key = false;
        for (at, sample) in samples.iter().enumerate().skip(from) {
            let next = samples.get(at + 1);
            let duration = next.map_or(self.duration, |next| next.dts.saturating_sub(sample.dts));
            let pts = sample.pts();
            let is_shown = (self.start..end).contains(&pts);
            packets.charge(edited.len() as u64 + 1)?;
            if is_shown && !is_started {
                is_started = true;
                // Frames before the first that is shown keep their distance from it.
                let mut before = dts;
                let mut later = sample.dts;
                for one in edited.get_mut(first..).unwrap_or_default().iter_mut().rev() {
                    before = before.saturating_sub(later.saturating_sub(one.sample.dts));
                    later = one.sample.dts;
                    one.dts = before;
                }
            }
            edited.push(Edited { sample: *sample, dts, edit: self.number, is_shown });
            if is_started {
                dts = dts.saturating_add(duration);
            }
            if pts.saturating_add(duration) >= end && sample.is_key {
                // Frames that are shown before this key frame can follow it, up to the next one.
                if self.has_shifts && !is_after_key {
                    is_after_key = true;
                    continue;
                }
                break;
            }
        }
        Ok(())
    }

    /// The last key frame at or before the start of the edit, in order of decoding and of display;
    /// the last frame before it if there is none, or the first of all.
    fn first_sample(self, samples: &[Sample]) -> Start {
        let after = samples.partition_point(|sample| sample.dts <= self.start);
        let before = samples.get(..after).unwrap_or_default();
        let is_start = |sample: &Sample| sample.is_key && sample.pts() <= self.start;
        let key = before.iter().rposition(is_start);
        let any = || before.iter().rposition(|sample| sample.pts() <= self.start);
        let sample = key.or_else(any).unwrap_or(0);
        Start { sample, searched: (after - key.unwrap_or(0)) as u64 }
    }
}

/// The sample at which an edit starts, and the samples among which it was searched.
#[derive(Clone, Copy, Debug)]
struct Start {
    sample: usize,
    searched: u64,
}
