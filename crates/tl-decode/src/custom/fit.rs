//! The channels and pixels that a recipe takes, of those that a caller's decoder has made.

use super::{CustomFault, ImageForm};
use crate::image::{Image, PixelType};
use crate::limits::Limits;
use crate::options::{Color, DecodeOptions};
use crate::wide;

/// Converts an image that was checked to the channels and pixels of `options`.
pub(super) fn fit(image: &mut Image, options: &DecodeOptions) -> Result<(), CustomFault> {
    let DecodeOptions { color, pixels, limits, .. } = options;
    let form = ImageForm::of(image);
    let refused = || Err(CustomFault::Pixels { form, color: *color, pixels: *pixels });
    let is_bytes = image.pixels == PixelType::U8;
    match (image.channels, color) {
        (1, Color::Grey) | (3, Color::Rgb) | (4, Color::Rgba) => {}
        (4, Color::Rgb) => drop_alpha(image),
        (1, Color::Rgb) => spread(image, limits)?,
        (3, Color::Rgba) if is_bytes => wide::add_alpha(image, limits)?,
        (1, Color::Rgba) if is_bytes => {
            spread(image, limits)?;
            wide::add_alpha(image, limits)?;
        }
        (3, Color::Grey) if is_bytes => image.make_grey(),
        (4, Color::Grey) if is_bytes => {
            drop_alpha(image);
            image.make_grey();
        }
        // More than one formula makes grey of wider colours, and nothing says what is opaque.
        _ => return refused(),
    }
    match (image.pixels, pixels) {
        (PixelType::U8, PixelType::U8)
        | (PixelType::U16, PixelType::U16)
        | (PixelType::F32, PixelType::F32) => Ok(()),
        (PixelType::U8, PixelType::F32) => Ok(wide::widen(image, limits)?),
        (PixelType::U16, PixelType::F32) => floats(image, limits),
        // Numbers would have to be scaled or rounded.
        (PixelType::U8 | PixelType::F32, PixelType::U16)
        | (PixelType::U16 | PixelType::F32, PixelType::U8) => refused(),
    }
}

/// Makes RGB of RGBA.
fn drop_alpha(image: &mut Image) {
    let kept = 3 * image.pixels.bytes();
    let pixel = image.pixel_bytes();
    let count = image.data.len() / pixel;
    for number in 0..count {
        image.data.copy_within(number * pixel..number * pixel + kept, number * kept);
    }
    image.data.truncate(count * kept);
    image.channels = 3;
}

/// Makes three equal channels of one.
fn spread(image: &mut Image, limits: &Limits) -> Result<(), CustomFault> {
    let bytes = image.pixels.bytes();
    let count = image.data.len() / bytes;
    let form = ImageForm { channels: 3, ..ImageForm::of(image) };
    form.charge(limits)?;
    image.data.resize(3 * count * bytes, 0);
    for number in (0..count).rev() {
        for channel in (0..3).rev() {
            let to = (3 * number + channel) * bytes;
            image.data.copy_within(number * bytes..(number + 1) * bytes, to);
        }
    }
    image.channels = 3;
    Ok(())
}

/// Makes floats of samples of 16 bits.
fn floats(image: &mut Image, limits: &Limits) -> Result<(), CustomFault> {
    let form = ImageForm { pixels: PixelType::F32, ..ImageForm::of(image) };
    form.charge(limits)?;
    let count = image.data.len() / 2;
    image.data.resize(4 * count, 0);
    for number in (0..count).rev() {
        let at = 2 * number;
        let value = f32::from(u16::from_ne_bytes([image.data[at], image.data[at + 1]]));
        image.data[4 * number..][..4].copy_from_slice(&value.to_ne_bytes());
    }
    image.pixels = PixelType::F32;
    Ok(())
}
