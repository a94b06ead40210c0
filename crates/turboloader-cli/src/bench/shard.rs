//! The part of an epoch that was measured.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{Loader, Shard, Tail};

/// One of several ranks, or rows that do not count.
#[derive(Debug, Serialize)]
pub(super) struct ShardResult {
    rank: u32,
    world: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Tail>,
    batches: u64,
    /// Rows of epoch 0 that do not count: they fill up its last batch, or the place of bad samples.
    not_valid: u64,
}

impl ShardResult {
    /// The shard of a loader whose epoch 0 had `not_valid` rows that do not count; `None` unless
    /// ranks or a tail were set.
    pub(super) fn of(loader: &Loader, not_valid: u64) -> Option<Self> {
        let shard = loader.config().shard;
        let Shard { rank, world, tail } = shard;
        let batches = loader.len();
        (shard != Shard::default()).then_some(Self { rank, world, tail, batches, not_valid })
    }
}

impl fmt::Display for ShardResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, world, batches, not_valid, .. } = self;
        write!(f, "rank {rank} of {world}: {batches} batches, {not_valid} rows that do not count")
    }
}
