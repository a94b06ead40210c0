//! One decoder and one image for many files.

use tl_decode::{Color, DecodeOptions, Decoder, Exif, Image};

use crate::manifest::{decode, entries};

#[test]
fn a_used_decoder_gives_what_a_new_one_gives() {
    for color in [Color::Rgb, Color::Grey] {
        for exif in [Exif::Ignore, Exif::Apply] {
            let options = DecodeOptions { color, exif, ..DecodeOptions::default() };
            let mut decoder = Decoder::new(options);
            let mut image = Image::new();
            // Twice, so that every file follows every kind of leftover.
            for entry in entries().iter().chain(entries().iter().rev()) {
                let (file, bytes) = (entry.file(), entry.bytes());
                if decoder.decode_into(&bytes, &mut image).is_ok() {
                    let fresh = decode(&bytes, color, exif).expect(file);
                    assert!(image == fresh, "{file} with {options:?}");
                }
            }
        }
    }
}

#[test]
fn the_memory_of_an_image_is_kept() {
    let entry = |name| entries().into_iter().find(|entry| entry.file() == name).expect(name);
    let mut image = Image { data: Vec::with_capacity(1 << 16), ..Image::new() };
    let memory = image.data.as_ptr();
    let mut decoder = Decoder::new(DecodeOptions::default());
    for name in ["png/rgb8.png", "png/palette4.png", "bmp/rgb24.bmp", "webp/lossy.webp"] {
        decoder.decode_into(&entry(name).bytes(), &mut image).expect(name);
        assert_eq!(image.data.as_ptr(), memory, "{name}");
    }
}
