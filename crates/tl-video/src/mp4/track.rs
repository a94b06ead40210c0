//! The track that an index is of: `tkhd`, `mdhd`, `hdlr`, `elst` and its sample entry.

use super::boxes::BoxRef;
use super::edits::Edit;
use super::sample_entry::SampleEntry;
use crate::error::VideoError;
use crate::info::Ratio;

/// A video track of a movie.
#[derive(Debug)]
pub(super) struct Track<'a> {
    pub(super) id: u32,
    pub(super) time_scale: u32,
    pub(super) rotation: u16,
    pub(super) edits: Vec<Edit>,
    pub(super) entry: SampleEntry,
    /// `stbl`.
    pub(super) tables: BoxRef<'a>,
}

impl<'a> Track<'a> {
    /// The first enabled video track, or the first one if none is enabled.
    pub(super) fn find(moov: &BoxRef<'a>) -> Result<Self, VideoError> {
        let mut first = None;
        let mut enabled = None;
        for track in moov.children(0) {
            let track = track?;
            if track.kind != *b"trak" || !is_video(&track)? {
                continue;
            }
            first = first.or(Some(track));
            if enabled.is_none() && track.require(b"tkhd", "`tkhd`")?.flags()? & 1 == 1 {
                enabled = Some(track);
            }
        }
        let Some(track) = enabled.or(first) else {
            return Err(VideoError::Missing {
                container: super::CONTAINER,
                part: "video track",
                what: moov.kind.into(),
                offset: moov.at,
            });
        };
        Self::read(moov, &track)
    }

    fn read(moov: &BoxRef<'a>, track: &BoxRef<'a>) -> Result<Self, VideoError> {
        let header = track.require(b"tkhd", "`tkhd`")?;
        // Creation and modification are before the identifier, of 32 or 64 bits.
        let (id, matrix_at) = match header.version()? {
            0 => (header.u32(12)?, 40),
            _ => (header.u32(20)?, 52),
        };
        let media = track.require(b"mdia", "`mdia`")?;
        let time_scale = time_scale(&media.require(b"mdhd", "`mdhd`")?)?;
        let tables = media.require(b"minf", "`minf`")?.require(b"stbl", "`stbl`")?;
        let mut entry = SampleEntry::read(&tables.require(b"stsd", "`stsd`")?)?;
        let width = u64::from(header.u32(matrix_at + 36)?);
        let height = u64::from(header.u32(matrix_at + 40)?);
        if entry.sample_aspect_ratio.is_none() && width > 0 && height > 0 {
            // 16.16 fixed point: the size of the picture on display.
            let across = width * u64::from(entry.height);
            entry.sample_aspect_ratio = Ratio::reduced(across, height * u64::from(entry.width));
        }
        let edits = match track.child(b"edts")? {
            Some(edits) => match edits.child(b"elst")? {
                Some(list) => {
                    let movie_scale = self::time_scale(&moov.require(b"mvhd", "`mvhd`")?)?;
                    Edit::read(&list, time_scale, movie_scale)?
                }
                None => Vec::new(),
            },
            None => Vec::new(),
        };
        Ok(Self { id, time_scale, rotation: rotation(&header, matrix_at)?, edits, entry, tables })
    }
}

fn is_video(track: &BoxRef<'_>) -> Result<bool, VideoError> {
    let Some(media) = track.child(b"mdia")? else { return Ok(false) };
    let Some(handler) = media.child(b"hdlr")? else { return Ok(false) };
    Ok(handler.array::<4>(8)? == *b"vide")
}

/// The ticks of a second of `mvhd` or `mdhd`.
fn time_scale(header: &BoxRef<'_>) -> Result<u32, VideoError> {
    let scale = header.u32(if header.version()? == 0 { 12 } else { 20 })?;
    if scale == 0 { Err(header.value("time scale", 0, "a positive number")) } else { Ok(scale) }
}

/// The right angle nearest to the rotation of a matrix, clockwise.
fn rotation(header: &BoxRef<'_>, at: usize) -> Result<u16, VideoError> {
    let a = header.u32(at)?.cast_signed();
    let b = header.u32(at + 4)?.cast_signed();
    Ok(if a.unsigned_abs() >= b.unsigned_abs() {
        if a >= 0 { 0 } else { 180 }
    } else if b > 0 {
        90
    } else {
        270
    })
}
