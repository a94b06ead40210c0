//! The output of `tl bench`: one JSON object, or some lines.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{MemoryReport, ShuffleQuality};

use super::cache::CacheResult;
use super::padding::PaddingResult;
use super::shard::ShardResult;
use crate::figures::ReportFigures;
use crate::text::Hex;

/// The output of `tl bench --json`.
#[derive(Debug, Serialize)]
pub(super) struct BenchResult {
    pub(super) recipe: String,
    /// The unit counted.
    #[serde(skip)]
    pub(super) unit: &'static str,
    pub(super) workers: usize,
    /// Instruction set of the kernels.
    pub(super) simd: String,
    pub(super) batch_size: usize,
    pub(super) seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<String>,
    pub(super) images_per_s: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) runs: usize,
    pub(super) noisy_runs_dropped: usize,
    pub(super) quiet: bool,
    pub(super) images_per_cpu_s: f64,
    pub(super) samples_per_epoch: u64,
    /// The part of the epoch that was measured, if it was only a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shard: Option<ShardResult>,
    /// Damaged samples that are in epoch 0 all the same.
    pub(super) damaged_kept: u64,
    /// Samples that could not be used, and how they were handled in epoch 0.
    pub(super) skipped: u64,
    pub(super) replaced: u64,
    pub(super) filled: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) padding: Option<PaddingResult>,
    /// The division of the budget, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<MemoryReport>,
    pub(super) first_batch_s: f64,
    pub(super) peak_rss_mib: Option<f64>,
    /// The randomness of the requested order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shuffle: Option<ShuffleQuality>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache: Option<CacheResult>,
    #[cfg(feature = "remote")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remote: Option<super::remote::RemoteResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Hex>,
    /// Whether the batches of the measured epochs were served from memory.
    pub(super) replay: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ReportFigures>,
}

impl fmt::Display for BenchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} {}/s (median of {} epochs, {:.1} to {:.1}), {:.1} per CPU second, \
             {} workers, {}, first batch after {:.3} s",
            self.images_per_s,
            self.unit,
            self.runs - self.noisy_runs_dropped,
            self.min,
            self.max,
            self.images_per_cpu_s,
            self.workers,
            self.simd,
            self.first_batch_s
        )?;
        if let Some(peak) = self.peak_rss_mib {
            write!(f, ", peak memory {peak:.0} MiB")?;
        }
        if let Some(plan) = &self.plan {
            write!(f, "\n{plan}")?;
        }
        if self.replay {
            f.write_str("\nbatches were served from memory: this is the rate without loading")?;
        }
        for (count, what) in [
            (self.damaged_kept, "are damaged and were kept"),
            (self.skipped, "were left out"),
            (self.replaced, "have replaced others"),
            (self.filled, "were replaced by zeros"),
        ] {
            if count > 0 {
                write!(f, "\n{count} of {} samples {what}", self.samples_per_epoch)?;
            }
        }
        if let Some(shard) = &self.shard {
            write!(f, "\n{shard}")?;
        }
        if let Some(memory) = &self.memory {
            write!(f, "\nmemory: {memory}")?;
        }
        if let Some(padding) = &self.padding {
            write!(f, "\n{padding}")?;
        }
        if !self.quiet {
            f.write_str("\nother processes were using the machine: these figures say little")?;
        }
        if let Some(cache) = &self.cache {
            cache.fmt(f)?;
        }
        if let Some(quality) = &self.shuffle {
            write!(f, "\n{quality}")?;
        }
        #[cfg(feature = "remote")]
        if let Some(remote) = &self.remote {
            write!(f, "\n{remote}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "\nepoch 0 {digest}"),
            None => Ok(()),
        }
    }
}
