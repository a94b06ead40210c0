//! Mixing a batch: its images in place, and the weights of its labels.

use serde::{Deserialize, Serialize};
use tl_simd::Level;
use tl_simd::mix::{self, Format};
use tl_simd::resample::Rect;

use crate::output::{Channels, OutputSpec};
use crate::pass::rect;

/// The mixing that was drawn for one batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mixing {
    /// `lambda` times the image and the rest times the one before.
    MixUp {
        /// The weight of the image itself.
        lambda: f64,
    },
    /// A rectangle of the image before.
    CutMix {
        /// The rectangle.
        #[serde(with = "rect")]
        rect: Rect,
    },
    /// The image and the three before it around a point.
    Mosaic {
        /// Column and row of the point.
        centre: (u32, u32),
    },
}

/// The largest number of images that are mixed into one.
const SOURCES: usize = 4;

impl Mixing {
    /// The shares of an image of this size, as labels count them, that are of the image itself, the
    /// one before it, the second and the third before it. torchvision's `lam` is the first.
    #[must_use]
    pub fn weights(&self, size: (u32, u32)) -> [f64; SOURCES] {
        let (width, height) = size;
        let area = f64::from(width) * f64::from(height);
        let share = |width: u32, height: u32| f64::from(width) * f64::from(height) / area;
        match *self {
            Self::MixUp { lambda } => [lambda, 1.0 - lambda, 0.0, 0.0],
            Self::CutMix { rect } => {
                let lambda = 1.0 - share(rect.width, rect.height);
                [lambda, 1.0 - lambda, 0.0, 0.0]
            }
            Self::Mosaic { centre: (x, y) } => {
                let right = width.saturating_sub(x);
                let below = height.saturating_sub(y);
                [share(x, y), share(right, y), share(x, below), share(right, below)]
            }
        }
    }

    /// Mixes `images`, images of `size` in the form of `output` one after the other, in place.
    /// `spare` is memory for up to three of them.
    ///
    /// # Panics
    /// When `images` are not whole images, when a rectangle or a point is not in them, or when
    /// integers are to be blended.
    pub fn run(
        &self,
        level: Level,
        output: OutputSpec,
        channels: Channels,
        size: (u32, u32),
        images: &mut [u8],
        spare: &mut Vec<u8>,
    ) {
        let OutputSpec { dtype, layout } = output;
        let format = Format { size, dtype, layout, channels: channels.count() as usize };
        let mut batch = Batch::new(images, format, self.sources(), spare);
        // From the last image to the first, so that those before an image are as they were.
        for image in (0..batch.count).rev() {
            match *self {
                Self::MixUp { lambda } => {
                    let (row, before) = batch.pair(image, 1);
                    mix::blend(level, format.dtype, lambda, row, before);
                }
                Self::CutMix { rect } => {
                    let (row, before) = batch.pair(image, 1);
                    mix::copy_rect(format, before, rect, row, (rect.x, rect.y));
                }
                Self::Mosaic { centre } => batch.mosaic(image, centre),
            }
        }
    }

    /// How many images before an image are mixed into it.
    const fn sources(&self) -> usize {
        match self {
            Self::MixUp { .. } | Self::CutMix { .. } => 1,
            Self::Mosaic { .. } => SOURCES - 1,
        }
    }
}

/// Images in the making, and copies of the last ones as they were, which the first are mixed with.
struct Batch<'a> {
    images: &'a mut [u8],
    /// The last image, the one before it, and so on.
    last: &'a [u8],
    format: Format,
    bytes: usize,
    count: usize,
}

impl<'a> Batch<'a> {
    fn new(images: &'a mut [u8], format: Format, sources: usize, spare: &'a mut Vec<u8>) -> Self {
        let bytes = format.bytes();
        let count = images.len() / bytes.max(1);
        assert_eq!(count * bytes, images.len(), "whole images of {bytes} bytes");
        spare.clear();
        if count > 0 {
            for back in 0..sources {
                // A batch of fewer images than sources goes round more than once.
                let image = count - 1 - back % count;
                spare.extend_from_slice(&images[image * bytes..][..bytes]);
            }
        }
        Self { images, last: spare, format, bytes, count }
    }

    /// Image number `image`, and the one that stands `back` before it, as it was.
    fn pair(&mut self, image: usize, back: usize) -> (&mut [u8], &[u8]) {
        let bytes = self.bytes;
        let (before, rest) = self.images.split_at_mut(image * bytes);
        let source = match image.checked_sub(back) {
            Some(image) => &before[image * bytes..][..bytes],
            None => &self.last[(back - image - 1) * bytes..][..bytes],
        };
        (&mut rest[..bytes], source)
    }

    /// Makes the mosaic around `centre` of an image and the three before it.
    fn mosaic(&mut self, image: usize, centre: (u32, u32)) {
        let (x, y) = centre;
        let format = self.format;
        let (width, height) = format.size;
        let right = width - x;
        let below = height - y;
        // What becomes the upper left part moves up and left, before the others come in.
        let row = &mut self.images[image * self.bytes..][..self.bytes];
        let own = Rect { x: right, y: below, width: x, height: y };
        mix::move_rect(format, row, own, (0, 0));
        let parts = [
            (Rect { x: 0, y: below, width: right, height: y }, (x, 0)),
            (Rect { x: right, y: 0, width: x, height: below }, (0, y)),
            (Rect { x: 0, y: 0, width: right, height: below }, (x, y)),
        ];
        for (back, (source, to)) in (1..).zip(parts) {
            let (row, before) = self.pair(image, back);
            mix::copy_rect(format, before, source, row, to);
        }
    }
}
