//! The blocks of a file, and everything in front of the pixels of its first frame.

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::pixel::Palette;

const SIGNATURE_SIZE: usize = 6;
const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2C;
const TRAILER: u8 = 0x3B;
const GRAPHIC_CONTROL: u8 = 0xF9;

/// The first frame, and its place in the image.
pub(super) struct Frame {
    /// The size of the image: that of the screen, or more if the frame is not inside it.
    pub(super) canvas: (u32, u32),
    pub(super) x: u16,
    pub(super) y: u16,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) interlaced: bool,
    /// The colours of the frame, else those of the file, else shades of grey.
    pub(super) palette: Palette,
    /// Bits of an index of that palette.
    pub(super) bits: u8,
    pub(super) transparent: Option<u8>,
    /// Bits of an index in the compressed data.
    pub(super) code_size: u8,
}

impl Frame {
    /// Reads up to the pixels of the first frame.
    pub(super) fn parse(blocks: &mut Blocks<'_>) -> Result<Self, DecodeError> {
        let [w0, w1, h0, h1, flags, _, _] = *blocks.take("screen descriptor")?;
        let screen = (u16::from_le_bytes([w0, w1]), u16::from_le_bytes([h0, h1]));
        let global = blocks.palette(flags)?;
        let mut transparent = None;
        loop {
            match blocks.kind()? {
                EXTENSION => {
                    let label = blocks.byte("extension")?;
                    let control = blocks.sub_block()?;
                    if label == GRAPHIC_CONTROL
                        && let [flags, _, _, index, ..] = *control
                        && flags & 1 != 0
                    {
                        transparent = Some(index);
                    }
                    if !control.is_empty() {
                        blocks.skip_sub_blocks()?;
                    }
                }
                IMAGE => break,
                TRAILER => {
                    return Err(Defect::Missing { format: Format::Gif, what: "an image" }.into());
                }
                _ => {}
            }
        }
        let [x0, x1, y0, y1, w0, w1, h0, h1, flags] = *blocks.take("image descriptor")?;
        let x = u16::from_le_bytes([x0, x1]);
        let y = u16::from_le_bytes([y0, y1]);
        let width = u16::from_le_bytes([w0, w1]);
        let height = u16::from_le_bytes([h0, h1]);
        if width == 0 || height == 0 {
            return Err(value("width or height", 0));
        }
        let colors = blocks.palette(flags)?.or(global).unwrap_or_default();
        let code_size = blocks.byte("code size")?;
        if !(1..=8).contains(&code_size) {
            return Err(value("code size", code_size.into()));
        }
        let right = u32::from(x) + u32::from(width);
        let bottom = u32::from(y) + u32::from(height);
        Ok(Self {
            canvas: (right.max(screen.0.into()), bottom.max(screen.1.into())),
            x,
            y,
            width,
            height,
            interlaced: flags & 0x40 != 0,
            palette: palette_of(colors),
            bits: if colors.is_empty() { 8 } else { colors.len().ilog2().to_le_bytes()[0] },
            transparent,
            code_size,
        })
    }
}

/// The palette of these colours. Pillow takes colours that are shades of grey in order for no
/// palette, and shows indexes beyond them as grey, too.
fn palette_of(colors: &[[u8; 3]]) -> Palette {
    let mut palette = [[0; 3]; 256];
    let greys = (0..=u8::MAX).map(|grey| [grey; 3]);
    if greys.clone().zip(colors).all(|(grey, color)| grey == *color) {
        for (to, grey) in palette.iter_mut().zip(greys) {
            *to = grey;
        }
    }
    for (to, color) in palette.iter_mut().zip(colors) {
        *to = *color;
    }
    palette
}

/// A file from front to end.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Blocks<'a> {
    /// The blocks of a file, after its signature.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: SIGNATURE_SIZE }
    }

    /// Bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<&'a [u8; N], DecodeError> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.ok_or_else(|| self.truncated(what, N))?;
        self.at += N;
        Ok(bytes)
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        let [byte] = *self.take(what)?;
        Ok(byte)
    }

    /// The kind of the next block. Some encoders write zeros between blocks.
    fn kind(&mut self) -> Result<u8, DecodeError> {
        loop {
            match self.byte("block or trailer")? {
                0 => {}
                kind @ (EXTENSION | IMAGE | TRAILER) => return Ok(kind),
                _ => {
                    let offset = self.offset() - 1;
                    let what = "expected an extension, an image or the trailer";
                    return Err(Defect::Stray { format: Format::Gif, what, offset }.into());
                }
            }
        }
    }

    /// The palette that a descriptor with these flags announces.
    fn palette(&mut self, flags: u8) -> Result<Option<&'a [[u8; 3]]>, DecodeError> {
        if flags & 0x80 == 0 {
            return Ok(None);
        }
        let size = 3 << ((flags & 7) + 1);
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let colors = rest.get(..size).ok_or_else(|| self.truncated("palette", size))?;
        self.at += size;
        Ok(Some(colors.as_chunks().0))
    }

    /// A sub-block; the last of a block is empty.
    pub(super) fn sub_block(&mut self) -> Result<&'a [u8], DecodeError> {
        let size = usize::from(self.byte("sub-block")?);
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let data = rest.get(..size).ok_or_else(|| self.truncated("sub-block", size))?;
        self.at += size;
        Ok(data)
    }

    /// Moves past the sub-blocks that are left of a block.
    pub(super) fn skip_sub_blocks(&mut self) -> Result<(), DecodeError> {
        while !self.sub_block()?.is_empty() {}
        Ok(())
    }

    /// Moves past all further blocks, which must be there up to the trailer.
    pub(super) fn finish(&mut self) -> Result<(), DecodeError> {
        loop {
            match self.kind()? {
                EXTENSION => {
                    self.byte("extension")?;
                }
                IMAGE => {
                    let [.., flags] = *self.take::<9>("image descriptor")?;
                    self.palette(flags)?;
                    self.byte("code size")?;
                }
                _ => return Ok(()),
            }
            self.skip_sub_blocks()?;
        }
    }

    fn truncated(&self, what: &'static str, need: usize) -> DecodeError {
        let format = Format::Gif;
        let offset = self.offset();
        let need = need as u64;
        Defect::Truncated { format, what, offset, need, have: self.left() as u64 }.into()
    }
}

fn value(what: &'static str, found: u64) -> DecodeError {
    Defect::Value { format: Format::Gif, what, found }.into()
}
