//! Image decoders: the header and the pixels agree, and a decoder is not changed by a failure.

use tl_decode::{Color, DecodeOptions, Decoder, Exif, Format, Image, Limits, probe};

use crate::jpeg_file::jpeg_file;

/// Small enough that a run of the fuzzer is fast, large enough to reach every path.
pub(crate) fn limits() -> Limits {
    Limits {
        max_pixels: 1 << 16,
        max_decoded_bytes: 1 << 18,
        max_working_bytes: 8 << 20,
        jpeg_scans: 50,
        ..Limits::default()
    }
}

/// Decodes `data`, or the file that it describes, as JPEG.
pub fn decode_jpeg(data: &[u8]) {
    decode(Format::Jpeg, &jpeg_file(data));
}

/// Decodes `data` as PNG.
pub fn decode_png(data: &[u8]) {
    decode(Format::Png, data);
}

/// Decodes `data` as WebP.
pub fn decode_webp(data: &[u8]) {
    decode(Format::WebP, data);
}

/// Decodes `data` as BMP.
pub fn decode_bmp(data: &[u8]) {
    decode(Format::Bmp, data);
}

/// Decodes `data` as TIFF.
pub fn decode_tiff(data: &[u8]) {
    decode(Format::Tiff, data);
}

/// Decodes `data` as PNM.
pub fn decode_pnm(data: &[u8]) {
    decode(Format::Pnm, data);
}

/// Decodes `data` as QOI.
pub fn decode_qoi(data: &[u8]) {
    decode(Format::Qoi, data);
}

/// Decodes `data` as GIF.
pub fn decode_gif(data: &[u8]) {
    decode(Format::Gif, data);
}

/// Decodes `data` as JPEG 2000.
pub fn decode_jpeg2000(data: &[u8]) {
    decode(Format::Jpeg2000, data);
}

/// Decodes `data` as JPEG XL.
pub fn decode_jxl(data: &[u8]) {
    decode(Format::Jxl, data);
}

/// Decodes `data` as AVIF.
pub fn decode_avif(data: &[u8]) {
    decode(Format::Avif, data);
}

fn decode(format: Format, data: &[u8]) {
    if Format::sniff(data) != Some(format) {
        return;
    }
    let info = probe(data);
    let options = DecodeOptions { limits: limits(), ..DecodeOptions::default() };
    let mut decoder = Decoder::new(options);
    let mut image = Image::new();
    let outcome = decoder.decode_into(data, &mut image);
    if outcome.is_ok() {
        let info = info.expect("an image that decodes has a header that parses");
        assert_eq!(info.format, format);
        check_size(&image, (info.width, info.height), 3);
    }

    // A used decoder and a fresh one agree, in grey and turned upright too.
    let mut again = Image::new();
    let repeated = decoder.decode_into(data, &mut again);
    assert_eq!(outcome.is_ok(), repeated.is_ok());
    if outcome.is_ok() {
        assert_eq!(image.data, again.data);
    }
    let options = DecodeOptions { color: Color::Grey, exif: Exif::Apply, ..options };
    let grey = Decoder::new(options).decode_into(data, &mut again);
    if grey.is_ok()
        && let Ok(info) = probe(data)
    {
        check_size(&again, info.upright_size(), 1);
    }
}

fn check_size(image: &Image, (width, height): (u32, u32), channels: usize) {
    assert_eq!((image.width, image.height), (width, height));
    assert_eq!(image.data.len(), width as usize * height as usize * channels);
}
