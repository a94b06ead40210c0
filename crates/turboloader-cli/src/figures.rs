//! A loader's report as numbers for programs.

use serde::Serialize;
use tl_pipeline::{Limit, ReaderStats, Report, Stage, UploadStats};

/// `value` with `digits` digits after the point.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// The text of a [`Report`].
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReportFigures {
    /// The stage that limits, `readers` or `consumer`; `None` before anything was done.
    limit: Option<&'static str>,
    samples_per_s: f64,
    /// The rate without the limit.
    reachable_per_s: f64,
    /// The rate of the workers when nothing keeps them waiting.
    capacity_per_s: f64,
    /// Parts of the consumer's and the workers' time, 0 to 1.
    consumer_waits: f64,
    workers_wait: f64,
    stages: Vec<StageFigures>,
    /// The readers, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    readers: Option<ReaderFigures>,
    /// The copies to a device, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<CopyFigures>,
    ready_batches: f64,
    prefetch: usize,
    workers: usize,
    bytes_read: u64,
    slabs: u64,
    slab_bytes: u64,
    skipped: u64,
    damaged: u64,
    verdict: String,
}

impl ReportFigures {
    /// Samples a second that the workers can make.
    pub(crate) fn capacity(&self) -> f64 {
        self.capacity_per_s
    }

    /// How many workers there were.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }
}

/// The cost of a stage.
#[derive(Clone, Debug, Serialize)]
struct StageFigures {
    stage: &'static str,
    us_per_sample: f64,
    /// Part of the workers' time, 0 to 1.
    share: f64,
}

/// The work of the threads that read ahead of the workers, and their lead.
#[derive(Clone, Debug, Serialize)]
struct ReaderFigures {
    /// Samples that can be read at once, and the part of them that was being read on average.
    readers: usize,
    used: f64,
    us_per_sample: f64,
    bytes_read: u64,
    /// Samples that were ready when a worker asked for its own, on average.
    samples_ahead: f64,
    /// At the end: being read, ready, and the bytes of both.
    reading: u64,
    ready: u64,
    bytes: u64,
    /// Parts of the workers' time, 0 to 1; reading for readers is part of the stage `read`.
    workers_wait: f64,
    workers_read: f64,
    /// Samples that workers read instead.
    late: u64,
}

/// The copies of batches to a device.
#[derive(Clone, Debug, Serialize)]
struct CopyFigures {
    batches: u64,
    bytes: u64,
    /// While the device copied or converted.
    gb_per_s: f64,
    device_ms: f64,
    /// Bytes of its memory.
    allocated: u64,
    /// Images that nvJPEG decoded, for a recipe that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    nvjpeg: Option<u64>,
}

impl CopyFigures {
    fn of(report: &Report) -> Option<Self> {
        let UploadStats { batches, bytes, allocated, nvjpeg, .. } = report.stats().uploads;
        let uploads = &report.stats().uploads;
        (batches > 0).then(|| Self {
            batches,
            bytes,
            gb_per_s: rounded(uploads.bytes_per_second() / 1e9, 2),
            device_ms: rounded(uploads.device_time().as_secs_f64() * 1e3, 3),
            allocated,
            nvjpeg: (nvjpeg > 0).then_some(nvjpeg),
        })
    }
}

impl ReaderFigures {
    fn of(report: &Report) -> Option<Self> {
        let ReaderStats { readers, bytes_read, reading, ready, bytes, late, .. } =
            report.stats().readers;
        (readers > 0).then(|| Self {
            readers,
            used: rounded(report.reader_use(), 4),
            us_per_sample: rounded(report.per_read().as_secs_f64() * 1e6, 2),
            bytes_read,
            samples_ahead: rounded(report.read_ahead(), 2),
            reading,
            ready,
            bytes,
            workers_wait: rounded(report.reader_wait(), 4),
            workers_read: rounded(report.late(), 4),
            late,
        })
    }
}

impl From<&Report> for ReportFigures {
    fn from(report: &Report) -> Self {
        let stats = report.stats();
        let stage = |stage: Stage| StageFigures {
            stage: stage.name(),
            us_per_sample: rounded(report.per_sample(stage).as_secs_f64() * 1e6, 2),
            share: rounded(report.share(stage), 4),
        };
        Self {
            limit: report.limit().map(limit_name),
            samples_per_s: rounded(report.rate(), 1),
            reachable_per_s: rounded(report.reachable(), 1),
            capacity_per_s: rounded(report.capacity(), 1),
            consumer_waits: rounded(report.consumer_wait(), 4),
            workers_wait: rounded(report.worker_wait(), 4),
            stages: Stage::ALL.map(stage).into(),
            readers: ReaderFigures::of(report),
            copies: CopyFigures::of(report),
            ready_batches: rounded(report.ready(), 2),
            prefetch: stats.prefetch,
            workers: stats.workers,
            bytes_read: stats.bytes_read,
            slabs: stats.slabs,
            slab_bytes: stats.slab_bytes,
            skipped: stats.skipped,
            damaged: stats.damaged,
            verdict: report.verdict(),
        }
    }
}

/// The name of what limits.
pub(crate) fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Stage(stage) => stage.name(),
        Limit::Readers => "readers",
        Limit::Consumer | _ => "consumer",
    }
}
