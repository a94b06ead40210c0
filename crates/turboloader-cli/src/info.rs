//! `tl info`: what a data set or a table is, from its index alone.

pub(crate) mod counts;
mod facts;
mod metadata;
mod video;

use std::array;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tbl_io::Labels;
use turboloader::video::VideoBytes;

use crate::args::GlobalArgs;
use crate::data_set;
use crate::failure::{DamagedParts, Failure, Verdict};
use crate::output::Stdout;
#[cfg(feature = "tables")]
use crate::table::{self, Table};
use counts::Counts;
use facts::Facts;
use video::VideoFacts;

/// Goes up with every change that a reader of the JSON could stumble over.
const TOTAL_SCHEMA: &str = "tl.info.total/1";

/// Describe a data set, table or video: kind, samples, bytes, formats, columns, regions, frames
///
/// Reads the index, not the samples. --json prints one object, `"schema":"tl.info/1"`. Samples with
/// a damaged index entry are counted as `damaged` and in `samples`, but in no other figure; the
/// command then exits with 1.
///
/// Several files, a pattern of URLs, a name with ranges such as {000..127} or a shard index are
/// described one file after the other, each with its own labels. Their totals follow, with the labels
/// of the data set that they are together: in JSON the last object, `"schema":"tl.info.total/1"`.
///
/// For an IDV file, prints its version and every column with its type, the codec named in the file,
/// compression, blocks and metadata; a column that cannot be read is `dead` with the reason
/// (`"schema":"tl.info.idv/1"`). For a TBF segment, prints dialect, counts, flags and regions
/// (`"schema":"tl.info.tbf/1"`). For an unfinished segment it prints the header and exits with 1.
///
/// For an MP4, MOV, Matroska, WebM or AVI file, prints codec, size, frames, rate and groups of pictures,
/// and what a random frame costs: the frames that are decoded for it and the bytes that are read, on
/// average over all frames (`"schema":"tl.info.video/1"`).
///
/// Examples:
///   tl info train.tbl
///   tl info train.tar --json | jq .samples
///   tl info 's3://bucket/train-*.tar' --json | tail -n 1
///   tl info iris.idv
///   tl info clip.mp4
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files; IDV files or TBF segments; videos
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON objects, one for each file and one for the totals
    #[arg(long)]
    pub(crate) json: bool,
}

/// Describes the data sets, tables or videos.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut verdict = Verdict::Good;
    let files = global.stores().expand_all(&args.files)?;
    for (number, file) in files.iter().enumerate() {
        let described = match describe_single(Path::new(file.as_os_str()), args, global)? {
            Some(described) => described,
            None if number == 0 => return describe(&args.files, args, global),
            None => describe(&[file], args, global)?,
        };
        if described == Verdict::Bad {
            verdict = Verdict::Bad;
        }
    }
    Ok(verdict)
}

/// Describes a video or a table; `None` for others.
fn describe_single(
    path: &Path,
    args: &Args,
    global: &GlobalArgs,
) -> Result<Option<Verdict>, Failure> {
    let Some(source) = data_set::single_file(global, path)? else { return Ok(None) };
    let video = VideoBytes::of_file(&source);
    if video.is_video()? {
        print(&VideoFacts::new(&source, &video.index()?), args)?;
        return Ok(Some(Verdict::Good));
    }
    #[cfg(feature = "tables")]
    if let Some(table) = Table::of(global, path, source)? {
        return table::info::run(&table, args).map(Some);
    }
    Ok(None)
}

/// Describes sources of samples, and all of them together if there are several.
fn describe<P: AsRef<OsStr>>(
    files: &[P],
    args: &Args,
    global: &GlobalArgs,
) -> Result<Verdict, Failure> {
    if global.gives_labels() {
        return Err(Failure::Usage {
            what: "--labels does not go with info (nor --class-per-archive and --imagenet-labels), which shows stored labels",
        });
    }
    let sources = data_set::open_sources(global, files)?;
    let mut damaged = DamagedParts::default();
    let mut start = 0;
    let mut all = Vec::with_capacity(sources.len());
    for source in &sources {
        data_set::note(&**source);
        let facts = Facts::collect(array::from_ref(source), start, &mut damaged)?;
        start += source.sample_count();
        print(&facts, args)?;
        if sources.len() > 1 && !args.json {
            print(&"", args)?;
        }
        all.push(facts);
    }
    if sources.len() > 1 {
        let labels = Labels::resolve(&sources)?;
        let counts = Counts::sum(&labels, all.iter().map(Facts::counts));
        print(&Totals { schema: TOTAL_SCHEMA, shards: sources.len(), counts }, args)?;
    }
    damaged.verdict(start, "samples")
}

/// The counts of several sources.
#[derive(Debug, Serialize)]
struct Totals {
    schema: &'static str,
    shards: usize,
    #[serde(flatten)]
    counts: Counts,
}

impl Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}{}", "shards", self.shards, self.counts)
    }
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
