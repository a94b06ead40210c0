//! `tl compact`: the segments of a folder as one.

use std::path::PathBuf;

use tbl_io::Escaped;
use turboloader::compact_segments;

use super::merge::{SegmentMergeArgs, note, with_progress};
use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::output;

/// Replace the TBF segments of a folder by one
///
/// The order of the names is that of age: of several nodes with one id, the one of the last segment
/// counts, with its edges. The new segment takes the name of the last one in one step, and then the
/// others are removed. If the command is killed in between, no node is lost, and it can be started again.
/// It fails if one of these segments is replaced meanwhile.
/// Readers that have the folder open keep the segments that they opened.
///
/// Examples:
///   tl convert today.parquet -o nodes/2026-11-27.tbf
///   tl compact nodes/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The folder
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,

    #[command(flatten)]
    pub(crate) segment: SegmentMergeArgs,
}

/// Compacts.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let settings = args.segment.settings()?;
    let compacted =
        with_progress(global, |on_node| Ok(compact_segments(&args.folder, &settings, on_node)?))?;
    match compacted {
        Some(merged) => note(global, &args.folder, &merged),
        None if global.quiet => {}
        None => {
            let folder = Escaped(args.folder.as_os_str().as_encoded_bytes());
            output::note(&format_args!("{folder}: one segment, which is compacted already"));
        }
    }
    Ok(Verdict::Good)
}
