//! Options of jobs over many shards.

use std::path::PathBuf;

use clap::Args;

/// Options of jobs over many shards.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JobArgs {
    /// The folder of the shards' records, or its URL. A shard that has a record there is done: the
    /// command that is started again continues (with convert, the default is DST/_records)
    #[arg(long, value_name = "DIR")]
    pub(crate) records: Option<PathBuf>,

    /// Write a report: a line of JSON for each shard, and a last one with the totals. A path or a URL
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl JobArgs {
    /// Whether one of them is given.
    pub(crate) const fn is_given(&self) -> bool {
        self.records.is_some() || self.report.is_some()
    }
}
