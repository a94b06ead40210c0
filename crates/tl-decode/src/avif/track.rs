//! The tracks of an image sequence: the first picture of each.

use super::boxes::{Boxed, Bytes, missing, value_at};
use super::contents::{Contents, Layer};
use super::extents::Data;
use super::properties::{Properties, Size};
use crate::error::DecodeError;
use crate::limits::Limits;
use crate::orientation::Orientation;

/// The tracks that make the image.
#[derive(Debug)]
pub(super) struct Tracks<'a> {
    color: Track<'a>,
    alpha: Option<Track<'a>>,
}

/// A track of AV1.
#[derive(Debug)]
struct Track<'a> {
    id: u32,
    /// The track that this one is an auxiliary of.
    auxiliary_of: Option<u32>,
    /// The track with the alpha that colours are multiplied by.
    premultiplied_by: Option<u32>,
    size: Size,
    properties: Properties<'a>,
    /// The place of the first picture, and its size in bytes.
    offset: u64,
    bytes: u64,
}

impl<'a> Tracks<'a> {
    /// The first track of colours and that of its alpha; `None` for a movie without AV1.
    pub(super) fn find(movie: Bytes<'a>) -> Result<Option<Self>, DecodeError> {
        let mut color = None;
        let mut others = Vec::new();
        let mut rest = movie;
        while let Some(found) = rest.next_box()? {
            if found.kind != *b"trak" {
                continue;
            }
            match Track::parse(found.contents)? {
                Some(track) if track.auxiliary_of.is_some() => others.push(track),
                Some(track) if color.is_none() => color = Some(track),
                Some(_) | None => {}
            }
        }
        let Some(color) = color else { return Ok(None) };
        let alpha = others.into_iter().find(|track| track.auxiliary_of == Some(color.id));
        Ok(Some(Self { color, alpha }))
    }

    pub(super) fn contents(
        self,
        file: Bytes<'a>,
        limits: &Limits,
    ) -> Result<Contents<'a>, DecodeError> {
        let alpha_id = self.alpha.as_ref().map(|alpha| alpha.id);
        let is_premultiplied = alpha_id.is_some() && self.color.premultiplied_by == alpha_id;
        limits.charge_pixels(self.color.size.width, self.color.size.height)?;
        Ok(Contents {
            color: self.color.layer(file)?,
            alpha: self.alpha.as_ref().map(|alpha| alpha.layer(file)).transpose()?,
            is_premultiplied,
            nclx: self.color.properties.color,
            configuration: self.color.properties.configuration()?,
            orientation: Orientation::Upright,
        })
    }
}

impl<'a> Track<'a> {
    /// The first picture of a track; `None` if it is not of AV1.
    fn parse(track: Bytes<'a>) -> Result<Option<Self>, DecodeError> {
        let media = track.require(*b"mdia", "the media of a track (mdia)")?;
        let Some(media) = media.find(*b"minf")? else { return Ok(None) };
        let Some(table) = media.find(*b"stbl")? else { return Ok(None) };
        let mut descriptions = table.require(*b"stsd", "the codec of a track (stsd)")?;
        descriptions.version()?;
        let _count = descriptions.u32()?;
        let Some(entry) = descriptions.find(*b"av01")? else { return Ok(None) };
        let mut entry = entry;
        let size = visual_size(&mut entry)?;
        let mut properties = Properties::default();
        while let Some(property) = entry.next_box()? {
            // Boxes of tracks have no mark for those that readers must know.
            properties.add(&property, false)?;
        }
        let references = match track.find(*b"tref")? {
            Some(references) => References::parse(references)?,
            None => References::default(),
        };
        Ok(Some(Self {
            id: track_id(track)?,
            auxiliary_of: references.auxiliary_of,
            premultiplied_by: references.premultiplied_by,
            size,
            properties,
            offset: first_offset(table)?,
            bytes: first_size(table)?,
        }))
    }

    fn layer(&self, file: Bytes<'a>) -> Result<Layer<'a>, DecodeError> {
        let data = file.after(self.offset)?.part(self.bytes)?.data;
        Ok(Layer::of_picture(self.size, Data::Whole(data)))
    }
}

/// References to other tracks.
#[derive(Clone, Copy, Debug, Default)]
struct References {
    auxiliary_of: Option<u32>,
    premultiplied_by: Option<u32>,
}

impl References {
    fn parse(mut references: Bytes<'_>) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        while let Some(Boxed { kind, mut contents }) = references.next_box()? {
            match &kind {
                b"auxl" => found.auxiliary_of = Some(contents.u32()?),
                b"prem" => found.premultiplied_by = Some(contents.u32()?),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The fields of a visual sample entry, up to its boxes.
fn visual_size(entry: &mut Bytes<'_>) -> Result<Size, DecodeError> {
    const BEFORE_SIZE: u64 = 24;
    const AFTER_SIZE: u64 = 50;
    entry.part(BEFORE_SIZE)?;
    let at = entry.at;
    let size = Size { width: entry.u16()?.into(), height: entry.u16()?.into() };
    if size.width == 0 || size.height == 0 {
        return Err(value_at("width or height", 0, at));
    }
    entry.part(AFTER_SIZE)?;
    Ok(size)
}

fn track_id(track: Bytes<'_>) -> Result<u32, DecodeError> {
    let mut header = track.require(*b"tkhd", "the header of a track (tkhd)")?;
    let times = if header.version()?.version > 0 { 16 } else { 8 };
    header.part(times)?;
    header.u32()
}

/// The place of the first sample of a track, which is that of its first chunk.
fn first_offset(table: Bytes<'_>) -> Result<u64, DecodeError> {
    let places = table.find(*b"stco")?;
    let wide = places.is_none();
    let mut places = match places {
        Some(places) => places,
        None => table.require(*b"co64", "the places of a track's chunks (stco)")?,
    };
    places.version()?;
    if places.u32()? == 0 {
        return Err(missing("pictures in a track"));
    }
    if wide { places.u64() } else { places.u32().map(u64::from) }
}

/// The size of the first sample of a track in bytes.
fn first_size(table: Bytes<'_>) -> Result<u64, DecodeError> {
    let mut sizes = table.require(*b"stsz", "the sizes of a track's pictures (stsz)")?;
    sizes.version()?;
    let common = sizes.u32()?;
    if sizes.u32()? == 0 {
        return Err(missing("pictures in a track"));
    }
    if common == 0 { sizes.u32().map(u64::from) } else { Ok(common.into()) }
}
