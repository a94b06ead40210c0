//! The facts that a header states, without decoding.

use tl_decode::{Color, PixelType, Reductions, SampleFormat, probe};

use crate::manifest::entries;

fn check(file: &str, color: Color, expected: impl Fn(&mut Reductions)) {
    let entry = entries().into_iter().find(|entry| entry.file() == file).expect(file);
    let info = probe(&entry.bytes()).expect(file);
    let mut reductions = Reductions::default();
    expected(&mut reductions);
    assert_eq!(info.reductions(color, PixelType::U8), reductions, "{file}: {info:?}");
}

#[test]
fn reductions_name_what_pixels_do_not_keep() {
    let rgb = Color::Rgb;
    for file in ["jpeg/420.jpg", "png/rgb8.png", "webp/lossy.webp", "bmp/rgb24.bmp"] {
        check(file, rgb, |_| {});
    }
    for file in ["jpeg/cmyk.jpg", "bmp/rgb16_565.bmp", "bmp/rgb32.bmp", "tiff/cmyk8.tif"] {
        check(file, rgb, |_| {});
    }
    for file in ["png/rgb16.png", "tiff/rgb16_planar_tiles.tif"] {
        check(file, rgb, |reductions| reductions.bit_depth = true);
    }
    for file in ["png/rgba8.png", "png/rgb8_trns.png", "webp/lossy_alpha.webp"] {
        check(file, rgb, |reductions| reductions.alpha = true);
    }
    for file in ["webp/lossless_alpha.webp", "tiff/rgba8.tif", "tiff/premultiplied.tif"] {
        check(file, rgb, |reductions| reductions.alpha = true);
    }
    for file in ["jpeg/grey.jpg", "png/grey1.png", "png/palette4.png", "bmp/palette8.bmp"] {
        check(file, rgb, |reductions| reductions.one_channel = true);
        check(file, Color::Grey, |_| {});
    }
    check("png/grey_alpha8.png", rgb, |reductions| {
        (reductions.alpha, reductions.one_channel) = (true, true);
    });
    for file in ["tiff/float32_predictor.tif", "tiff/int16.tif"] {
        check(file, Color::Grey, |reductions| {
            (reductions.bit_depth, reductions.sample_format) = (true, true);
        });
    }
}

#[test]
fn sample_formats_are_those_of_the_file() {
    for (file, expected) in [
        ("tiff/float32_predictor.tif", SampleFormat::Float),
        ("tiff/int16.tif", SampleFormat::Signed),
        ("tiff/grey16.tif", SampleFormat::Unsigned),
    ] {
        let entry = entries().into_iter().find(|entry| entry.file() == file).expect(file);
        assert_eq!(probe(&entry.bytes()).expect(file).sample_format, expected, "{file}");
    }
}
