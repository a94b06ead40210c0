//! `tl verify`: is every byte of a data set or table what it should be?

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::Serialize;
use tbl_io::{Finding, Location, Prepare, VerifySummary};
use turboloader::job::Task;
use turboloader::{HeaderCheck, StrictDecode};

use crate::args::{GlobalArgs, JobArgs, KeyArgs};
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::job;
use crate::output::{self, Progress, Stdout};
use crate::text::{Key, one_line};

/// Findings listed in a JSON object; the counts are exact all the same.
pub(crate) const MAX_LISTED: usize = 10_000;

/// Check a data set or table: header, index, metadata, every sample, block and region
///
/// Exits with 1 and names every bad sample when it finds damage, and with 1 for an archive or a
/// folder without samples. A sample whose label cannot be read is bad. Warnings, such as samples
/// without a label among labelled ones, are not damage.
/// Width and height in the index of a TBL file are compared with the image's header; a format that
/// differs is a warning, because a sample's format comes from its name.
///
/// Stored indexes of videos are compared with the videos. With --decode all frames are decoded too,
/// unless this program has no decoder of their codec (tl info says so).
///
/// Several files, a pattern, a name with ranges or a shard index are checked as one data set: samples
/// have their numbers in it, findings name the shard, and a name that samples of different shards share
/// is a warning. Shards of an index are read in the version that was indexed. If a shard cannot be
/// opened because it is damaged, the others are checked and numbered without it.
///
/// For an IDV file, which has no checksums, every block and piece of metadata is read and decoded.
/// For a TBF segment every checksum, gap and region is checked, also compressed ones, and encrypted
/// ones with their key. Without the key they are listed and the command exits with 2.
///
/// With --each the files are checked by themselves, on several threads: a job over thousands of shards,
/// which continues when it is started again.
///
/// Examples:
///   tl verify train.tbl --decode
///   tl verify 's3://bucket/train-{000..127}.tar'
///   tl verify 's3://bucket/train-{000..127}.tar' --each --records checked --report checked.jsonl
///   tl verify segment.tbf --key-file segment.key
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files, checked as one data set; or an IDV file or a TBF segment
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Check each file by itself
    #[arg(long)]
    pub(crate) each: bool,

    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// Decode every image and every frame as well, and compare stored row indexes with the images
    #[arg(long)]
    pub(crate) decode: bool,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Worker threads (default: one per core)
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Checks.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    if args.each {
        return check_each(args, global);
    }
    if args.job.is_given() {
        return Err(job::NEEDS_EACH);
    }
    #[cfg(feature = "tables")]
    if let Some(verdict) = crate::table::verify::run(args, global)? {
        return Ok(verdict);
    }
    data_set::refuse_tables(global, &args.files)?;
    if args.decode {
        check(args, StrictDecode::new, global)
    } else {
        check(args, HeaderCheck::default, global)
    }
}

/// Checks shards by themselves.
fn check_each(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    if args.key.key_file.is_some() {
        let what = "--key-file is for one TBF segment: leave out --each";
        return Err(Failure::Usage { what });
    }
    let mut stdout = Stdout::open()?;
    let task = Task::Verify { decode: args.decode };
    let totals = job::run(&args.files, task, None, &args.job, args.jobs, false, global)?;
    if args.json {
        stdout.bytes(totals.line().as_bytes())?;
        stdout.finish()?;
    }
    job::verdict(&totals)
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    file: &'a str,
    good: bool,
    #[serde(skip_serializing_if = "is_one")]
    shards: u64,
    samples: u64,
    bytes: u64,
    decoded: bool,
    bad_samples: u64,
    damaged_structures: u64,
    warnings: u64,
    /// The first [`MAX_LISTED`] of all kinds together.
    findings: Vec<Listed>,
}

/// One finding in JSON.
#[derive(Debug, Serialize)]
struct Listed {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    reason: String,
}

fn check<C: Prepare>(
    args: &Args,
    new_check: impl Fn() -> C + Sync,
    global: &GlobalArgs,
) -> Result<Verdict, Failure> {
    let workers = args.jobs.unwrap_or_else(output::default_workers);
    let name = data_set::name(global, &args.files);
    let file = match &*args.files {
        [file] => file.to_string_lossy(),
        _ => Cow::Borrowed(&*name),
    };
    let mut stdout = Stdout::open()?;
    let mut progress: Option<Progress> = None;
    let mut listed = Vec::new();
    let mut first = None;
    let mut printed = Ok(());
    let summary =
        tbl_io::verify(&global.stores(), &args.files, workers, new_check, &mut |finding| {
            if let Finding::Progress { samples, of } = finding {
                progress.get_or_insert_with(|| Progress::new(global, of)).set(samples);
                return ControlFlow::Continue(());
            }
            let finding = Listed::new(&finding);
            if first.is_none() && finding.kind != "warning" {
                first = Some(finding.sentence());
            }
            if args.json {
                if listed.len() < MAX_LISTED {
                    listed.push(finding);
                }
                return ControlFlow::Continue(());
            }
            printed = stdout.line(&finding.sentence());
            if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    printed?;
    let summary = match summary {
        Err(error) if args.json && error.is_damage() => {
            // A file that does not even open has an answer too.
            let reason = one_line(&error);
            let finding = Listed { reason, ..Listed::of("damage") };
            let summary =
                VerifySummary { shards: 1, damaged_structures: 1, ..VerifySummary::default() };
            stdout.json_line(&Report::new(&file, args.decode, summary, vec![finding]))?;
            stdout.finish()?;
            return Err(error.into());
        }
        other => other?,
    };
    drop(progress);
    if args.json {
        stdout.json_line(&Report::new(&file, args.decode, summary, listed))?;
    } else if summary.is_good() {
        stdout.line(&good_line(&name, summary, args.decode))?;
    }
    stdout.finish()?;
    let Some(first) = first else { return Ok(Verdict::Good) };
    let VerifySummary { samples, bad_samples, damaged_structures, .. } = summary;
    let elsewhere = if damaged_structures > 0 { " and damage outside them" } else { "" };
    output::report(&format_args!(
        "{name}: damaged: {bad_samples} of {samples} samples bad{elsewhere}, the first: {first}"
    ));
    Ok(Verdict::Bad)
}

fn good_line(name: &str, summary: VerifySummary, decoded: bool) -> String {
    let VerifySummary { shards, samples, sample_bytes, oddities, .. } = summary;
    let how = if decoded { "read and decoded" } else { "read" };
    let warnings = if oddities > 0 { format!(", {oddities} warnings") } else { String::new() };
    let of = if shards > 1 { format!(" in {shards} shards") } else { String::new() };
    format!("{name}: good: {samples} samples{of}, {sample_bytes} bytes {how}{warnings}")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

impl<'a> Report<'a> {
    fn new(file: &'a str, decoded: bool, summary: VerifySummary, findings: Vec<Listed>) -> Self {
        Self {
            schema: "tl.verify/1",
            file,
            good: summary.is_good(),
            shards: summary.shards,
            samples: summary.samples,
            bytes: summary.sample_bytes,
            decoded,
            bad_samples: summary.bad_samples,
            damaged_structures: summary.damaged_structures,
            warnings: summary.oddities,
            findings,
        }
    }
}

impl Listed {
    /// A finding of which only the kind is known.
    fn of(kind: &'static str) -> Self {
        Self { kind, shard: None, index: None, key: None, offset: None, reason: String::new() }
    }

    fn new(finding: &Finding<'_>) -> Self {
        let mut listed = Self::of("damage");
        let named = |shard: Option<&Location>| {
            shard.map(|shard| Key(shard.as_os_str().as_bytes().to_vec()))
        };
        match *finding {
            Finding::Damage { shard, reason } => {
                listed.shard = named(shard);
                listed.reason = reason.to_string();
            }
            Finding::BadSample { shard, index, key, offset, reason } => {
                listed.shard = named(shard);
                listed.kind = "sample";
                listed.index = Some(index);
                listed.key = key.map(|key| Key(key.to_vec()));
                listed.offset = offset;
                listed.reason = reason.to_string();
            }
            Finding::Oddity { shard, oddity } => {
                listed.shard = named(shard);
                listed.kind = "warning";
                listed.reason = oddity.to_string();
            }
            Finding::Progress { .. } | _ => {}
        }
        listed
    }

    /// The finding as a line of text.
    fn sentence(&self) -> String {
        let Self { kind, shard, index, key, offset, reason } = self;
        let mut line = String::from(*kind);
        if let Some(index) = index {
            line.push_str(&format!(" {index}"));
        }
        if let Some(key) = key {
            line.push_str(&format!(" ({key})"));
        }
        if let Some(shard) = shard {
            line.push_str(&format!(" in {shard}"));
        }
        if let Some(offset) = offset {
            line.push_str(&format!(" at byte {offset}"));
        }
        line.push_str(": ");
        line.push_str(reason);
        line
    }
}
