//! The request to decode a JPEG file, and its result.

use tl_simd::jpeg::Scale;
use tl_simd::resample::Rect;

use super::index::RowIndex;
use super::scan::{Damage, OnDamaged};
use crate::image::PixelType;
use crate::options::Color;
use crate::orientation::Orientation;

/// A request to decode a JPEG file. The default is the whole image as RGB.
#[derive(Clone, Copy, Debug, Default)]
pub struct JpegRequest<'a> {
    /// The size to decode at: a side of `n` pixels becomes `Scale::apply(n)`.
    pub scale: Scale,
    /// The part to decode, in pixels of the scaled image; all of it if `None`. Its pixels are
    /// those that the whole image has there.
    pub region: Option<Rect>,
    /// The channels to decode to.
    pub color: Color,
    /// The type of the samples to decode to: 8 bits, or the same numbers as floats.
    pub pixels: PixelType,
    /// The treatment of damaged data.
    pub on_damaged: OnDamaged,
    /// The file's row index, with which nothing above the region or to its right is decoded. The
    /// pixels do not depend on it: one whose checksum of the file is another's is an error. It is
    /// not used for damage to keep, nor for files that can have none.
    pub index: Option<RowIndex<'a>>,
}

/// The header of a decoded image, and its damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The turn that makes the image upright; its pixels are as stored.
    pub orientation: Orientation,
    /// The damage that [`OnDamaged::Keep`] tolerated; `None` for an image without damage.
    ///
    /// Only what the request had to read is looked at: damage below the region stays unseen.
    pub damage: Option<Damage>,
}
