//! Permutations of `0..count` that are computed one place at a time.
//!
//! A Feistel network over a few bits more than the count needs is a permutation of its domain for
//! any keys; values that land beyond the count are sent through again until they do not (cycle
//! walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), which leaves a
//! permutation of exactly `0..count`.

use tl_transform::rng::{EPOCH_STREAM, Rng};

use super::block::BlockShuffle;
use super::lanes::{Lanes, Shape};
use super::sampler::{Blocks, Deal, Shuffle};
use super::source_blocks::Extent;

const ROUNDS: usize = 8;

/// The random keys of a permutation.
pub(crate) type Keys = [u64; ROUNDS];

/// Blocks of four words that the keys take of the epoch's stream.
pub(super) const BLOCKS_PER_KEYS: u32 = 4;

/// Networks on fewer than 2 x 3 bits are measurably uneven: with such a small number of values it
/// shows that every Feistel round is an even permutation.
const MIN_HALF_BITS: u32 = 3;

/// The operation of the epoch's stream that splits are from; 0 and 1 are orders and draws.
const SPLITS: u8 = 2;

/// 2^64 over the golden ratio, odd: multiples of it are spread over all 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The keys of repetition `repetition` of an epoch's order.
pub(super) fn epoch_keys(seed: u64, epoch: u32, repetition: u32) -> Keys {
    let stream = Rng::new(seed, epoch, EPOCH_STREAM, 0);
    let mut rng = stream.at_block(BLOCKS_PER_KEYS.wrapping_mul(repetition));
    std::array::from_fn(|_| rng.next_u64())
}

/// The keys of the splits of views, from a stream of their own.
pub(crate) fn split_keys(seed: u64) -> Keys {
    let mut rng = Rng::new(seed, 0, EPOCH_STREAM, SPLITS);
    std::array::from_fn(|_| rng.next_u64())
}

/// The keys of one class of a stratified split.
pub(crate) fn class_keys(keys: &Keys, label: i64) -> Keys {
    derive(keys, 0, label.cast_unsigned())
}

/// Keys for number `number` of one of several uses that an order has for permutations.
pub(super) fn derive(keys: &Keys, of: u64, number: u64) -> Keys {
    let of = of.wrapping_add(1).wrapping_mul(GOLDEN);
    keys.map(|key| mix(mix(key.wrapping_add(of)).wrapping_add(number)))
}

/// A permutation of `0..count`.
#[derive(Clone, Debug)]
pub(super) enum Permutation {
    Identity,
    Full(Network),
    Block(Box<BlockShuffle>),
    Lanes(Box<Lanes>),
}

impl Permutation {
    /// A permutation for an epoch with global batches. `rows` are those of a lane in one of them, and
    /// `run_keys` those of epoch 0.
    pub(super) fn of_epoch(
        shuffle: Shuffle,
        extent: &Extent,
        rows: u64,
        keys: Keys,
        run_keys: &Keys,
    ) -> Self {
        let Shuffle::Lanes { lanes, blocks, window, deal } = shuffle else {
            return Self::new(shuffle, extent, keys);
        };
        let deal = match deal {
            Deal::Run => run_keys,
            Deal::Epoch => &keys,
        };
        let shape = Shape { lanes, rows, block: samples_of(blocks), window };
        Self::Lanes(Box::new(Lanes::new(extent, shape, deal, &keys)))
    }

    /// A permutation without lanes.
    pub(super) fn new(shuffle: Shuffle, extent: &Extent, keys: Keys) -> Self {
        match shuffle {
            Shuffle::None => Self::Identity,
            Shuffle::Full => Self::Full(Network::new(extent.count(), keys)),
            // What has no global batches has no lanes.
            Shuffle::Block { blocks, window } | Shuffle::Lanes { blocks, window, .. } => {
                let block = samples_of(blocks);
                Self::Block(Box::new(BlockShuffle::new(extent, block, window, keys)))
            }
        }
    }

    /// The value at `place`, which is below the count.
    pub(super) fn at(&self, place: u64) -> u64 {
        match self {
            Self::Identity => place,
            Self::Full(network) => network.at(place),
            Self::Block(blocks) => blocks.at(place),
            Self::Lanes(lanes) => lanes.at(place),
        }
    }

    /// The place of `value`, which is below the count.
    pub(super) fn place_of(&self, value: u64) -> u64 {
        match self {
            Self::Identity => value,
            Self::Full(network) => network.place_of(value),
            Self::Block(blocks) => blocks.place_of(value),
            Self::Lanes(lanes) => lanes.place_of(value),
        }
    }
}

/// Samples of a block; 1 for blocks of the source, which the extent has.
const fn samples_of(blocks: Blocks) -> u64 {
    match blocks {
        Blocks::Samples(samples) => samples,
        Blocks::Source => 1,
    }
}

/// A random permutation of `0..count`.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    count: u64,
    half_bits: u32,
    keys: Keys,
}

impl Network {
    pub(crate) fn new(count: u64, keys: Keys) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(MIN_HALF_BITS), keys }
    }

    pub(crate) fn at(&self, place: u64) -> u64 {
        self.walk(place, Self::permute)
    }

    pub(super) fn place_of(&self, value: u64) -> u64 {
        self.walk(value, Self::invert)
    }

    /// Steps from `start` until back below the count. The start is below it, and a permutation's
    /// cycles close, so this ends.
    fn walk(&self, start: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        assert!(start < self.count, "place {start} of {}", self.count);
        let mut value = step(self, start);
        while value >= self.count {
            value = step(self, value);
        }
        value
    }

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
