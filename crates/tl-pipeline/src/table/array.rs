//! Arrays in files as tables: NumPy's `.npy`, and safetensors. The first dimension has the rows.

mod safetensors;

use tbl_io::{
    ErrorKind, Location, Mapped, NpyArray, NpyError, NpyHeader, NpyKind, ReadError, Source,
};
use tl_handoff::sync::Arc;

use crate::error::{PipelineError, TableError};
use crate::fault::Fault;
use crate::table::number::from_little_endian;
use crate::table::{ColumnType, ColumnValues, Content, Meaning, RowValues, Table, TableColumn};

/// The column of a `.npy` file.
const NPY_COLUMN: &str = "array";

/// The arrays of a file as columns: the one of a `.npy` file is called `array`, those of a safetensors
/// file have their names.
///
/// Rows are read where they lie. An array with another number of rows than the first one cannot be read.
#[derive(Debug)]
pub struct ArrayTable {
    source: Source,
    mapped: Option<Arc<Mapped>>,
    format: &'static str,
    rows: u64,
    columns: Vec<TableColumn>,
    places: Vec<Option<Place>>,
}

/// The place of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    row_bytes: u64,
    number_bytes: usize,
    is_big_endian: bool,
    is_bool: bool,
}

/// An array that a file has.
#[derive(Debug)]
struct Array {
    name: String,
    /// `None` for numbers of a type that batches cannot have.
    number: Option<ColumnType>,
    /// The type as the file names it.
    type_name: String,
    shape: Vec<u64>,
    /// Its first byte in the file.
    offset: u64,
    bytes: u64,
    is_big_endian: bool,
}

/// A defect of a file with arrays, or an array whose rows are not in sequence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ArrayDefect {
    #[error("{0}")]
    Npy(NpyError),
    #[error("the array is in Fortran order, expected C order: save numpy.ascontiguousarray(array)")]
    Fortran,
    #[error("an array without dimensions has no rows")]
    Scalar,
    #[error("{what} ends at byte {need}, the file has {have} bytes")]
    Length { what: &'static str, need: u64, have: u64 },
    #[error("the array has {found} bytes, expected {expected} by its shape")]
    Size { found: u64, expected: u64 },
    #[error("the header of the safetensors file: {reason}")]
    Header { reason: String },
}

impl Fault for ArrayDefect {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Data
    }
}

impl From<ArrayDefect> for TableError {
    fn from(defect: ArrayDefect) -> Self {
        Self::File { source: Arc::new(defect), is_lasting: true }
    }
}

impl ArrayTable {
    /// Opens a file with arrays; `None` for another one. `.npy` files have a magic, and safetensors are
    /// detected by the extension.
    ///
    /// # Errors
    /// [`PipelineError::Table`] for a damaged file.
    pub fn open(source: &Source) -> Result<Option<Self>, PipelineError> {
        let mut magic = [0; NpyArray::MAGIC.len()];
        let is_npy = source.len() >= magic.len() as u64 && {
            source.read_exact_at(0, &mut magic)?;
            magic == NpyArray::MAGIC
        };
        let is_safetensors = source
            .location()
            .extension()
            .is_some_and(|found| found.eq_ignore_ascii_case("safetensors"));
        let arrays = match (is_npy, is_safetensors) {
            (true, _) => npy(source).map(|array| vec![array]),
            (false, true) => safetensors::arrays(source),
            (false, false) => return Ok(None),
        };
        let format = if is_npy { "npy" } else { "safetensors" };
        let table = arrays.and_then(|arrays| Self::of(source, format, arrays));
        let fault =
            |fault| PipelineError::Table { location: source.location().clone(), source: fault };
        table.map(Some).map_err(fault)
    }

    fn of(source: &Source, format: &'static str, arrays: Vec<Array>) -> Result<Self, TableError> {
        // An array without dimensions has no rows, and does not say how many there are.
        let rows = arrays.iter().find_map(|array| array.shape.first().copied()).unwrap_or(0);
        let mut columns = Vec::new();
        let mut places = Vec::new();
        for array in arrays {
            let have = source.len();
            let need = array.offset.saturating_add(array.bytes);
            if need > have {
                return Err(ArrayDefect::Length { what: "the array", need, have }.into());
            }
            let found = array.column(rows)?;
            let (content, place) = match found {
                Ok((content, place)) => (content, Some(place)),
                Err(reason) => (Content::Unreadable { reason }, None),
            };
            columns.push(TableColumn { name: array.name, content });
            places.push(place);
        }
        // An object in a store is read row by row.
        let mapped = Mapped::new(source, 0, source.len()).ok().map(Arc::new);
        Ok(Self { source: source.clone(), mapped, format, rows, columns, places })
    }
}

impl Array {
    /// The column of the array in a table of so many rows, or the reason why it is not readable.
    fn column(&self, rows: u64) -> Result<Result<(Content, Place), String>, ArrayDefect> {
        let Some(number) = self.number else {
            return Ok(Err(format!("numbers of type {}", self.type_name)));
        };
        let size = number.bytes() as u64;
        let expected = self.shape.iter().try_fold(size, |bytes, &side| bytes.checked_mul(side));
        let expected = expected.unwrap_or(u64::MAX);
        if expected != self.bytes {
            return Err(ArrayDefect::Size { found: self.bytes, expected });
        }
        let [first, rest @ ..] = &*self.shape else {
            return Ok(Err(ArrayDefect::Scalar.to_string()));
        };
        if *first != rows {
            return Ok(Err(format!("{first} rows, the first array has {rows}")));
        }
        let sides = rest.iter().map(|&side| usize::try_from(side).ok()).collect::<Option<Vec<_>>>();
        let Some(shape) = sides else { return Ok(Err("rows that are too large".to_owned())) };
        // Without rows, dimensions may be of any size.
        let row_bytes = rest.iter().try_fold(size, |bytes, &side| bytes.checked_mul(side));
        let Some(row_bytes) = row_bytes else {
            return Ok(Err("rows that are too large".to_owned()));
        };
        let content = Content::Numbers { number, shape, meaning: Meaning::Value };
        let is_big_endian = self.is_big_endian;
        let number_bytes = number.bytes();
        let is_bool = number == ColumnType::Bool;
        let offset = self.offset;
        Ok(Ok((content, Place { offset, row_bytes, number_bytes, is_big_endian, is_bool })))
    }
}

/// The array of a `.npy` file.
fn npy(source: &Source) -> Result<Array, TableError> {
    let mut front = Vec::new();
    source.read_range_into(0, source.len().min(NpyHeader::MOST_BYTES as u64), &mut front)?;
    let header = NpyHeader::parse(&front).map_err(ArrayDefect::Npy)?;
    if header.shape.is_empty() {
        return Err(ArrayDefect::Scalar.into());
    }
    if header.is_fortran && header.shape.len() > 1 {
        return Err(ArrayDefect::Fortran.into());
    }
    let have = source.len();
    let offset = header.data_offset as u64;
    let bytes = header.data_bytes().unwrap_or(u64::MAX);
    if offset.checked_add(bytes) != Some(have) {
        let need = offset.saturating_add(bytes);
        return Err(ArrayDefect::Length { what: "the array", need, have }.into());
    }
    Ok(Array {
        name: NPY_COLUMN.to_owned(),
        number: Some(number_of(header.kind, header.item_bytes)),
        type_name: String::new(),
        shape: header.shape.iter().map(|&side| side as u64).collect(),
        offset,
        bytes,
        is_big_endian: header.is_big_endian,
    })
}

/// The type of numbers of this kind and size.
pub(crate) fn number_of(kind: NpyKind, bytes: usize) -> ColumnType {
    match (kind, bytes) {
        (NpyKind::Bool, _) => ColumnType::Bool,
        (NpyKind::Unsigned, 1) => ColumnType::U8,
        (NpyKind::Unsigned, 2) => ColumnType::U16,
        (NpyKind::Unsigned, 4) => ColumnType::U32,
        (NpyKind::Unsigned, _) => ColumnType::U64,
        (NpyKind::Signed, 1) => ColumnType::I8,
        (NpyKind::Signed, 2) => ColumnType::I16,
        (NpyKind::Signed, 4) => ColumnType::I32,
        (NpyKind::Signed, _) => ColumnType::I64,
        (NpyKind::Float, 2) => ColumnType::F16,
        (NpyKind::Float, 4) => ColumnType::F32,
        (NpyKind::Float, _) => ColumnType::F64,
    }
}

impl Table for ArrayTable {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn format(&self) -> &'static str {
        self.format
    }

    fn row_count(&self) -> u64 {
        self.rows
    }

    fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    fn values(&self, column: usize) -> Result<ColumnValues, TableError> {
        let place = self.places.get(column).copied().flatten();
        let number = column as u64;
        let place = place.ok_or(TableError::OutOfRange { what: "column", number })?;
        let source = self.source.clone();
        let mapped = self.mapped.clone();
        Ok(ColumnValues::Whole(Arc::new(Rows { source, mapped, place, count: self.rows })))
    }

    fn load(&self, _: usize, block: u64) -> Result<Arc<dyn RowValues>, TableError> {
        Err(TableError::OutOfRange { what: "block", number: block })
    }

    fn check(&self) -> Result<(), ReadError> {
        self.mapped.as_ref().map_or(Ok(()), |mapped| mapped.check())
    }
}

/// The rows of an array, where they lie.
struct Rows {
    source: Source,
    mapped: Option<Arc<Mapped>>,
    place: Place,
    count: u64,
}

impl RowValues for Rows {
    fn kept_bytes(&self) -> u64 {
        0
    }

    fn write(&self, row: u64, out: &mut [u8]) -> Result<(), TableError> {
        let Place { offset, row_bytes, number_bytes, is_big_endian, is_bool } = self.place;
        let is_row = row < self.count && out.len() as u64 == row_bytes;
        let start = row.checked_mul(row_bytes).and_then(|start| start.checked_add(offset));
        let Some(start) = start.filter(|_| is_row) else {
            return Err(TableError::OutOfRange { what: "row", number: row });
        };
        match self.mapped.as_ref().and_then(|mapped| mapped.lend(start, row_bytes)) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => self.source.read_exact_at(start, out)?,
        }
        if is_big_endian {
            out.chunks_exact_mut(number_bytes).for_each(<[u8]>::reverse);
        }
        from_little_endian(out, number_bytes);
        if is_bool {
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
