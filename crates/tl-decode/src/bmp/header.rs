//! The file header, the information headers of 12 to 124 bytes, bit masks and the palette.

use crate::error::{DecodeError, Defect, Feature};
use crate::format::Format;
use crate::pixel::Palette;

const FILE_HEADER: usize = 14;
/// `BITMAPCOREHEADER` of OS/2 1.x and Windows 2.
const CORE: u32 = 12;
/// `BITMAPINFOHEADER`; the later headers begin with it.
const INFO: u32 = 40;
/// `BITMAPCOREHEADER2` of OS/2 2.x, whose compression values 3 and 4 mean something else.
const OS2_V2: u32 = 64;

/// The storage of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Rle8,
    Rle4,
}

/// The bits of each channel in a 16- or 32-bit pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) red: u32,
    pub(super) green: u32,
    pub(super) blue: u32,
    pub(super) alpha: u32,
}

impl Masks {
    pub(super) const BGRX: Self =
        Self { red: 0x00FF_0000, green: 0x0000_FF00, blue: 0x0000_00FF, alpha: 0 };
    const BGR15: Self = Self { red: 0x7C00, green: 0x03E0, blue: 0x001F, alpha: 0 };

    /// The colour of `pixel`, each channel stretched to 0..=255 and rounded down as in Pillow.
    pub(super) fn rgb(&self, pixel: u32) -> [u8; 3] {
        [self.red, self.green, self.blue].map(|mask| stretched(pixel, mask))
    }

    fn require_contiguous(self) -> Result<Self, DecodeError> {
        for mask in [self.red, self.green, self.blue] {
            let low = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
            if low & low.wrapping_add(1) != 0 {
                return Err(Feature::BmpMask(mask).into());
            }
        }
        Ok(self)
    }
}

/// The bits of `mask` in `pixel`, stretched to 0..=255 and rounded down.
pub(super) fn stretched(pixel: u32, mask: u32) -> u8 {
    let Some(shift) = (mask != 0).then(|| mask.trailing_zeros()) else { return 0 };
    let value = u64::from((pixel & mask) >> shift);
    let max = u64::from(mask >> shift);
    u8::try_from(value * 255 / max).unwrap_or(u8::MAX)
}

/// Everything in front of the pixels.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) top_down: bool,
    pub(super) bits: u8,
    pub(super) coding: Coding,
    pub(super) masks: Masks,
    pub(super) palette: Palette,
    pub(super) data_offset: usize,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let file_offset = u32_at(bytes, 10)?;
        let size = u32_at(bytes, FILE_HEADER)?;
        let fields = Fields::parse(bytes, size)?;
        let width = fields.width;
        let height = fields.height.unsigned_abs();
        if width == 0 || height == 0 {
            return Err(value("width or height", 0));
        }
        let coding = coding(size, &fields)?;
        let mut end = FILE_HEADER + size as usize;
        let masks = masks(bytes, size, &fields, &mut end)?;

        let mut palette = [[0; 3]; 256];
        let mut data_offset = to_usize(file_offset);
        if fields.bits <= 8 {
            let palette_bytes = read_palette(bytes, size, &fields, end, &mut palette)?;
            // Files that forget to count the palette into the offset of the pixels.
            if data_offset == FILE_HEADER + size as usize {
                data_offset += palette_bytes;
            }
            end += palette_bytes;
        }
        if data_offset == 0 {
            data_offset = end;
        }
        let top_down = fields.height < 0;
        let bits = u8::try_from(fields.bits).unwrap_or(0);
        Ok(Self { width, height, top_down, bits, coding, masks, palette, data_offset })
    }
}

/// The fields that all information headers share.
struct Fields {
    width: u32,
    height: i32,
    bits: u16,
    compression: u32,
    colors: u32,
}

impl Fields {
    fn parse(bytes: &[u8], size: u32) -> Result<Self, DecodeError> {
        let at = FILE_HEADER;
        match size {
            CORE => Ok(Self {
                width: u16_at(bytes, at + 4)?.into(),
                height: u16_at(bytes, at + 6)?.into(),
                bits: u16_at(bytes, at + 10)?,
                compression: 0,
                colors: 0,
            }),
            INFO | 52 | 56 | OS2_V2 | 108 | 124 => {
                // The whole header must be there, not only the fields that are read.
                u32_at(bytes, at + size as usize - 4)?;
                Ok(Self {
                    width: u32_at(bytes, at + 4)?,
                    height: u32_at(bytes, at + 8)?.cast_signed(),
                    bits: u16_at(bytes, at + 14)?,
                    compression: u32_at(bytes, at + 16)?,
                    colors: u32_at(bytes, at + 32)?,
                })
            }
            other => Err(Feature::BmpHeader(other).into()),
        }
    }
}

const BI_RGB: u32 = 0;
const BI_RLE8: u32 = 1;
const BI_RLE4: u32 = 2;
const BI_BITFIELDS: u32 = 3;

fn coding(size: u32, fields: &Fields) -> Result<Coding, DecodeError> {
    if !matches!(fields.bits, 1 | 2 | 4 | 8 | 16 | 24 | 32) {
        return Err(Feature::BmpBits(fields.bits).into());
    }
    match (fields.compression, fields.bits) {
        (BI_RGB, _) => Ok(Coding::Plain),
        (BI_RLE8, 8) => Ok(Coding::Rle8),
        (BI_RLE4, 4) => Ok(Coding::Rle4),
        (BI_BITFIELDS, 16 | 24 | 32) if size != OS2_V2 => Ok(Coding::Plain),
        (other, _) => Err(Feature::BmpCompression(other).into()),
    }
}

/// The masks, from the header or from after it; `end` moves past them.
fn masks(bytes: &[u8], size: u32, fields: &Fields, end: &mut usize) -> Result<Masks, DecodeError> {
    let default = if fields.bits == 16 { Masks::BGR15 } else { Masks::BGRX };
    if fields.compression != BI_BITFIELDS {
        return Ok(default);
    }
    let at = FILE_HEADER + INFO as usize;
    let alpha = if size >= 56 { u32_at(bytes, at + 12)? } else { 0 };
    let masks = Masks {
        red: u32_at(bytes, at)?,
        green: u32_at(bytes, at + 4)?,
        blue: u32_at(bytes, at + 8)?,
        alpha,
    };
    if size == INFO {
        *end += 12;
    }
    if masks == (Masks { red: 0, green: 0, blue: 0, alpha: 0 }) || fields.bits == 24 {
        return Ok(default);
    }
    masks.require_contiguous()
}

/// Reads the palette at `at` and gives its size in bytes.
fn read_palette(
    bytes: &[u8],
    size: u32,
    fields: &Fields,
    at: usize,
    palette: &mut Palette,
) -> Result<usize, DecodeError> {
    /// More entries than this are a damaged count; entries past 256 have no use.
    const MAX_COLORS: u32 = 65_536;
    let entry = if size == CORE { 3 } else { 4 };
    let colors = if fields.colors == 0 { 1 << fields.bits } else { fields.colors };
    if colors > MAX_COLORS {
        return Err(value("palette size", colors.into()));
    }
    let colors = colors as usize;
    let stored = bytes.get(at..).unwrap_or_default();
    for (to, from) in palette.iter_mut().zip(stored.chunks_exact(entry).take(colors)) {
        *to = [from[2], from[1], from[0]];
    }
    // Pillow drops a palette that maps each index to itself and then shows indexes beyond it.
    let counts = 0..=u8::MAX;
    if fields.bits == 8 && counts.clone().zip(&*palette).take(colors).all(|(i, c)| *c == [i; 3]) {
        for (grey, to) in counts.zip(palette) {
            *to = [grey; 3];
        }
    }
    Ok(colors * entry)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, DecodeError> {
    field(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, DecodeError> {
    field(bytes, at).map(u32::from_le_bytes)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], DecodeError> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(|| {
        let need = (at + N) as u64;
        let have = bytes.len() as u64;
        Defect::Truncated { format: Format::Bmp, what: "header", offset: 0, need, have }.into()
    })
}

fn value(what: &'static str, found: u64) -> DecodeError {
    Defect::Value { format: Format::Bmp, what, found }.into()
}

fn to_usize(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
