//! The track that an index is of: a `TrackEntry` and its `Video`.

use super::CONTAINER;
use super::ebml::{ElementRef, id};
use crate::error::{Name, VideoError};
use crate::info::{Color, Ratio};

/// `TrackType` of video.
const VIDEO: u64 = 1;

/// A video track.
pub(super) struct Track {
    pub(super) number: u64,
    pub(super) codec: Vec<u8>,
    pub(super) configuration: Vec<u8>,
    /// The duration of a frame, zero if it is unknown.
    pub(super) frame_nanoseconds: u64,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) sample_aspect_ratio: Ratio,
    pub(super) rotation: u16,
    pub(super) color: Color,
}

impl Track {
    /// The first video track that is enabled and marked as the default, as FFmpeg chooses. Without one
    /// the first enabled track, and without that the first.
    pub(super) fn find(tracks: &ElementRef<'_>) -> Result<Self, VideoError> {
        let mut best = None;
        for entry in tracks.children() {
            let entry = entry?;
            if entry.id != id::TRACK_ENTRY || entry.number(id::TRACK_TYPE, 0)? != VIDEO {
                continue;
            }
            let is_enabled = entry.number(id::FLAG_ENABLED, 1)? == 1;
            let rank = (is_enabled, is_enabled && entry.number(id::FLAG_DEFAULT, 1)? == 1);
            if best.as_ref().is_none_or(|(found, _)| rank > *found) {
                best = Some((rank, entry));
            }
        }
        let missing = || VideoError::Missing {
            container: CONTAINER,
            part: "video track",
            what: Name::Text("`Tracks`"),
            offset: tracks.at,
        };
        Self::read(&best.ok_or_else(missing)?.1)
    }

    fn read(entry: &ElementRef<'_>) -> Result<Self, VideoError> {
        if entry.child(id::CONTENT_ENCODINGS)?.is_some() {
            return Err(VideoError::Unsupported {
                container: CONTAINER,
                feature: "compressed or encrypted frames",
                what: Name::Element(id::CONTENT_ENCODINGS),
                offset: entry.at,
            });
        }
        let bytes = |id| {
            let body = entry.child(id)?.map(|child| child.body.to_vec());
            Ok::<_, VideoError>(body.unwrap_or_default())
        };
        let video = entry.child(id::VIDEO)?.ok_or(VideoError::Missing {
            container: CONTAINER,
            part: "`Video`",
            what: Name::Text("a video track"),
            offset: entry.at,
        })?;
        let size = |id| {
            let size = video.number(id, 0)?;
            let too_large = |_| video.value("width or height", size, "less than 2^32");
            u32::try_from(size).map_err(too_large)
        };
        let width = size(id::PIXEL_WIDTH)?;
        let height = size(id::PIXEL_HEIGHT)?;
        Ok(Self {
            number: entry.number(id::TRACK_NUMBER, 0)?,
            codec: bytes(id::CODEC_ID)?,
            configuration: bytes(id::CODEC_PRIVATE)?,
            frame_nanoseconds: entry.number(id::DEFAULT_DURATION, 0)?,
            width,
            height,
            sample_aspect_ratio: sample_aspect_ratio(&video, width, height)?,
            rotation: rotation(&video)?,
            color: color(&video)?,
        })
    }
}

/// The ratio that makes pixels the size of display, or the ratio of display.
fn sample_aspect_ratio(
    video: &ElementRef<'_>,
    width: u32,
    height: u32,
) -> Result<Ratio, VideoError> {
    // Units of 4 are unknown.
    if video.number(id::DISPLAY_UNIT, 0)? > 3 {
        return Ok(Ratio::ONE);
    }
    let across = video.number(id::DISPLAY_WIDTH, width.into())?;
    let down = video.number(id::DISPLAY_HEIGHT, height.into())?;
    let across = across.checked_mul(height.into());
    let down = down.checked_mul(width.into());
    let ratio = across.zip(down).and_then(|(across, down)| Ratio::reduced(across, down));
    Ok(ratio.unwrap_or(Ratio::ONE))
}

fn color(video: &ElementRef<'_>) -> Result<Color, VideoError> {
    let Some(color) = video.child(id::COLOUR)? else { return Ok(Color::default()) };
    let matrix = color.number(id::MATRIX_COEFFICIENTS, 2)?;
    let full_range = match color.number(id::RANGE, 0)? {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    };
    Ok(Color { matrix: Color::specified(matrix), full_range })
}

/// The roll of a rectangular projection, which is counter-clockwise, as a right angle clockwise.
fn rotation(video: &ElementRef<'_>) -> Result<u16, VideoError> {
    let Some(projection) = video.child(id::PROJECTION)? else { return Ok(0) };
    let Some(roll) = projection.child(id::PROJECTION_POSE_ROLL)? else { return Ok(0) };
    let degrees = match *roll.body {
        [a, b, c, d] => f32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => f64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => 0.0,
    };
    let near = |angle: f64| (degrees - angle).abs() < 45.0;
    Ok(if near(90.0) {
        270
    } else if near(-90.0) {
        90
    } else if near(180.0) || near(-180.0) {
        180
    } else {
        0
    })
}
