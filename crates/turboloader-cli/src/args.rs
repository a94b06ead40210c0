//! The command line as types: global options and the subcommands. What each option means is
//! said here, in the help text, and nowhere else.

#![expect(clippy::doc_markdown, reason = "help texts are read on terminals, without backticks")]

mod cache;
mod conversion;
mod dataset;
mod doctor;
mod explain;
mod fields;
mod inspect;
mod loader;
mod memory;
mod part;
mod policy;
mod recipe;
mod sampler;
mod shard;
mod table;
mod train;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use conversion::{TableArgs, Unit};
pub(crate) use dataset::{ConvertArgs, MergeArgs, RepairArgs, SplitArgs, Target, VerifyArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use explain::{ExplainArgs, ImageSize};
pub(crate) use inspect::{
    CatArgs, DecodeArgs, DigestArgs, ExifChoice, ExtractArgs, InfoArgs, LsArgs,
};
pub(crate) use recipe::{BenchRecipe, RecipeName};
pub(crate) use table::{EdgesArgs, FindArgs, ItemName, MetricName, TimeRange};
pub(crate) use train::{BenchArgs, CompletionsArgs, PreviewArgs, RowArgs};

/// Turns files into training batches: converts, inspects, verifies, previews and benchmarks
/// TAR archives, folders of images and TBL files.
#[derive(Debug, Parser)]
#[command(name = "tl", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

const EXIT_CODES: &str = "\
Exit codes:
  0   done, and the answer is good
  1   the answer is bad: damaged data, an image that does not decode
  2   wrong usage, or the operating system refused (missing file, permission, full disk)
  70  an internal error, which is a bug in tl

Data goes to standard output, everything else to standard error. A reader that closes the pipe
early (`tl ls FILE | head`) ends the command silently with code 0. NO_COLOR is respected.";

/// Options every subcommand takes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct GlobalArgs {
    /// When to colour the output
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    /// Show no progress bar and no closing line
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Convert(ConvertArgs),
    Info(InfoArgs),
    Ls(LsArgs),
    Cat(CatArgs),
    Extract(ExtractArgs),
    Verify(VerifyArgs),
    Digest(DigestArgs),
    Find(FindArgs),
    Edges(EdgesArgs),
    Merge(MergeArgs),
    Split(SplitArgs),
    Repair(RepairArgs),
    Decode(DecodeArgs),
    Preview(PreviewArgs),
    Explain(ExplainArgs),
    Bench(Box<BenchArgs>),
    Doctor(Box<DoctorArgs>),
    Completions(CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
