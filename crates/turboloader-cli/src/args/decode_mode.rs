//! The argument that selects the decode mode.

use clap::{Args, ValueEnum};
use tl_transform::{DecodeMode, Recipe};

use crate::failure::Failure;

/// The failure of `--decode` for a recipe that makes no smaller image.
pub(crate) const NO_DECODE_MODE: Failure =
    Failure::Usage { what: "--decode and --decode-margin need a recipe that resizes" };

/// The choice of a decode mode.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DecodeModeArgs {
    /// Decode JPEG photographs exactly, fast or by nvJPEG, for a recipe that resizes (default: fast for
    /// training, exact for evaluation)
    #[arg(long, value_enum, value_name = "MODE", requires = "recipe")]
    decode: Option<DecodeChoice>,

    /// Minimum ratio of decoded size to output size for fast decoding, 1 or more
    #[arg(long, value_name = "M", requires = "recipe")]
    decode_margin: Option<f32>,
}

/// The values of `--decode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeChoice {
    /// With the pixels of Pillow
    Exact,
    /// From the smallest scale that has enough pixels, colours converted last
    Fast,
    /// Baseline files by NVIDIA's library, near the pixels of Pillow; needs --device
    #[value(name = "nvjpeg")]
    NvJpeg,
}

impl DecodeModeArgs {
    /// Whether anything was asked for.
    pub(crate) const fn is_given(&self) -> bool {
        self.decode.is_some() || self.decode_margin.is_some()
    }

    /// `recipe` with the requested mode instead of its own.
    pub(crate) fn apply(&self, recipe: Recipe) -> Result<Recipe, Failure> {
        let mode = match (self.decode, self.decode_margin) {
            (None, None) => return Ok(recipe),
            (Some(DecodeChoice::Exact), None) => DecodeMode::Exact,
            (Some(DecodeChoice::Exact), Some(_)) => {
                let what = "--decode-margin: exact decoding has no margin";
                return Err(Failure::Usage { what });
            }
            (Some(DecodeChoice::NvJpeg), None) => DecodeMode::NvJpeg,
            (Some(DecodeChoice::NvJpeg), Some(_)) => {
                let what = "--decode-margin: nvJPEG has no margin";
                return Err(Failure::Usage { what });
            }
            (Some(DecodeChoice::Fast), None) => DecodeMode::FAST,
            (_, Some(decode_margin)) => DecodeMode::Fast { decode_margin },
        };
        Ok(recipe.with_decode(mode)?)
    }
}
