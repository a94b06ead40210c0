//! The findings of the examination, for people and for programs.

use std::fmt;

use serde::Serialize;
use tbl_format::SampleFormat;
use tl_pipeline::{Dataset, Report, ShuffleQuality, Work};

use super::change::{Change, Measured, changes};
use super::devices::Devices;
use super::memory;
#[cfg(feature = "remote")]
use super::store::StoreFigures;
use crate::bench::machine;
use crate::figures::{ReportFigures, rounded};
use crate::page::{Bar, Page};

/// Images whose header is read where the container says no size.
const READ_OF_THESE: u32 = 100;

/// The size of the data set.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DataFigures {
    pub(super) samples: u64,
    /// Mean of those that were looked at.
    pub(super) bytes_per_sample: f64,
    /// 0 where the container does not know and no image told.
    pub(super) pixels_per_sample: f64,
    /// Whether there are JPEG files without a row index.
    pub(super) jpegs_without_index: bool,
    /// The bytes of a block that must be unpacked to read a sample; 0 for samples that are stored by
    /// themselves.
    pub(super) unpacked_block_bytes: u64,
    /// From opening the files to the first question.
    pub(super) open_s: f64,
    /// Whether none of it lies on a disk.
    #[serde(skip)]
    pub(super) is_in_store: bool,
}

impl DataFigures {
    /// Looks at `look_at` entries, evenly spaced.
    pub(super) fn look(dataset: &Dataset, look_at: u64, open_s: f64) -> Self {
        let samples = dataset.len();
        let step = dataset.len().div_ceil(look_at).max(1);
        let mut looked = 0u32;
        let mut bytes = 0.0;
        let mut pixels = 0.0;
        let mut sized = 0u32;
        let mut image = Vec::new();
        let mut jpegs_without_index = false;
        for index in (0..samples).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            // One that nothing is known of is left out of the means.
            let Ok(facts) = dataset.facts(index) else { continue };
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            let stored = facts.stored_bytes as f64;
            bytes += stored;
            looked += 1;
            // A header is read from some of those whose container has no sizes.
            let size = if facts.width > 0 {
                Some((facts.width, facts.height))
            } else if looked <= READ_OF_THESE {
                let read = dataset.read_into(index, &mut image);
                let info = read.ok().and_then(|()| tl_decode::probe(&image).ok());
                info.map(|info| (info.width, info.height))
            } else {
                None
            };
            if let Some((width, height)) = size {
                pixels += f64::from(width) * f64::from(height);
                sized += 1;
            }
            if facts.format == SampleFormat::Jpeg && !jpegs_without_index {
                jpegs_without_index =
                    dataset.row_index_into(index, &mut image).is_ok_and(|has| !has);
            }
        }
        let blocks = dataset.shards().iter().filter_map(|source| source.blocks());
        // What is wrong with a file is among its samples.
        let unpacked = blocks.filter_map(|blocks| blocks.unpacked_bytes().ok());
        let unpacked_block_bytes = unpacked.max().unwrap_or(0);
        let looked = f64::from(looked.max(1));
        let open_s = rounded(open_s, 4);
        let bytes_per_sample = rounded(bytes / looked, 0);
        Self {
            samples,
            bytes_per_sample,
            pixels_per_sample: rounded(pixels / f64::from(sized.max(1)), 0),
            jpegs_without_index,
            unpacked_block_bytes,
            open_s,
            is_in_store: dataset.shards().iter().all(|shard| shard.location().url().is_some()),
        }
    }

    /// Bytes of all samples, as far as those looked at are like the others.
    pub(super) fn bytes(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let samples = self.samples as f64;
        samples * self.bytes_per_sample
    }
}

/// The rate of reading past the page cache.
#[derive(Clone, Debug, Serialize)]
struct DiskFigures {
    one_reader_mb_per_s: f64,
    one_reader_samples_per_s: f64,
    mb_per_s: f64,
    samples_per_s: f64,
    readers: usize,
    /// Samples that could not be read.
    bad_samples: u64,
    /// The rate under `--read-limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_mb_per_s: Option<f64>,
}

/// The load on the memory.
#[derive(Clone, Debug, Serialize)]
struct MemoryFigures {
    available_mib: Option<f64>,
    peak_rss_mib: Option<f64>,
    copy_gb_per_s: f64,
    /// Written into batches at the rate of the training run.
    batches_gb_per_s: f64,
}

/// All of it. Its text ends in the verdict.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    recipe: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    data: DataFigures,
    disk: DiskFigures,
    #[cfg(feature = "remote")]
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreFigures>,
    memory: MemoryFigures,
    gpus: Devices,
    /// From the page cache, with nobody to wait for: one worker, and all of them.
    one_worker: ReportFigures,
    all_workers: ReportFigures,
    /// As training does it.
    training: ReportFigures,
    /// The time of the training step when batches cost nothing; `None` where it takes no time.
    step_alone_per_s: Option<f64>,
    shuffle: ShuffleQuality,
    changes: Vec<Change>,
    verdict: String,
    #[serde(skip)]
    stages: String,
    /// The report of the training run, for plots.
    #[serde(skip)]
    report: Report,
}

impl Findings {
    /// Adds plots of rates and of the workers' time, and the text.
    pub(super) fn plot(&self, page: &mut Page) {
        let bar = |label: &str, rate: f64| Bar {
            label: label.to_owned(),
            value: rate,
            text: format!("{rate:.0} samples/s"),
        };
        let mut rates = vec![
            bar("disk, all readers", self.disk.samples_per_s),
            bar("one worker", self.one_worker.capacity()),
            bar("all workers", self.all_workers.capacity()),
            bar("training", self.report.rate()),
            bar("without the limit", self.report.reachable()),
        ];
        rates.extend(self.step_alone_per_s.map(|rate| bar("step alone", rate)));
        page.text("Verdict", &self.verdict);
        page.bars("Rates", &rates);
        page.shares("Shares of the workers' time in training", &self.report);
        page.text("Findings", self);
    }

    pub(super) fn new(
        recipe: String,
        work: &Work,
        limit: Option<f64>,
        found: &Measured,
        gpus: Devices,
    ) -> Self {
        let plan = if let Work::Images(recipe) = work { Some(recipe.to_string()) } else { None };
        let megabytes = |bytes: f64| rounded(bytes / 1e6, 1);
        let (one, all) = found.disk;
        let stats = found.training.stats();
        let disk = DiskFigures {
            one_reader_mb_per_s: megabytes(one.bytes_per_s),
            one_reader_samples_per_s: rounded(one.samples_per_s, 0),
            mb_per_s: megabytes(all.bytes_per_s),
            samples_per_s: rounded(all.samples_per_s, 0),
            readers: stats.workers,
            bad_samples: one.bad_samples.max(all.bad_samples),
            limit_mb_per_s: limit,
        };
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let slab_bytes = stats.slab_bytes as f64;
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let batches = stats.batches as f64;
        let seconds = found.training.elapsed().as_secs_f64();
        let written = if seconds > 0.0 { slab_bytes * batches / seconds } else { 0.0 };
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let available = memory::available_bytes().map(|bytes| bytes as f64 / 1048576.0);
        let memory = MemoryFigures {
            available_mib: available.map(|mib| rounded(mib, 0)),
            peak_rss_mib: machine::peak_rss_mib().map(|mib| rounded(mib, 1)),
            copy_gb_per_s: rounded(found.copy_rate / 1e9, 2),
            batches_gb_per_s: rounded(written / 1e9, 3),
        };
        Self {
            recipe,
            plan,
            data: found.data.clone(),
            disk,
            #[cfg(feature = "remote")]
            store: found.store.clone(),
            memory,
            gpus,
            one_worker: (&found.one).into(),
            all_workers: (&found.warm).into(),
            training: (&found.training).into(),
            step_alone_per_s: found.replay.map(|rate| rounded(rate, 1)),
            shuffle: found.shuffle,
            changes: changes(found),
            verdict: found.training.verdict(),
            stages: table(&found.training),
            report: found.training.clone(),
        }
    }
}

/// The stages of a report, without its verdict.
fn table(report: &Report) -> String {
    let text = report.to_string();
    let lines: Vec<&str> = text.lines().collect();
    lines.split_last().map(|(_, table)| table.join("\n")).unwrap_or_default()
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recipe, data, disk, memory, .. } = self;
        let samples = data.samples;
        let kilobytes = data.bytes_per_sample / 1e3;
        writeln!(
            f,
            "data      {samples} samples of {kilobytes:.1} kB, open in {:.3} s",
            data.open_s
        )?;
        #[cfg(feature = "remote")]
        if let Some(store) = &self.store {
            writeln!(f, "store     {store}")?;
        }
        let (what, how, warm) = if data.is_in_store {
            ("reads", "one at a time by each worker", "as fast as the store allows")
        } else {
            ("disk", "past the page cache", "from the page cache")
        };
        writeln!(
            f,
            "{what:<9} {:.0} MB/s and {:.0} samples/s {how}, one reader {:.0} MB/s",
            disk.mb_per_s, disk.samples_per_s, disk.one_reader_mb_per_s
        )?;
        if disk.bad_samples > 0 {
            writeln!(f, "          {} samples could not be read", disk.bad_samples)?;
        }
        if let Some(limit) = disk.limit_mb_per_s {
            writeln!(f, "          taken for a disk of {limit} MB/s below")?;
        }
        write!(
            f,
            "memory    copies {:.1} GB/s, batches need {:.2}",
            memory.copy_gb_per_s, memory.batches_gb_per_s
        )?;
        if let (Some(peak), Some(free)) = (memory.peak_rss_mib, memory.available_mib) {
            write!(f, "; {peak:.0} MiB used at most, {free:.0} MiB free")?;
        }
        writeln!(f)?;
        writeln!(f, "gpus      {}", self.gpus)?;
        writeln!(
            f,
            "workers   {recipe} {warm}: {:.0} samples/s with one, {:.0} with {}",
            self.one_worker.capacity(),
            self.all_workers.capacity(),
            self.all_workers.workers()
        )?;
        if let Some(rate) = self.step_alone_per_s {
            writeln!(f, "step      {rate:.0} samples/s if batches cost nothing")?;
        }
        writeln!(f, "shuffle   {}", self.shuffle)?;
        writeln!(f, "\ntraining  {}", self.stages)?;
        if self.changes.is_empty() {
            writeln!(f, "\nto change: nothing that was tried makes it faster")?;
        } else {
            writeln!(f, "\nto change, the best first")?;
        }
        for change in &self.changes {
            writeln!(f, "  {change}")?;
        }
        write!(f, "\n{}", self.verdict)
    }
}
