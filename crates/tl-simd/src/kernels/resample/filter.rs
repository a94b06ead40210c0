//! The resampling filters, evaluated in the same double precision steps as Pillow's `Resample.c`.

use core::f64::consts::PI;

/// A resampling filter of Pillow, by Pillow's meaning of the name.
///
/// Every filter except [`Filter::Nearest`] is widened when it shrinks (antialiasing).
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
}

impl Filter {
    /// Half the filter's width in source pixels before widening.
    pub(super) const fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
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
