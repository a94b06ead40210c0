//! JPEG: the header, then the scans into planes, then planes into pixels. `docs/jpeg.md` is the
//! description for people.

mod bits;
mod entropy_data;
mod extract;
mod frame;
mod geometry;
mod header;
mod huffman;
mod index;
mod lossless;
mod marker;
mod output;
mod parts;
mod planes;
mod progressive;
mod request;
mod rows;
mod scan;
mod scans;
mod sequential;
mod standard;
mod tables;
mod zigzag;

use tl_simd::Level;

use crate::error::{DecodeError, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo, PixelType, SampleFormat};
use crate::limits::Limits;
use crate::wide;
use frame::Process;
use geometry::Geometry;
use output::{Extent, Output, PlaneBuffer};
use rows::{Pixels, RowBuffers, RowWriter};
use scan::MAX_COMPONENTS;
use scans::{EntropyDecoders, Opened, Scans};

pub use index::RowIndex;
pub use parts::{
    EntropyComponent, EntropyRow, EntropyRowEnd, EntropyRows, HuffmanCodes, JpegCoefficients,
    JpegComponent, JpegParts, PartStage, Upsampling,
};
pub use planes::{Plane, PlaneColor, Planes};
pub use request::{Decoded, JpegRequest};
pub use scan::{Damage, OnDamaged};

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let (frame, prologue) = frame::read_prologue(bytes)?;
    Ok(ImageInfo {
        format: Format::Jpeg,
        width: frame.width.into(),
        height: frame.height.into(),
        channels: frame.component_count,
        bit_depth: frame.precision,
        sample_format: SampleFormat::Unsigned,
        has_alpha: false,
        orientation: prologue.orientation(),
    })
}

/// The meaning of a JPEG stream's components inside another format, as that format states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredColor {
    /// To be converted to RGB.
    YCbCr,
    /// Grey, RGB or inks as they are.
    AsIs,
}

/// Decodes JPEG images one after the other, whole or in part, and keeps its memory.
///
/// Pixels are those of libjpeg-turbo, bit for bit, at every [`Level`].
///
/// ```
/// use tl_decode::{Image, JpegDecoder, JpegRequest, Limits, Rect, Scale};
///
/// let bytes = include_bytes!("../testdata/jpeg/420.jpg");
/// let mut decoder = JpegDecoder::new(Limits::default());
/// let mut image = Image::new();
/// let region = Rect { x: 2, y: 3, width: 6, height: 4 };
/// let request =
///     JpegRequest { scale: Scale::HALF, region: Some(region), ..JpegRequest::default() };
/// decoder.decode(bytes, &request, &mut image)?;
/// assert_eq!((image.width, image.height), (6, 4));
/// # Ok::<(), tl_decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct JpegDecoder {
    limits: Limits,
    level: Level,
    entropy: EntropyDecoders,
    planes: [PlaneBuffer; MAX_COMPONENTS],
    rows: RowBuffers,
}

impl Default for JpegDecoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Clone for JpegDecoder {
    /// A decoder with the same settings, which shares no memory with this one.
    fn clone(&self) -> Self {
        Self::new(self.limits).with_level(self.level)
    }
}

impl JpegDecoder {
    /// A decoder that charges `limits` and uses the fastest instructions of this CPU.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            level: Level::detect(),
            entropy: EntropyDecoders::default(),
            planes: Default::default(),
            rows: RowBuffers::default(),
        }
    }

    /// The same with the instructions of `level`; the pixels do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Gives the memory back that is kept for the next image, if it is more than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        let planes: usize = self.planes.iter().map(PlaneBuffer::kept_bytes).sum();
        if planes + self.rows.kept_bytes() + self.entropy.kept_bytes() > bytes {
            *self = self.clone();
        }
    }

    /// Decodes what `request` asks for into `image`.
    ///
    /// # Errors
    /// As [`Decoder::decode_into`](crate::Decoder::decode_into), and [`DecodeError::Region`] for a
    /// region that is empty or not inside the scaled image.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        request: &JpegRequest<'_>,
        image: &mut Image,
    ) -> Result<Decoded, DecodeError> {
        if request.pixels != PixelType::U8 {
            wide::Source::of(&probe(bytes)?, request.pixels)?;
        }
        let opened = Opened::new(bytes, request.on_damaged, &self.limits)?;
        let color = opened.color()?;
        let pixels = Pixels::Converted(request.color);
        let decoded = self.decode_pixels(opened, request, color, pixels, image)?;
        if request.pixels == PixelType::F32 {
            wide::widen(image, &self.limits)?;
        }
        Ok(decoded)
    }

    /// Decodes the components of what `request` asks for, neither upsampled nor converted; its
    /// `color` does not matter.
    ///
    /// # Errors
    /// As [`JpegDecoder::decode`], and [`DecodeError::Unsupported`] for lossless images.
    pub fn decode_planes(
        &mut self,
        bytes: &[u8],
        request: &JpegRequest<'_>,
    ) -> Result<Planes<'_>, DecodeError> {
        let opened = Opened::new(bytes, request.on_damaged, &self.limits)?;
        let color = opened.color()?;
        let frame = opened.frame;
        if frame.process == Process::Lossless {
            return Err(Feature::JpegFrame(frame.kind).into());
        }
        let mut geometry = Geometry::new(&frame, request.scale, request.region)?;
        geometry.leave_out_margin();
        let plane_bytes =
            output::prepare(&mut self.planes, &geometry, Extent::Whole, &self.limits)?;
        if request.on_damaged == OnDamaged::Keep {
            output::clear(&mut self.planes, &geometry);
        }
        let mut output = Output {
            level: self.level,
            geometry: &geometry,
            extent: Extent::Whole,
            quantizers: [[1; 64]; MAX_COMPONENTS],
            planes: &mut self.planes,
            plane_bytes,
            rows: None,
        };
        let decoded = Scans::new(opened, request, self.level, &self.limits)
            .decode(&mut self.entropy, &mut output)?;
        let planes = output::views(&self.planes, &geometry);
        Ok(Planes { color, planes, count: frame.components().len(), decoded })
    }

    /// Adds the row index of a JPEG file to `out`, for [`JpegRequest::index`].
    ///
    /// `false`, and nothing added, for files that can have none: those that are not sequential or
    /// have several scans, and kinds that are not decoded.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for damaged files, [`DecodeError::LimitExceeded`]. What `out` has
    /// gained is unspecified then.
    pub fn row_index(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<bool, DecodeError> {
        let opened = match Opened::new(bytes, OnDamaged::Error, &self.limits) {
            Err(DecodeError::Unsupported(_)) => return Ok(false),
            opened => opened?,
        };
        Scans::new(opened, &JpegRequest::default(), self.level, &self.limits)
            .row_index(&mut self.entropy, out)
    }

    fn decode_pixels(
        &mut self,
        mut opened: Opened<'_>,
        request: &JpegRequest<'_>,
        color: PlaneColor,
        pixels: Pixels,
        image: &mut Image,
    ) -> Result<Decoded, DecodeError> {
        let geometry = Geometry::new(&opened.frame, request.scale, request.region)?;
        let size = (geometry.region.width, geometry.region.height);
        let channels = pixels.channels(opened.frame.component_count);
        self.limits.charge_image(size.0, size.1, channels)?;
        if opened.frame.process == Process::Lossless {
            let samples = lossless::decode(&mut opened, color, request.scale, &self.limits)?;
            image.reset(size, channels, &self.limits)?;
            lossless::place(&samples, color, pixels, &geometry, image);
            return Ok(Decoded { orientation: opened.reader.prologue.orientation(), damage: None });
        }
        geometry.require_upsampling()?;
        let extent = Extent::of_pixels(&opened, request.on_damaged);
        let plane_bytes = output::prepare(&mut self.planes, &geometry, extent, &self.limits)?;
        if request.on_damaged == OnDamaged::Keep {
            output::clear(&mut self.planes, &geometry);
        }
        image.reset(size, channels, &self.limits)?;
        let rows =
            RowWriter::new(self.level, &geometry, color, pixels, &mut self.rows, &mut image.data);
        let mut output = Output {
            level: self.level,
            geometry: &geometry,
            extent,
            quantizers: [[1; 64]; MAX_COMPONENTS],
            planes: &mut self.planes,
            plane_bytes,
            rows: Some(rows),
        };
        Scans::new(opened, request, self.level, &self.limits).decode(&mut self.entropy, &mut output)
    }

    /// Decodes a JPEG stream that is a strip or tile of a TIFF file: its components side by side.
    pub(crate) fn decode_part(
        &mut self,
        bytes: &[u8],
        stored: StoredColor,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let opened = Opened::new(bytes, OnDamaged::Error, &self.limits)?;
        let color = match (opened.frame.component_count, stored) {
            (1, _) => PlaneColor::Grey,
            (3, StoredColor::YCbCr) => PlaneColor::YCbCr,
            (3, StoredColor::AsIs) => PlaneColor::Rgb,
            _ => PlaneColor::Cmyk,
        };
        let request = JpegRequest::default();
        self.decode_pixels(opened, &request, color, Pixels::Stored, image).map(|_| ())
    }
}
