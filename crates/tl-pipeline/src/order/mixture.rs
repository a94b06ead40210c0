//! Samples of several parts in fixed proportions, at every position without looking at the others.
//!
//! A *round* is as many positions as the sum of the weights; in each, a part has its weight's
//! number of *turns*. The turns of all rounds are a part's own count, and say which of its samples
//! it is: it goes through them in one order, then in the next.

use super::permutation::{Keys, Network, Permutation, derive};
use super::sampler::{Length, Shuffle};
use crate::error::SamplerError;

/// Positions of a round. Two tables of its length are kept.
const MAX_ROUND: u64 = 1 << 20;

/// The purposes for which keys are derived: the rounds, followed by each part.
const ROUNDS: u64 = 0;
const PARTS: u64 = 1;

/// The parts of a mixture and their turns in a round.
#[derive(Debug)]
pub(super) struct Mixture {
    parts: Vec<Share>,
    /// The part that each position of an unshuffled round belongs to, and which of its turns.
    turns: Vec<(u32, u32)>,
    /// The position of every part's turns in an unshuffled round, part by part.
    positions: Vec<u32>,
}

/// A part of a mixture.
#[derive(Debug)]
pub(super) struct Share {
    /// The place in the listing at which its samples begin.
    start: u64,
    pub(super) len: u64,
    /// Its turns in a round.
    pub(super) weight: u32,
    /// The number of turns in a round of all parts before it.
    turns_before: u32,
}

impl Mixture {
    /// Parts of a listing, in its order, by length and weight.
    pub(super) fn new(parts: &[(u64, u32)]) -> Result<Self, SamplerError> {
        if let Some(part) = parts.iter().position(|&(len, weight)| len == 0 || weight == 0) {
            let (samples, weight) = parts[part];
            return Err(SamplerError::Part { part, samples, weight });
        }
        let divisor = parts.iter().fold(0, |divisor, &(_, weight)| gcd(divisor, weight)).max(1);
        let sum = parts.iter().map(|&(_, weight)| u64::from(weight / divisor)).sum();
        if sum > MAX_ROUND {
            return Err(SamplerError::Weights { sum, limit: MAX_ROUND });
        }
        let mut start = 0;
        let mut turns_before = 0;
        let share = |&(len, weight): &(u64, u32)| {
            let weight = weight / divisor;
            let share = Share { start, len, weight, turns_before };
            (start, turns_before) = (start + len, turns_before + weight);
            share
        };
        let parts: Vec<Share> = parts.iter().map(share).collect();
        let turns = spread(&parts);
        let mut positions = vec![0; turns.len()];
        for (position, &(part, turn)) in (0..).zip(&turns) {
            positions[(parts[part as usize].turns_before + turn) as usize] = position;
        }
        Ok(Self { parts, turns, positions })
    }

    pub(super) fn parts(&self) -> &[Share] {
        &self.parts
    }

    /// The number of positions of `length`.
    pub(super) fn positions(&self, length: Length) -> Result<u64, SamplerError> {
        let rounds = |share: &Share| share.len / u64::from(share.weight);
        let rounds_of_all = |share: &Share| share.len.div_ceil(u64::from(share.weight));
        let positions = match length {
            Length::Samples => {
                self.parts.iter().try_fold(0, |sum: u64, share| sum.checked_add(share.len))
            }
            Length::FirstUsedUp => {
                if let Some(part) = self.parts.iter().position(|share| rounds(share) == 0) {
                    let Share { len: samples, weight, .. } = self.parts[part];
                    return Err(SamplerError::NoRound { part, samples, weight });
                }
                self.parts.iter().map(rounds).min().unwrap_or(0).checked_mul(self.round())
            }
            Length::AllUsedUp => {
                self.parts.iter().map(rounds_of_all).max().unwrap_or(0).checked_mul(self.round())
            }
            Length::Positions(positions) => Some(positions),
        };
        positions.ok_or(SamplerError::TooLong)
    }

    /// The place in the listing that stands at `position`.
    pub(super) fn at(&self, position: u64, shuffle: Shuffle, keys: &Keys) -> u64 {
        let round = position / self.round();
        let slot = position % self.round();
        let slot = self.slots(round, shuffle, keys).at(slot);
        let (part, turn) = self.turns[usize::try_from(slot).expect("below a table's length")];
        let share = &self.parts[part as usize];
        let turn = round * u64::from(share.weight) + u64::from(turn);
        let cycle = turn / share.len;
        let place = turn % share.len;
        share.start + share.order(part, cycle, shuffle, keys).at(place)
    }

    /// The position below `len` of `place` in the listing, if it has exactly one.
    pub(super) fn position_of(
        &self,
        place: u64,
        len: u64,
        shuffle: Shuffle,
        keys: &Keys,
    ) -> Option<u64> {
        let part = self.parts.partition_point(|share| share.start <= place).checked_sub(1)?;
        let share = &self.parts[part];
        let part = u32::try_from(part).ok()?;
        let weight = u64::from(share.weight);
        let mut found = None;
        for cycle in 0.. {
            let turn_in_cycle =
                share.order(part, cycle, shuffle, keys).place_of(place - share.start);
            let turn = cycle * share.len + turn_in_cycle;
            let round = turn / weight;
            // In a round that is cut off some turns are missing, and all that follow are.
            if round * self.round() >= len {
                break;
            }
            let turn = share.turns_before + u32::try_from(turn % weight).ok()?;
            let slot = u64::from(self.positions[turn as usize]);
            let position = round * self.round() + self.slots(round, shuffle, keys).place_of(slot);
            if position < len && found.replace(position).is_some() {
                return None;
            }
        }
        found
    }

    /// The order of the positions of a round.
    fn slots(&self, round: u64, shuffle: Shuffle, keys: &Keys) -> Permutation {
        match shuffle {
            Shuffle::None => Permutation::Identity,
            Shuffle::Full | Shuffle::Block { .. } | Shuffle::Lanes { .. } => {
                Permutation::Full(Network::new(self.round(), derive(keys, ROUNDS, round)))
            }
        }
    }

    /// Positions of a round.
    pub(super) fn round(&self) -> u64 {
        self.turns.len() as u64
    }
}

impl Share {
    /// The order of its samples when it goes through them for the `cycle`th time.
    fn order(&self, part: u32, cycle: u64, shuffle: Shuffle, keys: &Keys) -> Permutation {
        Permutation::new(shuffle, self.len, derive(keys, PARTS + u64::from(part), cycle))
    }
}

/// The turns of a round, each part's spread evenly: turn `t` of a weight `w` is due at
/// `(t + 1/2) / w` of the round.
fn spread(parts: &[Share]) -> Vec<(u32, u32)> {
    let turns =
        (0..).zip(parts).flat_map(|(part, share)| (0..share.weight).map(move |turn| (part, turn)));
    let mut turns: Vec<(u32, u32)> = turns.collect();
    let weight = |part: u32| u64::from(parts[part as usize].weight);
    turns.sort_by(|&(a, turn_a), &(b, turn_b)| {
        // Halves and quotients are avoided: products of two numbers up to 2^21 are compared.
        let due_a = 2 * u64::from(turn_a) + 1;
        let due_b = 2 * u64::from(turn_b) + 1;
        (due_a * weight(b)).cmp(&(due_b * weight(a))).then(a.cmp(&b))
    });
    turns
}

const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
