//! Every level against the scalar one, at all lengths and offsets.

use crate::noise;
use tl_simd::Level;
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};

/// Four times the most bytes of a vector, and one.
const LONGEST: u32 = 4 * 64 + 1;

fn rows(resampler: &mut Resampler, level: Level, image: ImageView<'_>, resize: &Resize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut expected = 0;
    resampler.run(level, image, resize, |y, row| {
        assert_eq!(y, expected, "rows come in order");
        expected += 1;
        out.extend_from_slice(row);
    });
    assert_eq!(expected, resize.window.height, "every row comes");
    out
}

/// Compares all levels on a part of an image that begins `offset` bytes into its buffer.
fn check(pixels: &[u8], offset: usize, channels: usize, size: (u32, u32), resize: &Resize) {
    let (width, height) = size;
    let row_bytes = width as usize * channels + offset;
    let image = ImageView::new(&pixels[offset..], width, height, row_bytes, channels);
    let expected = rows(&mut Resampler::new(), Level::Scalar, image, resize);
    for level in Level::available() {
        let found = rows(&mut Resampler::new(), level, image, resize);
        assert!(found == expected, "{level} {size:?} offset {offset} {channels} {resize:?}");
    }
}

#[test]
fn levels_agree_at_every_width_and_offset() {
    let pixels = noise(300 * 4 * 12 + 100, 5);
    for width in 1..=LONGEST {
        let offset = width as usize % 9;
        let channels = [1, 3, 4][width as usize % 3];
        for (resized, filter) in [
            ((width * 2 / 5 + 1, 4), Filter::Bilinear),
            ((width / 9 + 1, 5), Filter::Lanczos),
            ((width * 3 / 2 + 1, 13), Filter::Bicubic),
            ((width, 3), Filter::Box),
        ] {
            let region = Rect { x: 0, y: 1, width, height: 8 };
            let window = Rect::of_size(resized.0, resized.1);
            let resize = Resize { region, resized, window, filter };
            check(&pixels, offset, channels, (width, 9), &resize);
        }
    }
}

#[test]
fn levels_agree_at_every_window_and_region() {
    let pixels = noise(120 * 4 * 30, 6);
    for offset in 0..=8_u32 {
        for length in 1..=70 {
            let region = Rect { x: offset, y: 2, width: 100, height: 20 };
            let window = Rect { x: offset, y: 1, width: length, height: 5 };
            for channels in [1, 3, 4] {
                let resize = Resize { region, resized: (80, 7), window, filter: Filter::Bilinear };
                check(&pixels, offset as usize, channels, (110, 25), &resize);
            }
        }
    }
}

#[test]
fn a_resampler_keeps_nothing_of_the_image_before() {
    let pixels = noise(200 * 200 * 3, 7);
    let mut reused = Resampler::new();
    for index in 0..200_u32 {
        let (width, height) = (1 + index * 37 % 190, 1 + index * 53 % 190);
        let region = Rect { x: index % 7, y: index % 5, width, height };
        let resized = (1 + index * 29 % 120, 1 + index * 31 % 120);
        let window = Rect::of_size(resized.0, resized.1);
        let filter = [Filter::Bilinear, Filter::Nearest, Filter::Lanczos][index as usize % 3];
        let resize = Resize { region, resized, window, filter };
        let image = ImageView::packed(&pixels, 200, 200, 3);
        let level = Level::available().nth(index as usize % 3).unwrap_or(Level::Scalar);
        let expected = rows(&mut Resampler::new(), Level::Scalar, image, &resize);
        assert!(rows(&mut reused, level, image, &resize) == expected, "{index} {resize:?}");
    }
}

#[test]
fn an_empty_window_has_no_rows() {
    let image = ImageView::packed(&[1, 2, 3], 1, 1, 3);
    let resize = Resize {
        region: Rect::of_size(1, 1),
        resized: (5, 0),
        window: Rect::default(),
        filter: Filter::Bilinear,
    };
    assert_eq!(rows(&mut Resampler::new(), Level::detect(), image, &resize), []);
}
