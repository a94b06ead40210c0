//! AVIF: images of AV1 in files of boxes, in 8 bits as Pillow shows them.
//!
//! The boxes are read here, so that limits are charged before a decoder sees the data. `tl-av1` makes
//! planes, which are converted as libavif does with libyuv.

mod boxes;
mod color;
mod contents;
mod extents;
mod meta;
mod pixels;
mod planes;
mod properties;
mod track;

use crate::error::DecodeError;
use crate::image::{Image, ImageInfo};
use crate::limits::Limits;
use crate::options::{Color, DecodeOptions};
use crate::orientation::Orientation;
use contents::Contents;
use pixels::Pixels;
use planes::{Loader, Planes};

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    // Limits of metadata alone: nothing is decoded, and the data of items is not joined.
    Contents::find(bytes, &Limits::default()).map(|contents| contents.info())
}

pub(crate) fn decode(
    bytes: &[u8],
    options: &DecodeOptions,
    scratch: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Orientation, DecodeError> {
    let limits = &options.limits;
    let contents = Contents::find(bytes, limits)?;
    let size = contents.color.size;
    limits.charge_image(size.width, size.height, options.color.channels())?;
    let mut loader = Loader::new(limits);
    let color = loader.load(&contents.color, &contents.configuration)?;
    let has_alpha = contents.alpha.is_some();
    // Colours do not depend on the alpha that is dropped.
    let needs_alpha = options.color == Color::Rgba || contents.is_premultiplied;
    let alpha = match contents.alpha.as_ref().filter(|_| needs_alpha) {
        Some(layer) => {
            let alpha = loader.load(layer, &contents.configuration)?;
            alpha.require_same_size(&color)?;
            Some(alpha)
        }
        None => None,
    };
    let pixels = Pixels {
        color: &color,
        alpha: alpha.as_ref().map(Planes::alpha),
        has_alpha,
        is_premultiplied: contents.is_premultiplied,
        nclx: contents.nclx,
    };
    image.reset((size.width, size.height), options.color.channels(), limits)?;
    pixels.convert(options.color, scratch, image)?;
    Ok(contents.orientation)
}
