//! Rows as samples: their frames, and their numbers as fields.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tbl_format::SampleFormat;
use tbl_io::{Entry, Field, Location, ReadError, SampleSource, SourceKind};
use tl_video::VideoIndex;

use super::{CameraSpec, Episode, FieldContent, FieldSpec, LeRobot, Part};
use crate::clips::{Beyond, ClipSampling, ClipStart, Spacing};
use crate::error::ClipFault;

/// Relative difference of rates that rounded times explain.
const SAME_RATE: f64 = 1e-3;

impl LeRobot {
    /// The cameras, in the order of their clips in a row.
    #[must_use]
    pub fn cameras(&self) -> &[CameraSpec] {
        &self.cameras
    }

    /// The names of the fields of a row, which are arrays in NumPy's format: the features that are
    /// numbers, and for those with [deltas](super::Deltas) also `<name>_is_pad`, which is true for rows
    /// outside of the episode.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }

    /// The rows of an episode, as numbers of samples; `None` if it does not exist.
    #[must_use]
    pub fn episode_rows(&self, episode: u64) -> Option<std::ops::Range<u64>> {
        let episode = self.episodes.get(usize::try_from(episode).ok()?)?;
        Some(episode.start..episode.end)
    }

    /// The choice of frames: a clip for each camera, as long as the longest. Batches show the frames
    /// that a camera has, which come first.
    #[must_use]
    pub fn sampling(&self) -> ClipSampling {
        let frames = self.cameras.iter().map(CameraSpec::frame_count).max().unwrap_or(1);
        ClipSampling {
            frames: u32::try_from(frames).unwrap_or(u32::MAX),
            clips: u32::try_from(self.cameras.len()).unwrap_or(u32::MAX),
            spacing: Spacing::Frames(1),
            start: ClipStart::Rows,
            beyond: Beyond::RepeatLast,
        }
    }

    /// The frames of a camera in its video, of row `row`.
    pub(crate) fn frames(
        &self,
        row: u64,
        camera: usize,
        index: &VideoIndex,
    ) -> Result<Vec<u64>, ClipFault> {
        let Ok(episode) = self.episode_of(row) else { return Ok(Vec::new()) };
        let Part { from, .. } = episode.videos[camera];
        let deltas = self.cameras[camera].deltas.as_deref().unwrap_or(&[0]);
        let frame = |&delta: &i64| {
            let row = episode.row_at(row, delta).row;
            let number = self.columns[self.frame_index].integer(row).unwrap_or_default();
            self.frame_at(from + number as f64 / self.fps, index)
        };
        deltas.iter().map(frame).collect()
    }

    /// The frame that the rate has at a time, if it is displayed then.
    fn frame_at(&self, seconds: f64, index: &VideoIndex) -> Result<u64, ClipFault> {
        let base = index.info().time_base;
        let in_seconds =
            |ticks: i64| ticks as f64 * f64::from(base.numerator) / f64::from(base.denominator);
        let none = || ClipFault::NoFrameAt {
            seconds,
            first: in_seconds(index.first_pts()),
            end: in_seconds(index.end_pts()),
        };
        let number = (seconds * self.fps).round();
        // Also false for NaN.
        let is_frame = number >= 0.0 && number < index.frame_count() as f64;
        let other_rate = (index.average_fps() / self.fps - 1.0).abs() > SAME_RATE;
        let rate = ClipFault::OtherRate { found: index.average_fps(), expected: self.fps };
        if !is_frame {
            return Err(if other_rate { rate } else { none() });
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number below that of the frames"
        )]
        let frame = number as u64;
        let found = in_seconds(index.frame(frame).ok_or_else(none)?.pts);
        let tolerance = self.tolerance;
        if (found - seconds).abs() <= tolerance {
            return Ok(frame);
        }
        let expected = seconds;
        let fault = ClipFault::OtherTime { frame, found, expected, tolerance };
        Err(if other_rate { rate } else { fault })
    }

    /// The episode of a row.
    pub(super) fn episode_of(&self, row: u64) -> Result<&Episode, ReadError> {
        let before = self.episodes.partition_point(|episode| episode.end <= row);
        let episode = self.episodes.get(before).filter(|episode| episode.start <= row);
        episode.ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.root.clone(),
            index: row,
            sample_count: self.sample_count(),
        })
    }

    /// Hashes the places of episodes, the distances and the fields.
    pub(crate) fn hash(&self, hash: &mut Sha256) {
        hash.update(self.fps.to_bits().to_le_bytes());
        for CameraSpec { name, deltas } in &self.cameras {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash_deltas(deltas.as_deref(), hash);
        }
        for Episode { start, end, videos, .. } in &self.episodes {
            hash.update(start.to_le_bytes());
            hash.update(end.to_le_bytes());
            for Part { file, from } in videos {
                hash.update(file.to_le_bytes());
                hash.update(from.to_bits().to_le_bytes());
            }
        }
        for FieldSpec { name, header, content } in &self.fields {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(header);
            match content {
                FieldContent::Column { deltas, .. } => hash_deltas(deltas.as_deref(), hash),
                FieldContent::IsPad { deltas } => hash_deltas(Some(deltas), hash),
            }
        }
        for column in &self.columns {
            hash.update(column.row(0));
            hash.update(column.row(column.row_count().saturating_sub(1)));
        }
    }

    /// Appends the numbers of a field of row `row`.
    fn write(
        &self,
        content: &FieldContent,
        row: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let episode = self.episode_of(row)?;
        match content {
            FieldContent::Column { column, deltas } => {
                let column = &self.columns[*column];
                for &delta in deltas.as_deref().unwrap_or(&[0]) {
                    bytes.extend_from_slice(column.row(episode.row_at(row, delta).row));
                }
            }
            FieldContent::IsPad { deltas } => {
                let is_pad = deltas.iter().map(|&delta| episode.row_at(row, delta).is_pad);
                bytes.extend(is_pad.map(u8::from));
            }
        }
        Ok(())
    }

    /// Bytes of a field.
    fn len(&self, field: &FieldSpec) -> u64 {
        let numbers = match &field.content {
            FieldContent::Column { column, deltas } => {
                deltas.as_ref().map_or(1, Vec::len).saturating_mul(self.columns[*column].row_bytes)
            }
            FieldContent::IsPad { deltas } => deltas.len(),
        };
        field.header.len().saturating_add(numbers) as u64
    }
}

fn hash_deltas(deltas: Option<&[i64]>, hash: &mut Sha256) {
    let count = deltas.map_or(u64::MAX, |deltas| deltas.len() as u64);
    hash.update(count.to_le_bytes());
    for delta in deltas.unwrap_or_default() {
        hash.update(delta.to_le_bytes());
    }
}

/// A row at a distance from another.
struct RowAt {
    /// The row, or the nearest one of the episode.
    row: u64,
    /// Whether the row at that distance is outside of the episode.
    is_pad: bool,
}

impl Episode {
    fn row_at(&self, row: u64, delta: i64) -> RowAt {
        let wanted = i128::from(row) + i128::from(delta);
        let inside = wanted.clamp(self.start.into(), i128::from(self.end) - 1);
        RowAt { row: u64::try_from(inside).unwrap_or_default(), is_pad: inside != wanted }
    }
}

impl SampleSource for LeRobot {
    fn location(&self) -> &Location {
        &self.root
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Manifest
    }

    fn sample_count(&self) -> u64 {
        self.episodes.last().map_or(0, |last| last.end)
    }

    /// A row is called by its episode and its number there, and has no bytes of its own.
    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let Episode { number, start, .. } = self.episode_of(index)?;
        let key = format!("episode-{number:06}-frame-{:06}", index - start);
        Ok(Entry {
            key: Some(Cow::Owned(key.into_bytes())),
            label: None,
            format: SampleFormat::VideoMp4,
            width: 0,
            height: 0,
            offset: 0,
            stored_bytes: 0,
            bytes: 0,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        bytes.clear();
        self.episode_of(index)?;
        let text = "rows of LeRobot have frames of several videos, and no bytes of their own";
        let source = std::io::Error::new(std::io::ErrorKind::Unsupported, text);
        Err(ReadError::Io { location: self.root.clone(), source })
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        for field in &self.fields {
            if !is_wanted(field.name.as_bytes(), self.len(field)) {
                continue;
            }
            let mut bytes = field.header.clone();
            self.write(&field.content, index, &mut bytes)?;
            fields.push(Field { extension: field.name.clone().into_bytes(), bytes });
        }
        Ok(())
    }
}
