//! Boxes, keypoints and masks under warps: torchvision's kernels for its `tv_tensors`.

use tl_simd::Level;

use super::elastic::Displacements;
use super::matrix::{self, Parameters};
use super::run::{Scratch, Source};
use super::{Affine, Elastic, Perspective, Rotate, Warp, middle, real};
use crate::annotations::{Coordinates, Mask, Point};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::parity::Parity;

impl Warp {
    /// Moves boxes or keypoints with an image that this is for. Boxes become what holds their moved
    /// corners, cut off at the image's edges.
    ///
    /// Follows `rotate_bounding_boxes`, `affine_bounding_boxes`, `perspective_bounding_boxes`,
    /// `elastic_bounding_boxes` and those of keypoints, in `f32`. Where a perspective cannot be
    /// inverted, torchvision raises an error and the coordinates stay here.
    pub(in crate::step) fn move_coordinates<C: Coordinates>(&self, coordinates: &mut C) {
        let before = coordinates.canvas();
        let size = self.output_size(before);
        match self {
            Self::Rotate(rotate) => {
                let matrix = rotate.forward(before);
                let (left, top) = rotate.expand.map_or((0.0, 0.0), |_| {
                    let (width, height) = single(before);
                    let corners = [(0.0, 0.0), (0.0, height), (width, height), (width, 0.0)];
                    let [first, rest @ ..] = corners.map(|corner| apply(matrix, corner));
                    rest.into_iter().fold(first, |(x, y), p| (x.min(p.0), y.min(p.1)))
                });
                coordinates.map_points(size, |point| {
                    let (x, y) = apply(matrix, point);
                    (x - left, y - top)
                });
            }
            Self::Affine(affine) => {
                let matrix = affine.forward(before);
                coordinates.map_points(size, |point| apply(matrix, point));
            }
            Self::Perspective(perspective) => {
                if let Some([a, b, c, d, e, f, g, h]) = perspective.inverted() {
                    coordinates.map_points(size, |point| {
                        let (x, y) = apply([a, b, c, d, e, f], point);
                        let (depth, _) = apply([g, h, 1.0, 0.0, 0.0, 0.0], point);
                        (x / depth, y / depth)
                    });
                }
            }
            Self::Elastic(elastic) => {
                let mut displacements = Displacements::default();
                displacements.draw(Level::detect(), elastic, size);
                coordinates.map_points(size, |(x, y)| {
                    elastic_point(&displacements, size, (C::pixel(x), C::pixel(y)))
                });
            }
        }
    }

    /// Moves a mask with an image that this is for: nearest pixels in torch's arithmetic, whatever
    /// the parity, and a single number to fill with, or 0.
    pub(in crate::step) fn move_mask(&self, mask: &mut Mask) {
        let warp = self.of_mask();
        let size = mask.size();
        mask.replace(warp.output_size(size), |mask, out| {
            let source = Source { level: Level::detect(), view: mask.view(), wide: None, size };
            warp.apply(&mut Scratch::default(), source, Parity::Tensor, out);
        });
    }

    /// The same with another fill.
    pub(crate) fn with_fill(mut self, fill: Fill) -> Self {
        *self.filter_and_fill().1 = Some(fill);
        self
    }

    fn of_mask(mut self) -> Self {
        let (interpolation, fill) = self.filter_and_fill();
        *interpolation = Interpolation::Nearest;
        *fill = fill.map(Fill::mask);
        self
    }

    /// The filter, and the colour outside the image.
    fn filter_and_fill(&mut self) -> (&mut Interpolation, &mut Option<Fill>) {
        match self {
            Self::Rotate(Rotate { interpolation, fill, .. })
            | Self::Affine(Affine { interpolation, fill, .. })
            | Self::Perspective(Perspective { interpolation, fill, .. })
            | Self::Elastic(Elastic { interpolation, fill, .. }) => (interpolation, fill),
        }
    }
}

impl Rotate {
    fn forward(&self, size: (u32, u32)) -> [f32; 6] {
        let center = self.center.unwrap_or_else(|| middle(size));
        let translate = (0.0, 0.0);
        let shear = (0.0, 0.0);
        let turned = Parameters { center, angle: -self.angle, translate, scale: 1.0, shear };
        matrix::theta(turned.forward())
    }
}

impl Affine {
    fn forward(&self, size: (u32, u32)) -> [f32; 6] {
        let center = self.center.unwrap_or_else(|| middle(size));
        matrix::theta(self.parameters(center).forward())
    }
}

impl Perspective {
    /// The coefficients of the way back: torchvision's `_compute_perspective_thetas`.
    #[expect(clippy::cast_possible_truncation, reason = "torch works in f32")]
    fn inverted(&self) -> Option<[f32; 8]> {
        let [a, b, c, d, e, f, g, h] = self.coefficients.map(f64::from);
        let determinant = a * e - b * d;
        let inverse = [
            e - f * h,
            -b + c * h,
            b * f - c * e,
            -d + f * g,
            a - c * g,
            -a * f + c * d,
            -e * g + d * h,
            -a * h + b * g,
        ];
        (determinant != 0.0).then(|| inverse.map(|number| (number / determinant) as f32))
    }
}

fn apply([a, b, c, d, e, f]: [f32; 6], point: Point) -> Point {
    let (x, y) = point;
    (x * a + y * b + c, x * d + y * e + f)
}

/// Moves a pixel by the displacements, as if they were those of the way back.
fn elastic_point(displacements: &Displacements, size: (u32, u32), pixel: Point) -> Point {
    let column = index(pixel.0, size.0);
    let row = index(pixel.1, size.1);
    let at = row as usize * size.0 as usize + column as usize;
    let [right, down] = displacements.planes();
    let half_width = single(size).0 * 0.5;
    let half_height = single(size).1 * 0.5;
    let place = |place: u32, count: u32, moved: f32, half: f32| {
        (identity(place, count) - moved + 1.0) * half - 0.5
    };
    (place(column, size.0, right[at], half_width), place(row, size.1, down[at], half_height))
}

/// The pixel that torchvision looks a coordinate up in.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn index(coordinate: f32, side: u32) -> u32 {
    (coordinate as u32).min(side - 1)
}

/// The middle of a pixel between -1 and 1, by `torch.linspace`.
fn identity(place: u32, count: u32) -> f32 {
    let whole = |number: u32| single((number, 0)).0;
    #[expect(clippy::cast_possible_truncation, reason = "torch rounds the ends to f32")]
    let end = ((f64::from(count) - 1.0) / f64::from(count)) as f32;
    let step = if count > 1 { (end + end) / whole(count - 1) } else { 0.0 };
    if place < count / 2 {
        step.mul_add(whole(place), -end)
    } else {
        (-step).mul_add(whole(count - place - 1), end)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "sides have 16 bits")]
fn single(size: (u32, u32)) -> Point {
    let (width, height) = real(size);
    (width as f32, height as f32)
}
