//! QOI, the Quite OK Image format: bytes that refer to pixels before them.
//!
//! As in the reference decoder, and other than in Pillow, a run stores its pixel in the table of
//! seen pixels; no encoder refers to the only one for which that matters.

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo, SampleFormat};
use crate::options::DecodeOptions;
use crate::orientation::Orientation;
use crate::pixel::Layout;

const HEADER_SIZE: usize = 14;
const END: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];
/// The longest run of pixels that one byte stands for.
const MAX_RUN: u64 = 62;

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let Some(header) = bytes.first_chunk::<HEADER_SIZE>() else {
        let need = HEADER_SIZE as u64;
        return Err(truncated("header", 0, need, bytes.len() as u64));
    };
    let [_, _, _, _, w0, w1, w2, w3, h0, h1, h2, h3, channels, _] = *header;
    let width = u32::from_be_bytes([w0, w1, w2, w3]);
    let height = u32::from_be_bytes([h0, h1, h2, h3]);
    if width == 0 || height == 0 {
        return Err(value("width or height", 0));
    }
    if !matches!(channels, 3 | 4) {
        return Err(value("number of channels", channels.into()));
    }
    Ok(ImageInfo {
        format: Format::Qoi,
        width,
        height,
        channels,
        bit_depth: 8,
        sample_format: SampleFormat::Unsigned,
        has_alpha: channels == 4,
        orientation: Orientation::Upright,
    })
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let info = probe(bytes)?;
    let channels = options.color.channels();
    options.limits.charge_image(info.width, info.height, channels)?;
    options.limits.charge_working(4 * u64::from(info.width))?;
    let end = bytes.len().saturating_sub(END.len());
    let data = bytes.get(HEADER_SIZE..end).unwrap_or_default();
    require_plausible(data, &info)?;
    image.reset((info.width, info.height), channels, &options.limits)?;
    scratch.clear();
    scratch.resize(4 * info.width as usize, 0);
    let layout = if info.has_alpha { Layout::Rgba } else { Layout::Rgbx };
    let mut pixels = Pixels::new(data);
    for y in 0..image.height as usize {
        for pixel in scratch.as_chunks_mut::<4>().0 {
            *pixel = pixels.next().ok_or_else(|| {
                let offset = (HEADER_SIZE + pixels.at) as u64;
                truncated("pixel data", offset, 1, 0)
            })?;
        }
        layout.convert(scratch, image.row_mut(y), options.color);
    }
    let stop = HEADER_SIZE + pixels.at;
    if bytes.get(stop..).is_none_or(|rest| !rest.starts_with(&END)) {
        let what = "expected the end marker after the last pixel";
        return Err(Defect::Stray { format: Format::Qoi, what, offset: stop as u64 }.into());
    }
    Ok(info.orientation)
}

/// Refuses a size that the file cannot fill, before the image is allocated.
fn require_plausible(data: &[u8], info: &ImageInfo) -> Result<(), DecodeError> {
    let need = u64::from(info.width) * u64::from(info.height);
    let have = (data.len() as u64).saturating_mul(MAX_RUN);
    if need > have {
        let what = "pixels (at most, in runs)";
        return Err(Defect::ShortOutput { format: Format::Qoi, what, need, have }.into());
    }
    Ok(())
}

/// The pixels of a file, as RGBA.
struct Pixels<'a> {
    data: &'a [u8],
    at: usize,
    seen: [[u8; 4]; 64],
    last: [u8; 4],
    /// Repetitions of the last pixel that are left.
    run: u8,
}

impl<'a> Pixels<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, seen: [[0; 4]; 64], last: [0, 0, 0, u8::MAX], run: 0 }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.data.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(bytes)
    }

    /// The next pixel, or `None` at the end of the data.
    fn next(&mut self) -> Option<[u8; 4]> {
        const RGB: u8 = 0xFE;
        const RGBA: u8 = 0xFF;
        if self.run > 0 {
            self.run -= 1;
            return Some(self.last);
        }
        let [r, g, b, a] = self.last;
        let [byte] = self.take()?;
        let low = byte & 0x3F;
        let pixel = match (byte, byte >> 6) {
            (RGB, _) => {
                let [r, g, b] = self.take()?;
                [r, g, b, a]
            }
            (RGBA, _) => self.take()?,
            (_, 0) => self.seen[usize::from(low)],
            (_, 1) => {
                let changed =
                    |sample: u8, shift: u8| sample.wrapping_add(low >> shift & 3).wrapping_sub(2);
                [changed(r, 4), changed(g, 2), changed(b, 0), a]
            }
            (_, 2) => {
                let [others] = self.take()?;
                let green = low.wrapping_sub(32);
                let changed = |sample: u8, by: u8| {
                    sample.wrapping_add(green).wrapping_add(by).wrapping_sub(8)
                };
                [changed(r, others >> 4), g.wrapping_add(green), changed(b, others & 15), a]
            }
            _ => {
                self.run = low;
                self.last
            }
        };
        let [r, g, b, a] = pixel.map(usize::from);
        self.seen[(r * 3 + g * 5 + b * 7 + a * 11) % 64] = pixel;
        self.last = pixel;
        Some(pixel)
    }
}

fn truncated(what: &'static str, offset: u64, need: u64, have: u64) -> DecodeError {
    Defect::Truncated { format: Format::Qoi, what, offset, need, have }.into()
}

fn value(what: &'static str, found: u64) -> DecodeError {
    Defect::Value { format: Format::Qoi, what, found }.into()
}
