//! Videos that do not have the clips that are asked for.

/// The reason why a video does not have the clips that are asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ClipFault {
    /// No frame is on display at the time that clips start at.
    #[error(
        "no frame is on display at {seconds} s, the video shows frames from {first} s to {end} s"
    )]
    NoFrameAt { seconds: f64, first: f64, end: f64 },
    /// A sample without the time that a column of its data set has.
    #[error("no time in column `{column}`")]
    NoTime { column: String },
    /// A time that is not a number.
    #[error("column `{column}` is `{found}`, expected seconds as a number")]
    Time { column: String, found: String },
    /// A part of a video that ends before it begins, or then.
    #[error(
        "the part of the video is from {from} s to {to} s, expected an end after its beginning"
    )]
    EmptyPart { from: f64, to: f64 },
    /// A part of a video that ends after the video.
    #[error("the part of the video ends at {to} s, the video at {end} s")]
    PartBeyondEnd { to: f64, end: f64 },
    /// A clip that begins outside of its part of the video.
    #[error("the clip begins at {seconds} s, its part of the video is from {from} s to {to} s")]
    OutsidePart { seconds: f64, from: f64, to: f64 },
    /// The video, or the part of it that is the sample, ends before the clip, which must not be filled.
    #[error("the clip from frame {start} on has {have} of {frames} frames, the last one is {last}")]
    TooShort { start: u64, have: u32, frames: u32, last: u64 },
    /// Frames of different sizes, for which operations are drawn once.
    #[error(
        "frame {frame} has {width}x{height} pixels, the clip began with {first_width}x{first_height}"
    )]
    Size { frame: u64, width: u32, height: u32, first_width: u32, first_height: u32 },
    /// The frame at a time of a row is displayed at another time than the tolerance allows.
    #[error("frame {frame} is displayed at {found} s, expected {expected} s within {tolerance} s")]
    OtherTime { frame: u64, found: f64, expected: f64, tolerance: f64 },
    /// The video has another rate than the rows that point into it.
    #[error("the video has {found} frames a second, its rows expect {expected}")]
    OtherRate { found: f64, expected: f64 },
    /// The decoder did not return a frame of the index.
    #[error("frame {frame} has no picture")]
    NoPicture { frame: u64 },
}
