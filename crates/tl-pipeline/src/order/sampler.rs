//! The settings of samples and their order.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::Serialize;

use super::weights::Weights;
use crate::error::SamplerError;

/// The samples of an epoch and their order.
///
/// `docs/order.md` specifies the result, position by position.
///
/// ```
/// use tl_pipeline::{Length, Part, Sampler, Samples, Shuffle, Subset};
///
/// // Three samples of the first million to one of the others, until those are used up.
/// let parts = vec![
///     Part { samples: Subset::from(0..1_000_000), weight: 3 },
///     Part { samples: Subset::from(1_000_000..1_100_000), weight: 1 },
/// ];
/// let samples = Samples::Mix { parts, length: Length::FirstUsedUp, stages: Vec::new() };
/// let sampler = Sampler { samples, ..Shuffle::Full.into() };
/// assert_eq!(sampler.shuffle, Shuffle::Full);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    /// The samples. Default [`Samples::All`].
    pub samples: Samples,
    /// The shuffle of these samples. Default [`Shuffle::None`].
    pub shuffle: Shuffle,
    /// The number of passes of an epoch over them, each in another random order; from 1, the
    /// default, to 2^22.
    pub repeat: u32,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { samples: Samples::All, shuffle: Shuffle::None, repeat: 1 }
    }
}

/// All samples, once each, in this order.
impl From<Shuffle> for Sampler {
    fn from(shuffle: Shuffle) -> Self {
        Self { shuffle, ..Self::default() }
    }
}

/// The samples of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Samples {
    /// Those of the data set.
    #[default]
    All,
    /// A part of the samples.
    Subset(Subset),
    /// Samples drawn at random, each with a probability in proportion to its weight. The shuffle
    /// must be [`Shuffle::Full`], because draws have no other order.
    Weighted {
        /// A weight for every sample of the data set.
        weights: Weights,
        /// With or without replacement.
        replacement: Replacement,
        /// The number of draws; by default the number of samples, and without replacement the
        /// number of those with a weight.
        count: Option<u64>,
    },
    /// As many samples of every class, whatever its size: [`Samples::Mix`] with a part of weight 1
    /// for each label that samples have, in the order of the labels.
    ClassBalanced {
        /// The samples; `None` means all.
        of: Option<Subset>,
        /// The number of positions.
        length: Length,
    },
    /// Samples of several parts in the proportion of the parts' weights.
    ///
    /// Each part's samples come in rounds: all of them in one order, then all in another.
    Mix {
        /// The parts. They may have samples in common.
        parts: Vec<Part>,
        /// The number of positions.
        length: Length,
        /// Other weights from positions on; none for the same weights throughout.
        stages: Vec<MixStage>,
    },
}

/// Some of a data set's samples, in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subset {
    /// Ranges of samples, in this order. They must not overlap.
    Ranges(Vec<Range<u64>>),
    /// Samples one by one, such as an order that something else has made. They may repeat.
    List(Vec<u64>),
}

impl From<Range<u64>> for Subset {
    fn from(range: Range<u64>) -> Self {
        Self::Ranges(Vec::from([range]))
    }
}

/// One of the parts that are mixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The samples of this part.
    pub samples: Subset,
    /// The number of positions that it gets for each position of a part of weight 1. The sum of all
    /// weights, divided by their greatest common divisor, is at most 1,048,576, those of all stages
    /// together. With stages it is the weight until the first of them, and can be 0.
    pub weight: u32,
}

/// Weights of a mixture from a position on.
///
/// A stage begins with the first round at `start` or after it, so that the stage before has whole
/// rounds and every part its exact share. Parts continue where they are in their samples.
///
/// ```
/// use tl_pipeline::MixStage;
///
/// assert_eq!("500000:1,0".parse(), Ok(MixStage { start: 500_000, weights: vec![1, 0] }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixStage {
    /// The first position of an epoch, all ranks together, that these weights are wanted for: the
    /// number of a step times the rows of a global batch.
    pub start: u64,
    /// The weight of each part; a part of weight 0 pauses, or comes later.
    pub weights: Vec<u32>,
}

/// Reads `START:WEIGHT,WEIGHT,..`.
impl FromStr for MixStage {
    type Err = SamplerError;

    fn from_str(text: &str) -> Result<Self, SamplerError> {
        let error = || SamplerError::Stage { text: text.to_owned() };
        let (start, weights) = text.split_once(':').ok_or_else(error)?;
        let weights = weights.split(',').map(str::parse).collect::<Result<_, _>>();
        let start = start.parse().map_err(|_| error())?;
        Ok(Self { start, weights: weights.map_err(|_| error())? })
    }
}

/// The number of positions of a mixture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Length {
    /// As many as its parts have samples.
    #[default]
    Samples,
    /// As many whole rounds of the parts' weights as no part has to repeat a sample for. Each has
    /// to have enough samples for one.
    FirstUsedUp,
    /// As few whole rounds of the parts' weights as show every sample.
    AllUsedUp,
    /// This number of positions.
    Positions(u64),
}

/// Reads `samples`, `first-used-up`, `all-used-up` and numbers.
impl FromStr for Length {
    type Err = SamplerError;

    fn from_str(text: &str) -> Result<Self, SamplerError> {
        let error = |_| SamplerError::Length { text: text.to_owned() };
        Ok(match text {
            "samples" => Self::Samples,
            "first-used-up" => Self::FirstUsedUp,
            "all-used-up" => Self::AllUsedUp,
            number => Self::Positions(number.parse().map_err(error)?),
        })
    }
}

/// The choice of draws with or without replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// It can: every position is drawn from all samples.
    With,
    /// It cannot: no sample comes twice.
    Without,
}

/// The shuffle of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shuffle {
    /// Samples keep their order.
    #[default]
    None,
    /// Every sample can come anywhere.
    Full,
    /// Blocks of neighbours in random order, the samples of `window` blocks shuffled among each
    /// other: what is read together is stored together.
    Block {
        /// The blocks.
        blocks: Blocks,
        /// Blocks in a window, at least 1.
        window: u64,
    },
    /// Blocks that are dealt to lanes and shuffled within their lane as by [`Block`](Self::Block).
    /// Every global batch has equally many rows of each lane, the first ones of lane 0 and so on, so
    /// that ranks whose number divides that of the lanes read every block once, all together. The
    /// order is the same for every number of ranks.
    Lanes {
        /// Lanes, a divisor of the global batch.
        lanes: u64,
        /// The blocks.
        blocks: Blocks,
        /// Blocks in a window of a lane, at least 1.
        window: u64,
        /// The time for which a lane keeps its blocks.
        deal: Deal,
    },
}

/// The blocks of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blocks {
    /// Blocks of this many neighbours, at least 1.
    Samples(u64),
    /// Those that the data set is stored in, such as the pages of Parquet files: all samples of one are
    /// unpacked together. Sources without blocks are refused.
    Source,
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Samples(samples) => write!(f, "{samples}"),
            Self::Source => f.write_str(SOURCE),
        }
    }
}

/// The text of [`Blocks::Source`].
const SOURCE: &str = "source";

/// The time for which a lane of [`Shuffle::Lanes`] keeps its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Deal {
    /// All epochs: what a node has cached serves the next epoch.
    #[default]
    Run,
    /// One epoch: any samples can meet in a batch sooner or later.
    Epoch,
}

impl Shuffle {
    /// The window of blocks of the source, in blocks; `None` for shuffles without these.
    pub(crate) const fn source_window(&self) -> Option<u64> {
        match self {
            Self::Block { blocks: Blocks::Source, window } => Some(*window),
            Self::Lanes { blocks: Blocks::Source, window, lanes, .. } => {
                Some(window.saturating_mul(*lanes))
            }
            Self::None | Self::Full | Self::Block { .. } | Self::Lanes { .. } => None,
        }
    }
}

impl fmt::Display for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Block { blocks, window } => write!(f, "block:{blocks}x{window}"),
            Self::Lanes { lanes, blocks, window, deal } => {
                let deal = if deal == &Deal::Epoch { "/epoch" } else { "" };
                write!(f, "lanes:{lanes}/{blocks}x{window}{deal}")
            }
        }
    }
}

/// As it is printed.
impl Serialize for Shuffle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads `none`, `full`, `block:SAMPLES` (one block in a window), `block:SAMPLESxWINDOW` and
/// `lanes:LANES/SAMPLESxWINDOW`, with `/epoch` after it for [`Deal::Epoch`]. `SAMPLES` is a number, or
/// `source` for [`Blocks::Source`].
impl FromStr for Shuffle {
    type Err = SamplerError;

    fn from_str(text: &str) -> Result<Self, SamplerError> {
        let error = || SamplerError::Shuffle { text: text.to_owned() };
        let number = |digits: &str| match digits.parse() {
            Ok(0) | Err(_) => Err(error()),
            Ok(number) => Ok(number),
        };
        let blocks = |text: &str| {
            let (samples, window) = text.split_once('x').unwrap_or((text, "1"));
            let blocks = match samples {
                SOURCE => Blocks::Source,
                samples => Blocks::Samples(number(samples)?),
            };
            Ok((blocks, number(window)?))
        };
        if let Some(text) = text.strip_prefix("block:") {
            let (blocks, window) = blocks(text)?;
            return Ok(Self::Block { blocks, window });
        }
        if let Some(text) = text.strip_prefix("lanes:") {
            let (text, deal) = match text.strip_suffix("/epoch") {
                Some(text) => (text, Deal::Epoch),
                None => (text, Deal::Run),
            };
            let (lanes, text) = text.split_once('/').ok_or_else(error)?;
            let (blocks, window) = blocks(text)?;
            return Ok(Self::Lanes { lanes: number(lanes)?, blocks, window, deal });
        }
        match text {
            "none" => Ok(Self::None),
            "full" => Ok(Self::Full),
            _ => Err(error()),
        }
    }
}
