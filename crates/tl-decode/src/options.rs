//! The options of decoding.

use crate::jpeg::OnDamaged;
use crate::limits::Limits;

/// The pixels to decode to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Color {
    /// Red, green, blue, 8 bits each: Pillow's `convert("RGB")`.
    #[default]
    Rgb8,
    /// Grey, 8 bits: Pillow's `convert("L")`.
    L8,
}

impl Color {
    /// Bytes per pixel.
    pub fn channels(self) -> u8 {
        match self {
            Self::Rgb8 => 3,
            Self::L8 => 1,
        }
    }
}

/// The treatment of the orientation in the EXIF block or the XMP packet of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exif {
    /// Decode the pixels as `Image.open` does: TIFF images upright, others as stored.
    #[default]
    Ignore,
    /// Turn the image upright, as `ImageOps.exif_transpose` does.
    Apply,
}

/// The options of a [`Decoder`](crate::Decoder).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeOptions {
    /// The pixels to decode to.
    pub color: Color,
    /// The treatment of the orientation.
    pub exif: Exif,
    /// The treatment of damaged JPEG data; damage in other formats is always an error.
    /// [`Decoder::damage`](crate::Decoder::damage) reports damage that was tolerated.
    pub on_damaged: OnDamaged,
    /// The limits of one image.
    pub limits: Limits,
}
