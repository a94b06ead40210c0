//! `tl convert` of tables.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use tbl_io::Escaped;
use turboloader::{CsvSchema, TableConversion, TableEvent, TableFormat, TableSummary, TimeUnit};

use crate::args::GlobalArgs;
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
        return Err(Failure::Usage { what: "--columns, --schema and --time-unit are for tables" });
    }
    Ok(None)
}

fn convert(args: &ConvertArgs, to: TableFormat, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let [source] = args.sources.as_slice() else {
        return Err(Failure::Usage { what: "only one table can be converted at a time" });
    };
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
        is_list &= format.is_none_or(|format| format != TableFormat::Idv);
    }
    // Of Parquet files and manifests, Parquet files of samples are written.
    if to == Target::Parquet && is_list {
        return Ok(None);
    }
    let format = match to {
        Target::Idv => Some(TableFormat::Idv),
        Target::Csv => Some(TableFormat::Csv),
        Target::Parquet => Some(TableFormat::Parquet),
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
            Err(Failure::Usage { what: "a table converts only to .idv, .csv or .parquet" })
        }
    }
}
