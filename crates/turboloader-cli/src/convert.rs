//! `tl convert`: any data sets into one TBL file or TAR archive. Tables are in
//! `table::convert`.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use tbl_io::{
    AsStored, Compression, ConvertEvent, ConvertOptions, ConvertSummary, Escaped, Location, Note,
    Prepare, SampleSource, Selection, SourceKind, Stores, Target as FileKind,
};
use tl_pipeline::Dataset;
use turboloader::job::{OutputFormat, Task};
use turboloader::{ConversionNotes, IndexKinds, Indexer, Probe, Rasterize, Square};

use crate::args::{GlobalArgs, JobArgs, ViewArgs};
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::interrupt;
use crate::job;
use crate::output::{self, Progress};

mod metadata;

/// Convert data sets into one TBL file, TAR archive or Parquet file, or a table into another format
///
/// Samples keep their order, names, labels, sidecar fields and bytes. From one TBL version 2 file
/// to another they keep row indexes and metadata blocks as well; docs/format.md lists the blocks
/// that change. The command reports data that the destination cannot store.
/// The destination appears under its name only when it is complete, in a store too.
/// TAR archives that are compressed by gzip or zstd are unpacked into a file without a name next to
/// the destination, into TMPDIR if that is in a store, or into the folder of --unpack.
/// Several data sets are joined by class name. A label that cannot be read ends the conversion.
///
/// With --each every source becomes a file of its own in the folder DST, several at the same time: a
/// job over thousands of shards. It writes a record for each shard when its file is complete. Started
/// again, the command converts what has no record, and shards that were changed since or are converted
/// with other options. It replaces the files that have a record of the same shard, and others only with
/// --force. A damaged shard is reported, and the others are converted.
///
/// Examples:
///   tl convert train.tar -o train.tbl
///   tl convert train.tar.gz -o train.tbl
///   tl convert train.tar -o train.tbl --jpeg-index
///   tl convert clips.tar -o clips.tbl --video-index
///   tl convert shard-*.tar -o train.tbl --compress lz4 -j 4
///   tl convert masks.tar -o masks.tbl --compress zstd:9
///   tl convert photos/ -o photos_256.tbl --to raw --size 256
///   tl convert train.tbl -o train.tar --to tar
///   tl convert train.tbl -o train.parquet
///   tl convert train.tar -o s3://bucket/train.tbl
///   tl convert --each 's3://raw/train-{000..127}.tar' -o s3://bucket/train --report train.jsonl
///   tl convert train.tar -o val.tbl --split 0.9,0.1@0 --part 1 --stratify
///   tl convert train.tar -o train.tbl --metadata description.json
///   tl convert train.csv -o train.tbl --label-column class
///   tl convert instances_val2017.json -o val.tbl --root val2017
///
/// Parquet files of samples have the form that `datasets` writes and `load_dataset` opens: images
/// uncompressed, labels with the names of classes, sidecar fields as columns.
///
/// A table is an IDV, Parquet or CSV file or a TBF segment. IDV files and segments convert to each of
/// these, CSV and Parquet files to IDV files and segments. To another format, a CSV file is the manifest of a data set, and the rows of a
/// Parquet file are samples:
///   tl convert data.idv -o data.parquet
///   tl convert data.csv -o data.idv --schema label=key,price=single
///   tl convert nodes.parquet -o nodes.tbf --edges edges.csv --dtype f16 --compress zstd
///
/// The columns of a TBF segment are id, timestamp, context_hash, confidence, outcome_status,
/// embedding and text; edge_target, edge_relation and edge_weight are lists of a node's edges.
///
/// CSV files follow RFC 4180, with up to 262144 columns. Damaged quotes and rows that differ from
/// the header in length are errors.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders, TBL files, manifests or images, in this order; or one table
    #[arg(required = true, value_name = "SRC")]
    pub(crate) sources: Vec<PathBuf>,

    /// The file to write, or the URL of an object: s3://, gs:// or az://; with --each the folder
    #[arg(short, long, value_name = "DST")]
    pub(crate) output: PathBuf,

    /// Convert every source into a file of its own
    #[arg(long, conflicts_with_all = ["size", "metadata", "no_sync"])]
    pub(crate) each: bool,

    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// The format to write (default: by the extension of DST, for tar, idv, csv, parquet and tbf;
    /// otherwise tbl2)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<Target>,

    /// With --to raw: decode and resize every image to N x N pixels, at most 512 MiB each
    /// (default: its own size)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) size: Option<u32>,

    /// Compress samples where that makes them smaller (TBL version 2 and TBF only): lz4, zstd or zstd:LEVEL,
    /// with a level of 1 to 22 (default: 3). Zstandard is for texts, masks and raw pixels; JPEGs do not
    /// become smaller. The first turboloader cannot read files with Zstandard
    #[arg(long, value_name = "CODEC")]
    pub(crate) compress: Option<Compression>,

    /// The same as --compress lz4
    #[arg(long, conflicts_with = "compress")]
    pub(crate) lz4: bool,

    /// Store where the rows of each JPEG start (TBL version 2 only), so that training reads no
    /// more of it than its crop needs. Costs about 0.4 % of the file; progressive JPEGs and other
    /// formats have none
    #[arg(long)]
    pub(crate) jpeg_index: bool,

    /// Store the index of the frames of each video (TBL version 2 only), so that training reads no
    /// headers before it has the frames of a clip. Costs 6 to 8 bytes for each frame
    #[arg(long)]
    pub(crate) video_index: bool,

    /// Store this JSON file as metadata of the whole TBL file, after that of the sources. Version 1
    /// stores only an object with the whole numbers creation_timestamp, dataset_version and
    /// custom_flags, and only if no source has such fields
    #[arg(long, value_name = "FILE")]
    pub(crate) metadata: Option<PathBuf>,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Threads that decode (--to raw), compress (--compress, IDV files) or make indexes (--jpeg-index);
    /// default: one per core. Copying samples unchanged uses one, because the disk is the limit
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Replace the destination if it exists; with --each also files that have no record of this job
    #[arg(short, long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[cfg(feature = "tables")]
    #[command(flatten)]
    pub(crate) table: crate::table::convert::TableArgs,
}

impl Args {
    /// The compression of the destination.
    fn compression(&self) -> Compression {
        self.given_compression().unwrap_or(Compression::None)
    }

    /// The compression, if an option names one.
    pub(crate) fn given_compression(&self) -> Option<Compression> {
        if self.lz4 { Some(Compression::Lz4) } else { self.compress }
    }

    fn indexes(&self) -> IndexKinds {
        IndexKinds { jpeg: self.jpeg_index, video: self.video_index }
    }
}

/// The formats that `tl convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// TBL version 2: checksums, dimensions, names, labels, fields
    Tbl2,
    /// TBL version 1: bytes and formats only
    Tbl1,
    /// TBL version 2 holding decoded RGB pixels
    Raw,
    /// A TAR archive in WebDataset layout
    Tar,
    /// An IDV file of ML.NET
    Idv,
    /// Comma-separated values
    Csv,
    /// A Parquet file: samples as `datasets` writes them, or a table
    Parquet,
    /// A TBF segment: nodes with vectors, texts and edges
    Tbf,
}

/// Converts.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let to = args.to.unwrap_or_else(|| Target::for_file(&args.output));
    let compression = args.compression();
    if compression != Compression::None && !matches!(to, Target::Tbl2 | Target::Raw | Target::Tbf) {
        let what = "--compress and --lz4 are for TBL version 2 files and TBF segments";
        return Err(Failure::Usage { what });
    }
    if args.size.is_some() && to != Target::Raw {
        return Err(Failure::Usage { what: "--size needs --to raw" });
    }
    if !args.indexes().is_empty() && to != Target::Tbl2 {
        let what = "--jpeg-index and --video-index are for TBL version 2 files";
        return Err(Failure::Usage { what });
    }
    if args.metadata.is_some() && !matches!(to, Target::Tbl2 | Target::Raw | Target::Tbl1) {
        return Err(Failure::Usage { what: "--metadata is for TBL files" });
    }
    if args.each {
        return convert_each(args, to, compression, global);
    }
    if args.job.is_given() {
        return Err(job::NEEDS_EACH);
    }
    #[cfg(feature = "tables")]
    if let Some(verdict) = crate::table::convert::run(args, to, global)? {
        return Ok(verdict);
    }
    // Before any work: a sample that is too large is so for every image.
    let square = args.size.map(Square::new).transpose();
    let square = square.map_err(|error| Failure::setting(format_args!("--size {error}")))?;
    let kind = match to {
        Target::Tbl2 | Target::Raw => FileKind::Tbl2(compression),
        Target::Tbl1 => FileKind::Tbl1,
        Target::Tar => FileKind::Tar,
        Target::Parquet => parquet()?,
        Target::Idv | Target::Csv | Target::Tbf => return Err(NO_TABLE),
    };
    let mut options = ConvertOptions::new(kind);
    options.workers = args.jobs.unwrap_or_else(output::default_workers);
    (options.sync, options.overwrite) = (!args.no_sync, args.force);
    let start = Instant::now();
    let dataset = open_in(&global.stores().unpacking_for(&args.output), global, &args.sources)?;
    let metadata = args.metadata.as_deref().map(metadata::read).transpose()?;
    let all = select(&dataset)?.with_file_metadata(metadata.as_slice());
    let chosen = chosen(&args.view, &dataset)?;
    let selection = chosen.as_deref().map_or_else(|| all.clone(), |chosen| all.choose(chosen));
    let summary = match to {
        Target::Tbl2 if args.indexes().is_empty() => {
            write(&selection, &args.output, &options, Probe::default, global)?
        }
        Target::Tbl2 => {
            let indexer = || Indexer::new(args.indexes());
            write(&selection, &args.output, &options, indexer, global)?
        }
        Target::Raw => {
            write(&selection, &args.output, &options, || Rasterize::new(square), global)?
        }
        // Neither has a place for dimensions.
        Target::Tbl1 | Target::Tar | Target::Idv | Target::Csv | Target::Parquet | Target::Tbf => {
            write(&selection, &args.output, &options, AsStored::default, global)?
        }
    };
    note_unstored(&args.output, &summary);
    if !global.quiet {
        let ConvertSummary { samples, file_bytes, row_indexes, .. } = summary;
        let seconds = start.elapsed().as_secs_f64();
        let indexed = if !args.indexes().is_empty() || row_indexes > 0 {
            format!(", {row_indexes} of them with an index")
        } else {
            String::new()
        };
        let output = Escaped(args.output.as_os_str().as_bytes());
        output::note(&format_args!(
            "{output}: {samples} samples{indexed}, {file_bytes} bytes, {seconds:.2} s"
        ));
    }
    Ok(Verdict::Good)
}

/// Converts every source into a file of its own.
fn convert_each(
    args: &Args,
    to: Target,
    compression: Compression,
    global: &GlobalArgs,
) -> Result<Verdict, Failure> {
    if args.view.is_given() {
        let what = "options that select samples are for one data set: leave out --each";
        return Err(Failure::Usage { what });
    }
    #[cfg(feature = "tables")]
    if args.table != crate::table::convert::TableArgs::default() {
        let what = "options of tables are for one table: leave out --each";
        return Err(Failure::Usage { what });
    }
    let to = match to {
        Target::Tbl2 => OutputFormat::Tbl,
        Target::Tbl1 => OutputFormat::Tbl1,
        Target::Tar => OutputFormat::Tar,
        Target::Parquet => OutputFormat::Parquet,
        Target::Raw | Target::Idv | Target::Csv | Target::Tbf => {
            return Err(Failure::Usage { what: "--each writes tbl2, tbl1, tar or parquet" });
        }
    };
    let task = Task::Convert { to, compression, indexes: args.indexes() };
    let output = Some(args.output.as_path());
    let totals = job::run(&args.sources, task, output, &args.job, args.jobs, args.force, global)?;
    job::verdict(&totals)
}

impl Target {
    /// The format for a file of this name.
    pub(crate) fn for_file(path: &Path) -> Self {
        let targets = [Self::Tar, Self::Idv, Self::Csv, Self::Parquet, Self::Tbf];
        let named = targets.into_iter().find(|target| {
            let name = target.to_possible_value();
            path.extension()
                .zip(name)
                .is_some_and(|(extension, name)| extension.eq_ignore_ascii_case(name.get_name()))
        });
        named.unwrap_or(Self::Tbl2)
    }
}

/// Parquet files as the kind of file to write.
pub(crate) fn parquet() -> Result<FileKind, Failure> {
    tl_pipeline::parquet_target().ok_or(Failure::Usage {
        what: "Parquet files need the feature `arrow`, which this program was built without",
    })
}

pub(crate) const NO_TABLE: Failure = Failure::Usage {
    what: if cfg!(feature = "tables") {
        "the source is not a table: expected an IDV, CSV, Parquet or TBF file"
    } else {
        "tables need the feature `tables`, which this program was built without"
    },
};

/// Opens data sets to copy their samples, and prints the notes on them.
pub(crate) fn open<P: AsRef<OsStr>>(global: &GlobalArgs, paths: &[P]) -> Result<Dataset, Failure> {
    open_in(&global.stores(), global, paths)
}

fn open_in<P: AsRef<OsStr>>(
    stores: &Stores,
    global: &GlobalArgs,
    paths: &[P],
) -> Result<Dataset, Failure> {
    let sources = data_set::open_sources_in(stores, global, paths)?;
    require_samples(&sources)?;
    let dataset = data_set::join(global, sources)?;
    note_labels(&dataset);
    Ok(dataset)
}

/// Prints the notes on the labels.
pub(crate) fn note_labels(dataset: &Dataset) {
    dataset.label_notes().iter().for_each(|note| output::note(note));
}

/// All samples.
pub(crate) fn select(dataset: &Dataset) -> Result<Selection<'_>, Failure> {
    Ok(Selection::all(dataset.shards(), dataset.labels())?)
}

/// The numbers of the samples that the options select; `None` for all.
fn chosen(args: &ViewArgs, dataset: &Dataset) -> Result<Option<Vec<u64>>, Failure> {
    if !args.is_given() {
        return Ok(None);
    }
    let view = args.of(dataset)?;
    Ok(Some(view.indices()?.collect()))
}

/// Fails for folders and archives if no source has a sample. A TBL file says that it is empty.
pub(crate) fn require_samples<S: AsRef<dyn SampleSource>>(sources: &[S]) -> Result<(), Failure> {
    let is_unknown =
        |source: &&dyn SampleSource| matches!(source.kind(), SourceKind::Folder | SourceKind::Tar);
    let mut sources = sources.iter().map(AsRef::as_ref);
    let Some(first) = sources.clone().find(is_unknown) else {
        return Ok(());
    };
    if sources.any(|source| source.sample_count() > 0) {
        return Ok(());
    }
    let is_passed_over = |note: &Note| matches!(note, Note::PassedOver { .. });
    let passed_over = first.notes().into_iter().find(is_passed_over);
    let passed_over = passed_over.map_or(String::new(), |note| format!("; {note}"));
    Err(Failure::data(format_args!(
        "{}: no samples, expected at least one file that is not hidden{passed_over}",
        first.location()
    )))
}

/// Writes the samples and shows how far it is. Samples without dimensions or the row index that
/// was wanted are named once all is well.
pub(crate) fn write<P: Prepare>(
    selection: &Selection<'_>,
    destination: &Path,
    options: &ConvertOptions,
    new_prepare: impl Fn() -> P + Sync,
    global: &GlobalArgs,
) -> Result<ConvertSummary, Failure> {
    let mut progress = Progress::new(global, selection.sample_count());
    let mut notes = ConversionNotes::default();
    let mut on_event = |event: ConvertEvent<'_>| {
        if let ConvertEvent::Written { samples, .. } = event {
            progress.set(samples);
        }
        notes.add(&event);
        if tbl_io::is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stores = global.stores();
    let to = Location::new(destination);
    let summary = interrupt::undone(destination, || {
        let done = tbl_io::convert_in(&stores, selection, &to, options, new_prepare, &mut on_event);
        Ok(done?)
    })?;
    drop(progress);
    notes.of_samples(&summary).iter().for_each(|line| output::note(line));
    Ok(summary)
}

/// Prints the parts of the sources that the new file cannot store.
pub(crate) fn note_unstored(destination: &Path, summary: &ConvertSummary) {
    ConversionNotes::of_destination(destination, summary)
        .iter()
        .for_each(|line| output::note(line));
}
