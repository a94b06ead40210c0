//! Columns as Arrow arrays, and arrays as columns.
//!
//! Numbers go over without being copied. `docs/idv.md` has the tables of types.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef, TimeUnit};

use crate::codec::{Codec, Item};
use crate::read_error::ReadError;
use crate::reader::{Column, IdvFile};
use crate::source::ReadAt;
use crate::values::Values;
use crate::values::ValuesError;

mod array;
mod import;
mod items;
mod key_values;
mod time;
mod writer;

pub use writer::{ArrowWriteError, ArrowWriter, ValueError};

use array::Converter;

/// The kind of metadata with the values of a key.
const KEY_VALUES: &str = "KeyValues";

/// The entry of a field's metadata for keys without values: the number of categories.
const KEY_COUNT: &str = "idv:key_count";

/// The entry of a field's metadata for vectors of several dimensions: their extents, as in `8x76`.
const DIMENSIONS: &str = "idv:dimensions";

/// The options of converting columns into arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrowOptions {
    /// The unit of spans and points of time. Microseconds hold every year of .NET, but not its
    /// ticks of 100 ns; nanoseconds hold those, for the years 1678 to 2261. What does not fit the
    /// unit is an error.
    pub time_unit: TimeUnit,
    /// The most slots of vectors in one array: sparse vectors are filled up. A billion.
    pub slots: u64,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self { time_unit: TimeUnit::Microsecond, slots: 1_000_000_000 }
    }
}

/// The reason why columns cannot be converted into arrays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ArrowError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The array cannot hold the values of a column.
    #[error("column {column:?}: {source}")]
    Convert { column: String, source: ConvertError },
}

/// The reason why values cannot be converted into an array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ConvertError {
    /// A span or point of time that the unit cannot say.
    #[error("{ticks} ticks of 100 ns at {index} cannot be stored in {unit:?}s")]
    Time { index: usize, ticks: i64, unit: TimeUnit },
    /// A key beyond the values that its metadata has.
    #[error("key {key} at {index} is out of range for {count} values")]
    Key { index: usize, key: u64, count: u64 },
    /// Values of another kind than the codec's, or too many of them.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// An array that Arrow refuses.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
}

/// Reads rows of several columns as record batches.
///
/// ```
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Float32Type;
/// use idv_format::{ArrowOptions, ArrowReader, IdvFile};
/// # use idv_format::{Codec, NewColumn, Number, Values, WriteOptions, Writer};
/// # let columns = vec![NewColumn::new("x", Codec::number(Number::Single))];
/// # let file = std::io::Cursor::new(Vec::new());
/// # let mut writer = Writer::new(file, columns, WriteOptions::default())?;
/// # writer.write(&[Values::Single(vec![1.0, 2.5].into())])?;
/// # let bytes = writer.finish()?.0.into_inner();
///
/// let file = IdvFile::open(bytes)?;
/// let reader = ArrowReader::new(&file, &[0], ArrowOptions::default())?;
/// let batch = reader.read(0..2)?;
/// assert_eq!(batch.schema().field(0).to_string(), "Field { \"x\": Float32 }");
/// assert_eq!(batch.column(0).as_primitive::<Float32Type>().values()[..], [1.0, 2.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ArrowReader<'f, R> {
    columns: Vec<ArrowColumn<'f, R>>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct ArrowColumn<'f, R> {
    column: Column<'f, R>,
    converter: Converter,
}

impl<'f, R: ReadAt> ArrowReader<'f, R> {
    /// A reader of the columns of the numbers given, in that order. Their lookup tables and the
    /// values of their keys are read at once.
    ///
    /// # Errors
    /// [`ArrowError::Read`] for a column that cannot be read, [`ArrowError::Convert`] for values
    /// of keys that do not become an array.
    pub fn new(
        file: &'f IdvFile<R>,
        columns: &[usize],
        options: ArrowOptions,
    ) -> Result<Self, ArrowError> {
        let columns: Vec<ArrowColumn<'f, R>> = columns
            .iter()
            .map(|&index| ArrowColumn::new(file, index, options))
            .collect::<Result<_, _>>()?;
        let fields: Vec<Field> =
            columns.iter().map(ArrowColumn::field).collect::<Result<_, _>>()?;
        Ok(Self { columns, schema: Arc::new(Schema::new(fields)) })
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Rows of all columns.
    ///
    /// # Errors
    /// [`ArrowError::Read`], [`ArrowError::Convert`].
    pub fn read(&self, rows: Range<u64>) -> Result<RecordBatch, ArrowError> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        let columns = self.columns.iter();
        let values = columns.map(|column| Ok(column.column.read(rows.clone())?));
        self.batch(values, count)
    }

    /// Rows of all columns in several batches, if vectors have more than this many `slots`
    /// together: sparse ones are filled up, and only those of one batch at a time.
    ///
    /// # Errors
    /// [`ArrowError::Read`], [`ArrowError::Convert`], or what `visit` reports.
    pub fn read_parts<E: From<ArrowError>>(
        &self,
        rows: Range<u64>,
        slots: u64,
        mut visit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let read = |column: &ArrowColumn<'f, R>| column.column.read(rows.clone());
        let columns = self.columns.iter().map(read).collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(ArrowError::from)?;
        let count = columns.first().map_or(0, Values::len);
        let parts = parts(&columns, count, slots);
        if let [_] = parts[..] {
            return visit(self.batch(columns.into_iter().map(Ok), count)?);
        }
        for part in parts {
            let values = columns.iter().map(|values| Ok(values.slice(part.clone()).into_owned()));
            visit(self.batch(values, part.len())?)?;
        }
        Ok(())
    }

    fn batch(
        &self,
        values: impl Iterator<Item = Result<Values<'static>, ArrowError>>,
        count: usize,
    ) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter().zip(values);
        let arrays: Vec<ArrayRef> =
            columns.map(|(column, values)| column.convert(values?)).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options);
        let error = |source| ArrowError::Convert {
            column: String::new(),
            source: ConvertError::Arrow(source),
        };
        batch.map_err(error)
    }
}

impl<'f, R: ReadAt> ArrowColumn<'f, R> {
    fn new(file: &'f IdvFile<R>, index: usize, options: ArrowOptions) -> Result<Self, ArrowError> {
        let column = file.column(index)?;
        let is_key = matches!(column.codec().item(), Item::Key(_));
        let dictionary = if is_key { key_values(file, index, options)? } else { None };
        Ok(Self { column, converter: Converter { options, dictionary } })
    }

    /// The type is that of the array without values, so that the two cannot differ.
    fn field(&self) -> Result<Field, ArrowError> {
        let codec = self.column.codec();
        let array = self.convert(codec.empty_values())?;
        let name = self.column.entry().name.clone();
        Ok(self.converter.field(name, codec, array.data_type().clone()))
    }

    fn convert(&self, values: Values<'static>) -> Result<ArrayRef, ArrowError> {
        let column = || self.column.entry().name.to_string();
        let array = self.converter.array(self.column.codec(), values);
        array.map_err(|source| ArrowError::Convert { column: column(), source })
    }
}

/// Cuts rows where their vectors have more than this many slots together. There is at least one
/// part, and each has at least one row if there is one.
fn parts(columns: &[Values<'_>], count: usize, slots: u64) -> Vec<Range<usize>> {
    let row_slots = |row: usize| -> u64 {
        let length = |values: &Values<'_>| {
            let Values::Vector(vectors) = values else { return 0 };
            vectors.row(row).map_or(0, |row| u64::from(row.length()))
        };
        columns.iter().map(length).sum()
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut sum = 0;
    for row in 0..count {
        let more = row_slots(row);
        if sum + more > slots && row > start {
            parts.push(start..row);
            (start, sum) = (row, 0);
        }
        sum += more;
    }
    parts.push(start..count);
    parts
}

/// The values of a key, if the column's metadata has them.
fn key_values<R: ReadAt>(
    file: &IdvFile<R>,
    index: usize,
    options: ArrowOptions,
) -> Result<Option<ArrayRef>, ArrowError> {
    let metadata = file.metadata(index)?;
    let Some(entry) = metadata.iter().find(|entry| entry.kind == KEY_VALUES) else {
        return Ok(None);
    };
    // Unreadable values are not a reason to refuse the keys.
    let Ok((Codec::Vector(vector), _)) = entry.storage.known() else { return Ok(None) };
    let Values::Vector(values) = file.metadata_value(entry)? else { return Ok(None) };
    let converter = Converter { options, dictionary: None };
    let array = values
        .dense_items(options.slots)
        .map_err(ConvertError::from)
        .and_then(|items| converter.item_array(&vector.item, items.into_owned()));
    let column = || entry.kind.clone();
    array.map(Some).map_err(|source| ArrowError::Convert { column: column(), source })
}
