//! The options of decoding.

use crate::image::PixelType;
use crate::jpeg::OnDamaged;
use crate::limits::Limits;

/// The channels to decode to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Color {
    /// Red, green, blue: Pillow's `convert("RGB")`.
    #[default]
    Rgb,
    /// Grey: Pillow's `convert("L")`.
    Grey,
    /// Red, green, blue and alpha, which is opaque where a file has none: Pillow's `convert("RGBA")`.
    Rgba,
}

impl Color {
    /// Samples per pixel.
    pub fn channels(self) -> u8 {
        match self {
            Self::Rgb => 3,
            Self::Grey => 1,
            Self::Rgba => 4,
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
    /// The channels to decode to.
    pub color: Color,
    /// The type of the samples to decode to. Samples of 8 bits are those of Pillow. Wider ones are the
    /// stored numbers, none of them scaled: samples of 9 to 16 bits as 16 bits, and those of up to 16
    /// bits and floats as floats. Files with other samples are refused.
    pub pixels: PixelType,
    /// The treatment of the orientation.
    pub exif: Exif,
    /// The treatment of damaged JPEG data; damage in other formats is always an error.
    /// [`Decoder::damage`](crate::Decoder::damage) reports damage that was tolerated.
    pub on_damaged: OnDamaged,
    /// The limits of one image.
    pub limits: Limits,
}
