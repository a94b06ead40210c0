//! Mixing an image with its changed versions, one after the other.

use serde::{Deserialize, Serialize};
use tl_simd::Level;
use tl_simd::mixture::{add_weighted, truncate, weigh};

use super::stage::Stage;
use crate::error::StepError;
use crate::image::Image;

/// The ends of the chains of `AugMix`: what is between two of them is done to the image as it was
/// at the beginning, in torch's arithmetic whatever the recipe's.
///
/// The weighted sum is kept in `f32`, each product and each sum rounded, and loses its fractions at
/// the end, as in torchvision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Keeps the image; it counts with `weight`.
    Begin {
        /// Its share.
        weight: f32,
    },
    /// Adds the changed image with `weight`, and restores the original.
    Chain {
        /// Its share.
        weight: f32,
    },
    /// Adds the changed image with `weight`, and replaces it by the mixture.
    End {
        /// Its share.
        weight: f32,
    },
}

impl Mix {
    /// Carries the step out.
    pub(crate) fn run(self, stage: &mut Stage<'_>) -> Result<(), StepError> {
        let level = stage.level();
        let position = stage.position;
        let (image, scratch) = stage.image_and_mixture();
        let (width, height) = image.size();
        match self {
            Self::Begin { weight } => scratch.begin(level, weight, image),
            Self::Chain { .. } | Self::End { .. } if !scratch.fits(image) => {
                return Err(StepError::Size { position, width, height });
            }
            Self::Chain { weight } => {
                add_weighted(level, weight, image.pixels(), &mut scratch.sums);
                image.pixels_mut().copy_from_slice(&scratch.original);
            }
            Self::End { weight } => {
                add_weighted(level, weight, image.pixels(), &mut scratch.sums);
                truncate(level, &scratch.sums, image.pixels_mut());
                scratch.size = None;
            }
        }
        Ok(())
    }
}

/// The state of a mixture while its chains are computed.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Width and height of the image; `None` when nothing is being mixed.
    size: Option<(u32, u32)>,
    original: Vec<u8>,
    sums: Vec<f32>,
}

impl Scratch {
    /// Forgets a mixture that was not ended.
    pub(crate) fn reset(&mut self) {
        self.size = None;
    }

    /// Whether something is being mixed.
    pub(crate) fn is_mixing(&self) -> bool {
        self.size.is_some()
    }

    /// Releases buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        if self.original.capacity() > bytes {
            self.original = Vec::new();
        }
        if self.sums.capacity().saturating_mul(size_of::<f32>()) > bytes {
            self.sums = Vec::new();
        }
    }

    fn begin(&mut self, level: Level, weight: f32, image: &Image) {
        let pixels = image.pixels();
        self.size = Some(image.size());
        self.original.clear();
        self.original.extend_from_slice(pixels);
        self.sums.clear();
        self.sums.resize(pixels.len(), 0.0);
        weigh(level, weight, pixels, &mut self.sums);
    }

    fn fits(&self, image: &Image) -> bool {
        self.size == Some(image.size())
    }
}
