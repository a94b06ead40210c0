//! Windows and OS/2 bitmaps: 1 to 32 bits per pixel, palettes, bit fields, RLE4 and RLE8, stored
//! bottom up or top down.
//!
//! What Pillow decodes gives the same pixels here. Two kinds it refuses are decoded as well: 2 bits
//! per pixel, and bit fields of any position and width.

mod header;
mod rle;

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::{self, Layout};
use header::{Coding, Header, Masks, stretched};

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let header = Header::parse(bytes)?;
    let (channels, bit_depth) = match header.bits {
        bits @ 1..=8 => (1, bits),
        16 => (3, 5),
        _ => (if header.masks.alpha == 0 { 3 } else { 4 }, 8),
    };
    Ok(ImageInfo {
        format: Format::Bmp,
        width: header.width,
        height: header.height,
        channels,
        bit_depth,
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
    let header = Header::parse(bytes)?;
    let size = (header.width, header.height);
    options.limits.charge_image(size.0, size.1, options.color.channels())?;
    let data = bytes.get(header.data_offset..).unwrap_or_default();
    match header.coding {
        Coding::Plain => {
            // Checked before the image is allocated: a header alone must not cost memory.
            let stride = require_rows(&header, data)?;
            image.reset(size, options.color.channels(), &options.limits)?;
            let rows = PlainRows { header: &header, color: options.color };
            rows.read(data, stride, scratch, image);
        }
        Coding::Rle4 | Coding::Rle8 => {
            image.reset(size, options.color.channels(), &options.limits)?;
            rle::decode(&header, data, options.color, scratch, image)?;
        }
    }
    Ok(Orientation::Upright)
}

/// The row of the image that row `y` of the file becomes.
fn target_row(header: &Header, y: usize) -> usize {
    if header.top_down { y } else { header.height as usize - 1 - y }
}

/// The bytes from one row to the next, once `data` is known to hold all rows. The padding of the
/// last row may be missing.
fn require_rows(header: &Header, data: &[u8]) -> Result<usize, DecodeError> {
    let row_bits = u64::from(header.width) * u64::from(header.bits);
    let stride = row_bits.div_ceil(32) * 4;
    let need = stride * u64::from(header.height - 1) + row_bits.div_ceil(8);
    let have = data.len() as u64;
    if need > have {
        let offset = header.data_offset as u64;
        let format = Format::Bmp;
        let what = "pixel data";
        return Err(Defect::Truncated { format, what, offset, need, have }.into());
    }
    usize::try_from(stride).map_err(|_| {
        Defect::Value { format: Format::Bmp, what: "row size in bytes", found: stride }.into()
    })
}

struct PlainRows<'a> {
    header: &'a Header,
    color: Color,
}

impl PlainRows<'_> {
    fn read(&self, data: &[u8], stride: usize, scratch: &mut Vec<u8>, image: &mut Image) {
        let width = image.width as usize;
        scratch.resize(width * 3, 0);
        let rows = data.chunks(stride).take(image.height as usize);
        for (y, row) in rows.enumerate() {
            let to = image.row_mut(target_row(self.header, y));
            self.convert(row, &mut scratch[..], width, to);
        }
    }

    fn convert(&self, row: &[u8], scratch: &mut [u8], width: usize, to: &mut [u8]) {
        let masks = &self.header.masks;
        let palette = Layout::Index(&self.header.palette);
        match self.header.bits {
            bits @ (1 | 2 | 4) => {
                let indexes = &mut scratch[..width];
                pixel::unpack(row, bits, 1, indexes);
                palette.convert(indexes, to, self.color);
            }
            8 => palette.convert(row, to, self.color),
            16 => {
                spread(row, scratch, |pair: [u8; 2]| masks.rgb(u16::from_le_bytes(pair).into()));
                Layout::Rgb.convert(scratch, to, self.color);
            }
            24 => {
                spread(row, scratch, |[b, g, r]: [u8; 3]| [r, g, b]);
                Layout::Rgb.convert(scratch, to, self.color);
            }
            _ if *masks == Masks::BGRX => {
                spread(row, scratch, |[b, g, r, _]: [u8; 4]| [r, g, b]);
                Layout::Rgb.convert(scratch, to, self.color);
            }
            _ => {
                spread(row, scratch, |four: [u8; 4]| masks.rgb(u32::from_le_bytes(four)));
                Layout::Rgb.convert(scratch, to, self.color);
                if self.color == Color::Rgba && masks.alpha != 0 {
                    let pixels = row.as_chunks::<4>().0.iter().zip(to.as_chunks_mut::<4>().0);
                    for (four, [.., alpha]) in pixels {
                        *alpha = stretched(u32::from_le_bytes(*four), masks.alpha);
                    }
                }
            }
        }
    }
}

fn spread<const N: usize>(from: &[u8], to: &mut [u8], rgb: impl Fn([u8; N]) -> [u8; 3]) {
    let (to, _) = to.as_chunks_mut::<3>();
    for (from, to) in from.as_chunks::<N>().0.iter().zip(to) {
        *to = rgb(*from);
    }
}
