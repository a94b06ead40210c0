//! JPEG. The seam to the decoder behind it is [`run_codec`]: everything that knows `jpeg-decoder` is
//! in this file, what the file itself says is in `marker`.

mod codec_thread;
mod marker;
mod padded;

use jpeg_decoder::{ColorTransform, PixelFormat};

use crate::decoder::DecodeOptions;
use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo};
use crate::limits::Limits;
use crate::orientation::Orientation;
use crate::pixel::Layout;
use marker::{Frame, Process};
use padded::PaddedScans;

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let header = marker::read_header(bytes)?;
    Ok(info(&header.frame, header.orientation))
}

fn info(frame: &Frame, orientation: Orientation) -> ImageInfo {
    ImageInfo {
        format: Format::Jpeg,
        width: frame.width.into(),
        height: frame.height.into(),
        channels: frame.components,
        bit_depth: frame.precision,
        orientation,
    }
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let header = marker::read_header(bytes)?;
    let frame = header.frame;
    require_supported(&frame)?;
    marker::check_scans(bytes, &header, &options.limits)?;
    let size = (frame.width.into(), frame.height.into());
    options.limits.charge_image(size.0, size.1, options.color.channels())?;
    require_plausible(bytes, &frame)?;
    charge_codec(&frame, &options.limits)?;

    let (pixels, layout) = run_codec(bytes, None, &options.limits)?;
    if frame.components == options.color.channels() {
        // The codec allocates its result in any case: taking it over saves a copy.
        (image.width, image.height) = size;
        image.channels = options.color.channels();
        image.data = pixels;
    } else {
        image.reset(size, options.color.channels(), &options.limits)?;
        layout.convert(&pixels, &mut image.data, options.color);
    }
    Ok(header.orientation)
}

fn run_codec(
    bytes: &[u8],
    transform: Option<ColorTransform>,
    limits: &Limits,
) -> Result<(Vec<u8>, Layout<'static>), DecodeError> {
    let mut decoder = jpeg_decoder::Decoder::new(PaddedScans::new(bytes));
    decoder.set_max_decoding_buffer_size(limits.working_bytes());
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
    let header = marker::read_header(bytes)?;
    let frame = header.frame;
    require_supported(&frame)?;
    marker::check_scans(bytes, &header, limits)?;
    let (width, height, channels) = (frame.width.into(), frame.height.into(), frame.components);
    limits.charge_image(width, height, channels)?;
    require_plausible(bytes, &frame)?;
    charge_codec(&frame, limits)?;
    let transform = match (channels, color) {
        (1, _) => ColorTransform::Grayscale,
        (3, StoredColor::YCbCr) => ColorTransform::YCbCr,
        (4, _) => ColorTransform::CMYK,
        _ => ColorTransform::RGB,
    };
    let (mut data, _) = run_codec(bytes, Some(transform), limits)?;
    if channels == 4 {
        // The codec inverts inks for files of their own; TIFF stores them upright.
        for ink in &mut data {
            *ink = 255 - *ink;
        }
    }
    Ok(Part { width, height, channels, data })
}

fn require_supported(frame: &Frame) -> Result<(), DecodeError> {
    if frame.process == Process::Other {
        return Err(Feature::JpegFrame(frame.marker & 0x0F).into());
    }
    if frame.precision != 8 {
        return Err(Feature::JpegPrecision(frame.precision).into());
    }
    if !matches!(frame.components, 1 | 3 | 4) {
        return Err(Feature::JpegComponents(frame.components).into());
    }
    if frame.height == 0 {
        return Err(Feature::JpegHeightInDnl.into());
    }
    Ok(())
}

/// Charges what the codec holds: the samples and, for progressive images, all coefficients of them.
/// Up to one MCU of padding per side is left out.
fn charge_codec(frame: &Frame, limits: &Limits) -> Result<(), DecodeError> {
    const COEFFICIENT_BYTES: u64 = 2;
    let samples = u64::from(frame.width) * u64::from(frame.height) * u64::from(frame.components);
    limits.charge_working(samples * (1 + COEFFICIENT_BYTES))
}

/// Refuses a size that the file cannot fill: each block of the largest component takes at least
/// one bit of one scan. The codec would read zeros past the end of the data.
fn require_plausible(bytes: &[u8], frame: &Frame) -> Result<(), DecodeError> {
    let blocks = u64::from(frame.width.div_ceil(8)) * u64::from(frame.height.div_ceil(8));
    let (need, have) = (blocks.div_ceil(8), bytes.len() as u64);
    if need > have {
        let what = "entropy-coded data (at least)";
        return Err(Defect::Truncated { format: Format::Jpeg, what, offset: 0, need, have }.into());
    }
    Ok(())
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
