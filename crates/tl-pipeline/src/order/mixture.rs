//! Samples of several parts in fixed proportions, at every position without looking at the others.
//!
//! A *round* is as many positions as the sum of the weights; in each, a part has its weight's
//! number of *turns*. The turns of all rounds are a part's own count, and say which of its samples
//! it is: it goes through them in one order, then in the next. A *stage* is rounds of the same
//! weights; rounds and turns are counted through all stages.

use std::ops::Range;

use tl_handoff::recent::RecentCache;

use super::permutation::{Keys, Network, Permutation, derive};
use super::rounds::Rounds;
use super::sampler::{Length, MixStage, Shuffle};
use super::source_blocks::Extent;
use crate::error::SamplerError;

/// Positions of the rounds of all stages. Two tables of this length are kept.
const MAX_ROUND: u64 = 1 << 20;

/// The purposes for which keys are derived: the rounds, followed by each part.
const ROUNDS: u64 = 0;
const PARTS: u64 = 1;

/// The parts of a mixture and their turns in a round of each stage.
#[derive(Debug)]
pub(super) struct Mixture {
    parts: Vec<Span>,
    /// At least one; the first starts at position 0.
    stages: Vec<Rounds>,
}

/// A part of a mixture in the listing.
#[derive(Debug)]
struct Span {
    /// The place at which its samples begin.
    start: u64,
    len: u64,
}

impl Mixture {
    /// Parts of a listing, in its order, by length and weight; `stages` have later weights.
    pub(super) fn new(parts: &[(u64, u32)], stages: &[MixStage]) -> Result<Self, SamplerError> {
        check(parts, stages)?;
        let weights: Vec<u32> = parts.iter().map(|&(_, weight)| weight).collect();
        let mut rounds = vec![Rounds::new(&weights, 0, MAX_ROUND)?];
        let mut sum = rounds[0].len();
        for (stage, later) in (1..).zip(stages) {
            let next = Rounds::new(&later.weights, sum, MAX_ROUND)?;
            sum += next.len();
            let last = &rounds[rounds.len() - 1];
            // Whole rounds only, so that every part has its share of each stage.
            let count = later.start.saturating_sub(last.start).div_ceil(last.len());
            if count == 0 {
                let start = later.start;
                return Err(SamplerError::StageStart { stage, start, after: last.start });
            }
            let end = count.checked_mul(last.len()).and_then(|len| len.checked_add(last.start));
            end.filter(|&end| end < 1 << 63).ok_or(SamplerError::TooLong)?;
            let next = next.after(last, count);
            rounds.push(next);
        }
        let mut start = 0;
        let span = |&(len, _): &(u64, u32)| {
            let span = Span { start, len };
            start += len;
            span
        };
        Ok(Self { parts: parts.iter().map(span).collect(), stages: rounds })
    }

    /// Start, and length and weight of every part, of each stage.
    pub(super) fn stages(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = [u64; 2]>)> {
        self.stages.iter().map(|rounds| {
            let shares = self.parts.iter().zip(rounds.shares());
            (rounds.start, shares.map(|(span, share)| [span.len, share.weight.into()]))
        })
    }

    /// The places in the listing of each part.
    pub(super) fn places(&self) -> impl Iterator<Item = Range<u64>> {
        self.parts.iter().map(|share| share.start..share.start + share.len)
    }

    /// The number of positions of `length`.
    pub(super) fn positions(&self, length: Length) -> Result<u64, SamplerError> {
        let positions = match length {
            Length::Samples => {
                self.parts.iter().try_fold(0, |sum: u64, span| sum.checked_add(span.len))
            }
            Length::FirstUsedUp => Some(self.until_first_used_up()?),
            Length::AllUsedUp => self.until_all_used_up()?,
            Length::Positions(positions) => Some(positions),
        };
        positions.ok_or(SamplerError::TooLong)
    }

    /// The end of the last round before a part would repeat a sample.
    fn until_first_used_up(&self) -> Result<u64, SamplerError> {
        for (number, rounds) in self.stages.iter().enumerate() {
            let parts = self.parts.iter().zip(rounds.shares()).enumerate();
            let left = parts.filter(|(_, (_, share))| share.weight > 0).map(|(part, parts)| {
                let (span, share) = parts;
                ((span.len - share.taken.min(span.len)) / u64::from(share.weight), part)
            });
            let (left, part) = left.min().unwrap_or_default();
            let end = self.stages.get(number + 1).map(|next| next.before - rounds.before);
            if number == 0 && left == 0 {
                let samples = self.parts[part].len;
                let weight = rounds.shares()[part].weight;
                return Err(SamplerError::NoRound { part, samples, weight });
            }
            if end.is_none_or(|end| left < end) {
                let positions = left.checked_mul(rounds.len());
                let positions = positions.and_then(|count| count.checked_add(rounds.start));
                return positions.ok_or(SamplerError::TooLong);
            }
        }
        Ok(0)
    }

    /// The end of the round in which the last sample of all parts comes for the first time.
    fn until_all_used_up(&self) -> Result<Option<u64>, SamplerError> {
        let mut end = Some(0);
        for (part, span) in self.parts.iter().enumerate() {
            let is_taken = |rounds: &Rounds| rounds.shares()[part].taken < span.len;
            // The stage in which the part is used up, if a later one does not begin before that.
            let rounds = &self.stages[self.stages.partition_point(is_taken) - 1];
            let share = rounds.shares()[part];
            if share.weight == 0 {
                let samples = span.len;
                return Err(SamplerError::NeverUsedUp { part, samples, taken: share.taken });
            }
            let count = (span.len - share.taken).div_ceil(share.weight.into());
            let of_part = count.checked_mul(rounds.len());
            let of_part = of_part.and_then(|count| count.checked_add(rounds.start));
            end = end.zip(of_part).map(|(end, of_part)| end.max(of_part));
        }
        Ok(end)
    }

    /// The place in the listing that stands at `position`.
    pub(super) fn at(&self, position: u64, orders: &PartOrders<'_>) -> u64 {
        let stage = self.stages.partition_point(|rounds| rounds.start <= position) - 1;
        let rounds = &self.stages[stage];
        let round = (position - rounds.start) / rounds.len();
        let slot = (position - rounds.start) % rounds.len();
        let slot = slots(rounds, round, orders).at(slot);
        let (part, turn) = rounds.turn(slot);
        let share = rounds.shares()[part as usize];
        let turn = share.taken + round * u64::from(share.weight) + u64::from(turn);
        let span = &self.parts[part as usize];
        let cycle = turn / span.len;
        let place = turn % span.len;
        span.start + orders.with(part, cycle, |order| order.at(place))
    }

    /// The position below `len` of `place` in the listing, if it has exactly one.
    pub(super) fn position_of(&self, place: u64, len: u64, orders: &PartOrders<'_>) -> Option<u64> {
        let part = self.parts.partition_point(|span| span.start <= place).checked_sub(1)?;
        let span = &self.parts[part];
        let number = u32::try_from(part).ok()?;
        let mut found = None;
        for cycle in 0.. {
            let turn_in_cycle =
                orders.with(number, cycle, |order| order.place_of(place - span.start));
            let turn = cycle * span.len + turn_in_cycle;
            // A part without turns in a stage has taken as many after it.
            let is_before = |rounds: &Rounds| rounds.shares()[part].taken <= turn;
            let rounds = &self.stages[self.stages.partition_point(is_before) - 1];
            let share = rounds.shares()[part];
            let weight = u64::from(share.weight);
            let Some(round) = (turn - share.taken).checked_div(weight) else { break };
            let start = rounds.start + round * rounds.len();
            // In a round that is cut off some turns are missing, and all that follow are.
            if start >= len {
                break;
            }
            let turn = u32::try_from((turn - share.taken) % weight).ok()?;
            let slot = rounds.slot(part, turn);
            let position = start + slots(rounds, round, orders).place_of(slot);
            if position < len && found.replace(position).is_some() {
                return None;
            }
        }
        found
    }
}

/// The order of the positions of round `round` of a stage.
fn slots(rounds: &Rounds, round: u64, orders: &PartOrders<'_>) -> Permutation {
    match orders.shuffle {
        Shuffle::None => Permutation::Identity,
        Shuffle::Full | Shuffle::Block { .. } | Shuffle::Lanes { .. } => {
            let keys = derive(orders.keys, ROUNDS, rounds.before + round);
            Permutation::Full(Network::new(rounds.len(), keys))
        }
    }
}

/// The orders of the parts of an epoch's mixture.
#[derive(Clone, Copy)]
pub(super) struct PartOrders<'a> {
    pub(super) shuffle: Shuffle,
    pub(super) keys: &'a Keys,
    /// The extent of each part.
    pub(super) extents: &'a [Extent],
    /// The last orders of each part, if they have tables.
    pub(super) recent: &'a [RecentCache<Permutation>],
}

impl PartOrders<'_> {
    /// Calls `ask` with the order of a part's samples when it goes through them for the `cycle`th time.
    fn with(&self, part: u32, cycle: u64, ask: impl FnOnce(&Permutation) -> u64) -> u64 {
        let make = || {
            let keys = derive(self.keys, PARTS + u64::from(part), cycle);
            Permutation::new(self.shuffle, &self.extents[part as usize], keys)
        };
        match self.recent.get(part as usize) {
            Some(recent) => ask(&recent.get_or_make(cycle, make)),
            None => ask(&make()),
        }
    }
}

/// Checks that every part has samples and a weight in some stage, and every stage weights.
fn check(parts: &[(u64, u32)], stages: &[MixStage]) -> Result<(), SamplerError> {
    for (stage, later) in (1..).zip(stages) {
        let weights = later.weights.len();
        if weights != parts.len() {
            return Err(SamplerError::StageWeights { stage, weights, parts: parts.len() });
        }
        if later.weights.iter().all(|&weight| weight == 0) {
            return Err(SamplerError::StageWithoutWeight { stage });
        }
    }
    for (part, &(samples, weight)) in parts.iter().enumerate() {
        let is_weighted = weight > 0 || stages.iter().any(|stage| stage.weights[part] > 0);
        if samples == 0 || !is_weighted {
            return Err(SamplerError::Part { part, samples, weight });
        }
    }
    if !stages.is_empty() && parts.iter().all(|&(_, weight)| weight == 0) {
        return Err(SamplerError::StageWithoutWeight { stage: 0 });
    }
    Ok(())
}
