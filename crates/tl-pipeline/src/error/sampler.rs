//! The errors of samplers.

use tbl_io::Location;

use crate::order::Shuffle;

/// The defect of a [`Sampler`](crate::Sampler).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SamplerError {
    /// A subset names samples that do not exist.
    #[error("sample {sample} is not in a data set of {sample_count} samples")]
    OutOfRange {
        /// The number of the sample, or of the last sample of a range.
        sample: u64,
        sample_count: u64,
    },
    /// A range that ends before it starts.
    #[error("invalid sample range {start}..{end}: expected an end that is not before the start")]
    Reversed { start: u64, end: u64 },
    /// Two ranges of a subset have samples in common.
    #[error("sample {sample} is in two ranges of a subset")]
    Overlap { sample: u64 },
    /// A weight that cannot be scaled.
    #[error("weight {value} of sample {sample} is negative or not finite")]
    Weight { sample: u64, value: f64 },
    /// Not one weight for every sample.
    #[error("{weights} weights for {sample_count} samples")]
    WeightCount { weights: u64, sample_count: u64 },
    /// More samples are to be drawn than can be.
    #[error("cannot draw {count} samples: {available} have a weight")]
    TooFew { count: u64, available: u64 },
    /// Samples that are drawn by weight are in random order.
    #[error("weighted sampling always shuffles fully; `{shuffle}` cannot be combined with it")]
    DrawnOrder { shuffle: Shuffle },
    /// Classes are to be balanced, and a sample has none.
    #[error("sample {sample} has no label to balance classes by")]
    Unlabelled { sample: u64 },
    /// A part of a mixture that can never come.
    #[error(
        "part {part} of the mixture has {samples} samples and weight {weight}, expected at least 1 each"
    )]
    Part { part: usize, samples: u64, weight: u32 },
    /// A mixture that ends when its first part is used up, with a part that has not enough samples
    /// for one round.
    #[error(
        "part {part} of the mixture is used up within the first round: it has {samples} samples, \
        a round takes {weight}"
    )]
    NoRound { part: usize, samples: u64, weight: u32 },
    /// A mixture that ends when all parts are used up, with a part whose later weights are 0.
    #[error(
        "part {part} of the mixture is never used up: the stages take {taken} of its {samples} \
        samples, and its weight in the last one is 0; expected a weight above 0 there, or another \
        length"
    )]
    NeverUsedUp { part: usize, samples: u64, taken: u64 },
    /// A stage that begins before the one before it ends its first round.
    #[error(
        "stage {stage} of the mixture starts at sample {start}: expected one after {after}, where \
        the previous stage begins, since a stage begins with a whole round"
    )]
    StageStart { stage: usize, start: u64, after: u64 },
    /// Not one weight for every part.
    #[error("stage {stage} of the mixture has {weights} weights for {parts} parts")]
    StageWeights { stage: usize, weights: usize, parts: usize },
    /// A stage in which no part comes.
    #[error("stage {stage} of the mixture has only weights of 0, expected one above 0")]
    StageWithoutWeight { stage: usize },
    /// Text that is not a stage.
    #[error("`{text}`: expected START:WEIGHT,WEIGHT,.. with a weight for each part of the mixture")]
    Stage { text: String },
    /// Weights too fine for a round of a mixture.
    #[error("the sum of the mixture's weights is {sum}, expected at most {limit}")]
    Weights { sum: u64, limit: u64 },
    /// Lanes that cannot have equally many rows of every global batch.
    #[error(
        "{lanes} lanes do not divide a global batch of {global_batch} rows, expected a divisor"
    )]
    Lanes { lanes: u64, global_batch: u64 },
    /// Lanes of samples that are mixed, drawn or repeated.
    #[error("`{shuffle}` works with all samples or a subset, once per epoch")]
    LanesOf { shuffle: Shuffle },
    /// Blocks of a source that has none.
    #[error("{location} has no blocks for `{shuffle}`; state their samples, as in block:1024x8")]
    NoBlocks { location: Location, shuffle: Shuffle },
    /// A block shuffle with a zero, a repetition of nothing or too many.
    #[error("{setting} is {value}, expected {expected}")]
    Setting { setting: &'static str, value: u64, expected: &'static str },
    /// An epoch with 2^63 positions or more.
    #[error("the sampler has 2^63 positions or more")]
    TooLong,
    /// Text that is not a length of a mixture.
    #[error("`{text}`: expected samples, first-used-up, all-used-up or a number of positions")]
    Length { text: String },
    /// Text that names no shuffle.
    #[error(
        "`{text}`: expected none, full, block:SAMPLESxWINDOW or lanes:LANES/SAMPLESxWINDOW, where \
         SAMPLES is a number, or `source` for the blocks of the files"
    )]
    Shuffle { text: String },
}
