//! Keypoints: torchvision's kernels for float32 points, step by step, so that every coordinate has
//! the same bits.

use super::{Coordinates, Point, checked, floats, ratios, single};
use crate::error::AnnotationError;

/// Points on a canvas: torchvision's `KeyPoints` of float32.
///
/// A point names a pixel: the middle of the top left one is (0, 0), so that flipping an image of `w`
/// columns moves column `x` to `w - 1 - x`. Points that leave the image keep their coordinates.
///
/// ```
/// use tl_transform::Keypoints;
///
/// let mut points = Keypoints::new((100, 80), vec![[10.0, 20.0]])?;
/// points.flip();
/// assert_eq!(points.points(), [[89.0, 20.0]]);
/// # Ok::<(), tl_transform::AnnotationError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Keypoints {
    /// Width and height of the image.
    canvas: (u32, u32),
    points: Vec<[f32; 2]>,
}

impl Keypoints {
    /// The largest coordinate.
    const LARGEST: f32 = 1e20;

    /// Points on an image of `canvas` pixels, width first. They may lie outside.
    ///
    /// # Errors
    /// [`AnnotationError::NotFinitePoint`] when a coordinate is NaN, or beyond 1e20, and
    /// [`AnnotationError::Size`] when a side of the image is 0 or above 65,535.
    pub fn new(canvas: (u32, u32), points: Vec<[f32; 2]>) -> Result<Self, AnnotationError> {
        checked(canvas)?;
        let known = |coordinate: &f32| coordinate.abs() <= Self::LARGEST;
        match points.iter().position(|point| !point.iter().all(known)) {
            Some(position) => Err(AnnotationError::NotFinitePoint { position }),
            None => Ok(Self { canvas, points }),
        }
    }

    /// Width and height of the image.
    #[must_use]
    pub const fn canvas(&self) -> (u32, u32) {
        self.canvas
    }

    /// The points: across, down.
    #[must_use]
    pub fn points(&self) -> &[[f32; 2]] {
        &self.points
    }

    /// Moves to the part of the image that begins at (`x`, `y`) and is `size` large:
    /// `crop_keypoints`. The part may reach beyond the image.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side of the part is 0 or above 65,535.
    pub fn crop(&mut self, corner: (i64, i64), size: (u32, u32)) -> Result<(), AnnotationError> {
        checked(size)?;
        self.shift(-single(corner.0), -single(corner.1));
        self.canvas = size;
        Ok(())
    }

    /// Moves with an image that is resized: `resize_keypoints`.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is 0 or above 65,535.
    pub fn resize(&mut self, size: (u32, u32)) -> Result<(), AnnotationError> {
        checked(size)?;
        self.scale(size);
        Ok(())
    }

    /// Moves with an image that gets `left` columns and `top` rows in front and is `size` large
    /// then: `pad_keypoints`.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is 0 or above 65,535.
    pub fn pad(&mut self, corner: (u32, u32), size: (u32, u32)) -> Result<(), AnnotationError> {
        checked(size)?;
        self.shift(single(corner.0.into()), single(corner.1.into()));
        self.canvas = size;
        Ok(())
    }

    /// Moves with an image whose left and right change places: `horizontal_flip_keypoints`.
    pub fn flip(&mut self) {
        let (width, _) = floats(self.canvas);
        self.points.iter_mut().for_each(|[x, _]| *x = -(*x - (width - 1.0)));
    }

    /// Moves with an image whose top and bottom change places: `vertical_flip_keypoints`.
    pub fn flip_vertical(&mut self) {
        let (_, height) = floats(self.canvas);
        self.points.iter_mut().for_each(|[_, y]| *y = -(*y - (height - 1.0)));
    }

    fn shift(&mut self, across: f32, down: f32) {
        self.points.iter_mut().for_each(|[x, y]| (*x, *y) = (*x + across, *y + down));
    }
}

impl Coordinates for Keypoints {
    fn canvas(&self) -> (u32, u32) {
        self.canvas
    }

    fn crop(&mut self, corner: (i64, i64), size: (u32, u32)) -> Result<(), AnnotationError> {
        Self::crop(self, corner, size)
    }

    fn scale(&mut self, size: (u32, u32)) {
        if size == self.canvas {
            return;
        }
        let (across, down) = ratios(self.canvas, size);
        self.points.iter_mut().for_each(|[x, y]| (*x, *y) = (*x * across, *y * down));
        self.canvas = size;
    }

    fn pad(&mut self, corner: (u32, u32), size: (u32, u32)) -> Result<(), AnnotationError> {
        Self::pad(self, corner, size)
    }

    fn flip(&mut self) {
        Self::flip(self);
    }

    fn flip_vertical(&mut self) {
        Self::flip_vertical(self);
    }

    fn map_points(&mut self, canvas: (u32, u32), f: impl Fn(Point) -> Point) {
        self.points.iter_mut().for_each(|[x, y]| (*x, *y) = f((*x, *y)));
        self.canvas = canvas;
    }

    fn pixel(coordinate: f32) -> f32 {
        coordinate.trunc()
    }
}
