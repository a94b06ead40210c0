//! Conversions of tables: IDV files from and to CSV and Parquet, IDV files written again, and TBF
//! segments from and to all of these.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

use idv_format::{Header, WriteOptions};
use tbl_io::{AtomicFile, Location, Placement};

mod calendar;
mod csv;
mod error;
mod event;
mod idv;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod segment;
mod unit;

pub use csv::schema::{CsvSchema, SchemaError};
pub use error::TableConversionError;
pub use event::{TableEvent, TableNote};
pub use unit::TimeUnit;

use crate::segment::{SegmentCompression, SegmentKey, VectorType};
use error::TableError;
use event::OnEvent;
use idv::Table;

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFormat {
    /// ML.NET's binary data views.
    Idv,
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// TBF segments.
    Tbf,
}

impl TableFormat {
    /// The format of a file: IDV, Parquet and TBF by the first bytes, CSV by the name. `None` for
    /// other files, folders, devices and URLs.
    ///
    /// # Errors
    /// If the system refuses to read the file.
    pub fn of_file(path: &Path) -> io::Result<Option<Self>> {
        if Location::new(path).url().is_some() || !path.metadata()?.is_file() {
            return Ok(None);
        }
        if Self::of_name(path) == Some(Self::Csv) {
            return Ok(Some(Self::Csv));
        }
        let mut front = Vec::new();
        File::open(path)?.take(Header::MAGIC.len() as u64).read_to_end(&mut front)?;
        if front == Header::MAGIC {
            Ok(Some(Self::Idv))
        } else if tbf_format::sniff(&front) {
            Ok(Some(Self::Tbf))
        } else {
            Ok(front.starts_with(b"PAR1").then_some(Self::Parquet))
        }
    }

    /// The format that the name of a file ends in.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        let formats = [
            ("idv", Self::Idv),
            ("csv", Self::Csv),
            ("parquet", Self::Parquet),
            ("tbf", Self::Tbf),
        ];
        let named = |&(name, _): &(&str, Self)| extension.eq_ignore_ascii_case(name);
        formats.into_iter().find(named).map(|(_, format)| format)
    }
}

/// A conversion of one table into another: IDV files become IDV, CSV or Parquet files, and CSV and
/// Parquet files IDV files. All become TBF segments, and segments become each of them
/// (`docs/tbf.md`).
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use std::path::Path;
/// use turboloader::TableConversion;
///
/// let (from, to) = (Path::new("train.csv"), Path::new("train.idv"));
/// let converted = TableConversion::default().run(from, to, &mut |_| ControlFlow::Continue(()))?;
/// println!("{} rows", converted.rows);
/// # Ok::<(), turboloader::TableConversionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableConversion {
    /// The format to write. Default: the one that the destination's name ends in.
    pub to: Option<TableFormat>,
    /// The columns to write, in this order. Default: all.
    pub columns: Vec<String>,
    /// Types of columns of a CSV file. Others are boolean, `i64`, `f64` or text, the first of
    /// these that takes all cells of the column.
    pub schema: CsvSchema,
    /// The unit of times in a Parquet file.
    pub time_unit: TimeUnit,
    /// Threads that compress IDV files. Default: one per core.
    pub threads: NonZeroUsize,
    /// Whether to replace the destination if it exists.
    pub overwrite: bool,
    /// Whether to wait until the data is on the disk. Default: yes.
    pub sync: bool,
    /// The settings of a segment.
    pub segment: SegmentConversion,
}

/// The settings of conversions to and from segments. If the source is a segment, the default of each is
/// that of the source, except the time of creation.
#[derive(Clone, Debug, Default)]
pub struct SegmentConversion {
    /// The type of stored vector components. Default for tables: `f32`.
    pub dtype: Option<VectorType>,
    /// The compression of regions that become smaller. Default for tables: none.
    pub compression: Option<SegmentCompression>,
    /// Whether to add trees over ids and timestamps. Default for tables: yes.
    pub index: Option<bool>,
    /// Whether to add the edges by target. Default for tables: no.
    pub reverse: Option<bool>,
    /// A number for the segment. Default for tables: 0.
    pub segment_id: Option<u64>,
    /// The time of creation in nanoseconds since 1970. Default: now.
    pub created_at: Option<u64>,
    /// The key of an encrypted source, and of an encrypted destination.
    pub key: Option<SegmentKey>,
    /// A name for the key, stored in the destination. Default for tables: zeros.
    pub key_id: Option<[u8; 16]>,
    /// Whether the destination is plain although there is a key. Default: no.
    pub decrypt: bool,
    /// Columns of the source with other names: the column of the segment, and the name.
    pub names: Vec<(String, String)>,
    /// A table of edges, with the columns `source` and `target` (rows, or ids), `relation` and
    /// `weight`.
    pub edges: Option<PathBuf>,
}

impl Default for TableConversion {
    fn default() -> Self {
        Self {
            to: None,
            columns: Vec::new(),
            schema: CsvSchema::default(),
            time_unit: TimeUnit::default(),
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            overwrite: false,
            sync: true,
            segment: SegmentConversion::default(),
        }
    }
}

/// The result of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableSummary {
    /// Rows of the table.
    pub rows: u64,
    /// Size of the destination.
    pub file_bytes: u64,
}

impl TableConversion {
    /// Converts `source` into `destination`. After an error no file of that name exists.
    ///
    /// # Errors
    /// [`TableConversionError`], also where `on_event` ends the conversion.
    pub fn run(
        &self,
        source: &Path,
        destination: &Path,
        on_event: &mut dyn FnMut(TableEvent<'_>) -> ControlFlow<()>,
    ) -> Result<TableSummary, TableConversionError> {
        let of_source = |error: TableError| TableConversionError::new(source, error);
        let of_destination = |error: TableError| TableConversionError::new(destination, error);
        let from = TableFormat::of_file(source).map_err(|error| of_source(error.into()))?;
        let from = from.ok_or_else(|| of_source(TableError::NoTable))?;
        let to = self.to.or_else(|| TableFormat::of_name(destination));
        let to = to.ok_or_else(|| of_destination(TableError::NoTableName))?;
        if from == TableFormat::Tbf || to == TableFormat::Tbf {
            return self.of_segments(from, to, source, destination, on_event).map_err(|error| {
                if error.is_of_output() { of_destination(error) } else { of_source(error) }
            });
        }
        let placement = Placement { overwrite: self.overwrite, sync: self.sync };
        let refused = |error: io::Error| of_destination(error.into());
        let draft = AtomicFile::create(destination, placement).map_err(refused)?;
        let rows = self.fill(source, from, draft.file(), to, on_event).map_err(|error| {
            if error.is_of_output() { of_destination(error) } else { of_source(error) }
        })?;
        let file_bytes = draft.file().metadata().map_err(refused)?.len();
        draft.commit().map_err(refused)?;
        Ok(TableSummary { rows, file_bytes })
    }

    #[cfg(not(feature = "parquet"))]
    fn of_segments(
        &self,
        _: TableFormat,
        _: TableFormat,
        _: &Path,
        _: &Path,
        _: OnEvent<'_>,
    ) -> Result<TableSummary, TableError> {
        Err(TableError::NoParquet)
    }

    /// Writes `draft` and returns how many rows there are.
    fn fill(
        &self,
        source: &Path,
        from: TableFormat,
        draft: &File,
        to: TableFormat,
        on_event: OnEvent<'_>,
    ) -> Result<u64, TableError> {
        let names = self.columns.as_slice();
        let mut options = WriteOptions::default();
        options.threads = self.threads;
        if from == TableFormat::Idv {
            let table = Table::open(source, names, on_event)?;
            return match to {
                TableFormat::Idv => Ok(idv::copy(&table, draft, options, on_event)?.rows),
                TableFormat::Csv => csv::write(&table.without_hidden(on_event)?, draft, on_event),
                TableFormat::Parquet => {
                    let table = table.without_hidden(on_event)?;
                    to_parquet(&table, self.time_unit, draft, on_event)
                }
                TableFormat::Tbf => Err(TableError::NotDirect),
            };
        }
        match (from, to) {
            (TableFormat::Csv, TableFormat::Idv) => {
                Ok(csv::read(source, names, &self.schema, draft, options, on_event)?.rows)
            }
            (TableFormat::Parquet, TableFormat::Idv) => {
                from_parquet(source, names, draft, options, on_event)
            }
            _ => Err(TableError::NotDirect),
        }
    }
}

#[cfg(feature = "parquet")]
fn to_parquet(
    table: &Table,
    unit: TimeUnit,
    draft: &File,
    on_event: OnEvent<'_>,
) -> Result<u64, TableError> {
    parquet::write(table, unit, draft, on_event)
}

#[cfg(feature = "parquet")]
fn from_parquet(
    source: &Path,
    names: &[String],
    draft: &File,
    options: WriteOptions,
    on_event: OnEvent<'_>,
) -> Result<u64, TableError> {
    Ok(parquet::read(source, names, draft, options, on_event)?.rows)
}

#[cfg(not(feature = "parquet"))]
fn to_parquet(_: &Table, _: TimeUnit, _: &File, _: OnEvent<'_>) -> Result<u64, TableError> {
    Err(TableError::NoParquet)
}

#[cfg(not(feature = "parquet"))]
fn from_parquet(
    _: &Path,
    _: &[String],
    _: &File,
    _: WriteOptions,
    _: OnEvent<'_>,
) -> Result<u64, TableError> {
    Err(TableError::NoParquet)
}

#[cfg(test)]
mod tests;
