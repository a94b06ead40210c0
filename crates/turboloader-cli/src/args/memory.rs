//! Arguments that bound what a loader takes of memory.

use clap::Args;
use tl_pipeline::LoaderConfig;

use super::cache::size;

/// How much memory batches, workers, caches and readers may take.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Take no more than SIZE bytes for batches, workers, caches and reading ahead together (2G
    /// and 2GiB are powers of 1024, 2GB of 1000)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_budget: Option<u64>,

    /// Prepare no more than SIZE bytes of batches ahead, but one batch always
    #[arg(long, value_name = "SIZE", value_parser = size)]
    prefetch_bytes: Option<u64>,
}

impl MemoryArgs {
    /// `config` with these bounds.
    pub(super) fn apply(&self, config: LoaderConfig) -> LoaderConfig {
        let Self { memory_budget, prefetch_bytes } = *self;
        LoaderConfig { memory_budget, prefetch_bytes, ..config }
    }
}
