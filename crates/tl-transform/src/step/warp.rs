//! Rotations, affine maps, perspectives and displacements with everything drawn.

mod annotations;
mod elastic;
mod matrix;
mod perspective;
mod run;

use serde::{Deserialize, Serialize};
use tl_simd::Level;
use tl_simd::warp::{Grid, Map, Turn, turn};

use super::stage::Stage;
use crate::bounds::area;
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::parity::Parity;
use crate::stream::Stream;
use matrix::Parameters;
pub(crate) use run::{Scratch, Source};
use run::{Target, is_pil};

/// A step that takes every pixel from another place.
///
/// Nearest, bilinear and bicubic pixels exist, as in Pillow, and `NearestExact` is nearest as there;
/// any other interpolation is bilinear.
/// torchvision has no bicubic warps of tensors: with [`Parity::Tensor`] those are Pillow's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warp {
    /// torchvision's `rotate`.
    Rotate(Rotate),
    /// torchvision's `affine`.
    Affine(Affine),
    /// torchvision's `perspective`.
    Perspective(Perspective),
    /// torchvision's `elastic`.
    Elastic(Elastic),
}

/// torchvision's `rotate(angle, interpolation, expand, center, fill)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotate {
    /// Degrees, counter-clockwise.
    pub angle: f64,
    /// The filter.
    pub interpolation: Interpolation,
    /// Width and height of the result when it is expanded to hold every corner:
    /// [`Rotate::expanded`].
    pub expand: Option<(u32, u32)>,
    /// The point that stays, from the upper left corner; the middle by default.
    pub center: Option<(f64, f64)>,
    /// The colour outside the image; with none, tensors fade to black at its edge.
    pub fill: Option<Fill>,
}

/// torchvision's `affine(angle, translate, scale, shear, interpolation, fill, center)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affine {
    /// Degrees, clockwise.
    pub angle: f64,
    /// Pixels to the right and down, after the rest.
    pub translate: (f64, f64),
    /// Factor of size.
    pub scale: f64,
    /// Degrees of shear parallel to the x axis and to the y axis.
    pub shear: (f64, f64),
    /// The filter.
    pub interpolation: Interpolation,
    /// The colour outside the image, as of [`Rotate`].
    pub fill: Option<Fill>,
    /// The point that stays, from the upper left corner; the middle by default.
    pub center: Option<(f64, f64)>,
}

impl Default for Affine {
    /// Moves nothing.
    fn default() -> Self {
        Self {
            angle: 0.0,
            translate: (0.0, 0.0),
            scale: 1.0,
            shear: (0.0, 0.0),
            interpolation: Interpolation::Nearest,
            fill: Some(Fill::BLACK),
            center: None,
        }
    }
}

/// torchvision's `perspective(coefficients, interpolation, fill)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Perspective {
    /// `a` to `h` of `x' = (a x + b y + c) / (g x + h y + 1)`, `y' = (d x + e y + f) / ...`, from
    /// the output to the source.
    pub coefficients: [f32; 8],
    /// The filter.
    pub interpolation: Interpolation,
    /// The colour outside the image, as of [`Rotate`].
    pub fill: Option<Fill>,
}

/// torchvision's `elastic`, with the displacement of every pixel drawn from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elastic {
    /// Size of the displacements to the right and down, in pixels before smoothing.
    pub alpha: (f64, f64),
    /// Their smoothness across and down: deviations of a Gaussian, in pixels; 0 for none.
    pub sigma: (f64, f64),
    /// The stream that the displacements are drawn from.
    pub stream: Stream,
    /// The filter.
    pub interpolation: Interpolation,
    /// The colour outside the image, as of [`Rotate`].
    pub fill: Option<Fill>,
}

impl Warp {
    /// Width and height afterwards, for an image of `size`.
    #[must_use]
    pub fn output_size(&self, size: (u32, u32)) -> (u32, u32) {
        match self {
            Self::Rotate(rotate) => rotate.expand.unwrap_or(size),
            Self::Affine(_) | Self::Perspective(_) | Self::Elastic(_) => size,
        }
    }

    /// Whether displacements of an image of this size can be drawn, if that is what it does.
    pub(super) fn fits(&self, size: (u32, u32)) -> bool {
        !matches!(self, Self::Elastic(_)) || area(size) <= Elastic::MAX_PIXELS
    }

    pub(super) fn run(&self, stage: &mut Stage<'_>) {
        let size = stage.image.size();
        let level = stage.level();
        let parity = stage.parity;
        stage.replace(self.output_size(size), |workspace, view, out| {
            self.apply(&mut workspace.warp, Source { level, view, wide: None, size }, parity, out);
        });
    }

    /// Makes an image, or a mask, of one of its size before.
    pub(crate) fn apply(
        &self,
        scratch: &mut Scratch,
        source: Source<'_>,
        parity: Parity,
        out: &mut [u8],
    ) {
        let size = self.output_size(source.size);
        match self {
            Self::Rotate(rotate) => rotate.apply(scratch, source, size, parity, out),
            Self::Affine(affine) => {
                let target =
                    Target { size, interpolation: affine.interpolation, fill: affine.fill };
                if target.is_pil(parity) {
                    let center = affine.center.unwrap_or_else(|| middle(size));
                    let matrix = affine.parameters(center).inverse();
                    scratch.pil(source, Map::Affine(matrix), target, out);
                } else {
                    let center = affine.center.map_or((0.0, 0.0), |at| from_middle(at, size));
                    let matrix = affine.parameters(center).inverse();
                    scratch.tensor(source, Grid::Affine(matrix::theta(matrix)), target, out);
                }
            }
            Self::Perspective(Perspective { coefficients, interpolation, fill }) => {
                let target = Target { size, interpolation: *interpolation, fill: *fill };
                if target.is_pil(parity) {
                    let map = Map::Perspective(coefficients.map(f64::from));
                    scratch.pil(source, map, target, out);
                } else {
                    scratch.tensor(source, Grid::Perspective(*coefficients), target, out);
                }
            }
            Self::Elastic(elastic) => {
                let target =
                    Target { size, interpolation: elastic.interpolation, fill: elastic.fill };
                scratch.displace(source, elastic, target, out);
            }
        }
    }
}

impl Elastic {
    /// The deviations that smooth; a kernel has eight times as many taps.
    pub const SIGMA: (f64, f64) = (0.001, 1000.0);

    /// Pixels of the largest image; the displacements of each take 8 bytes.
    pub const MAX_PIXELS: u64 = 1 << 28;

    /// The displacements of an image of `width` x `height` pixels as torchvision's `elastic` takes
    /// them: for every pixel, row by row, the one to the right and the one down, in halves of the
    /// image.
    #[must_use]
    pub fn displacements(&self, width: u32, height: u32) -> Vec<f32> {
        let mut drawn = elastic::Displacements::default();
        drawn.draw(Level::detect(), self, (width, height));
        let [right, down] = drawn.planes();
        right.iter().zip(down).flat_map(|(&right, &down)| [right, down]).collect()
    }
}

impl Affine {
    /// The parameters, about `center` in the coordinates of the matrix.
    fn parameters(&self, center: (f64, f64)) -> Parameters {
        let Self { angle, translate, scale, shear, .. } = *self;
        Parameters { center, angle, translate, scale, shear }
    }
}

impl Rotate {
    /// The quarter turns that this is, counter-clockwise, if torchvision only moves pixels.
    fn turns(&self, size: (u32, u32)) -> Option<u8> {
        let (width, height) = size;
        if self.center.is_some() {
            return None;
        }
        let quarter = self.expand.is_some() || width == height;
        match (self.angle.rem_euclid(360.0), quarter) {
            (0.0, _) => Some(0),
            (90.0, true) => Some(1),
            (180.0, _) => Some(2),
            (270.0, true) => Some(3),
            _ => None,
        }
    }

    /// torchvision's matrix for tensors of `size`.
    fn theta(&self, size: (u32, u32)) -> [f32; 6] {
        let center = self.center.map_or((0.0, 0.0), |center| from_middle(center, size));
        let angle = -self.angle.rem_euclid(360.0);
        let translate = (0.0, 0.0);
        let turned = Parameters { center, angle, translate, scale: 1.0, shear: (0.0, 0.0) };
        matrix::theta(turned.inverse())
    }

    /// The same rotation of an image of `size`, enlarged so that every corner stays within.
    ///
    /// Pillow and torchvision's tensors round the size differently.
    #[must_use]
    pub fn expanded(self, parity: Parity, size: (u32, u32)) -> Self {
        let expanding = Self { expand: Some(size), ..self };
        let expand = match expanding.turns(size) {
            Some(0 | 2) => size,
            Some(_) => (size.1, size.0),
            None if is_pil(parity, self.interpolation) => {
                let angle = self.angle.rem_euclid(360.0);
                matrix::pillow_rotation(angle, self.center, real(size), true).1
            }
            None => matrix::tensor_extent(self.theta(size), real(size)),
        };
        Self { expand: Some(expand), ..self }
    }

    fn apply(
        &self,
        scratch: &mut Scratch,
        source: Source<'_>,
        size: (u32, u32),
        parity: Parity,
        out: &mut [u8],
    ) {
        let turned = match self.turns(source.size) {
            Some(1) => Some((Turn::Quarter, (source.size.1, source.size.0))),
            Some(2) => Some((Turn::Half, source.size)),
            Some(3) => Some((Turn::ThreeQuarters, (source.size.1, source.size.0))),
            _ => None,
        };
        if let Some((by, _)) = turned.filter(|(_, turned)| *turned == size) {
            return turn(source.level, source.view, by, out);
        }
        let target = Target { size, interpolation: self.interpolation, fill: self.fill };
        if target.is_pil(parity) {
            let angle = self.angle.rem_euclid(360.0);
            let expand = self.expand.is_some();
            let (matrix, _) =
                matrix::pillow_rotation(angle, self.center, real(source.size), expand);
            scratch.pil(source, Map::Affine(matrix), target, out);
        } else {
            scratch.tensor(source, Grid::Affine(self.theta(source.size)), target, out);
        }
    }
}

/// Width and height as numbers.
fn real(size: (u32, u32)) -> (f64, f64) {
    (f64::from(size.0), f64::from(size.1))
}

fn middle(size: (u32, u32)) -> (f64, f64) {
    let (width, height) = real(size);
    (width * 0.5, height * 0.5)
}

/// torchvision's centres for tensors are counted from the middle.
fn from_middle(center: (f64, f64), size: (u32, u32)) -> (f64, f64) {
    let (x, y) = middle(size);
    (center.0 - x, center.1 - y)
}
