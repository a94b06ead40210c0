//! `tl convert` of tables: IDV files from and to CSV and Parquet, and IDV files written again.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use idv_format::{Header, WriteOptions};
use tbl_io::{AtomicFile, Escaped, Placement};

use crate::args::{ConvertArgs, GlobalArgs};
use crate::failure::Failure;
use crate::output::{self, Progress};

mod calendar;
mod csv;
mod error;
mod idv;
#[cfg(feature = "parquet")]
mod parquet;

pub(crate) use error::TableError;

use idv::Table;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ML.NET's binary data views.
    Idv,
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl Kind {
    /// What a file is: by its first bytes, or CSV by its name.
    pub(crate) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        // The reader of data sets reports a folder, FIFO or device.
        if !path.metadata()?.is_file() {
            return Ok(None);
        }
        if Self::of_name(path) == Some(Self::Csv) {
            return Ok(Some(Self::Csv));
        }
        let mut front = Vec::new();
        File::open(path)?.take(Header::MAGIC.len() as u64).read_to_end(&mut front)?;
        if front == Header::MAGIC {
            Ok(Some(Self::Idv))
        } else {
            Ok(front.starts_with(b"PAR1").then_some(Self::Parquet))
        }
    }

    /// What a file of this name should be.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        let kinds = [("idv", Self::Idv), ("csv", Self::Csv), ("parquet", Self::Parquet)];
        kinds.into_iter().find(|(name, _)| extension.eq_ignore_ascii_case(name)).map(|(_, k)| k)
    }
}

/// Hears how much has been converted of what there is: rows, or bytes that are read of a CSV file.
/// Where it breaks off, the conversion ends.
pub(crate) type Told<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Converts one table into another, and returns how many rows there are.
pub(crate) fn convert(
    args: &ConvertArgs,
    from: Kind,
    to: Kind,
    global: GlobalArgs,
    told: Told<'_>,
) -> Result<u64, Failure> {
    let [source] = args.sources.as_slice() else {
        return Err(Failure::Usage { what: "tables are converted one at a time" });
    };
    let start = Instant::now();
    let placement = Placement { overwrite: args.force, sync: !args.no_sync };
    let io_failure = |source: io::Error| {
        let path = args.output.clone();
        if source.kind() == io::ErrorKind::AlreadyExists {
            Failure::Exists { path }
        } else {
            Failure::Io { path, source }
        }
    };
    let draft = AtomicFile::create(&args.output, placement).map_err(io_failure)?;
    let mut progress: Option<Progress> = None;
    let shown = &mut |done, total| {
        progress.get_or_insert_with(|| Progress::new(global, total)).set(done);
        told(done, total)
    };
    let rows = fill(args, source, (from, to), draft.file(), shown).map_err(|error| {
        let path = if error.is_of_output() { &args.output } else { source };
        Failure::TableConversion { path: path.clone(), source: Box::new(error) }
    })?;
    drop(progress);
    let bytes = draft.file().metadata().map_err(io_failure)?.len();
    draft.commit().map_err(io_failure)?;
    if !global.quiet {
        let (output, seconds) =
            (Escaped(args.output.as_os_str().as_bytes()), start.elapsed().as_secs_f64());
        output::note(&format_args!("{output}: {rows} rows, {bytes} bytes, {seconds:.2} s"));
    }
    Ok(rows)
}

/// Converts and returns how many rows there are.
fn fill(
    args: &ConvertArgs,
    source: &Path,
    kinds: (Kind, Kind),
    draft: &File,
    told: Told<'_>,
) -> Result<u64, TableError> {
    let names = args.table.columns.as_slice();
    let mut options = WriteOptions::default();
    options.threads = args.jobs.unwrap_or_else(output::default_workers);
    if kinds.0 == Kind::Idv {
        let table = Table::open(source, names)?;
        return match kinds.1 {
            Kind::Idv => Ok(idv::copy(&table, source, draft, options, told)?.rows),
            Kind::Csv => csv::write(&table.without_hidden(source), draft, told),
            Kind::Parquet => to_parquet(args, &table.without_hidden(source), draft, told),
        };
    }
    match kinds {
        (Kind::Csv, Kind::Idv) => {
            let schema = args.table.schema.as_slice();
            Ok(csv::read(source, names, schema, draft, options, told)?.rows)
        }
        (Kind::Parquet, Kind::Idv) => from_parquet(source, names, draft, options, told),
        _ => Err(TableError::NotDirect),
    }
}

#[cfg(feature = "parquet")]
fn to_parquet(
    args: &ConvertArgs,
    table: &Table,
    draft: &File,
    told: Told<'_>,
) -> Result<u64, TableError> {
    parquet::write(table, args.table.time_unit, draft, told)
}

#[cfg(feature = "parquet")]
fn from_parquet(
    source: &Path,
    names: &[String],
    draft: &File,
    options: WriteOptions,
    told: Told<'_>,
) -> Result<u64, TableError> {
    Ok(parquet::read(source, names, draft, options, told)?.rows)
}

#[cfg(not(feature = "parquet"))]
fn to_parquet(_: &ConvertArgs, _: &Table, _: &File, _: Told<'_>) -> Result<u64, TableError> {
    Err(TableError::NoParquet)
}

#[cfg(not(feature = "parquet"))]
fn from_parquet(
    _: &Path,
    _: &[String],
    _: &File,
    _: WriteOptions,
    _: Told<'_>,
) -> Result<u64, TableError> {
    Err(TableError::NoParquet)
}
