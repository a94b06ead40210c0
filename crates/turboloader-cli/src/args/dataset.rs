//! Arguments of the commands that write or check whole data sets.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::conversion::TableArgs;
use super::table::KeyArgs;

/// Convert TAR archives, folders of images or TBL files into one TBL file or TAR archive, or a
/// table into another
///
/// Samples keep their order, names, labels, sidecar fields and bytes. From one TBL version 2 file
/// to another they keep row indexes and metadata blocks as well; docs/format.md says which blocks
/// change. The command says what the destination has no place for.
/// The destination appears under its name only when it is complete.
/// Several data sets are joined by class name. A label that cannot be read ends the conversion.
///
/// Examples:
///   tl convert train.tar -o train.tbl
///   tl convert train.tar -o train.tbl --jpeg-index
///   tl convert shard-*.tar -o train.tbl --lz4 -j 4
///   tl convert photos/ -o photos_256.tbl --to raw --size 256
///   tl convert train.tbl -o train.tar --to tar
///   tl convert train.tar -o train.tbl --metadata description.json
///
/// A table is an IDV, Parquet or CSV file. IDV files become any of them, the others IDV files:
///   tl convert data.idv -o data.parquet
///   tl convert data.csv -o data.idv --schema label=key,price=single
///
/// CSV files follow RFC 4180, with up to 262144 columns: damaged quotes and rows of another length
/// than the header are errors.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConvertArgs {
    /// TAR archives, folders or TBL files, taken one after the other; or a table
    #[arg(required = true, value_name = "SRC")]
    pub(crate) sources: Vec<PathBuf>,

    /// The file to write
    #[arg(short, long, value_name = "DST")]
    pub(crate) output: PathBuf,

    /// What to write (default: what the name ends in, of tar, idv, csv and parquet; otherwise
    /// tbl2)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<Target>,

    /// With --to raw: decode and resize every image to N x N pixels, at most 512 MiB each
    /// (default: its own size)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) size: Option<u32>,

    /// Compress samples with LZ4 where that makes them smaller (TBL version 2 only)
    #[arg(long)]
    pub(crate) lz4: bool,

    /// Store where the rows of each JPEG start (TBL version 2 only), so that training reads no
    /// more of it than its crop needs. Costs about 0.4 % of the file; progressive JPEGs and other
    /// formats have none
    #[arg(long)]
    pub(crate) jpeg_index: bool,

    /// Store this JSON file as metadata of the whole TBL file, after that of the sources. Version 1
    /// has room for an object of creation_timestamp, dataset_version and custom_flags (all three
    /// are whole numbers) unless a source has such fields
    #[arg(long, value_name = "FILE")]
    pub(crate) metadata: Option<PathBuf>,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Threads that decode (--to raw), compress (--lz4, IDV files) or look for rows (--jpeg-index);
    /// default: one per core. Copying samples as they are takes one, for it is the disk that it waits for
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Replace the destination if it exists
    #[arg(short, long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) table: TableArgs,
}

/// What `tl convert` writes.
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
    /// A Parquet file
    Parquet,
}

/// Join several data sets into one TBL file without re-encoding
///
/// Samples keep what `tl convert` keeps. Metadata of whole files is kept from every source, in
/// their order; a block that several sources have in common is kept once.
///
/// Example:
///   tl merge part-0.tbl part-1.tbl -o train.tbl
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MergeArgs {
    /// The data sets, taken one after the other
    #[arg(required = true, value_name = "SRC")]
    pub(crate) sources: Vec<PathBuf>,

    /// The file to write
    #[arg(short, long, value_name = "DST")]
    pub(crate) output: PathBuf,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace the destination if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Cut a data set into shards of consecutive samples without re-encoding
///
/// Samples keep what `tl convert` keeps. Metadata of the whole file goes into every shard.
///
/// Examples:
///   tl split train.tbl -o shards/ --shards 8
///   tl split train.tbl -o shards/ --samples-per-shard 10000
///   tl split train.tar -o 'train-{}.tar' --shards 4
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    group = ArgGroup::new("cut").args(["shards", "samples_per_shard"]).required(true)
)]
pub(crate) struct SplitArgs {
    /// The data set
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The folder to write the shards to, or a file name with {} for the shard's number
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// How many shards to make, of nearly equal sample counts
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<NonZeroUsize>,

    /// How many samples each shard holds (the last may hold fewer)
    #[arg(long, value_name = "N")]
    pub(crate) samples_per_shard: Option<NonZeroUsize>,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace shards that exist
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Copy the good samples of a damaged file into a new one and list the lost
///
/// Exits with 0 when nothing was lost and with 1 when something was, or when a label
/// that was kept cannot be read. If everything was lost, no file is written. A file
/// that is neither a TBL file nor a TAR archive is refused with 1. The new file has
/// the format of the damaged one, so a TAR archive is not written as .tbl.
///
/// Example:
///   tl repair damaged.tbl -o saved.tbl
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RepairArgs {
    /// The damaged file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The file to write
    #[arg(short, long, value_name = "DST")]
    pub(crate) output: PathBuf,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,

    /// Replace the destination if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Check a data set or table: header, index, metadata, every sample, block and region
///
/// Exits with 1 and names every bad sample when there is damage, and with 1 for an archive or a
/// folder without samples. A sample whose label cannot be read is bad. Warnings, such as samples
/// without a label among labelled ones, are not damage.
/// Width and height in the index of a TBL file are compared with the image's header; a format that
/// differs is a warning, because a sample's format comes from its name.
///
/// Of an IDV file, which has no checksums, every block and piece of metadata is read and decoded;
/// of a TBF segment every checksum, gap and region is looked at, compressed ones as well, and
/// encrypted ones with their key. Without the key they are named and the command exits with 2.
///
/// Examples:
///   tl verify train.tbl --decode
///   tl verify segment.tbf --key-file segment.key
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct VerifyArgs {
    /// The data set or table
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Decode every image as well, and compare row indexes with the images they are stored for
    #[arg(long)]
    pub(crate) decode: bool,

    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// Worker threads (default: one per core)
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}
