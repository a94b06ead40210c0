//! Arguments of `tl doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::loader::LoaderArgs;
use super::recipe::RecipeName;
use super::train::DecodeModeArgs;

/// Say what limits training from a data set, and what to change
///
/// Takes about a minute: reads from the disk past the page cache, makes batches with one worker
/// and with all of them, copies memory, then does what training does and names what limits it:
/// the stage of the loader (read, decode, transform, write) or the training step. Changes whose
/// effect it can measure it does measure; the others are estimates and called so.
///
/// --step-ms says how long the training step takes for a batch. --read-limit makes reading as slow
/// as a disk of that speed, --cold does what a data set larger than the memory does: reads past the
/// page cache.
///
/// Examples:
///   tl doctor train.tar
///   tl doctor train.tbl --recipe recipe.toml --step-ms 120
///   tl doctor train.tar --read-limit 200 --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DoctorArgs {
    /// TAR archives, folders or TBL files, read as one data set
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<PathBuf>,

    /// What training does with each sample, as for tl bench
    #[arg(long, value_name = "RECIPE", value_hint = ValueHint::FilePath,
          default_value = "imagenet-train")]
    pub(crate) recipe: RecipeName,

    /// Side of the images in a batch, for the imagenet recipes (default: 224)
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) size: Option<u32>,

    #[command(flatten)]
    pub(crate) decode: DecodeModeArgs,

    /// Take about this long
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    pub(crate) seconds: f64,

    /// What the training step takes for a batch
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) step_ms: f64,

    /// Read as if the disk gave this many megabytes a second
    #[arg(long, value_name = "MB/S")]
    pub(crate) read_limit: Option<f64>,

    /// Read past the page cache, as of a data set larger than the memory
    #[arg(long)]
    pub(crate) cold: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    // Behind the others, because it has headings of its own.
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}
