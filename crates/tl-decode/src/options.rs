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

/// How a [`Decoder`](crate::Decoder) decodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeOptions {
    /// The pixels to decode to.
    pub color: Color,
    /// What to do with the orientation.
    pub exif: Exif,
    /// What to do with damaged JPEG data; damage in other formats is always an error. What is kept
    /// in spite of damage, [`Decoder::damage`](crate::Decoder::damage) says.
    pub on_damaged: OnDamaged,
    /// What one image may cost.
    pub limits: Limits,
}
