//! The pixels that the codec makes, as pixels of the image.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_jpeg2000::{ComponentData, DecodeSettings, DecoderContext};

use super::File;
use super::codestream::Header;
use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::{Image, PixelType};
use crate::options::DecodeOptions;
use crate::orientation::Orientation;
use crate::pixel::Layout;
use crate::wide::StoredPixel;

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let file = File::parse(bytes)?;
    let header = Header::parse_all(file.stream)?;
    let size = (header.width, header.height);
    let is_wide = header.bit_depth > 8 && options.pixels != PixelType::U8;
    let pixels = if is_wide { options.pixels } else { PixelType::U8 };
    let channels = options.color.channels();
    let pixel_bytes = usize::from(channels) * pixels.bytes();
    options.limits.charge_image(size.0, size.1, pixel_bytes.to_le_bytes()[0])?;
    options.limits.charge_working(header.working_bytes(file.palette_columns))?;

    // The crate is young, and its panics are errors of the file that caused them.
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
        let source = hayro_jpeg2000::Image::new(bytes, &settings).map_err(codec)?;
        if (source.width(), source.height()) != size {
            let what = "width or height (the codec reads another one)";
            let found = source.width().into();
            return Err(Defect::Value { format: Format::Jpeg2000, what, found }.into());
        }
        let mut context = DecoderContext::default();
        let decoded = source.decode(&mut context).map_err(codec)?;
        image.reset_wide(size, channels, pixels, &options.limits)?;
        let planes = Planes { components: decoded.components(), is_cmyk: file.is_cmyk };
        planes.convert(options, &file.info(&header), scratch, image)
    }));
    let panicked = || Defect::from(CodecError::of_panic(Format::Jpeg2000)).into();
    decoded.unwrap_or_else(|_| Err(panicked()))?;
    Ok(Orientation::Upright)
}

/// Decoded samples.
struct Planes<'a> {
    components: &'a [ComponentData],
    is_cmyk: bool,
}

impl Planes<'_> {
    fn convert(
        &self,
        options: &DecodeOptions,
        info: &crate::image::ImageInfo,
        scratch: &mut Vec<u8>,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let layout = match (self.components.len(), self.is_cmyk) {
            (1, _) => Layout::Grey,
            (2, _) => Layout::GreyAlpha,
            (3, _) => Layout::Rgb,
            (4, false) => Layout::Rgba,
            (4, true) => Layout::Cmyk,
            (other, _) => {
                let count = u16::try_from(other).unwrap_or(u16::MAX);
                return Err(Feature::Jpeg2000Components(count).into());
            }
        };
        let count = self.components.len();
        let width = image.width as usize;
        let stored = StoredPixel {
            samples: count,
            colors: if count >= 3 { 3 } else { 1 },
            alpha: matches!(layout, Layout::GreyAlpha | Layout::Rgba),
            opaque: max_of(&self.components[0]),
            transparent: None,
        };
        let pixels = image.pixels;
        if pixels != PixelType::U8 {
            stored.require(info, options.color)?;
        }
        scratch.clear();
        scratch.resize(width * count, 0);
        for y in 0..image.height as usize {
            let row = image.row_mut(y);
            let samples = (y * width..(y + 1) * width)
                .flat_map(|pixel| self.components.iter().map(move |plane| rounded(plane, pixel)));
            match pixels {
                PixelType::U8 => {
                    for (place, plane) in self.components.iter().enumerate() {
                        let to = scratch.iter_mut().skip(place).step_by(count);
                        for (x, to) in to.enumerate() {
                            *to = in_eight_bits(plane, y * width + x);
                        }
                    }
                    layout.convert(scratch, row, options.color);
                }
                PixelType::U16 => stored.convert(samples, options.color, row),
                PixelType::F32 => {
                    let samples = samples.map(f32::from);
                    stored.map(f32::from).convert(samples, options.color, row);
                }
            }
        }
        Ok(())
    }
}

/// The largest sample of a plane of up to 16 bits.
fn max_of(plane: &ComponentData) -> u16 {
    u16::MAX >> 16u32.saturating_sub(plane.bit_depth().into()).min(15)
}

/// A sample as a number of the file.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 65 535")]
fn rounded(plane: &ComponentData, pixel: usize) -> u16 {
    let sample = plane.samples().get(pixel).copied().unwrap_or_default();
    sample.round_ties_even().clamp(0.0, max_of(plane).into()) as u16
}

/// A sample in 8 bits as Pillow makes them: bits are dropped or zeros appended.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "32 bits at most")]
fn in_eight_bits(plane: &ComponentData, pixel: usize) -> u8 {
    let sample = plane.samples().get(pixel).copied().unwrap_or_default();
    let bits = u32::from(plane.bit_depth()).clamp(1, 32);
    let max = u32::MAX >> (32 - bits);
    let number = (sample.round_ties_even().max(0.0) as u32).min(max);
    // To the top, of which the first byte is kept.
    (number << (32 - bits)).to_be_bytes()[0]
}

fn codec(error: hayro_jpeg2000::DecodeError) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}
