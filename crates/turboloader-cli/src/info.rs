//! `tl info`: what a data set or a table is, from its index alone.

pub(crate) mod facts;
mod metadata;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Stdout;
#[cfg(feature = "tables")]
use crate::table::{self, Table};
use facts::Facts;

/// Describe a data set or table: kind, samples, bytes, formats, columns, regions, checksums
///
/// Reads the index, not the samples. --json prints one object, `"schema":"tl.info/1"`. Samples with
/// a damaged index entry are counted as `damaged` and in `samples`, but in no other figure; the
/// command then exits with 1. A pattern of URLs, or a name with ranges such as {000..127}, stands for
/// several data sets, which are described one after the other.
///
/// For an IDV file, prints its version and every column with its type, the codec named in the file,
/// compression, blocks and metadata; a column that cannot be read is `dead` with the reason
/// (`"schema":"tl.info.idv/1"`). For a TBF segment, prints dialect, counts, flags and regions
/// (`"schema":"tl.info.tbf/1"`). For an unfinished segment it prints the header and exits with 1.
///
/// Examples:
///   tl info train.tbl
///   tl info train.tar --json | jq .samples
///   tl info iris.idv
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A TAR archive, a folder or a TBL file; an IDV file or a TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print one JSON object for each data set
    #[arg(long)]
    pub(crate) json: bool,
}

/// Describes the data sets.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut verdict = Verdict::Good;
    for location in global.stores().expand(&args.file)? {
        if describe(location.as_os_str().as_ref(), args, global)? == Verdict::Bad {
            verdict = Verdict::Bad;
        }
    }
    Ok(verdict)
}

fn describe(file: &Path, args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    #[cfg(feature = "tables")]
    if let Some(table) = Table::open(global, file)? {
        return table::info::run(&table, args);
    }
    let (facts, damaged) = Facts::collect(global, file)?;
    print(&facts, args)?;
    damaged.verdict(facts.samples(), "samples")
}

/// Prints facts in the form that is asked for.
pub(crate) fn print(facts: &(impl Serialize + Display), args: &Args) -> Result<(), Failure> {
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(facts)?;
    } else {
        stdout.line(facts)?;
    }
    stdout.finish()
}
