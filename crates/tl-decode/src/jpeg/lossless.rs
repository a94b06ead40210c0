//! Lossless JPEG (SOF3), by `jpeg-decoder`: nothing else here knows that library.

use jpeg_decoder::{ColorTransform, PixelFormat};
use tl_simd::jpeg::Scale;

use super::frame::PlaneColor;
use super::geometry::Geometry;
use super::rows::Pixels;
use super::scans::Opened;
use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::image::Image;
use crate::limits::Limits;
use crate::options::Color;
use crate::pixel::Layout;

/// The library's memory per sample: its differences, 16-bit samples, their interleaved copy and the
/// bytes of the result.
const BYTES_PER_SAMPLE: u64 = 9;

/// Decodes the samples of all components, side by side.
///
/// Only grey and RGB without subsampling in one scan, at full size: nobody stores anything else
/// without loss, and libjpeg-turbo decodes nothing else either.
pub(super) fn decode(
    image: &mut Opened<'_>,
    color: PlaneColor,
    scale: Scale,
    limits: &Limits,
) -> Result<Vec<u8>, DecodeError> {
    let frame = &image.frame;
    if scale != Scale::FULL || !matches!(color, PlaneColor::Grey | PlaneColor::Rgb) {
        return Err(Feature::JpegFrame(frame.kind).into());
    }
    if frame.max_sampling != (1, 1) || image.first_scan.count != frame.components().len() {
        return Err(Feature::JpegSampling.into());
    }
    let (width, height) = frame.size();
    let samples = u64::from(width) * u64::from(height) * u64::from(frame.component_count);
    limits.charge_working(samples.saturating_mul(BYTES_PER_SAMPLE))?;
    // The library may pass over a missing end and bytes between segments.
    image.reader.skip_entropy_coded()?;
    while image.reader.next_scan(limits)?.is_some() {
        image.reader.skip_entropy_coded()?;
    }
    let mut decoder = jpeg_decoder::Decoder::new(image.bytes);
    decoder.set_color_transform(ColorTransform::None);
    let data = decoder.decode().map_err(codec)?;
    let format = decoder.info().map(|info| info.pixel_format);
    let expected = if color == PlaneColor::Grey { PixelFormat::L8 } else { PixelFormat::RGB24 };
    if format != Some(expected) || data.len() as u64 != samples {
        return Err(Feature::JpegFrame(image.frame.kind).into());
    }
    Ok(data)
}

/// Converts the region of `samples` into `image`, which has its size.
pub(super) fn place(
    samples: &[u8],
    color: PlaneColor,
    pixels: Pixels,
    geometry: &Geometry,
    image: &mut Image,
) {
    let (layout, channels) =
        if color == PlaneColor::Grey { (Layout::Grey, 1) } else { (Layout::Rgb, 3) };
    let to = match pixels {
        Pixels::Converted(color) => color,
        Pixels::Stored if channels == 1 => Color::Grey,
        Pixels::Stored => Color::Rgb,
    };
    let region = geometry.region;
    let row_bytes = geometry.size.0 as usize * channels;
    let from = region.x as usize * channels;
    let len = region.width as usize * channels;
    let rows = samples.chunks_exact(row_bytes).skip(region.y as usize);
    let out_bytes = image.row_bytes();
    for (row, out) in rows.zip(image.data.chunks_exact_mut(out_bytes)) {
        layout.convert(&row[from..from + len], out, to);
    }
}

fn codec(error: jpeg_decoder::Error) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}
