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
