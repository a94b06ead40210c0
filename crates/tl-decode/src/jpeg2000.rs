//! JPEG 2000 through the `hayro-jpeg2000` crate, in files of boxes and as codestreams.
//!
//! The headers are walked here, so that limits are charged before the crate sees the file, and a file
//! that is cut is an error. Lossless images have Pillow's pixels.

mod codestream;
mod pixels;

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{ImageInfo, SampleFormat};
use crate::orientation::Orientation;
use codestream::{Bytes, Header};
pub(crate) use pixels::decode;

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let file = File::parse(bytes)?;
    Ok(file.info(&Header::parse(file.stream)?))
}

/// The parts of a file that are read here.
#[derive(Clone, Copy, Debug)]
struct File<'a> {
    stream: Bytes<'a>,
    /// Whether four channels are inks: CMYK, or YCCK, which the codec converts.
    is_cmyk: bool,
    /// Channels of the palette, 0 without one.
    palette_columns: u8,
}

impl<'a> File<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Bytes { data: bytes, at: 0 };
        let mut file = Self { stream: reader, is_cmyk: false, palette_columns: 0 };
        if bytes.starts_with(&[0xFF, 0x4F]) {
            return Ok(file);
        }
        while !reader.data.is_empty() {
            match next_box(&mut reader)? {
                (b"jp2h", contents) => file.parse_header(contents)?,
                (b"jp2c", stream) => {
                    file.stream = stream;
                    return Ok(file);
                }
                _ => {}
            }
        }
        Err(Defect::Missing { format: Format::Jpeg2000, what: "a codestream" }.into())
    }

    fn parse_header(&mut self, mut boxes: Bytes<'a>) -> Result<(), DecodeError> {
        while !boxes.data.is_empty() {
            match next_box(&mut boxes)? {
                (b"colr", contents) => {
                    self.is_cmyk |= matches!(contents.data, [1, _, _, 0, 0, 0, 12 | 13, ..]);
                }
                (b"pclr", contents) => {
                    self.palette_columns = contents.data.get(2).copied().unwrap_or(0);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn info(&self, header: &Header) -> ImageInfo {
        ImageInfo {
            format: Format::Jpeg2000,
            width: header.width,
            height: header.height,
            channels: header.components,
            bit_depth: header.bit_depth,
            sample_format: match header.is_signed {
                true => SampleFormat::Signed,
                false => SampleFormat::Unsigned,
            },
            has_alpha: match header.components {
                2 => true,
                4 => !self.is_cmyk,
                _ => false,
            },
            orientation: Orientation::Upright,
        }
    }
}

/// The kind and the contents of a box.
fn next_box<'a>(reader: &mut Bytes<'a>) -> Result<(&'a [u8; 4], Bytes<'a>), DecodeError> {
    let start = *reader;
    let length = reader.u32()?;
    let kind = reader.data.first_chunk();
    let _kind: [u8; 4] = reader.take()?;
    let (length, header) = match length {
        0 => (start.data.len() as u64, 8),
        1 => (reader.take().map(u64::from_be_bytes)?, 16),
        length => (length.into(), 8),
    };
    let size = length.checked_sub(header).ok_or_else(|| codestream::value("box length", length))?;
    Ok((kind.unwrap_or(b"    "), reader.part(size)?))
}
