//! Folders that are not complete LeRobot data sets.

use tbl_io::Escaped;

/// The reason why a folder cannot be opened as a data set of LeRobot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum LeRobotDefect {
    /// `meta/info.json` is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A value of `meta/info.json` is missing, or is another kind of value.
    #[error("`{pointer}` is missing or not {expected}")]
    Info { pointer: String, expected: &'static str },
    /// The folder has another version of the format.
    #[error("version `{}` of the format, expected v3.0 or a later v3", Escaped(found.as_bytes()))]
    Version { found: String },
    /// A path of files that leads out of the folder, or has other parts than the format.
    #[error("the path `{}` of files is not one below the folder", Escaped(path.as_bytes()))]
    Path { path: String },
    /// A feature that is neither numbers nor a video.
    #[error(
        "feature `{}` is of type `{}`, expected numbers or a video",
        Escaped(name.as_bytes()),
        Escaped(found.as_bytes())
    )]
    Feature { name: String, found: String },
    /// The data set has no video, so that its rows are those of a table.
    #[error("no feature is a video: open the files below `data` as a table")]
    NoVideos,
    /// A setting names a feature that the data set lacks.
    #[error("no feature `{}`, the features are {known}", Escaped(name.as_bytes()))]
    UnknownFeature { name: String, known: String },
    /// A distance in time that is not a whole number of frames.
    #[error(
        "a delta of {seconds} s of `{}` is {frames} frames at {fps} frames a second, expected a \
         whole number within {tolerance} s",
        Escaped(name.as_bytes())
    )]
    Delta { name: String, seconds: f64, frames: f64, fps: f64, tolerance: f64 },
    /// A feature without a distance, or with more than batches have room for.
    #[error("{count} deltas of `{}`, expected 1 to {most}", Escaped(name.as_bytes()))]
    DeltaCount { name: String, count: usize, most: usize },
    /// A tolerance that is not a number from 0.
    #[error("the tolerance is {seconds} s, expected a number from 0")]
    Tolerance { seconds: f64 },
    /// The files of episodes are missing.
    #[error("no Parquet file of episodes")]
    NoEpisodes,
    /// A column that does not hold the numbers that it should.
    #[error("column `{}` has {found}, expected {expected}", Escaped(column.as_bytes()))]
    Column { column: String, found: String, expected: &'static str },
    /// A number of an episode that cannot be.
    #[error("row {row}: `{}` is {value}, expected {expected}", Escaped(column.as_bytes()))]
    Value { row: u64, column: String, value: i64, expected: i64 },
    /// A number of an episode below the least that it can be.
    #[error("row {row}: `{}` is {value}, expected at least {least}", Escaped(column.as_bytes()))]
    TooSmall { row: u64, column: String, value: i64, least: i64 },
    /// The files of episodes have another number of episodes or rows than `meta/info.json` states.
    #[error("{found} {what}, meta/info.json states {expected}")]
    Total { what: &'static str, found: u64, expected: u64 },
    /// A file has another number of rows than its episodes.
    #[error("{found} rows, its episodes have {expected}")]
    Rows { found: u64, expected: u64 },
    /// An episode that is asked for and does not exist.
    #[error("no episode {episode}, there are {count}")]
    UnknownEpisode { episode: u64, count: u64 },
    /// A video file of an episode that does not exist.
    #[error("the video of episode {episode} and `{}` does not exist", Escaped(name.as_bytes()))]
    NoVideo { episode: u64, name: String },
}
