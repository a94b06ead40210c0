//! What to change, with the rate that it would give: measured where it could be, an estimate
//! otherwise.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{Limit, Report, ShuffleQuality, Stage};

use super::disk::ReadRate;
use super::findings::DataFigures;
use super::memory;
use crate::figures::rounded;

/// A gain below this is not worth a line.
const WORTH: f64 = 1.03;

/// A disk gives so many times as much to several readers before it is worth saying.
const SEVERAL: f64 = 1.3;

/// Part of the free memory that a cache may take without others missing it.
const FOR_CACHES: f64 = 0.5;

/// What was measured.
pub(super) struct Measured {
    pub(super) data: DataFigures,
    /// From the page cache with all workers, and with one.
    pub(super) warm: Report,
    pub(super) one: Report,
    /// Past the page cache, one reader and one for every worker.
    pub(super) disk: (ReadRate, ReadRate),
    /// The same work done otherwise: what is changed, and samples a second.
    pub(super) variants: Vec<(String, f64)>,
    /// As training does it.
    pub(super) training: Report,
    /// Samples a second that the training step takes by itself, if it takes any time.
    pub(super) replay: Option<f64>,
    /// Whether the disk was taken for a slower one.
    pub(super) is_throttled: bool,
    /// Bytes a second.
    pub(super) copy_rate: f64,
    pub(super) shuffle: ShuffleQuality,
}

/// Something to change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    what: String,
    /// Samples a second with it; `None` where it has no effect on the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_s: Option<f64>,
    /// Whether that was measured.
    measured: bool,
}

impl Change {
    fn estimate(what: impl Into<String>, rate: f64) -> Self {
        Self { what: what.into(), samples_per_s: Some(rounded(rate, 0)), measured: false }
    }

    fn advice(what: impl Into<String>) -> Self {
        Self { what: what.into(), samples_per_s: None, measured: false }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.samples_per_s else { return f.write_str(&self.what) };
        let how = if self.measured { "measured" } else { "estimated" };
        write!(f, "{}: {rate:.0} samples/s ({how})", self.what)
    }
}

/// What helps against the limit, the best first.
pub(super) fn changes(found: &Measured) -> Vec<Change> {
    let Some(limit) = found.training.limit() else { return Vec::new() };
    let mut changes = match limit {
        Limit::Stage(Stage::Read) => for_reading(found),
        Limit::Stage(stage) => for_processing(found, stage),
        Limit::Consumer | _ => return for_consumer(found),
    };
    // Nothing makes the consumer faster than it is by itself.
    let (now, most) = (found.training.rate(), found.training.demand());
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
    let (rate, one) = (found.training.rate(), found.one.capacity());
    let mut changes = vec![Change::advice("nothing in the loader: the training step is slower")];
    let workers = found.training.stats().workers;
    if one > 0.0 && workers > 1 {
        // One more than just enough, for samples are not alike.
        #[expect(clippy::cast_possible_truncation, reason = "limited by the number of workers")]
        #[expect(clippy::cast_sign_loss, reason = "rates are not negative")]
        let enough = (rate / one).ceil().min(1024.0) as usize + 1;
        if enough < workers {
            changes.push(Change::advice(format!(
                "--workers {enough} would be enough, and leave more of the processor to training"
            )));
        }
    }
    changes
}

fn for_reading(found: &Measured) -> Vec<Change> {
    let mut changes = Vec::new();
    let warm = found.warm.capacity();
    let gigabytes = found.data.bytes() / 1e9;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let free = memory::available_bytes().map_or(0.0, |bytes| FOR_CACHES * bytes as f64);
    if found.data.bytes() <= free {
        let what = format!("--cache-memory {gigabytes:.1}G, from the second epoch on");
        changes.push(Change::estimate(what, warm));
    } else {
        let what = format!("--cache-dir on a faster disk with {gigabytes:.1} GB to spare");
        changes.push(Change::estimate(what, warm));
    }
    let (one, all) = found.disk;
    if !found.is_throttled && all.bytes_per_s > SEVERAL * one.bytes_per_s {
        changes
            .push(Change::advice("--readers: this disk gives more to several readers at a time"));
    }
    let need = found.data.bytes_per_sample * warm / 1e6;
    changes.push(Change::advice(format!(
        "a disk of {need:.0} MB/s: what the workers could use of this data set"
    )));
    changes
}

fn for_processing(found: &Measured, stage: Stage) -> Vec<Change> {
    let mut changes: Vec<Change> = found
        .variants
        .iter()
        .map(|(what, rate)| Change {
            what: what.clone(),
            samples_per_s: Some(rounded(*rate, 0)),
            measured: true,
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = found.training.stats().workers;
    if workers < cores {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let factor = cores as f64 / workers as f64;
        let what = format!("--workers {cores}, one per core");
        changes.push(Change::estimate(what, factor * found.warm.capacity()));
    }
    let without = |stage| {
        let stats = found.warm.stats();
        let rest = stats.stages.total().saturating_sub(stats.stages[stage]).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (workers, samples) = (stats.workers as f64, stats.processed as f64);
        if rest > 0.0 { workers * samples / rest } else { 0.0 }
    };
    match stage {
        Stage::Decode => {
            let gigabytes = found.data.pixels_per_sample * 3.0 / 1e9;
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let decoded = gigabytes * found.data.samples as f64;
            let space = if decoded > 0.0 { format!(", {decoded:.1} GB") } else { String::new() };
            changes.push(Change::estimate(
                format!("--cache decoded, from the second epoch on{space}"),
                without(Stage::Decode),
            ));
            changes.push(Change::estimate(
                "tl convert --to raw --size N: decode once and for all",
                without(Stage::Decode),
            ));
            changes.push(Change::advice(
                "tl convert --jpeg-index: crops of JPEG files start where they begin",
            ));
        }
        Stage::Transform => changes.push(Change::advice(
            "tl explain RECIPE: which operations need whole images; drop or shrink the dearest",
        )),
        Stage::Overhead => {
            changes.push(Change::advice("larger batches: the samples are hardly any work"));
        }
        Stage::Read | Stage::Write | Stage::Finish | _ => {}
    }
    changes
}
