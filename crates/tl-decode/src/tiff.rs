//! TIFF 6.0 and `BigTIFF`, first directory: strips and tiles, interleaved and planar, 1 to 32 bits,
//! uncompressed, `PackBits`, LZW, Deflate, JPEG, CCITT and, as features, LZMA and Zstandard. The
//! codecs are crates; reading the structure is ours, so that every size is checked before it is
//! used.

mod chunk;
mod directory;
mod fax;
mod layout;
#[cfg(feature = "tiff-lzma")]
mod lzma;
mod predictor;
mod sample;
mod wide;
#[cfg(feature = "tiff-zstd")]
mod zstd;

use crate::error::DecodeError;
use crate::format::Format;
use crate::image::{Image, ImageInfo, PixelType};
use crate::jpeg::JpegDecoder;
use crate::limits::{Limits, WorkingMemory};
use crate::options::DecodeOptions;
use crate::orientation::Orientation;
use chunk::ChunkDecoder;
use directory::Directory;
use layout::{Chunks, Layout};
use sample::RowConverter;
use wide::WideConverter;

/// Samples that can make up a colour, and so the planes that are held at once.
const MAX_PLANES: usize = 4;

/// Memory reused from image to image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    planes: [Vec<u8>; MAX_PLANES],
    spare: Vec<u8>,
    row: Vec<u8>,
}

impl Buffers {
    /// Gives back buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        for buffer in self.planes.iter_mut().chain([&mut self.spare, &mut self.row]) {
            if buffer.capacity() > bytes {
                *buffer = Vec::new();
            }
        }
    }
}

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let directory = Directory::first(bytes, &Limits::default())?;
    let stored = layout::size(&directory)?;
    let (width, height) = layout::orientation(bytes, &directory)?.shown_size(stored);
    let (bits, samples) = layout::samples(&directory)?;
    Ok(ImageInfo {
        format: Format::Tiff,
        width,
        height,
        channels: u8::try_from(samples).unwrap_or(u8::MAX),
        bit_depth: u8::try_from(bits).unwrap_or(u8::MAX),
        sample_format: layout::sample_format(&directory)?.unwrap_or_default(),
        has_alpha: layout::has_alpha(&directory, samples)?,
        // The decoder turns the pixels, so that nothing is left to be turned.
        orientation: Orientation::Upright,
    })
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    buffers: &mut Buffers,
    jpeg: &mut JpegDecoder,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let limits = &options.limits;
    let directory = Directory::first(bytes, limits)?;
    let layout = Layout::read(&directory, limits)?;
    let alpha = layout::alpha(&directory, &layout)?;
    let pixels = if layout.is_bytes() { PixelType::U8 } else { options.pixels };
    let pixel_bytes = usize::from(options.color.channels()) * pixels.bytes();
    limits.charge_image(layout.width, layout.height, pixel_bytes.to_le_bytes()[0])?;
    let converter = match pixels {
        PixelType::U8 => Converter::Bytes(RowConverter::new(&layout, alpha, options.color)?),
        PixelType::U16 | PixelType::F32 => {
            let info = probe(bytes)?;
            Converter::Wide(WideConverter::new(&layout, &info, alpha, options.color, pixels)?)
        }
    };
    let decoder = ChunkDecoder::new(bytes, &layout)?;
    let reader = Reader { layout: &layout, converter, decoder };
    let memory = reader.charge(limits)?;
    reader.require_chunks()?;
    let size = (layout.width, layout.height);
    image.reset_wide(size, options.color.channels(), pixels, limits)?;
    reader.read(buffers, jpeg, memory, image)?;
    layout::orientation(bytes, &directory)
}

/// The conversion of samples.
enum Converter<'a> {
    Bytes(RowConverter<'a>),
    Wide(WideConverter<'a>),
}

impl Converter<'_> {
    fn planes_used(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.planes_used(),
            Self::Wide(wide) => wide.planes_used(),
        }
    }

    fn samples(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.samples(),
            Self::Wide(wide) => wide.samples(),
        }
    }
}

struct Reader<'a> {
    layout: &'a Layout<'a>,
    converter: Converter<'a>,
    decoder: ChunkDecoder<'a>,
}

impl Reader<'_> {
    /// Charges the chunks held at once and the rows on their way through.
    /// The rest of the working memory is for the decoder of a chunk.
    fn charge(&self, limits: &Limits) -> Result<WorkingMemory, DecodeError> {
        let chunk_bytes = self.layout.row_bytes().saturating_mul(self.layout.chunks.height.into());
        let spare = self.layout.reversed_bits || self.layout.subsampling != (1, 1);
        let chunks = self.converter.planes_used() as u64 + u64::from(spare);
        let width = u64::from(self.layout.chunks.width);
        // A row of samples on its way, and the colour changes of two rows of CCITT data.
        let rows = width.saturating_mul(self.converter.samples() as u64 + 5 + 2 * 4);
        let need = chunk_bytes.saturating_mul(chunks).saturating_add(rows);
        WorkingMemory::charge(limits, need)
    }

    /// Checks that the bytes of every chunk are in the file before the image is allocated.
    fn require_chunks(&self) -> Result<(), DecodeError> {
        let chunks = &self.layout.chunks;
        let across = chunks.across as usize;
        let down = chunks.down as usize;
        for plane in 0..self.converter.planes_used() {
            for chunk_y in 0..down {
                let rows = self.stored_rows(chunk_y);
                for chunk_x in 0..across {
                    self.decoder.stored((plane * down + chunk_y) * across + chunk_x, rows)?;
                }
            }
        }
        Ok(())
    }

    /// Rows in the chunks of this line of chunks: tiles are whole, the last strip ends with the
    /// image.
    fn stored_rows(&self, chunk_y: usize) -> u32 {
        let Chunks { tiled, height, .. } = self.layout.chunks;
        let top = u32::try_from(chunk_y).unwrap_or(u32::MAX).saturating_mul(height);
        if tiled { height } else { self.layout.height.saturating_sub(top).min(height) }
    }

    fn read(
        &self,
        buffers: &mut Buffers,
        jpeg: &mut JpegDecoder,
        memory: WorkingMemory,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let chunks = &self.layout.chunks;
        let across = chunks.across as usize;
        let down = chunks.down as usize;
        for chunk_y in 0..down {
            let top = chunk_y * chunks.height as usize;
            let rows = (image.height as usize - top).min(chunks.height as usize);
            let stored = self.stored_rows(chunk_y);
            for chunk_x in 0..across {
                for (plane, out) in buffers.planes.iter_mut().enumerate() {
                    if plane < self.converter.planes_used() {
                        let index = (plane * down + chunk_y) * across + chunk_x;
                        let spare = &mut buffers.spare;
                        self.decoder.decode(index, stored, spare, jpeg, memory, out)?;
                    }
                }
                let left = chunk_x * chunks.width as usize;
                self.place(buffers, left, top, rows, image);
            }
        }
        Ok(())
    }

    /// Converts the decoded chunk into the image.
    fn place(
        &self,
        buffers: &mut Buffers,
        left: usize,
        top: usize,
        rows: usize,
        image: &mut Image,
    ) {
        let columns = (image.width as usize - left).min(self.layout.chunks.width as usize);
        let samples = self.converter.samples();
        let channels = image.pixel_bytes();
        let row_bytes = self.decoder.row_bytes();
        let converter = match &self.converter {
            Converter::Bytes(converter) => converter,
            Converter::Wide(converter) => {
                for y in 0..rows {
                    let row = |plane: usize| &buffers.planes[plane][y * row_bytes..][..row_bytes];
                    let to = &mut image.row_mut(top + y)[left * channels..][..columns * channels];
                    converter.convert(row, to);
                }
                return;
            }
        };
        buffers.row.resize(columns * (samples + MAX_PLANES + 1), 0);
        let (pixels, rest) = buffers.row.split_at_mut(columns * samples);
        let (scratch, one_plane) = rest.split_at_mut(columns * MAX_PLANES);
        for y in 0..rows {
            let row = y * row_bytes..(y + 1) * row_bytes;
            if self.layout.planar {
                for (plane, data) in buffers.planes.iter().take(samples).enumerate() {
                    converter.reduce(&data[row.clone()], one_plane);
                    let to = pixels.iter_mut().skip(plane).step_by(samples);
                    for (to, from) in to.zip(&*one_plane) {
                        *to = *from;
                    }
                }
            } else {
                converter.reduce(&buffers.planes[0][row], pixels);
            }
            let to = &mut image.row_mut(top + y)[left * channels..(left + columns) * channels];
            converter.convert(pixels, scratch, to);
        }
    }
}
