//! Properties of items (ISO/IEC 23008-12 section 6.5, and AV1-ISOBMFF for `av1C`).

use super::boxes::{Boxed, Bytes, missing, value_at};
use crate::error::{DecodeError, Feature};
use crate::orientation::Orientation;

/// The properties of an item that are read here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Properties<'a> {
    pub(super) size: Option<Size>,
    pub(super) configuration: Option<Configuration>,
    pub(super) color: Option<Nclx>,
    rotation: Option<u8>,
    mirror: Option<u8>,
    /// The kind of an auxiliary image: a text up to its zero byte.
    auxiliary: Option<&'a [u8]>,
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

/// The parts of `av1C` that describe samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) bit_depth: u8,
    pub(super) is_monochrome: bool,
}

/// Colours by the code points of ITU-T H.273.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nclx {
    pub(super) primaries: u16,
    pub(super) matrix: u16,
    pub(super) full_range: bool,
}

impl<'a> Properties<'a> {
    /// Adds a property. One that is essential and not known here makes the item unreadable.
    pub(super) fn add(
        &mut self,
        property: &Boxed<'a>,
        is_essential: bool,
    ) -> Result<(), DecodeError> {
        let mut contents = property.contents;
        match &property.kind {
            b"ispe" => self.size = Some(Size::parse(contents)?),
            b"av1C" => self.configuration = Some(Configuration::parse(contents)?),
            b"colr" => self.color = Nclx::parse(contents)?.or(self.color),
            b"irot" => self.rotation = Some(contents.u8()? & 3),
            b"imir" => self.mirror = Some(contents.u8()? & 1),
            b"auxC" => {
                contents.version()?;
                // Not searched for its end, as many items may have this property.
                self.auxiliary = Some(contents.data);
            }
            // All layers, of which the decoder shows the last.
            b"a1op" if contents.u8()? == 0 => {}
            b"lsel" if contents.u16()? == u16::MAX => {}
            b"a1op" | b"lsel" => return Err(Feature::AvifProperty(property.kind).into()),
            // Without effect on Pillow's pixels, which are not cropped to the clean aperture.
            b"clap" | b"pasp" | b"pixi" | b"a1lx" | b"clli" | b"mdcv" | b"cclv" | b"amve" => {}
            _ if is_essential => return Err(Feature::AvifProperty(property.kind).into()),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn size(&self) -> Result<Size, DecodeError> {
        self.size.ok_or_else(|| missing("the size of an image item (ispe)"))
    }

    pub(super) fn configuration(&self) -> Result<Configuration, DecodeError> {
        self.configuration.ok_or_else(|| missing("the AV1 configuration of an image item (av1C)"))
    }

    pub(super) fn is_alpha(&self) -> bool {
        const ALPHA: [&[u8]; 2] = [
            b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
            // That of HEVC, which early writers used.
            b"urn:mpeg:hevc:2015:auxid:1",
        ];
        let is = |text: &[u8], kind| matches!(text.strip_prefix(kind), Some([] | [0, ..]));
        self.auxiliary.is_some_and(|text| ALPHA.iter().any(|kind| is(text, *kind)))
    }

    /// The orientation that Pillow derives from rotation (anticlockwise quarters) and then mirroring
    /// (0 top to bottom, 1 left to right).
    pub(super) fn orientation(&self) -> Orientation {
        match (self.rotation.unwrap_or(0), self.mirror) {
            (1, None) => Orientation::Rotate270,
            (1, Some(0)) | (3, Some(1..)) => Orientation::Transpose,
            (1, Some(_)) | (3, Some(0)) => Orientation::Transverse,
            (2, None) => Orientation::Rotate180,
            (3, None) => Orientation::Rotate90,
            (2, Some(0)) | (0 | 4.., Some(1..)) => Orientation::MirrorHorizontal,
            (2, Some(_)) | (0 | 4.., Some(0)) => Orientation::MirrorVertical,
            (0 | 4.., None) => Orientation::Upright,
        }
    }
}

impl Size {
    fn parse(mut contents: Bytes<'_>) -> Result<Self, DecodeError> {
        contents.version()?;
        let at = contents.at;
        let size = Self { width: contents.u32()?, height: contents.u32()? };
        if size.width == 0 || size.height == 0 {
            return Err(value_at("width or height", 0, at));
        }
        Ok(size)
    }
}

impl Configuration {
    fn parse(mut contents: Bytes<'_>) -> Result<Self, DecodeError> {
        const HIGH_BIT_DEPTH: u8 = 0x40;
        const TWELVE_BITS: u8 = 0x20;
        const MONOCHROME: u8 = 0x10;
        let at = contents.at;
        let [marker, _profile, flags, _delay] = contents.take()?;
        if marker != 0x81 {
            return Err(value_at("marker and version of the AV1 configuration", marker.into(), at));
        }
        let bit_depth = match (flags & HIGH_BIT_DEPTH != 0, flags & TWELVE_BITS != 0) {
            (true, true) => 12,
            (true, false) => 10,
            (false, _) => 8,
        };
        Ok(Self { bit_depth, is_monochrome: flags & MONOCHROME != 0 })
    }
}

impl Nclx {
    /// Colours by code points; `None` for a profile, which pixels do not depend on.
    fn parse(mut contents: Bytes<'_>) -> Result<Option<Self>, DecodeError> {
        const FULL_RANGE: u8 = 0x80;
        if contents.take()? != *b"nclx" {
            return Ok(None);
        }
        let primaries = contents.u16()?;
        let _transfer = contents.u16()?;
        let matrix = contents.u16()?;
        Ok(Some(Self { primaries, matrix, full_range: contents.u8()? & FULL_RANGE != 0 }))
    }
}
