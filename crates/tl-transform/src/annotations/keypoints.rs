//! Keypoints: torchvision's kernels for float32 points, step by step, so that every coordinate has
//! the same bits.

use super::{Coordinates, Kernels, Point, checked, floats, ratios};
use crate::error::AnnotationError;

/// Points on a canvas: torchvision's `KeyPoints` of float32.
///
/// A point names a pixel: the middle of the top left one is (0, 0), so that flipping an image of `w`
/// columns moves column `x` to `w - 1 - x`. Points that leave the image keep their coordinates.
///
/// ```
/// use tl_transform::{Coordinates, Keypoints};
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

    /// The points: across, down.
    #[must_use]
    pub fn points(&self) -> &[[f32; 2]] {
        &self.points
    }
}

impl Coordinates for Keypoints {
    fn canvas(&self) -> (u32, u32) {
        self.canvas
    }

    fn flip(&mut self) {
        let (width, _) = floats(self.canvas);
        self.points.iter_mut().for_each(|[x, _]| *x = -(*x - (width - 1.0)));
    }

    fn flip_vertical(&mut self) {
        let (_, height) = floats(self.canvas);
        self.points.iter_mut().for_each(|[_, y]| *y = -(*y - (height - 1.0)));
    }
}

impl Kernels for Keypoints {
    fn shift(&mut self, by: Point, canvas: (u32, u32)) {
        self.map_points(canvas, |(x, y)| (x + by.0, y + by.1));
    }

    fn scale(&mut self, size: (u32, u32)) {
        let (across, down) = ratios(self.canvas, size);
        self.map_points(size, |(x, y)| (x * across, y * down));
    }

    fn map_points(&mut self, canvas: (u32, u32), f: impl Fn(Point) -> Point) {
        self.points.iter_mut().for_each(|[x, y]| (*x, *y) = f((*x, *y)));
        self.canvas = canvas;
    }

    fn pixel(coordinate: f32) -> f32 {
        coordinate.trunc()
    }
}
