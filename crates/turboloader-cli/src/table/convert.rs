//! `tl convert` of tables.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum, ValueHint};
use tbl_io::{Compression, Escaped, ZstdLevel};
use turboloader::{
    CsvSchema, SegmentCompression, SegmentConversion, TableConversion, TableEvent, TableFormat,
    TableSummary, TimeUnit, VectorType,
};

use super::key::read_key;
use crate::args::{GlobalArgs, KeyArgs};
use crate::convert::{Args as ConvertArgs, NO_TABLE, Target};
use crate::failure::{Failure, Verdict};
use crate::output::{self, Progress};

/// The formats for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Tables")]
pub(crate) struct TableArgs {
    /// The columns to write, in this order (default: all)
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Types of columns of a CSV file: sbyte, byte, int16, uint16, int32, uint32, int64, uint64,
    /// single, double, boolean, text, timespan, datetime, datetimeoffset, rowid, key (categories,
    /// in the order in which they are first seen) or key:N (their numbers 1 to N). Other columns
    /// become boolean, int64, double or text: the first of these that fits all cells
    #[arg(long, value_name = "NAME=TYPE,..", value_delimiter = ',')]
    pub(crate) schema: Vec<String>,

    /// The unit of times in a Parquet file. Microseconds hold every year of .NET but not the last
    /// digit of its ticks, nanoseconds that digit but only the years 1678 to 2261
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = Unit::Us)]
    pub(crate) time_unit: Unit,

    #[command(flatten)]
    pub(crate) segment: SegmentArgs,
}

/// The settings of TBF segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Tables")]
pub(crate) struct SegmentArgs {
    /// The type of vector components in a TBF segment (default: that of the source if it is a segment,
    /// otherwise f32)
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) dtype: Option<DtypeName>,

    /// Columns for a TBF segment that have other names in the source, such as id=uuid,embedding=vector
    #[arg(long, value_name = "COLUMN=NAME,..", value_delimiter = ',')]
    pub(crate) nodes: Vec<String>,

    /// Add the edges of this table to a TBF segment: source and target (rows, or ids), relation and
    /// weight
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) edges: Option<PathBuf>,

    /// Add the index over ids and times to a TBF segment (default: as the source if it is a segment,
    /// otherwise yes)
    #[arg(long, conflicts_with = "no_index")]
    pub(crate) index: bool,

    /// Leave out the index over ids and times of a TBF segment
    #[arg(long)]
    pub(crate) no_index: bool,

    /// Store the edges of a TBF segment by their targets too (default: as the source if it is a segment,
    /// otherwise no)
    #[arg(long, conflicts_with = "no_reverse")]
    pub(crate) reverse: bool,

    /// Leave out the edges by their targets of a TBF segment
    #[arg(long)]
    pub(crate) no_reverse: bool,

    /// The number of a TBF segment (default: that of the source if it is a segment, otherwise 0)
    #[arg(long, value_name = "N")]
    pub(crate) segment_id: Option<u64>,

    /// Write a plain TBF segment; the key is only for the source
    #[arg(long, requires = "key_file")]
    pub(crate) decrypt: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Types of vector components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeName {
    /// 4 bytes
    F32,
    /// 2 bytes, IEEE 754 half precision
    F16,
    /// 2 bytes, the upper half of f32
    Bf16,
    /// 1 byte, with a scale for each vector
    Int8,
}

impl SegmentArgs {
    /// The settings, with the compression of the command.
    pub(crate) fn conversion(
        &self,
        compression: Option<SegmentCompression>,
    ) -> Result<SegmentConversion, Failure> {
        let name = |part: &String| {
            let pair = part.split_once('=');
            let pair = pair.map(|(of, name)| (of.to_owned(), name.to_owned()));
            pair.ok_or_else(|| {
                Failure::setting(format_args!("--nodes: `{part}` is not COLUMN=NAME"))
            })
        };
        let key = read_key(self.key.key_file.as_deref())?;
        let dtype = self.dtype.map(|dtype| match dtype {
            DtypeName::F32 => VectorType::F32,
            DtypeName::F16 => VectorType::F16,
            DtypeName::Bf16 => VectorType::Bf16,
            DtypeName::Int8 => VectorType::Int8,
        });
        let names = self.nodes.iter().map(name).collect::<Result<_, _>>()?;
        let of = |yes: bool, no: bool| (yes || no).then_some(yes);
        Ok(SegmentConversion {
            dtype,
            compression,
            index: of(self.index, self.no_index),
            reverse: of(self.reverse, self.no_reverse),
            segment_id: self.segment_id,
            key,
            decrypt: self.decrypt,
            names,
            edges: self.edges.clone(),
            ..SegmentConversion::default()
        })
    }
}

/// The compression of a segment's regions.
pub(crate) fn segment_compression(compression: Compression) -> Result<SegmentCompression, Failure> {
    let zstd = Compression::Zstd(ZstdLevel::default());
    match compression {
        Compression::None => Ok(SegmentCompression::None),
        Compression::Lz4 => Ok(SegmentCompression::Lz4),
        found if found == zstd => Ok(SegmentCompression::Zstd),
        Compression::Zstd(_) | Compression::AsStored | _ => Err(Failure::Usage {
            what: "TBF segments are compressed with lz4 or zstd of the default level",
        }),
    }
}

/// Units of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Microseconds
    #[default]
    Us,
    /// Nanoseconds
    Ns,
}

/// Converts one table into another; `None` where there is neither a table nor one to be made.
pub(crate) fn run(
    args: &ConvertArgs,
    to: Target,
    global: &GlobalArgs,
) -> Result<Option<Verdict>, Failure> {
    // A pattern of images is the name of no file.
    let is_pattern = global.stores().list_options().has_pairs();
    let sources = if is_pattern { &[] } else { args.sources.as_slice() };
    if let Some(to) = target_of(sources, to)? {
        if args.view.is_given() {
            let what =
                "a table is converted with all its rows: options that select samples do not apply";
            return Err(Failure::Usage { what });
        }
        return convert(args, to, global).map(Some);
    }
    if args.table != TableArgs::default() {
        return Err(Failure::Usage {
            what: "options of tables are for tables: expected an IDV, CSV, Parquet or TBF file",
        });
    }
    Ok(None)
}

fn convert(args: &ConvertArgs, to: TableFormat, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let [source] = args.sources.as_slice() else {
        return Err(Failure::Usage { what: "only one table can be converted at a time" });
    };
    let compression = args.given_compression().map(segment_compression).transpose()?;
    let conversion = TableConversion {
        to: Some(to),
        columns: args.table.columns.clone(),
        schema: CsvSchema::parse(&args.table.schema)
            .map_err(|error| Failure::setting(format_args!("--schema: {error}")))?,
        time_unit: match args.table.time_unit {
            Unit::Us => TimeUnit::Microseconds,
            Unit::Ns => TimeUnit::Nanoseconds,
        },
        threads: args.jobs.unwrap_or_else(output::default_workers),
        overwrite: args.force,
        sync: !args.no_sync,
        segment: args.table.segment.conversion(compression)?,
    };
    let start = Instant::now();
    let mut progress: Option<Progress> = None;
    let summary = conversion.run(source, &args.output, &mut |event| {
        match event {
            TableEvent::Progress { done, total } => {
                progress.get_or_insert_with(|| Progress::new(global, total)).set(done);
            }
            TableEvent::LeftOut(note) => {
                output::note(&format_args!("{}: {note}", source.display()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    drop(progress);
    if !global.quiet {
        let TableSummary { rows, file_bytes, .. } = summary;
        let output = Escaped(args.output.as_os_str().as_bytes());
        let seconds = start.elapsed().as_secs_f64();
        output::note(&format_args!("{output}: {rows} rows, {file_bytes} bytes, {seconds:.2} s"));
    }
    Ok(Verdict::Good)
}

/// The format to convert a table to, if any source is one.
fn target_of(sources: &[PathBuf], to: Target) -> Result<Option<TableFormat>, Failure> {
    let mut has_table = false;
    let mut is_list = true;
    for path in sources {
        let format = TableFormat::of_file(path);
        let format = format.map_err(|source| Failure::Io { path: path.clone(), source })?;
        has_table |= format.is_some();
        // A CSV file may also be the manifest of a data set, and the rows of a Parquet file samples.
        is_list &=
            format.is_none_or(|format| !matches!(format, TableFormat::Idv | TableFormat::Tbf));
    }
    // Of Parquet files and manifests, Parquet files of samples are written.
    if to == Target::Parquet && is_list {
        return Ok(None);
    }
    let format = match to {
        Target::Idv => Some(TableFormat::Idv),
        Target::Csv => Some(TableFormat::Csv),
        Target::Parquet => Some(TableFormat::Parquet),
        Target::Tbf => Some(TableFormat::Tbf),
        Target::Tbl2 | Target::Tbl1 | Target::Raw | Target::Tar => None,
    };
    match (has_table, format) {
        (true, Some(to)) => Ok(Some(to)),
        (_, None) if is_list => Ok(None),
        (false, Some(_)) => {
            for path in sources {
                tbl_io::open_file(path)?;
            }
            Err(NO_TABLE)
        }
        (_, None) => {
            Err(Failure::Usage { what: "a table converts only to .idv, .csv, .parquet or .tbf" })
        }
    }
}
