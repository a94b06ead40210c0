//! Which samples an epoch has, and in which order.

use sha2::{Digest, Sha256};

use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::fingerprint::Fingerprint;
use crate::order::Order;

/// Which samples an epoch has, and in which order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampler {
    /// Their order.
    pub shuffle: Shuffle,
}

/// How random the order is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shuffle {
    /// As stored.
    #[default]
    None,
    /// Every order is as likely as any other, as far as 64 bits of seed go.
    Full,
}

impl From<Shuffle> for Sampler {
    /// All samples, once each.
    fn from(shuffle: Shuffle) -> Self {
        Self { shuffle }
    }
}

impl Sampler {
    /// What it comes to for a data set.
    pub(crate) fn resolve(&self, dataset: &Dataset) -> Result<Sequence, PipelineError> {
        Ok(Sequence { samples: dataset.len(), shuffle: self.shuffle })
    }
}

/// A sampler of a data set: from seed and epoch to an order.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    samples: u64,
    shuffle: Shuffle,
}

impl Sequence {
    /// Positions of an epoch.
    pub(crate) fn len(&self) -> u64 {
        self.samples
    }

    pub(crate) fn order(&self, seed: u64, epoch: u32) -> Order {
        match self.shuffle {
            Shuffle::None => Order::sequential(self.samples),
            Shuffle::Full => Order::shuffled(self.samples, seed, epoch),
        }
    }

    /// What has to be the same for the same orders, besides data set and seed.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        hash.update(match self.shuffle {
            Shuffle::None => b"none",
            Shuffle::Full => b"full",
        });
        Fingerprint(hash.finalize().into())
    }
}
