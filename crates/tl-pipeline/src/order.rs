//! The order of samples in an epoch, computed one position at a time.
//!
//! No list is shuffled and no buffer is kept: the sample at a position is a function of the
//! position, the seed and the epoch. A [`Sampler`] selects the samples and their shuffle; resolved
//! over a data set it is a [`Sequence`], which has an [`Order`] for every epoch. `docs/order.md`
//! specifies all of it to the bit, with test vectors.

mod block;
mod lanes;
mod listing;
mod mixture;
mod permutation;
mod quality;
mod resolve;
mod rounds;
mod sampler;
mod sequence;
mod source_blocks;
mod weights;

pub use quality::{Randomness, ShuffleQuality, Together};
pub use sampler::{
    Blocks, Deal, Length, MixStage, Part, Replacement, Sampler, Samples, Shuffle, Subset,
};
pub use sequence::Sequence;
pub use weights::Weights;

pub(crate) use permutation::{Network, class_keys, split_keys};

use listing::Listing;
use mixture::PartOrders;
use permutation::{Keys, Permutation, epoch_keys};
use sequence::Arrangement;
use source_blocks::Extent;
use tl_handoff::recent::RecentCache;
use tl_handoff::sync::Arc;
use weights::{draw_key, draw_once};

/// The order of an epoch: the sample at each position.
///
/// ```
/// use tl_pipeline::Order;
///
/// let order = Order::shuffled(10, 42, 0);
/// let samples: Vec<u64> = (0..10).filter_map(|position| order.sample_at(position)).collect();
/// assert_eq!(samples, [6, 4, 7, 9, 2, 3, 0, 5, 8, 1]);
/// assert_eq!(order.position_of(6), Some(0));
/// assert_eq!(order.sample_at(10), None);
/// ```
#[derive(Clone, Debug)]
pub struct Order {
    tables: Arc<Tables>,
    seed: u64,
    epoch: u32,
    made: Made,
    /// The last permutations of further repetitions, or of each part of a mixture; empty if they
    /// have no tables.
    recent: Arc<[RecentCache<Permutation>]>,
}

/// The permutations that are kept of repetitions, and of a part: those of positions read at the
/// same time.
const RECENT: usize = 2;

/// The part that all orders of a sequence share.
#[derive(Debug)]
struct Tables {
    sample_count: u64,
    listing: Listing,
    arrangement: Arrangement,
    shuffle: Shuffle,
    /// The places that are shuffled together: all, or those of each part of a mixture.
    extents: Vec<Extent>,
    /// The rows of a lane in a global batch; 0 for shuffles without lanes.
    lane_rows: u64,
    /// Positions of one repetition.
    once: u64,
    repeat: u32,
    /// Positions of an epoch, below 2^63 except for all samples once.
    len: u64,
}

/// The part that is computed for an epoch in advance.
#[derive(Clone, Debug)]
enum Made {
    /// The permutation of the first repetition.
    Permuted(Permutation),
    /// The keys of rounds and parts.
    Mixed(Keys),
    /// The key of the draws.
    Drawn(u64),
    /// The drawn samples, and each sample's position among them, `u64::MAX` for one that was not
    /// drawn. `positions` is empty if samples repeat.
    DrawnOnce { samples: Arc<[u64]>, positions: Arc<[u64]> },
}

/// A sample, and its position in the order of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered {
    pub(crate) epoch: u32,
    pub(crate) position: u64,
    pub(crate) sample: u64,
}

impl Ordered {
    /// The sample, if this is its position.
    pub(crate) fn at(self, epoch: u32, position: u64) -> Option<u64> {
        ((self.epoch, self.position) == (epoch, position)).then_some(self.sample)
    }
}

impl Order {
    /// The order of the data set: sample `n` at position `n`.
    #[must_use]
    pub fn sequential(sample_count: u64) -> Self {
        Sequence::of_all(sample_count, Shuffle::None).order(0, 0)
    }

    /// The permutation that belongs to `(sample_count, seed, epoch)`.
    #[must_use]
    pub fn shuffled(sample_count: u64, seed: u64, epoch: u32) -> Self {
        Sequence::of_all(sample_count, Shuffle::Full).order(seed, epoch)
    }

    fn new(tables: Arc<Tables>, seed: u64, epoch: u32) -> Self {
        let made = match &tables.arrangement {
            Arrangement::Permuted => Made::Permuted(tables.permutation(seed, epoch, 0)),
            Arrangement::Mixed(_) => Made::Mixed(epoch_keys(seed, epoch, 0)),
            Arrangement::Drawn { .. } => Made::Drawn(draw_key(seed, epoch)),
            Arrangement::DrawnOnce { weights } => {
                let key = draw_key(seed, epoch);
                let draw = |repetition| draw_once(weights, tables.once, key, (epoch, repetition));
                let samples: Arc<[u64]> = (0..tables.repeat).flat_map(draw).collect();
                let mut positions = Vec::new();
                if tables.repeat == 1 {
                    positions.resize(weights.as_slice().len(), u64::MAX);
                    for (&sample, position) in samples.iter().zip(0..) {
                        positions[index(sample)] = position;
                    }
                }
                Made::DrawnOnce { samples, positions: positions.into() }
            }
        };
        let has_tables = tables.extents.iter().any(|extent| extent.ends().is_some());
        let kept = if has_tables { tables.extents.len() } else { 0 };
        let recent = (0..kept).map(|_| RecentCache::new(RECENT)).collect();
        Self { tables, seed, epoch, made, recent }
    }

    /// The number of positions.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tables.len
    }

    /// True without positions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample at `position`, or `None` past the end.
    #[must_use]
    pub fn sample_at(&self, position: u64) -> Option<u64> {
        let tables = &*self.tables;
        if position >= tables.len {
            return None;
        }
        let place = match (&self.made, &tables.arrangement) {
            (Made::Permuted(first), _) if position < tables.once => first.at(position),
            (Made::Permuted(_), _) => {
                let repetition = position / tables.once;
                let place = position % tables.once;
                self.of_repetition(repetition, |order| order.at(place))
            }
            (Made::Mixed(keys), Arrangement::Mixed(mixture)) => {
                mixture.at(position, &self.part_orders(keys))
            }
            (Made::Drawn(key), Arrangement::Drawn { lots, .. }) => {
                lots.draw(*key, self.epoch, position)
            }
            (Made::DrawnOnce { samples, .. }, _) => samples[index(position)],
            (Made::Mixed(_) | Made::Drawn(_), _) => return None,
        };
        Some(tables.listing.sample(place))
    }

    /// The seed of what is random about the sample at `position`. It is the epoch's where every sample
    /// is named once; where samples can come more than once it is one of the position's own, so that
    /// each time they are augmented in another way.
    #[must_use]
    pub fn seed_at(&self, position: u64) -> u64 {
        if self.tables.names_samples_once() {
            return self.seed;
        }
        permutation::derive(&[self.seed; 8], 0, position)[0]
    }

    /// The position of `sample`. `None` if the sample does not exist, or comes never or more than
    /// once, or could: if each position is drawn from all samples, or all are drawn repeatedly.
    #[must_use]
    pub fn position_of(&self, sample: u64) -> Option<u64> {
        let tables = &*self.tables;
        match (&self.made, &tables.arrangement) {
            (Made::Permuted(first), _) if tables.repeat == 1 => {
                tables.listing.place_of(sample).map(|place| first.place_of(place))
            }
            (Made::Mixed(keys), Arrangement::Mixed(mixture)) => {
                let place = tables.listing.place_of(sample)?;
                mixture.position_of(place, tables.len, &self.part_orders(keys))
            }
            (Made::DrawnOnce { positions, .. }, _) => {
                let position = positions.get(usize::try_from(sample).ok()?)?;
                Some(*position).filter(|&position| position != u64::MAX)
            }
            (Made::Permuted(_) | Made::Mixed(_) | Made::Drawn(_), _) => None,
        }
    }
}

impl Order {
    /// Calls `ask` with the permutation of repetition `repetition`.
    fn of_repetition(&self, repetition: u64, ask: impl FnOnce(&Permutation) -> u64) -> u64 {
        let make = || {
            let repetition = u32::try_from(repetition).expect("below `repeat`, a `u32`");
            self.tables.permutation(self.seed, self.epoch, repetition)
        };
        match self.recent.first() {
            Some(recent) => ask(&recent.get_or_make(repetition, make)),
            None => ask(&make()),
        }
    }

    fn part_orders<'a>(&'a self, keys: &'a Keys) -> PartOrders<'a> {
        let Tables { shuffle, extents, .. } = &*self.tables;
        PartOrders { shuffle: *shuffle, keys, extents, recent: &self.recent }
    }
}

impl Tables {
    fn names_samples_once(&self) -> bool {
        let drawn_from_all = match self.arrangement {
            Arrangement::Permuted | Arrangement::DrawnOnce { .. } => false,
            Arrangement::Mixed(_) | Arrangement::Drawn { .. } => true,
        };
        self.repeat == 1 && !drawn_from_all && self.listing.is_distinct()
    }

    fn permutation(&self, seed: u64, epoch: u32, repetition: u32) -> Permutation {
        let keys = epoch_keys(seed, epoch, repetition);
        let run_keys = epoch_keys(seed, 0, 0);
        match self.extents.first() {
            Some(extent) => {
                Permutation::of_epoch(self.shuffle, extent, self.lane_rows, keys, &run_keys)
            }
            None => Permutation::Identity,
        }
    }
}

/// The index of an element of a list in memory.
fn index(number: u64) -> usize {
    usize::try_from(number).expect("lists in memory are no longer than a `usize`")
}

#[cfg(test)]
mod tests;
