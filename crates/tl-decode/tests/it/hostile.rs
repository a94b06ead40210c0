//! Damaged files: no panic, no damage passed over where the format can tell, one printable line.

use tl_decode::{Color, DecodeError, DecodeOptions, Decoder, Exif, Image, Limits, probe};

use crate::manifest::{Entry, decode, entries};

/// Damaged headers may claim any size; this keeps the test fast. Other tests cover the limits.
fn small_limits() -> DecodeOptions {
    let limits = Limits {
        max_pixels: 1 << 20,
        max_decoded_bytes: 4 << 20,
        max_working_bytes: 8 << 20,
        ..Limits::default()
    };
    DecodeOptions { limits, ..DecodeOptions::default() }
}

fn good_entries() -> impl Iterator<Item = Entry> {
    entries().into_iter().filter(|entry| entry.get("error").is_none())
}

fn require_printable(file: &str, error: &DecodeError) {
    let line = error.to_string();
    assert!(line.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{file}: {line:?}");
    assert!(line.len() < 300, "{file}: {line}");
}

/// Bytes after the last pixel, which a decoder can do without.
fn tail_without_pixels(file: &str) -> usize {
    match file {
        "jpeg/trailing.jpg" => 8,
        // The last end of line and the end-of-bitmap code, or the padding of the last row.
        _ if file.starts_with("bmp/rle") => 4,
        _ if file.starts_with("bmp/") => 3,
        // The last end of line, or a second image.
        _ if file.starts_with("pnm/plain") => 1,
        "pnm/two.pgm" => 286,
        _ => 0,
    }
}

#[test]
fn every_truncation_is_an_error() {
    let mut decoder = Decoder::new(small_limits());
    let mut image = Image::new();
    for entry in good_entries() {
        let (file, bytes) = (entry.file(), entry.bytes());
        let whole = decode(&bytes, Color::Rgb, Exif::Ignore).expect(file);
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).unwrap_or_default();
            match decoder.decode_into(cut, &mut image) {
                Err(error) => require_printable(file, &error),
                // The directory of a TIFF file may lie anywhere, and its pixels before it.
                Ok(()) if file.starts_with("tiff/") => {
                    assert!(image == whole, "{file} cut at {end}");
                }
                Ok(()) => {
                    assert!(end + tail_without_pixels(file) >= bytes.len(), "{file} cut at {end}");
                    assert!(image == whole, "{file} cut at {end}");
                }
            }
            if let Err(error) = probe(cut) {
                require_printable(file, &error);
            }
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    let mut decoder = Decoder::new(small_limits());
    let mut image = Image::new();
    for entry in entries() {
        let (file, mut bytes) = (entry.file().to_owned(), entry.bytes());
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80] {
                bytes[at] ^= mask;
                require_agreement(&file, &bytes, &mut decoder, &mut image);
                bytes[at] ^= mask;
            }
        }
    }
}

#[test]
fn stomped_integers_never_panic() {
    let mut decoder = Decoder::new(small_limits());
    let mut image = Image::new();
    for entry in entries() {
        let (file, bytes) = (entry.file().to_owned(), entry.bytes());
        for at in (0..bytes.len().min(240)).step_by(2) {
            for value in [0u32, 0x7FFF_FFFF, 0xFFFF_FFFE] {
                for size in [2, 4] {
                    let mut damaged = bytes.clone();
                    let Some(to) = damaged.get_mut(at..at + size) else { continue };
                    to.copy_from_slice(&value.to_le_bytes()[..size]);
                    require_agreement(&file, &damaged, &mut decoder, &mut image);
                }
            }
        }
    }
}

/// Checks that an image that can be decoded can be probed, and that errors are one line.
fn require_agreement(file: &str, bytes: &[u8], decoder: &mut Decoder, image: &mut Image) {
    let decoded = decoder.decode_into(bytes, image);
    let probed = probe(bytes);
    if let (Ok(()), Err(error)) = (&decoded, &probed) {
        panic!("{file} is decoded, but not probed: {error}");
    }
    for error in [decoded.err(), probed.err()].into_iter().flatten() {
        require_printable(file, &error);
    }
}

#[test]
fn flips_in_checksummed_png_data_are_found() {
    for entry in good_entries().filter(|entry| entry.file().starts_with("png/")) {
        let (file, mut bytes) = (entry.file().to_owned(), entry.bytes());
        let whole = decode(&bytes, Color::Rgb, Exif::Ignore).expect(&file);
        for at in 8..bytes.len() {
            bytes[at] ^= 0x04;
            if let Ok(image) = decode(&bytes, Color::Rgb, Exif::Ignore) {
                assert!(image == whole, "{file}: flip at {at} passed and changed the image");
            }
            bytes[at] ^= 0x04;
        }
    }
}
