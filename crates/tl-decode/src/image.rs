//! The decoded image and the description of an encoded one.

use std::fmt;

use crate::error::DecodeError;
use crate::format::Format;
use crate::limits::Limits;
use crate::options::Color;
use crate::orientation::Orientation;
use crate::pixel::luma;

use tl_simd::resample::Rect;

pub use tl_simd::normalize::PixelType;

/// Decoded pixels: rows from top to bottom without padding, `channels` samples per pixel.
///
/// [`Decoder::decode_into`](crate::Decoder::decode_into) keeps the capacity of `data`, so one
/// `Image` per worker needs no allocation once it has held the largest image.
/// After an error the contents are unspecified.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// 3 for RGB, 1 for grey, 4 for RGBA.
    pub channels: u8,
    /// The type of the samples.
    pub pixels: PixelType,
    /// `width * height * channels` samples, in the machine's byte order.
    pub data: Vec<u8>,
}

impl Image {
    /// An image of no pixels, to decode into.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes in one row.
    pub fn row_bytes(&self) -> usize {
        self.width as usize * self.pixel_bytes()
    }

    /// Bytes of one pixel.
    pub fn pixel_bytes(&self) -> usize {
        usize::from(self.channels) * self.pixels.bytes()
    }

    /// Converts 8-bit RGB to grey, as Pillow's `convert("L")` does; other images stay.
    pub fn make_grey(&mut self) {
        if self.channels != 3 || self.pixels != PixelType::U8 {
            return;
        }
        let pixels = self.data.len() / 3;
        for pixel in 0..pixels {
            let start = 3 * pixel;
            let rgb = [self.data[start], self.data[start + 1], self.data[start + 2]];
            self.data[pixel] = luma(rgb);
        }
        self.data.truncate(pixels);
        self.channels = 1;
    }

    /// Takes on a size that `limits` allows, with samples of 8 bits; the contents are unspecified.
    pub(crate) fn reset(
        &mut self,
        size: (u32, u32),
        channels: u8,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        self.reset_wide(size, channels, PixelType::U8, limits)
    }

    /// Takes on a size that `limits` allows, with samples of any type; the contents are unspecified.
    pub(crate) fn reset_wide(
        &mut self,
        size: (u32, u32),
        channels: u8,
        pixels: PixelType,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        let (width, height) = size;
        let pixel_bytes = usize::from(channels) * pixels.bytes();
        limits.charge_image(width, height, pixel_bytes.to_le_bytes()[0])?;
        (self.width, self.height, self.channels) = (width, height, channels);
        self.pixels = pixels;
        let bytes = self.row_bytes() * height as usize;
        if bytes > self.data.capacity() {
            // The contents are not kept, so growing must not copy them.
            self.data.clear();
            self.data.reserve_exact(bytes);
        }
        self.data.resize(bytes, 0);
        Ok(())
    }

    /// Keeps the pixels of `region`, which lies in the image.
    pub(crate) fn crop(&mut self, region: Rect) {
        let row_bytes = self.row_bytes();
        let pixel_bytes = self.pixel_bytes();
        let kept = region.width as usize * pixel_bytes;
        for y in 0..region.height as usize {
            let from = (region.y as usize + y) * row_bytes + region.x as usize * pixel_bytes;
            self.data.copy_within(from..from + kept, y * kept);
        }
        (self.width, self.height) = (region.width, region.height);
        self.data.truncate(kept * region.height as usize);
    }

    /// Row `y`, to be written.
    pub(crate) fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let row_bytes = self.row_bytes();
        &mut self.data[y * row_bytes..(y + 1) * row_bytes]
    }
}

impl fmt::Debug for Image {
    /// Shows the size; the pixels would fill screens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("width", &self.width)
            .field("height", &self.height)
            .field("channels", &self.channels)
            .field("pixels", &self.pixels)
            .finish_non_exhaustive()
    }
}

/// The description of an encoded image, from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// The file format.
    pub format: Format,
    /// Pixels in a row, before `orientation` is applied.
    pub width: u32,
    /// Rows, before `orientation` is applied.
    pub height: u32,
    /// Channels as stored: 1 for grey and palette images, 2 with alpha, 3, 4 for RGBA and CMYK.
    pub channels: u8,
    /// Bits of one stored sample; of a palette index in a palette image.
    pub bit_depth: u8,
    /// The number type of the stored samples.
    pub sample_format: SampleFormat,
    /// Whether pixels have transparency: an alpha channel, or a tRNS chunk in a PNG file.
    pub has_alpha: bool,
    /// The turn that makes decoded pixels upright. TIFF images are decoded upright, as Pillow does,
    /// so theirs is always [`Orientation::Upright`].
    pub orientation: Orientation,
}

/// The number type of stored samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SampleFormat {
    /// Unsigned integers.
    #[default]
    Unsigned,
    /// Signed integers.
    Signed,
    /// Floating-point numbers.
    Float,
}

/// The properties of a stored image that its decoded pixels do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Reductions {
    /// Samples of more than 8 bits become 8 bits.
    pub bit_depth: bool,
    /// Signed or floating-point samples become unsigned integers.
    pub sample_format: bool,
    /// Transparency is dropped.
    pub alpha: bool,
    /// One channel becomes three, equal ones unless the file has a palette.
    pub one_channel: bool,
}

impl Reductions {
    /// Whether decoding keeps all properties of the stored image.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl ImageInfo {
    /// The properties that decoding to pixels of this colour and type does not keep.
    ///
    /// ```
    /// use tl_decode::{Color, PixelType, probe};
    ///
    /// let info = probe(include_bytes!("../testdata/png/grey16.png"))?;
    /// let reductions = info.reductions(Color::Grey, PixelType::U8);
    /// assert!(reductions.bit_depth && !reductions.one_channel);
    /// # Ok::<(), tl_decode::DecodeError>(())
    /// ```
    pub fn reductions(&self, color: Color, pixels: PixelType) -> Reductions {
        // Wider pixels are refused where they cannot hold the stored numbers.
        let bytes = pixels == PixelType::U8;
        Reductions {
            bit_depth: bytes && self.bit_depth > 8,
            sample_format: bytes && self.sample_format != SampleFormat::Unsigned,
            alpha: color != Color::Rgba && self.has_alpha,
            one_channel: color != Color::Grey && self.channels <= 2,
        }
    }

    /// Width and height after turning by the orientation.
    pub fn upright_size(&self) -> (u32, u32) {
        self.orientation.shown_size((self.width, self.height))
    }
}
