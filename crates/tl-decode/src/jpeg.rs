//! JPEG. The seam to the decoder behind it is [`run_codec`]: everything that knows `jpeg-decoder` is
//! in this file, what the file itself says is in `marker`.

#[cfg_attr(not(test), expect(dead_code, reason = "the decoder is being put together"))]
mod bits;
mod codec_thread;
mod entropy_data;
#[expect(dead_code, reason = "the decoder that uses it is being put together")]
mod frame;
#[expect(dead_code, reason = "the decoder that uses it is being put together")]
mod header;
mod huffman;
mod marker;
mod padded;
mod planes;
mod request;
#[cfg_attr(not(test), expect(dead_code, reason = "the decoder is being put together"))]
mod scan;
#[cfg_attr(not(test), expect(dead_code, reason = "the decoder is being put together"))]
mod sequential;
mod standard;
mod tables;

use jpeg_decoder::{ColorTransform, PixelFormat};
use tl_simd::Level;
use tl_simd::resample::Rect;

use crate::decoder::DecodeOptions;
use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo};
use crate::limits::Limits;
use crate::orientation::Orientation;
use crate::pixel::Layout;
use frame::{Frame, Process};
use header::Reader;
use padded::PaddedScans;

pub use planes::{Plane, PlaneColor, Planes};
pub use request::{Decoded, JpegRequest};
pub use scan::{Damage, OnDamaged};

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let (frame, prologue) = frame::read_prologue(bytes)?;
    Ok(ImageInfo {
        format: Format::Jpeg,
        width: frame.width.into(),
        height: frame.height.into(),
        channels: frame.component_count,
        bit_depth: frame.precision,
        orientation: prologue.orientation(),
    })
}

/// Decodes JPEG images one after the other, whole or in part, and keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct JpegDecoder {
    limits: Limits,
    #[expect(dead_code, reason = "the decoder that uses it is being put together")]
    level: Option<Level>,
}

impl JpegDecoder {
    /// A decoder that charges `limits` and uses the fastest instructions of this CPU.
    pub fn new(limits: Limits) -> Self {
        Self { limits, level: None }
    }

    /// The same with the instructions of `level`; the pixels do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level: Some(level), ..self }
    }

    /// Decodes what `request` asks for into `image`.
    ///
    /// # Errors
    /// As [`Decoder::decode_into`](crate::Decoder::decode_into), and [`DecodeError::Region`] for a
    /// region that is empty or not inside the scaled image.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        request: &JpegRequest,
        image: &mut Image,
    ) -> Result<Decoded, DecodeError> {
        let options =
            DecodeOptions { color: request.color, limits: self.limits, ..DecodeOptions::default() };
        let orientation = decode(bytes, &options, image)?;
        let region = request.region.unwrap_or(Rect::of_size(image.width, image.height));
        if region.width == 0 || region.height == 0 || !region.fits(image.width, image.height) {
            let (width, height) = (image.width, image.height);
            return Err(DecodeError::Region { region, width, height });
        }
        let channels = usize::from(image.channels);
        let mut data =
            Vec::with_capacity(region.width as usize * region.height as usize * channels);
        for row in image.data.chunks_exact(image.row_bytes()).skip(region.y as usize) {
            let from = region.x as usize * channels;
            data.extend_from_slice(&row[from..from + region.width as usize * channels]);
        }
        data.truncate(region.width as usize * region.height as usize * channels);
        (image.width, image.height, image.data) = (region.width, region.height, data);
        Ok(Decoded { orientation, damage: None })
    }

    /// Decodes the components of what `request` asks for without upsampling or converting them.
    ///
    /// # Errors
    /// As [`JpegDecoder::decode`].
    pub fn decode_planes(
        &mut self,
        bytes: &[u8],
        request: &JpegRequest,
    ) -> Result<Planes<'_>, DecodeError> {
        _ = (bytes, request);
        Err(Feature::JpegColor.into())
    }
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let (frame, orientation) = checked(bytes, &options.limits)?;
    let size = frame.size();
    options.limits.charge_image(size.0, size.1, options.color.channels())?;
    frame.require_plausible(bytes.len())?;
    charge_codec(&frame, &options.limits)?;

    if frame.component_count == options.color.channels() {
        // Replaced by what the codec allocates; both at once would be twice the limit.
        image.data = Vec::new();
    }
    let (pixels, layout) = run_codec(bytes, None)?;
    if frame.component_count == options.color.channels() {
        // The codec allocates its result in any case: taking it over saves a copy.
        (image.width, image.height) = size;
        image.channels = options.color.channels();
        image.data = pixels;
    } else {
        image.reset(size, options.color.channels(), &options.limits)?;
        layout.convert(&pixels, &mut image.data, options.color);
    }
    Ok(orientation)
}

fn checked(bytes: &[u8], limits: &Limits) -> Result<(Frame, Orientation), DecodeError> {
    let (frame, _) = frame::read_prologue(bytes)?;
    frame.require_supported()?;
    let mut reader = Reader::new(bytes)?;
    while reader.next_scan(limits)?.is_some() {
        reader.skip_entropy_coded()?;
    }
    Ok((frame, reader.prologue.orientation()))
}

fn run_codec(
    bytes: &[u8],
    transform: Option<ColorTransform>,
) -> Result<(Vec<u8>, Layout<'static>), DecodeError> {
    let mut decoder = jpeg_decoder::Decoder::new(PaddedScans::new(bytes));
    if let Some(transform) = transform {
        decoder.set_color_transform(transform);
    }
    let pixels = codec_thread::run(|| decoder.decode())
        .unwrap_or_else(|error| Err(error.into()))
        .map_err(codec)?;
    let layout = match decoder.info().map(|info| info.pixel_format) {
        Some(PixelFormat::L8) => Layout::Grey,
        Some(PixelFormat::RGB24) => Layout::Rgb,
        // Ink amounts, already inverted as Pillow inverts what Adobe writes.
        Some(PixelFormat::CMYK32) => Layout::Cmyk,
        Some(PixelFormat::L16) | None => return Err(Feature::JpegColor.into()),
    };
    Ok((pixels, layout))
}

/// What the components of a JPEG stream inside another format are, by that format's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredColor {
    /// To be converted to RGB.
    YCbCr,
    /// Four inks; 255 is full ink.
    Ink,
    /// Grey or RGB.
    AsIs,
}

/// A decoded stream: interleaved components.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) channels: u8,
    pub(crate) data: Vec<u8>,
}

/// Decodes a JPEG stream that is a strip or tile of a TIFF file.
pub(crate) fn decode_part(
    bytes: &[u8],
    color: StoredColor,
    limits: &Limits,
) -> Result<Part, DecodeError> {
    let (frame, _) = checked(bytes, limits)?;
    let ((width, height), channels) = (frame.size(), frame.component_count);
    limits.charge_image(width, height, channels)?;
    frame.require_plausible(bytes.len())?;
    charge_codec(&frame, limits)?;
    let transform = match (channels, color) {
        (1, _) => ColorTransform::Grayscale,
        (3, StoredColor::YCbCr) => ColorTransform::YCbCr,
        (4, _) => ColorTransform::CMYK,
        _ => ColorTransform::RGB,
    };
    let (mut data, _) = run_codec(bytes, Some(transform))?;
    if channels == 4 {
        // The codec inverts inks for files of their own; TIFF stores them upright.
        for ink in &mut data {
            *ink = 255 - *ink;
        }
    }
    Ok(Part { width, height, channels, data })
}

/// Charges what the codec holds besides its result: the samples with the padding to whole MCUs, and
/// two rows of coefficients or, for progressive images, all of them.
fn charge_codec(frame: &Frame, limits: &Limits) -> Result<(), DecodeError> {
    const BLOCK_SAMPLES: u64 = 64;
    const COEFFICIENT_BYTES: u64 = 2;
    let (across, rows) = frame.mcus();
    let rows = u64::from(rows);
    let blocks = frame.components().iter().map(|c| u64::from(c.across) * u64::from(c.down));
    let row_samples = u64::from(across) * blocks.sum::<u64>() * BLOCK_SAMPLES;
    let coefficient_rows = if frame.process == Process::Progressive { rows } else { 2 };
    limits.charge_working(row_samples * (rows + COEFFICIENT_BYTES * coefficient_rows))
}

fn codec(error: jpeg_decoder::Error) -> DecodeError {
    use jpeg_decoder::UnsupportedFeature as Missing;
    match error {
        jpeg_decoder::Error::Unsupported(feature) => match feature {
            Missing::Hierarchical | Missing::ArithmeticEntropyCoding => {
                Feature::JpegFrame(9).into()
            }
            Missing::SamplePrecision(bits) => Feature::JpegPrecision(bits).into(),
            Missing::ComponentCount(count) => Feature::JpegComponents(count).into(),
            Missing::DNL => Feature::JpegHeightInDnl.into(),
            Missing::SubsamplingRatio | Missing::NonIntegerSubsamplingRatio => {
                Feature::JpegSampling.into()
            }
            Missing::ColorTransform(_) => Feature::JpegColor.into(),
        },
        other @ (jpeg_decoder::Error::Format(_)
        | jpeg_decoder::Error::Io(_)
        | jpeg_decoder::Error::Internal(_)) => Defect::from(CodecError::from(other)).into(),
    }
}
