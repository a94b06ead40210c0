//! PNG through the `png` crate: rows are converted one by one, so that a 1-bit image never exists
//! in full next to its RGB form. Chunk checksums and the Adler-32 of the pixels are checked.

mod chunk;

use std::io::Cursor;

use ::png::{ColorType, InterlaceInfo, Reader, Transformations};

use crate::error::{CodecError, DecodeError, Defect, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo, PixelType, SampleFormat};
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use crate::pixel::{self, Layout, Palette};
use crate::wide::{Halved, StoredPixel};
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
    let samples = match (options.pixels, info.bit_depth) {
        // A transparent colour is one of 16 bits, which the upper ones do not tell from others.
        (PixelType::U8, 16) if options.color == Color::Rgba && info.channels % 2 == 1 => {
            Samples::Wide(Color::Rgba, PixelType::U8)
        }
        (PixelType::U8, _) | (_, 0..=8) => Samples::Color(options.color),
        (pixels, _) => Samples::Wide(options.color, pixels),
    };
    read(bytes, info, samples, options, scratch, image)
}

/// Decodes the samples of a file of one channel as they are stored, in 8 or 16 bits.
pub(crate) fn decode_stored(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let info = probe(bytes)?;
    let ImageInfo { channels, bit_depth, .. } = info;
    if channels != 1 {
        return Err(Feature::Mask { format: Format::Png, channels, bit_depth }.into());
    }
    let samples =
        if bit_depth > 8 { Samples::Wide(Color::Grey, PixelType::U16) } else { Samples::Stored };
    read(bytes, info, samples, options, scratch, image)
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
    let pixels = samples.pixels();
    // Charged before the reader allocates its row buffers.
    let pixel_bytes = usize::from(channels) * pixels.bytes();
    options.limits.charge_image(info.width, info.height, pixel_bytes.to_le_bytes()[0])?;
    chunk::require_whole(bytes)?;
    require_plausible(bytes, &info)?;
    let mut reader = open(bytes, samples, options).map_err(codec)?;
    let format = RowFormat::of(&reader, samples);
    format.require(&info)?;
    image.reset_wide(size, channels, pixels, &options.limits)?;
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
    samples: Samples,
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
    decoder.set_transformations(match samples {
        Samples::Wide(..) => Transformations::IDENTITY,
        Samples::Color(_) | Samples::Stored => Transformations::STRIP_16,
    });
    decoder.read_info()
}

/// The conversion of a row's samples.
#[derive(Clone, Copy)]
enum Samples {
    Color(Color),
    /// They stay the numbers that they are, one for each pixel.
    Stored,
    /// Those of 16 bits stay the numbers that they are, or are halved after the transparent colour
    /// was found.
    Wide(Color, PixelType),
}

impl Samples {
    fn channels(self) -> u8 {
        match self {
            Self::Color(color) | Self::Wide(color, _) => color.channels(),
            Self::Stored => 1,
        }
    }

    fn pixels(self) -> PixelType {
        match self {
            Self::Color(_) | Self::Stored => PixelType::U8,
            Self::Wide(_, pixels) => pixels,
        }
    }
}

/// The conversion of one row of the reader into pixels.
struct RowFormat {
    samples: Samples,
    palette: Palette,
    color_type: ColorType,
    /// Bits of a sample of a row.
    depth: u8,
    /// Bits of a sample in the file.
    file_depth: u8,
    /// The transparent colour, or the alpha of palette colours, if the file has it.
    transparency: Option<Vec<u8>>,
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
        let transparency = reader.info().trns.as_ref().map(|trns| trns.to_vec());
        let file_depth = reader.info().bit_depth as u8;
        Self { samples, palette, color_type, depth: depth as u8, file_depth, transparency }
    }

    /// Refuses wide samples that cannot have the channels that are asked for.
    fn require(&self, info: &ImageInfo) -> Result<(), DecodeError> {
        match self.samples {
            Samples::Wide(color, _) => self.stored_pixel().require(info, color),
            Samples::Color(_) | Samples::Stored => Ok(()),
        }
    }

    /// The colour that is transparent, as samples of the file.
    fn transparent_color(&self) -> Option<[u16; 3]> {
        // The library leaves out the upper bytes where samples have 8 bits or fewer.
        let bytes = self.transparency.as_ref()?;
        let words = bytes.as_chunks::<2>().0;
        let word = |index: usize| match self.file_depth {
            16 => words.get(index).copied().map(u16::from_be_bytes),
            _ => bytes.get(index).copied().map(u16::from),
        };
        match self.color_type {
            ColorType::Grayscale => word(0).map(|grey| [grey; 3]),
            ColorType::Rgb => Some([word(0)?, word(1)?, word(2)?]),
            ColorType::Indexed | ColorType::GrayscaleAlpha | ColorType::Rgba => None,
        }
    }

    /// Pixels of 16-bit samples.
    fn stored_pixel(&self) -> StoredPixel<u16> {
        StoredPixel {
            samples: self.color_type.samples(),
            colors: if self.color_type.samples() >= 3 { 3 } else { 1 },
            alpha: matches!(self.color_type, ColorType::GrayscaleAlpha | ColorType::Rgba),
            opaque: u16::MAX,
            transparent: self.transparent_color(),
        }
    }

    /// Makes transparent pixels of a row of RGBA transparent. `samples` is the row in the file's
    /// depth.
    fn add_transparency(&self, samples: &[u8], to: &mut [u8]) {
        let Some(transparency) = &self.transparency else { return };
        let pixels = to.as_chunks_mut::<4>().0.iter_mut();
        if self.color_type == ColorType::Indexed {
            for ([.., alpha], index) in pixels.zip(samples) {
                *alpha = transparency.get(usize::from(*index)).copied().unwrap_or(u8::MAX);
            }
        } else if let Some(color) = self.transparent_color() {
            let scale = if self.color_type == ColorType::Grayscale {
                pixel::grey_scale(self.depth).into()
            } else {
                1
            };
            let color = color.map(|sample| sample.saturating_mul(scale));
            for [r, g, b, alpha] in pixels {
                if [*r, *g, *b].map(u16::from) == color {
                    *alpha = 0;
                }
            }
        }
    }

    /// Whether rows are pixels as they are.
    fn is_that_of_the_image(&self) -> bool {
        match (self.samples, self.color_type) {
            (Samples::Color(Color::Rgb), ColorType::Rgb) => true,
            (Samples::Color(Color::Grey), ColorType::Grayscale) | (Samples::Stored, _) => {
                self.depth == 8
            }
            (Samples::Color(_) | Samples::Wide(..), _) => false,
        }
    }

    fn layout(&self) -> Layout<'_> {
        match self.color_type {
            ColorType::Grayscale => Layout::Grey,
            ColorType::GrayscaleAlpha => Layout::GreyAlpha,
            ColorType::Rgb => Layout::Rgb,
            ColorType::Rgba => Layout::Rgba,
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
                if color == Color::Rgba {
                    self.add_transparency(unpacked, to);
                }
            }
            (Samples::Color(color), _) => {
                self.layout().convert(row, to, color);
                if color == Color::Rgba {
                    self.add_transparency(row, to);
                }
            }
            (Samples::Stored, 0..8) => pixel::unpack(row, self.depth, 1, to),
            (Samples::Stored, _) => to.copy_from_slice(row),
            (Samples::Wide(color, pixels), _) => self.convert_wide(row, color, pixels, to),
        }
    }

    fn convert_wide(&self, row: &[u8], color: Color, pixels: PixelType, to: &mut [u8]) {
        let stored = self.stored_pixel();
        let samples = row.as_chunks::<2>().0.iter().map(|word| u16::from_be_bytes(*word));
        match pixels {
            PixelType::U8 => stored.map(Halved).convert(samples.map(Halved), color, to),
            PixelType::U16 => stored.convert(samples, color, to),
            PixelType::F32 => stored.map(f32::from).convert(samples.map(f32::from), color, to),
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
    let pixel_bytes = image.pixel_bytes();
    let line = reader.output_line_size(image.width).unwrap_or(0);
    scratch.resize(line + width + width * pixel_bytes, 0);
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
            pixel_bytes.to_le_bytes()[0] * 8,
        );
    }
    Ok(())
}

fn codec(error: ::png::DecodingError) -> DecodeError {
    Defect::from(CodecError::from(error)).into()
}
