//! The identity of a draw and the random numbers of its operations.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// The key of the random part of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Draw {
    /// The loader's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u32,
    /// The sample's number in the data set.
    pub sample: u64,
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Draw {
    /// The draw of image `number` of the images that are made of one sample independently of each
    /// other. Image 0 has the draw itself, so that a further image changes nothing about it; for the
    /// others `mix(mix(seed + 2 * 0x9E3779B97F4A7C15) + number)` replaces the seed, where `mix` is
    /// `SplitMix64`'s finaliser.
    #[must_use]
    pub fn of_image(self, number: u32) -> Self {
        if number == 0 {
            return self;
        }
        let key = mix(self.seed.wrapping_add(GOLDEN.wrapping_mul(2)));
        Self { seed: mix(key.wrapping_add(number.into())), ..self }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The random numbers of one operation in one draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stream {
    /// The draw.
    pub draw: Draw,
    /// The operation's number in the recipe, operations in operations counted after the one they
    /// are in.
    pub op: u8,
}

impl Stream {
    /// A generator at the beginning of the stream.
    #[must_use]
    pub fn rng(self) -> Rng {
        Rng::new(self.draw.seed, self.draw.epoch, self.draw.sample, self.op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_a_sample_have_seeds_of_their_own() {
        let draw = Draw { seed: 42, epoch: 3, sample: 7 };
        assert_eq!(draw.of_image(0), draw);
        // Computed with Python's integers.
        let seeds = [1, 2].map(|number| draw.of_image(number).seed);
        assert_eq!(seeds, [6_766_672_607_806_205_084, 6_503_660_464_041_505_153]);
        assert_eq!(draw.of_image(2), Draw { seed: seeds[1], ..draw });
    }
}
