//! The division of a memory budget among batches, workers, the largest sample, caches and readers.
//!
//! Arithmetic only; `tl_handoff::permits` bounds the number of batches, decoders and readers to their limits.
//!
//! A worker usually needs little and sometimes a lot: photographs of a data set differ by two
//! orders of magnitude. With memory for the largest decodable image in every worker, 16 of them
//! would need 30 GB. So each has a *share*, and one worker at a time may also use the *reserve*,
//! which fits the largest sample. That size depends on the budget and on the parts of caches and
//! readers, but not on the number of workers, so that the same samples are too large for any number
//! of workers.

use std::fmt;

use serde::Serialize;
use tl_decode::Limits;

use crate::error::PipelineError;

const MIB: u64 = 1 << 20;

/// The memory of a worker that does not grow with samples: the touched part of its stack, the
/// tables and rows of a resampler, metadata of images, the row index.
const WORKER_BYTES: u64 = 4 * MIB;

/// The least a worker's share of the budget may be: decoded images of 1 MB.
const MIN_SHARE: u64 = 16 * MIB;

/// The share that every worker gets before more batches are prepared ahead: with less, photographs
/// of a few megapixels wait for the reserve.
const GOOD_SHARE: u64 = 96 * MIB;

/// Larger buffers are freed after the sample that needed them. Few photographs decode to more, and
/// one giant must not cost every worker its size for good.
pub(crate) const KEEP_BYTES: u64 = 32 * MIB;

/// The least memory of a row in batches whose rows differ in size, reserved before more batches are
/// prepared ahead.
const MIN_ROW: u64 = 4 << 10;
const GOOD_ROW: u64 = 256 << 10;

/// Batches that there must be room for: one in the making, one with the consumer.
const MIN_BATCHES: u64 = 2;

/// Samples in the making that the part of batches whose rows differ in size is cut for, so that
/// workers have something to do where batches are small.
const AHEAD: u64 = 8;

/// The limits of one sample until it is in its row, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleLimits {
    /// Bytes as they are read.
    pub(crate) stored: u64,
    /// The limits of decoding and of the recipe's steps.
    pub(crate) decode: Limits,
    /// Larger buffers are freed after the sample.
    pub(crate) keep: usize,
}

impl SampleLimits {
    /// Without a budget: what the configuration says, of decoding only.
    pub(crate) fn configured(decode: Limits) -> Self {
        Self { stored: u64::MAX, decode, keep: clamp(KEEP_BYTES) }
    }

    /// Those that keep a sample within `share` bytes, with the proportions of what is configured.
    fn within(share: u64, demand: &Demand) -> Self {
        let Some(configured) = &demand.limits else {
            // Buffers double when they grow.
            let keep = clamp(KEEP_BYTES.min(share / 4));
            return Self { stored: share / 2, decode: Limits::default(), keep };
        };
        let full = demand.largest_sample();
        let part = |bytes: u64| {
            let part = u128::from(bytes) * u128::from(share.min(full)) / u128::from(full.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let decoded = part(configured.max_decoded_bytes);
        let decode = Limits {
            max_decoded_bytes: decoded,
            max_working_bytes: part(configured.max_working_bytes),
            ..*configured
        };
        // Buffers double when they grow, so that twice this must not be more than one may have.
        Self { stored: decoded, decode, keep: clamp(KEEP_BYTES.min(decoded / 4)) }
    }
}

/// The parts that a budget must cover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Bytes of a batch, besides rows that grow.
    pub(crate) batch_bytes: u64,
    pub(crate) rows: u64,
    /// True if the bytes of a batch depend on its samples.
    pub(crate) varying: bool,
    /// Images of a sample that are decoded besides its own: a mask, those of sidecar files; the
    /// masks of its objects count as one.
    pub(crate) decoded: u64,
    /// Recipes that are carried out on a sample besides the first, and images between its plans.
    pub(crate) rendered: u64,
    /// Bytes that a worker holds in addition to its share: rows kept while others are mixed, a
    /// buffer to return to readers.
    pub(crate) worker_bytes: u64,
    pub(crate) workers: u64,
    /// Batches to prepare ahead.
    pub(crate) prefetch: u64,
    /// Batches whose memory is used otherwise: for copies to a device, and for one that is made again.
    pub(crate) beside: u64,
    pub(crate) caches: u64,
    pub(crate) readers: u64,
    /// The limits of decoding and steps; `None` for work that does not decode.
    pub(crate) limits: Option<Limits>,
}

/// The division of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// Batches that there may be at once.
    pub(crate) batches: u64,
    /// Bytes that the rows of a batch may have where they grow.
    pub(crate) rows_bytes: u64,
    /// Bytes that a worker may always take.
    pub(crate) share: u64,
    /// Bytes that one worker at a time may take in addition; 0 where the share is enough for all.
    pub(crate) reserve: u64,
    /// Limits within the share, and within the reserve.
    pub(crate) usual: SampleLimits,
    pub(crate) largest: SampleLimits,
}

impl Division {
    /// Divides `budget`.
    ///
    /// # Errors
    /// [`PipelineError::MemoryBudget`] with the bytes it takes at least.
    pub(crate) fn new(budget: u64, demand: &Demand) -> Result<Self, PipelineError> {
        let required = demand.least();
        // A demand that overflows fits no budget.
        if budget < required || required == u64::MAX {
            return Err(PipelineError::MemoryBudget { budget, required });
        }
        let available = budget - demand.elsewhere();
        let full = demand.largest_sample();
        let largest = full.min(available / 2);
        let batches_part = demand.batches_part(available);
        let workers_least = demand.workers.saturating_mul(demand.least_per_worker());
        let mut rest = available - largest - batches_part - workers_least;
        let share = demand.least_share();

        // First what every worker can do with, then batches, then the workers again.
        let wanted = demand.workers.saturating_mul(GOOD_SHARE.min(full).saturating_sub(share));
        let mut for_shares = wanted.min(rest / 2);
        rest -= for_shares;
        let most = demand.prefetch.saturating_add(1).max(MIN_BATCHES);
        let most = most.saturating_add(demand.beside);
        let cut = demand.batches_cut(batches_part);
        let each = batches_part / cut;
        let batches = cut.saturating_add(rest / each.max(1)).min(most);
        rest = rest.saturating_add(cut * each) - batches * each;
        let rows_bytes = if demand.varying { demand.rows_bytes(each) } else { 0 };
        for_shares += rest;
        let share = share.saturating_add(for_shares / demand.workers.max(1)).min(largest);
        let reserve = if share == largest { 0 } else { largest };
        let usual = SampleLimits::within(share, demand);
        let largest = SampleLimits::within(largest, demand);
        let batches = batches - demand.beside;
        Ok(Self { batches, rows_bytes, share, reserve, usual, largest })
    }
}

impl Demand {
    /// The most memory of a sample under the limits, which do not bound stored bytes. The stored
    /// bytes (raw ones are as large as decoded ones), the decoded image, the images of the steps
    /// (`Plan::scratch_bytes` has the same limit) and the result in its own size can each be as
    /// large as the largest image. The decoder uses the rest, and as much again to rotate an image.
    /// Up to eight buffers left by other samples have at most a quarter of that size each.
    fn largest_sample(&self) -> u64 {
        let Some(limits) = self.limits else { return u64::MAX };
        let Limits { max_decoded_bytes: image, max_working_bytes: work, .. } = limits;
        let images = self.decoded.saturating_add(self.rendered).saturating_add(6);
        let works = self.decoded.saturating_add(2);
        image.saturating_mul(images).saturating_add(work.saturating_mul(works))
    }

    /// The smallest budget that is enough.
    fn least(&self) -> u64 {
        let workers = self.workers.saturating_mul(self.least_per_worker());
        let full = self.largest_sample();
        let available = if self.varying {
            // A quarter is for batches, at most half is the reserve.
            let batch = self.batch_bytes.saturating_add(self.least_rows());
            let batches = self.min_batches().saturating_mul(batch).saturating_mul(4);
            batches.max(workers.saturating_mul(4))
        } else {
            let batches = self.batch_bytes.saturating_mul(self.min_batches());
            let least = workers.saturating_add(batches);
            least.saturating_add(least.min(full))
        };
        available.saturating_add(self.elsewhere())
    }

    fn elsewhere(&self) -> u64 {
        self.caches.saturating_add(self.readers)
    }

    /// The part of batches, taken before the rest is divided. If rows grow it is a fraction of the
    /// whole, so that the limit of a batch does not depend on the number of workers.
    fn batches_part(&self, available: u64) -> u64 {
        if self.varying {
            available / 4
        } else {
            self.batch_bytes.saturating_mul(self.min_batches())
        }
    }

    /// The number of batches that share this part, which fixes the limit of one batch independently
    /// of the prefetch and the workers.
    fn batches_cut(&self, part: u64) -> u64 {
        if !self.varying {
            return self.min_batches();
        }
        let good = self.batch_bytes.saturating_add(self.rows.saturating_mul(GOOD_ROW));
        let most = AHEAD.div_ceil(self.rows.max(1)).max(MIN_BATCHES) + 1 + self.beside;
        (part / good.max(1)).clamp(self.min_batches(), most)
    }

    /// Batches that there must be room for.
    fn min_batches(&self) -> u64 {
        MIN_BATCHES + self.beside
    }

    fn least_share(&self) -> u64 {
        MIN_SHARE.min(self.largest_sample())
    }

    fn least_per_worker(&self) -> u64 {
        let beside = WORKER_BYTES.saturating_add(self.worker_bytes);
        beside.saturating_add(self.least_share())
    }

    fn least_rows(&self) -> u64 {
        self.rows.saturating_mul(MIN_ROW)
    }

    /// The memory for the rows of a batch of `bytes`: a fifth of the rest is for the unused part of
    /// their buffers.
    fn rows_bytes(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.batch_bytes) / 5 * 4
    }
}

/// The memory that a loader uses, and its limits, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The bound on the whole, if one is set.
    pub budget: Option<u64>,
    /// Bytes of one batch; where rows grow with their samples, with what they may hold together.
    pub batch_bytes: u64,
    /// The most batches at once, with those of the consumer; `None` without a budget.
    pub max_batches: Option<u64>,
    /// Batches in use: being filled, ready, or with the consumer.
    pub batches: u64,
    /// Those that the consumer holds.
    pub held: u64,
    /// The number of worker threads.
    pub workers: u64,
    /// Bytes that each worker may always use; `None` without a budget.
    pub share: Option<u64>,
    /// Bytes that one worker at a time may take in addition, for samples that need more than a share.
    pub reserve: u64,
    /// Samples that needed it.
    pub large_samples: u64,
    /// Bytes of caches in memory at most.
    pub caches: u64,
    /// Bytes of samples read ahead at most.
    pub readers: u64,
    /// Bytes of pinned memory at most that JPEG images are copied from to a device that decodes them; 0
    /// without a budget.
    pub copies: u64,
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, held, workers, .. } = self;
        write!(f, "{batches} batches of {} ({held} with the consumer", Mib(self.batch_bytes))?;
        if let Some(most) = self.max_batches {
            write!(f, ", at most {most}")?;
        }
        write!(f, "), {workers} worker{}", if *workers == 1 { "" } else { "s" })?;
        if let Some(share) = self.share {
            write!(f, " of {}", Mib(share))?;
        }
        for (bytes, what) in [
            (self.reserve, "for large samples"),
            (self.caches, "for caches"),
            (self.readers, "for reading ahead"),
            (self.copies, "for copies to the device"),
        ] {
            if bytes > 0 {
                write!(f, ", {} {what}", Mib(bytes))?;
            }
        }
        match self.budget {
            Some(budget) => write!(f, "; budget {}", Mib(budget)),
            None => f.write_str("; no budget"),
        }
    }
}

/// A number of bytes, printed in mebibytes.
struct Mib(u64);

impl fmt::Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.saturating_mul(10) / MIB;
        write!(f, "{}.{} MiB", tenths / 10, tenths % 10)
    }
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
