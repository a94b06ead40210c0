//! Data sets of LeRobot: rows of numbers, each with frames of several videos.
//!
//! The format is that of LeRobot's version 3 (`codebase_version` v3.0):
//!
//! - `meta/info.json` describes the features.
//! - Files below `meta/episodes` have the places of the episodes.
//! - Files below `data` have the numbers of every frame.
//! - Files below `videos` have the frames of a camera, several episodes one after the other.

mod info;
mod npy;
mod open;
mod places;
mod read;
mod rows;

use std::any::Any;

use tbl_io::{Location, ReadError, Source, StoredBytes};

use crate::clips::VideoId;
use crate::dataset::Dataset;
use crate::error::SampleFault;
use read::Column;

/// The choice of the rows and of what they have.
#[derive(Clone, Debug, PartialEq)]
pub struct LeRobotOptions {
    /// For a feature, the distances from a row in seconds at which batches have it, in this order.
    /// Features that are not named are those of the row itself. Default none.
    pub deltas: Vec<Deltas>,
    /// The largest difference between the time of a row and that of its frame, and between a distance and
    /// a whole number of frames, in seconds. Default 0.0001, as LeRobot's.
    pub tolerance: f64,
    /// The episodes whose video files must exist, by their numbers. Default: all.
    pub episodes: Option<Vec<u64>>,
}

/// Distances in time of one feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Deltas {
    /// The name of the feature.
    pub feature: String,
    /// The distances in seconds; rows outside of the episode are those at its ends.
    pub seconds: Vec<f64>,
}

impl Default for LeRobotOptions {
    fn default() -> Self {
        Self { deltas: Vec::new(), tolerance: 1e-4, episodes: None }
    }
}

/// A data set of LeRobot, of version 3 of its format, among the sources of a [`Dataset`]: its samples
/// are frames of episodes.
///
/// [`Work::Clips`](crate::Work::Clips) with [`LeRobot::sampling`] makes a clip of each camera. The numbers
/// of a row are fields in NumPy's format, by the names of the features ([`LeRobot::fields`]).
/// They are kept in memory, at most 64 GiB; videos are read where they are.
#[derive(Debug)]
pub struct LeRobot {
    root: Location,
    fps: f64,
    tolerance: f64,
    cameras: Vec<CameraSpec>,
    fields: Vec<FieldSpec>,
    /// The numbers of all rows, one column for each feature.
    columns: Vec<Column>,
    /// The place of the column with the number of each row in its episode.
    frame_index: usize,
    episodes: Vec<Episode>,
    files: Vec<VideoFile>,
}

/// A camera of a data set, and what batches have of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraSpec {
    /// The name of the feature.
    pub name: String,
    /// The distances in rows; `None` for the frame of the row itself.
    deltas: Option<Vec<i64>>,
}

impl CameraSpec {
    /// The number of its frames in each row of a batch.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.deltas.as_ref().map_or(1, Vec::len)
    }
}

/// A field of numbers.
#[derive(Debug)]
struct FieldSpec {
    name: String,
    /// The description before the numbers, as NumPy writes it.
    header: Vec<u8>,
    content: FieldContent,
}

#[derive(Debug)]
enum FieldContent {
    /// The numbers of a column, at these distances in rows.
    Column { column: usize, deltas: Option<Vec<i64>> },
    /// Whether the rows at these distances are outside of the episode.
    IsPad { deltas: Vec<i64> },
}

/// The rows of an episode, and its videos.
#[derive(Debug)]
struct Episode {
    number: u64,
    start: u64,
    end: u64,
    /// For each camera the file, and the time in it at which the episode begins, in seconds.
    videos: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    file: u32,
    from: f64,
}

/// A file of videos. Local ones are opened for each clip, so that few are open at a time.
#[derive(Debug)]
struct VideoFile {
    location: Location,
    remote: Option<Source>,
}

/// One camera of one row, for the worker that renders it.
pub(crate) struct Camera<'a> {
    pub(crate) rows: &'a LeRobot,
    pub(crate) row: u64,
    pub(crate) number: usize,
    pub(crate) video: VideoId,
}

/// A row of a data set of LeRobot.
pub(crate) struct Row<'a> {
    rows: &'a LeRobot,
    shard: usize,
    row: u64,
    episode: &'a Episode,
}

/// The row that sample `sample` is; `None` for a sample of another source.
pub(crate) fn of(dataset: &Dataset, sample: u64) -> Result<Option<Row<'_>>, ReadError> {
    let place = dataset.place(sample)?;
    let Some(rows) = LeRobot::of(&*dataset.shards()[place.0]) else { return Ok(None) };
    let episode = rows.episode_of(place.1)?;
    Ok(Some(Row { rows, shard: place.0, row: place.1, episode }))
}

impl<'a> Row<'a> {
    pub(crate) fn camera_count(&self) -> usize {
        self.rows.cameras.len()
    }

    pub(crate) fn camera(&self, number: usize) -> Camera<'a> {
        let file = self.episode.videos[number].file;
        let video = VideoId { shard: self.shard, number: file.into() };
        Camera { rows: self.rows, row: self.row, number, video }
    }
}

impl Camera<'_> {
    fn file(&self) -> Option<&VideoFile> {
        self.rows.files.get(usize::try_from(self.video.number).ok()?)
    }

    /// The bytes of the video.
    pub(crate) fn open(&self) -> Result<StoredBytes, ReadError> {
        let missing = || ReadError::SampleOutOfRange {
            location: self.rows.root.clone(),
            index: self.video.number,
            sample_count: self.rows.files.len() as u64,
        };
        let VideoFile { location, remote } = self.file().ok_or_else(missing)?;
        let source = match remote {
            Some(source) => source.clone(),
            None => Source::open(location.as_os_str())?,
        };
        Ok(StoredBytes { offset: 0, len: source.len(), source })
    }

    /// The fault with the video file and the row.
    pub(crate) fn fault(&self, fault: SampleFault) -> SampleFault {
        let location = self.file().map_or_else(|| &self.rows.root, |file| &file.location);
        let location = location.clone();
        SampleFault::RowVideo { location, row: self.row, source: Box::new(fault) }
    }
}

impl LeRobot {
    /// The data set of a source, if it is one.
    #[must_use]
    pub fn of(source: &dyn tbl_io::SampleSource) -> Option<&Self> {
        (source as &dyn Any).downcast_ref::<Self>()
    }
}
