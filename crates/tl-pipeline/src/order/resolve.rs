//! From what a user says about samples to the tables of their order.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::Tables;
use super::listing::{Listing, Piece};
use super::mixture::Mixture;
use super::sampler::{Blocks, Length, MixStage, Replacement, Sampler, Samples, Shuffle, Subset};
use super::sequence::{Arrangement, Sequence};
use super::source_blocks::Extent;
use super::weights::{Lots, Weights};
use crate::dataset::Dataset;
use crate::error::{PipelineError, SamplerError};

/// Keys of repetitions come from a stream of 2^24 blocks, four for each.
const MAX_REPEAT: u32 = 1 << 22;

/// An order has a table of its lanes.
const MAX_LANES: u64 = 1 << 16;

impl Sampler {
    /// The sampler over `dataset`, in global batches of `global_batch` rows, which matter to
    /// [`Shuffle::Lanes`] alone. Labels are read where classes are balanced.
    ///
    /// # Errors
    /// [`PipelineError::Sampler`] if it names samples that do not exist, has no position for what it
    /// names, or is out of the range that [`SamplerError`] states. [`PipelineError::Open`] if the
    /// label of a sample to balance by cannot be read: its class is unknown, so no
    /// [`OnError`](crate::OnError) applies; and if the blocks of a source cannot be read.
    pub fn resolve(&self, dataset: &Dataset, global_batch: u64) -> Result<Sequence, PipelineError> {
        let unreadable = Cell::new(None);
        let label = |sample| {
            let label = dataset.try_label(sample);
            label.unwrap_or_else(|error| {
                unreadable.set(Some(error));
                None
            })
        };
        let ends = match self.shuffle.source_window() {
            Some(_) => dataset.block_ends(self.shuffle)?,
            None => Vec::new(),
        };
        let sequence = self.resolve_over(dataset.len(), global_batch, &ends, label);
        // It counts before the missing label that the sampler found in its place.
        match unreadable.into_inner() {
            Some(error) => Err(error.into()),
            None => Ok(sequence?),
        }
    }

    pub(crate) fn resolve_over(
        &self,
        sample_count: u64,
        global_batch: u64,
        ends: &[u64],
        label: impl Fn(u64) -> Option<i64>,
    ) -> Result<Sequence, SamplerError> {
        self.check()?;
        let (listing, arrangement, once) = match &self.samples {
            Samples::All => {
                let listing = listing(vec![Piece::Range(0..sample_count)])?;
                (listing, Arrangement::Permuted, sample_count)
            }
            Samples::Subset(subset) => {
                let listing = listing(subset.pieces(sample_count)?)?;
                let once = listing.len();
                (listing, Arrangement::Permuted, once)
            }
            Samples::Mix { parts, length, stages } => {
                let mut pieces = Vec::new();
                let mut shares = Vec::new();
                for part in parts {
                    let before = pieces.len();
                    pieces.extend(part.samples.pieces(sample_count)?);
                    let len = pieces[before..]
                        .iter()
                        .try_fold(0, |sum: u64, piece| sum.checked_add(piece.len()));
                    shares.push((len.ok_or(SamplerError::TooLong)?, part.weight));
                }
                mixed(listing(pieces)?, &shares, stages, *length)?
            }
            Samples::ClassBalanced { of, length } => {
                let of = of.as_ref().map(|of| of.pieces(sample_count)).transpose()?;
                let of = listing(of.unwrap_or_else(|| vec![Piece::Range(0..sample_count)]))?;
                balanced(&of, *length, label)?
            }
            Samples::Weighted { weights, replacement, count } => {
                drawn(sample_count, weights, *replacement, *count)?
            }
        };
        let repeat = self.repeat;
        let shuffle = self.shuffle;
        let len = once.checked_mul(repeat.into()).filter(|&len| len < 1 << 63);
        let len = len.ok_or(SamplerError::TooLong)?;
        let lane_rows = lane_rows(shuffle, global_batch)?;
        let ends = shuffle.source_window().map(|_| ends);
        let extent = |places: Range<u64>| match ends {
            Some(ends) => Extent::of_blocks(listing.block_ends(places, ends).into()),
            None => Extent::plain(places.end - places.start),
        };
        let extents = match &arrangement {
            Arrangement::Permuted => vec![extent(0..once)],
            Arrangement::Mixed(mixture) => mixture.places().map(extent).collect(),
            Arrangement::Drawn { .. } | Arrangement::DrawnOnce { .. } => Vec::new(),
        };
        Ok(Sequence::new(Tables {
            sample_count,
            listing,
            arrangement,
            shuffle,
            extents,
            lane_rows,
            once,
            repeat,
            len,
        }))
    }

    fn check(&self) -> Result<(), SamplerError> {
        let setting =
            |setting, value, expected| Err(SamplerError::Setting { setting, value, expected });
        if !(1..=MAX_REPEAT).contains(&self.repeat) {
            return setting("repeat", self.repeat.into(), "1 to 4194304");
        }
        match self.shuffle {
            Shuffle::Block { blocks: Blocks::Samples(0), .. }
            | Shuffle::Lanes { blocks: Blocks::Samples(0), .. } => {
                setting("samples of a block", 0, "at least 1")
            }
            Shuffle::Block { window: 0, .. } | Shuffle::Lanes { window: 0, .. } => {
                setting("blocks of a window", 0, "at least 1")
            }
            Shuffle::Lanes { lanes, .. } if !(1..=MAX_LANES).contains(&lanes) => {
                setting("lanes", lanes, "1 to 65536")
            }
            Shuffle::None | Shuffle::Full | Shuffle::Block { .. } | Shuffle::Lanes { .. } => Ok(()),
        }?;
        match (&self.samples, self.shuffle) {
            (Samples::All | Samples::Subset(_), Shuffle::Lanes { .. }) if self.repeat == 1 => {
                Ok(())
            }
            (_, shuffle @ Shuffle::Lanes { .. }) => Err(SamplerError::LanesOf { shuffle }),
            (Samples::Weighted { .. }, Shuffle::Full) => Ok(()),
            (Samples::Weighted { .. }, shuffle) => Err(SamplerError::DrawnOrder { shuffle }),
            _ => Ok(()),
        }
    }
}

/// The rows of a lane in a global batch.
fn lane_rows(shuffle: Shuffle, global_batch: u64) -> Result<u64, SamplerError> {
    let Shuffle::Lanes { lanes, .. } = shuffle else { return Ok(0) };
    if global_batch == 0 || !global_batch.is_multiple_of(lanes) {
        return Err(SamplerError::Lanes { lanes, global_batch });
    }
    Ok(global_batch / lanes)
}

type Resolved = (Listing, Arrangement, u64);

fn listing(pieces: Vec<Piece>) -> Result<Listing, SamplerError> {
    Listing::new(pieces).ok_or(SamplerError::TooLong)
}

fn mixed(
    listing: Listing,
    shares: &[(u64, u32)],
    stages: &[MixStage],
    length: Length,
) -> Result<Resolved, SamplerError> {
    let mixture = Mixture::new(shares, stages)?;
    // Without parts a mixture has no positions.
    let once = if shares.is_empty() { 0 } else { mixture.positions(length)? };
    Ok((listing, Arrangement::Mixed(mixture), once))
}

fn drawn(
    sample_count: u64,
    weights: &Weights,
    replacement: Replacement,
    count: Option<u64>,
) -> Result<Resolved, SamplerError> {
    let given = weights.as_slice().len() as u64;
    if given != sample_count {
        return Err(SamplerError::WeightCount { weights: given, sample_count });
    }
    let available = weights.positive();
    let (count, enough) = match replacement {
        Replacement::With => (count.unwrap_or(sample_count), 1),
        Replacement::Without => {
            let count = count.unwrap_or(available);
            (count, count)
        }
    };
    if available < enough.min(count) {
        return Err(SamplerError::TooFew { count, available });
    }
    let weights = weights.clone();
    let arrangement = match (replacement, Lots::new(&weights)) {
        // Without weights no sample can be drawn, and none was requested.
        _ if available == 0 => return Ok((listing(Vec::new())?, Arrangement::Permuted, 0)),
        (Replacement::Without, _) => Arrangement::DrawnOnce { weights },
        (Replacement::With, Some(lots)) => Arrangement::Drawn { weights, lots },
        (Replacement::With, None) => return Err(SamplerError::TooLong),
    };
    Ok((listing(vec![Piece::Range(0..sample_count)])?, arrangement, count))
}

/// The samples of each label in turn, the labels ascending.
fn balanced(
    of: &Listing,
    length: Length,
    label: impl Fn(u64) -> Option<i64>,
) -> Result<Resolved, SamplerError> {
    let mut classes: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for sample in (0..of.len()).map(|place| of.sample(place)) {
        let label = label(sample).ok_or(SamplerError::Unlabelled { sample })?;
        classes.entry(label).or_default().push(sample);
    }
    let shares: Vec<(u64, u32)> =
        classes.values().map(|samples| (samples.len() as u64, 1)).collect();
    let samples = classes.into_values().flatten().collect();
    mixed(listing(vec![Piece::list(samples)])?, &shares, &[], length)
}

impl Subset {
    /// The subset's samples, all of which the data set has.
    fn pieces(&self, sample_count: u64) -> Result<Vec<Piece>, SamplerError> {
        match self {
            Self::Ranges(ranges) => {
                for &Range { start, end } in ranges {
                    if start > end {
                        return Err(SamplerError::Reversed { start, end });
                    }
                    if end > sample_count {
                        return Err(SamplerError::OutOfRange { sample: end - 1, sample_count });
                    }
                }
                let mut sorted: Vec<&Range<u64>> =
                    ranges.iter().filter(|range| !range.is_empty()).collect();
                sorted.sort_by_key(|range| range.start);
                match sorted.windows(2).find(|pair| pair[1].start < pair[0].end) {
                    Some(pair) => Err(SamplerError::Overlap { sample: pair[1].start }),
                    None => Ok(ranges.iter().cloned().map(Piece::Range).collect()),
                }
            }
            Self::List(samples) => match samples.iter().find(|&&sample| sample >= sample_count) {
                Some(&sample) => Err(SamplerError::OutOfRange { sample, sample_count }),
                None => Ok(vec![Piece::list(samples.clone())]),
            },
        }
    }
}
