//! Arguments that say which samples an epoch has, and in which order.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tl_pipeline::{Dataset, Length, Part, Replacement, Sampler, Samples, Shuffle, Subset};

use crate::failure::Failure;
use crate::weights;

/// The samples of an epoch, and their order.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Samples and their order")]
pub(crate) struct SamplerArgs {
    /// The order of samples: none, full, block:SAMPLESxWINDOW or lanes:LANES/SAMPLESxWINDOW. Blocks of
    /// adjacent samples come in random order, and samples are shuffled within WINDOW blocks (default:
    /// 1). With lanes every block belongs to one of LANES equal parts of each global batch
    #[arg(long, value_name = "SHUFFLE")]
    pub(crate) shuffle: Option<Shuffle>,

    /// Only load these samples: A..B, B excluded
    #[arg(long, value_name = "A..B", value_delimiter = ',', value_parser = sample_range)]
    samples: Vec<Range<u64>>,

    /// Load every sample N times in an epoch, each time in a different random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,

    /// Load the same number of samples of every class, whatever its size
    #[arg(long, group = "turns")]
    class_balanced: bool,

    /// Mix the data sets in the proportion of these weights: a whole number for each DATA, e.g. 3,1
    #[arg(
        long,
        value_name = "WEIGHT",
        value_delimiter = ',',
        group = "turns",
        conflicts_with = "samples"
    )]
    mix: Vec<u32>,

    /// The number of samples in an epoch with --class-balanced or --mix: samples (default: the size
    /// of the data set), first-used-up (no sample repeats), all-used-up (every sample is loaded) or
    /// a number
    #[arg(long, value_name = "LENGTH", value_parser = length, requires = "turns")]
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
        let some = || (!self.samples.is_empty()).then(|| Subset::Ranges(self.samples.clone()));
        if let Some(path) = &self.weights {
            return Ok(Samples::Weighted {
                weights: weights::read(path)?,
                replacement: self.replacement.map_or(Replacement::With, Replacement::from),
                count: self.count,
            });
        }
        if !self.mix.is_empty() {
            let parts = parts(&self.mix, dataset)?;
            return Ok(Samples::Mix { parts, length });
        }
        Ok(match some() {
            of if self.class_balanced => Samples::ClassBalanced { of, length },
            Some(subset) => Samples::Subset(subset),
            None => Samples::All,
        })
    }
}

/// Each of the data sets with its weight.
fn parts(weights: &[u32], dataset: &Dataset) -> Result<Vec<Part>, Failure> {
    let data_sets = dataset.shards().len();
    if weights.len() != data_sets {
        let weights = weights.len();
        let sentence = format_args!(
            "--mix has {weights} weights, expected one for each of {data_sets} data sets"
        );
        return Err(Failure::setting(sentence));
    }
    let samples = (0..data_sets).filter_map(|data_set| dataset.shard_samples(data_set));
    let part = |(samples, &weight)| Part { samples: Subset::from(samples), weight };
    Ok(samples.zip(weights).map(part).collect())
}

/// Text that is not a range of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected two numbers, such as 1000..2000")]
pub(crate) struct NoRange;

fn sample_range(text: &str) -> Result<Range<u64>, NoRange> {
    let (start, end) = text.split_once("..").ok_or(NoRange)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| NoRange);
    Ok(number(start)?..number(end)?)
}

/// Text that is not a length of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected samples, first-used-up, all-used-up or a number of positions")]
pub(crate) struct NoLength;

fn length(text: &str) -> Result<Length, NoLength> {
    Ok(match text {
        "samples" => Length::Samples,
        "first-used-up" => Length::FirstUsedUp,
        "all-used-up" => Length::AllUsedUp,
        number => Length::Positions(number.parse().map_err(|_| NoLength)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers() {
        assert_eq!(sample_range("10..20"), Ok(10..20));
        for wrong in ["10", "10..", "..20", "10..=20", "a..b", "-1..2", "1...2"] {
            assert_eq!(sample_range(wrong), Err(NoRange), "{wrong}");
        }
    }

    #[test]
    fn a_length_is_a_rule_or_a_number() {
        assert_eq!(length("samples"), Ok(Length::Samples));
        assert_eq!(length("first-used-up"), Ok(Length::FirstUsedUp));
        assert_eq!(length("all-used-up"), Ok(Length::AllUsedUp));
        assert_eq!(length("12"), Ok(Length::Positions(12)));
        for wrong in ["", "longest", "first_used_up", "-1", "1.5"] {
            assert_eq!(length(wrong), Err(NoLength), "{wrong}");
        }
    }
}
