//! `tl ls`: one line per sample or row of a table, streamed.

use std::borrow::Cow;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use tbl_io::{Location, SourceKind};
use tl_pipeline::Dataset;

use crate::args::{GlobalArgs, KeyArgs};
use crate::data_set::{self, Sample};
use crate::failure::{DamagedParts, Failure, Verdict};
use crate::output::{HEADING_STYLE, ListStyle, Progress, Stdout};
#[cfg(feature = "tables")]
use crate::table::{self, Table};
use crate::text::{Hex, json_text, one_line, printable};

/// List the samples of a data set, or the rows of a table
///
/// Prints a table on a terminal, tab-separated values with a header line on a pipe, and one object
/// per line with --json: index, key, label, class (when class names are known), format, width,
/// height, offset, stored_bytes, bytes, and sha256 with --hash. Unknown values are null or empty.
/// Width and height come from a TBL version 2 index and are 0 if its writer did not know them. The
/// offset is that of the sample in its file.
///
/// Several files, a pattern, a name with ranges or a shard index are one data set: samples are
/// numbered in order, and labels are joined by class name. JSON and tab-separated values then have a
/// last column, shard, with the file of the sample.
///
/// A sample that cannot be read does not end the listing: JSON has an object with its index and
/// `error`, the other forms show DAMAGED as its format. The command then exits with 1.
///
/// Names are byte strings. JSON shows them as UTF-8 with every other byte as \xNN; the table
/// also escapes control characters and backslashes.
///
/// For an IDV file, each line is a row: its number and its values, each as `tl cat` prints it; in
/// JSON, `values` is an object with the column names as keys. For a TBF segment, each line is a
/// node; --columns embedding adds its vector. A terminal shows long values truncated. The rows of a
/// damaged block are one line, the first and the last with DAMAGED; in JSON they are `row`, `rows`
/// and `error`.
///
/// Examples:
///   tl ls train.tbl | head
///   tl ls 's3://bucket/train-*.tar' --json
///   tl ls train.tar --json --hash > listing.ndjson
///   tl ls iris.idv --columns Label,PetalLength
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files, read as one data set; or an IDV file or a TBF segment
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print JSON, one object per sample
    #[arg(long)]
    pub(crate) json: bool,

    /// Read every sample and add the SHA-256 of its bytes
    #[arg(long)]
    pub(crate) hash: bool,

    /// For tables: only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Lists the samples.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    #[cfg(feature = "tables")]
    if let Some(table) = Table::open(global, &args.files)? {
        return table::ls::run(&table, args);
    }
    if args.columns.is_some() {
        return Err(Failure::Usage { what: "--columns is for tables" });
    }
    let data = data_set::open(global, &args.files)?;
    data.shards().iter().for_each(|shard| data_set::note_usual(&**shard));
    let mut stdout = Stdout::open()?;
    let style = ListStyle::choose(args.json, &stdout);
    let columns = Columns { hash: args.hash, shard: data.shards().len() > 1 };
    let end = list(&data, style, columns, global, &mut stdout);
    // What was listed is good, and belongs before the error message.
    stdout.finish()?;
    end?.verdict(data.len(), "samples")
}

/// The columns that not every listing has.
#[derive(Clone, Copy)]
struct Columns {
    hash: bool,
    shard: bool,
}

fn list(
    data: &Dataset,
    style: ListStyle,
    columns: Columns,
    global: &GlobalArgs,
    stdout: &mut Stdout,
) -> Result<DamagedParts, Failure> {
    match style {
        ListStyle::Json => {}
        ListStyle::Table => stdout.line(&TableHeading(columns))?,
        ListStyle::Tsv => stdout.line(&TsvHeading(columns))?,
    }
    let Columns { hash, shard } = columns;
    let mut progress = Progress::new(global, data.len());
    let mut bytes = Vec::new();
    let mut damaged = DamagedParts::default();
    for index in 0..data.len() {
        let Sample { source, local, .. } = Sample::of(data, index)?;
        let shard = shard.then(|| source.location());
        let read = source.entry(local).and_then(|entry| {
            if hash {
                progress.set(index);
                source.read_into(local, &mut bytes)?;
            }
            let label = data.try_label(index)?;
            Ok((entry, label))
        });
        let (entry, label) = match read {
            Ok(read) => read,
            Err(error) => {
                let error = error.in_data_set(index);
                let line = BadLine { index, error: one_line(&error), shard, columns };
                match style {
                    ListStyle::Json => stdout.json_line(&line)?,
                    ListStyle::Table => stdout.line(&BadTableRow(&line))?,
                    ListStyle::Tsv => stdout.line(&BadTsvRow(&line))?,
                }
                damaged.count_if_damage(error)?;
                continue;
            }
        };
        let sha256 = hash.then(|| Hex(Sha256::digest(&bytes).into()));
        // Only a TBL v2 index has dimensions; its 0 means that its writer did not know them.
        let has_dimensions = source.kind() == SourceKind::Tbl2;
        let line = Line {
            index,
            key: entry.key.as_deref().map(json_text),
            label,
            class: data_set::class_name(data, label),
            format: Shown(entry.format),
            width: has_dimensions.then_some(entry.width),
            height: has_dimensions.then_some(entry.height),
            offset: entry.offset,
            stored_bytes: entry.stored_bytes,
            bytes: entry.bytes,
            sha256,
            shard,
        };
        match style {
            ListStyle::Json => stdout.json_line(&line)?,
            ListStyle::Table => stdout.line(&TableRow(&line, entry.key.as_deref()))?,
            ListStyle::Tsv => stdout.line(&TsvRow(&line, entry.key.as_deref()))?,
        }
    }
    Ok(damaged)
}

/// A sample that cannot be read, as `tl ls --json` prints it.
#[derive(Serialize)]
struct BadLine<'a> {
    index: u64,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shard_json")]
    shard: Option<&'a Location>,
    #[serde(skip)]
    columns: Columns,
}

/// The location of a shard in JSON.
fn shard_json<S: Serializer>(shard: &Option<&Location>, serializer: S) -> Result<S::Ok, S::Error> {
    shard.map(|shard| json_text(shard.as_os_str().as_bytes())).serialize(serializer)
}

/// The location of a shard in tab-separated values.
fn write_shard(f: &mut fmt::Formatter<'_>, shard: Option<&Location>) -> fmt::Result {
    shard.map_or(Ok(()), |shard| write!(f, "\t{}", printable(shard.as_os_str().as_bytes())))
}

/// The word that a damaged sample has instead of its format.
const DAMAGED: &str = "DAMAGED";

/// The line of a damaged sample in the table: the error takes the place of the name.
struct BadTableRow<'a>(&'a BadLine<'a>);

impl fmt::Display for BadTableRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadLine { index, error, columns, .. } = self.0;
        write!(f, "{index:>9}  {:>7}  {DAMAGED:<7}  {:>11}  {:>10}  ", "-", "-", "-")?;
        if columns.hash {
            write!(f, "{:<64}  ", "-")?;
        }
        f.write_str(error)
    }
}

/// The line of a damaged sample on a pipe: as many columns as the others have.
struct BadTsvRow<'a>(&'a BadLine<'a>);

impl fmt::Display for BadTsvRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadLine { index, shard, columns, .. } = self.0;
        write!(f, "{index}\t\t\t{DAMAGED}\t\t\t\t\t{}", if columns.hash { "\t" } else { "" })?;
        write_shard(f, *shard)
    }
}

/// One sample as `tl ls --json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    key: Option<Cow<'a, str>>,
    label: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    format: Shown<tbl_format::SampleFormat>,
    width: Option<u32>,
    height: Option<u32>,
    offset: u64,
    stored_bytes: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shard_json")]
    shard: Option<&'a Location>,
}

impl Line<'_> {
    fn dimensions(&self) -> Option<(u32, u32)> {
        self.width.zip(self.height).filter(|&size| size != (0, 0))
    }
}

/// A value that JSON shows as its `Display` text.
struct Shown<T>(T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The first line of the table on a terminal.
struct TableHeading(Columns);

impl fmt::Display for TableHeading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = crate::output::stdout_style(HEADING_STYLE);
        write!(
            f,
            "{heading}{:>9}  {:>7}  {:<7}  {:>11}  {:>10}  ",
            "index", "label", "format", "size", "bytes"
        )?;
        if self.0.hash {
            write!(f, "{:<64}  ", "sha256")?;
        }
        write!(f, "key{heading:#}")
    }
}

/// A line of the table on a terminal. Columns have fixed widths, so that it can stream.
struct TableRow<'a>(&'a Line<'a>, Option<&'a [u8]>);

impl fmt::Display for TableRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(line, key) = self;
        let label = line.label.map_or_else(|| "-".to_owned(), |label| label.to_string());
        let size = line
            .dimensions()
            .map_or_else(|| "-".to_owned(), |(width, height)| format!("{width}x{height}"));
        let format = line.format.0.to_string();
        write!(f, "{:>9}  {label:>7}  {format:<7}  {size:>11}  {:>10}  ", line.index, line.bytes)?;
        if let Some(sha256) = &line.sha256 {
            write!(f, "{sha256}  ")?;
        }
        f.write_str(&key.map_or(Cow::Borrowed("-"), printable))
    }
}

/// The first line on a pipe.
struct TsvHeading(Columns);

impl fmt::Display for TsvHeading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("index\tkey\tlabel\tformat\twidth\theight\toffset\tstored_bytes\tbytes")?;
        f.write_str(if self.0.hash { "\tsha256" } else { "" })?;
        f.write_str(if self.0.shard { "\tshard" } else { "" })
    }
}

/// A line on a pipe: tab-separated, nothing where nothing is known.
struct TsvRow<'a>(&'a Line<'a>, Option<&'a [u8]>);

impl fmt::Display for TsvRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(line, key) = self;
        write!(f, "{}\t{}\t", line.index, key.map_or(Cow::Borrowed(""), printable))?;
        if let Some(label) = line.label {
            write!(f, "{label}")?;
        }
        write!(f, "\t{}\t", line.format.0)?;
        if let Some(width) = line.width {
            write!(f, "{width}")?;
        }
        f.write_str("\t")?;
        if let Some(height) = line.height {
            write!(f, "{height}")?;
        }
        write!(f, "\t{}\t{}\t{}", line.offset, line.stored_bytes, line.bytes)?;
        if let Some(sha256) = &line.sha256 {
            write!(f, "\t{sha256}")?;
        }
        write_shard(f, line.shard)
    }
}
