//! The entry points: [`probe`] and [`Decoder`].

use std::mem;

use tl_simd::resample::Rect;

#[cfg(feature = "avif")]
use crate::avif;
use crate::error::{DecodeError, Feature};
use crate::format::Format;
use crate::image::{Image, ImageInfo, PixelType};
use crate::jpeg::{Damage, JpegDecoder, JpegRequest};
#[cfg(feature = "jpeg2000")]
use crate::jpeg2000;
#[cfg(feature = "jxl")]
use crate::jxl;
use crate::options::{Color, DecodeOptions, Exif};
use crate::orientation::Orientation;
use crate::webp::{WebpDecoder, WebpRequest};
use crate::{bmp, gif, jpeg, png, pnm, qoi, tiff, webp, wide};

/// Reads format, size, channels and orientation from the header of an image.
///
/// No pixels are decoded and nothing is allocated in proportion to the image, so a header that
/// claims a huge size is reported as it is.
///
/// # Errors
/// [`DecodeError::Malformed`] where the header ends early or contradicts itself.
pub fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    match Format::of(bytes)? {
        Format::Jpeg => jpeg::probe(bytes),
        Format::Png => png::probe(bytes),
        Format::WebP => webp::probe(bytes),
        Format::Bmp => bmp::probe(bytes),
        Format::Tiff => tiff::probe(bytes),
        Format::Pnm => pnm::probe(bytes),
        Format::Qoi => qoi::probe(bytes),
        Format::Gif => gif::probe(bytes),
        #[cfg(feature = "jpeg2000")]
        Format::Jpeg2000 => jpeg2000::probe(bytes),
        #[cfg(not(feature = "jpeg2000"))]
        Format::Jpeg2000 => Err(not_built(Format::Jpeg2000, "jpeg2000")),
        #[cfg(feature = "jxl")]
        Format::Jxl => jxl::probe(bytes),
        #[cfg(not(feature = "jxl"))]
        Format::Jxl => Err(not_built(Format::Jxl, "jxl")),
        #[cfg(feature = "avif")]
        Format::Avif => avif::probe(bytes),
        #[cfg(not(feature = "avif"))]
        Format::Avif => Err(not_built(Format::Avif, "avif")),
    }
}

/// Decodes images of every [`Format`], one after the other.
///
/// A worker keeps one `Decoder` and one [`Image`]: both reuse their memory.
///
/// ```no_run
/// use tl_decode::{DecodeOptions, Decoder, Image};
///
/// let mut decoder = Decoder::new(DecodeOptions::default());
/// let mut image = Image::new();
/// decoder.decode_into(&std::fs::read("photo.jpg")?, &mut image)?;
/// assert_eq!(image.data.len(), (image.width * image.height * 3) as usize);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    options: DecodeOptions,
    damage: Option<Damage>,
    scratch: Vec<u8>,
    jpeg: JpegDecoder,
    webp: WebpDecoder,
    tiff: tiff::Buffers,
}

impl Decoder {
    /// A decoder with these options.
    pub fn new(options: DecodeOptions) -> Self {
        Self {
            options,
            jpeg: JpegDecoder::new(options.limits),
            webp: WebpDecoder::new(options.limits),
            ..Self::default()
        }
    }

    /// The options it was made with.
    pub fn options(&self) -> &DecodeOptions {
        &self.options
    }

    /// The damage of the last image of [`Decoder::decode_into`], if damage is kept.
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// The decoder for JPEG files, for what only they offer: a part of the image, a smaller scale,
    /// the components as they are.
    pub fn jpeg(&mut self) -> &mut JpegDecoder {
        &mut self.jpeg
    }

    /// The decoder for WebP files, for what only they and JPEG files offer: a part of the image.
    pub fn webp(&mut self) -> &mut WebpDecoder {
        &mut self.webp
    }

    /// Gives the memory back that is kept for the next image: that of JPEG files if it is more than
    /// `bytes`, and any other buffer that is larger.
    pub fn trim(&mut self, bytes: usize) {
        self.jpeg.trim(bytes);
        self.webp.trim(bytes);
        self.tiff.trim(bytes);
        if self.scratch.capacity() > bytes {
            self.scratch = Vec::new();
        }
    }

    /// Decodes the first frame of `bytes` into `image`.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for truncated or damaged data, [`DecodeError::Unsupported`] for
    /// kinds of images that are not decoded, [`DecodeError::LimitExceeded`] for images that are
    /// too big for the limits. The contents of `image` are unspecified then.
    pub fn decode_into(&mut self, bytes: &[u8], image: &mut Image) -> Result<(), DecodeError> {
        let options = &self.options;
        let scratch = &mut self.scratch;
        self.damage = None;
        let source = match options.pixels {
            PixelType::U8 => None,
            pixels @ (PixelType::U16 | PixelType::F32) => {
                Some(wide::Source::of(&probe(bytes)?, pixels)?)
            }
        };
        let orientation = match Format::of(bytes)? {
            Format::Jpeg => {
                let color = options.color;
                let on_damaged = options.on_damaged;
                let request = JpegRequest { color, on_damaged, ..JpegRequest::default() };
                let decoded = self.jpeg.decode(bytes, &request, image)?;
                self.damage = decoded.damage;
                Ok(decoded.orientation)
            }
            Format::Png => png::decode(bytes, options, scratch, image),
            Format::WebP => {
                let request = WebpRequest { color: options.color, ..WebpRequest::default() };
                self.webp.decode(bytes, &request, image)
            }
            Format::Bmp => bmp::decode(bytes, options, scratch, image),
            Format::Pnm => pnm::decode(bytes, options, scratch, image),
            Format::Qoi => qoi::decode(bytes, options, scratch, image),
            Format::Gif => gif::decode(bytes, options, scratch, image),
            #[cfg(feature = "jpeg2000")]
            Format::Jpeg2000 => jpeg2000::decode(bytes, options, scratch, image),
            #[cfg(not(feature = "jpeg2000"))]
            Format::Jpeg2000 => Err(not_built(Format::Jpeg2000, "jpeg2000")),
            #[cfg(feature = "jxl")]
            Format::Jxl => jxl::decode(bytes, options, scratch, image),
            #[cfg(not(feature = "jxl"))]
            Format::Jxl => Err(not_built(Format::Jxl, "jxl")),
            #[cfg(feature = "avif")]
            Format::Avif => avif::decode(bytes, options, scratch, image),
            #[cfg(not(feature = "avif"))]
            Format::Avif => Err(not_built(Format::Avif, "avif")),
            Format::Tiff => {
                let orientation =
                    tiff::decode(bytes, options, &mut self.tiff, &mut self.jpeg, image)?;
                self.turn(orientation, image)?;
                return self.widen(source, image);
            }
        }?;
        self.upright(orientation, image)?;
        self.widen(source, image)
    }

    /// Decodes the part `region` of the image that [`Decoder::decode_into`] makes of `bytes`.
    ///
    /// JPEG and lossy WebP files of 8 bits are decoded in part, unless they are turned upright: damage
    /// that the part does not depend on is not found. Others are decoded whole.
    ///
    /// # Errors
    /// As [`Decoder::decode_into`], and [`DecodeError::Region`] for a region that is empty or not
    /// inside the image.
    pub fn decode_region(
        &mut self,
        bytes: &[u8],
        region: Rect,
        image: &mut Image,
    ) -> Result<(), DecodeError> {
        let info = probe(bytes)?;
        let DecodeOptions { color, pixels, exif, on_damaged, .. } = self.options;
        let is_turned = exif == Exif::Apply && info.orientation != Orientation::Upright;
        let has_parts = pixels == PixelType::U8 && !is_turned;
        let part = Some(region);
        if has_parts && info.format == Format::Jpeg {
            let request = JpegRequest { region: part, color, on_damaged, ..JpegRequest::default() };
            self.damage = self.jpeg.decode(bytes, &request, image)?.damage;
        } else if has_parts && info.format == Format::WebP {
            self.damage = None;
            self.webp.decode(bytes, &WebpRequest { region: part, color }, image)?;
        } else {
            self.decode_into(bytes, image)?;
            let Image { width, height, .. } = *image;
            if region.width == 0 || region.height == 0 || !region.fits(width, height) {
                return Err(DecodeError::Region { region, width, height });
            }
            image.crop(region);
        }
        Ok(())
    }

    /// Converts an image of 8-bit RGB to the pixels that the options name.
    ///
    /// # Errors
    /// [`Feature::RawPixels`](crate::Feature::RawPixels) for 16 bits, which they do not have, and
    /// [`DecodeError::LimitExceeded`]. The contents of `image` are unspecified then.
    pub fn convert_rgb(&self, image: &mut Image) -> Result<(), DecodeError> {
        let DecodeOptions { color, pixels, limits, .. } = &self.options;
        match color {
            Color::Rgb => {}
            Color::Grey => image.make_grey(),
            Color::Rgba => wide::add_alpha(image, limits)?,
        }
        match pixels {
            PixelType::U8 => Ok(()),
            PixelType::U16 => Err(Feature::RawPixels { pixels: *pixels }.into()),
            PixelType::F32 => wide::widen(image, limits),
        }
    }

    /// Makes floats of pixels that were decoded to 8 bits for that.
    fn widen(&self, source: Option<wide::Source>, image: &mut Image) -> Result<(), DecodeError> {
        match source {
            Some(wide::Source::Bytes) => wide::widen(image, &self.options.limits),
            Some(wide::Source::Stored) | None => Ok(()),
        }
    }

    /// Decodes a mask: the samples of a PNG file of one channel as the numbers that they are,
    /// palette indexes or grey, in 8 bits or, if the file has 16, in 16 bits. No palette is looked up
    /// and nothing is scaled, so a mask of 1 bit has 0 and 1.
    ///
    /// # Errors
    /// As for [`Decoder::decode_into`]; [`Feature::Mask`](crate::Feature::Mask) for files of other
    /// formats and of colours.
    pub fn decode_mask_into(&mut self, bytes: &[u8], image: &mut Image) -> Result<(), DecodeError> {
        self.damage = None;
        let info = probe(bytes)?;
        if info.format != Format::Png {
            let ImageInfo { format, channels, bit_depth, .. } = info;
            return Err(Feature::Mask { format, channels, bit_depth }.into());
        }
        let orientation = png::decode_stored(bytes, &self.options, &mut self.scratch, image)?;
        self.upright(orientation, image)
    }

    /// Turns the image if the options say so.
    fn upright(&mut self, orientation: Orientation, image: &mut Image) -> Result<(), DecodeError> {
        match self.options.exif {
            Exif::Ignore => Ok(()),
            Exif::Apply => self.turn(orientation, image),
        }
    }

    fn turn(&mut self, orientation: Orientation, image: &mut Image) -> Result<(), DecodeError> {
        if orientation != Orientation::Upright {
            self.options.limits.charge_working(image.data.len() as u64)?;
            let stored = (image.width as usize, image.height as usize);
            let pixel_bytes = image.pixel_bytes();
            orientation.turn(&image.data, stored, pixel_bytes, &mut self.scratch);
            mem::swap(&mut image.data, &mut self.scratch);
            (image.width, image.height) = orientation.shown_size((image.width, image.height));
        }
        Ok(())
    }
}

/// The error of images whose decoder is left out of this build.
#[cfg(not(all(feature = "avif", feature = "jpeg2000", feature = "jxl")))]
fn not_built(format: Format, feature: &'static str) -> DecodeError {
    Feature::NotBuilt { format, feature }.into()
}
