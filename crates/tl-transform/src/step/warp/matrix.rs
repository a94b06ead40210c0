//! Matrices of affine maps as torchvision and Pillow compute them.

use std::f64::consts::PI;
use std::fmt::{self, Write};

use crate::trigonometry::{cos, sin, tan};

/// torchvision's parameters of an affine map: shear, scale and rotate about `center`, then shift.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) center: (f64, f64),
    /// Degrees, clockwise.
    pub(super) angle: f64,
    pub(super) translate: (f64, f64),
    pub(super) scale: f64,
    /// Degrees.
    pub(super) shear: (f64, f64),
}

fn radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}

impl Parameters {
    /// Rotation and shear without scale: torchvision's `a b c d`.
    fn linear(&self) -> [f64; 4] {
        let angle = radians(self.angle);
        let shear_x = radians(self.shear.0);
        let shear_y = radians(self.shear.1);
        let cos_y = cos(shear_y);
        let tan_x = tan(shear_x);
        let a = cos(angle - shear_y) / cos_y;
        let b = -(a * tan_x + sin(angle));
        let c = sin(angle - shear_y) / cos_y;
        let d = cos(angle) - c * tan_x;
        [a, b, c, d]
    }

    /// From output to source: torchvision's `_get_inverse_affine_matrix`.
    pub(super) fn inverse(&self) -> [f64; 6] {
        let [a, b, c, d] = self.linear();
        let center = self.center;
        let scale = self.scale;
        let x = center.0 + self.translate.0;
        let y = center.1 + self.translate.1;
        let [a, b, c, d] = [d / scale, -b / scale, -c / scale, a / scale];
        [a, b, center.0 - a * x - b * y, c, d, center.1 - c * x - d * y]
    }

    /// From source to output: the same function with `inverted=False`.
    pub(super) fn forward(&self) -> [f64; 6] {
        let center = self.center;
        let scale = self.scale;
        let x = center.0 + self.translate.0;
        let y = center.1 + self.translate.1;
        let [a, b, c, d] = self.linear().map(|number| number * scale);
        [a, b, x - a * center.0 - b * center.1, c, d, y - c * center.0 - d * center.1]
    }
}

/// The matrix, width and height of Pillow's `Image.rotate(angle, expand=expand, center=center)`.
pub(super) fn pillow_rotation(
    angle: f64,
    center: Option<(f64, f64)>,
    size: (f64, f64),
    expand: bool,
) -> ([f64; 6], (u32, u32)) {
    let (width, height) = size;
    let angle = -radians(angle);
    let (x, y) = center.unwrap_or((width / 2.0, height / 2.0));
    let cosine = fifteen_digits(cos(angle));
    let sine = fifteen_digits(sin(angle));
    let minus_sine = fifteen_digits(-sin(angle));
    let apply = |matrix: [f64; 6], x: f64, y: f64| {
        let [a, b, c, d, e, f] = matrix;
        (a * x + b * y + c, d * x + e * y + f)
    };
    let mut matrix = [cosine, sine, 0.0, minus_sine, cosine, 0.0];
    let (shift_x, shift_y) = apply(matrix, -x, -y);
    (matrix[2], matrix[5]) = (shift_x + x, shift_y + y);
    if !expand {
        return (matrix, pixels((width, height)));
    }
    let corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
    let corners = corners.map(|(x, y)| apply(matrix, x, y));
    let size = extent(corners);
    let shift = apply(matrix, -(size.0 - width) / 2.0, -(size.1 - height) / 2.0);
    (matrix[2], matrix[5]) = shift;
    (matrix, pixels(size))
}

/// Whole columns and rows that hold all `corners`.
fn extent(corners: [(f64, f64); 4]) -> (f64, f64) {
    let side = |of: fn((f64, f64)) -> f64| {
        let most = corners.map(of).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let least = corners.map(of).into_iter().fold(f64::INFINITY, f64::min);
        most.ceil() - least.floor()
    };
    (side(|corner| corner.0), side(|corner| corner.1))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
const fn pixels(size: (f64, f64)) -> (u32, u32) {
    (size.0 as u32, size.1 as u32)
}

/// The matrix in the precision and the coordinates of torchvision's `_affine_grid`.
#[expect(clippy::cast_possible_truncation, reason = "torch rounds the matrix to f32")]
pub(super) fn theta(matrix: [f64; 6]) -> [f32; 6] {
    matrix.map(|number| number as f32)
}

/// Width and height of torchvision's `_compute_affine_output_size`, which works in f32 and drops
/// what is below 0.0001.
#[expect(clippy::cast_possible_truncation, reason = "sides have 16 bits")]
pub(super) fn tensor_extent(theta: [f32; 6], size: (f64, f64)) -> (u32, u32) {
    const TOLERANCE: f32 = 1e-4;
    const INVERSE: f32 = 1e4;
    let [a, b, c, d, e, f] = theta;
    let x = 0.5 * size.0 as f32;
    let y = 0.5 * size.1 as f32;
    let corners = [(-x, -y), (-x, y), (x, y), (x, -y)];
    let corners = corners.map(|(x, y)| (a * x + b * y + c, d * x + e * y + f));
    let side = |of: fn((f32, f32)) -> f32, half: f32| {
        let coarse = |value: f32| ((value + half) * INVERSE).trunc() * TOLERANCE;
        let most = corners.map(of).into_iter().fold(f32::NEG_INFINITY, f32::max);
        let least = corners.map(of).into_iter().fold(f32::INFINITY, f32::min);
        f64::from(coarse(most).ceil() - coarse(least).floor())
    };
    pixels((side(|corner| corner.0, x), side(|corner| corner.1, y)))
}

/// Python's `round(value, 15)` of a sine: by way of its decimal digits.
fn fifteen_digits(value: f64) -> f64 {
    let mut digits = Digits { bytes: [0; 32], len: 0 };
    // The buffer holds a sign, a digit, a point and 15 digits.
    let written = write!(digits, "{value:.15}").is_ok();
    let text = std::str::from_utf8(&digits.bytes[..digits.len]).unwrap_or_default();
    if written { text.parse().unwrap_or(value) } else { value }
}

struct Digits {
    bytes: [u8; 32],
    len: usize,
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = self.bytes.get_mut(self.len..).and_then(|free| free.get_mut(..text.len()));
        free.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
