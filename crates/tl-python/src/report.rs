//! The numbers that a loader counts, as Python has them.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use tl_pipeline::{LevelStats, Report, RetryStats, UploadStats};

/// The use of a loader's time, and its limit.
#[pyclass(frozen, name = "Report", module = "turboloader")]
pub(crate) struct PyReport {
    report: Report,
}

#[pymethods]
impl PyReport {
    /// Samples received in a second.
    #[getter]
    fn rate(&self) -> f64 {
        self.report.rate()
    }

    /// Samples a second if what limits took no time.
    #[getter]
    fn reachable(&self) -> f64 {
        self.report.reachable()
    }

    /// The part of its time that the consumer waited, 0 to 1.
    #[getter]
    fn consumer_wait(&self) -> f64 {
        self.report.consumer_wait()
    }

    /// The part of their time that the workers waited for the consumer, 0 to 1.
    #[getter]
    fn worker_wait(&self) -> f64 {
        self.report.worker_wait()
    }

    /// Batches received.
    #[getter]
    fn batches(&self) -> u64 {
        self.report.stats().batches
    }

    /// Samples received.
    #[getter]
    fn samples(&self) -> u64 {
        self.report.stats().samples
    }

    /// Batches whose memory is in use now: in the making, ready, or with the consumer.
    #[getter]
    fn batches_in_use(&self) -> u64 {
        self.report.stats().slabs_in_use
    }

    /// The copies of batches to a device: how many, images decoded there, those of them by nvJPEG, their
    /// bytes, nanoseconds of the device for copies and conversions, and bytes of its memory. Empty
    /// without copies.
    #[getter]
    fn copies(&self) -> BTreeMap<&'static str, u64> {
        let UploadStats { batches, pictures, nvjpeg, bytes, device_nanos, allocated } =
            self.report.stats().uploads;
        if batches == 0 {
            return BTreeMap::new();
        }
        BTreeMap::from([
            ("batches", batches),
            ("decoded", pictures),
            ("nvjpeg", nvjpeg),
            ("bytes", bytes),
            ("device_nanos", device_nanos),
            ("allocated", allocated),
        ])
    }

    /// Local reads that were repeated because their errors may pass: how many, samples that were given
    /// up, and nanoseconds of waits. Zeros without any.
    #[getter]
    fn retries(&self) -> BTreeMap<&'static str, u64> {
        let RetryStats { repeated, given_up, waited, .. } = self.report.stats().retries;
        let wait_nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        BTreeMap::from([("repeated", repeated), ("given_up", given_up), ("wait_nanos", wait_nanos)])
    }

    /// The limit of the loader, in one sentence.
    #[getter]
    fn verdict(&self) -> String {
        self.report.verdict()
    }

    /// The rate, the part of the time waited for batches, the limit, and the batches in use, in one line
    /// of less than 80 columns.
    #[getter]
    fn line(&self) -> String {
        self.report.line()
    }

    /// The report on what came after ``earlier``, a report of the same loader.
    fn since(&self, earlier: &Self) -> Self {
        Report::new(self.report.stats().since(earlier.report.stats())).into()
    }

    fn __str__(&self) -> String {
        self.report.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Report({})", self.report.verdict())
    }
}

impl From<Report> for PyReport {
    fn from(report: Report) -> Self {
        Self { report }
    }
}

/// The contents and counters of one cache by name.
pub(crate) fn counters(level: LevelStats) -> BTreeMap<&'static str, u64> {
    let LevelStats { hits, misses, inserted, refused, evicted, entries, bytes, .. } = level;
    BTreeMap::from([
        ("hits", hits),
        ("misses", misses),
        ("inserted", inserted),
        ("refused", refused),
        ("evicted", evicted),
        ("entries", entries),
        ("bytes", bytes),
    ])
}
