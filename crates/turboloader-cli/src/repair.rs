//! `tl repair`: the good samples of a damaged file in a new one, and a list of the lost.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::Serialize;
use tbl_io::{Escaped, RepairEvent, RepairOptions, RepairSummary};
use turboloader::Probe;

use crate::args::GlobalArgs;
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::output::{self, Stdout};
use crate::text::Key;

/// Losses listed in a JSON object; the counts are exact all the same.
const MAX_LISTED: usize = 10_000;

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    file: &'a str,
    output: &'a str,
    kept: u64,
    lost: u64,
    restored: u64,
    without_fields: u64,
    without_row_index: u64,
    without_name: u64,
    without_label: u64,
    without_metadata: u64,
    unreadable_labels: u64,
    damaged_metadata: bool,
    damaged_structures: u64,
    guessed_count: bool,
    bytes: u64,
    /// The first [`MAX_LISTED`].
    losses: Vec<Loss>,
}

/// One loss, or one damage without a loss.
#[derive(Debug, Serialize)]
struct Loss {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    reason: String,
}

/// Copy the good samples of a damaged file into a new one and list the lost ones
///
/// Exits with 0 when nothing was lost, and with 1 when something was lost or a label that was kept
/// cannot be read. If everything was lost, no file is written. A file that is neither a TBL file
/// nor a TAR archive is refused with 1. The new file has the format of the damaged one, so a TAR
/// archive is not written as .tbl.
///
/// Example:
///   tl repair damaged.tbl -o saved.tbl
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The damaged file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The file to write
    #[arg(short, long, value_name = "DST")]
    pub(crate) output: PathBuf,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace the destination if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Repairs.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let options = RepairOptions { sync: !args.no_sync, overwrite: args.force };
    data_set::refuse_tables(global, &[&args.file])?;
    let mut stdout = Stdout::open()?;
    let mut losses = Vec::new();
    let mut printed = Ok(());
    let summary = tbl_io::repair(&args.file, &args.output, options, Probe, &mut |event| {
        let loss = Loss::new(&event);
        if args.json {
            if losses.len() < MAX_LISTED {
                losses.push(loss);
            }
        } else if printed.is_ok() {
            printed = stdout.line(&loss.sentence());
        }
    })?;
    printed?;
    let RepairSummary { kept, lost, restored, without_fields, .. } = summary;
    if args.json {
        let file = args.file.to_string_lossy();
        let output = args.output.to_string_lossy();
        stdout.json_line(&Report {
            schema: "tl.repair/1",
            file: &file,
            output: &output,
            kept,
            lost,
            restored,
            without_fields,
            without_row_index: summary.without_row_index,
            without_name: summary.without_name,
            without_label: summary.without_label,
            without_metadata: summary.without_metadata,
            unreadable_labels: summary.unreadable_labels,
            damaged_metadata: summary.damaged_metadata,
            damaged_structures: summary.damaged_structures,
            guessed_count: summary.guessed_count,
            bytes: summary.file_bytes,
            losses,
        })?;
    } else if summary.file_bytes == 0 {
        stdout
            .line(&format_args!("{}: not written, nothing can be saved", args.output.display()))?;
    } else {
        let output = args.output.display();
        stdout.line(&format_args!(
            "{output}: {kept} kept, {restored} of them with a new index entry, {lost} lost"
        ))?;
        let without = summary.without_row_index;
        if without > 0 {
            stdout.line(&format_args!(
                "{output}: {without} without the row index they had; tl convert --jpeg-index makes it anew"
            ))?;
        }
    }
    stdout.finish()?;
    if summary.is_complete() {
        return Ok(Verdict::Good);
    }
    let lost = if summary.file_bytes == 0 { "all".to_owned() } else { lost.to_string() };
    let counts = [
        (summary.without_name, "without the names they had"),
        (summary.without_label, "without the labels they had"),
        (without_fields, "without the sidecar fields they had"),
        (summary.without_metadata, "without the metadata blocks they had"),
        (summary.unreadable_labels, "with a label that cannot be read"),
    ];
    let mut line = format!("{lost} samples are lost");
    for (count, what) in counts.into_iter().filter(|&(count, _)| count > 0) {
        line.push_str(&format!(", {count} kept {what}"));
    }
    if summary.damaged_metadata {
        line.push_str(", names and labels may be missing");
    }
    if summary.guessed_count {
        line.push_str(", more may be lost: the sample count is damaged");
    }
    output::report(&format_args!("{}: {line}", Escaped(args.file.as_os_str().as_bytes())));
    Ok(Verdict::Bad)
}

impl Loss {
    fn new(event: &RepairEvent<'_>) -> Self {
        let mut loss = Self {
            kind: "damage",
            index: None,
            count: None,
            key: None,
            offset: None,
            reason: String::new(),
        };
        match *event {
            RepairEvent::Damage { reason } => loss.reason = reason.to_string(),
            RepairEvent::Lost { index, key, offset, reason } => {
                loss.kind = "lost";
                loss.index = Some(index);
                loss.key = key.map(|key| Key(key.to_vec()));
                loss.offset = offset;
                loss.reason = reason.to_string();
            }
            RepairEvent::LostRun { first, count, reason } => {
                loss.kind = "lost";
                (loss.index, loss.count) = (Some(first), Some(count));
                loss.reason = reason.to_string();
            }
            _ => {}
        }
        loss
    }

    /// The loss as a line of text.
    fn sentence(&self) -> String {
        let Self { kind, index, count, key, offset, reason } = self;
        let mut line = String::from(*kind);
        match (index, count) {
            (Some(index), Some(count)) => {
                line.push_str(&format!(" {index} and {} after it", count.saturating_sub(1)));
            }
            (Some(index), None) => line.push_str(&format!(" {index}")),
            (None, _) => {}
        }
        if let Some(key) = key {
            line.push_str(&format!(" ({key})"));
        }
        if let Some(offset) = offset {
            line.push_str(&format!(" at byte {offset}"));
        }
        line.push_str(": ");
        line.push_str(reason);
        line
    }
}
