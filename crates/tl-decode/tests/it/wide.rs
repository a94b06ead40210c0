//! Samples of 16 bits and floats, and alpha: what the files of `testdata/wide` were made of.

use tl_decode::{
    Color, DecodeError, DecodeOptions, Decoder, Exif, Image, Limit, Limits, PixelType, probe,
};

use crate::manifest::{Entry, entries_of, folder, sha256};

const COLORS: [(&str, Color); 3] =
    [("grey", Color::Grey), ("rgb", Color::Rgb), ("rgba", Color::Rgba)];
const TYPES: [(&str, PixelType); 3] =
    [("u8", PixelType::U8), ("u16", PixelType::U16), ("f32", PixelType::F32)];

fn wide_entries() -> Vec<Entry> {
    entries_of(&folder().join("wide"))
}

fn bytes(entry: &Entry) -> Vec<u8> {
    std::fs::read(folder().join("wide").join(entry.file()))
        .expect("the file is next to the manifest")
}

fn forms() -> impl Iterator<Item = (String, Color, PixelType)> {
    let forms = COLORS.into_iter().flat_map(|color| TYPES.map(|pixels| (color, pixels)));
    forms.map(|((color_name, color), (type_name, pixels))| {
        (format!("{color_name}_{type_name}"), color, pixels)
    })
}

fn decode(bytes: &[u8], options: DecodeOptions) -> Result<Image, DecodeError> {
    let mut image = Image::new();
    Decoder::new(options).decode_into(bytes, &mut image).map(|()| image)
}

#[test]
fn wide_samples_are_the_numbers_that_files_store() {
    let mut count = 0;
    for entry in wide_entries() {
        let bytes = bytes(&entry);
        for (name, color, pixels) in forms() {
            let Some(expected) = entry.get(&name) else { continue };
            let options = DecodeOptions { color, pixels, ..DecodeOptions::default() };
            let file = entry.file();
            count += 1;
            match decode(&bytes, options) {
                Ok(image) => {
                    let size = (image.width * image.height) as usize;
                    let samples = size * usize::from(color.channels());
                    assert_eq!(image.data.len(), samples * pixels.bytes(), "{file} {name}");
                    assert_eq!((image.channels, image.pixels), (color.channels(), pixels));
                    assert_eq!(sha256(&image.data), expected, "{file} {name}");
                }
                Err(DecodeError::Unsupported(_)) => {
                    assert_eq!(expected, "Unsupported", "{file} {name}");
                }
                Err(error) => panic!("{file} {name}: {error}"),
            }
        }
    }
    assert!(count > 150, "{count} forms");
}

#[test]
fn jpeg_webp_and_bmp_become_floats_and_rgba_but_not_16_bits() {
    for entry in crate::manifest::entries() {
        let bytes = entry.bytes();
        let eight = probe(&bytes).is_ok_and(|info| info.bit_depth <= 8);
        let rgb = DecodeOptions::default();
        let Ok(image) = decode(&bytes, rgb) else { continue };
        let file = entry.file();
        if !eight {
            continue;
        }
        let floats = decode(&bytes, DecodeOptions { pixels: PixelType::F32, ..rgb }).expect(file);
        let values = floats.data.as_chunks().0.iter().map(|float| f32::from_ne_bytes(*float));
        assert!(values.eq(image.data.iter().map(|byte| f32::from(*byte))), "{file}");
        let rgba = decode(&bytes, DecodeOptions { color: Color::Rgba, ..rgb }).expect(file);
        let colors = rgba.data.as_chunks::<4>().0.iter().map(|[r, g, b, _]| [*r, *g, *b]);
        assert!(colors.eq(image.data.as_chunks::<3>().0.iter().copied()), "{file}");
        let words = decode(&bytes, DecodeOptions { pixels: PixelType::U16, ..rgb });
        let Err(error @ DecodeError::Unsupported(_)) = words else { panic!("{file}") };
        let error = error.to_string();
        assert!(
            error.ends_with("which are read as 8-bit or float pixels alone"),
            "{file}: {error}"
        );
    }
}

#[test]
fn wide_pixels_turn_upright() {
    let entry =
        crate::manifest::entries().into_iter().find(|e| e.file() == "png/exif6.png").unwrap();
    let bytes = entry.bytes();
    let options = DecodeOptions { exif: Exif::Apply, ..DecodeOptions::default() };
    let upright = decode(&bytes, options).unwrap();
    let floats = decode(&bytes, DecodeOptions { pixels: PixelType::F32, ..options }).unwrap();
    assert_eq!((floats.width, floats.height), (upright.width, upright.height));
    let values = floats.data.as_chunks().0.iter().map(|float| f32::from_ne_bytes(*float));
    assert!(values.eq(upright.data.iter().map(|byte| f32::from(*byte))));
}

#[test]
fn wide_pixels_are_charged_to_the_limits() {
    for entry in wide_entries() {
        let bytes = bytes(&entry);
        for (name, color, pixels) in forms() {
            let unlimited = DecodeOptions { color, pixels, ..DecodeOptions::default() };
            let Ok(image) = decode(&bytes, unlimited) else { continue };
            let max_decoded_bytes = image.data.len() as u64 - 1;
            let limits = Limits { max_decoded_bytes, ..Limits::default() };
            let result = decode(&bytes, DecodeOptions { limits, ..unlimited });
            let limit = Limit::DecodedBytes;
            assert!(
                matches!(result, Err(DecodeError::LimitExceeded { limit: l, .. }) if l == limit),
                "{} {name}",
                entry.file()
            );
        }
    }
}

#[test]
fn every_truncation_of_a_wide_file_is_an_error() {
    for entry in wide_entries() {
        let bytes = bytes(&entry);
        for (name, color, pixels) in forms() {
            let options = DecodeOptions { color, pixels, ..DecodeOptions::default() };
            let Ok(whole) = decode(&bytes, options) else { continue };
            for end in 0..bytes.len() {
                if let Ok(image) = decode(&bytes[..end], options) {
                    assert!(image == whole, "{} {name}: {end} bytes", entry.file());
                }
            }
        }
    }
}

#[test]
fn stomped_wide_files_never_panic() {
    for entry in wide_entries() {
        let bytes = bytes(&entry);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut stomped = bytes.clone();
                stomped[at] = value;
                let form = (at + usize::from(value)) % 9;
                let (_, color, pixels) = forms().nth(form).expect("nine forms");
                let limits = Limits { max_decoded_bytes: 1 << 24, ..Limits::default() };
                let options = DecodeOptions { color, pixels, limits, ..DecodeOptions::default() };
                if let Ok(image) = decode(&stomped, options) {
                    assert!(image.data.len() <= 1 << 24);
                }
            }
        }
    }
}
