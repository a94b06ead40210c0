//! Arguments of the commands that look at data sets and single images.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tl_decode::{Level, OnDamaged, Rect, Scale};

use super::part;
use super::table::{self, ItemName, KeyArgs};

/// Describe a data set or table: kind, samples, bytes, formats, columns, regions, checksums
///
/// Reads the index, not the samples. With --json prints one object, `"schema":"tl.info/1"`.
/// Samples whose index entry is damaged are counted as `damaged` and left out of every other
/// figure but `samples`; the command then exits with 1.
///
/// Of an IDV file prints its version and every column with its type, its codec as the file names
/// it, compression, blocks and metadata; a column that cannot be read is `dead` with the reason
/// (`"schema":"tl.info.idv/1"`). Of a TBF segment prints dialect, counts, flags and regions; of
/// one that was not written to its end what its header says, and exits with 1
/// (`"schema":"tl.info.tbf/1"`).
///
/// Examples:
///   tl info train.tbl
///   tl info train.tar --json | jq .samples
///   tl info iris.idv
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InfoArgs {
    /// A TAR archive, a folder or a TBL file; an IDV file or a TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the samples of a data set, or the rows of a table
///
/// On a terminal a table, on a pipe tab-separated values with a header line, with --json one
/// object a line: index, key, label, class (when class names are known), format, width, height,
/// offset, stored_bytes, bytes, and sha256 with --hash. What is not known is null or empty.
/// Width and height are those of a TBL version 2 index, 0 where its writer did not know them.
/// The offset is that of the sample in its file.
///
/// A sample that cannot be read does not end the listing: JSON has an object of its index and
/// `error` for it, the others have DAMAGED as its format. The command then exits with 1.
///
/// Names are byte strings. JSON shows them as UTF-8 with every other byte as \xNN; the table
/// also escapes control characters and backslashes.
///
/// Of an IDV file a line is a row: its number and its values, in JSON an object `values` by the
/// names of the columns, each as `tl cat` prints it. Of a TBF segment a line is a node; its
/// vector comes with --columns embedding. On a terminal long values are cut. The rows of a damaged
/// block are one line: the first and the last with DAMAGED, in JSON `row`, `rows` and `error`.
///
/// Examples:
///   tl ls train.tbl | head
///   tl ls train.tar --json --hash > listing.ndjson
///   tl ls iris.idv --columns Label,PetalLength
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LsArgs {
    /// A TAR archive, a folder or a TBL file; an IDV file or a TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print one JSON object per sample
    #[arg(long)]
    pub(crate) json: bool,

    /// Read every sample and add the SHA-256 of its bytes
    #[arg(long)]
    pub(crate) hash: bool,

    /// Of a table only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Write the bytes of one sample to standard output, or one row of a table as JSON
///
/// A terminal is refused, for the bytes of an image would garble it; -o writes a file.
///
/// A row of an IDV file is an object by the names of the columns; of columns of one name it is the
/// last. Missing values and key 0 are null, NaN and infinities are the strings "NaN", "Infinity"
/// and "-Infinity". Points of time are text such as 2013-08-05T12:34:56.5, with +01:00 behind it
/// where the file has an offset, and the number of ticks outside the years 1 to 9999. Spans of
/// time are ticks of 100 ns, row ids 32 hexadecimal digits. A sparse vector is
/// {"length":..,"indices":[..],"values":[..]}.
///
/// Metadata is for TBL files: of version 2 the blocks of a sample, or without INDEX those of the
/// whole file; of version 1 the application's fields in the header as a JSON object.
///
/// Examples:
///   tl cat train.tbl 17 > 17.jpg
///   tl cat train.tar 17 --field json
///   tl cat train.tbl 17 --metadata | jq .camera
///   tl cat iris.idv 149 --columns Label,PetalLength
///   tl cat segment.tbf 55c14841-a7dc-11c1-74ca-262430a87aa9
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CatArgs {
    /// A TAR archive, a folder or a TBL file; an IDV file or a TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The sample's or row's number, as `tl ls` lists it; in a segment also the UUID of a node
    #[arg(value_name = "INDEX", value_parser = table::item_name, required_unless_present = "metadata")]
    pub(crate) index: Option<ItemName>,

    /// Write the sample's sidecar field with this extension instead (json, txt, seg.png, ...)
    #[arg(long, value_name = "EXT")]
    pub(crate) field: Option<String>,

    /// Write metadata instead, one JSON value after the other: blocks of JSON as they are, others
    /// as an object of type, bytes and hex
    #[arg(long, conflicts_with_all = ["field", "columns"])]
    pub(crate) metadata: bool,

    /// With --metadata: write only the block of this number, counted from 0, byte for byte
    #[arg(long, value_name = "N", requires = "metadata")]
    pub(crate) block: Option<usize>,

    /// Of a table only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output file if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Write samples and their sidecar fields as files below a folder
///
/// A sample goes to the path it is stored under, so a TAR archive or a folder comes back as it
/// was. Samples without a name become 00000012.jpg, by number and format; raw pixels get the
/// extension rgb. Names that are absolute, contain `..` or a zero byte, or are longer than a
/// file system allows (255 bytes a component, 4095 with DIR) are refused before anything is
/// written, and no symbolic link below DIR is followed, so nothing is ever written outside DIR.
/// A file has its name only when it is complete, however the command ends.
/// Metadata blocks of TBL files are not written; `tl cat --metadata` prints them.
/// Labels that do not follow from the class folders become .cls files, as in a TAR archive that
/// `tl convert` writes. If readers would take two samples for one, or a sample for a field, the
/// second one gets its number in its name (NAME-12.EXT for sample 12). Renamed samples, and class
/// names and metadata blocks that have no place, are counted on standard error.
///
/// Examples:
///   tl extract train.tbl -o train/
///   tl extract train.tar -o few/ 0 1 17
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ExtractArgs {
    /// A TAR archive, a folder or a TBL file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The folder to write to; made if missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// The numbers of the samples to write (default: all)
    #[arg(value_name = "INDEX")]
    pub(crate) indices: Vec<u64>,

    /// Replace files that exist
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Print one SHA-256 over every sample of a data set or every value of a table
///
/// Two data sets have the same digest exactly when they hold the same samples in the same
/// order, in whatever container. The hashed bytes are, for each sample, in order:
///
///   index   u64, little-endian
///   name    u64 length, then the bytes; a sample without a name has length 2^64-1 and no bytes
///   label   i64, little-endian; -2^63 for a sample without one
///   bytes   u64 length, then the uncompressed bytes
///
/// When a sample cannot be read there is no digest: the damaged ones are counted, and the command
/// exits with 1.
///
/// Of a table the digest says that rows, columns and values are the same, whatever the blocks,
/// compression and names of codecs. The hashed bytes are the number of rows (u64), then for each
/// column its name and its type as `tl info` prints it (each with its u64 length in front), and
/// the 32 bytes of its own SHA-256, which --columns prints. That one goes over the values row by
/// row, in the form that docs/idv.md and docs/tbf.md call canonical. Metadata is not hashed. A
/// column that cannot be understood is `dead` with the reason; the whole then has no digest.
///
/// Examples:
///   tl digest train.tar; tl digest train.tbl
///   tl digest iris.idv --columns --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DigestArgs {
    /// A TAR archive, a folder or a TBL file; an IDV file or a TBF segment
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print a digest for each column of a table instead
    #[arg(long)]
    pub(crate) columns: bool,

    /// Print one JSON object a line
    #[arg(long, requires = "columns")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Decode one image, strictly: damaged or truncated data is an error
///
/// With --ppm writes a binary PPM (P6, 8 bits, RGB); without it prints what the image is.
/// Alpha is dropped, samples of 9 to 16 bits keep their 8 most significant bits (for grey,
/// Pillow clips instead), colour profiles are not applied.
/// A region, a scale and a level are for JPEG only.
///
/// Examples:
///   tl decode photo.jpg --ppm > photo.ppm
///   tl decode photo.jpg --scale 1/4 --region 10,20,64,48 --ppm > part.ppm
///   tl decode train.tbl --index 17 --ppm -o 17.ppm
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DecodeArgs {
    /// A JPEG, PNG, WebP, BMP or TIFF file, or with --index a data set
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write the pixels as a binary PPM
    #[arg(long)]
    pub(crate) ppm: bool,

    /// FILE is a data set: decode its sample of this number
    #[arg(long, value_name = "INDEX")]
    pub(crate) index: Option<u64>,

    /// Whether to turn the image upright, by its EXIF or XMP orientation
    ///
    /// TIFF images are always decoded upright, as Pillow opens them.
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = ExifChoice::Ignore)]
    pub(crate) exif: ExifChoice,

    /// Decode only this part: X,Y,WIDTH,HEIGHT in pixels of the scaled image
    #[arg(long, value_name = "REGION", value_parser = part::region, conflicts_with = "exif")]
    pub(crate) region: Option<Rect>,

    /// Decode at a smaller size: 1/2, 1/4 or 1/8
    #[arg(long, value_name = "SCALE", value_parser = part::scale, conflicts_with = "exif")]
    pub(crate) scale: Option<Scale>,

    /// Decode with these instructions: scalar, avx2, avx512 or neon, as the CPU has them
    #[arg(long, value_name = "LEVEL", value_parser = part::level, conflicts_with = "exif")]
    pub(crate) level: Option<Level>,

    /// What to do with damaged JPEG data
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = DamageChoice::Error)]
    pub(crate) on_damaged: DamageChoice,

    /// Write the PPM to this file instead of standard output
    #[arg(short, long, value_name = "OUT", requires = "ppm")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output file if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// What to do with damaged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DamageChoice {
    /// Fail at the first damage
    Error,
    /// Keep what can be decoded and say what cannot
    Keep,
}

impl From<DamageChoice> for OnDamaged {
    fn from(choice: DamageChoice) -> Self {
        match choice {
            DamageChoice::Error => Self::Error,
            DamageChoice::Keep => Self::Keep,
        }
    }
}

/// What to do with an EXIF orientation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExifChoice {
    /// Leave the pixels as they are stored
    Ignore,
    /// Turn and mirror them
    Apply,
}
