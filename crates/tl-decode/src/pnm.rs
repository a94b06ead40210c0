//! PBM, PGM and PPM images, plain and raw (`P1` to `P6`), of up to 16 bits a sample.
//!
//! Samples are scaled to 8 bits with Pillow's arithmetic for colours. A file that continues with a
//! further image is read up to the first.

mod header;
mod plain;

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo, PixelType, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::{self, Layout};
use crate::wide::StoredPixel;
use header::{Coding, Header};

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let header = Header::parse(bytes)?;
    Ok(header.info())
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let header = Header::parse(bytes)?;
    let size = (header.width, header.height);
    let color = options.color;
    let pixels = match options.pixels {
        PixelType::U8 => PixelType::U8,
        // The caller makes floats of samples of 8 bits.
        wide if header.max > u16::from(u8::MAX) => wide,
        PixelType::U16 | PixelType::F32 => PixelType::U8,
    };
    let conversion = Conversion::new(&header, color, pixels);
    if pixels != PixelType::U8 {
        conversion.stored.require(&header.info(), color)?;
    }
    let pixel_bytes = usize::from(color.channels()) * pixels.bytes();
    options.limits.charge_image(size.0, size.1, pixel_bytes.to_le_bytes()[0])?;
    options
        .limits
        .charge_working(2 * header.row_samples() as u64 * header.sample_bytes() as u64)?;
    header.require_rows(bytes)?;
    image.reset_wide(size, color.channels(), pixels, &options.limits)?;
    scratch.clear();
    scratch.resize(2 * header.row_samples() * header.sample_bytes(), 0);
    let (samples, levels) = scratch.split_at_mut(header.row_samples() * header.sample_bytes());
    let mut rows = Rows { header: &header, bytes, at: header.data_offset };
    for y in 0..image.height as usize {
        let start = rows.at;
        let row = rows.next(samples)?;
        conversion.convert(row, start, levels, image.row_mut(y))?;
    }
    Ok(Orientation::Upright)
}

/// The rows of the file: samples of 1 byte, or of 2 with the higher one first.
struct Rows<'a> {
    header: &'a Header,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rows<'a> {
    /// The next row, which is in `samples` unless the file has it as it is. Raw rows are in the
    /// file: that was checked before the image was allocated.
    fn next<'b>(&mut self, samples: &'b mut [u8]) -> Result<&'b [u8], DecodeError>
    where
        'a: 'b,
    {
        match self.header.coding {
            Coding::Plain => {
                plain::read_row(self.header, self.bytes, &mut self.at, samples)?;
                Ok(samples)
            }
            Coding::Raw => {
                let end = self.at + self.header.raw_row_bytes();
                let row = self.bytes.get(self.at..end).unwrap_or_default();
                self.at = end;
                if !self.header.is_bitmap {
                    return Ok(row);
                }
                pixel::unpack(row, 1, 1, samples);
                Ok(samples)
            }
        }
    }
}

/// The conversion of rows of samples into rows of the image.
struct Conversion {
    color: Color,
    pixels: PixelType,
    channels: u8,
    max: u16,
    /// The levels of samples of 8 bits, in 8 bits.
    levels: [u8; 256],
    stored: StoredPixel<u16>,
}

impl Conversion {
    fn new(header: &Header, color: Color, pixels: PixelType) -> Self {
        let mut levels = [0; 256];
        for (sample, level) in (0..=u16::from(u8::MAX)).zip(&mut levels) {
            *level = scaled(sample.min(header.max), header.max);
        }
        if header.is_bitmap {
            // 1 is black.
            levels[..2].reverse();
        }
        let stored = StoredPixel {
            samples: header.channels.into(),
            colors: header.channels.into(),
            alpha: false,
            opaque: header.max,
            transparent: None,
        };
        Self { color, pixels, channels: header.channels, max: header.max, levels, stored }
    }

    /// Converts `row`, which starts at byte `start` of raw files; `levels` has room for its samples.
    fn convert(
        &self,
        row: &[u8],
        start: usize,
        levels: &mut [u8],
        to: &mut [u8],
    ) -> Result<(), DecodeError> {
        let layout = if self.channels == 3 { Layout::Rgb } else { Layout::Grey };
        match self.max {
            255 => layout.convert(row, to, self.color),
            0..255 => {
                for (sample, level) in row.iter().zip(&mut *levels) {
                    *level = self.levels[usize::from(*sample)];
                }
                self.require_valid(row.iter().map(|sample| u16::from(*sample)), 1, start)?;
                layout.convert(levels, to, self.color);
            }
            256.. => {
                let samples = row.as_chunks::<2>().0.iter().map(|word| u16::from_be_bytes(*word));
                self.require_valid(samples.clone(), 2, start)?;
                match self.pixels {
                    PixelType::U8 => {
                        for (sample, level) in samples.zip(&mut *levels) {
                            *level = scaled(sample, self.max);
                        }
                        layout.convert(levels, to, self.color);
                    }
                    PixelType::U16 => self.stored.convert(samples, self.color, to),
                    PixelType::F32 => {
                        let samples = samples.map(f32::from);
                        self.stored.map(f32::from).convert(samples, self.color, to);
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses samples above the maximum, which Pillow clips.
    fn require_valid(
        &self,
        mut samples: impl Iterator<Item = u16>,
        sample_bytes: usize,
        start: usize,
    ) -> Result<(), DecodeError> {
        match samples.position(|sample| sample > self.max) {
            Some(place) => Err(above_max(start + place * sample_bytes)),
            None => Ok(()),
        }
    }
}

fn above_max(offset: usize) -> DecodeError {
    let what = "a sample above the maximum";
    Defect::Stray { format: Format::Pnm, what, offset: offset as u64 }.into()
}

/// A sample in 8 bits, rounded as Pillow does it: halves to even, after a division in 64 bits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn scaled(sample: u16, max: u16) -> u8 {
    (f64::from(sample) / f64::from(max) * 255.0).round_ties_even() as u8
}

impl Header {
    fn info(&self) -> ImageInfo {
        ImageInfo {
            format: Format::Pnm,
            width: self.width,
            height: self.height,
            channels: self.channels,
            bit_depth: self.bit_depth(),
            sample_format: SampleFormat::Unsigned,
            has_alpha: false,
            orientation: Orientation::Upright,
        }
    }
}
