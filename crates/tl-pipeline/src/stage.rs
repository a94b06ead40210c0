//! The stages of a worker's work, and time for each of them.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::time::Duration;

/// A part of the work of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Getting a sample's bytes: the disk, the page cache, checksums, decompression. Waiting for
    /// readers is not part of it.
    Read,
    /// From bytes to pixels.
    Decode,
    /// Everything before the last pass into the batch, where a recipe has operations on whole
    /// images: resizing into a separate image, and those operations.
    Transform,
    /// The pass into the batch: normalising, converting and laying out, with cropping, resizing and
    /// flipping where no operation needs their result.
    Write,
    /// Work on a whole batch: leaving out, mixing, collating.
    Finish,
    /// The loader's own work: claiming, order, memory, handing over.
    Overhead,
}

impl Stage {
    /// All of them, in the order of the work.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Decode, Self::Transform, Self::Write, Self::Finish, Self::Overhead];

    /// Its name in reports and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decode => "decode",
            Self::Transform => "transform",
            Self::Write => "write",
            Self::Finish => "finish",
            Self::Overhead => "overhead",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Time for each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([Duration; Stage::ALL.len()]);

impl StageTimes {
    /// The time of all stages together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// The difference to `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (time, before) in since.0.iter_mut().zip(earlier.0) {
            *time = time.saturating_sub(before);
        }
        since
    }
}

impl Index<Stage> for StageTimes {
    type Output = Duration;

    fn index(&self, stage: Stage) -> &Duration {
        &self.0[stage as usize]
    }
}

impl IndexMut<Stage> for StageTimes {
    fn index_mut(&mut self, stage: Stage) -> &mut Duration {
        &mut self.0[stage as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stand_where_their_order_says() {
        for (place, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place, "{stage}");
        }
    }
}
