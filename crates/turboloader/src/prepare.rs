//! Work on a sample's bytes on their way through a conversion or a check: measuring, indexing,
//! rasterizing and decoding.

use std::error::Error;

use serde::{Deserialize, Serialize};
use tbl_format::SampleFormat;
use tbl_io::{Entry, ErrorKind, Prepare, Prepared, RowIndex};
use tl_decode::{DecodeOptions, Decoder, Format, Image, JpegDecoder, Limits};
use tl_pipeline::Fault;
use tl_simd::Level;
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};

use crate::video;

/// The largest width and height that a TBL index can hold.
const MAX_STORED_SIDE: u32 = u16::MAX as u32;

/// The reason why a sample is bad, or cannot become pixels.
type Refusal = Box<dyn Error + Send + Sync>;

/// Reads width and height from the image's header where the source does not say them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe;

/// Compares what the index states of an image with the image's header, without decoding it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderCheck;

impl Prepare for HeaderCheck {
    const COSTLY: bool = false;

    fn prepare(&mut self, entry: &Entry<'_>, bytes: &mut Vec<u8>) -> Result<Prepared, Refusal> {
        let stored = Prepared::as_stored(entry);
        if entry.format == SampleFormat::RawU8 {
            check_raw_size(entry, bytes)?;
        }
        if !entry.format.is_image() || (entry.width, entry.height) == (0, 0) {
            return Ok(stored);
        }
        // Whether a header that cannot be read is one of a damaged image, decoding finds out.
        let Ok(info) = tl_decode::probe(bytes) else { return Ok(stored) };
        let format = SampleFormat::from_name(info.format.name()).unwrap_or(entry.format);
        // The original's converter states the most that fits for sides that do not fit.
        let side = |stated, found: u32| if stated == 0 { 0 } else { found.min(MAX_STORED_SIDE) };
        let width = side(entry.width, info.width);
        let height = side(entry.height, info.height);
        Ok(Prepared { format, width, height, ..stored })
    }

    /// Compares the indexes of videos, which are made without decoding.
    fn check_row_index(&mut self, bytes: &[u8], stored: &[u8]) -> Result<(), Refusal> {
        if video::is_video(bytes) {
            compare("video index", stored, &video::index_bytes(bytes)?)
        } else {
            Ok(())
        }
    }
}

/// An image whose size a TBL index cannot store.
#[derive(Debug, thiserror::Error)]
#[error("{width}x{height} pixels, the index can store at most 65535 per side")]
struct TooLarge {
    width: u32,
    height: u32,
}

impl Prepare for Probe {
    const COSTLY: bool = false;

    fn prepare(&mut self, entry: &Entry<'_>, bytes: &mut Vec<u8>) -> Result<Prepared, Refusal> {
        let stored = Prepared::as_stored(entry);
        if !entry.format.is_image() || (entry.width > 0 && entry.height > 0) {
            return Ok(stored);
        }
        Ok(match tl_decode::probe(bytes) {
            Ok(info) if info.width.max(info.height) <= MAX_STORED_SIDE => {
                Prepared { width: info.width, height: info.height, ..stored }
            }
            Ok(info) => {
                let too_large = TooLarge { width: info.width, height: info.height };
                Prepared { unmeasured: Some(Box::new(too_large)), ..stored }
            }
            Err(error) => Prepared { unmeasured: Some(Box::new(error)), ..stored },
        })
    }
}

/// The indexes that a conversion makes of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexKinds {
    /// Row indexes of JPEG images.
    #[serde(rename = "jpeg_index")]
    pub jpeg: bool,
    /// Indexes of the frames of videos.
    #[serde(rename = "video_index", default, skip_serializing_if = "std::ops::Not::not")]
    pub video: bool,
}

impl IndexKinds {
    /// Whether none is made.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Measures as [`Probe`] does, and makes the index of each sample that can have one.
#[derive(Debug)]
pub struct Indexer {
    kinds: IndexKinds,
    decoder: JpegDecoder,
}

impl Indexer {
    /// Makes indexes of these kinds; others are copied from the source.
    #[must_use]
    pub fn new(kinds: IndexKinds) -> Self {
        Self { kinds, decoder: JpegDecoder::default() }
    }

    fn of_jpeg(&mut self, bytes: &[u8]) -> RowIndex {
        let mut made = Vec::new();
        match self.decoder.row_index(bytes, &mut made) {
            Ok(true) => RowIndex::Made(made),
            Ok(false) => RowIndex::None,
            Err(error) => RowIndex::Failed(Box::new(error)),
        }
    }
}

impl Prepare for Indexer {
    const COSTLY: bool = true;

    fn prepare(&mut self, entry: &Entry<'_>, bytes: &mut Vec<u8>) -> Result<Prepared, Refusal> {
        let measured = Probe.prepare(entry, bytes)?;
        let row_index = if self.kinds.jpeg && Format::sniff(bytes) == Some(Format::Jpeg) {
            // A defect of the header is reported once.
            if measured.unmeasured.is_none() { self.of_jpeg(bytes) } else { RowIndex::None }
        } else if self.kinds.video && video::is_video(bytes) {
            match video::index_bytes(bytes) {
                Ok(made) => RowIndex::Made(made),
                Err(error) => RowIndex::Failed(error),
            }
        } else {
            measured.row_index
        };
        Ok(Prepared { row_index, ..measured })
    }
}

/// The side of the largest square of RGB pixels that fits the limit of a decoded image.
#[derive(Clone, Copy, Debug)]
pub struct Square {
    side: u32,
    bytes: usize,
}

/// The error for a [`Square`] whose pixels exceed the limit of a decoded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("size {side} needs {bytes} bytes of pixels, expected at most {limit}")]
pub struct SquareError {
    side: u32,
    bytes: u64,
    limit: u64,
}

impl Fault for SquareError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Setting
    }
}

impl Square {
    /// Checks what a square of this side needs.
    ///
    /// # Errors
    /// [`SquareError`] for a side of 0 and for more bytes than a decoded image may have.
    pub fn new(side: u32) -> Result<Self, SquareError> {
        let limit = Limits::default().max_decoded_bytes.min(u32::MAX.into());
        let bytes = u64::from(side).saturating_mul(side.into()).saturating_mul(3);
        let refused = SquareError { side, bytes, limit };
        match usize::try_from(bytes) {
            Ok(needed) if (1..=limit).contains(&bytes) => Ok(Self { side, bytes: needed }),
            _ => Err(refused),
        }
    }
}

/// Decodes images to RGB and resizes them to a square, as the original's `preprocess_to_tbl` does:
/// antialiased bilinear, without regard to the aspect ratio.
#[derive(Debug)]
pub struct Rasterize {
    /// `None` keeps each image's own size.
    square: Option<Square>,
    decoder: Decoder,
    image: Image,
    resampler: Resampler,
    level: Level,
}

/// Refuses raw pixels that are not as many as the index states.
fn check_raw_size(entry: &Entry<'_>, bytes: &[u8]) -> Result<(), Refusal> {
    let expected = u64::from(entry.width) * u64::from(entry.height) * 3;
    let found = bytes.len() as u64;
    if expected == found {
        return Ok(());
    }
    Err(format!("{found} bytes of raw pixels, expected {expected}").into())
}

impl Rasterize {
    /// Makes squares of this size, or keeps each image's own size.
    #[must_use]
    pub fn new(square: Option<Square>) -> Self {
        Self {
            square,
            decoder: Decoder::new(DecodeOptions::default()),
            image: Image::new(),
            resampler: Resampler::new(),
            level: Level::detect(),
        }
    }

    /// Decodes a sample, and returns its pixels.
    pub(crate) fn pixels(&mut self, entry: &Entry<'_>, bytes: &[u8]) -> Result<&[u8], Refusal> {
        self.decode(entry, bytes)?;
        Ok(&self.image.data)
    }

    /// The sample's pixels in `self.image`.
    fn decode(&mut self, entry: &Entry<'_>, bytes: &[u8]) -> Result<(), Refusal> {
        if entry.format != SampleFormat::RawU8 {
            return Ok(self.decoder.decode_into(bytes, &mut self.image)?);
        }
        check_raw_size(entry, bytes)?;
        let Image { width, height, channels, data, .. } = &mut self.image;
        (*width, *height, *channels) = (entry.width, entry.height, 3);
        data.clear();
        data.extend_from_slice(bytes);
        Ok(())
    }
}

impl Prepare for Rasterize {
    const COSTLY: bool = true;

    fn prepare(&mut self, entry: &Entry<'_>, bytes: &mut Vec<u8>) -> Result<Prepared, Refusal> {
        self.decode(entry, bytes)?;
        let Image { width, height, channels, ref data, .. } = self.image;
        bytes.clear();
        let square = match self.square {
            Some(square) if (square.side, square.side) != (width, height) => square,
            _ => {
                bytes.extend_from_slice(data);
                return Ok(Prepared::new(SampleFormat::RawU8, width, height));
            }
        };
        if width == 0 || height == 0 {
            return Err(format!("an image of {width}x{height} pixels cannot be resized").into());
        }
        bytes
            .try_reserve_exact(square.bytes)
            .map_err(|error| format!("no memory for {} bytes of pixels: {error}", square.bytes))?;
        let side = square.side;
        let resize = Resize {
            region: Rect::of_size(width, height),
            resized: (side, side),
            window: Rect::of_size(side, side),
            filter: Filter::Bilinear,
        };
        let view = ImageView::packed(data, width, height, usize::from(channels));
        self.resampler.run(self.level, view, &resize, |_, row| bytes.extend_from_slice(row));
        Ok(Prepared::new(SampleFormat::RawU8, side, side))
    }
}

/// Decodes images strictly and forgets the pixels.
#[derive(Debug)]
pub struct StrictDecode {
    images: Rasterize,
    /// The row index that a sample should have.
    row_index: Vec<u8>,
}

impl Default for StrictDecode {
    fn default() -> Self {
        Self::new()
    }
}

impl StrictDecode {
    /// A separate decoder for each thread.
    #[must_use]
    pub fn new() -> Self {
        Self { images: Rasterize::new(None), row_index: Vec::new() }
    }
}

impl Prepare for StrictDecode {
    const COSTLY: bool = true;

    fn prepare(&mut self, entry: &Entry<'_>, bytes: &mut Vec<u8>) -> Result<Prepared, Refusal> {
        let stored = Prepared::as_stored(entry);
        if !entry.format.is_image() && entry.format != SampleFormat::RawU8 {
            let is_named_so = entry.key.as_deref().is_some_and(SampleFormat::is_video_name);
            if is_named_so || video::is_video(bytes) {
                video::decode_all(bytes)?;
            }
            return Ok(stored);
        }
        self.images.decode(entry, bytes)?;
        let Image { width, height, .. } = self.images.image;
        Ok(Prepared { width, height, ..stored })
    }

    fn check_row_index(&mut self, bytes: &[u8], stored: &[u8]) -> Result<(), Refusal> {
        if video::is_video(bytes) {
            return compare("video index", stored, &video::index_bytes(bytes)?);
        }
        let made = &mut self.row_index;
        made.clear();
        if !self.images.decoder.jpeg().row_index(bytes, made)? {
            return Err("row index for an image that cannot have one".into());
        }
        compare("row index", stored, made)
    }
}

/// Compares the stored index of a sample with the one that its bytes have.
fn compare(what: &str, stored: &[u8], made: &[u8]) -> Result<(), Refusal> {
    if stored == made {
        return Ok(());
    }
    let at = stored.iter().zip(made).take_while(|(stored, made)| stored == made).count();
    Err(format!(
        "{what} of {} bytes differs from the sample's own of {} at byte {at}",
        stored.len(),
        made.len()
    )
    .into())
}
