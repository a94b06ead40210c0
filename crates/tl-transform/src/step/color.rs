//! Steps that change colours and leave every pixel where it is.

mod table;

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::color::{self, Arithmetic};

use super::stage::Stage;
use crate::parity::Parity;
use crate::render::CHANNELS;

/// A change of colours, by the name of torchvision's functional.
///
/// In the mode `pil` every one gives the bytes of torchvision 0.29 on Pillow 13 images, in the mode
/// `tensor` those of torchvision v2 on uint8 tensors, except for [`Color::Contrast`]. A NaN
/// gives unspecified pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Color {
    /// `adjust_brightness`: samples times the factor.
    Brightness(f64),
    /// `adjust_contrast`: samples moved from the mean grey of the image, 1 leaving them. PyTorch
    /// adds the greys up in `f32` and in another order. In the mode `tensor` the mean can therefore
    /// differ in its last bits, and a sample by 1.
    Contrast(f64),
    /// `adjust_saturation`: samples moved from the pixel's grey, 1 leaving them.
    Saturation(f64),
    /// `adjust_sharpness`: samples moved from their smoothed neighbourhood, 1 leaving them.
    Sharpness(f64),
    /// `adjust_hue`: hues turned by a part of the circle.
    Hue {
        /// Turns.
        factor: f64,
        /// Through which numbers; without one, those of the mode.
        #[serde(default)]
        method: Option<HueMethod>,
    },
    /// `to_grayscale` with three channels.
    Grayscale,
    /// `invert`.
    Invert,
    /// `posterize`: the upper bits of samples kept, of 8.
    Posterize(u8),
    /// `solarize`: samples from a threshold on inverted.
    Solarize(f64),
    /// `autocontrast`: each channel stretched to 0 to 255.
    Autocontrast,
    /// `equalize`: each channel's histogram made even.
    Equalize,
    /// `permute_channels`: place `i` gets channel `permutation[i]`, numbers taken modulo 3.
    PermuteChannels([u8; CHANNELS]),
}

/// The numbers that hues are turned in; they differ by up to 15 in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HueMethod {
    /// Pillow's HSV of 8 bits.
    Pil,
    /// torchvision's HSV of floats.
    Float,
}

impl From<Parity> for HueMethod {
    fn from(parity: Parity) -> Self {
        match parity {
            Parity::Pil => Self::Pil,
            Parity::Tensor => Self::Float,
        }
    }
}

impl fmt::Display for HueMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pil => "pil",
            Self::Float => "float",
        })
    }
}

impl Color {
    /// Carries the step out.
    pub(crate) fn run(self, stage: &mut Stage<'_>) {
        let level = stage.level();
        let parity = stage.parity;
        let arithmetic = match parity {
            Parity::Pil => Arithmetic::Pillow,
            Parity::Tensor => Arithmetic::Torch,
        };
        let pixels = stage.image.pixels_mut();
        match self {
            Self::Saturation(factor) => color::blend_with_grey(level, arithmetic, factor, pixels),
            Self::Sharpness(factor) => {
                let (image, rows) = stage.image_and_rows(2);
                let width = image.size().0 as usize;
                color::sharpen(level, arithmetic, factor, width, image.pixels_mut(), rows);
            }
            Self::Hue { factor, method } => match method.unwrap_or(parity.into()) {
                HueMethod::Pil => color::shift_hue_bytes(level, hue_steps(factor), pixels),
                HueMethod::Float => color::shift_hue(level, factor, pixels),
            },
            Self::Grayscale => color::to_grey(level, arithmetic, pixels),
            Self::PermuteChannels(order) => {
                color::permute(level, order.map(|channel| channel % 3), pixels);
            }
            Self::Brightness(factor) => {
                color::lookup(level, &table::brightness(factor), pixels);
            }
            Self::Contrast(factor) => {
                let sum = color::grey_sum(level, arithmetic, pixels);
                let count = pixels.len() / CHANNELS;
                color::lookup(level, &table::contrast(parity, factor, sum, count), pixels);
            }
            Self::Invert => color::lookup(level, &table::solarize(parity, 0.0), pixels),
            Self::Posterize(bits) => color::lookup(level, &table::posterize(bits), pixels),
            Self::Solarize(threshold) => {
                color::lookup(level, &table::solarize(parity, threshold), pixels);
            }
            Self::Autocontrast => {
                let extremes = color::extremes(level, pixels);
                let tables = extremes.map(|extremes| table::autocontrast(parity, extremes));
                color::lookup_channels(level, &tables, pixels);
            }
            Self::Equalize => {
                let tables = color::histograms(pixels).map(|counts| table::equalize(&counts));
                color::lookup_channels(level, &tables, pixels);
            }
        }
    }
}

/// `int32(factor * 255)` modulo 256, what torchvision adds to Pillow's hues.
fn hue_steps(factor: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "the truncation torchvision makes")]
    let steps = (factor * 255.0) as i32;
    steps.to_le_bytes()[0]
}
