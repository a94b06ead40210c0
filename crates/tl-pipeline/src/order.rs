//! The order of samples in an epoch: a permutation computed one position at a time.
//!
//! There is no list and no buffer. A Feistel network over a few bits more than the sample count
//! needs is a permutation of its domain for any key; positions that land beyond the sample count
//! are sent through again until they do not (cycle walking: Black and Rogaway, "Ciphers with
//! Arbitrary Finite Domains", 2002), which leaves a permutation of exactly the samples.
//! `docs/pipeline.md` specifies it to the bit, with test vectors.

mod sampler;

use tl_transform::rng::{EPOCH_STREAM, Rng};

pub(crate) use sampler::Sequence;
pub use sampler::{Sampler, Shuffle};

const ROUNDS: usize = 8;

/// Networks on fewer than 2 x 3 bits are measurably uneven: with so few values it shows that every
/// Feistel round is an even permutation.
const MIN_HALF_BITS: u32 = 3;

/// Which sample stands at which position of an epoch.
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
    sample_count: u64,
    shuffle: Option<Network>,
}

#[derive(Clone, Debug)]
struct Network {
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Order {
    /// Every sample at the position of its own number.
    #[must_use]
    pub const fn sequential(sample_count: u64) -> Self {
        Self { sample_count, shuffle: None }
    }

    /// The permutation that belongs to `(sample_count, seed, epoch)`.
    #[must_use]
    pub fn shuffled(sample_count: u64, seed: u64, epoch: u32) -> Self {
        let mut rng = Rng::new(seed, epoch, EPOCH_STREAM, 0);
        let keys = std::array::from_fn(|_| rng.next_u64());
        let bits = u64::BITS - sample_count.saturating_sub(1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(MIN_HALF_BITS);
        Self { sample_count, shuffle: Some(Network { half_bits, keys }) }
    }

    /// How many samples, and positions, there are.
    #[must_use]
    pub const fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// The sample at `position`, or `None` past the end.
    #[must_use]
    pub fn sample_at(&self, position: u64) -> Option<u64> {
        self.walk(position, Network::permute)
    }

    /// The position at which `sample` comes, or `None` when there is no such sample.
    #[must_use]
    pub fn position_of(&self, sample: u64) -> Option<u64> {
        self.walk(sample, Network::invert)
    }

    /// Steps from `start` until back among the samples. The start is one of them, and a
    /// permutation's cycles close, so this ends.
    fn walk(&self, start: u64, step: impl Fn(&Network, u64) -> u64) -> Option<u64> {
        if start >= self.sample_count {
            return None;
        }
        let Some(network) = &self.shuffle else { return Some(start) };
        let mut value = step(network, start);
        while value >= self.sample_count {
            value = step(network, value);
        }
        Some(value)
    }
}

impl Network {
    fn permute(&self, value: u64) -> u64 {
        let (mut left, mut right) = self.halves(value);
        for &key in &self.keys {
            (left, right) = (right, left ^ self.round(right, key));
        }
        left << self.half_bits | right
    }

    fn invert(&self, value: u64) -> u64 {
        let (mut left, mut right) = self.halves(value);
        for &key in self.keys.iter().rev() {
            (left, right) = (right ^ self.round(left, key), left);
        }
        left << self.half_bits | right
    }

    const fn halves(&self, value: u64) -> (u64, u64) {
        (value >> self.half_bits, value & ((1 << self.half_bits) - 1))
    }

    const fn round(&self, half: u64, key: u64) -> u64 {
        mix(half.wrapping_add(key)) >> (u64::BITS - self.half_bits)
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014, constants by Stafford): every input
/// bit changes every output bit with probability near one half.
const fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests;
