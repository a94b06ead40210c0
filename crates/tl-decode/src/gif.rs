//! The first frame of GIF images, as Pillow shows it: what the frame leaves of the image has the
//! transparent index, else index 0, and transparent pixels keep their colour.
//!
//! Further frames are not decoded, but their blocks must be there.

mod frame;

use weezl::{BitOrder, LzwStatus, decode::Decoder};

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::Layout;
use frame::{Blocks, Frame};

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let frame = Frame::parse(&mut Blocks::of(bytes))?;
    Ok(ImageInfo {
        format: Format::Gif,
        width: frame.canvas.0,
        height: frame.canvas.1,
        channels: 1,
        bit_depth: frame.bits,
        sample_format: SampleFormat::Unsigned,
        has_alpha: frame.transparent.is_some(),
        orientation: Orientation::Upright,
    })
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let mut blocks = Blocks::of(bytes);
    let frame = Frame::parse(&mut blocks)?;
    let channels = options.color.channels();
    options.limits.charge_image(frame.canvas.0, frame.canvas.1, channels)?;
    options.limits.charge_working(CODE_TABLE + u64::from(frame.canvas.0))?;
    require_plausible(&frame, &blocks)?;
    image.reset(frame.canvas, channels, &options.limits)?;
    scratch.clear();
    scratch.resize(frame.canvas.0 as usize, frame.transparent.unwrap_or(0));
    for y in 0..image.height as usize {
        frame.convert(scratch, options.color, image.row_mut(y));
    }
    let mut pixels = Pixels::of(&frame, blocks);
    let indexes = &mut scratch[..usize::from(frame.width)];
    let start = usize::from(frame.x) * image.pixel_bytes();
    for y in rows(&frame) {
        pixels.read(indexes)?;
        let row = image.row_mut(usize::from(frame.y) + y);
        let row = &mut row[start..start + indexes.len() * usize::from(channels)];
        frame.convert(indexes, options.color, row);
    }
    let mut blocks = pixels.blocks;
    blocks.skip_sub_blocks()?;
    blocks.finish()?;
    Ok(Orientation::Upright)
}

/// Memory of the LZW decoder: entries and the bytes of the longest word.
const CODE_TABLE: u64 = 64 << 10;

/// Refuses a frame that the file cannot fill, before the image is allocated.
fn require_plausible(frame: &Frame, blocks: &Blocks<'_>) -> Result<(), DecodeError> {
    /// A code of at least 9 bits stands for at most 4096 pixels, a shorter one for 256.
    const MAX_INFLATION: u64 = 4096;
    let need = u64::from(frame.width) * u64::from(frame.height);
    let have = (blocks.left() as u64).saturating_mul(MAX_INFLATION);
    if need > have {
        let what = "pixels (at most, inflated)";
        return Err(Defect::ShortOutput { format: Format::Gif, what, need, have }.into());
    }
    Ok(())
}

/// The rows of a frame in the order of the file.
fn rows(frame: &Frame) -> impl Iterator<Item = usize> {
    const PLAIN: &[(usize, usize)] = &[(0, 1)];
    const INTERLACED: &[(usize, usize)] = &[(0, 8), (4, 8), (2, 4), (1, 2)];
    let height = usize::from(frame.height);
    let passes = if frame.interlaced { INTERLACED } else { PLAIN };
    passes.iter().flat_map(move |&(first, step)| (first..height).step_by(step))
}

impl Frame {
    fn convert(&self, indexes: &[u8], color: Color, to: &mut [u8]) {
        Layout::Index(&self.palette).convert(indexes, to, color);
        if let (Color::Rgba, Some(transparent)) = (color, self.transparent) {
            for ([.., alpha], index) in to.as_chunks_mut::<4>().0.iter_mut().zip(indexes) {
                if *index == transparent {
                    *alpha = 0;
                }
            }
        }
    }
}

/// The indexes of a frame.
struct Pixels<'a> {
    blocks: Blocks<'a>,
    /// The unread bytes of the sub-block.
    data: &'a [u8],
    decoder: Decoder,
    done: u64,
    size: u64,
}

impl<'a> Pixels<'a> {
    fn of(frame: &Frame, blocks: Blocks<'a>) -> Self {
        let decoder = Decoder::new(BitOrder::Lsb, frame.code_size);
        let size = u64::from(frame.width) * u64::from(frame.height);
        Self { blocks, data: &[], decoder, done: 0, size }
    }

    /// Fills `row`.
    fn read(&mut self, row: &mut [u8]) -> Result<(), DecodeError> {
        let mut filled = 0;
        while filled < row.len() {
            let result = self.decoder.decode_bytes(self.data, &mut row[filled..]);
            filled += result.consumed_out;
            self.data = self.data.get(result.consumed_in..).unwrap_or_default();
            match result.status {
                Ok(LzwStatus::Ok) => {}
                // Codes that are read may still have pixels, so that the next ones are read last.
                Ok(LzwStatus::NoProgress) if self.data.is_empty() => {
                    self.data = self.blocks.sub_block()?;
                    if self.data.is_empty() {
                        return Err(self.ends_early(filled));
                    }
                }
                Ok(LzwStatus::Done) if filled == row.len() => {}
                Ok(LzwStatus::Done | LzwStatus::NoProgress) | Err(_) => {
                    return Err(self.ends_early(filled));
                }
            }
        }
        self.done += row.len() as u64;
        Ok(())
    }

    /// The error of compressed data that ends or breaks in a row of which pixels are filled.
    fn ends_early(&self, filled: usize) -> DecodeError {
        let have = self.done + filled as u64;
        let what = "pixels of the first frame";
        Defect::ShortOutput { format: Format::Gif, what, need: self.size, have }.into()
    }
}
