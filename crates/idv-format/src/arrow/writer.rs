//! Writing record batches as rows of a file.

use alloc::string::String;
use alloc::vec::Vec;
use std::io::{Seek, Write};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

use super::import::Importer;
use super::items::Refusal;
use crate::toc::Compression;
use crate::values::Values;
use crate::values::ValuesError;
use crate::write_error::WriteError;
use crate::writer::{NewColumn, WriteOptions, WriteSummary, Writer};

/// The reason why record batches cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ArrowWriteError {
    /// The file cannot be written, or not with these columns.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A type of Arrow without a codec.
    #[error("column {column:?}: values of type {data_type} cannot be stored")]
    Type { column: String, data_type: DataType },
    /// A batch that is not of the schema.
    #[error("column {column:?} is {found}, the schema has {expected}")]
    Schema { column: String, expected: DataType, found: DataType },
    /// A value that the column's codec cannot say.
    #[error("column {column:?}, row {row}: {source}")]
    Value {
        column: String,
        /// The row of the file, from 0; for a value of a dictionary, the first one of its batch.
        row: u64,
        source: ValueError,
    },
    /// More values than fit together.
    #[error("column {column:?}: {source}")]
    Values { column: String, source: ValuesError },
}

/// The reason why a value cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ValueError {
    /// A null where the codec has none.
    #[error("null, and {codec} has no missing values")]
    Missing { codec: &'static str },
    /// A time that ticks of 100 ns cannot express.
    #[error("{time} {unit:?}s cannot be stored in ticks of 100 ns")]
    Time { time: i64, unit: TimeUnit },
    /// More different values of keys than their number can tell apart.
    #[error("more than {limit} different values, the most that {number} can number")]
    Keys { number: &'static str, limit: u64 },
    /// A dictionary's key that points nowhere.
    #[error("the dictionary has no value {key}")]
    NoKey { key: usize },
}

/// Writes record batches as rows of a file of version 1.1.1.6, with DEFLATE.
///
/// `docs/idv.md` says which codec a type becomes, and what of nulls. Dictionaries become keys, and
/// what they hold the `KeyValues` of the column; batches may have different dictionaries, whose
/// values are numbered in the order in which they are first seen.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray};
/// use idv_format::{ArrowWriter, IdvFile, WriteOptions};
///
/// let numbers: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.5]));
/// let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
/// let batch = RecordBatch::try_from_iter([("x", numbers), ("name", names)])?;
///
/// let file = std::io::Cursor::new(Vec::new());
/// let mut writer = ArrowWriter::new(file, &batch.schema(), WriteOptions::default())?;
/// writer.write(&batch)?;
/// let (file, summary) = writer.finish()?;
/// assert_eq!((summary.rows, summary.blocks), (2, 2));
/// assert_eq!(IdvFile::open(file.into_inner())?.find("name"), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ArrowWriter<W> {
    writer: Writer<W>,
    columns: Vec<ImportedColumn>,
    row_count: u64,
}

#[derive(Debug)]
struct ImportedColumn {
    name: String,
    data_type: DataType,
    importer: Importer,
}

impl<W: Write + Seek> ArrowWriter<W> {
    /// Starts a file where `sink` stands, with a column for each field of the schema.
    ///
    /// # Errors
    /// [`ArrowWriteError::Type`] for a type without a codec, [`ArrowWriteError::Write`].
    pub fn new(sink: W, schema: &Schema, options: WriteOptions) -> Result<Self, ArrowWriteError> {
        let column = |field: &arrow_schema::FieldRef| {
            let column = || field.name().clone();
            let data_type = field.data_type().clone();
            let importer = Importer::new(field)
                .map_err(|data_type| ArrowWriteError::Type { column: column(), data_type })?;
            Ok(ImportedColumn { name: column(), data_type, importer })
        };
        let columns: Vec<ImportedColumn> =
            schema.fields().iter().map(column).collect::<Result<_, ArrowWriteError>>()?;
        let new = |column: &ImportedColumn| NewColumn {
            compression: Compression::Deflate,
            ..NewColumn::new(column.name.clone(), column.importer.codec())
        };
        let writer = Writer::new(sink, columns.iter().map(new).collect(), options)?;
        Ok(Self { writer, columns, row_count: 0 })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// [`ArrowWriteError::Schema`] for a batch of other columns; [`ArrowWriteError::Value`] or
    /// [`ArrowWriteError::Values`] for values that the file cannot store. None of its rows are then
    /// added. [`ArrowWriteError::Write`], after which the file cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowWriteError> {
        let expected = self.columns.len();
        let found = batch.num_columns();
        if expected != found {
            return Err(WriteError::Columns { expected, found }.into());
        }
        let row_count = self.row_count;
        let columns = self.columns.iter_mut().zip(batch.columns());
        let rows: Vec<Values<'_>> = columns
            .map(|(column, array)| column.values(array.as_ref(), row_count))
            .collect::<Result<_, _>>()?;
        self.writer.write(&rows)?;
        self.row_count += batch.num_rows() as u64;
        Ok(())
    }

    /// Writes what is left, and hands back the destination.
    ///
    /// # Errors
    /// [`ArrowWriteError::Write`].
    pub fn finish(mut self) -> Result<(W, WriteSummary), ArrowWriteError> {
        for (index, column) in self.columns.into_iter().enumerate() {
            if let Some(new) = self.writer.column_mut(index) {
                new.codec = column.importer.codec();
                new.metadata.extend(column.importer.into_metadata());
            }
        }
        Ok(self.writer.finish()?)
    }
}

impl ImportedColumn {
    fn values<'a>(
        &mut self,
        array: &'a dyn Array,
        first_row: u64,
    ) -> Result<Values<'a>, ArrowWriteError> {
        let column = || self.name.clone();
        if *array.data_type() != self.data_type {
            let expected = self.data_type.clone();
            let found = array.data_type().clone();
            return Err(ArrowWriteError::Schema { column: column(), expected, found });
        }
        self.importer.values(array).map_err(|refusal| match refusal {
            Refusal::Value { index, source } => {
                let row = first_row + index as u64;
                ArrowWriteError::Value { column: column(), row, source }
            }
            Refusal::Values(source) => ArrowWriteError::Values { column: column(), source },
        })
    }
}
