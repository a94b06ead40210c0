//! PNG through the `png` crate: rows are converted one by one, so that a 1-bit image never exists
//! in full next to its RGB form. Chunk checksums and the Adler-32 of the pixels are checked.

mod chunk;

use std::io::Cursor;

use ::png::{ColorType, InterlaceInfo, Reader, Transformations};

use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::{self, Layout, Palette};
use chunk::chunks;

const SIGNATURE_SIZE: usize = 8;

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let header = bytes.get(SIGNATURE_SIZE..).and_then(|rest| rest.first_chunk::<21>());
    let Some([_, _, _, _, b'I', b'H', b'D', b'R', size @ .., depth, color, _, _, _]) = header
    else {
        return Err(Defect::Missing { format: Format::Png, what: "an IHDR chunk" }.into());
    };
    let [w0, w1, w2, w3, h0, h1, h2, h3] = *size;
    let channels = match color {
        0 | 3 => 1,
        2 => 3,
        4 => 2,
        6 => 4,
        other => {
            let found = u64::from(*other);
            return Err(Defect::Value { format: Format::Png, what: "color type", found }.into());
        }
    };
    let width = u32::from_be_bytes([w0, w1, w2, w3]);
    let height = u32::from_be_bytes([h0, h1, h2, h3]);
    if width == 0 || height == 0 {
        return Err(Defect::Value { format: Format::Png, what: "width or height", found: 0 }.into());
    }
    let transparent = chunks(bytes).any(|chunk| &chunk.kind == b"tRNS");
    Ok(ImageInfo {
        format: Format::Png,
        width,
        height,
        channels,
        bit_depth: *depth,
        sample_format: SampleFormat::Unsigned,
        has_alpha: matches!(channels, 2 | 4) || transparent,
        orientation: orientation(bytes),
    })
}

/// The orientation in the eXIf chunk, else in the EXIF profile of `ImageMagick`, else in XMP.
fn orientation(bytes: &[u8]) -> Orientation {
    let exif_chunk = chunks(bytes).filter(|chunk| &chunk.kind == b"eXIf").last();
    let profile = match exif_chunk {
        None => chunk::text(bytes, b"Raw profile type exif").and_then(|text| hex_of_profile(&text)),
        Some(_) => None,
    };
    let exif = exif_chunk.map(|chunk| chunk.data).or(profile.as_deref());
    Orientation::of_metadata(exif, chunk::text(bytes, b"XML:com.adobe.xmp").as_deref())
}

/// The bytes of a profile that `ImageMagick` stores as text: its name and size on the first three
/// lines, then hexadecimal digits. Bytes after the first MiB are left out: the orientation stands at
/// the front.
fn hex_of_profile(text: &[u8]) -> Option<Vec<u8>> {
    const MAX_DIGITS: usize = 2 << 20;
    let digits = text.splitn(4, |byte| *byte == b'\n').nth(3)?;
    let digits = digits.get(..MAX_DIGITS).unwrap_or(digits);
    let mut nibbles = (digits.iter().filter(|byte| !byte.is_ascii_whitespace()))
        .map(|digit| char::from(*digit).to_digit(16));
    let mut data = Vec::with_capacity(digits.len() / 2);
    while let Some(high) = nibbles.next() {
        data.push(u8::try_from(high? << 4 | nibbles.next()??).ok()?);
    }
    Some(data)
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let info = probe(bytes)?;
    read(bytes, info, Samples::Color(options.color), options, scratch, image)
}

/// Decodes the samples of a file of one channel as they are stored.
pub(crate) fn decode_stored(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let info = probe(bytes)?;
    let ImageInfo { channels, bit_depth, .. } = info;
    if channels != 1 || bit_depth > 8 {
        return Err(Feature::Mask { format: Format::Png, channels, bit_depth }.into());
    }
    read(bytes, info, Samples::Stored, options, scratch, image)
}

fn read(
    bytes: &[u8],
    info: ImageInfo,
    samples: Samples,
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let size = (info.width, info.height);
    let channels = samples.channels();
    // Charged before the reader allocates its row buffers.
    options.limits.charge_image(info.width, info.height, channels)?;
    chunk::require_whole(bytes)?;
    require_plausible(bytes, &info)?;
    let mut reader = open(bytes, options).map_err(codec)?;
    image.reset(size, channels, &options.limits)?;
    let format = RowFormat::of(&reader, samples);
    if reader.info().interlaced {
        read_interlaced(&mut reader, &format, scratch, image)?;
    } else if format.is_that_of_the_image() {
        reader.next_frame(&mut image.data).map_err(codec)?;
    } else {
        read_rows(&mut reader, &format, scratch, image)?;
    }
    reader.finish().map_err(codec)?;
    Ok(info.orientation)
}

/// Refuses a size that the file cannot fill, before the image is allocated.
fn require_plausible(bytes: &[u8], info: &ImageInfo) -> Result<(), DecodeError> {
    /// Deflate codes at most 258 bytes in 2 bits.
    const MAX_INFLATION: u64 = 1032;
    let row_bits = u64::from(info.width) * u64::from(info.channels) * u64::from(info.bit_depth);
    let need = row_bits.div_ceil(8).saturating_mul(info.height.into());
    let have = (bytes.len() as u64).saturating_mul(MAX_INFLATION);
    if need > have {
        let what = "pixel data (at most, inflated)";
        return Err(Defect::ShortOutput { format: Format::Png, what, need, have }.into());
    }
    Ok(())
}

type PngReader<'a> = Reader<Cursor<&'a [u8]>>;

fn open<'a>(
    bytes: &'a [u8],
    options: &DecodeOptions,
) -> Result<PngReader<'a>, ::png::DecodingError> {
    let mut strict = ::png::DecodeOptions::default();
    strict.set_ignore_adler32(false);
    strict.set_ignore_crc(false);
    strict.set_skip_ancillary_crc_failures(false);
    // Neither changes the pixels, and both are compressed data of unbounded size.
    strict.set_ignore_text_chunk(true);
    strict.set_ignore_iccp_chunk(true);
    let mut decoder = ::png::Decoder::new_with_options(Cursor::new(bytes), strict);
    decoder.set_limits(::png::Limits { bytes: options.limits.working_bytes() });
    // 16-bit samples lose their low byte, where Pillow clips grey ones. Palettes and samples below 8
    // bits are expanded here, without the alpha channel the crate would add for a tRNS chunk.
    decoder.set_transformations(Transformations::STRIP_16);
    decoder.read_info()
}

/// The conversion of a row's samples.
#[derive(Clone, Copy)]
enum Samples {
    Color(Color),
    /// They stay the numbers that they are, one for each pixel.
    Stored,
}

impl Samples {
    fn channels(self) -> u8 {
        match self {
            Self::Color(color) => color.channels(),
            Self::Stored => 1,
        }
    }
}

/// The conversion of one row of the reader into pixels.
struct RowFormat {
    samples: Samples,
    palette: Palette,
    color_type: ColorType,
    depth: u8,
}

impl RowFormat {
    fn of(reader: &PngReader<'_>, samples: Samples) -> Self {
        let (color_type, depth) = reader.output_color_type();
        let mut palette = [[0; 3]; 256];
        if let Some(colors) = &reader.info().palette {
            for (to, from) in palette.iter_mut().zip(colors.as_chunks().0) {
                *to = *from;
            }
        }
        Self { samples, palette, color_type, depth: depth as u8 }
    }

    /// Whether rows are pixels as they are.
    fn is_that_of_the_image(&self) -> bool {
        match (self.samples, self.color_type) {
            (Samples::Color(Color::Rgb8), ColorType::Rgb) => true,
            (Samples::Color(Color::L8), ColorType::Grayscale) | (Samples::Stored, _) => {
                self.depth == 8
            }
            (Samples::Color(_), _) => false,
        }
    }

    fn layout(&self) -> Layout<'_> {
        match self.color_type {
            ColorType::Grayscale => Layout::Grey,
            ColorType::GrayscaleAlpha => Layout::GreyAlpha,
            ColorType::Rgb => Layout::Rgb,
            ColorType::Rgba => Layout::Rgbx,
            ColorType::Indexed => Layout::Index(&self.palette),
        }
    }

    /// Converts `row`; `unpacked` has room for the samples of a row below 8 bits.
    fn convert(&self, row: &[u8], unpacked: &mut [u8], to: &mut [u8]) {
        let is_grey = self.color_type == ColorType::Grayscale;
        match (self.samples, self.depth) {
            (Samples::Color(color), 0..8) => {
                let scale = if is_grey { pixel::grey_scale(self.depth) } else { 1 };
                pixel::unpack(row, self.depth, scale, unpacked);
                self.layout().convert(unpacked, to, color);
            }
            (Samples::Color(color), _) => self.layout().convert(row, to, color),
            (Samples::Stored, 0..8) => pixel::unpack(row, self.depth, 1, to),
            (Samples::Stored, _) => to.copy_from_slice(row),
        }
    }
}

fn read_rows(
    reader: &mut PngReader<'_>,
    format: &RowFormat,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<(), DecodeError> {
    let width = image.width as usize;
    let line = reader.output_line_size(image.width).unwrap_or(0);
    scratch.resize(line + width, 0);
    let (row, unpacked) = scratch.split_at_mut(line);
    for y in 0..image.height as usize {
        reader.read_row(row).map_err(codec)?;
        format.convert(row, unpacked, image.row_mut(y));
    }
    Ok(())
}

fn read_interlaced(
    reader: &mut PngReader<'_>,
    format: &RowFormat,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<(), DecodeError> {
    let width = image.width as usize;
    let channels = usize::from(image.channels);
    let line = reader.output_line_size(image.width).unwrap_or(0);
    scratch.resize(line + width + width * channels, 0);
    let (row, rest) = scratch.split_at_mut(line);
    let (unpacked, converted) = rest.split_at_mut(width);
    let row_bytes = image.row_bytes();
    while let Some(interlace) = reader.read_row(row).map_err(codec)? {
        let InterlaceInfo::Adam7(pass) = &interlace else { continue };
        format.convert(row, unpacked, converted);
        ::png::expand_interlaced_row(
            &mut image.data,
            row_bytes,
            converted,
            pass,
            image.channels * 8,
        );
    }
    Ok(())
}

fn codec(error: ::png::DecodingError) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}
