//! A sampler resolved over a data set: what the orders of all epochs have in common.

use sha2::{Digest, Sha256};
use tl_handoff::sync::Arc;

use super::listing::{Listing, Piece};
use super::mixture::Mixture;
use super::sampler::{Blocks, Deal, Shuffle};
use super::source_blocks::Extent;
use super::weights::{Lots, Weights};
use super::{Order, Tables};
use crate::fingerprint::Fingerprint;

/// The start of a fingerprint's bytes: the specification that the rest follows.
const FINGERPRINT_VERSION: &[u8] = b"turboloader order 1\n";

/// A [`Sampler`](super::Sampler) resolved over a data set: tables, and the order of every epoch.
///
/// Cloning it is cheap; the tables are shared.
#[derive(Clone, Debug)]
pub struct Sequence {
    tables: Arc<Tables>,
    fingerprint: Fingerprint,
}

/// The mapping from places of the listing to positions.
#[derive(Debug)]
pub(super) enum Arrangement {
    /// Each once per repetition.
    Permuted,
    /// By the turns of parts.
    Mixed(Mixture),
    /// Each position drawn from all.
    Drawn { weights: Weights, lots: Lots },
    /// Drawn when an epoch's order is made.
    DrawnOnce { weights: Weights },
}

impl Sequence {
    pub(super) fn new(tables: Tables) -> Self {
        Self { fingerprint: fingerprint(&tables, usize::MAX), tables: Arc::new(tables) }
    }

    /// All samples, shuffled in this way, which needs no parameters that can be wrong.
    pub(crate) fn of_all(sample_count: u64, shuffle: Shuffle) -> Self {
        let listing = Listing::all(sample_count);
        let arrangement = Arrangement::Permuted;
        let once = sample_count;
        let len = sample_count;
        let repeat = 1;
        let lane_rows = 0;
        let extents = vec![Extent::plain(once)];
        Self::new(Tables {
            sample_count,
            extents,
            listing,
            arrangement,
            shuffle,
            lane_rows,
            once,
            repeat,
            len,
        })
    }

    /// The number of positions of every epoch.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tables.len
    }

    /// True if epochs have no positions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shuffle of every epoch.
    pub(crate) fn shuffle(&self) -> Shuffle {
        self.tables.shuffle
    }

    /// True if `sample` can be in an epoch.
    pub(crate) fn has(&self, sample: u64) -> bool {
        self.tables.listing.has(sample)
    }

    /// The order of epoch `epoch`. Where samples are drawn without replacement this draws them,
    /// in time proportional to the number of weights; otherwise it takes less than a microsecond.
    #[must_use]
    pub fn order(&self, seed: u64, epoch: u32) -> Order {
        Order::new(Arc::clone(&self.tables), seed, epoch)
    }

    /// The SHA-256 of what decides the order besides seed and epoch: samples, weights, parts,
    /// shuffle and repetitions, as `docs/order.md` writes them in bytes.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// True if the first `positions` positions of this order are those of the order with this
    /// fingerprint: of the same one, or of a mixture that lacks the later stages of this one.
    #[must_use]
    pub fn begins_as(&self, other: Fingerprint, positions: u64) -> bool {
        if other == self.fingerprint {
            return true;
        }
        let Arrangement::Mixed(mixture) = &self.tables.arrangement else { return false };
        let starts = mixture.stages().map(|(start, _)| start).enumerate().skip(1);
        let later = starts.filter(|&(_, start)| start >= positions);
        later.into_iter().any(|(stages, _)| fingerprint(&self.tables, stages) == other)
    }
}

/// The fingerprint of the order in which a mixture has only its first `stages` stages.
fn fingerprint(tables: &Tables, stages: usize) -> Fingerprint {
    let mut hash = Sha256::new_with_prefix(FINGERPRINT_VERSION);
    let mut put = |numbers: &[u64]| {
        numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
    };
    put(&[tables.sample_count]);
    let of_source = tables.extents.iter().filter_map(Extent::ends);
    let source_blocks = of_source.clone().map(|ends| ends.len() as u64).sum();
    match tables.shuffle {
        Shuffle::None => put(&[0, 0, 0]),
        Shuffle::Full => put(&[1, 0, 0]),
        Shuffle::Block { blocks: Blocks::Samples(samples), window } => put(&[2, samples, window]),
        Shuffle::Block { blocks: Blocks::Source, window } => put(&[4, source_blocks, window]),
        Shuffle::Lanes { lanes, blocks, window, deal } => {
            let deal = u64::from(deal == Deal::Epoch);
            let (kind, size) = match blocks {
                Blocks::Samples(samples) => (3, samples),
                Blocks::Source => (5, source_blocks),
            };
            put(&[kind, size, window, lanes, tables.lane_rows, deal]);
        }
    }
    of_source.for_each(|ends| put(ends));
    let pieces = tables.listing.pieces();
    put(&[tables.once, tables.repeat.into(), pieces.len() as u64]);
    for piece in pieces {
        match piece {
            Piece::Range(range) => put(&[0, range.start, range.end]),
            Piece::List { samples, .. } => {
                put(&[1, samples.len() as u64]);
                put(samples);
            }
        }
    }
    match &tables.arrangement {
        Arrangement::Permuted => put(&[0]),
        Arrangement::Mixed(mixture) => {
            for (number, (start, shares)) in mixture.stages().take(stages).enumerate() {
                let shares: Vec<[u64; 2]> = shares.collect();
                match number {
                    0 => put(&[1, shares.len() as u64]),
                    _ => put(&[4, start]),
                }
                shares.iter().for_each(|share| put(share));
            }
        }
        Arrangement::Drawn { weights, .. } | Arrangement::DrawnOnce { weights } => {
            let once = matches!(tables.arrangement, Arrangement::DrawnOnce { .. });
            put(&[2 + u64::from(once), weights.as_slice().len() as u64]);
            weights.as_slice().iter().for_each(|&weight| put(&[weight.into()]));
        }
    }
    Fingerprint(hash.finalize().into())
}
