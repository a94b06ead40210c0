//! Arguments of every command that runs a loader, and the settings they stand for.

use std::num::NonZeroUsize;

use clap::Args;
use tl_pipeline::LoaderConfig;

use super::cache::CacheArgs;
use crate::failure::Failure;

/// How samples become batches, and on which threads.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoaderArgs {
    /// Samples per batch
    #[arg(long, value_name = "N", default_value = "64")]
    batch_size: NonZeroUsize,

    /// Worker threads (default: one per core)
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Batches in flight besides those the consumer holds (default: 2, more only where that does
    /// not give every worker two samples)
    #[arg(long, value_name = "N")]
    prefetch: Option<NonZeroUsize>,

    /// The seed of order and augmentation
    #[arg(long, value_name = "K", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    cache: CacheArgs,
}

impl LoaderArgs {
    /// `config` with what the arguments say.
    pub(crate) fn apply(&self, config: LoaderConfig) -> Result<LoaderConfig, Failure> {
        // 0 lets the loader choose.
        let or_default = |number: Option<NonZeroUsize>| number.map_or(0, NonZeroUsize::get);
        Ok(LoaderConfig {
            batch_size: self.batch_size.get(),
            workers: or_default(self.workers),
            prefetch: or_default(self.prefetch),
            seed: self.seed,
            cache: self.cache.config(),
            ..config
        })
    }
}
