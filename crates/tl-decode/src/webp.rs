//! WebP: lossy images by a decoder of our own, lossless ones through the `image-webp` crate.
//!
//! Size, alpha and metadata come from our own walk over the RIFF chunks, so that limits are charged
//! before a decoder sees the file. Lossy images have libwebp's pixels, and parts of them can be
//! decoded.

mod alpha;
mod bools;
mod header;
mod lossless;
mod lossy;
mod parse;
mod riff;
mod samples;
mod tables;

use tl_simd::Level;
use tl_simd::resample::Rect;

pub(crate) use riff::probe;

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{Image, ImageInfo};
use crate::limits::Limits;
use crate::options::Color;
use crate::orientation::Orientation;
use header::Frame;
use lossy::LossyBuffers;
use riff::Still;
use samples::{PixelWriter, Wanted};

/// A request to decode a WebP file. The default is the whole image as RGB.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebpRequest {
    /// The part to decode; all of it if `None`. Its pixels are those that the whole image has there.
    pub region: Option<Rect>,
    /// The channels to decode to.
    pub color: Color,
}

/// Decodes WebP files, one after the other, with what only they offer: a part of the image.
///
/// Of a lossy image nothing below the region is decoded, and nothing to its right that the region
/// does not need. Other images are decoded whole.
#[derive(Clone, Debug)]
pub struct WebpDecoder {
    limits: Limits,
    level: Level,
    lossy: LossyBuffers,
    alpha: Vec<u8>,
    /// A row of RGB, or an image with alpha.
    scratch: Vec<u8>,
}

impl Default for WebpDecoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl WebpDecoder {
    /// A decoder with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            level: Level::detect(),
            lossy: LossyBuffers::default(),
            alpha: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Uses the kernels of this level. The pixels do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Gives the memory back that is kept for the next image if it is more than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        let kept = self.lossy.kept_bytes() + self.alpha.capacity() + self.scratch.capacity();
        if kept > bytes {
            *self = Self::new(self.limits).with_level(self.level);
        }
    }

    /// Decodes what `request` asks for of the first frame of `bytes` into `image`, whose pixels are as
    /// stored: the result is the turn that makes them upright.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for truncated or damaged data, [`DecodeError::LimitExceeded`] for
    /// images that are too big for the limits, [`DecodeError::Region`] for a region that is empty or
    /// not inside the image. The contents of `image` are unspecified then.
    /// Only what the request has to read is looked at: damage below a region stays unseen, and so
    /// does damage of alpha where a region is asked for without it.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        request: &WebpRequest,
        image: &mut Image,
    ) -> Result<Orientation, DecodeError> {
        let info = probe(bytes)?;
        riff::require_whole(bytes)?;
        let region = request.region.unwrap_or(Rect::of_size(info.width, info.height));
        if region.width == 0 || region.height == 0 || !region.fits(info.width, info.height) {
            let ImageInfo { width, height, .. } = info;
            return Err(DecodeError::Region { region, width, height });
        }
        let channels = request.color.channels();
        let still = if riff::is_animated(bytes) { None } else { Some(Still::find(bytes)?) };
        let lossy = still.filter(|still| &still.image.kind == b"VP8 ");
        let Some(Still { image: chunk, alpha }) = lossy else {
            self.decode_whole(bytes, &info, request, image)?;
            return Ok(info.orientation);
        };
        let is_whole = request.region.is_none() || request.color == Color::Rgba;
        let alpha = alpha.filter(|_| info.has_alpha && is_whole);
        self.limits.charge_pixels(info.width, info.height)?;
        self.limits.charge_image(region.width, region.height, channels)?;
        let pixels = u64::from(info.width) * u64::from(info.height);
        let of_alpha = alpha.map_or(0, |_| pixels * alpha::BYTES_PER_PIXEL);
        let row = 3 * region.width as usize;
        let of_rows = (LossyBuffers::bytes(info.width as usize) + row) as u64;
        self.limits.charge_working(of_rows + of_alpha)?;

        let mut frame = Frame::parse(chunk.data, chunk.offset as u64)?;
        if (frame.width, frame.height) != (info.width, info.height) {
            let what = "width or height of the VP8X chunk (the frame has another one)";
            let found = info.width.into();
            return Err(Defect::Value { format: Format::WebP, what, found }.into());
        }
        image.reset((region.width, region.height), channels, &self.limits)?;
        let columns = region.x as usize..(region.x + region.width) as usize;
        let rows = region.y as usize..(region.y + region.height) as usize;
        let wanted = Wanted { size: (info.width as usize, info.height as usize), columns, rows };
        let mut writer = PixelWriter::new(
            self.level,
            wanted.clone(),
            request.color,
            &mut self.scratch,
            &mut image.data,
        );
        self.lossy.decode(self.level, &mut frame, &wanted, &mut writer)?;
        if let Some(chunk) = alpha {
            alpha::decode(chunk, (info.width, info.height), &self.limits, &mut self.alpha)?;
            if request.color == Color::Rgba {
                self.place_alpha(&wanted, image);
            }
        }
        Ok(info.orientation)
    }

    /// Puts the alpha of the wanted part into an image of RGBA.
    fn place_alpha(&self, wanted: &Wanted, image: &mut Image) {
        let width = wanted.columns.len();
        let rows = image.data.chunks_exact_mut(4 * width);
        for (y, row) in wanted.rows.clone().zip(rows) {
            let alpha = &self.alpha[y * wanted.size.0..][wanted.columns.clone()];
            for (pixel, &alpha) in row.as_chunks_mut::<4>().0.iter_mut().zip(alpha) {
                pixel[3] = alpha;
            }
        }
    }

    /// Decodes an image whose parts cannot be decoded, and keeps the region.
    fn decode_whole(
        &mut self,
        bytes: &[u8],
        info: &ImageInfo,
        request: &WebpRequest,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let Self { limits, scratch, .. } = self;
        limits.charge_image(info.width, info.height, request.color.channels())?;
        lossless::decode(bytes, info, request.color, limits, scratch, image)?;
        if let Some(region) = request.region {
            image.crop(region);
        }
        Ok(())
    }
}
