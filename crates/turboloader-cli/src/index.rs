//! `tl index`: what opening many shards reads of them, in one file.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tbl_io::{IndexOptions, IndexSummary, Location, Stores, index_shards};

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::interrupt;
use crate::output::{self, Stdout};

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    output: &'a str,
    shards: u64,
    unchanged: u64,
    samples: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

/// Write an index of shards, from which they open without being read
///
/// The index stands for its shards wherever a data set is named. Without it, opening a TAR archive
/// or JSON Lines of texts reads all of it, and opening any object of a store asks for it. Shards are
/// named by their path from the folder of the index, and must lie in that folder or below it. A local
/// FILE for objects of a store has to be copied to the folder that is printed. A shard
/// that is replaced later is an error, until the index is made anew; --update reads the shards that
/// changed. JSON Lines are opened by the index next to them without naming it.
///
/// Examples:
///   tl index shards/*.tar -o shards/train.tlidx
///   tl index 's3://bucket/train/*.tar' -o s3://bucket/train/train.tlidx
///   tl bench s3://bucket/train/train.tlidx --recipe imagenet-train
///   tl index corpus.jsonl
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The shards: TAR archives, TBL and Parquet files, JSON Lines of texts, folders of a store,
    /// patterns of URLs, names with ranges
    #[arg(value_name = "DATA", required = true)]
    pub(crate) data: Vec<PathBuf>,

    /// The index to write, or its URL (default: for one local file, its name with .tlidx after it)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the index, and read only the shards that changed since it was made
    #[arg(short, long)]
    pub(crate) update: bool,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace the index if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Indexes.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut stdout = Stdout::open()?;
    let options = IndexOptions { sync: !args.no_sync, overwrite: args.force, update: args.update };
    let stores = global.stores();
    let output = output_of(args, &stores)?;
    #[cfg(feature = "text")]
    let stores = tl_tokens::index_texts_in(stores);
    let summary =
        interrupt::undone(&output, || Ok(index_shards(&stores, &args.data, &output, options)?))?;
    let IndexSummary { shards, unchanged, samples, bytes, ref folder, .. } = summary;
    if args.json {
        let output = output.to_string_lossy();
        let folder = folder.as_ref().map(ToString::to_string);
        let schema = "tl.index/1";
        let report = Report { schema, output: &output, shards, unchanged, samples, bytes, folder };
        stdout.json_line(&report)?;
        stdout.finish()?;
    } else {
        let name = Location::new(&output);
        let of_them = if args.update { format!(" ({unchanged} unchanged)") } else { String::new() };
        stdout.line(&format_args!(
            "{name}: {shards} shards{of_them}, {samples} samples, {bytes} bytes"
        ))?;
        stdout.finish()?;
        if let Some(folder) = folder {
            let place = place(folder, &output);
            output::note(&format_args!("copy the index to {place}, where its shards are"));
        }
    }
    Ok(Verdict::Good)
}

/// The index to write: by default, next to a single file.
fn output_of(args: &Args, stores: &Stores) -> Result<PathBuf, Failure> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    if let [file] = &*args.data
        && let [location] = &*stores.expand(file)?
        && let Some(path) = location.path()
        && !path.is_dir()
    {
        return Ok([path.as_os_str(), OsStr::new(".tlidx")]
            .into_iter()
            .collect::<OsString>()
            .into());
    }
    Err(Failure::Usage { what: "pass --output: only one local file has a default" })
}

/// The URL under which the index finds its shards.
fn place(folder: &Location, output: &Path) -> Location {
    let mut url: OsString = folder.as_os_str().to_owned();
    url.push(output.file_name().unwrap_or_default());
    Location::new(url)
}
