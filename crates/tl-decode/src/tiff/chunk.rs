//! One strip or tile: decompression, bit order and predictor.

use flate2::{Decompress, FlushDecompress};
use weezl::{BitOrder, LzwStatus};

use super::fax::{self, Fax};
use super::layout::{Layout, Photometric};
use super::predictor;
use crate::error::{DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::Image;
use crate::jpeg::{JpegDecoder, StoredColor};
use crate::limits::WorkingMemory;

const NONE: u16 = 1;
const CCITT_RLE: u16 = 2;
const CCITT_T4: u16 = 3;
const CCITT_T6: u16 = 4;
pub(super) const LZW: u16 = 5;
pub(super) const JPEG: u16 = 7;
pub(super) const DEFLATE: u16 = 8;
pub(super) const ADOBE_DEFLATE: u16 = 32_946;
const PACK_BITS: u16 = 32_773;
pub(super) const LZMA: u16 = 34_925;
pub(super) const ZSTD: u16 = 50_000;

/// Decodes the chunks of one image into its buffers.
pub(super) struct ChunkDecoder<'a> {
    file: &'a [u8],
    layout: &'a Layout<'a>,
    row_bytes: usize,
}

impl<'a> ChunkDecoder<'a> {
    pub(super) fn new(file: &'a [u8], layout: &'a Layout<'a>) -> Result<Self, DecodeError> {
        let known = matches!(
            layout.compression,
            NONE | CCITT_RLE
                | CCITT_T4
                | CCITT_T6
                | LZW
                | JPEG
                | DEFLATE
                | ADOBE_DEFLATE
                | PACK_BITS
        );
        let known = known
            || cfg!(feature = "tiff-lzma") && layout.compression == LZMA
            || cfg!(feature = "tiff-zstd") && layout.compression == ZSTD;
        if !known {
            return Err(Feature::TiffCompression(layout.compression).into());
        }
        let is_fax = matches!(layout.compression, CCITT_RLE | CCITT_T4 | CCITT_T6);
        if is_fax && (layout.bits, layout.samples) != (1, 1)
            || layout.compression == JPEG && layout.bits != 8
        {
            return Err(super::layout::value("BitsPerSample", layout.bits.into()));
        }
        predictor::check(layout)?;
        let row_bytes = usize::try_from(layout.row_bytes()).unwrap_or(usize::MAX);
        Ok(Self { file, layout, row_bytes })
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// The size of `rows` rows once decompressed.
    fn packed_size(&self, rows: u32) -> usize {
        let (across, down) = self.layout.subsampling;
        if (across, down) == (1, 1) {
            return self.row_bytes.saturating_mul(rows as usize);
        }
        let units = u64::from(self.layout.chunks.width.div_ceil(across.into()))
            .saturating_mul(rows.div_ceil(down.into()).into());
        let unit_bytes = u64::from(across) * u64::from(down) + 2;
        usize::try_from(units.saturating_mul(unit_bytes)).unwrap_or(usize::MAX)
    }

    /// The bytes of chunk `index`, which has `rows` rows.
    pub(super) fn stored(&self, index: usize, rows: u32) -> Result<&'a [u8], DecodeError> {
        let plain = self.layout.compression == NONE;
        self.layout.chunks.bytes(self.file, index, plain.then_some(self.packed_size(rows)))
    }

    /// Decodes `rows` rows of chunk `index` into `out`, which has exactly their size.
    pub(super) fn decode(
        &self,
        index: usize,
        rows: u32,
        spare: &mut Vec<u8>,
        jpeg: &mut JpegDecoder,
        memory: WorkingMemory,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        // Only the optional codecs allocate memory themselves.
        #[cfg(not(any(feature = "tiff-lzma", feature = "tiff-zstd")))]
        let _ = memory;
        let layout = self.layout;
        let size = self.packed_size(rows);
        let mut data = self.stored(index, rows)?;
        if layout.compression == JPEG {
            return self.decode_jpeg(data, rows, jpeg, out);
        }
        if layout.reversed_bits {
            spare.clear();
            spare.extend(data.iter().map(|byte| byte.reverse_bits()));
            data = spare;
        }
        // Before the output is allocated: a few bytes must not cost many.
        self.require_plausible(data.len(), size)?;
        out.resize(size, 0);
        match layout.compression {
            NONE => copy_exact(data, out)?,
            PACK_BITS => unpack_bits(data, out)?,
            LZW => lzw(data, out)?,
            DEFLATE | ADOBE_DEFLATE => inflate(data, out)?,
            #[cfg(feature = "tiff-lzma")]
            LZMA => super::lzma::decode(data, out, memory)?,
            #[cfg(feature = "tiff-zstd")]
            ZSTD => super::zstd::decode(data, out, memory)?,
            CCITT_RLE | CCITT_T4 | CCITT_T6 => {
                let kind = match layout.compression {
                    CCITT_RLE => Fax::ModifiedHuffman,
                    CCITT_T4 if layout.t4_options & 1 == 0 => Fax::Group3,
                    CCITT_T4 => Fax::Group3TwoDimensional,
                    _ => Fax::Group4,
                };
                fax::decode(kind, data, layout.chunks.width, self.row_bytes, out)?;
            }
            other => return Err(Feature::TiffCompression(other).into()),
        }
        if layout.subsampling == (1, 1) {
            predictor::undo(layout, self.row_bytes, out);
        } else {
            std::mem::swap(spare, out);
            out.resize(self.row_bytes.saturating_mul(rows as usize), 0);
            self.spread_units(spare, out);
        }
        Ok(())
    }

    /// Gives each pixel of a YCbCr unit its Y and the Cb and Cr of the unit (TIFF 6.0 section 21).
    fn spread_units(&self, units: &[u8], out: &mut [u8]) {
        let (across, down) = self.layout.subsampling;
        let across = usize::from(across);
        let down = usize::from(down);
        let width = self.layout.chunks.width as usize;
        let unit_row_bytes = width.div_ceil(across) * (across * down + 2);
        for (y, row) in out.chunks_exact_mut(self.row_bytes).enumerate() {
            let at = y / down * unit_row_bytes;
            let unit_row = units.get(at..at + unit_row_bytes).unwrap_or_default();
            let units = unit_row.chunks_exact(across * down + 2);
            for (pixels, unit) in row.chunks_mut(across * 3).zip(units) {
                let (luma, chroma) = unit.split_at(across * down);
                let luma = &luma[y % down * across..];
                for (pixel, luma) in pixels.chunks_exact_mut(3).zip(luma) {
                    pixel.copy_from_slice(&[*luma, chroma[0], chroma[1]]);
                }
            }
        }
    }

    fn require_plausible(&self, have: usize, size: usize) -> Result<(), DecodeError> {
        let most_per_byte = match self.layout.compression {
            NONE => 1,
            // Two bytes give at most 128.
            PACK_BITS => 64,
            // The longest match of 258 bytes takes 2 bits.
            DEFLATE | ADOBE_DEFLATE => 1032,
            // A 12-bit code stands for at most 4 096 bytes.
            LZW => 2731,
            // A match of 273 bytes takes 14 decisions of at least 0.022 bits each.
            LZMA => 7100,
            // A block of 128 KiB takes at least 4 bytes.
            ZSTD => 32_768,
            // One bit codes a whole row.
            _ => self.row_bytes.saturating_mul(8),
        };
        if have.saturating_mul(most_per_byte) < size {
            return Err(short_output("strip or tile", size, have.saturating_mul(most_per_byte)));
        }
        Ok(())
    }

    fn decode_jpeg(
        &self,
        data: &[u8],
        rows: u32,
        jpeg: &mut JpegDecoder,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let color = match self.layout.photometric {
            Photometric::YCbCr => StoredColor::YCbCr,
            Photometric::Cmyk
            | Photometric::WhiteIsZero
            | Photometric::BlackIsZero
            | Photometric::Rgb { .. }
            | Photometric::Palette(_)
            | Photometric::CieLab => StoredColor::AsIs,
        };
        let samples = self.layout.chunk_samples();
        let mut picture = Image { data: std::mem::take(out), ..Image::new() };
        match self.layout.jpeg_tables {
            Some(tables) => jpeg.decode_part(&join_tables(tables, data), color, &mut picture)?,
            None => jpeg.decode_part(data, color, &mut picture)?,
        }
        let width = picture.width;
        let height = picture.height;
        if width != self.layout.chunks.width
            || height < rows
            || u16::from(picture.channels) != samples
        {
            let found = u64::from(width) << 32 | u64::from(height);
            return Err(super::layout::value("size of the JPEG image in a strip or tile", found));
        }
        *out = picture.data;
        out.truncate(self.row_bytes.saturating_mul(rows as usize));
        Ok(())
    }
}

fn copy_exact(data: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    let size = out.len();
    let from = data.get(..size).ok_or_else(|| short_output("strip or tile", size, data.len()))?;
    out.copy_from_slice(from);
    Ok(())
}

/// TIFF 6.0 section 9.
fn unpack_bits(data: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    let size = out.len();
    let mut input = data;
    let mut done = 0;
    while done < size {
        let Some((&head, rest)) = input.split_first() else {
            return Err(short_output("PackBits data", size, done));
        };
        let room = &mut out[done..];
        match head {
            0..128 => {
                let count = usize::from(head) + 1;
                let Some((literals, rest)) = rest.split_at_checked(count) else {
                    return Err(short_output("PackBits data", size, done));
                };
                let used = count.min(room.len());
                room[..used].copy_from_slice(&literals[..used]);
                done += used;
                input = rest;
            }
            128 => input = rest,
            129.. => {
                let Some((&value, rest)) = rest.split_first() else {
                    return Err(short_output("PackBits data", size, done));
                };
                let used = (257 - usize::from(head)).min(room.len());
                room[..used].fill(value);
                done += used;
                input = rest;
            }
        }
    }
    Ok(())
}

fn lzw(data: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    // Writers before TIFF 5.0 packed codes from the least significant bit and switched the code
    // size one code later; their first code, 256, shows as these bits (as in libtiff).
    let old_style = matches!(data, [0, second, ..] if second & 1 == 1);
    let mut decoder = if old_style {
        weezl::decode::Decoder::new(BitOrder::Lsb, 8)
    } else {
        weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8)
    };
    let size = out.len();
    let mut input = data;
    let mut done = 0;
    while done < size {
        let result = decoder.decode_bytes(input, &mut out[done..]);
        done += result.consumed_out;
        input = input.get(result.consumed_in..).unwrap_or_default();
        match result.status {
            Ok(LzwStatus::Ok) => {}
            Ok(LzwStatus::Done | LzwStatus::NoProgress) | Err(_) => break,
        }
    }
    if done < size { Err(short_output("LZW data", size, done)) } else { Ok(()) }
}

fn inflate(data: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    let mut decoder = Decompress::new(true);
    let result = decoder.decompress(data, out, FlushDecompress::Finish);
    let done = usize::try_from(decoder.total_out()).unwrap_or(usize::MAX);
    if result.is_err() || done < out.len() {
        return Err(short_output("Deflate data", out.len(), done));
    }
    Ok(())
}

/// An abbreviated JPEG stream with the tables that its file keeps apart.
fn join_tables(tables: &[u8], data: &[u8]) -> Vec<u8> {
    const SOI: [u8; 2] = [0xFF, 0xD8];
    const EOI: [u8; 2] = [0xFF, 0xD9];
    let tables = tables.strip_suffix(&EOI).unwrap_or(tables);
    let data = data.strip_prefix(&SOI).unwrap_or(data);
    [tables, data].concat()
}

pub(super) fn short_output(what: &'static str, need: usize, have: usize) -> DecodeError {
    let need = need as u64;
    let have = have as u64;
    Defect::ShortOutput { format: Format::Tiff, what, need, have }.into()
}
