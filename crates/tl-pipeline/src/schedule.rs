//! The positions of an epoch's order that a rank gets, batch by batch: pure arithmetic.
//!
//! The positions are cut into *global batches* of `batch_size * world`, and each into one slice per
//! rank. So the samples of all ranks together do not depend on their number, as long as the global
//! batch stays the same.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::PipelineError;

/// The part of every global batch that this process gets, in training with several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// This process's number, below `world`.
    pub rank: u32,
    /// The number of processes, at least 1.
    pub world: u32,
    /// The handling of the last global batch if its samples do not suffice. `None`, the default,
    /// means [`Tail::Uneven`] for one process and [`Tail::Pad`] for several, which then have the
    /// same number of batches.
    pub tail: Option<Tail>,
}

impl Default for Shard {
    /// A single process.
    fn default() -> Self {
        Self { rank: 0, world: 1, tail: None }
    }
}

/// The handling of the last global batch if its samples do not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tail {
    /// It is left out. Every rank has the same number of whole batches.
    Drop,
    /// It is filled up from the start of the order, and `Batch::is_valid` says which rows count.
    /// Every rank has the same number of whole batches, and no sample is lost.
    Pad,
    /// It is short: the last ranks get fewer rows of it or none, and then one batch less than the
    /// others. Processes that wait for each other in every step must not use this.
    Uneven,
}

impl Tail {
    /// True if every sample of the epoch is in a batch.
    pub(crate) const fn serves_all(self) -> bool {
        match self {
            Self::Drop => false,
            Self::Pad | Self::Uneven => true,
        }
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Pad => "pad",
            Self::Uneven => "uneven",
        })
    }
}

/// The position of a row of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The row's place in the sequence of all ranks' rows. Behind the last position in padding.
    pub(crate) place: u64,
    /// The position in the epoch's order.
    pub(crate) position: u64,
    /// False for padding.
    pub(crate) valid: bool,
}

/// The batches of one rank in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    positions: u64,
    batch_size: u64,
    rank: u64,
    world: u64,
    tail: Tail,
}

impl Schedule {
    /// The schedule of `positions` positions.
    pub(crate) fn new(
        positions: u64,
        batch_size: usize,
        shard: Shard,
    ) -> Result<Self, PipelineError> {
        let Shard { rank, world, tail } = shard;
        if world == 0 {
            let expected = "at least 1";
            return Err(PipelineError::Setting { setting: "world", value: 0, expected });
        }
        if rank >= world {
            let value = u64::from(rank);
            let expected = "less than world";
            return Err(PipelineError::Setting { setting: "rank", value, expected });
        }
        let batch_size = batch_size as u64;
        let rank = u64::from(rank);
        let world = u64::from(world);
        // Padding exceeds the last position by less than a global batch.
        let global = batch_size.checked_mul(world);
        if global.and_then(|global| positions.checked_add(global)).is_none() {
            let setting = "batch_size";
            let expected = "a global batch that can be counted";
            return Err(PipelineError::Setting { setting, value: batch_size, expected });
        }
        let tail = tail.unwrap_or(if world == 1 { Tail::Uneven } else { Tail::Pad });
        Ok(Self { positions, batch_size, rank, world, tail })
    }

    /// Rows of a global batch, all ranks together.
    pub(crate) const fn global_batch(&self) -> u64 {
        self.batch_size * self.world
    }

    /// The handling of the last global batch.
    pub(crate) const fn tail(&self) -> Tail {
        self.tail
    }

    /// True with a single rank.
    pub(crate) const fn is_alone(&self) -> bool {
        self.world == 1
    }

    /// The number of global batches, incomplete ones included: that of the ranks with most batches.
    pub(crate) fn global_batches(&self) -> u64 {
        Self { rank: 0, ..*self }.batches()
    }

    /// The number of batches of this rank.
    pub(crate) fn batches(&self) -> u64 {
        let (whole, rest) = self.whole_and_rest();
        let last = match self.tail {
            Tail::Drop => false,
            Tail::Pad => rest > 0,
            Tail::Uneven => self.rows_of_rest(rest) > 0,
        };
        whole + u64::from(last)
    }

    /// The number of rows in all batches of this rank.
    pub(crate) fn rows(&self) -> u64 {
        let (whole, rest) = self.whole_and_rest();
        let last = match self.tail {
            Tail::Drop => 0,
            Tail::Pad => self.batch_size * u64::from(rest > 0),
            Tail::Uneven => self.rows_of_rest(rest),
        };
        whole * self.batch_size + last
    }

    /// The number of rows of batch `batch` of this rank.
    pub(crate) fn rows_of(&self, batch: u64) -> u64 {
        self.batch_size.min(self.rows() - batch * self.batch_size)
    }

    /// The number of rows of batch `batch` of this rank without padding.
    pub(crate) fn counted_rows_of(&self, batch: u64) -> u64 {
        let first = batch * self.global_batch() + self.rank * self.batch_size;
        self.rows_of(batch).min(self.positions.saturating_sub(first))
    }

    /// The number of rows in all batches of this rank without padding, which only the last has.
    pub(crate) fn counted_rows(&self) -> u64 {
        let Some(last) = self.batches().checked_sub(1) else { return 0 };
        last * self.batch_size + self.counted_rows_of(last)
    }

    /// Positions of an epoch's order.
    pub(crate) const fn positions(&self) -> u64 {
        self.positions
    }

    /// Rows of an epoch, all ranks together.
    pub(crate) fn places(&self) -> u64 {
        let (whole, rest) = self.whole_and_rest();
        let last = match self.tail {
            Tail::Drop => 0,
            Tail::Pad => self.global_batch() * u64::from(rest > 0),
            Tail::Uneven => rest,
        };
        whole * self.global_batch() + last
    }

    /// The position in the epoch's order whose sample stands at `place`.
    pub(crate) const fn position(&self, place: u64) -> u64 {
        place % self.positions
    }

    /// The slot of row `row` of batch `batch`. The row must exist.
    pub(crate) fn slot(&self, batch: u64, row: u64) -> Slot {
        let place = batch * self.global_batch() + self.rank * self.batch_size + row;
        Slot { place, position: self.position(place), valid: place < self.positions }
    }

    /// True if a position is in a batch of this rank, and true if it is in one of any rank.
    pub(crate) fn is_served(&self, position: u64) -> (bool, bool) {
        let global = self.global_batch();
        let (whole, _) = self.whole_and_rest();
        let any = self.tail.serves_all() || position / global < whole;
        (any && position % global / self.batch_size == self.rank, any)
    }

    fn whole_and_rest(&self) -> (u64, u64) {
        (self.positions / self.global_batch(), self.positions % self.global_batch())
    }

    fn rows_of_rest(&self, rest: u64) -> u64 {
        rest.saturating_sub(self.rank * self.batch_size).min(self.batch_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(positions: u64, batch_size: usize, rank: u32, world: u32, tail: Tail) -> Schedule {
        Schedule::new(positions, batch_size, Shard { rank, world, tail: Some(tail) }).unwrap()
    }

    /// The positions of all rows of one rank, padding in brackets.
    fn rows(schedule: &Schedule) -> Vec<Vec<(u64, bool)>> {
        let batch = |batch| {
            let slots = (0..schedule.rows_of(batch)).map(|row| schedule.slot(batch, row));
            slots.map(|slot| (slot.position, slot.valid)).collect()
        };
        (0..schedule.batches()).map(batch).collect()
    }

    #[test]
    fn ranks_share_every_global_batch() {
        let of = |rank, tail| rows(&schedule(11, 2, rank, 2, tail));
        let valid = |positions: &[u64]| positions.iter().map(|&p| (p, true)).collect::<Vec<_>>();
        assert_eq!(of(0, Tail::Drop), [valid(&[0, 1]), valid(&[4, 5])]);
        assert_eq!(of(1, Tail::Drop), [valid(&[2, 3]), valid(&[6, 7])]);
        assert_eq!(of(0, Tail::Uneven), [valid(&[0, 1]), valid(&[4, 5]), valid(&[8, 9])]);
        assert_eq!(of(1, Tail::Uneven), [valid(&[2, 3]), valid(&[6, 7]), valid(&[10])]);
        assert_eq!(of(1, Tail::Pad)[2], [(10, true), (0, false)]);
        assert_eq!(rows(&schedule(9, 2, 1, 2, Tail::Uneven)).len(), 2);
    }

    #[test]
    fn positions_are_served_by_whose_rows_they_are_in() {
        for (positions, world, tail) in
            [(11, 2, Tail::Drop), (11, 2, Tail::Uneven), (11, 3, Tail::Pad), (12, 2, Tail::Drop)]
        {
            let ranks: Vec<_> =
                (0..world).map(|rank| schedule(positions, 2, rank, world, tail)).collect();
            for position in 0..positions {
                let of = |rank: &Schedule| rows(rank).concat().contains(&(position, true));
                let any = ranks.iter().any(of);
                assert!(ranks.iter().all(|rank| rank.is_served(position) == (of(rank), any)));
            }
        }
    }

    #[test]
    fn padding_goes_round_as_often_as_it_takes() {
        let rows = rows(&schedule(2, 3, 1, 2, Tail::Pad));
        assert_eq!(rows, [[(1, false), (0, false), (1, false)]]);
    }

    #[test]
    fn every_position_is_valid_once_whatever_the_world() {
        for (positions, global) in [(0, 12), (1, 12), (11, 12), (12, 12), (40, 12), (7, 1)] {
            for world in [1, 2, 3, 4, 6, 12] {
                if global % world != 0 {
                    continue;
                }
                for tail in [Tail::Pad, Tail::Uneven] {
                    let ranks: Vec<_> = (0..world)
                        .map(|rank| {
                            schedule(positions, (global / world) as usize, rank, world, tail)
                        })
                        .collect();
                    let mut seen: Vec<u64> = ranks
                        .iter()
                        .flat_map(|rank| rows(rank).concat())
                        .filter_map(|(position, valid)| valid.then_some(position))
                        .collect();
                    seen.sort_unstable();
                    assert_eq!(seen, (0..positions).collect::<Vec<_>>());
                    let all: u64 = ranks.iter().map(Schedule::rows).sum();
                    assert!(ranks.iter().all(|rank| rank.places() == all));
                    for rank in &ranks {
                        assert_eq!(rows(rank).concat().len() as u64, rank.rows());
                        if tail == Tail::Pad {
                            assert_eq!(rank.batches(), positions.div_ceil(global.into()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn impossible_shards_are_refused() {
        let new = |rank, world| Schedule::new(5, 4, Shard { rank, world, tail: None });
        assert!(matches!(new(0, 0), Err(PipelineError::Setting { setting: "world", .. })));
        assert!(matches!(new(2, 2), Err(PipelineError::Setting { setting: "rank", value: 2, .. })));
        assert!(Schedule::new(u64::MAX - 3, 4, Shard::default()).is_err());
        assert!(Schedule::new(u64::MAX - 4, 4, Shard::default()).is_ok());
    }

    #[test]
    fn several_processes_have_equal_batches_unless_told_otherwise() {
        let new = |world| Schedule::new(5, 4, Shard { rank: 0, world, tail: None }).unwrap().tail;
        assert_eq!((new(1), new(2)), (Tail::Uneven, Tail::Pad));
    }
}
