//! Errors of a conversion of tables.

#[cfg(feature = "parquet")]
use std::fmt;
use std::io;
use std::iter;
use std::path::Path;
#[cfg(feature = "parquet")]
use std::path::PathBuf;

#[cfg(feature = "parquet")]
use idv_format::{ArrowError, ArrowWriteError};
use idv_format::{ReadError, WriteError};
use tbl_io::{ErrorKind, ErrorPlace, Escaped, Location};
use tl_pipeline::Fault;

use super::csv::cells::{CellError, Expected};
use super::csv::error::CsvError;
use super::csv::schema::SchemaError;
#[cfg(feature = "parquet")]
use super::parquet::pages::PageError;
#[cfg(feature = "parquet")]
use crate::panics::CaughtPanic;
#[cfg(feature = "parquet")]
use crate::segment::{NodeError, SegmentError};

/// An error of a conversion, with the file at fault.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {source}")]
pub struct TableConversionError {
    location: Location,
    source: Box<TableError>,
}

impl TableConversionError {
    pub(super) fn new(path: &Path, source: TableError) -> Self {
        Self { location: path.into(), source: Box::new(source) }
    }

    /// The file at fault: the source or the destination.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Whether the source is damaged, or has what the destination cannot hold.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.source.is_damage()
    }

    /// The error of the system, if it is at fault.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        #[cfg(feature = "parquet")]
        if let TableError::Nodes(NodeError::Segment(error)) = &*self.source {
            return error.io_error();
        }
        if self.is_damage() {
            return None;
        }
        let first: &(dyn std::error::Error + 'static) = &*self.source;
        let mut causes = iter::successors(Some(first), |error| error.source());
        causes.find_map(|error| error.downcast_ref())
    }
}

impl Fault for TableConversionError {
    fn kind(&self) -> ErrorKind {
        if self.is_damage() {
            ErrorKind::Data
        } else if self.io_error().is_some() {
            ErrorKind::System
        } else {
            ErrorKind::Setting
        }
    }

    fn place(&self) -> ErrorPlace {
        ErrorPlace::at(&self.location)
    }
}

/// An error of a conversion, without the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum TableError {
    /// An IDV file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An IDV file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Columns cannot be read as arrays.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// Arrays cannot be written.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    ArrowWrite(#[from] ArrowWriteError),
    /// A Parquet file breaks its format, or the system refused.
    #[cfg(feature = "parquet")]
    #[error("{}", Short(.0))]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The columns of a Parquet file cannot be read as arrays.
    #[cfg(feature = "parquet")]
    #[error("{}", Short(.0))]
    Decode(#[from] arrow_schema::ArrowError),
    /// Rows of a Parquet file cannot be decoded.
    #[cfg(feature = "parquet")]
    #[error("row group {row_group}, rows {first} to {last}: {}", Short(source))]
    DecodeRows {
        /// The row group's number, from 0.
        row_group: usize,
        /// The first row that was read together with the damaged one, from 0.
        first: u64,
        /// The last of them.
        last: u64,
        source: Box<Self>,
    },
    /// A column of a row group of a Parquet file has defective pages.
    #[cfg(feature = "parquet")]
    #[error("row group {row_group}, column {column:?}: {}", Short(source))]
    Pages {
        /// The row group's number, from 0.
        row_group: usize,
        /// The path of the column.
        column: String,
        source: PageError,
    },
    /// The Parquet decoder panicked: it does so on some damaged files.
    #[cfg(feature = "parquet")]
    #[error("damaged, the Parquet decoder panicked: {}", Short(.0))]
    ParquetPanic(#[from] CaughtPanic),
    /// Rows do not become a segment, or a segment no rows.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// A table of edges cannot be read.
    #[cfg(feature = "parquet")]
    #[error("edges of {}: {source}", Escaped(path.as_os_str().as_encoded_bytes()))]
    EdgeFile { path: PathBuf, source: Box<Self> },
    /// A setting of segments, for another destination.
    #[cfg(feature = "parquet")]
    #[error("edges and names of columns are for segments made from tables")]
    NotForSegments,
    /// A CSV file breaks its format or a limit.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// A Parquet file cannot be written.
    #[cfg(feature = "parquet")]
    #[error("{}", Short(.0))]
    ParquetWrite(parquet::errors::ParquetError),
    /// A CSV file cannot be written.
    #[error("{0}")]
    CsvWrite(csv::Error),
    /// The system refused to read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The system refused to write.
    #[error("{0}")]
    Output(#[source] io::Error),
    /// Parquet from CSV, or the other way round.
    #[error("CSV and Parquet files convert only to IDV (convert to .idv first)")]
    NotDirect,
    /// Parquet, in a program without it.
    #[cfg(not(feature = "parquet"))]
    #[error("this program was built without Parquet (cargo's feature `parquet`)")]
    NoParquet,
    /// No columns are left to be written.
    #[error("no columns to convert")]
    NoColumns,
    /// A column that was asked for.
    #[error("no column {name:?}")]
    NoColumn { name: String },
    /// A column that was asked for more than once.
    #[error("column {name:?} is chosen twice")]
    ColumnTwice { name: String },
    /// Vectors of any length, in a table where each slot is a column.
    #[error(
        "column {name:?}: CSV cannot store vectors of different lengths (choose other \
         columns)"
    )]
    VariableVectors { name: String },
    /// A value that no cell says.
    #[error("column {column:?}, row {row}: {source}")]
    Value {
        column: String,
        /// The row, from 0.
        row: u64,
        source: CellError,
    },
    /// The schema does not fit the file.
    #[error("schema: {0}")]
    Schema(#[from] SchemaError),
    /// A cell that is not of its column's type.
    #[error("column {column:?}, row {row}: invalid value `{}`: expected {expected}", Escaped(cell.as_bytes()))]
    Cell {
        column: String,
        /// The row, from 0.
        row: u64,
        /// The beginning of the cell.
        cell: String,
        expected: Expected,
    },
    /// CSV that comes from a pipe.
    #[error("is not a regular file: CSV is read twice, first for the types of its columns")]
    NotAFile,
    /// The receiver of events ended the conversion.
    #[error("stopped")]
    Stopped,
    /// The source has none of the formats.
    #[error("the source is not a table: expected an IDV, CSV, Parquet or TBF file")]
    NoTable,
    /// The destination's name ends in none of the formats.
    #[error("a table converts only to .idv, .csv, .parquet or .tbf")]
    NoTableName,
}

impl TableError {
    /// An error of writing CSV, with the error of the system as its source.
    pub(super) fn csv_write(error: csv::Error) -> Self {
        if !error.is_io_error() {
            return Self::CsvWrite(error);
        }
        let csv::ErrorKind::Io(error) = error.into_kind() else {
            return Self::Output(io::ErrorKind::Other.into());
        };
        Self::Output(error)
    }

    /// Whether the data is at fault, and not the usage or the system.
    fn is_damage(&self) -> bool {
        match self {
            Self::Read(error) => error.is_damage(),
            #[cfg(feature = "parquet")]
            Self::Arrow(ArrowError::Read(error)) => error.is_damage(),
            #[cfg(feature = "parquet")]
            Self::Arrow(_) => true,
            #[cfg(feature = "parquet")]
            Self::ArrowWrite(error) => matches!(error, ArrowWriteError::Value { .. }),
            #[cfg(feature = "parquet")]
            Self::Parquet(error) | Self::Pages { source: PageError::Read(error), .. } => {
                is_parquet_damage(error)
            }
            #[cfg(feature = "parquet")]
            Self::DecodeRows { source, .. } => source.is_damage(),
            #[cfg(feature = "parquet")]
            Self::Pages { .. } | Self::Decode(_) | Self::ParquetPanic(_) => true,
            #[cfg(feature = "parquet")]
            Self::Nodes(error) => error.is_damage(),
            #[cfg(feature = "parquet")]
            Self::EdgeFile { source, .. } => source.is_damage(),
            #[cfg(feature = "parquet")]
            Self::NotForSegments => false,
            Self::Csv(_) | Self::Cell { .. } | Self::Value { .. } => true,
            #[cfg(feature = "parquet")]
            Self::ParquetWrite(_) => false,
            #[cfg(not(feature = "parquet"))]
            Self::NoParquet => false,
            Self::Write(_)
            | Self::CsvWrite(_)
            | Self::NotDirect
            | Self::Io(_)
            | Self::Output(_)
            | Self::NoColumns
            | Self::NoColumn { .. }
            | Self::ColumnTwice { .. }
            | Self::VariableVectors { .. }
            | Self::Schema(_)
            | Self::NotAFile
            | Self::Stopped
            | Self::NoTable
            | Self::NoTableName => false,
        }
    }

    /// Whether the error is about the file that is written, and not the one that is read.
    pub(super) fn is_of_output(&self) -> bool {
        match self {
            Self::CsvWrite(_) | Self::Output(_) => true,
            Self::Write(error) => matches!(error, WriteError::Io { .. }),
            #[cfg(feature = "parquet")]
            Self::ParquetWrite(_) => true,
            #[cfg(feature = "parquet")]
            Self::Nodes(NodeError::Segment(error)) => {
                matches!(**error, SegmentError::Write { .. })
            }
            #[cfg(feature = "parquet")]
            Self::ArrowWrite(ArrowWriteError::Write(error)) => {
                matches!(error, WriteError::Io { .. })
            }
            #[cfg(feature = "parquet")]
            Self::EdgeFile { source, .. } => source.is_of_output(),
            _ => false,
        }
    }
}

/// Whether the file is at fault, and not the system. Headers of pages are read through [`io::Read`],
/// so that their defects are errors of I/O too.
///
/// [`io::Read`]: std::io::Read
#[cfg(feature = "parquet")]
fn is_parquet_damage(error: &parquet::errors::ParquetError) -> bool {
    let parquet::errors::ParquetError::External(source) = error else { return true };
    // Decompressors make I/O errors of damage as well; those of the system have its number.
    let io_error = source.downcast_ref::<io::Error>();
    io_error.and_then(io::Error::raw_os_error).is_none()
}

/// The beginning of a message that can be long: of nested errors, each with what is in it.
#[cfg(feature = "parquet")]
struct Short<'e, E>(&'e E);

#[cfg(feature = "parquet")]
impl<E: fmt::Display> fmt::Display for Short<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARS: usize = 200;
        let message = self.0.to_string();
        match message.char_indices().nth(CHARS) {
            None => f.write_str(&message),
            Some((end, _)) => write!(f, "{} ...", message.get(..end).unwrap_or_default()),
        }
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use parquet::errors::ParquetError;

    use super::*;

    #[test]
    fn errors_of_decompressors_are_damage_and_those_of_the_system_are_not() {
        let check = |error: io::Error| is_parquet_damage(&ParquetError::External(error.into()));
        assert!(check(io::Error::other("Src size is incorrect")));
        assert!(check(io::ErrorKind::UnexpectedEof.into()));
        assert!(!check(io::Error::from_raw_os_error(5)));
        assert!(is_parquet_damage(&ParquetError::General("page".to_owned())));
    }
}
