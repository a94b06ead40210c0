//! Changes to make, with the rate that it would give: measured where it could be, an estimate
//! otherwise.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{Limit, Report, Shuffle, ShuffleQuality, Stage};

use super::disk::ReadRate;
use super::findings::DataFigures;
use super::memory;
#[cfg(feature = "remote")]
use super::store::StoreFigures;
use crate::figures::rounded;

/// A gain below this is not worth a line.
const WORTH: f64 = 1.03;

/// Part of the free memory that a cache may take without others missing it.
const FOR_CACHES: f64 = 0.5;

/// The memory that a cache takes for each byte that it keeps, with some room for samples not looked
/// at.
const CACHE_MARGIN: f64 = 1.1;

const MIB: f64 = 1_048_576.0;

/// The measurements.
pub(super) struct Measured {
    pub(super) data: DataFigures,
    /// From the page cache with all workers, and with one.
    pub(super) warm: Report,
    pub(super) one: Report,
    /// Past the page cache, one reader and one for every worker.
    pub(super) disk: (ReadRate, ReadRate),
    /// The same work done otherwise.
    pub(super) variants: Vec<Variant>,
    /// More readers than training had.
    pub(super) readers: Option<MoreReaders>,
    /// As training does it.
    pub(super) training: Report,
    /// Samples a second that the training step takes by itself, if it takes any time.
    pub(super) replay: Option<f64>,
    /// The files and the recipe as a shell would be given them.
    pub(super) files: String,
    pub(super) recipe: String,
    /// Side of the images in a batch, where a recipe for photographs has one.
    pub(super) size: Option<u32>,
    pub(super) batch_size: usize,
    /// Whether photographs are decoded exactly.
    pub(super) is_exact: bool,
    /// Whether there is a cache already.
    pub(super) is_cached: bool,
    /// Bytes a second.
    pub(super) copy_rate: f64,
    pub(super) shuffle: ShuffleQuality,
    /// The requests of the training run, if there were any.
    #[cfg(feature = "remote")]
    pub(super) store: Option<StoreFigures>,
}

/// Readers, the option that asks for them, and how fast training was with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoreReaders {
    pub(super) option: &'static str,
    pub(super) readers: usize,
    /// Samples a second.
    pub(super) rate: f64,
}

/// The same work done otherwise, and how fast it was.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) what: &'static str,
    pub(super) command: Option<&'static str>,
    /// Samples a second.
    pub(super) rate: f64,
}

/// Something to change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    what: String,
    /// Options to add, or a separate command; `None` if nothing can be typed.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Samples a second with it; `None` where it has no effect on the rate, or an unknown one.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_s: Option<f64>,
    /// Whether that was measured.
    measured: bool,
}

impl Change {
    pub(super) fn advice(what: impl Into<String>) -> Self {
        Self { what: what.into(), command: None, samples_per_s: None, measured: false }
    }

    pub(super) fn by(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    fn estimated(self, rate: f64) -> Self {
        Self { samples_per_s: Some(rounded(rate, 0)), ..self }
    }

    fn measured(self, rate: f64) -> Self {
        Self { measured: true, ..self.estimated(rate) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(rate) = self.samples_per_s {
            let how = if self.measured { "measured" } else { "estimated" };
            write!(f, ": {rate:.0} samples/s ({how})")?;
        }
        self.command.as_ref().map_or(Ok(()), |command| write!(f, "\n      {command}"))
    }
}

/// The changes that help against the limit, the best first.
pub(super) fn changes(found: &Measured) -> Vec<Change> {
    let Some(limit) = found.training.limit() else { return Vec::new() };
    let mut changes = match limit {
        Limit::Stage(Stage::Read) | Limit::Readers => for_reading(found),
        Limit::Stage(stage) => for_processing(found, stage),
        Limit::Consumer | _ => return for_consumer(found),
    };
    // Nothing makes the consumer faster than it is by itself.
    let now = found.training.rate();
    let most = found.training.demand();
    for change in &mut changes {
        change.samples_per_s = change.samples_per_s.map(|rate| rounded(rate.min(most), 0));
    }
    changes.retain(|change| change.samples_per_s.is_none_or(|rate| rate > WORTH * now));
    changes.sort_by(|a, b| {
        let rate = |change: &Change| change.samples_per_s.unwrap_or(0.0);
        rate(b).total_cmp(&rate(a))
    });
    changes
}

fn for_consumer(found: &Measured) -> Vec<Change> {
    let rate = found.training.rate();
    let one = found.one.capacity();
    let mut changes = vec![Change::advice("nothing in the loader: the training step is slower")];
    let workers = found.training.stats().workers;
    if one > 0.0 && workers > 1 {
        // One more than just enough, for samples are not alike.
        #[expect(clippy::cast_possible_truncation, reason = "limited by the number of workers")]
        #[expect(clippy::cast_sign_loss, reason = "rates are not negative")]
        let enough = (rate / one).ceil().min(1024.0) as usize + 1;
        if enough < workers {
            let what = "fewer workers are enough, and leave more of the processor to training";
            changes.push(Change::advice(what).by(format!("--workers {enough}")));
        }
    }
    changes
}

fn for_reading(found: &Measured) -> Vec<Change> {
    let warm = found.warm.capacity();
    let mut changes = Vec::new();
    if !found.is_cached {
        let what = "keep what was read, from the second epoch on";
        changes.push(Change::advice(what).by(cache_of(found.data.bytes(), "")).estimated(warm));
    }
    if let Some(MoreReaders { option, readers, rate }) = found.readers {
        let what = format!("read ahead of the workers, {readers} samples at once");
        changes.push(Change::advice(what).by(format!("{option} {readers}")).measured(rate));
    }
    changes.extend(for_blocks(found));
    let need = found.data.bytes_per_sample * warm / 1e6;
    #[cfg(feature = "remote")]
    if let Some(store) = &found.store {
        changes.extend(store.change(need));
        return changes;
    }
    let what = format!("a disk of {need:.0} MB/s, which is what the workers could use");
    changes.push(Change::advice(what));
    changes
}

/// Ways to unpack each block that samples are stored in once.
fn for_blocks(found: &Measured) -> Vec<Change> {
    let bytes = found.data.unpacked_block_bytes;
    if bytes == 0 || found.shuffle.shuffle != Shuffle::Full {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
    let mebibytes = bytes as f64 / MIB;
    let what = format!(
        "a full shuffle unpacks a block of {mebibytes:.1} MiB for nearly every sample: shuffle by \
         blocks, so that each is unpacked once in an epoch"
    );
    let convert = format!("tl convert {} -o new.tbl", found.files);
    vec![
        Change::advice(what).by("--shuffle block:sourcex8"),
        Change::advice("store samples without blocks").by(convert),
    ]
}

/// Options for a cache of this many bytes: in memory where it fits, otherwise on disk. After
/// them `more`, which says what is kept.
fn cache_of(bytes: f64, more: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let free = memory::available_bytes().map_or(0.0, |bytes| FOR_CACHES * bytes as f64);
    let bytes = CACHE_MARGIN * bytes;
    let (place, unit, size) = if bytes <= free {
        ("--cache-memory", "M", bytes / MIB)
    } else {
        ("--cache-folder DIR --cache-disk", "G", bytes / (1024.0 * MIB))
    };
    format!("{place} {:.0}{unit}{more}", size.ceil().max(1.0))
}

fn for_processing(found: &Measured, stage: Stage) -> Vec<Change> {
    let mut changes: Vec<Change> = found
        .variants
        .iter()
        .map(|Variant { what, command, rate }| {
            let change = Change::advice(*what).measured(*rate);
            command.map_or(change.clone(), |command| change.by(command))
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = found.training.stats().workers;
    if workers < cores {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let factor = cores as f64 / workers as f64;
        let rate = factor * found.warm.capacity();
        let what = "one worker for each core";
        changes.push(Change::advice(what).by(format!("--workers {cores}")).estimated(rate));
    }
    match stage {
        Stage::Decode => changes.extend(for_decoding(found)),
        Stage::Transform => changes.push(
            Change::advice("drop or shrink the dearest operations on whole images; to see which")
                .by(format!("tl explain {}", found.recipe)),
        ),
        Stage::Overhead => {
            let batch_size = 4 * found.batch_size;
            let what = "larger batches: the samples are hardly any work";
            changes.push(Change::advice(what).by(format!("--batch-size {batch_size}")));
        }
        Stage::Read | Stage::Write | Stage::Finish | _ => {}
    }
    changes
}

/// Ways to decode less, or not again.
fn for_decoding(found: &Measured) -> Vec<Change> {
    let stats = found.warm.stats();
    let rest = stats.stages.total().saturating_sub(stats.stages[Stage::Decode]).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let workers = stats.workers as f64;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let processed = stats.processed as f64;
    let without = if rest > 0.0 { workers * processed / rest } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let decoded = 3.0 * found.data.pixels_per_sample * found.data.samples as f64;
    let mut changes = Vec::new();
    if decoded > 0.0 && !found.is_cached {
        // Only what is decoded exactly can be kept.
        let exactly = if found.is_exact { "" } else { " --decode exact" };
        let options = cache_of(decoded, &format!(" --cache decoded{exactly}"));
        let what = "keep the decoded images, from the second epoch on";
        changes.push(Change::advice(what).by(options).estimated(without));
    }
    let convert = format!("tl convert {} -o new.tbl", found.files);
    if let Some(size) = found.size {
        // As much as evaluation resizes to, which leaves crops something to choose from.
        let size = size * 8 / 7;
        let what = format!("decode once and for all, into images of {size} x {size} pixels");
        let command = format!("{convert} --to raw --size {size}");
        changes.push(Change::advice(what).by(command).estimated(without));
    }
    if found.data.jpegs_without_index {
        let what = "note where the rows of JPEG files begin, so that crops start there";
        changes.push(Change::advice(what).by(format!("{convert} --jpeg-index")));
    }
    changes
}

#[cfg(test)]
mod tests;
