//! The resampling filters, evaluated in the same double precision steps as Pillow's `Resample.c`.

use core::f64::consts::PI;

/// A resampling filter: by Pillow's meaning of the name, or torch's.
///
/// Every filter of Pillow except [`Filter::Nearest`] is widened when it shrinks (antialiasing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// The source pixel under the centre of the output pixel.
    Nearest,
    /// The mean of the covered pixels; support 0.5.
    Box,
    /// The triangle; support 1.
    Bilinear,
    /// A cosine window on a sinc; support 1.
    Hamming,
    /// Keys' cubic with a = -0.5; support 2.
    Bicubic,
    /// A sinc windowed by a sinc; support 3.
    Lanczos,
    /// A filter of torch for uint8 tensors.
    Tensor(TensorFilter),
}

/// A resampling filter of `torch.nn.functional.interpolate` on uint8 tensors.
///
/// Coefficients have 15 bits and a sign, with as many fraction bits as the largest one of an axis
/// leaves room for, and the horizontal pass is always the first: AVX2's path of torch 2.15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorFilter {
    /// `nearest`: the pixel at `floor(x * scale)`, which leans to the top left.
    Nearest,
    /// `nearest-exact`: the pixel under the centre, in single precision.
    NearestExact,
    /// `bilinear` with `antialias=True`.
    Bilinear,
    /// `bicubic` with `antialias=True`: a = -0.5.
    Bicubic,
    /// `lanczos` with `antialias=True`.
    Lanczos,
    /// `bilinear` with `antialias=False`: two pixels, whatever the scale.
    PlainBilinear,
    /// `bicubic` with `antialias=False`: four pixels, whatever the scale, and a = -0.75.
    PlainBicubic,
}

impl Filter {
    /// Whether every output pixel is a copy of one source pixel.
    pub(super) const fn copies(self) -> bool {
        matches!(
            self,
            Self::Nearest | Self::Tensor(TensorFilter::Nearest | TensorFilter::NearestExact)
        )
    }

    /// Half the filter's width in source pixels before widening.
    pub(super) const fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
            Self::Tensor(filter) => filter.support(),
        }
    }
}

impl TensorFilter {
    /// Half the filter's width in source pixels before widening; half the taps of a plain one.
    const fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::NearestExact => 0.5,
            Self::Bilinear | Self::PlainBilinear => 1.0,
            Self::Bicubic | Self::PlainBicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// The filter's value at a distance from its middle.
    pub(super) fn weigh(self, distance: f64) -> f64 {
        match self {
            Self::Nearest | Self::NearestExact => square(distance),
            Self::Bilinear | Self::PlainBilinear => triangle(distance),
            Self::Bicubic => torch_cubic(distance, -0.5),
            Self::PlainBicubic => torch_cubic(distance, -0.75),
            Self::Lanczos => lanczos(distance),
        }
    }
}

pub(super) fn square(x: f64) -> f64 {
    f64::from(x > -0.5 && x <= 0.5)
}

pub(super) fn triangle(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 { 1.0 - x } else { 0.0 }
}

pub(super) fn hamming(x: f64) -> f64 {
    // Pillow writes these two as float constants in a double expression.
    const BASE: f64 = 0.54_f32 as f64;
    const COSINE: f64 = 0.46_f32 as f64;
    let x = x.abs();
    if x == 0.0 {
        return 1.0;
    }
    if x >= 1.0 {
        return 0.0;
    }
    let x = x * PI;
    x.sin() / x * (BASE + COSINE * x.cos())
}

pub(super) fn cubic(x: f64) -> f64 {
    let x = x.abs();
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

/// Keys' cubic in the steps of torch's `cubic_convolution1` and `2`.
fn torch_cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

pub(super) fn lanczos(x: f64) -> f64 {
    if (-3.0..3.0).contains(&x) { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}
