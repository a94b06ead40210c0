//! Masks: the numbers of a PNG file, without palette or scale.

use png::{ColorType, Transformations};
use tl_decode::{
    DecodeError, DecodeOptions, Decoder, Exif, Feature, Format, Image, Limit, Limits, PixelType,
    probe,
};

use crate::manifest::entries;

/// The samples by way of the library's own handling of rows and interlacing.
fn expected(bytes: &[u8]) -> Image {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(Transformations::IDENTITY);
    let mut reader = decoder.read_info().expect("a header");
    let mut packed = vec![0; reader.output_buffer_size().expect("a small image")];
    let frame = reader.next_frame(&mut packed).expect("pixels");
    let depth = frame.bit_depth as usize;
    assert!(matches!(frame.color_type, ColorType::Indexed | ColorType::Grayscale));
    let sample = |x: usize, row: &[u8]| {
        let bits: u32 = (0..depth).fold(0, |bits, bit| {
            let at = x * depth + bit;
            bits << 1 | u32::from(row[at / 8] >> (7 - at % 8) & 1)
        });
        bits.to_le_bytes()
    };
    let rows = packed.chunks_exact(frame.line_size);
    let samples = rows.flat_map(|row| (0..frame.width as usize).map(move |x| sample(x, row)));
    let data = samples.flat_map(|[low, high, ..]| match depth {
        16 => u16::from_le_bytes([low, high]).to_ne_bytes().to_vec(),
        _ => vec![low],
    });
    let pixels = if depth == 16 { PixelType::U16 } else { PixelType::U8 };
    let data = data.collect();
    Image { width: frame.width, height: frame.height, channels: 1, pixels, data }
}

#[test]
fn a_mask_has_the_numbers_of_the_file() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    let (mut image, mut depths) = (Image::new(), Vec::new());
    for entry in entries() {
        let bytes = entry.bytes();
        let Ok(info) = probe(&bytes) else { continue };
        let result = decoder.decode_mask_into(&bytes, &mut image);
        if info.format == Format::Png && info.channels == 1 {
            if decoder.decode_into(&bytes, &mut Image::new()).is_err() {
                assert!(result.is_err(), "{}", entry.file());
                continue;
            }
            assert!(result.is_ok() && image == expected(&bytes), "{}", entry.file());
            depths.push(info.bit_depth);
        } else {
            let is_refused = matches!(result, Err(DecodeError::Unsupported(Feature::Mask { .. })));
            assert!(is_refused, "{}", entry.file());
        }
    }
    depths.sort_unstable();
    depths.dedup();
    assert_eq!(depths, [1, 2, 4, 8, 16]);
}

#[test]
fn masks_are_charged_to_the_limits() {
    let entry = entries().into_iter().find(|entry| entry.file() == "png/palette4.png").unwrap();
    let limits = Limits { max_pixels: 10, ..Limits::default() };
    let options = DecodeOptions { limits, exif: Exif::Ignore, ..DecodeOptions::default() };
    let error = Decoder::new(options).decode_mask_into(&entry.bytes(), &mut Image::new());
    assert!(matches!(error, Err(DecodeError::LimitExceeded { limit: Limit::Pixels, .. })));
}
