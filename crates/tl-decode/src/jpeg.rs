//! JPEG. The seam to the decoder behind it is [`run_codec`]: everything that knows `jpeg-decoder` is
//! in this file, what the file itself says is in `marker`.

mod codec_thread;
mod marker;
mod padded;
#[expect(dead_code, reason = "the decoder that uses it is being put together")]
mod scan;

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

    if frame.components == options.color.channels() {
        // Replaced by what the codec allocates; both at once would be twice the limit.
        image.data = Vec::new();
    }
    let (pixels, layout) = run_codec(bytes, None)?;
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
    let (mut data, _) = run_codec(bytes, Some(transform))?;
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

/// Charges what the codec holds besides its result: the samples with the padding to whole MCUs, and
/// two rows of coefficients or, for progressive images, all of them.
fn charge_codec(frame: &Frame, limits: &Limits) -> Result<(), DecodeError> {
    const BLOCK_SAMPLES: u64 = 64;
    const COEFFICIENT_BYTES: u64 = 2;
    let rows = u64::from(frame.mcu_rows());
    let row_samples =
        u64::from(frame.mcus_per_row()) * u64::from(frame.blocks_per_mcu) * BLOCK_SAMPLES;
    let coefficient_rows = if frame.process == Process::Progressive { rows } else { 2 };
    limits.charge_working(row_samples * (rows + COEFFICIENT_BYTES * coefficient_rows))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of three components, the first with `sampling` blocks across and down per MCU.
    fn frame(process: Process, (width, height): (u16, u16), sampling: (u8, u8)) -> Frame {
        let blocks_per_mcu = u16::from(sampling.0) * u16::from(sampling.1) + 2;
        Frame {
            marker: 0xC0,
            process,
            precision: 8,
            width,
            height,
            components: 3,
            sampling,
            blocks_per_mcu,
        }
    }

    #[test]
    fn camera_images_are_within_the_default_limits() {
        let check = |frame, expected: Option<u64>| {
            let need = match charge_codec(&frame, &Limits::default()) {
                Err(DecodeError::LimitExceeded { need, .. }) => Some(need),
                result => result.map(|()| None).unwrap(),
            };
            assert_eq!(need, expected, "{frame:?}");
        };
        let (of_61_mp, of_100_mp, largest) = ((9504, 6336), (11_648, 8736), (13_376, 13_376));
        check(frame(Process::Sequential, of_61_mp, (1, 1)), None);
        check(frame(Process::Sequential, of_100_mp, (1, 1)), None);
        check(frame(Process::Sequential, of_100_mp, (2, 1)), None);
        check(frame(Process::Sequential, largest, (2, 2)), None);
        check(frame(Process::Progressive, of_61_mp, (2, 2)), None);
        // All coefficients of a progressive image are held at once.
        check(frame(Process::Progressive, of_61_mp, (1, 1)), Some(9504 * 6336 * 3 * 3));
        // The sides are rounded up to whole MCUs, and two rows of coefficients come on top.
        let rows = 13_376 / 8;
        let need = 13_376 * 8 * 3 * (rows + 4);
        check(frame(Process::Sequential, (13_369, 13_369), (1, 1)), Some(need));
    }
}
