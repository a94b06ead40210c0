//! `tl merge` of TBF segments.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tbl_io::{Escaped, Source};
use tl_pipeline::TableKind;
use turboloader::{Merged, SegmentSet, SegmentSettings, merge_segments};

use super::key::read_key;
use crate::args::{GlobalArgs, KeyArgs};
use crate::convert::Target;
use crate::failure::{Failure, Verdict};
use crate::output::{self, Progress};

/// The settings of a merge of segments.
#[derive(Debug, clap::Args)]
pub(crate) struct SegmentMergeArgs {
    /// Leave out the index over ids and times of a TBF segment, unless a source has one
    #[arg(long)]
    pub(crate) no_index: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

impl SegmentMergeArgs {
    /// Whether an option is given.
    pub(crate) fn is_given(&self) -> bool {
        self.no_index || self.key != KeyArgs::default()
    }

    /// The settings of the merged segment.
    pub(crate) fn settings(&self) -> Result<SegmentSettings, Failure> {
        let key = read_key(self.key.key_file.as_deref())?;
        Ok(SegmentSettings { key, index: !self.no_index, ..SegmentSettings::default() })
    }
}

/// Merges segments; `None` if a source is something else.
pub(crate) fn run(
    args: &crate::merge::Args,
    global: &GlobalArgs,
) -> Result<Option<Verdict>, Failure> {
    let Some(files) = segments_of(&args.sources)? else {
        if Target::for_file(&args.output) == Target::Tbf {
            SegmentSet::open(&args.sources)?;
            let what = "a destination named *.tbf takes TBF segments: a source is something else";
            return Err(Failure::Usage { what });
        }
        if args.segment.is_given() {
            return Err(Failure::Usage { what: "--no-index and --key-file are for TBF segments" });
        }
        return Ok(None);
    };
    if args.output.extension().is_some() && Target::for_file(&args.output) != Target::Tbf {
        let what = "TBF segments are merged into one: expected a destination named *.tbf";
        return Err(Failure::Usage { what });
    }
    let settings =
        SegmentSettings { overwrite: args.force, sync: !args.no_sync, ..args.segment.settings()? };
    let merged = with_progress(global, |on_node| {
        Ok(merge_segments(&files, &args.output, &settings, on_node)?)
    })?;
    note(global, &args.output, &merged);
    Ok(Some(Verdict::Good))
}

/// The files, if all are segments or folders of them.
fn segments_of(sources: &[PathBuf]) -> Result<Option<Vec<PathBuf>>, Failure> {
    let is_folder = |path: &PathBuf| path.is_dir();
    let Ok(set) = SegmentSet::open(sources) else { return Ok(None) };
    for path in set.files() {
        if !path.is_file() || TableKind::of(&Source::open(path)?)? != Some(TableKind::Tbf) {
            // A folder with a damaged segment is still one of segments.
            let is_of_folder = sources.iter().filter(|path| is_folder(path));
            if is_of_folder.into_iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            return Ok(None);
        }
    }
    Ok(Some(set.files().to_vec()))
}

/// Shows how far the work is.
pub(crate) fn with_progress<T>(
    global: &GlobalArgs,
    work: impl FnOnce(&mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut progress: Option<Progress> = None;
    work(&mut |done, total| {
        progress.get_or_insert_with(|| Progress::new(global, total)).set(done);
        ControlFlow::Continue(())
    })
}

/// Prints the result.
pub(crate) fn note(global: &GlobalArgs, path: &Path, merged: &Merged) {
    if global.quiet {
        return;
    }
    let Merged { written, segments, replaced, edges_left_out, .. } = merged;
    let path = Escaped(path.as_os_str().as_bytes());
    output::note(&format_args!(
        "{path}: {} nodes and {} edges of {segments} segments, {} bytes; left out: {replaced} nodes \
         that a later segment replaces, {edges_left_out} edges",
        written.nodes, written.edges, written.file_bytes
    ));
}
