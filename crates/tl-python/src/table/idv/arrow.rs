//! Columns for other libraries, by Arrow's C data interface: capsules that need no library here.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};
use idv_format::{ArrowOptions, ArrowReader, IdvFile};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use tl_pipeline::IdvBytes;

use super::PyIdvFile;
use crate::detached::{caught, detached};
use crate::error::Error;

/// Rows of a batch at least, unless there are fewer: whole blocks, as many as that takes.
const BATCH_ROWS: u64 = 1 << 16;

/// The rows of a file, batch by batch. It has a count of the file.
struct Batches {
    file: Arc<IdvFile<IdvBytes>>,
    columns: Vec<usize>,
    schema: SchemaRef,
    options: ArrowOptions,
    next: u64,
    batch_rows: u64,
}

impl Batches {
    fn new(file: &PyIdvFile, time_unit: TimeUnit) -> Result<Self, idv_format::ArrowError> {
        let mut options = ArrowOptions::default();
        options.time_unit = time_unit;
        let columns = file.readable();
        let file = Arc::clone(&file.file);
        let schema = ArrowReader::new(&file, &columns, options)?.schema();
        let entries = columns.iter().filter_map(|&column| file.columns().get(column));
        let block = entries.map(|entry| entry.rows_per_block).max().unwrap_or(1).max(1);
        let batch_rows = BATCH_ROWS.div_ceil(block).saturating_mul(block);
        Ok(Self { file, columns, schema, options, next: 0, batch_rows })
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.file.row_count();
        if self.next >= count {
            return None;
        }
        let rows = self.next..self.next.saturating_add(self.batch_rows).min(count);
        self.next = rows.end;
        let batch =
            caught(|| ArrowReader::new(&self.file, &self.columns, self.options)?.read(rows));
        Some(match batch {
            Ok(batch) => batch.map_err(|error| ArrowError::ExternalError(Box::new(error))),
            // A panic must not reach the C interface: it would end the process.
            Err(panic) => Err(ArrowError::ComputeError(panic.message().to_owned())),
        })
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The schema alone.
pub(super) fn schema<'py>(
    py: Python<'py>,
    file: &PyIdvFile,
    time_unit: &str,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&*batches(py, file, time_unit)?.schema);
    let schema = schema.map_err(|error| Error::setting(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// All rows.
pub(super) fn stream<'py>(
    py: Python<'py>,
    file: &PyIdvFile,
    time_unit: &str,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches(py, file, time_unit)?));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

fn batches(py: Python<'_>, file: &PyIdvFile, time_unit: &str) -> Result<Batches, Error> {
    let time_unit = match time_unit {
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        other => return Err(Error::setting(&format!("time_unit is {other}, expected us or ns"))),
    };
    detached(py, || Batches::new(file, time_unit))?
        .map_err(|error| Error::arrow(&file.location, &error))
}
