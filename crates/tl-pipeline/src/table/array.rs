//! Arrays in files as tables: NumPy's `.npy` and `.npz`, safetensors, and Zarr. The first dimension has
//! the rows.

mod defect;
mod npz;
mod rows;
mod safetensors;
mod zarr;

use tbl_io::{
    Location, Mapped, NpyArray, NpyHeader, NpyKind, NpzMember, ReadError, Source, Stores,
};
use tl_handoff::sync::Arc;

use crate::error::{PipelineError, TableError};
use crate::table::{ColumnType, ColumnValues, Content, Meaning, RowValues, Table, TableColumn};
use defect::ArrayDefect;
use rows::{Block, Numbers, StoredRows};
use zarr::Chunks;

/// The column of a file that has one array without a name.
const ONLY_COLUMN: &str = "array";

/// The file of a Zarr array or group, which its folder stands for.
const ZARR_METADATA: &[u8] = b"zarr.json";

/// The arrays of a file, or of a folder in the format Zarr 3, as columns. The one of a `.npy` file and of
/// a Zarr array is called `array`; the members of an `.npz` file, tensors and the arrays of a Zarr group
/// have their names.
///
/// Rows are read where they lie, unless they are compressed. A tensor with another number of rows than
/// the first one cannot be read; in `.npz` files and Zarr groups, it is an error.
#[derive(Debug)]
pub struct ArrayTable {
    source: Source,
    mapped: Option<Arc<Mapped>>,
    format: &'static str,
    rows: u64,
    columns: Vec<TableColumn>,
    places: Vec<Option<Place>>,
    bytes: u64,
}

/// The numbers of a column that can be read.
#[derive(Clone, Debug)]
struct Place {
    numbers: Numbers,
    values: Values,
}

/// An array that a file has.
#[derive(Debug)]
struct Array {
    name: String,
    /// The reason why batches cannot have it, if there is one.
    number: Result<ColumnType, String>,
    shape: Vec<u64>,
    is_big_endian: bool,
    values: Values,
}

/// The place of the numbers of an array.
#[derive(Clone, Debug)]
enum Values {
    /// Nowhere that can be read.
    None,
    /// In the file as they are, in so many bytes. A member of a ZIP archive has a checksum too.
    Stored { offset: u64, bytes: u64, member: Option<NpzMember> },
    /// In a compressed member, after a header of so many bytes.
    Deflated { member: NpzMember, header_bytes: u64 },
    /// In files of their own.
    Chunks(Arc<Chunks>),
}

impl ArrayTable {
    /// Opens a file with arrays; `None` for another one. `.npy` files have a magic, and so have the
    /// archives of `.npz` files; safetensors are detected by the extension, and Zarr arrays by the name
    /// `zarr.json`. Their chunks are opened in `stores`.
    ///
    /// # Errors
    /// [`PipelineError::Table`] for a damaged file.
    pub fn open(stores: &Stores, source: &Source) -> Result<Option<Self>, PipelineError> {
        if source.location().file_name() == ZARR_METADATA {
            let arrays = zarr::arrays(stores, source)?;
            return Self::with(source, "zarr", Ok(arrays)).map(Some);
        }
        let extension = source.location().extension().unwrap_or_default();
        let mut magic = [0; NpyArray::MAGIC.len()];
        if source.len() >= magic.len() as u64 {
            source.read_exact_at(0, &mut magic)?;
        }
        if magic == NpyArray::MAGIC {
            let arrays = npy(source).map(|array| vec![array]);
            return Self::with(source, "npy", arrays).map(Some);
        }
        let is_zip = magic.starts_with(&npz::MAGIC);
        if extension.eq_ignore_ascii_case("npz") || is_zip && npz::is_one(source)? {
            return Self::with(source, "npz", npz::arrays(source)).map(Some);
        }
        if extension.eq_ignore_ascii_case("safetensors") {
            return Self::with(source, "safetensors", safetensors::arrays(source)).map(Some);
        }
        Ok(None)
    }

    fn with(
        source: &Source,
        format: &'static str,
        arrays: Result<Vec<Array>, TableError>,
    ) -> Result<Self, PipelineError> {
        let table = arrays.and_then(|arrays| Self::of(source, format, arrays));
        let location = || source.location().clone();
        table.map_err(|source| PipelineError::Table { location: location(), source })
    }

    fn of(source: &Source, format: &'static str, arrays: Vec<Array>) -> Result<Self, TableError> {
        // An array without dimensions has no rows, and does not say how many there are.
        let rows = arrays.iter().find_map(|array| array.shape.first().copied()).unwrap_or(0);
        let mut columns = Vec::new();
        let mut places = Vec::new();
        let mut chunk_bytes = 0_u64;
        for array in arrays {
            let have = source.len();
            if let Values::Stored { offset, bytes, .. } = array.values {
                let need = offset.saturating_add(bytes);
                if need > have {
                    return Err(ArrayDefect::Length { what: "the array", need, have }.into());
                }
            }
            let found = array.column(rows)?;
            let (content, place) = match found {
                Ok((content, place)) => (content, Some(place)),
                Err(reason) => (Content::Unreadable { reason }, None),
            };
            if let Some(Place { numbers, values: Values::Chunks(_) }) = &place {
                let bytes = numbers.row_bytes.saturating_mul(rows);
                chunk_bytes = chunk_bytes.saturating_add(bytes);
            }
            columns.push(TableColumn { name: array.name, content });
            places.push(place);
        }
        let bytes = if format == "zarr" { chunk_bytes } else { source.len() };
        // An object in a store is read row by row, and chunks are files of their own.
        let mapped =
            if format == "zarr" { None } else { Mapped::new(source, 0, source.len()).ok() };
        let mapped = mapped.map(Arc::new);
        let source = source.clone();
        Ok(Self { source, mapped, format, rows, columns, places, bytes })
    }

    fn place(&self, column: usize) -> Result<&Place, TableError> {
        let number = column as u64;
        let place = self.places.get(column).and_then(Option::as_ref);
        place.ok_or(TableError::OutOfRange { what: "column", number })
    }

    /// The bytes of a member, inflated.
    fn inflated(&self, member: &NpzMember) -> Result<Vec<u8>, TableError> {
        let NpzMember { offset, stored_bytes, .. } = *member;
        let mut read = Vec::new();
        let packed = match self.mapped.as_ref().and_then(|map| map.lend(offset, stored_bytes)) {
            Some(packed) => packed,
            None => {
                self.source.read_range_into(offset, stored_bytes, &mut read)?;
                &read
            }
        };
        let mut bytes = Vec::new();
        member.unpack(packed, &mut bytes).map_err(ArrayDefect::Npy)?;
        Ok(bytes)
    }
}

impl Array {
    /// The column of the array in a table of so many rows, or the reason why it is not readable.
    fn column(&self, rows: u64) -> Result<Result<(Content, Place), String>, ArrayDefect> {
        let number = match &self.number {
            Ok(number) => *number,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let size = number.bytes() as u64;
        if let Values::Stored { bytes: found, .. } = self.values {
            let expected = self.shape.iter().try_fold(size, |bytes, &side| bytes.checked_mul(side));
            let expected = expected.unwrap_or(u64::MAX);
            if expected != found {
                return Err(ArrayDefect::Size { found, expected });
            }
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
        let numbers = Numbers {
            row_bytes,
            number_bytes: number.bytes(),
            is_big_endian: self.is_big_endian,
            is_bool: number == ColumnType::Bool,
        };
        Ok(Ok((content, Place { numbers, values: self.values.clone() })))
    }
}

/// Fails unless all arrays with dimensions have as many rows.
fn check_rows(arrays: &[Array]) -> Result<(), ArrayDefect> {
    let with_rows = |array: &'_ Array| array.shape.first().copied();
    let Some(first) = arrays.iter().find(|array| with_rows(array).is_some()) else { return Ok(()) };
    let rows = first.shape.first().copied().unwrap_or_default();
    for array in arrays {
        if let Some(found) = with_rows(array).filter(|&found| found != rows) {
            let name = array.name.clone();
            let first = first.name.clone();
            return Err(ArrayDefect::Rows { name, found, first, rows });
        }
    }
    Ok(())
}

/// The array of a `.npy` file.
fn npy(source: &Source) -> Result<Array, TableError> {
    let mut front = Vec::new();
    source.read_range_into(0, source.len().min(NpyHeader::MOST_BYTES as u64), &mut front)?;
    let header = NpyHeader::parse(&front).map_err(ArrayDefect::Npy)?;
    if header.shape.is_empty() {
        return Err(ArrayDefect::Scalar.into());
    }
    if is_fortran(&header) {
        return Err(ArrayDefect::Fortran.into());
    }
    let have = source.len();
    let offset = header.data_offset as u64;
    let bytes = header.data_bytes().unwrap_or(u64::MAX);
    if offset.checked_add(bytes) != Some(have) {
        let need = offset.saturating_add(bytes);
        return Err(ArrayDefect::Length { what: "the array", need, have }.into());
    }
    let values = Values::Stored { offset, bytes, member: None };
    Ok(Array::of_npy(ONLY_COLUMN.to_owned(), &header, values))
}

impl Array {
    /// The array with this header of a `.npy` file.
    fn of_npy(name: String, header: &NpyHeader, values: Values) -> Self {
        Self {
            name,
            number: Ok(number_of(header.kind, header.item_bytes)),
            shape: header.shape.iter().map(|&side| side as u64).collect(),
            is_big_endian: header.is_big_endian,
            values,
        }
    }
}

/// Whether the rows of an array are not in sequence.
fn is_fortran(header: &NpyHeader) -> bool {
    header.is_fortran && header.shape.len() > 1
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

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn values(&self, column: usize) -> Result<ColumnValues, TableError> {
        let Place { numbers, values } = self.place(column)?;
        Ok(match values {
            Values::Stored { offset, .. } => ColumnValues::Whole(Arc::new(StoredRows {
                source: self.source.clone(),
                mapped: self.mapped.clone(),
                numbers: *numbers,
                offset: *offset,
                count: self.rows,
            })),
            Values::Deflated { member, .. } => {
                let load_bytes = member.bytes.saturating_add(member.stored_bytes);
                ColumnValues::Blocks { rows: self.rows.max(1), load_bytes }
            }
            Values::Chunks(chunks) => {
                let load_bytes = chunks.load_bytes();
                ColumnValues::Blocks { rows: chunks.block_rows(), load_bytes }
            }
            Values::None => {
                return Err(TableError::OutOfRange { what: "column", number: column as u64 });
            }
        })
    }

    fn load(&self, column: usize, block: u64) -> Result<Arc<dyn RowValues>, TableError> {
        let Place { numbers, values } = self.place(column)?;
        let numbers = *numbers;
        let no_block = TableError::OutOfRange { what: "block", number: block };
        match values {
            Values::Deflated { member, header_bytes } if block == 0 => {
                let bytes = self.inflated(member)?;
                Ok(Arc::new(Block { bytes, front: *header_bytes, numbers }))
            }
            Values::Chunks(chunks) => {
                let rows = chunks.block_rows();
                let start = block.checked_mul(rows).filter(|&start| start < self.rows);
                let start = start.ok_or(no_block)?;
                let end = start.saturating_add(rows).min(self.rows);
                let bytes = chunks.read(start..end)?;
                Ok(Arc::new(Block { bytes, front: 0, numbers }))
            }
            Values::Stored { .. } | Values::Deflated { .. } | Values::None => Err(no_block),
        }
    }

    fn check(&self) -> Result<(), ReadError> {
        self.mapped.as_ref().map_or(Ok(()), |mapped| mapped.check())
    }

    fn verify(&self, column: usize) -> Result<(), TableError> {
        match &self.place(column)?.values {
            Values::Stored { member: Some(member), .. } => member.verify_stored(&self.source),
            Values::Stored { .. } | Values::Deflated { .. } | Values::Chunks(_) | Values::None => {
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
