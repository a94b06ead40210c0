//! A pass: crop, resize, cut, pad and flip, done together while the rows go by.

use serde::{Deserialize, Serialize};
use tl_simd::resample::Rect;

use crate::interpolation::Interpolation;

/// What happens to an image in one pass over its rows: crop, resize, cut, pad, flip, in this order.
///
/// The result equals Pillow's `image.crop(region).resize(resized, filter).crop(window)`, with
/// black added around it, mirrored when `flip` is set. The fields are public so that a pass drawn
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
    /// Black pixels around the window.
    pub padding: Padding,
    /// Whether left and right change places, padding included.
    pub flip: bool,
    /// How to resample.
    pub interpolation: Interpolation,
}

/// Black pixels added on each side.
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

impl Pass {
    /// The pass that leaves an image as it is.
    #[must_use]
    pub const fn whole(width: u32, height: u32) -> Self {
        let region = Rect::of_size(width, height);
        let padding = Padding { left: 0, top: 0, right: 0, bottom: 0 };
        let interpolation = Interpolation::Bilinear;
        Self {
            region,
            resized: (width, height),
            window: region,
            padding,
            flip: false,
            interpolation,
        }
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

    /// Whether nothing comes after the resizing but a cut.
    pub(crate) fn is_bare(&self) -> bool {
        self.padding == Padding::default() && !self.flip
    }

    /// Whether the pass reads an image of this size only, and its parts fit each other.
    pub(crate) fn fits(&self, width: u32, height: u32) -> bool {
        let empty = |rect: Rect| rect.width == 0 || rect.height == 0;
        let Padding { left, top, right, bottom } = self.padding;
        let total = |a: u32, b: u32, c: u32| a.checked_add(b).and_then(|sum| sum.checked_add(c));
        self.region.fits(width, height)
            && self.window.fits(self.resized.0, self.resized.1)
            && !empty(self.region)
            && !empty(self.window)
            && total(left, self.window.width, right).is_some()
            && total(top, self.window.height, bottom).is_some()
    }
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
