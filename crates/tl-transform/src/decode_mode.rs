//! The accuracy of JPEG decoding: the reference's pixels, or only as many as the result needs.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::jpeg::Scale;

use crate::error::RecipeError;
use crate::pass::Pass;

/// The accuracy of JPEG decoding for a recipe; other formats have one way only.
///
/// The mode is part of the recipe because the pixels depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecodeMode {
    /// The pixels of Pillow, resampled as Pillow does it: every bit is equal.
    #[default]
    Exact,
    /// Planes are resampled before colours are converted, from the smallest scale that still has
    /// enough pixels: a stated tolerance instead of equal bits, and much faster.
    Fast {
        /// How many times the result's side the scaled crop's side has to be at least; 1 or more.
        /// With 1 no pixel is made up that the photograph had; larger numbers come closer to
        /// [`DecodeMode::Exact`].
        decode_margin: f32,
    },
    /// Files that NVIDIA's nvJPEG decodes on a device, which loaders need for such a recipe, have its
    /// pixels, and others those of [`DecodeMode::Exact`]. Which is which depends on file and plan alone.
    /// The pixels depend on the version of the library.
    #[serde(rename = "nvjpeg")]
    NvJpeg,
}

impl DecodeMode {
    /// The margin of [`DecodeMode::FAST`]: differences are then hardly larger than without scaling
    /// (`docs/jpeg.md`), and a photograph of 2048 pixels takes a tenth longer than with 1.
    pub const DEFAULT_MARGIN: f32 = 2.0;

    /// Fast, with the default margin.
    pub const FAST: Self = Self::Fast { decode_margin: Self::DEFAULT_MARGIN };

    /// The smallest scale at which both sides of the pass's region are still `decode_margin` times
    /// what they are resized to.
    #[must_use]
    pub fn scale(self, pass: &Pass) -> Scale {
        let Self::Fast { decode_margin } = self else { return Scale::FULL };
        // Exact products: a target has at most 32 bits, a margin 24, a reduction one.
        let enough = |side: u32, target: u32, reduction: f64| {
            f64::from(side) >= f64::from(target) * f64::from(decode_margin) * reduction
        };
        let fits = |reduction| {
            enough(pass.region.width, pass.resized.0, reduction)
                && enough(pass.region.height, pass.resized.1, reduction)
        };
        let mut smallest_first = Scale::HALVINGS.into_iter().zip([1.0, 2.0, 4.0, 8.0]).rev();
        smallest_first.find(|&(_, reduction)| fits(reduction)).unwrap_or_default().0
    }

    pub(crate) fn check(self) -> Result<Self, RecipeError> {
        match self {
            Self::Fast { decode_margin } if !(1.0..=Self::MAX_MARGIN).contains(&decode_margin) => {
                Err(RecipeError::DecodeMargin { value: decode_margin })
            }
            Self::Fast { .. } | Self::Exact | Self::NvJpeg => Ok(self),
        }
    }

    /// From here on nothing is ever scaled: no side is longer than this.
    const MAX_MARGIN: f32 = 65_536.0;
}

impl fmt::Display for DecodeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Fast { decode_margin } => write!(f, "fast, margin {decode_margin}"),
            Self::NvJpeg => f.write_str("nvjpeg"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn a_scale_leaves_the_margin_on_both_sides() {
        let check = |mode: DecodeMode, (width, height), expected| {
            let pass = Pass { resized: (224, 100), ..Pass::whole(width, height) };
            assert_eq!(mode.scale(&pass), expected, "{mode} {width}x{height}");
        };
        let margin = |decode_margin| DecodeMode::Fast { decode_margin };
        check(margin(1.0), (448, 200), Scale::HALF);
        check(margin(1.0), (447, 200), Scale::FULL);
        check(margin(1.0), (448, 199), Scale::FULL);
        check(margin(1.0), (896, 400), Scale::QUARTER);
        check(margin(1.0), (1792, 800), Scale::EIGHTH);
        check(margin(1.5), (672, 300), Scale::HALF);
        check(margin(1.5), (671, 300), Scale::FULL);
        check(margin(2.0), (4000, 799), Scale::HALF);
        check(margin(2.0), (4000, 800), Scale::QUARTER);
        check(margin(1.0), (10, 10), Scale::FULL);
        check(DecodeMode::Exact, (4000, 4000), Scale::FULL);
    }

    #[test]
    fn nvjpeg_is_named_and_part_of_the_hash() {
        let exact = Recipe::imagenet_eval(8).unwrap();
        let recipe = exact.clone().with_decode(DecodeMode::NvJpeg).unwrap();
        let json = serde_json::to_string(&recipe).unwrap();
        assert!(json.contains(r#""decode":"nvjpeg""#), "{json}");
        assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe);
        assert_ne!(recipe.hash(), exact.hash());
        assert!(recipe.to_string().starts_with("Decode(nvjpeg) -> "), "{recipe}");
        let pass = Pass { resized: (1, 1), ..Pass::whole(4000, 4000) };
        assert_eq!(DecodeMode::NvJpeg.scale(&pass), Scale::FULL);
    }

    #[test]
    fn margins_are_checked_wherever_they_come_from() {
        for decode_margin in [0.99, -1.0, f32::NAN, f32::INFINITY] {
            let recipe = Recipe::imagenet_train(8).unwrap();
            let result = recipe.with_decode(DecodeMode::Fast { decode_margin });
            assert!(matches!(result, Err(RecipeError::DecodeMargin { .. })), "{decode_margin}");
        }
        let json = serde_json::to_string(&Recipe::imagenet_train(8).unwrap()).unwrap();
        let broken = json.replace("2.0}}", "0.5}}");
        assert_ne!(broken, json);
        let error = serde_json::from_str::<Recipe>(&broken).unwrap_err();
        assert!(error.to_string().contains("decode margin is 0.5"), "{error}");
    }
}
