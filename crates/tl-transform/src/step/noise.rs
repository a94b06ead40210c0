//! Steps that add noise to samples.

use serde::{Deserialize, Serialize};
use tl_simd::normal;

use super::stage::Stage;

/// The largest mean and deviation: what they add up to fits the 16 bits that torchvision puts it in.
pub(crate) const MAX_NOISE: f64 = 16.0;

/// Noise, by the name of torchvision's functional.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Noise {
    /// `gaussian_noise` on `uint8`: `sample + trunc(255 * mean + 255 * sigma * deviate)`. torchvision
    /// refuses Pillow images; both modes do what it does to tensors. Sample `i`, rows from the top
    /// and channels innermost, has deviate `i` of `key` ([`tl_simd::normal`]).
    Gaussian {
        /// The mean, 1 being the whole range of samples.
        mean: f64,
        /// The standard deviation, 1 being the whole range of samples.
        sigma: f64,
        /// Whether sums are held within 0 to 255; they wrap otherwise.
        clip: bool,
        /// The key of the deviates.
        key: u64,
    },
}

impl Noise {
    /// Whether the noise fits its numbers.
    pub(crate) fn is_defined(self) -> bool {
        let Self::Gaussian { mean, sigma, .. } = self;
        mean.abs() <= MAX_NOISE && (0.0..=MAX_NOISE).contains(&sigma)
    }

    /// Carries the step out.
    #[expect(clippy::cast_possible_truncation, reason = "torch rounds these to f32 as well")]
    pub(crate) fn run(self, stage: &mut Stage<'_>) {
        let Self::Gaussian { mean, sigma, clip, key } = self;
        let range = f64::from(u8::MAX);
        let noise =
            normal::Noise { mean: (mean * range) as f32, sigma: (sigma * range) as f32, clip };
        normal::add_noise(stage.level(), noise, key, stage.image.pixels_mut());
    }
}
