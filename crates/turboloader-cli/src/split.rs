//! `tl split`: one data set into shards of consecutive samples, stored samples as they are.

use std::ffi::OsString;
use std::fs;
use std::mem;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use tbl_io::{
    AsStored, ConvertOptions, ConvertSummary, IndexOptions, Location, Placement, SourceKind,
    Target as FileKind, Unstored, index_shards,
};
use turboloader::Probe;

use crate::args::GlobalArgs;
use crate::convert::{self, Target};
use crate::failure::{Failure, Verdict};
use crate::interrupt;
use crate::merge::{has_tbl2_only, target_of};

/// Shard numbers have at least this many digits, so that names sort as the shards do.
const MIN_DIGITS: usize = 5;

/// Cut a data set into shards of consecutive samples without re-encoding
///
/// Samples keep the same data as with `tl convert`. Metadata of the whole file goes into every
/// shard.
///
/// Examples:
///   tl split train.tbl -o shards/ --shards 8
///   tl split train.tbl -o shards/ --samples-per-shard 10000
///   tl split train.tar -o 'train-{}.tar' --shards 4
///   tl split train.tbl -o 'train-{}.parquet' --shards 4
///   tl split train.tbl -o 's3://bucket/train/train-{}.tbl' --shards 64 --index
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    group = ArgGroup::new("cut").args(["shards", "samples_per_shard"]).required(true)
)]
pub(crate) struct Args {
    /// The data set
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The folder to write the shards to, or a file name with {} for the shard's number; or the URL of
    /// either
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// How many shards to write, of nearly equal sample counts
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<NonZeroUsize>,

    /// How many samples each shard holds (the last may hold fewer)
    #[arg(long, value_name = "N")]
    pub(crate) samples_per_shard: Option<NonZeroUsize>,

    /// Write the index of the shards after the last of them, NAME.tlidx for NAME-00000.tbl: once it is
    /// there, all of them are
    #[arg(long)]
    pub(crate) index: bool,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace shards that exist
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Splits. Ctrl-C between two shards ends it as in the middle of one.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    interrupt::undone(&args.output, || split(args, global))
}

fn split(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let dataset = convert::open(global, &[&args.file])?;
    let sources = dataset.shards();
    let selection = convert::select(&dataset)?;
    let sample_count = selection.sample_count();
    if args.shards.is_some_and(|shards| shards.get() as u64 > sample_count.max(1)) {
        let what = "--shards is larger than the number of samples: pass fewer shards";
        return Err(Failure::Usage { what });
    }
    let cuts = cuts(args, sample_count);
    let kind = match sources.first().map(|source| source.kind()) {
        _ if Target::for_file(&args.output) == Target::Parquet => convert::parquet()?,
        Some(SourceKind::Tar | SourceKind::Folder) => FileKind::Tar,
        _ => target_of(sources),
    };
    let extension = if kind == FileKind::Tar { "tar" } else { "tbl" };
    let names = Names::new(&args.output, &args.file, extension, cuts.len());
    let is_local = Location::new(&args.output).url().is_none();
    let folder = names.shard(0).parent().map(Path::to_owned);
    if let Some(folder) = folder.filter(|folder| is_local && !folder.as_os_str().is_empty()) {
        fs::create_dir_all(&folder).map_err(|source| Failure::Io { path: folder, source })?;
    }
    let paths: Vec<PathBuf> = (0..cuts.len()).map(|shard| names.shard(shard)).collect();
    let index = args.index.then(|| names.index());
    // One shard that is in the way stops all of them before the first is written.
    let stores = global.stores();
    let placement = Placement { overwrite: args.force, sync: false };
    for path in paths.iter().chain(&index) {
        stores.create(&Location::new(path), placement)?;
    }
    if let Some(index) = index.as_ref().filter(|_| is_local) {
        remove_index(index)?;
    }
    let mut options = ConvertOptions::new(kind);
    (options.sync, options.overwrite) = (!args.no_sync, args.force);
    let mut class_names = 0;
    for (path, cut) in paths.iter().zip(cuts) {
        let part = selection.part(cut);
        let is_as_stored = matches!(kind, FileKind::Tar | FileKind::Other(_));
        let mut summary = if is_as_stored || has_tbl2_only(sources) {
            convert::write(&part, path, &options, AsStored::default, global)?
        } else {
            convert::write(&part, path, &options, Probe::default, global)?
        };
        // The shards have the same class names, so the note that they are missing appears once.
        class_names = class_names.max(mem::take(&mut summary.unstored.class_names));
        convert::note_unstored(path, &summary);
    }
    let unstored = Unstored { class_names, ..Unstored::default() };
    convert::note_unstored(&args.output, &ConvertSummary { unstored, ..ConvertSummary::default() });
    if let Some(index) = index {
        let options =
            IndexOptions { sync: !args.no_sync, overwrite: args.force, ..IndexOptions::default() };
        interrupt::undone(&index, || Ok(index_shards(&stores, &paths, &index, options)?))?;
    }
    Ok(Verdict::Good)
}

/// Removes the index that is going to be replaced: its name tells that all shards are there. In a store
/// the earlier one stays, and reading by it is an error at the first shard of another version.
fn remove_index(index: &Path) -> Result<(), Failure> {
    match fs::remove_file(index) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::Io { path: index.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The samples of each shard. An empty data set has one empty shard.
fn cuts(args: &Args, sample_count: u64) -> Vec<std::ops::Range<u64>> {
    if let Some(per_shard) = args.samples_per_shard {
        let per_shard = per_shard.get() as u64;
        let shards = sample_count.div_ceil(per_shard).max(1);
        return (0..shards)
            .map(|shard| shard * per_shard..((shard + 1) * per_shard).min(sample_count))
            .collect();
    }
    // The argument group asks for one of the two.
    let shards = args.shards.map_or(1, |shards| shards.get() as u64);
    let each = sample_count / shards;
    let longer = sample_count % shards;
    let start = |shard: u64| shard * each + shard.min(longer);
    (0..shards).map(|shard| start(shard)..start(shard + 1)).collect()
}

/// The names of the shards: `NAME-00000.tbl` in a folder, or a name with `{}` in it for the
/// number.
struct Names {
    before: OsString,
    after: OsString,
    digits: usize,
}

impl Names {
    fn new(output: &Path, source: &Path, extension: &str, shards: usize) -> Self {
        let digits = shards.saturating_sub(1).to_string().len().max(MIN_DIGITS);
        if let Some((before, after)) = output.to_str().and_then(|path| path.split_once("{}")) {
            return Self { before: before.into(), after: after.into(), digits };
        }
        let mut before = output.join(source.file_stem().unwrap_or_default()).into_os_string();
        before.push("-");
        Self { before, after: format!(".{extension}").into(), digits }
    }

    /// `NAME.tlidx` for `NAME-00000.tbl`.
    fn index(&self) -> PathBuf {
        let before = self.before.as_encoded_bytes();
        let end = before.iter().rposition(|byte| !b"-_.".contains(byte)).map_or(0, |last| last + 1);
        let before = &before[..end];
        let name: &[u8] = if before.is_empty() || before.ends_with(b"/") { b"shards" } else { b"" };
        OsString::from_vec([before, name, b".tlidx"].concat()).into()
    }

    fn shard(&self, number: usize) -> PathBuf {
        let mut path = self.before.clone();
        path.push(format!("{number:0digits$}", digits = self.digits));
        path.push(&self.after);
        path.into()
    }
}
