//! Lossless images, and animations, through the `image-webp` crate.

use std::io::Cursor;

use image_webp::WebPDecoder;

use crate::error::{CodecError, DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo};
use crate::limits::Limits;
use crate::options::Color;
use crate::pixel::Layout;

/// Bytes of memory per pixel for a lossless image with alpha: its pixels, and transforms in smaller
/// images.
pub(super) const RGBA_BYTES_PER_PIXEL: u64 = 4 + 1;

/// The file around a VP8L chunk.
const FILE_HEADER: usize = 20;
/// The signature of a lossless image, its size, the flag of alpha and the version.
const IMAGE_HEADER: usize = 5;

/// Decodes a whole file of a lossless image or an animation, of which this is the header.
pub(super) fn decode(
    bytes: &[u8],
    info: &ImageInfo,
    color: Color,
    limits: &Limits,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<(), DecodeError> {
    let pixels = u64::from(info.width) * u64::from(info.height);
    limits.charge_working(pixels * working_bytes_per_pixel(bytes, info, color))?;
    let mut decoder = open(bytes, (info.width, info.height), limits)?;
    image.reset((info.width, info.height), color.channels(), limits)?;
    if !decoder.has_alpha() && color == Color::Rgb {
        decoder.read_image(&mut image.data).map_err(codec)?;
    } else {
        let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
        scratch.resize(decoder.output_buffer_size().unwrap_or(0), 0);
        decoder.read_image(scratch).map_err(codec)?;
        layout.convert(scratch, &mut image.data, color);
    }
    Ok(())
}

fn open<'a>(
    bytes: &'a [u8],
    size: (u32, u32),
    limits: &Limits,
) -> Result<WebPDecoder<Cursor<&'a [u8]>>, DecodeError> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(codec)?;
    decoder.set_memory_limit(limits.working_bytes());
    if decoder.dimensions() != size {
        let what = "width or height (the codec reads another one)";
        return Err(Defect::Value { format: Format::WebP, what, found: size.0.into() }.into());
    }
    Ok(decoder)
}

/// The memory in addition to the image: 32-bit pixels of the codec, and a copy with alpha.
fn working_bytes_per_pixel(bytes: &[u8], info: &ImageInfo, color: Color) -> u64 {
    let codec = match (super::riff::is_animated(bytes), info.channels == 4) {
        // A frame and the canvas.
        (true, _) => 8,
        // Transforms in smaller images; without alpha also all pixels in 32 bits.
        (false, true) => 1,
        (false, false) => 5,
    };
    if info.channels == 4 || color != Color::Rgb { codec + 4 } else { codec }
}

/// Adds the green samples of a lossless image without its header, which is how alpha is stored, to
/// `plane`.
pub(super) fn green_of(
    data: &[u8],
    size: (u32, u32),
    limits: &Limits,
    plane: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    // The codec opens files alone.
    let chunk = IMAGE_HEADER + data.len();
    let bytes = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    let mut file = Vec::with_capacity(FILE_HEADER + chunk);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&bytes(FILE_HEADER - 8 + chunk));
    file.extend_from_slice(b"WEBPVP8L");
    file.extend_from_slice(&bytes(chunk));
    file.push(0x2F);
    let with_alpha = 1 << 28;
    file.extend_from_slice(&((size.0 - 1) | ((size.1 - 1) << 14) | with_alpha).to_le_bytes());
    file.extend_from_slice(data);

    let mut decoder = open(&file, size, limits)?;
    let mut pixels = vec![0; decoder.output_buffer_size().unwrap_or(0)];
    decoder.read_image(&mut pixels).map_err(codec)?;
    plane.extend(pixels.as_chunks::<4>().0.iter().map(|[_, green, _, _]| green));
    Ok(())
}

fn codec(error: image_webp::DecodingError) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}

#[cfg(test)]
mod tests {
    use super::super::riff::probe;
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
        assert_eq!(of_extended(EXIF, b"VP8L"), 5);
        assert_eq!(of_extended(EXIF | 0x10, b"VP8L"), 5);
        assert_eq!(of_extended(0x02, b"ANMF"), 8);
    }
}
