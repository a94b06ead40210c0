//! A pass: crop, resize, cut, pad and flip, done together while the rows go by.

use serde::{Deserialize, Serialize};
use tl_simd::pad::{Flips, Margins};
use tl_simd::resample::{Filter, Rect, Resize, TensorFilter};

use crate::annotations::{Coordinates, Mask};
use crate::bounds::{is_resized_size, is_size};
use crate::error::{AnnotationError, PlanError};
use crate::interpolation::Interpolation;
use crate::parity::Parity;

/// The changes of an image in one pass over its rows: crop, resize, cut, pad, flip, in this order.
///
/// The result equals Pillow's `image.crop(region).resize(resized, filter).crop(window)`, with a
/// colour added around it, mirrored when a flip is set. The fields are public so that a pass drawn
/// elsewhere can be run, and one drawn here checked elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// The part of the image that counts; pixels outside it never contribute.
    #[serde(with = "rect")]
    pub region: Rect,
    /// The size the region is resized to, width first.
    pub resized: (u32, u32),
    /// The part of the resized region that is wanted.
    #[serde(with = "rect")]
    pub window: Rect,
    /// Pixels around the window.
    pub padding: Padding,
    /// Their colour; black when left out.
    #[serde(default)]
    pub fill: [u8; 3],
    /// Whether left and right change places, padding included.
    pub flip: bool,
    /// Whether top and bottom change places, padding included.
    #[serde(default)]
    pub flip_vertical: bool,
    /// The filter of resampling.
    pub interpolation: Interpolation,
    /// Whether shrinking takes all pixels into account, as it always does on Pillow images; yes
    /// when left out.
    #[serde(default = "yes")]
    pub antialias: bool,
    /// The arithmetic of resampling.
    #[serde(default)]
    pub parity: Parity,
}

const fn yes() -> bool {
    true
}

/// Pixels added on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Padding {
    /// Columns on the left.
    pub left: u32,
    /// Rows above.
    pub top: u32,
    /// Columns on the right.
    pub right: u32,
    /// Rows below.
    pub bottom: u32,
}

impl Padding {
    /// Width and height of an image of `size` with it.
    ///
    /// # Errors
    /// When that is beyond [`PlanError::MAX_SIDE`].
    pub(crate) fn around(self, size: (u32, u32)) -> Result<(u32, u32), PlanError> {
        let Self { left, top, right, bottom } = self;
        let width = size.0.saturating_add(left).saturating_add(right);
        let height = size.1.saturating_add(top).saturating_add(bottom);
        if width.max(height) > PlanError::MAX_SIDE {
            return Err(PlanError::ImageSize { width, height });
        }
        Ok((width, height))
    }
}

impl Pass {
    /// The pass that leaves an image as it is.
    #[must_use]
    pub const fn whole(width: u32, height: u32) -> Self {
        let region = Rect::of_size(width, height);
        let padding = Padding { left: 0, top: 0, right: 0, bottom: 0 };
        Self {
            region,
            resized: (width, height),
            window: region,
            padding,
            fill: [0; 3],
            flip: false,
            flip_vertical: false,
            interpolation: Interpolation::Bilinear,
            antialias: true,
            parity: Parity::Pil,
        }
    }

    /// The filter that it resamples with.
    #[must_use]
    pub fn filter(&self) -> Filter {
        match self.parity {
            Parity::Pil => self.interpolation.into(),
            Parity::Tensor => self.interpolation.tensor(self.antialias),
        }
    }

    /// Moves boxes or keypoints with the image.
    pub(crate) fn move_coordinates<C: Coordinates>(
        &self,
        coordinates: &mut C,
    ) -> Result<(), AnnotationError> {
        self.check(coordinates.canvas())?;
        let cut = |coordinates: &mut C, rect: Rect| {
            let (width, height) = coordinates.canvas();
            if Rect::of_size(width, height) == rect {
                return Ok(());
            }
            coordinates.crop((rect.x.into(), rect.y.into()), (rect.width, rect.height))
        };
        cut(coordinates, self.region)?;
        coordinates.scale(self.resized);
        cut(coordinates, self.window)?;
        if self.padding != Padding::default() {
            coordinates.pad((self.padding.left, self.padding.top), self.output_size())?;
        }
        if self.flip {
            coordinates.flip();
        }
        if self.flip_vertical {
            coordinates.flip_vertical();
        }
        Ok(())
    }

    /// Moves a mask with the image. A grey border has its number, another one 0, as torchvision
    /// takes a number for masks too and refuses a colour.
    pub(crate) fn move_mask(&self, mask: &mut Mask) -> Result<(), AnnotationError> {
        self.check(mask.size())?;
        let Self { region, resized, window, .. } = *self;
        let exact = self.interpolation == Interpolation::NearestExact;
        let filter = if exact { TensorFilter::NearestExact } else { TensorFilter::Nearest };
        let filter = Filter::Tensor(filter);
        mask.resample(&Resize { region, resized, window, filter });
        if !self.is_bare() {
            let fill = mask_fill(self.fill);
            mask.frame(self.output_size(), self.padding.into(), fill, self.flips());
        }
        Ok(())
    }

    /// Width and height of the result.
    #[must_use]
    pub fn output_size(&self) -> (u32, u32) {
        let Padding { left, top, right, bottom } = self.padding;
        (left + self.window.width + right, top + self.window.height + bottom)
    }

    /// Whether the region changes its size.
    pub(crate) fn resizes(&self) -> bool {
        self.resized != (self.region.width, self.region.height)
    }

    /// The flips, padding included.
    pub(crate) fn flips(&self) -> Flips {
        Flips { horizontal: self.flip, vertical: self.flip_vertical }
    }

    /// Whether nothing comes after the resizing but a cut.
    pub(crate) fn is_bare(&self) -> bool {
        self.padding == Padding::default() && !self.flip && !self.flip_vertical
    }

    /// Whether annotations of an image of this size can be moved.
    fn check(&self, size: (u32, u32)) -> Result<(), AnnotationError> {
        let (width, height) = size;
        let there = self.fits(width, height) && is_size(self.output_size());
        if there { Ok(()) } else { Err(AnnotationError::Size { width, height }) }
    }

    /// Whether the pass reads an image of this size only, and its parts fit each other.
    pub(crate) fn fits(&self, width: u32, height: u32) -> bool {
        let empty = |rect: Rect| rect.width == 0 || rect.height == 0;
        let Padding { left, top, right, bottom } = self.padding;
        let total = |a: u32, b: u32, c: u32| a.checked_add(b).and_then(|sum| sum.checked_add(c));
        self.region.fits(width, height)
            && is_resized_size(self.resized)
            && self.window.fits(self.resized.0, self.resized.1)
            && !empty(self.region)
            && !empty(self.window)
            && total(left, self.window.width, right).is_some()
            && total(top, self.window.height, bottom).is_some()
    }
}

impl From<Padding> for Margins {
    fn from(Padding { left, top, right, bottom }: Padding) -> Self {
        Self { left, top, right, bottom }
    }
}

/// The fill of a mask where an image gets this colour.
pub(crate) fn mask_fill([red, green, blue]: [u8; 3]) -> u8 {
    if red == green && green == blue { red } else { 0 }
}

/// Rectangles as `[x, y, width, height]`.
pub(crate) mod rect {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tl_simd::resample::Rect;

    pub(crate) fn serialize<S: Serializer>(rect: &Rect, to: S) -> Result<S::Ok, S::Error> {
        [rect.x, rect.y, rect.width, rect.height].serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rect, D::Error> {
        let [x, y, width, height] = <[u32; 4]>::deserialize(from)?;
        Ok(Rect { x, y, width, height })
    }
}
