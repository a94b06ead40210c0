//! Arguments that say which samples an epoch has, and in which order.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tl_pipeline::{Dataset, DatasetView, Length, MixStage, Replacement, Sampler, Samples, Shuffle};

use super::view::ViewArgs;
use crate::failure::Failure;
use crate::weights;

/// The samples of an epoch, and their order.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Samples and their order")]
pub(crate) struct SamplerArgs {
    /// The order of samples: none, full, block:SAMPLESxWINDOW or lanes:LANES/SAMPLESxWINDOW. Blocks of
    /// adjacent samples come in random order, and samples are shuffled within WINDOW blocks (default:
    /// 1). With lanes every block belongs to one of LANES equal parts of each global batch. SAMPLES
    /// may be `source` for the blocks that DATA is stored in, such as the pages of Parquet files
    #[arg(long, value_name = "SHUFFLE")]
    pub(crate) shuffle: Option<Shuffle>,

    #[command(flatten)]
    view: ViewArgs,

    /// Load every sample N times in an epoch, each time in a different random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,

    /// Load the same number of samples of every class, whatever its size
    #[arg(long, group = "turns")]
    balance: bool,

    /// Mix the data sets in the proportion of these weights: a whole number for each DATA, e.g. 3,1
    #[arg(
        long,
        value_name = "WEIGHT",
        value_delimiter = ',',
        group = "turns",
        conflicts_with = "samples"
    )]
    mix: Vec<u32>,

    /// Weights of --mix from sample START of the epoch on, counted over all ranks. A stage begins
    /// with the first whole round of the weights before it. Can be repeated
    #[arg(long = "stage", value_name = "START:WEIGHT,..", requires = "mix")]
    stages: Vec<MixStage>,

    /// The number of samples in an epoch with --balance or --mix: samples (default: the size
    /// of the data set), first-used-up (no sample repeats), all-used-up (every sample is loaded) or
    /// a number
    #[arg(long, value_name = "LENGTH", requires = "turns")]
    length: Option<Length>,

    /// Draw samples by weight: FILE has one line per sample, each a number of 0 or more
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["samples", "turns"])]
    weights: Option<PathBuf>,

    /// Whether --weights may draw a sample more than once (default: with)
    #[arg(long, value_enum, value_name = "CHOICE", requires = "weights")]
    replacement: Option<ReplacementChoice>,

    /// The number of samples that --weights draws (default: the size of the data set; without
    /// replacement, the number of samples with a weight above 0)
    #[arg(long, value_name = "N", requires = "weights")]
    count: Option<u64>,
}

/// The values of `--replacement`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplacementChoice {
    /// Samples may repeat
    With,
    /// Samples do not repeat
    Without,
}

impl From<ReplacementChoice> for Replacement {
    fn from(choice: ReplacementChoice) -> Self {
        match choice {
            ReplacementChoice::With => Self::With,
            ReplacementChoice::Without => Self::Without,
        }
    }
}

impl SamplerArgs {
    /// The sampler over `dataset`, shuffled as `shuffle` says where the arguments say nothing.
    pub(super) fn sampler(&self, shuffle: Shuffle, dataset: &Dataset) -> Result<Sampler, Failure> {
        let samples = self.samples_of(dataset)?;
        // Weighted sampling always shuffles fully.
        let drawn = matches!(samples, Samples::Weighted { .. });
        let shuffle = self.shuffle.unwrap_or(if drawn { Shuffle::Full } else { shuffle });
        Ok(Sampler { samples, shuffle, repeat: self.repeat })
    }

    fn samples_of(&self, dataset: &Dataset) -> Result<Samples, Failure> {
        let length = self.length.unwrap_or_default();
        if !self.mix.is_empty() {
            let parts = self.parts(dataset)?;
            let stages = self.stages.clone();
            return Ok(DatasetView::mix_in_stages(&parts, length, stages)?.samples());
        }
        let view = self.view.of(dataset)?;
        if let Some(path) = &self.weights {
            let replacement = self.replacement.map_or(Replacement::With, Replacement::from);
            return Ok(view.weights(&weights::read(path)?, replacement, self.count)?.samples());
        }
        let samples = view.samples();
        if !self.balance {
            return Ok(samples);
        }
        // The labels of tables are read when the loader is made.
        let of = if let Samples::Subset(of) = samples { Some(of) } else { None };
        Ok(Samples::ClassBalanced { of, length })
    }

    /// The selected samples of each of the data sets, with its weight.
    fn parts(&self, dataset: &Dataset) -> Result<Vec<(DatasetView, u32)>, Failure> {
        let data_sets = dataset.shards().len();
        if self.mix.len() != data_sets {
            let weights = self.mix.len();
            let sentence = format_args!(
                "--mix has {weights} weights, expected one for each of {data_sets} data sets"
            );
            return Err(Failure::setting(sentence));
        }
        let all = DatasetView::from(dataset.clone());
        let samples = (0..data_sets).filter_map(|data_set| dataset.shard_samples(data_set));
        let part = |(samples, &weight)| Ok((self.view.apply(all.slice(samples)?)?, weight));
        samples.zip(&self.mix).map(part).collect()
    }
}
