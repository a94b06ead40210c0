//! `tl stats`: mean and deviation of pixels, classes and sizes of shards.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use turboloader::Statistics;
use turboloader::job::Task;

use crate::args::{GlobalArgs, JobArgs};
use crate::failure::{Failure, Verdict};
use crate::job;
use crate::output::Stdout;

/// Count the samples of shards: mean and standard deviation of pixels, classes, formats and sizes
///
/// Every image is decoded to 8-bit RGB, which finds damaged ones. Sums are whole numbers, so the
/// result is the same to the bit for any order of the shards and any number of threads. The report has
/// a line for each shard with its figures and its damaged samples. Exits with 1 if some are damaged;
/// the figures are then those of the others.
///
/// Classes are counted by name, so that shards may number them differently.
///
/// Examples:
///   tl stats train.tbl
///   tl stats 's3://bucket/train-{000..127}.tar' --records counted --report train.jsonl
///   tl stats shards/*.parquet --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, TBL and Parquet files, folders, patterns of URLs, names with ranges
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    job: JobArgs,

    /// Print the totals as one JSON object, the last line of the report
    #[arg(long)]
    json: bool,

    /// Shards that are worked on at the same time (default: one per core)
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Counts.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut stdout = Stdout::open()?;
    let totals = job::run(&args.files, Task::Stats, None, &args.job, args.jobs, false, global)?;
    if args.json {
        stdout.bytes(totals.line().as_bytes())?;
    } else {
        stdout.line(&format_args!("samples {}, bytes {}", totals.samples, totals.sample_bytes))?;
        if let (Some(mean), Some(std)) = (totals.mean, totals.std) {
            stdout.line(&format_args!("mean ({}), std ({})", numbers(mean), numbers(std)))?;
        }
        if let Some(statistics) = &totals.statistics {
            lines(statistics, &mut stdout)?;
        }
    }
    stdout.finish()?;
    job::verdict(&totals)
}

fn numbers(numbers: [f64; 3]) -> String {
    numbers.map(|number| format!("{number:.4}")).join(", ")
}

fn lines(statistics: &Statistics, stdout: &mut Stdout) -> Result<(), Failure> {
    let Statistics { formats, classes, unlabelled, image_sizes, sample_bytes, .. } = statistics;
    stdout.line(&format_args!("formats: {}", most_frequent(formats)))?;
    stdout
        .line(&format_args!("classes: {}; without a label {unlabelled}", most_frequent(classes)))?;
    stdout.line(&format_args!("sizes in pixels: {}", most_frequent(image_sizes)))?;
    stdout.line(&format_args!("sizes in bytes, at most: {}", most_frequent(sample_bytes)))
}

/// Counts that are printed; JSON has all.
const MAX_COUNTS: usize = 10;

/// The number of keys, and the most frequent ones with their counts.
fn most_frequent<K: Display + Ord>(counts: &BTreeMap<K, u64>) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    // Equal counts keep the order of their keys.
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let listed = sorted.iter().take(MAX_COUNTS).map(|(key, count)| format!("{key} {count}"));
    let listed: Vec<_> = listed.collect();
    let more = counts.len().saturating_sub(MAX_COUNTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", listed.join(", "))
}
