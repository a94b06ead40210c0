//! WebP through the `image-webp` crate. Size, alpha and metadata come from our own walk over the
//! RIFF chunks, so that limits are charged before the crate sees the file.

use std::io::Cursor;

use image_webp::WebPDecoder;

use crate::error::{CodecError, DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::Layout;

const RIFF_HEADER: usize = 12;
const CHUNK_HEADER: usize = 8;
/// Alpha flag of the VP8X chunk and, as bit 28, of the lossless header.
const VP8X_ALPHA: u8 = 0x10;
const VP8X_EXIF: u8 = 0x08;
const VP8X_XMP: u8 = 0x04;
const VP8X_ANIMATION: u8 = 0x02;

/// One chunk of a RIFF file.
struct Chunk<'a> {
    kind: [u8; 4],
    data: &'a [u8],
}

/// The chunks of `bytes`; ends at the first that does not fit in the file.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = bytes.get(RIFF_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (head, data) = rest.split_first_chunk::<CHUNK_HEADER>()?;
        let [k0, k1, k2, k3, size @ ..] = *head;
        let size = usize::try_from(u32::from_le_bytes(size)).ok()?;
        let chunk = Chunk { kind: [k0, k1, k2, k3], data: data.get(..size)? };
        // Chunks are padded to an even size; the padding of the last one is often missing.
        rest = data.get(size + size % 2..).unwrap_or_default();
        Some(chunk)
    })
}

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let header = bytes.get(RIFF_HEADER..).unwrap_or_default();
    let Some((head, data)) = header.split_first_chunk::<CHUNK_HEADER>() else {
        return Err(Defect::Missing { format: Format::WebP, what: "a first chunk" }.into());
    };
    let missing = |what| DecodeError::from(Defect::Missing { format: Format::WebP, what });
    let (width, height, alpha) = match &head[..4] {
        b"VP8 " => lossy_header(data).ok_or_else(|| missing("a VP8 key frame header"))?,
        b"VP8L" => lossless_header(data).ok_or_else(|| missing("a VP8L header"))?,
        b"VP8X" => extended_header(data).ok_or_else(|| missing("a VP8X header"))?,
        _ => return Err(missing("a VP8, VP8L or VP8X chunk")),
    };
    let orientation = Orientation::of_metadata(
        metadata(bytes, VP8X_EXIF, *b"EXIF"),
        metadata(bytes, VP8X_XMP, *b"XMP "),
    );
    let channels = if alpha { 4 } else { 3 };
    Ok(ImageInfo {
        format: Format::WebP,
        width,
        height,
        channels,
        bit_depth: 8,
        sample_format: SampleFormat::Unsigned,
        has_alpha: alpha,
        orientation,
    })
}

/// The flags of the VP8X chunk, which is the first.
fn extended_flags(bytes: &[u8]) -> Option<u8> {
    let first = chunks(bytes).next().filter(|first| &first.kind == b"VP8X")?;
    first.data.first().copied()
}

/// The first chunk of this kind, which libwebp finds only where the VP8X chunk has its flag.
fn metadata(bytes: &[u8], flag: u8, kind: [u8; 4]) -> Option<&[u8]> {
    extended_flags(bytes).filter(|flags| flags & flag != 0)?;
    chunks(bytes).find(|chunk| chunk.kind == kind).map(|chunk| chunk.data)
}

fn lossy_header(data: &[u8]) -> Option<(u32, u32, bool)> {
    let &[tag, _, _, 0x9D, 0x01, 0x2A, w0, w1, h0, h1] = data.first_chunk()? else { return None };
    let size = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3FFF);
    let width = size(w0, w1);
    let height = size(h0, h1);
    (tag & 1 == 0 && width > 0 && height > 0).then_some((width, height, false))
}

fn lossless_header(data: &[u8]) -> Option<(u32, u32, bool)> {
    let &[0x2F, b0, b1, b2, b3] = data.first_chunk()? else { return None };
    let bits = u32::from_le_bytes([b0, b1, b2, b3]);
    Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bits >> 28 & 1 != 0))
}

fn extended_header(data: &[u8]) -> Option<(u32, u32, bool)> {
    let &[flags, _, _, _, w0, w1, w2, h0, h1, h2] = data.first_chunk()?;
    let size = |a, b, c| u32::from_le_bytes([a, b, c, 0]) + 1;
    Some((size(w0, w1, w2), size(h0, h1, h2), flags & VP8X_ALPHA != 0))
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let info = probe(bytes)?;
    require_whole(bytes)?;
    let size = (info.width, info.height);
    options.limits.charge_image(size.0, size.1, options.color.channels())?;
    let pixels = u64::from(size.0) * u64::from(size.1);
    options.limits.charge_working(pixels * working_bytes_per_pixel(bytes, &info, options.color))?;

    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(codec)?;
    decoder.set_memory_limit(options.limits.working_bytes());
    if decoder.dimensions() != size {
        let what = "width or height (the codec reads another one)";
        return Err(Defect::Value { format: Format::WebP, what, found: size.0.into() }.into());
    }
    image.reset(size, options.color.channels(), &options.limits)?;
    if !decoder.has_alpha() && options.color == Color::Rgb {
        decoder.read_image(&mut image.data).map_err(codec)?;
    } else {
        let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
        scratch.resize(decoder.output_buffer_size().unwrap_or(0), 0);
        decoder.read_image(scratch).map_err(codec)?;
        layout.convert(scratch, &mut image.data, options.color);
    }
    Ok(info.orientation)
}

/// The memory in addition to the image: planes or 32-bit pixels of the codec, and a copy with
/// alpha.
fn working_bytes_per_pixel(bytes: &[u8], info: &ImageInfo, color: Color) -> u64 {
    let animated = extended_flags(bytes).is_some_and(|flags| flags & VP8X_ANIMATION != 0);
    let lossless = chunks(bytes).any(|chunk| &chunk.kind == b"VP8L");
    let codec = match (animated, lossless, info.channels == 4) {
        // A frame and the canvas.
        (true, _, _) => 8,
        // Transforms in smaller images; without alpha also all pixels in 32 bits.
        (false, true, true) => 1,
        (false, true, false) => 5,
        // Planes, and those of alpha as a lossless image.
        (false, false, true) => 7,
        (false, false, false) => 2,
    };
    if info.channels == 4 || color != Color::Rgb { codec + 4 } else { codec }
}

/// The RIFF size must not exceed the file: the codec would read a cut image as far as it goes.
fn require_whole(bytes: &[u8]) -> Result<(), DecodeError> {
    let size = bytes.get(4..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    let need = u64::from(u32::from_le_bytes(size)) + CHUNK_HEADER as u64;
    let have = bytes.len() as u64;
    if need > have {
        let format = Format::WebP;
        let what = "RIFF container";
        return Err(Defect::Truncated { format, what, offset: 0, need, have }.into());
    }
    Ok(())
}

fn codec(error: image_webp::DecodingError) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Working bytes per pixel of an extended file with these flags, EXIF and a `kind` image.
    fn of_extended(flags: u8, kind: &[u8; 4]) -> u64 {
        let mut bytes = b"RIFF\0\0\0\0WEBP".to_vec();
        for (kind, data) in [(b"VP8X", &[flags, 0, 0, 0, 9, 0, 0, 9, 0, 0][..]), (kind, &[0; 10])] {
            bytes.extend_from_slice(kind);
            bytes.extend_from_slice(&[10, 0, 0, 0]);
            bytes.extend_from_slice(data);
        }
        working_bytes_per_pixel(&bytes, &probe(&bytes).unwrap(), Color::Rgb)
    }

    #[test]
    fn metadata_makes_no_image_larger() {
        const EXIF: u8 = 0x08;
        assert_eq!(of_extended(EXIF, b"VP8 "), 2);
        assert_eq!(of_extended(EXIF, b"VP8L"), 5);
        assert_eq!(of_extended(EXIF | VP8X_ALPHA, b"VP8L"), 5);
        assert_eq!(of_extended(VP8X_ALPHA, b"VP8 "), 11);
        assert_eq!(of_extended(VP8X_ANIMATION, b"ANMF"), 8);
    }
}
