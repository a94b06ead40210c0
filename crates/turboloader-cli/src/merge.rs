//! `tl merge`: several data sets into one, stored samples as they are.

use tbl_io::{AsStored, Compression, ConvertOptions, SampleSource, SourceKind, Target as FileKind};
use turboloader::Probe;

use crate::args::{GlobalArgs, MergeArgs, Target};
use crate::convert::{self, Sources};
use crate::failure::{Failure, Verdict};
use crate::table;

/// Merges.
pub(crate) fn run(args: &MergeArgs, global: GlobalArgs) -> Result<Verdict, Failure> {
    let sources = Sources::open(&args.sources)
        .map_err(|failure| table::or_no_samples(&args.sources, failure))?;
    let kind = if Target::for_file(&args.output) == Target::Tar {
        FileKind::Tar
    } else {
        target_of(sources.as_slice())
    };
    let mut options = ConvertOptions::new(kind);
    (options.sync, options.overwrite) = (!args.no_sync, args.force);
    let selection = sources.all()?;
    let summary = if has_tbl2_only(sources.as_slice()) {
        convert::write(&selection, &args.output, &options, AsStored::default, global)?
    } else {
        convert::write(&selection, &args.output, &options, Probe::default, global)?
    };
    convert::note_unstored(&args.output, &summary);
    Ok(Verdict::Good)
}

/// The kind of file that keeps samples of these sources as they are stored.
pub(crate) fn target_of(sources: &[Box<dyn SampleSource>]) -> FileKind {
    let all = |kind| sources.iter().all(|source| source.kind() == kind);
    if all(SourceKind::Tbl1) { FileKind::Tbl1 } else { FileKind::Tbl2(Compression::AsStored) }
}

/// Whether all that can be known of the samples stands in their index already.
pub(crate) fn has_tbl2_only(sources: &[Box<dyn SampleSource>]) -> bool {
    sources.iter().all(|source| source.kind() == SourceKind::Tbl2)
}
