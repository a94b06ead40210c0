//! Annotations of an image: bounding boxes, keypoints and masks, moved as torchvision v2 moves its
//! `tv_tensors`.

mod boxes;
mod keypoints;
mod mask;
mod segmentation;

pub use boxes::{BoundingBoxes, BoxFormat};
pub use keypoints::Keypoints;
pub use mask::Mask;
pub use segmentation::Segmentation;

use crate::bounds::is_size;
use crate::error::AnnotationError;

/// Across and down.
pub(crate) type Point = (f32, f32);

/// Boxes or keypoints, which move with their image by torchvision's kernels:
/// `crop_bounding_boxes`, `crop_keypoints` and so on.
pub trait Coordinates: Kernels {
    /// Width and height of the image.
    fn canvas(&self) -> (u32, u32);

    /// Moves to the part of the image that begins at `corner` and is `size` large. The part may
    /// reach beyond the image.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side of the part is 0 or above 65,535.
    fn crop(&mut self, corner: (i64, i64), size: (u32, u32)) -> Result<(), AnnotationError> {
        checked(size)?;
        self.shift((-single(corner.0), -single(corner.1)), size);
        Ok(())
    }

    /// Moves with an image that is resized.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is 0 or above 65,535.
    fn resize(&mut self, size: (u32, u32)) -> Result<(), AnnotationError> {
        checked(size)?;
        self.scale(size);
        Ok(())
    }

    /// Moves with an image that gets `corner` columns and rows in front and is `size` large then.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is 0 or above 65,535.
    fn pad(&mut self, corner: (u32, u32), size: (u32, u32)) -> Result<(), AnnotationError> {
        checked(size)?;
        self.shift((single(corner.0.into()), single(corner.1.into())), size);
        Ok(())
    }

    /// Moves with an image whose left and right change places.
    fn flip(&mut self);

    /// Moves with an image whose top and bottom change places.
    fn flip_vertical(&mut self);
}

/// The arithmetic that boxes and keypoints do not share. No other crate can name this trait, so that
/// their canvas stays one that an image can have.
pub trait Kernels {
    /// Adds `by` to every coordinate, for another canvas.
    fn shift(&mut self, by: Point, canvas: (u32, u32));

    /// Moves with an image that is resized, also to sizes that exist only in part.
    fn scale(&mut self, size: (u32, u32));

    /// Moves every point to the one that `f` returns for it, on another canvas.
    fn map_points(&mut self, canvas: (u32, u32), f: impl Fn(Point) -> Point);

    /// The place of the pixel whose displacement moves a coordinate.
    fn pixel(coordinate: f32) -> f32;
}

/// Checks that an image of this size can exist.
fn checked(size: (u32, u32)) -> Result<(), AnnotationError> {
    let (width, height) = size;
    if is_size(size) { Ok(()) } else { Err(AnnotationError::Size { width, height }) }
}

/// The factors by which coordinates grow with an image.
fn ratios(from: (u32, u32), to: (u32, u32)) -> Point {
    let ratio = |new: u32, old: u32| rounded(f64::from(new) / f64::from(old));
    (ratio(to.0, from.0), ratio(to.1, from.1))
}

fn floats(size: (u32, u32)) -> Point {
    (single(size.0.into()), single(size.1.into()))
}

/// Pixels, of which there are too few for the rounding to matter.
#[expect(clippy::cast_precision_loss, reason = "sides are below 2^24")]
fn single(pixels: i64) -> f32 {
    pixels as f32
}

#[expect(clippy::cast_possible_truncation, reason = "the rounding is what torch does")]
fn rounded(value: f64) -> f32 {
    value as f32
}
