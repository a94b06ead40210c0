//! Figures on the randomness of an order, compared with a full shuffle of the same samples.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::sampler::{Blocks, Sampler, Shuffle};
use super::sequence::Sequence;
use crate::dataset::Dataset;
use crate::error::PipelineError;

/// Positions looked at: enough for two digits, and a fraction of a second.
const MAX_POSITIONS: u64 = 100_000;

/// Neighbours are stored within this many samples of each other, where neither the shuffle nor the
/// files say what is stored together.
const NEAR: u64 = 256;

/// The randomness of a sampler, measured over up to 100,000 positions: whole batches, spread over
/// an epoch.
///
/// The reference is a full shuffle of the same samples, measured at the same positions.
///
/// ```no_run
/// use tl_pipeline::{Blocks, Dataset, Shuffle, ShuffleQuality};
///
/// let dataset = Dataset::open(&["train.tbl"])?;
/// let shuffle = Shuffle::Block { blocks: Blocks::Samples(1024), window: 8 };
/// println!("{}", ShuffleQuality::measure(&shuffle.into(), &dataset, 0, 64)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShuffleQuality {
    /// The shuffle that was measured.
    pub shuffle: Shuffle,
    /// The number of positions that were measured.
    pub positions: u64,
    /// The unit of samples that count as stored together.
    pub together: Together,
    /// The figures of the sampler.
    pub order: Randomness,
    /// The figures of a full shuffle of the same samples.
    pub full: Randomness,
}

/// The unit of samples that count as stored together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Together {
    /// Samples of one file or folder of several.
    Shard,
    /// Samples of one block of this many.
    Block(u64),
    /// Samples of one block that the data set is stored in.
    SourceBlock,
}

/// Figures of an order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Randomness {
    /// The part of successive samples in a batch that are stored together.
    pub neighbours_together: f64,
    /// The mean entropy of the labels in a batch, in bits; `None` where a sample has no label.
    pub class_entropy: Option<f64>,
    /// The mean distance between where a sample is stored and where it comes, both as parts of the
    /// whole: a third for an order in which everything can come anywhere.
    pub displacement: f64,
}

impl ShuffleQuality {
    /// Measures epoch 0 of `sampler` over `dataset` under `seed`, in batches of `batch_size`.
    ///
    /// # Errors
    /// As for [`Sampler::resolve`].
    pub fn measure(
        sampler: &Sampler,
        dataset: &Dataset,
        seed: u64,
        batch_size: u64,
    ) -> Result<Self, PipelineError> {
        let full = Sampler { shuffle: Shuffle::Full, ..sampler.clone() };
        let together = match sampler.shuffle {
            Shuffle::Block { blocks, .. } | Shuffle::Lanes { blocks, .. } => match blocks {
                Blocks::Samples(samples) => Together::Block(samples),
                Blocks::Source => Together::SourceBlock,
            },
            Shuffle::None | Shuffle::Full if dataset.shards().len() > 1 => Together::Shard,
            Shuffle::None | Shuffle::Full => Together::Block(NEAR),
        };
        let block_ends = match together {
            Together::SourceBlock => dataset.block_ends(sampler.shuffle)?,
            Together::Shard | Together::Block(_) => Vec::new(),
        };
        let batch_size = batch_size.max(1);
        let look = Look { dataset, together, block_ends, seed, batch_size };
        let sequence = sampler.resolve(dataset, batch_size)?;
        let (positions, order) = look.at(&sequence);
        let (_, full) = look.at(&full.resolve(dataset, batch_size)?);
        Ok(Self { shuffle: sampler.shuffle, positions, together, order, full })
    }
}

impl fmt::Display for ShuffleQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shuffle, positions, order, full, .. } = self;
        let share = |randomness: &Randomness| 100.0 * randomness.neighbours_together;
        write!(f, "shuffle {shuffle}: {:.1} % of neighbours from the same ", share(order))?;
        match self.together {
            Together::Shard => f.write_str("shard")?,
            Together::Block(samples) => write!(f, "{samples} samples")?,
            Together::SourceBlock => f.write_str("block of the source")?,
        }
        write!(f, " (full shuffle: {:.1} %)", share(full))?;
        if let (Some(entropy), Some(of_full)) = (order.class_entropy, full.class_entropy) {
            write!(f, ", class entropy of a batch {entropy:.2} bits ({of_full:.2})")?;
        }
        let distance = order.displacement;
        let of_full = full.displacement;
        write!(f, ", displacement {distance:.3} of the whole ({of_full:.3})")?;
        write!(f, ", over {positions} positions")
    }
}

/// The positions and units of a measurement.
struct Look<'a> {
    dataset: &'a Dataset,
    together: Together,
    /// The samples after each block of the sources, if these are asked for.
    block_ends: Vec<u64>,
    seed: u64,
    batch_size: u64,
}

/// The sums over the measured positions.
#[derive(Default)]
struct Sums {
    positions: u64,
    pairs: u64,
    together: u64,
    batches: u64,
    entropy: f64,
    unlabelled: bool,
    displacement: f64,
}

impl Look<'_> {
    /// The number of positions that were measured, and their figures.
    #[expect(clippy::cast_precision_loss, reason = "figures are read to three digits")]
    fn at(&self, sequence: &Sequence) -> (u64, Randomness) {
        let order = sequence.order(self.seed, 0);
        let batches = order.len().div_ceil(self.batch_size);
        let looked_at = batches.min((MAX_POSITIONS / self.batch_size).max(1));
        let mut sums = Sums::default();
        let mut labels = BTreeMap::new();
        for number in 0..looked_at {
            // Evenly spread: products of two numbers below 2^64.
            let batch = u128::from(number) * u128::from(batches) / u128::from(looked_at);
            let first = u64::try_from(batch).unwrap_or(u64::MAX).saturating_mul(self.batch_size);
            let mut before = None;
            labels.clear();
            // A batch that is too large is measured at its start.
            for position in first..order.len().min(first + self.batch_size.min(MAX_POSITIONS)) {
                let Some(sample) = order.sample_at(position) else { break };
                let stored = sample as f64 / self.dataset.len() as f64;
                sums.displacement += (stored - position as f64 / order.len() as f64).abs();
                sums.positions += 1;
                let place = self.place(sample);
                sums.pairs += u64::from(before.is_some());
                sums.together += u64::from(before.replace(place) == Some(place));
                match self.dataset.label(sample) {
                    Some(label) => *labels.entry(label).or_insert(0u64) += 1,
                    None => sums.unlabelled = true,
                }
            }
            sums.batches += 1;
            sums.entropy += entropy(labels.values().copied());
        }
        let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        let entropy = mean(sums.entropy, sums.batches);
        let randomness = Randomness {
            neighbours_together: mean(sums.together as f64, sums.pairs),
            class_entropy: (!sums.unlabelled).then_some(entropy),
            displacement: mean(sums.displacement, sums.positions),
        };
        (sums.positions, randomness)
    }

    /// The number of the shard or block that `sample` is stored in.
    fn place(&self, sample: u64) -> u64 {
        match self.together {
            Together::Shard => self.dataset.shard_of(sample).map_or(0, |shard| shard as u64),
            Together::Block(samples) => sample / samples,
            Together::SourceBlock => self.block_ends.partition_point(|&end| end <= sample) as u64,
        }
    }
}

/// The entropy in bits of what comes so often.
#[expect(clippy::cast_precision_loss, reason = "counts in a batch")]
fn entropy(counts: impl Iterator<Item = u64> + Clone) -> f64 {
    let sum = counts.clone().sum::<u64>() as f64;
    counts.map(|count| count as f64 / sum).map(|share| -share * share.log2()).sum()
}
