//! The description of the pixels in a directory's tags: size, samples, colours, strips or tiles.

use super::directory::{Directory, Order, Values};
use crate::error::{DecodeError, Defect, Feature, Limit};
use crate::format::Format;
use crate::image::SampleFormat;
use crate::limits::{Limits, check};
use crate::orientation::Orientation;
use crate::pixel::Palette;

mod tag {
    pub(super) const WIDTH: u16 = 256;
    pub(super) const HEIGHT: u16 = 257;
    pub(super) const BITS_PER_SAMPLE: u16 = 258;
    pub(super) const COMPRESSION: u16 = 259;
    pub(super) const PHOTOMETRIC: u16 = 262;
    pub(super) const FILL_ORDER: u16 = 266;
    pub(super) const STRIP_OFFSETS: u16 = 273;
    pub(super) const SAMPLES_PER_PIXEL: u16 = 277;
    pub(super) const ROWS_PER_STRIP: u16 = 278;
    pub(super) const STRIP_BYTE_COUNTS: u16 = 279;
    pub(super) const PLANAR: u16 = 284;
    pub(super) const T4_OPTIONS: u16 = 292;
    pub(super) const PREDICTOR: u16 = 317;
    pub(super) const COLOR_MAP: u16 = 320;
    pub(super) const TILE_WIDTH: u16 = 322;
    pub(super) const TILE_HEIGHT: u16 = 323;
    pub(super) const TILE_OFFSETS: u16 = 324;
    pub(super) const TILE_BYTE_COUNTS: u16 = 325;
    pub(super) const EXTRA_SAMPLES: u16 = 338;
    pub(super) const SAMPLE_FORMAT: u16 = 339;
    pub(super) const JPEG_TABLES: u16 = 347;
    pub(super) const SUBSAMPLING: u16 = 530;
    pub(super) const XMP: u16 = 700;
}

/// The meaning of a pixel's samples.
#[derive(Clone, Debug)]
pub(super) enum Photometric {
    WhiteIsZero,
    BlackIsZero,
    Rgb { premultiplied: bool },
    Palette(Box<Palette>),
    Cmyk,
    YCbCr,
    CieLab,
}

/// The places of strips or tiles, and the pixels they cover.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    pub(super) tiled: bool,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) across: u32,
    pub(super) down: u32,
    offsets: Values<'a>,
    byte_counts: Option<Values<'a>>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Layout<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) bits: u16,
    pub(super) samples: u16,
    pub(super) format: SampleFormat,
    pub(super) photometric: Photometric,
    pub(super) planar: bool,
    pub(super) compression: u16,
    pub(super) predictor: u16,
    pub(super) reversed_bits: bool,
    pub(super) t4_options: u64,
    pub(super) jpeg_tables: Option<&'a [u8]>,
    /// Columns and rows of pixels that share a Cb and a Cr, stored as one unit; JPEG has its own.
    pub(super) subsampling: (u16, u16),
    pub(super) order: Order,
    pub(super) chunks: Chunks<'a>,
}

/// The size of the first image.
pub(super) fn size(directory: &Directory<'_>) -> Result<(u32, u32), DecodeError> {
    let one = |name, what| -> Result<u32, DecodeError> {
        let Some(values) = directory.find(name)? else {
            return Err(Defect::Missing { format: Format::Tiff, what }.into());
        };
        let found = values.get(0).unwrap_or(0);
        match u32::try_from(found) {
            Ok(value) if value > 0 => Ok(value),
            Ok(_) | Err(_) => Err(Defect::Value { format: Format::Tiff, what, found }.into()),
        }
    };
    Ok((one(tag::WIDTH, "ImageWidth")?, one(tag::HEIGHT, "ImageLength")?))
}

/// Bits per sample and samples per pixel.
pub(super) fn samples(directory: &Directory<'_>) -> Result<(u16, u16), DecodeError> {
    let bits = directory.find(tag::BITS_PER_SAMPLE)?;
    let bit_counts = bits.map_or(1, |bits| bits.len().max(1)) as u64;
    let samples = directory.number(tag::SAMPLES_PER_PIXEL, bit_counts)?;
    let first = bits.and_then(|bits| bits.get(0)).unwrap_or(1);
    let used = bits.map_or(0, |bits| bits.len()).min(usize::try_from(samples).unwrap_or(0));
    for i in 1..used {
        let other = bits.and_then(|bits| bits.get(i)).unwrap_or(first);
        if other != first {
            let what = "BitsPerSample that differs between samples:";
            return Err(value(what, other));
        }
    }
    Ok((short("BitsPerSample", first)?, short("SamplesPerPixel", samples)?))
}

/// The turn that makes the stored image upright; Pillow does it when it opens a TIFF file.
pub(super) fn orientation(
    file: &[u8],
    directory: &Directory<'_>,
) -> Result<Orientation, DecodeError> {
    let packet = directory.find(tag::XMP)?.map(|values| values.data);
    Ok(Orientation::of_metadata(Some(file), packet))
}

impl<'a> Layout<'a> {
    pub(super) fn read(directory: &Directory<'a>, limits: &Limits) -> Result<Self, DecodeError> {
        let (width, height) = size(directory)?;
        let (bits, samples) = samples(directory)?;
        let number = |name, what, default| short(what, directory.number(name, default)?);
        let planar = number(tag::PLANAR, "PlanarConfiguration", 1)? == 2 && samples > 1;
        Ok(Self {
            width,
            height,
            bits,
            samples,
            format: require_sample_format(directory, bits)?,
            photometric: photometric(directory, bits, samples)?,
            planar,
            compression: number(tag::COMPRESSION, "Compression", 1)?,
            predictor: number(tag::PREDICTOR, "Predictor", 1)?,
            reversed_bits: directory.number(tag::FILL_ORDER, 1)? == 2,
            t4_options: directory.number(tag::T4_OPTIONS, 0)?,
            jpeg_tables: directory.find(tag::JPEG_TABLES)?.map(|values| values.data),
            subsampling: subsampling(directory, planar)?,
            order: directory.order(),
            chunks: Chunks::read(directory, (width, height), limits)?,
        })
    }

    /// Samples per pixel in one chunk.
    pub(super) fn chunk_samples(&self) -> u16 {
        if self.planar { 1 } else { self.samples }
    }

    /// Whether samples are unsigned numbers of up to 8 bits.
    pub(super) fn is_bytes(&self) -> bool {
        self.format == SampleFormat::Unsigned && self.bits <= 8
    }

    /// Bytes of one row of a chunk.
    pub(super) fn row_bytes(&self) -> u64 {
        let row_samples = u64::from(self.chunks.width) * u64::from(self.chunk_samples());
        (row_samples * u64::from(self.bits)).div_ceil(8)
    }
}

/// 1 by 1 except in YCbCr images that are not JPEG compressed.
fn subsampling(directory: &Directory<'_>, planar: bool) -> Result<(u16, u16), DecodeError> {
    const YCBCR: u64 = 6;
    let jpeg = directory.number(tag::COMPRESSION, 1)? == u64::from(super::chunk::JPEG);
    if jpeg || directory.number(tag::PHOTOMETRIC, 0)? != YCBCR {
        return Ok((1, 1));
    }
    let factors = directory.find(tag::SUBSAMPLING)?;
    // Two by two is the default of the tag.
    let factor = |index| factors.map_or(Some(2), |factors| factors.get(index)).unwrap_or(0);
    let across = factor(0);
    let down = factor(1);
    let known = matches!((across, down), (1 | 2 | 4, 1 | 2 | 4));
    let predicted = directory.number(tag::PREDICTOR, 1)? > 1;
    let eight_bits = samples(directory)? == (8, 3);
    if !known || (across, down) != (1, 1) && (planar || predicted || !eight_bits) {
        let across = short("YCbCrSubSampling", across)?;
        let down = short("YCbCrSubSampling", down)?;
        return Err(Feature::TiffSubsampling(across, down).into());
    }
    Ok((short("YCbCrSubSampling", across)?, short("YCbCrSubSampling", down)?))
}

/// Whether the samples after those of the colour are alpha.
pub(super) fn has_alpha(directory: &Directory<'_>, samples: u16) -> Result<bool, DecodeError> {
    let extra = directory.find(tag::EXTRA_SAMPLES)?;
    let is_alpha = |index| extra.and_then(|extra| extra.get(index)).is_some_and(is_alpha);
    Ok(samples > 1 && (0..extra.map_or(0, |extra| extra.len())).any(is_alpha))
}

/// Whether the sample after those of the colour is alpha that the colours are not multiplied by, or
/// are divided by when they are read.
pub(super) fn alpha(directory: &Directory<'_>, layout: &Layout<'_>) -> Result<bool, DecodeError> {
    // Also where no pixel depends on it: what `probe` refuses is damaged here too.
    has_alpha(directory, layout.samples)?;
    let colors = match layout.photometric {
        Photometric::Rgb { .. } | Photometric::YCbCr | Photometric::CieLab => 3,
        Photometric::Cmyk => 4,
        Photometric::WhiteIsZero | Photometric::BlackIsZero | Photometric::Palette(_) => 1,
    };
    let extra = directory.find(tag::EXTRA_SAMPLES)?.and_then(|extra| extra.get(0));
    Ok(layout.samples > colors && extra.is_some_and(is_alpha))
}

/// Associated or unassociated alpha, by the value of `ExtraSamples`.
fn is_alpha(extra_sample: u64) -> bool {
    matches!(extra_sample, 1 | 2)
}

/// `None` for formats that are not decoded, such as complex numbers.
pub(super) fn sample_format(
    directory: &Directory<'_>,
) -> Result<Option<SampleFormat>, DecodeError> {
    /// The format of data that nobody described.
    const VOID: u64 = 4;
    Ok(match directory.number(tag::SAMPLE_FORMAT, 1)? {
        1 | VOID => Some(SampleFormat::Unsigned),
        2 => Some(SampleFormat::Signed),
        3 => Some(SampleFormat::Float),
        _ => None,
    })
}

fn require_sample_format(
    directory: &Directory<'_>,
    bits: u16,
) -> Result<SampleFormat, DecodeError> {
    if let Some(format) = sample_format(directory)? {
        return Ok(format);
    }
    let found = directory.number(tag::SAMPLE_FORMAT, 1)?;
    Err(Feature::TiffSamples { bits, format: u16::try_from(found).unwrap_or(u16::MAX) }.into())
}

fn photometric(
    directory: &Directory<'_>,
    bits: u16,
    samples: u16,
) -> Result<Photometric, DecodeError> {
    const ASSOCIATED_ALPHA: u64 = 1;
    let name = short("PhotometricInterpretation", directory.number(tag::PHOTOMETRIC, 0)?)?;
    let (photometric, least) = match name {
        0 => (Photometric::WhiteIsZero, 1),
        1 => (Photometric::BlackIsZero, 1),
        2 => {
            let extra = directory.number(tag::EXTRA_SAMPLES, 0)?;
            let premultiplied = samples >= 4 && extra == ASSOCIATED_ALPHA;
            (Photometric::Rgb { premultiplied }, 3)
        }
        3 if bits <= 8 => (Photometric::Palette(palette(directory, bits)?), 1),
        5 => (Photometric::Cmyk, 4),
        6 => (Photometric::YCbCr, 3),
        8 => (Photometric::CieLab, 3),
        other => return Err(Feature::TiffPhotometric(other).into()),
    };
    if samples < least {
        return Err(value("SamplesPerPixel", samples.into()));
    }
    Ok(photometric)
}

/// The colour map: all red values, then all green, then all blue, 16 bits each.
fn palette(directory: &Directory<'_>, bits: u16) -> Result<Box<Palette>, DecodeError> {
    let Some(map) = directory.find(tag::COLOR_MAP)? else {
        return Err(Defect::Missing { format: Format::Tiff, what: "ColorMap" }.into());
    };
    let colors = 1usize << bits;
    if map.len() < 3 * colors {
        return Err(value("ColorMap length", map.len() as u64));
    }
    let mut palette = Box::new([[0; 3]; 256]);
    for (index, color) in palette.iter_mut().take(colors).enumerate() {
        for (channel, to) in color.iter_mut().enumerate() {
            let level = map.get(channel * colors + index).unwrap_or(0);
            *to = u8::try_from(level >> 8 & 0xFF).unwrap_or(0);
        }
    }
    Ok(palette)
}

impl<'a> Chunks<'a> {
    fn read(
        directory: &Directory<'a>,
        image_size: (u32, u32),
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let (image_width, image_height) = image_size;
        let missing = |what| DecodeError::from(Defect::Missing { format: Format::Tiff, what });
        let tiled = directory.find(tag::TILE_WIDTH)?.is_some();
        let (width, height, offsets, byte_counts) = if tiled {
            let width = directory.number(tag::TILE_WIDTH, 0)?;
            let height = directory.number(tag::TILE_HEIGHT, 0)?;
            // Some writers put the offsets of tiles under the tags for strips.
            let offsets = match directory.find(tag::TILE_OFFSETS)? {
                Some(offsets) => Some(offsets),
                None => directory.find(tag::STRIP_OFFSETS)?,
            };
            let byte_counts = match directory.find(tag::TILE_BYTE_COUNTS)? {
                Some(byte_counts) => Some(byte_counts),
                None => directory.find(tag::STRIP_BYTE_COUNTS)?,
            };
            (width, height, offsets.ok_or_else(|| missing("TileOffsets"))?, byte_counts)
        } else {
            let rows = directory.number(tag::ROWS_PER_STRIP, image_height.into())?;
            let offsets = directory.find(tag::STRIP_OFFSETS)?;
            let byte_counts = directory.find(tag::STRIP_BYTE_COUNTS)?;
            let rows = rows.min(image_height.into());
            (image_width.into(), rows, offsets.ok_or_else(|| missing("StripOffsets"))?, byte_counts)
        };
        let (width, height) = match (u32::try_from(width), u32::try_from(height)) {
            (Ok(width), Ok(height)) if width > 0 && height > 0 => (width, height),
            _ => return Err(value("tile width or rows per strip", width.min(height))),
        };
        let across = image_width.div_ceil(width);
        let down = image_height.div_ceil(height);
        // Tiles reach beyond the image; what they cover costs time, so all but one of them count
        // like the image. The one is charged as working memory.
        let chunk_pixels = u64::from(width) * u64::from(height);
        let others = u64::from(across) * u64::from(down) - 1;
        check(Limit::Pixels, limits.max_pixels, chunk_pixels.saturating_mul(others))?;
        Ok(Self { tiled, width, height, across, down, offsets, byte_counts })
    }

    /// The bytes of chunk `index`: `plain_size` of them where the chunk is not compressed and the
    /// byte count is missing, zero or larger, the rest of the file where it is compressed and the
    /// byte count is missing or zero. So libtiff reads files of careless writers.
    pub(super) fn bytes<'f>(
        &self,
        file: &'f [u8],
        index: usize,
        plain_size: Option<usize>,
    ) -> Result<&'f [u8], DecodeError> {
        let Some(offset) = self.offsets.get(index) else {
            return Err(value("count of strip or tile offsets", self.offsets.len() as u64));
        };
        let count = self.byte_counts.and_then(|counts| counts.get(index)).unwrap_or(0);
        let rest = usize::try_from(offset).map_or(0, |at| file.len().saturating_sub(at));
        let size = match (usize::try_from(count), plain_size) {
            (Ok(0) | Err(_), Some(size)) => size,
            (Ok(count), Some(size)) => count.min(size),
            (Ok(0), None) => rest,
            (Ok(count), None) => count,
            (Err(_), None) => usize::MAX,
        };
        super::directory::slice(file, offset, size, "strip or tile")
    }
}

fn short(what: &'static str, found: u64) -> Result<u16, DecodeError> {
    u16::try_from(found).map_err(|_| value(what, found))
}

pub(super) fn value(what: &'static str, found: u64) -> DecodeError {
    Defect::Value { format: Format::Tiff, what, found }.into()
}
