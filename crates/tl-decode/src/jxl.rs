//! JPEG XL through the `jxl` crate, in files of boxes and as codestreams: the first frame, in 8 bits
//! and the colours of the file's profile, upright as libjxl shows it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::jxl::api::{
    Event, ExtraChannel, JxlBasicInfo, JxlBitDepth, JxlColorType, JxlDataFormat, JxlDecoder,
    JxlDecoderOptions, JxlOutputBuffer, JxlPixelFormat,
};

use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::Layout;

/// Memory of the codec for a sample of the image: planes of floats or integers of a frame, of which
/// further frames may be made.
const WORKING_BYTES_PER_SAMPLE: u64 = 8;

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    caught(|| Header::read(bytes, JxlDecoderOptions::default()).map(|header| header.info))
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    caught(|| {
        let info = Header::read(bytes, JxlDecoderOptions::default())?.info;
        options.limits.charge_image(info.width, info.height, options.color.channels())?;
        let samples = options.limits.max_working_bytes / WORKING_BYTES_PER_SAMPLE;
        let sample_limit = Some(usize::try_from(samples).unwrap_or(usize::MAX));
        require_whole(bytes, sample_limit)?;
        let mut codec_options = JxlDecoderOptions::default();
        codec_options.sample_limit = sample_limit;
        Header::read(bytes, codec_options)?.decode(options, scratch, image)
    })?;
    Ok(Orientation::Upright)
}

/// Calls the crate, whose panics are errors of the file that caused them: it is young.
fn caught<T>(work: impl FnOnce() -> Result<T, DecodeError>) -> Result<T, DecodeError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Defect::from(CodecError::of_panic(Format::Jxl)).into()))
}

/// Reads the headers of all frames, which must be in the file up to their ends.
fn require_whole(bytes: &[u8], sample_limit: Option<usize>) -> Result<(), DecodeError> {
    let mut options = JxlDecoderOptions::default();
    options.sample_limit = sample_limit;
    options.scan_frames_only = true;
    let mut header = Header::read(bytes, options)?;
    while header.process(None)? != Event::Complete {}
    Ok(())
}

/// A decoder that has read the header.
struct Header<'a> {
    decoder: JxlDecoder,
    bytes: &'a [u8],
    /// The rest of the file.
    input: &'a [u8],
    info: ImageInfo,
    is_grey: bool,
    extra_channels: usize,
}

impl<'a> Header<'a> {
    fn read(bytes: &'a [u8], options: JxlDecoderOptions) -> Result<Self, DecodeError> {
        let mut decoder = JxlDecoder::new(options);
        let mut input = bytes;
        process(&mut decoder, bytes, &mut input, None)?;
        let missing = || Defect::Missing { format: Format::Jxl, what: "a header" };
        let basic = decoder.basic_info().ok_or_else(missing)?;
        let format = decoder.current_pixel_format().ok_or_else(missing)?;
        let is_grey = format.color_type.is_grayscale();
        let info = info(basic, is_grey)?;
        let extra_channels = basic.extra_channels.len();
        Ok(Self { decoder, bytes, input, info, is_grey, extra_channels })
    }

    /// Decodes the first frame.
    fn decode(
        mut self,
        options: &DecodeOptions,
        scratch: &mut Vec<u8>,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let size = (self.info.width, self.info.height);
        let channels = options.color.channels();
        let with_alpha = self.info.has_alpha && options.color == Color::Rgba;
        let (color_type, layout, direct) = match (self.is_grey, with_alpha) {
            (true, false) => (JxlColorType::Grayscale, Layout::Grey, Some(Color::Grey)),
            (true, true) => (JxlColorType::GrayscaleAlpha, Layout::GreyAlpha, None),
            (false, false) => (JxlColorType::Rgb, Layout::Rgb, Some(Color::Rgb)),
            (false, true) => (JxlColorType::Rgba, Layout::Rgba, Some(Color::Rgba)),
        };
        let in_place = direct == Some(options.color);
        let row_bytes = size.0 as usize * color_type.samples_per_pixel();
        let all_bytes = row_bytes * size.1 as usize;
        let pixels = u64::from(size.0) * u64::from(size.1);
        let samples = pixels.saturating_mul(3 + self.extra_channels as u64);
        let copy = if in_place { 0 } else { all_bytes as u64 };
        let codec_bytes = samples.saturating_mul(WORKING_BYTES_PER_SAMPLE);
        options.limits.charge_working(codec_bytes.saturating_add(copy))?;
        let format = JxlPixelFormat {
            color_type,
            color_data_format: Some(JxlDataFormat::U8 { bit_depth: 8 }),
            extra_channel_format: vec![None; self.extra_channels],
        };
        self.decoder.set_pixel_format(format).map_err(codec)?;
        image.reset(size, channels, &options.limits)?;
        let target = if in_place {
            &mut image.data
        } else {
            scratch.clear();
            scratch.resize(all_bytes, 0);
            &mut *scratch
        };
        let mut buffer = JxlOutputBuffer::new(target, size.1 as usize, row_bytes);
        loop {
            match self.process(Some(std::slice::from_mut(&mut buffer)))? {
                Event::FrameComplete { .. } => break,
                Event::Complete => {
                    let what = "a frame";
                    return Err(Defect::Missing { format: Format::Jxl, what }.into());
                }
                Event::NeedMoreInput { .. } | Event::BasicInfo | Event::FrameHeader => {}
            }
        }
        if !in_place {
            layout.convert(scratch, &mut image.data, options.color);
        }
        Ok(())
    }

    fn process(
        &mut self,
        buffers: Option<&mut [JxlOutputBuffer<'_>]>,
    ) -> Result<Event, DecodeError> {
        process(&mut self.decoder, self.bytes, &mut self.input, buffers)
    }
}

/// Reads up to the next event. All bytes are at hand, so that none can be waited for.
fn process(
    decoder: &mut JxlDecoder,
    bytes: &[u8],
    input: &mut &[u8],
    buffers: Option<&mut [JxlOutputBuffer<'_>]>,
) -> Result<Event, DecodeError> {
    let event = decoder.process(input, buffers, None).map_err(codec)?;
    if let Event::NeedMoreInput { size_hint } = event {
        let format = Format::Jxl;
        let offset = bytes.len() as u64;
        let need = size_hint.max(1) as u64;
        let what = "codestream or box";
        return Err(Defect::Truncated { format, what, offset, need, have: 0 }.into());
    }
    Ok(event)
}

fn info(basic: &JxlBasicInfo, is_grey: bool) -> Result<ImageInfo, DecodeError> {
    let has = |kind| basic.extra_channels.iter().any(|channel| channel.ec_type == kind);
    if has(ExtraChannel::Black) {
        return Err(Feature::JxlCmyk.into());
    }
    let side = |side: usize| {
        u32::try_from(side).map_err(|_| {
            let what = "width or height";
            DecodeError::from(Defect::Value { format: Format::Jxl, what, found: side as u64 })
        })
    };
    let has_alpha = has(ExtraChannel::Alpha);
    Ok(ImageInfo {
        format: Format::Jxl,
        width: side(basic.size.0)?,
        height: side(basic.size.1)?,
        channels: if is_grey { 1 } else { 3 } + u8::from(has_alpha),
        bit_depth: u8::try_from(basic.bit_depth.bits_per_sample()).unwrap_or(u8::MAX),
        sample_format: match basic.bit_depth {
            JxlBitDepth::Int { .. } => SampleFormat::Unsigned,
            JxlBitDepth::Float { .. } => SampleFormat::Float,
        },
        has_alpha,
        orientation: Orientation::Upright,
    })
}

fn codec(error: ::jxl::error::Error) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}
