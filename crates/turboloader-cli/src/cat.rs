//! `tl cat`: the bytes of one sample, or of one of its sidecar fields, or metadata; or one row of a
//! table.

mod metadata;

use std::path::PathBuf;
#[cfg(feature = "tables")]
use std::slice;

use crate::args::{GlobalArgs, ItemName, KeyArgs, item_name};
use crate::data_set::{self, Sample};
use crate::failure::{Failure, Verdict};
use crate::output::{Stdout, write_file};
#[cfg(feature = "tables")]
use crate::table::{self, Table};

/// Write the bytes of one sample to standard output, or one row of a table as JSON
///
/// Standard output must not be a terminal, because image bytes would garble it; -o writes a file.
///
/// A row of an IDV file is a JSON object with the column names as keys; of several columns with one
/// name, the last is shown. Missing values and key 0 are null; NaN and infinities are the strings
/// "NaN", "Infinity" and "-Infinity". Times are text such as 2013-08-05T12:34:56.5, followed by
/// +01:00 if the file stores an offset; times outside the years 1 to 9999 are their number of
/// ticks. Time spans are ticks of 100 ns, row ids 32 hexadecimal digits. A sparse vector is
/// {"length":..,"indices":[..],"values":[..]}.
///
/// Only TBL files have metadata. Version 2 stores blocks of a sample, and of the whole file
/// (without INDEX). Version 1 stores the application's fields in the header, which are printed as
/// one JSON object. Blocks of several files are printed in their order, equal ones once.
///
/// Examples:
///   tl cat train.tbl 17 > 17.jpg
///   tl cat train.tar 17 --field json
///   tl cat train.tbl 17 --metadata | jq .camera
///   tl cat 's3://bucket/train-*.tar' 100000 > 100000.jpg
///   tl cat iris.idv 149 --columns Label,PetalLength
///   tl cat segment.tbf 55c14841-a7dc-11c1-74ca-262430a87aa9
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A TAR archive, a folder or a TBL file; an IDV file or a TBF segment; or a pattern, a name with
    /// ranges (in quotes) or a shard index that stands for several archives, folders or TBL files
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The number of the sample or row, as `tl ls` lists it; in a segment also the UUID of a node
    #[arg(value_name = "INDEX", value_parser = item_name, required_unless_present = "metadata")]
    pub(crate) index: Option<ItemName>,

    /// Write the sample's sidecar field with this extension instead (json, txt, seg.png, ...)
    #[arg(long, value_name = "EXT")]
    pub(crate) field: Option<String>,

    /// Write metadata instead, one JSON value after the other: JSON blocks unchanged, other blocks
    /// as an object of type, bytes and hex
    #[arg(long, conflicts_with_all = ["field", "columns"])]
    pub(crate) metadata: bool,

    /// With --metadata: write only the block with this number, counted from 0, byte for byte
    #[arg(long, value_name = "N", requires = "metadata")]
    pub(crate) block: Option<usize>,

    /// For tables: only these columns, in this order
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

/// Writes the bytes of the sample.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    #[cfg(feature = "tables")]
    if let Some(table) = Table::open(global, slice::from_ref(&args.file))? {
        return table::cat::run(&table, args);
    }
    if args.columns.is_some() {
        return Err(Failure::Usage { what: "--columns is for IDV and TBF files" });
    }
    let index = match args.index {
        Some(ItemName::Number(index)) => Some(index),
        Some(ItemName::Id(_)) => {
            return Err(Failure::Usage {
                what: "only nodes of TBF segments have ids; samples have numbers",
            });
        }
        None => None,
    };
    let Some(index) = index else {
        return metadata::of_files(args, global);
    };
    let bytes = match &args.field {
        Some(extension) => field(args, global, index, extension)?,
        None => {
            let (source, local) = data_set::open_sample(global, &args.file, index)?;
            if args.metadata {
                return metadata::of_sample(source.as_ref(), local, args);
            }
            let mut bytes = Vec::new();
            Sample { source: &*source, local, index }.read_into(&mut bytes)?;
            bytes
        }
    };
    match &args.output {
        Some(path) => write_file(path, args.force, |file| file.write_all(&bytes))?,
        None => {
            let mut stdout = Stdout::open_binary()?;
            stdout.bytes(&bytes)?;
            stdout.finish()?;
        }
    }
    Ok(Verdict::Good)
}

/// The field with this extension, as the whole data set has it: the numbers of categories depend on
/// all sources.
fn field(
    args: &Args,
    global: &GlobalArgs,
    index: u64,
    extension: &str,
) -> Result<Vec<u8>, Failure> {
    let dataset = data_set::open(global, &[&args.file])?;
    data_set::require(global, &args.file, &dataset, index)?;
    let mut fields = Vec::new();
    let mut is_wanted = |name: &[u8], _| name == extension.as_bytes();
    let read = dataset.read_fields_where(index, &mut is_wanted, &mut fields);
    read.map_err(|error| error.in_data_set(index))?;
    match fields.pop() {
        Some(field) => Ok(field.bytes),
        None => {
            let sample = Sample::of(&dataset, index)?;
            let of = sample.subject(&sample.entry()?);
            Err(Failure::setting(format_args!("{of}: no field `{extension}`")))
        }
    }
}
