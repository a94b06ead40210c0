//! Bounding boxes: torchvision's kernels for float32 boxes, step by step, so that every coordinate
//! has the same bits.

use serde::{Deserialize, Serialize};

use super::{Coordinates, Kernels, Point, checked, floats, ratios};
use crate::error::AnnotationError;

/// The meaning of the four numbers of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BoxFormat {
    /// Left, top, right, bottom.
    #[default]
    Xyxy,
    /// Left, top, width, height.
    Xywh,
    /// Middle across, middle down, width, height.
    Cxcywh,
}

/// Boxes on a canvas: torchvision's `BoundingBoxes` of float32, without rotated ones.
///
/// A pixel covers one unit, the top left one from 0 to 1.
///
/// ```
/// use tl_transform::{BoundingBoxes, BoxFormat, Coordinates};
///
/// let mut boxes = BoundingBoxes::new(BoxFormat::Xywh, (100, 80), vec![[10.0, 20.0, 30.0, 40.0]])?;
/// boxes.flip();
/// assert_eq!(boxes.boxes(), [[60.0, 20.0, 30.0, 40.0]]);
/// # Ok::<(), tl_transform::AnnotationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Unchecked")]
pub struct BoundingBoxes {
    format: BoxFormat,
    /// Width and height of the image.
    canvas: (u32, u32),
    boxes: Vec<[f32; 4]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    format: BoxFormat,
    canvas: (u32, u32),
    boxes: Vec<[f32; 4]>,
}

impl TryFrom<Unchecked> for BoundingBoxes {
    type Error = AnnotationError;

    fn try_from(Unchecked { format, canvas, boxes }: Unchecked) -> Result<Self, Self::Error> {
        Self::new(format, canvas, boxes)
    }
}

impl BoundingBoxes {
    /// The largest coordinate. All results computed from it are finite on every image.
    const LARGEST: f32 = 1e20;

    /// Boxes on an image of `canvas` pixels, width first. They may reach beyond it.
    ///
    /// # Errors
    /// [`AnnotationError::NotFinite`] when a coordinate is NaN, or beyond 1e20, and
    /// [`AnnotationError::Size`] when a side of the image is 0 or above 65,535.
    pub fn new(
        format: BoxFormat,
        canvas: (u32, u32),
        boxes: Vec<[f32; 4]>,
    ) -> Result<Self, AnnotationError> {
        checked(canvas)?;
        let known = |coordinate: &f32| coordinate.abs() <= Self::LARGEST;
        match boxes.iter().position(|coordinates| !coordinates.iter().all(known)) {
            Some(position) => Err(AnnotationError::NotFinite { position }),
            None => Ok(Self { format, canvas, boxes }),
        }
    }

    /// The meaning of a box's numbers.
    #[must_use]
    pub const fn format(&self) -> BoxFormat {
        self.format
    }

    /// The boxes.
    #[must_use]
    pub fn boxes(&self) -> &[[f32; 4]] {
        &self.boxes
    }

    /// Writes the boxes in another format: `convert_bounding_box_format`.
    pub fn convert(&mut self, format: BoxFormat) {
        let from = self.format;
        self.boxes.iter_mut().for_each(|corners| *corners = converted(*corners, from, format));
        self.format = format;
    }

    /// Cuts off what is outside the canvas: `clamp_bounding_boxes`.
    pub fn clamp(&mut self) {
        self.map_corners(self.canvas, |corners| corners);
    }

    /// Removes boxes that are narrower or lower than `min_size`, smaller than `min_area`, or partly
    /// outside the canvas: `SanitizeBoundingBoxes`. Returns for every box whether it stays.
    ///
    /// # Errors
    /// [`AnnotationError::Limit`] when one of the two is not 1 or more, as torchvision refuses it.
    pub fn sanitize(&mut self, min_size: f32, min_area: f32) -> Result<Vec<bool>, AnnotationError> {
        for (name, value) in [("min_size", min_size), ("min_area", min_area)] {
            if !(value >= 1.0 && value.is_finite()) {
                return Err(AnnotationError::Limit { name, value });
            }
        }
        let (width, height) = floats(self.canvas);
        let stays = |corners: &[f32; 4]| {
            let [left, top, right, bottom] = converted(*corners, self.format, BoxFormat::Xyxy);
            let across = right - left;
            let down = bottom - top;
            across >= min_size
                && down >= min_size
                && across * down >= min_area
                && [left, top, right, bottom].iter().all(|&coordinate| coordinate >= 0.0)
                && left <= width
                && right <= width
                && top <= height
                && bottom <= height
        };
        let stay: Vec<bool> = self.boxes.iter().map(stays).collect();
        let mut kept = stay.iter();
        self.boxes.retain(|_| kept.next().copied().unwrap_or(false));
        Ok(stay)
    }

    /// Replaces the edges of every box (left, top, right and bottom) by those that `f` returns for
    /// another canvas, and clips them to it, as torchvision's warps do.
    fn map_corners(&mut self, canvas: (u32, u32), f: impl Fn([f32; 4]) -> [f32; 4]) {
        let (width, height) = floats(canvas);
        for numbers in &mut self.boxes {
            let [left, top, right, bottom] = f(converted(*numbers, self.format, BoxFormat::Xyxy));
            // NaN lies nowhere; at the edge it is still a box.
            let within = |at: f32, side| if at.is_nan() { 0.0 } else { at.clamp(0.0, side) };
            let across = |x| within(x, width);
            let down = |y| within(y, height);
            let corners = [across(left), down(top), across(right), down(bottom)];
            *numbers = converted(corners, BoxFormat::Xyxy, self.format);
        }
        self.canvas = canvas;
    }
}

impl Coordinates for BoundingBoxes {
    fn canvas(&self) -> (u32, u32) {
        self.canvas
    }

    fn flip(&mut self) {
        let (width, _) = floats(self.canvas);
        for [x, _, z, _] in &mut self.boxes {
            match self.format {
                BoxFormat::Xyxy => (*x, *z) = (-(*z - width), -(*x - width)),
                BoxFormat::Xywh => *x = -((*x + *z) - width),
                BoxFormat::Cxcywh => *x = -(*x - width),
            }
        }
    }

    fn flip_vertical(&mut self) {
        let (_, height) = floats(self.canvas);
        for [_, y, _, w] in &mut self.boxes {
            match self.format {
                BoxFormat::Xyxy => (*y, *w) = (-(*w - height), -(*y - height)),
                BoxFormat::Xywh => *y = -((*y + *w) - height),
                BoxFormat::Cxcywh => *y = -(*y - height),
            }
        }
    }
}

impl Kernels for BoundingBoxes {
    /// Cuts off what is outside the canvas, too.
    fn shift(&mut self, by: Point, canvas: (u32, u32)) {
        let (across, down) = by;
        for [x, y, z, w] in &mut self.boxes {
            (*x, *y) = (*x + across, *y + down);
            if self.format == BoxFormat::Xyxy {
                (*z, *w) = (*z + across, *w + down);
            }
        }
        self.canvas = canvas;
        self.clamp();
    }

    fn scale(&mut self, size: (u32, u32)) {
        let (across, down) = ratios(self.canvas, size);
        for [x, y, z, w] in &mut self.boxes {
            (*x, *y, *z, *w) = (*x * across, *y * down, *z * across, *w * down);
        }
        self.canvas = size;
    }

    /// The edges of a box are those of what holds its moved corners.
    fn map_points(&mut self, canvas: (u32, u32), f: impl Fn(Point) -> Point) {
        self.map_corners(canvas, |corners| around(corners, &f));
    }

    fn pixel(coordinate: f32) -> f32 {
        coordinate.ceil()
    }
}

/// The edges of what holds all moved corners of a box.
fn around([left, top, right, bottom]: [f32; 4], moved: impl Fn(Point) -> Point) -> [f32; 4] {
    // NaN lies nowhere; at the edge it is still a box.
    let number = |value: f32| if value.is_nan() { 0.0 } else { value };
    let corners = [(left, top), (right, top), (right, bottom), (left, bottom)].map(moved);
    let corners = corners.map(|(x, y)| (number(x), number(y)));
    let [first, rest @ ..] = corners;
    rest.into_iter().fold([first.0, first.1, first.0, first.1], |[left, top, right, bottom], p| {
        [left.min(p.0), top.min(p.1), right.max(p.0), bottom.max(p.1)]
    })
}

/// A box in another format, by way of the edges, each sum rounded as torchvision's are.
fn converted(numbers: [f32; 4], from: BoxFormat, to: BoxFormat) -> [f32; 4] {
    let [x, y, z, w] = numbers;
    match (from, to) {
        (BoxFormat::Xyxy, BoxFormat::Xyxy)
        | (BoxFormat::Xywh, BoxFormat::Xywh)
        | (BoxFormat::Cxcywh, BoxFormat::Cxcywh) => numbers,
        (BoxFormat::Xywh, BoxFormat::Xyxy) => [x, y, z + x, w + y],
        (BoxFormat::Xyxy, BoxFormat::Xywh) => [x, y, z - x, w - y],
        (BoxFormat::Xywh, BoxFormat::Cxcywh) => [x + z / 2.0, y + w / 2.0, z, w],
        (BoxFormat::Cxcywh, BoxFormat::Xywh) => [x - z / 2.0, y - w / 2.0, z, w],
        (BoxFormat::Cxcywh, BoxFormat::Xyxy) => {
            let left = x - z / 2.0;
            let top = y - w / 2.0;
            [left, top, z + left, w + top]
        }
        (BoxFormat::Xyxy, BoxFormat::Cxcywh) => {
            let width = z - x;
            let height = w - y;
            [(x * 2.0 + width) / 2.0, (y * 2.0 + height) / 2.0, width, height]
        }
    }
}
