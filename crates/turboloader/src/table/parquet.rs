//! Parquet files, by way of Arrow's arrays.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use idv_format::{ArrowOptions, ArrowReader, ArrowWriter, WriteOptions, WriteSummary};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;

use super::error::TableError;
use super::event::{OnEvent, progress};
use super::idv::Table;
use super::unit::TimeUnit;
use crate::panics;

mod checked;
mod delta;
pub(super) mod pages;
mod thrift;

use checked::Checked;

/// Slots of vectors that become arrays together.
const SLOTS: u64 = 1 << 22;

/// Bytes of a row group: it is in memory until it is complete.
const GROUP_BYTES: usize = 64 << 20;

/// Rows that are read together.
const ROWS: usize = 4096;

/// Writes all rows and returns how many there are.
pub(super) fn write(
    table: &Table,
    unit: TimeUnit,
    output: &File,
    on_event: OnEvent<'_>,
) -> Result<u64, TableError> {
    let mut options = ArrowOptions::default();
    options.time_unit = match unit {
        TimeUnit::Microseconds => arrow_schema::TimeUnit::Microsecond,
        TimeUnit::Nanoseconds => arrow_schema::TimeUnit::Nanosecond,
    };
    let reader = ArrowReader::new(&table.file, &table.columns, options)?;
    let mut writer = Output::new(output, reader.schema())?;
    for rows in table.row_ranges() {
        let end = rows.end;
        reader.read_parts(rows, SLOTS, |batch| writer.write(&batch))?;
        progress(on_event, end, table.file.row_count())?;
    }
    writer.finish()?;
    Ok(table.file.row_count())
}

/// Makes an IDV file of the rows of `path`.
pub(super) fn read(
    path: &Path,
    names: &[String],
    output: &File,
    options: WriteOptions,
    on_event: OnEvent<'_>,
) -> Result<WriteSummary, TableError> {
    let mut rows = Rows::open(path, names)?;
    let mut writer = ArrowWriter::new(BufWriter::new(output), &rows.schema, options)?;
    while let Some(batch) = rows.next()? {
        writer.write(&batch)?;
        progress(on_event, rows.done, rows.total)?;
    }
    Ok(writer.finish()?.1)
}

/// The rows of a Parquet file, batch by batch.
pub(super) struct Rows {
    metadata: Arc<ParquetMetaData>,
    reader: ParquetRecordBatchReader,
    /// The columns that were asked for.
    pub(super) schema: SchemaRef,
    /// Rows that are read.
    pub(super) done: u64,
    /// Rows of the file.
    pub(super) total: u64,
}

impl Rows {
    /// Opens a file with the columns of these names, or all.
    pub(super) fn open(path: &Path, names: &[String]) -> Result<Self, TableError> {
        let file = Arc::new(Checked::new(File::open(path)?)?);
        file.check_metadata()?;
        let builder =
            panics::catch(|| ParquetRecordBatchReaderBuilder::try_new(Checked::clone(&file)))??;
        let metadata = Arc::clone(builder.metadata());
        let total = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
        let mask = if names.is_empty() {
            ProjectionMask::all()
        } else {
            let field = |name: &String| {
                let found =
                    builder.schema().fields().iter().rposition(|field| field.name() == name);
                found.ok_or_else(|| TableError::NoColumn { name: name.clone() })
            };
            let fields: Vec<usize> = names.iter().map(field).collect::<Result<_, _>>()?;
            ProjectionMask::roots(builder.parquet_schema(), fields)
        };
        check_pages(&file, &metadata, &mask)?;
        let builder = builder.with_projection(mask).with_batch_size(ROWS);
        let reader = panics::catch(|| builder.build())??;
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        if schema.fields().is_empty() {
            return Err(TableError::NoColumns);
        }
        Ok(Self { metadata, reader, schema, done: 0, total })
    }

    /// The next rows; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        match panics::catch(|| self.reader.next().transpose()) {
            Ok(Ok(batch)) => {
                self.done += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
                Ok(batch)
            }
            Ok(Err(error)) => Err(in_rows(&self.metadata, self.done, error.into())),
            Err(panic) => Err(in_rows(&self.metadata, self.done, panic.into())),
        }
    }
}

/// Writes batches of one schema.
pub(super) struct Output<'f> {
    writer: parquet::arrow::ArrowWriter<&'f File>,
    rows: u64,
}

impl<'f> Output<'f> {
    pub(super) fn new(output: &'f File, schema: SchemaRef) -> Result<Self, TableError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let writer = parquet::arrow::ArrowWriter::try_new(output, schema, Some(properties));
        Ok(Self { writer: writer.map_err(TableError::ParquetWrite)?, rows: 0 })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.writer.write(batch).map_err(TableError::ParquetWrite)?;
        self.rows += batch.num_rows() as u64;
        if self.writer.in_progress_size() >= GROUP_BYTES {
            self.writer.flush().map_err(TableError::ParquetWrite)?;
        }
        Ok(())
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn finish(self) -> Result<(), TableError> {
        self.writer.close().map_err(TableError::ParquetWrite).map(drop)
    }
}

/// Checks the pages of all columns of `mask`, before any is decoded.
fn check_pages(
    file: &Arc<Checked>,
    metadata: &ParquetMetaData,
    mask: &ProjectionMask,
) -> Result<(), TableError> {
    for (row_group, group) in metadata.row_groups().iter().enumerate() {
        for (column, chunk) in group.columns().iter().enumerate() {
            if !mask.leaf_included(column) {
                continue;
            }
            let checked = panics::catch(|| pages::check(file, group, chunk));
            checked.unwrap_or_else(|panic| Err(panic.into())).map_err(|source| {
                let column = chunk.column_path().string();
                TableError::Pages { row_group, column, source }
            })?;
        }
    }
    Ok(())
}

/// An error of decoding the rows from `first` on.
fn in_rows(metadata: &ParquetMetaData, first: u64, source: TableError) -> TableError {
    let rows = |group: &RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
    let groups = metadata.row_groups().iter().map(rows);
    let ends = groups.scan(0u64, |end, rows| {
        *end = end.saturating_add(rows);
        Some(*end)
    });
    let (row_group, end) = ends.enumerate().find(|&(_, end)| first < end).unwrap_or_default();
    let last = first.saturating_add(ROWS as u64).min(end).saturating_sub(1).max(first);
    TableError::DecodeRows { row_group, first, last, source: Box::new(source) }
}
