//! Arguments of every command that runs a loader, and the settings they stand for.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::Range;

use clap::Args;
use tbl_io::PageCache;
use tl_pipeline::{Batching, Buckets, LoaderConfig, Readers, Sampler, Samples, Shuffle, Subset};

use super::cache::CacheArgs;
use super::memory::MemoryArgs;
use super::policy::{PolicyArgs, ThreadArgs};
use crate::failure::Failure;

/// How samples become batches, and on which threads.
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

    /// Threads that read samples ahead of the workers (default: the workers read, and the system is
    /// told what they will need)
    #[arg(long, value_name = "N")]
    readers: Option<NonZeroUsize>,

    /// Read ahead through io_uring, with so many reads under way at once
    #[arg(long, value_name = "N", conflicts_with = "readers")]
    uring: Option<NonZeroU32>,

    /// With --uring: read around the page cache
    #[arg(long, requires = "uring")]
    direct: bool,

    /// MiB of samples that --readers or --uring may be ahead (default: 64)
    #[arg(long, value_name = "MIB")]
    read_ahead: Option<NonZeroU32>,

    /// The order of samples: none, full, block:SAMPLES or block:SAMPLESxWINDOW, which is blocks of
    /// neighbours in random order, the samples of WINDOW of them (default: 1) shuffled among each
    /// other
    #[arg(long, value_name = "SHUFFLE")]
    pub(crate) shuffle: Option<Shuffle>,

    /// Load these samples only: numbers, from the first up to but without the second
    #[arg(long, value_name = "A..B", value_delimiter = ',', value_parser = sample_range)]
    samples: Vec<Range<u64>>,

    /// Group images of like sizes, among those of N batches, and pad them to the size of their
    /// batch: for recipes that leave the size to the image
    #[arg(long, value_name = "N")]
    buckets: Option<NonZeroU32>,

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
}

impl LoaderArgs {
    /// `sampler` with what the arguments say.
    fn sampler(&self, mut sampler: Sampler) -> Sampler {
        if let Some(shuffle) = self.shuffle {
            sampler.shuffle = shuffle;
        }
        if !self.samples.is_empty() {
            sampler.samples = Samples::Subset(Subset::Ranges(self.samples.clone()));
        }
        sampler
    }

    /// `config` with what the arguments say.
    pub(crate) fn apply(&self, config: LoaderConfig) -> Result<LoaderConfig, Failure> {
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
            read_ahead_bytes: self.read_ahead.map_or(0, |mib| u64::from(mib.get()) << 20),
            seed: self.seed,
            cache: self.cache.config(),
            on_error: self.policy.on_error().unwrap_or(config.on_error),
            error_budget: self.policy.error_budget(),
            sampler: self.sampler(config.sampler),
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

/// Text that is no range of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected two numbers, such as 1000..2000")]
pub(crate) struct NoRange;

fn sample_range(text: &str) -> Result<Range<u64>, NoRange> {
    let (start, end) = text.split_once("..").ok_or(NoRange)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| NoRange);
    Ok(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers() {
        assert_eq!(sample_range("10..20"), Ok(10..20));
        for wrong in ["10", "10..", "..20", "10..=20", "a..b", "-1..2", "1...2"] {
            assert_eq!(sample_range(wrong), Err(NoRange), "{wrong}");
        }
    }
}
