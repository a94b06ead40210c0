//! From the planes of video to RGB.
//!
//! Chroma has one sample per pixel here: the caller repeats samples, by
//! [`replicate`](crate::jpeg::replicate), as FFmpeg does.

mod exact;
mod ffmpeg;
mod scaler;
mod taps;

use crate::Level;
use crate::vector::{RGB, dispatch};
use exact::Tables;
use ffmpeg::Formula;
pub use scaler::{Blend, Sample, Scaler};

/// The colours that luma and chroma were made of, each with its code points of ITU-T H.273.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// BT.601, which is BT.470 B and G too: 5 and 6.
    #[default]
    Bt601,
    /// BT.709: 1.
    Bt709,
    /// BT.2020 with and without constant luminance, as FFmpeg takes both for the latter: 9 and 10.
    Bt2020,
    /// The standard of 1953 of the United States: 4.
    Fcc,
    /// SMPTE 240M: 7.
    Smpte240,
}

impl Matrix {
    /// The matrix of a code point. FFmpeg takes those that say nothing, or nothing that it knows,
    /// for BT.601; so does this function, except for 0 (RGB) and 8 (`YCgCo`), which are no matrices
    /// of luma and chroma.
    #[must_use]
    pub const fn from_code_point(code_point: Option<u8>) -> Option<Self> {
        match code_point {
            Some(0 | 8) => None,
            Some(1) => Some(Self::Bt709),
            Some(4) => Some(Self::Fcc),
            Some(7) => Some(Self::Smpte240),
            Some(9 | 10) => Some(Self::Bt2020),
            _ => Some(Self::Bt601),
        }
    }
}

/// The results that a conversion to RGB has the bits of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Parity {
    /// FFmpeg's on x86, which `PyAV`, torchcodec and decord show their users.
    #[default]
    Ffmpeg,
    /// The nearest levels to what the matrix defines, halves rounded up.
    Exact,
}

/// A conversion of rows to RGB.
#[derive(Clone, Debug)]
pub struct YuvToRgb(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Ffmpeg(Formula),
    Exact(Box<Tables>),
}

impl YuvToRgb {
    /// The conversion from a matrix, of samples of 8 to 12 bits that take their full range or not.
    /// FFmpeg's is that of 8 bits and even heights, 4:2:0 and 4:2:2; all else is a [`Scaler`]'s.
    ///
    /// # Panics
    ///
    /// With other numbers of bits, or more than 8 that are to be FFmpeg's.
    #[must_use]
    pub fn new(matrix: Matrix, is_full_range: bool, bits: u8, parity: Parity) -> Self {
        assert!((8..=12).contains(&bits), "8 to 12 bits");
        assert!(parity == Parity::Exact || bits == 8, "8 bits, or exact");
        Self(match parity {
            Parity::Ffmpeg => Kind::Ffmpeg(Formula::new(matrix, is_full_range)),
            Parity::Exact => Kind::Exact(Box::new(Tables::new(matrix, is_full_range, bits.into()))),
        })
    }

    /// Converts rows of Y, U and V to a row of RGB pixels.
    ///
    /// # Panics
    ///
    /// If `out` is not three times as long as each row.
    pub fn convert(&self, level: Level, planes: [&[u8]; RGB], out: &mut [u8]) {
        assert!(planes.iter().all(|plane| plane.len() * RGB == out.len()), "one sample per pixel");
        match &self.0 {
            Kind::Ffmpeg(formula) => dispatch!(
                level,
                scalar => formula.define(planes, out),
                simd => formula.run(simd, planes, out),
            ),
            Kind::Exact(tables) => tables.convert(planes.map(|plane| plane.iter().copied()), out),
        }
    }

    /// The same of samples of two bytes, the low one first. Bits beyond those of the conversion
    /// are not read.
    ///
    /// # Panics
    ///
    /// If `out` is not three times as long as each row, or the conversion is of 8 bits.
    pub fn convert_wide(&self, planes: [&[[u8; 2]]; RGB], out: &mut [u8]) {
        assert!(planes.iter().all(|plane| plane.len() * RGB == out.len()), "one sample per pixel");
        assert!(matches!(self.0, Kind::Exact(_)), "a conversion of more than 8 bits");
        if let Kind::Exact(tables) = &self.0 {
            tables.convert(planes.map(|plane| tables.samples(plane)), out);
        }
    }
}
