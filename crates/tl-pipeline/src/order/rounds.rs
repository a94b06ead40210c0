//! Rounds: positions in which every part of a mixture has its weight's number of turns.

use crate::error::SamplerError;

/// Rounds of the same weights, from one position on.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The first position, and the number of rounds before it.
    pub(super) start: u64,
    pub(super) before: u64,
    shares: Vec<Share>,
    /// The part that each position of an unshuffled round belongs to, and which of its turns.
    turns: Vec<(u32, u32)>,
    /// The position of every part's turns in an unshuffled round, part by part.
    positions: Vec<u32>,
}

/// A part's turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Its turns in a round.
    pub(super) weight: u32,
    /// The number of turns in a round of all parts before it.
    turns_before: u32,
    /// Its turns in all rounds before these.
    pub(super) taken: u64,
}

impl Rounds {
    /// Rounds of these weights, which may have a common divisor, from position 0 on. There are at
    /// most `most` turns in a round, `used` of which other rounds have.
    pub(super) fn new(weights: &[u32], used: u64, most: u64) -> Result<Self, SamplerError> {
        let divisor = weights.iter().fold(0, |divisor, &weight| gcd(divisor, weight)).max(1);
        let sum = used + weights.iter().map(|&weight| u64::from(weight / divisor)).sum::<u64>();
        if sum > most {
            return Err(SamplerError::Weights { sum, limit: most });
        }
        let mut turns_before = 0;
        let share = |&weight: &u32| {
            let weight = weight / divisor;
            let share = Share { weight, turns_before, taken: 0 };
            turns_before += weight;
            share
        };
        let shares: Vec<Share> = weights.iter().map(share).collect();
        let turns = spread(&shares);
        let mut positions = vec![0; turns.len()];
        for (position, &(part, turn)) in (0..).zip(&turns) {
            positions[(shares[part as usize].turns_before + turn) as usize] = position;
        }
        Ok(Self { start: 0, before: 0, shares, turns, positions })
    }

    /// The same rounds after `rounds` rounds of others.
    pub(super) fn after(self, others: &Self, rounds: u64) -> Self {
        let taken = |share: &Share| share.taken.saturating_add(rounds * u64::from(share.weight));
        let shares = self.shares.into_iter().zip(&others.shares);
        Self {
            start: others.start + rounds * others.len(),
            before: others.before + rounds,
            shares: shares.map(|(own, other)| Share { taken: taken(other), ..own }).collect(),
            ..self
        }
    }

    pub(super) fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Positions of a round.
    pub(super) fn len(&self) -> u64 {
        self.turns.len() as u64
    }

    /// The part that has slot `slot` of an unshuffled round, and which of its turns there.
    pub(super) fn turn(&self, slot: u64) -> (u32, u32) {
        self.turns[usize::try_from(slot).expect("below a table's length")]
    }

    /// The slot of a part's turn in an unshuffled round.
    pub(super) fn slot(&self, part: usize, turn: u32) -> u64 {
        self.positions[(self.shares[part].turns_before + turn) as usize].into()
    }
}

/// The turns of a round, each part's spread evenly: turn `t` of a weight `w` is due at
/// `(t + 1/2) / w` of the round.
fn spread(shares: &[Share]) -> Vec<(u32, u32)> {
    let turns =
        (0..).zip(shares).flat_map(|(part, share)| (0..share.weight).map(move |turn| (part, turn)));
    let mut turns: Vec<(u32, u32)> = turns.collect();
    let weight = |part: u32| u64::from(shares[part as usize].weight);
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
