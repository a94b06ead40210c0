//! Arguments of every command that runs a loader, and the settings they stand for.

use std::num::{NonZeroU32, NonZeroUsize};

use clap::Args;
use tbl_io::PageCache;
use tl_pipeline::{Batching, Buckets, Dataset, LoaderConfig, Readers};

use super::cache::{CacheArgs, size};
use super::device::DeviceName;
use super::fields::FieldArgs;
use super::memory::MemoryArgs;
use super::policy::{PolicyArgs, ThreadArgs};
use super::sampler::SamplerArgs;
use super::shard::ShardArgs;
use crate::failure::Failure;

/// The settings of batches, threads and reading.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoaderArgs {
    /// Samples per batch
    #[arg(long, value_name = "N", default_value = "64")]
    batch_size: NonZeroUsize,

    /// Worker threads (default: one per core, or per processor of --cpus)
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Batches in flight besides those the consumer holds (default: 2, more only where that does
    /// not give every worker two samples)
    #[arg(long, value_name = "N")]
    prefetch: Option<NonZeroUsize>,

    /// Threads that read samples ahead of the workers (default: workers read samples themselves,
    /// after telling the operating system which ones come next)
    #[arg(long, value_name = "N")]
    readers: Option<NonZeroUsize>,

    /// Read ahead through io_uring, with up to N reads in flight
    #[arg(long, value_name = "N", conflicts_with = "readers")]
    uring: Option<NonZeroU32>,

    /// With --uring: bypass the page cache
    #[arg(long, requires = "uring")]
    direct: bool,

    /// The lead of --readers or --uring over the workers, in bytes (with K, M, G or T; default: 64M)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    read_ahead: Option<u64>,

    /// Sort the images of N batches by size into batches of similar sizes, and pad each image to
    /// the largest of its batch. For recipes whose images keep different sizes
    #[arg(long, value_name = "N")]
    buckets: Option<NonZeroU32>,

    /// For recipes that mix images of a batch: mix only within groups of N rows. N must divide
    /// --batch-size (default: the whole batch)
    #[arg(long, value_name = "N")]
    mixing_group: Option<NonZeroUsize>,

    /// Copy batches to a GPU: cuda, or cuda:N for the one with this number. One that cannot be used
    /// is an error. See docs/gpu.md
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,

    #[command(flatten)]
    memory: MemoryArgs,

    #[command(flatten)]
    policy: PolicyArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    /// The seed of order and augmentation
    #[arg(long, value_name = "K", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    cache: CacheArgs,

    #[command(flatten)]
    pub(crate) sampler: SamplerArgs,

    #[command(flatten)]
    shard: ShardArgs,

    #[command(flatten)]
    fields: FieldArgs,
}

impl LoaderArgs {
    /// `config` with what the arguments say, for `dataset`.
    pub(crate) fn apply(
        &self,
        config: LoaderConfig,
        dataset: &Dataset,
    ) -> Result<LoaderConfig, Failure> {
        let batching = self.buckets.map_or(Batching::InOrder, |window| {
            Batching::Buckets(Buckets { window: window.get(), ..Buckets::default() })
        });
        let config = self.memory.apply(config);
        // 0 lets the loader choose.
        let or_default = |number: Option<NonZeroUsize>| number.map_or(0, NonZeroUsize::get);
        Ok(LoaderConfig {
            batch_size: self.batch_size.get(),
            workers: self.workers.map_or_else(|| self.threads.cores(), NonZeroUsize::get),
            cpus: self.threads.cpus(),
            nice: self.threads.nice,
            prefetch: or_default(self.prefetch),
            batching,
            readers: self.readers(),
            read_ahead_bytes: self.read_ahead.unwrap_or(0),
            seed: self.seed,
            cache: self.cache.config(),
            on_error: self.policy.on_error().unwrap_or(config.on_error),
            error_budget: self.policy.error_budget(),
            retry: self.policy.retry(),
            sampler: self.sampler.sampler(config.sampler.shuffle, dataset)?,
            shard: self.shard.shard(),
            mixing_group: or_default(self.mixing_group),
            delivery: self.device.map(DeviceName::delivery).unwrap_or_default(),
            fields: self.fields.fields(),
            ..config
        })
    }

    fn readers(&self) -> Readers {
        let page_cache = if self.direct { PageCache::Bypassed } else { PageCache::Used };
        match (self.uring, self.readers) {
            (Some(depth), _) => Readers::Uring { depth: depth.get(), page_cache },
            (None, Some(threads)) => Readers::Threads(threads.get()),
            (None, None) => Readers::Workers,
        }
    }
}
