//! Erasing: parts of an image replaced by a colour or by noise, in 8-bit pixels or in the numbers of
//! a batch.

use serde::{Deserialize, Serialize};
use tl_simd::Level;
use tl_simd::erase::{Canvas, Grid};
use tl_simd::resample::Rect;

use crate::bounds::is_size;
use crate::output::{Channels, OutputSpec};
use crate::pass::rect;
use crate::render::CHANNELS;

/// The part that is erased.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Erase {
    /// A rectangle: torchvision's `erase`.
    Rectangle {
        /// The rectangle.
        #[serde(with = "rect")]
        rect: Rect,
        /// The pixels' values.
        fill: Filling,
    },
    /// The squares or the stripes of a grid: `GridMask` (Chen et al., 2020), as its authors' code
    /// draws and rotates it.
    Grid {
        /// Pixels from one stripe to the next, at least 1.
        distance: u32,
        /// Width of a stripe.
        length: u32,
        /// The column and the row, less than `distance`, that the first stripes begin at.
        offset: (u32, u32),
        /// The angle of its turn, counter-clockwise.
        degrees: u32,
        /// Whether the squares between the stripes are erased, and not the stripes.
        squares: bool,
        /// The pixels' value, for R, G and B.
        value: [f32; CHANNELS],
    },
}

/// The value of erased pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Filling {
    /// These numbers, for R, G and B; pixels that are integers lose the fraction and are held within
    /// their type. Alpha has the last one.
    Value([f32; CHANNELS]),
    /// Normal deviates of mean 0 and deviation 1; in 8-bit pixels, which cannot hold them,
    /// nearly all are 0.
    Normal {
        /// The key of the deviates.
        key: u64,
    },
}

impl Erase {
    /// Whether it can be done to an image of this size.
    pub(crate) fn fits(&self, size: (u32, u32)) -> bool {
        match self {
            Self::Rectangle { rect, .. } => rect.fits(size.0, size.1),
            Self::Grid { distance, .. } => *distance > 0 && is_size(size),
        }
    }

    /// Erases its part of `image`, which holds `width * height` pixels of these channels in the form
    /// of `output`.
    ///
    /// # Panics
    /// When the image has another length, or the rectangle leaves it.
    pub fn run(
        &self,
        level: Level,
        output: OutputSpec,
        channels: Channels,
        size: (u32, u32),
        image: &mut [u8],
    ) {
        let sides = (size.0 as usize, size.1 as usize);
        let count = channels.count() as usize;
        let mut canvas = Canvas::with_channels(image, sides, count, output.dtype, output.layout);
        match *self {
            Self::Rectangle { rect, fill: Filling::Value(value) } => canvas.fill(rect, value),
            Self::Rectangle { rect, fill: Filling::Normal { key } } => {
                canvas.fill_normal(level, rect, key);
            }
            Self::Grid { distance, length, offset, degrees, squares, value } => {
                let (cosine, sine) = turn(degrees);
                let grid = Grid::new(size, distance, length, offset).rotated(cosine, sine);
                canvas.fill_grid(&if squares { grid.squares() } else { grid }, value);
            }
        }
    }
}

/// Cosine and sine, exact for quarter turns, which Pillow does without them.
fn turn(degrees: u32) -> (f64, f64) {
    match degrees % 360 {
        0 => (1.0, 0.0),
        90 => (0.0, 1.0),
        180 => (-1.0, 0.0),
        270 => (0.0, -1.0),
        degrees => {
            let angle = f64::from(degrees).to_radians();
            (libm::cos(angle), libm::sin(angle))
        }
    }
}
