//! The record of a shard: its source, the task, and the result. It has no times of its own and no
//! names of machines, so that a shard's record is the same wherever it is made.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tbl_io::{Location, Pin, ReadError, Source};

use crate::statistics::Statistics;

/// The form of records.
const SCHEMA: &str = "tl.shard/1";

/// The result of a task on one shard, a line of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    schema: String,
    /// The data set, without credentials.
    pub source: String,
    /// The length of its file; none for a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its version: that of an object, or the time at which a local file was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The task with its settings.
    pub task: Value,
    /// The end of the work.
    pub status: Status,
    /// The file that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// The samples of the shard; of one that could not be worked on, none.
    pub samples: u64,
    /// The bytes of its good samples.
    pub sample_bytes: u64,
    /// Samples that are damaged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bad_samples: u64,
    /// The error of a shard that could not be worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The first 1,000 defects and remarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The statistics of its good samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
}

/// The end of the work on a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// The work is done, and nothing is damaged.
    Good,
    /// The shard, or a sample of it, is damaged. It stays so until the source changes.
    Damaged,
    /// The system, the store or the settings are at fault. The next run tries again.
    Failed,
}

/// A defect, or a remark on a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `sample`, `damage` outside of samples, or `warning`.
    pub kind: String,
    /// The number of the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The offset of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The defect.
    pub reason: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Record {
    /// Findings that a record lists; samples that are bad are counted all the same.
    pub(super) const MAX_FINDINGS: usize = 1_000;

    /// The record of a shard on which no work was done yet.
    pub(super) fn new(source: &Location, task: Value) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            source: source.to_string(),
            bytes: None,
            version: None,
            task,
            status: Status::Good,
            output: None,
            output_bytes: None,
            samples: 0,
            sample_bytes: 0,
            bad_samples: 0,
            error: None,
            findings: Vec::new(),
            statistics: None,
        }
    }

    /// The record of a shard whose task has failed outside of this process, such as with a machine.
    #[must_use]
    pub fn of_failure(source: &Location, task: Value, error: String) -> Self {
        Self { status: Status::Failed, error: Some(error), ..Self::new(source, task) }
    }

    /// Takes the identity of the source.
    pub(super) fn identify(&mut self, source: &Source) -> Result<(), ReadError> {
        self.bytes = Some(source.len());
        self.version = match source.version()? {
            Pin::Version(name) | Pin::Weak(name) => Some(name.to_string()),
            Pin::Unknown | _ => None,
        };
        Ok(())
    }

    /// Whether this is a result of what `asked` asks for, with the same settings.
    pub(super) fn answers(&self, asked: &Self) -> bool {
        self.schema == asked.schema
            && self.task == asked.task
            && (self.status == Status::Damaged || self.output == asked.output)
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < Self::MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// The record as a line of JSON.
    #[must_use]
    pub fn line(&self) -> String {
        // Keys are texts and numbers, and nothing else fails.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
