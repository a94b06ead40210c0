//! Pixels of 16 bits and of floats: the stored samples as they are, in the channels that are asked
//! for. No value is scaled.

use crate::error::{DecodeError, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo, PixelType, SampleFormat};
use crate::limits::Limits;
use crate::options::Color;

/// The most samples of a pixel that count: colours and alpha.
const MAX_SAMPLES: usize = 4;

/// The bytes that pixels of a wider type are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Pixels of 8 bits, whose samples become floats.
    Bytes,
    /// The stored samples.
    Stored,
}

impl Source {
    /// Refuses images whose samples `pixels` does not hold as they are.
    pub(crate) fn of(info: &ImageInfo, pixels: PixelType) -> Result<Self, DecodeError> {
        let ImageInfo { format, bit_depth, sample_format, .. } = *info;
        let Some(source) = Self::find(format, bit_depth, sample_format, pixels) else {
            let floats = Self::find(format, bit_depth, sample_format, PixelType::F32).is_some();
            let instead = if floats { "8-bit or float" } else { "8-bit" };
            let refused = Feature::Pixels { pixels, format, bit_depth, sample_format, instead };
            return Err(refused.into());
        };
        Ok(source)
    }

    fn find(
        format: Format,
        bit_depth: u8,
        sample_format: SampleFormat,
        pixels: PixelType,
    ) -> Option<Self> {
        let is_kept = match (pixels, sample_format) {
            (PixelType::U8, _) => true,
            (PixelType::U16, SampleFormat::Unsigned) => (9..=16).contains(&bit_depth),
            (PixelType::U16, SampleFormat::Signed | SampleFormat::Float) => false,
            (PixelType::F32, SampleFormat::Unsigned) => bit_depth <= 16,
            (PixelType::F32, SampleFormat::Signed) => bit_depth == 16,
            (PixelType::F32, SampleFormat::Float) => matches!(bit_depth, 32 | 64),
        };
        let is_bytes = bit_depth <= 8 || pixels == PixelType::U8;
        let is_read = is_kept && (is_bytes || has_wide_samples(format, sample_format));
        is_read.then_some(if is_bytes { Self::Bytes } else { Self::Stored })
    }
}

/// Whether decoders give the samples of a format that have more than 8 bits.
fn has_wide_samples(format: Format, sample_format: SampleFormat) -> bool {
    match format {
        Format::Png | Format::Tiff | Format::Pnm => true,
        Format::Jpeg2000 => sample_format == SampleFormat::Unsigned,
        Format::Jpeg
        | Format::WebP
        | Format::Bmp
        | Format::Qoi
        | Format::Gif
        | Format::Jxl
        | Format::Avif => false,
    }
}

/// A sample of the image.
pub(crate) trait Sample: Copy + PartialEq {
    const ZERO: Self;

    /// Its bytes in the image.
    const BYTES: usize = size_of::<Self>();

    fn write(self, out: &mut [u8]);
}

impl Sample for u16 {
    const ZERO: Self = 0;

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_ne_bytes());
    }
}

impl Sample for f32 {
    const ZERO: Self = 0.0;

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_ne_bytes());
    }
}

/// A sample of 16 bits, of which the image has the upper 8.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Halved(pub(crate) u16);

impl Sample for Halved {
    const ZERO: Self = Self(0);
    const BYTES: usize = 1;

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.to_be_bytes()[..1]);
    }
}

/// The samples of a stored pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredPixel<T> {
    /// Samples from one pixel to the next.
    pub(crate) samples: usize,
    /// Those of the colour, at the front: 1 or 3.
    pub(crate) colors: usize,
    /// Whether alpha follows.
    pub(crate) alpha: bool,
    /// The alpha of pixels that have none.
    pub(crate) opaque: T,
    /// The colour of transparent pixels.
    pub(crate) transparent: Option<[T; 3]>,
}

impl<T: Sample> StoredPixel<T> {
    /// The same pixel with each sample as another type.
    pub(crate) fn map<U>(&self, to: impl Fn(T) -> U) -> StoredPixel<U> {
        StoredPixel {
            samples: self.samples,
            colors: self.colors,
            alpha: self.alpha,
            opaque: to(self.opaque),
            transparent: self.transparent.map(|color| color.map(to)),
        }
    }

    /// Refuses colours where grey is asked for: more than one formula makes it.
    pub(crate) fn require(&self, info: &ImageInfo, color: Color) -> Result<(), DecodeError> {
        if self.colors == 3 && color == Color::Grey {
            let ImageInfo { format, bit_depth, .. } = *info;
            return Err(Feature::WideGrey { format, bit_depth }.into());
        }
        Ok(())
    }

    /// Converts a row of samples into a row of the image.
    pub(crate) fn convert(&self, mut row: impl Iterator<Item = T>, color: Color, out: &mut [u8]) {
        let size = T::BYTES;
        let mut pixel = [T::ZERO; MAX_SAMPLES];
        for out in out.chunks_exact_mut(usize::from(color.channels()) * size) {
            for (at, sample) in row.by_ref().take(self.samples).enumerate() {
                if let Some(to) = pixel.get_mut(at) {
                    *to = sample;
                }
            }
            for (channel, out) in out.chunks_exact_mut(size).enumerate() {
                let sample = match channel {
                    3 => self.alpha_of(&pixel),
                    _ => pixel[channel.min(self.colors - 1)],
                };
                sample.write(out);
            }
        }
    }

    fn alpha_of(&self, pixel: &[T]) -> T {
        if self.alpha {
            return pixel[self.colors];
        }
        let is_transparent =
            self.transparent.is_some_and(|color| pixel[..self.colors] == color[..self.colors]);
        if is_transparent { T::ZERO } else { self.opaque }
    }
}

/// Makes floats of samples of 8 bits.
pub(crate) fn widen(image: &mut Image, limits: &Limits) -> Result<(), DecodeError> {
    let size = size_of::<f32>();
    let bytes = u64::from(image.channels) * size as u64;
    limits.charge_image(image.width, image.height, bytes.to_le_bytes()[0])?;
    let samples = image.data.len();
    image.data.resize(samples * size, 0);
    for sample in (0..samples).rev() {
        let value = f32::from(image.data[sample]);
        image.data[sample * size..][..size].copy_from_slice(&value.to_ne_bytes());
    }
    image.pixels = PixelType::F32;
    Ok(())
}

/// Makes RGBA of 8-bit RGB, without transparency.
pub(crate) fn add_alpha(image: &mut Image, limits: &Limits) -> Result<(), DecodeError> {
    let channels = Color::Rgba.channels();
    limits.charge_image(image.width, image.height, channels)?;
    let pixels = image.data.len() / 3;
    image.data.resize(pixels * 4, 0);
    for pixel in (0..pixels).rev() {
        image.data.copy_within(pixel * 3..pixel * 3 + 3, pixel * 4);
        image.data[pixel * 4 + 3] = u8::MAX;
    }
    image.channels = channels;
    Ok(())
}
