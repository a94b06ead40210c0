//! `tl merge`: several data sets into one, stored samples as they are.

use std::path::PathBuf;
use std::sync::Arc;

use tbl_io::{AsStored, Compression, ConvertOptions, SampleSource, SourceKind, Target as FileKind};
use turboloader::Probe;

use crate::args::GlobalArgs;
use crate::convert::{self, Target};
use crate::failure::{Failure, Verdict};

/// Join several data sets into one file without re-encoding
///
/// Samples keep the same data as with `tl convert`. Metadata of whole files is kept from every
/// source, in their order; a block that several sources share is kept once.
///
/// TBF segments, and folders of them, become one segment, which is marked as compacted. Of several
/// nodes with one id, the one of the last segment counts, with its edges. The destination is named *.tbf
/// or has no extension.
///
/// Examples:
///   tl merge old.tbf new.tbf -o nodes.tbf
///   tl merge part-0.tbl part-1.tbl -o train.tbl
///   tl merge part-0.tbl part-1.tbl -o train.parquet
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The data sets, taken one after the other
    #[arg(required = true, value_name = "SRC")]
    pub(crate) sources: Vec<PathBuf>,

    /// The file to write, or the URL of an object
    #[arg(short, long, value_name = "DST")]
    pub(crate) output: PathBuf,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace the destination if it exists
    #[arg(short, long)]
    pub(crate) force: bool,

    #[cfg(feature = "tables")]
    #[command(flatten)]
    pub(crate) segment: crate::table::merge::SegmentMergeArgs,
}

/// Merges.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    #[cfg(feature = "tables")]
    if let Some(verdict) = crate::table::merge::run(args, global)? {
        return Ok(verdict);
    }
    let dataset = convert::open(global, &args.sources)?;
    let sources = dataset.shards();
    let kind = match Target::for_file(&args.output) {
        Target::Tar => FileKind::Tar,
        Target::Parquet => convert::parquet()?,
        Target::Tbl2 | Target::Tbl1 | Target::Raw | Target::Idv | Target::Csv | Target::Tbf => {
            target_of(sources)
        }
    };
    let mut options = ConvertOptions::new(kind);
    (options.sync, options.overwrite) = (!args.no_sync, args.force);
    let selection = convert::select(&dataset)?;
    let summary = if has_tbl2_only(sources) {
        convert::write(&selection, &args.output, &options, AsStored::default, global)?
    } else {
        convert::write(&selection, &args.output, &options, Probe::default, global)?
    };
    convert::note_unstored(&args.output, &summary);
    Ok(Verdict::Good)
}

/// The kind of file that keeps samples of these sources as they are stored.
pub(crate) fn target_of(sources: &[Arc<dyn SampleSource>]) -> FileKind {
    let all = |kind| sources.iter().all(|source| source.kind() == kind);
    if all(SourceKind::Tbl1) { FileKind::Tbl1 } else { FileKind::Tbl2(Compression::AsStored) }
}

/// Whether all that can be known of the samples stands in their index already.
pub(crate) fn has_tbl2_only(sources: &[Arc<dyn SampleSource>]) -> bool {
    sources.iter().all(|source| source.kind() == SourceKind::Tbl2)
}
