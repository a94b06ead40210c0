//! Images as pictures to look at.

use std::borrow::Cow;

use tl_decode::{Image, PixelType};

use super::MAT;

/// Red, green and blue of an image, 8 bits each. Numbers of 16 bits and floats go from the least one
/// of the image, black, to its greatest, white; transparent pixels show the mat.
pub(super) fn shown(image: &Image) -> Cow<'_, [u8]> {
    let channels = usize::from(image.channels);
    if image.pixels == PixelType::U8 && channels == 3 {
        return Cow::Borrowed(&image.data);
    }
    let numbers: Vec<f32> = match image.pixels {
        PixelType::U8 => image.data.iter().map(|&sample| sample.into()).collect(),
        PixelType::U16 => {
            let words = image.data.as_chunks().0.iter();
            words.map(|word| u16::from_ne_bytes(*word).into()).collect()
        }
        PixelType::F32 => {
            image.data.as_chunks().0.iter().map(|float| f32::from_ne_bytes(*float)).collect()
        }
    };
    let colors = channels.min(3);
    let pixels = || numbers.chunks_exact(channels.max(1));
    let (least, most) = if image.pixels == PixelType::U8 {
        (0.0, 255.0)
    } else {
        range(pixels().flat_map(|pixel| &pixel[..colors]))
    };
    let (_, opaque) = range(pixels().filter_map(|pixel| pixel.get(3)));
    let shown = pixels().flat_map(|pixel| {
        let alpha = pixel.get(3).map_or(1.0, |alpha| alpha / opaque.max(f32::MIN_POSITIVE));
        let color = [0, 1, 2].map(|channel| pixel[channel.min(colors - 1)]);
        let color = color.map(|number| (number - least) / (most - least) * 255.0);
        let mat = MAT.map(f32::from);
        [0, 1, 2].map(|channel| byte(color[channel] * alpha + mat[channel] * (1.0 - alpha)))
    });
    Cow::Owned(shown.collect())
}

/// The least and the greatest of the numbers that are finite.
fn range<'a>(numbers: impl Iterator<Item = &'a f32>) -> (f32, f32) {
    numbers
        .filter(|number| number.is_finite())
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), &number| {
            (least.min(number), most.max(number))
        })
}

/// The nearest byte; 0 for what is not a number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn byte(value: f32) -> u8 {
    value.round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pixels: PixelType, channels: u8, data: Vec<u8>) -> Image {
        let width = u32::try_from(data.len() / pixels.bytes()).unwrap() / u32::from(channels);
        let mut image = Image::new();
        (image.width, image.height, image.channels) = (width, 1, channels);
        (image.pixels, image.data) = (pixels, data);
        image
    }

    #[test]
    fn numbers_go_from_black_to_white() {
        let depths = [1000_u16, 1500, 2000].map(u16::to_ne_bytes).concat();
        let found = shown(&image(PixelType::U16, 1, depths)).into_owned();
        assert_eq!(found, [0, 0, 0, 128, 128, 128, 255, 255, 255]);
        let floats = [f32::NAN, -1.0, 3.0, 0.0, f32::INFINITY, f32::NEG_INFINITY];
        let floats = floats.map(f32::to_ne_bytes).concat();
        let found = shown(&image(PixelType::F32, 3, floats)).into_owned();
        assert_eq!(found, [0, 0, 255, 64, 255, 0]);
        let flat = [7_u16; 2].map(u16::to_ne_bytes).concat();
        assert_eq!(*shown(&image(PixelType::U16, 1, flat)), [0; 6]);
    }

    #[test]
    fn transparent_pixels_show_the_mat() {
        let bytes = vec![10, 20, 30, 255, 10, 20, 30, 0, 1, 2, 3, 255];
        let found = shown(&image(PixelType::U8, 4, bytes)).into_owned();
        assert_eq!(found[..3], [10, 20, 30]);
        assert_eq!(found[3..6], MAT);
        assert_eq!(*shown(&image(PixelType::U8, 1, vec![9])), [9; 3]);
        let rgb = image(PixelType::U8, 3, vec![1, 2, 3]);
        assert!(matches!(shown(&rgb), Cow::Borrowed([1, 2, 3])));
    }
}
