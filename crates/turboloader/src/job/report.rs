//! The report of a job: the records in the order of the shards, and their totals.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use tbl_io::{Draft, Placement, Stores, WriteError};

use super::{Job, JobError, Record, Status};
use crate::statistics::Statistics;

/// Damaged and failed shards that the totals name; all are counted.
const MAX_NAMED: usize = 100;

/// Adds the records of a job, in any order, and writes them as lines of JSON in the order of the
/// shards, with the totals as the last line.
///
/// A record is kept in memory until those before it have come. The file appears when it is complete.
#[derive(Debug)]
pub struct Report {
    file: Option<ReportFile>,
    shards: usize,
    next: usize,
    early: BTreeMap<usize, Record>,
    totals: Totals,
}

#[derive(Debug)]
struct ReportFile {
    draft: BufWriter<Draft>,
    path: PathBuf,
}

/// The totals of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    schema: &'static str,
    /// The task with its settings.
    pub task: Value,
    /// The shards.
    pub shards: u64,
    /// Those that are good.
    pub good: u64,
    /// Those that are damaged.
    pub damaged: u64,
    /// Those that the system, the store or the settings refused.
    pub failed: u64,
    /// Samples of the shards that could be worked on.
    pub samples: u64,
    /// Bytes of their good samples.
    pub sample_bytes: u64,
    /// Samples that are damaged.
    pub bad_samples: u64,
    /// Bytes of the files that were written.
    pub output_bytes: u64,
    /// The first 100 shards that are not good, in the order of the shards.
    pub not_good: Vec<NotGood>,
    /// The statistics of all good samples, if the task makes some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
    /// The mean of red, green and blue, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<[f64; 3]>,
    /// The standard deviation of red, green and blue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<[f64; 3]>,
}

/// A shard that is damaged or has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotGood {
    /// The shard.
    pub source: String,
    /// The end of the work.
    pub status: Status,
    /// The error, or the first defect; either names the shard.
    pub reason: String,
}

impl Report {
    /// The report of a job, which replaces an earlier one; without a place for one, it only adds up.
    ///
    /// # Errors
    /// [`JobError::Write`] if nothing can be written there.
    pub fn new(stores: &Stores, job: &Job) -> Result<Self, JobError> {
        let placement = Placement { overwrite: true, sync: true };
        let file = match &job.report {
            None => None,
            Some(location) => {
                let draft = stores.create(location, placement)?;
                let path = draft.target().to_owned();
                Some(ReportFile { draft: BufWriter::new(draft), path })
            }
        };
        let totals = Totals::new(job.task.settings());
        Ok(Self { file, shards: job.shards.len(), next: 0, early: BTreeMap::new(), totals })
    }

    /// Adds the record of a shard, each once.
    ///
    /// # Errors
    /// [`JobError::Write`].
    pub fn add(&mut self, shard: usize, record: Record) -> Result<(), JobError> {
        self.early.insert(shard, record);
        while let Some(record) = self.early.remove(&self.next) {
            self.next += 1;
            self.totals.add(&record);
            self.write(&record.line())?;
        }
        Ok(())
    }

    /// How many shards are written: each before the first one whose record has not come. To bound the
    /// records in memory, do not begin shards far after it.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.next
    }

    /// Completes the report.
    ///
    /// # Errors
    /// [`JobError::Write`], and [`JobError::Stopped`] if the records of some shards were not added.
    pub fn finish(mut self) -> Result<Totals, JobError> {
        if self.next != self.shards {
            return Err(JobError::Stopped { done: self.next, shards: self.shards });
        }
        self.totals.finish();
        let line = self.totals.line();
        self.write(&line)?;
        if let Some(ReportFile { draft, path }) = self.file {
            let fault = |source| WriteError::Io { path: path.clone(), source };
            let draft = draft.into_inner().map_err(|error| fault(error.into_error()))?;
            draft.commit().map_err(fault)?;
        }
        Ok(self.totals)
    }

    fn write(&mut self, line: &str) -> Result<(), JobError> {
        let Some(ReportFile { draft, path }) = &mut self.file else { return Ok(()) };
        let written = draft.write_all(line.as_bytes());
        Ok(written.map_err(|source| WriteError::Io { path: path.clone(), source })?)
    }
}

impl Totals {
    fn new(task: Value) -> Self {
        Self {
            schema: "tl.job/1",
            task,
            shards: 0,
            good: 0,
            damaged: 0,
            failed: 0,
            samples: 0,
            sample_bytes: 0,
            bad_samples: 0,
            output_bytes: 0,
            not_good: Vec::new(),
            statistics: None,
            mean: None,
            std: None,
        }
    }

    fn add(&mut self, record: &Record) {
        self.shards += 1;
        match record.status {
            Status::Good => self.good += 1,
            Status::Damaged => self.damaged += 1,
            Status::Failed => self.failed += 1,
        }
        let add = |total: &mut u64, count: u64| *total = total.saturating_add(count);
        add(&mut self.samples, record.samples);
        add(&mut self.sample_bytes, record.sample_bytes);
        add(&mut self.bad_samples, record.bad_samples);
        add(&mut self.output_bytes, record.output_bytes.unwrap_or_default());
        if record.status != Status::Good && self.not_good.len() < MAX_NAMED {
            self.not_good.push(NotGood {
                source: record.source.clone(),
                status: record.status,
                reason: record.reason(),
            });
        }
        if let Some(statistics) = &record.statistics {
            *self.statistics.get_or_insert_default() += statistics;
        }
    }

    fn finish(&mut self) {
        self.mean = self.statistics.as_ref().and_then(Statistics::mean);
        self.std = self.statistics.as_ref().and_then(Statistics::deviation);
    }

    /// The totals as a line of JSON.
    #[must_use]
    pub fn line(&self) -> String {
        // Keys are texts and numbers, and nothing else fails.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// Whether all shards are good.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.damaged == 0 && self.failed == 0
    }
}
