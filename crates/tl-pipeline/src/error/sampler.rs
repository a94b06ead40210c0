//! What can be wrong with a sampler.

use crate::order::Shuffle;

/// What is wrong with a [`Sampler`](crate::Sampler).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// A subset names samples that there are not.
    #[error("sample {sample} is not in a data set of {sample_count} samples")]
    OutOfRange {
        /// The number of the sample, or of the last sample of a range.
        sample: u64,
        /// How many samples there are.
        sample_count: u64,
    },
    /// A range that ends before it starts.
    #[error("samples {start}..{end} end before they start")]
    Reversed {
        /// Its first sample.
        start: u64,
        /// The sample behind its last.
        end: u64,
    },
    /// Two ranges of a subset have samples in common.
    #[error("sample {sample} is in two ranges of a subset")]
    Overlap {
        /// The first sample that is in both.
        sample: u64,
    },
    /// A weight that cannot be scaled.
    #[error("weight {value} of sample {sample} is negative or not finite")]
    Weight {
        /// The number of the sample.
        sample: u64,
        /// Its weight.
        value: f64,
    },
    /// Not one weight for every sample.
    #[error("{weights} weights for {sample_count} samples")]
    WeightCount {
        /// How many weights there are.
        weights: u64,
        /// How many samples there are.
        sample_count: u64,
    },
    /// More samples are to be drawn than can be.
    #[error("{count} samples are to be drawn from {available} with a weight")]
    TooFew {
        /// How many are to be drawn.
        count: u64,
        /// How many have a positive weight.
        available: u64,
    },
    /// Samples that are drawn by weight are in random order.
    #[error("weighted sampling always shuffles fully; `{shuffle}` cannot be combined with it")]
    DrawnOrder {
        /// The shuffle that was asked for.
        shuffle: Shuffle,
    },
    /// Classes are to be balanced, and a sample has none.
    #[error("sample {sample} has no label to balance classes by")]
    Unlabelled {
        /// The number of the sample.
        sample: u64,
    },
    /// A part of a mixture that can never come.
    #[error(
        "part {part} of the mixture has {samples} samples and weight {weight}, expected at least 1 each"
    )]
    Part {
        /// Its number, from 0.
        part: usize,
        /// How many samples it has.
        samples: u64,
        /// Its weight.
        weight: u32,
    },
    /// A mixture that ends when its first part is used up, with a part that has not enough samples
    /// for one round.
    #[error(
        "part {part} of the mixture is used up within the first round: it has {samples} samples, \
        a round takes {weight}"
    )]
    NoRound {
        /// Its number, from 0.
        part: usize,
        /// How many samples it has.
        samples: u64,
        /// Its weight, divided by what divides all weights.
        weight: u32,
    },
    /// Weights too fine for a round of a mixture.
    #[error("the weights of the mixture are {sum} in sum, more than {limit}")]
    Weights {
        /// Their sum, after dividing by what divides all.
        sum: u64,
        /// What it may be.
        limit: u64,
    },
    /// A block shuffle with a zero, a repetition of nothing or too many.
    #[error("{setting} is {value}, expected {expected}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// An epoch with 2^63 positions or more.
    #[error("the sampler has 2^63 positions or more")]
    TooLong,
    /// Text that names no shuffle.
    #[error("`{text}` is none of none, full, block:SAMPLES and block:SAMPLESxWINDOW")]
    Shuffle {
        /// The text.
        text: String,
    },
}
