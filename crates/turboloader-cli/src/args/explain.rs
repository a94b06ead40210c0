//! Arguments of `tl explain`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueHint};

use super::recipe::RecipeName;

/// Say what a recipe does and where, or what it does to one sample or batch
///
/// Without --sample: each operation with its number in the random streams and where it is carried
/// out, which is counted over plans drawn for 256 samples of the size. With --sample: everything
/// drawn for that sample, as training draws it in that epoch under that seed. The size of the
/// sample decides about it too: name it, or the data set. With --batch: how the images of that batch
/// are mixed.
///
/// With --json prints one object, `"schema":"tl.explain/1"`; `sample.plan` has the passes and steps
/// as they are carried out, in the form that tl-transform reads.
///
/// Examples:
///   tl explain imagenet-train
///   tl explain recipe.json --sample 17 --epoch 3 --seed 42 --size 500x375
///   tl explain recipe.json --sample 17 train.tbl --json
///   tl explain recipe.json --batch 4 --epoch 3 --seed 42
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, group = ArgGroup::new("drawn").multiple(true))]
pub(crate) struct ExplainArgs {
    /// imagenet-train, imagenet-eval, decode, or the path of a recipe in JSON or TOML
    #[arg(value_name = "RECIPE", value_hint = ValueHint::FilePath)]
    pub(crate) recipe: RecipeName,

    /// The data set that has the sample: a TAR archive, a folder or a TBL file
    #[arg(value_name = "DATA", requires = "sample", conflicts_with = "size")]
    pub(crate) data: Option<PathBuf>,

    /// Say what is done to this sample
    #[arg(long, value_name = "N", group = "drawn")]
    pub(crate) sample: Option<u64>,

    /// Say how this batch of the epoch is mixed, counted from 0
    #[arg(long, value_name = "N", group = "drawn")]
    pub(crate) batch: Option<u64>,

    /// The epoch that the sample or batch is drawn in
    #[arg(long, value_name = "E", default_value_t = 0, requires = "drawn")]
    pub(crate) epoch: u32,

    /// The seed of the augmentation
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Width and height of the decoded image
    #[arg(long, value_name = "WxH", default_value = "500x375")]
    pub(crate) size: ImageSize,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSize(pub(crate) u32, pub(crate) u32);

/// What is no [`ImageSize`].
#[derive(Debug, thiserror::Error)]
#[error("expected width and height in pixels, such as 500x375")]
pub(crate) struct NoImageSize;

impl FromStr for ImageSize {
    type Err = NoImageSize;

    fn from_str(text: &str) -> Result<Self, NoImageSize> {
        let (width, height) = text.split_once('x').ok_or(NoImageSize)?;
        let side = |text: &str| text.parse::<u32>().map_err(|_| NoImageSize);
        Ok(Self(side(width)?, side(height)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_numbers() {
        assert_eq!("500x375".parse::<ImageSize>().unwrap(), ImageSize(500, 375));
        for wrong in ["500", "500x", "x5", "1x2x3", "-1x5", "1 x2", "99999999999x1"] {
            assert!(wrong.parse::<ImageSize>().is_err(), "{wrong}");
        }
    }
}
