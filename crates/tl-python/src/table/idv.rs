//! IDV files: what columns they have, and their values as tensors, lists and Arrow streams.
//!
//! Python decides on the form of the parts, such as arrays of times or sparse matrices.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

mod arrow;
mod parts;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use idv_format::{Codec, ColumnEntry, Compression, IdvFile, Item, Scratch, Values};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tbl_io::{Location, Mapped, Source};
use tl_pipeline::IdvBytes;

use crate::detached::detached;
use crate::error::Error;
use crate::memory::Memory;
use crate::remote::StoreSettings;
use crate::table::open_file;
use crate::tensor::Tensor;

/// An open IDV file.
#[pyclass(frozen, name = "IdvFile", module = "turboloader._native")]
pub(crate) struct PyIdvFile {
    location: Location,
    /// `None` for an object of a store, which is read block by block.
    mapped: Option<Arc<Mapped>>,
    file: Arc<IdvFile<IdvBytes>>,
}

impl PyIdvFile {
    /// Reads what the file has.
    pub(crate) fn open(source: Source) -> Result<Self, Error> {
        let map = || Mapped::new(&source, 0, source.len()).map(Arc::new);
        let mapped = source.is_mappable().then(map).transpose()?;
        let file = IdvFile::open(IdvBytes::new(source.clone()));
        let file = Arc::new(file.map_err(|error| Error::idv(source.location(), &error))?);
        Ok(Self { location: source.location().clone(), mapped, file })
    }

    fn error(&self, error: idv_format::ReadError) -> Error {
        Error::idv(&self.location, &error)
    }

    /// The values of a column where they lie in the file, if they lie there as in memory: numbers
    /// that are not compressed, in one block or in contiguous blocks.
    fn lent(&self, column: usize) -> Result<Option<(Memory, LentShape)>, Error> {
        let Some(mapped) = &self.mapped else { return Ok(None) };
        let column = self.file.column(column).map_err(|error| self.error(error))?;
        let blocks = column.blocks();
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(None) };
        let end = |block: &idv_format::Block| block.offset + u64::from(block.stored_bytes);
        let is_run = blocks.windows(2).all(|pair| end(&pair[0]) == pair[1].offset);
        let is_plain = column.compression() == Compression::None
            && (blocks.len() == 1 || is_run && matches!(column.codec(), Codec::Item(_)));
        let rows = usize::try_from(column.row_count()).unwrap_or(usize::MAX);
        if !is_plain {
            return Ok(None);
        }
        let bytes = end(last).saturating_sub(first.offset);
        let found = mapped.with(first.offset, bytes, |bytes| {
            let values = column.codec().decode(rows, bytes).ok()?;
            let (items, width) = if let Values::Vector(vectors) = &values {
                (vectors.items(), Some(vectors.dense_length()? as usize))
            } else {
                (values.slice(0..values.len()), None)
            };
            let (lent, element) = parts::numbers(&items)?;
            // What was decoded lies elsewhere.
            let start = lent.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
            let is_inside = start.checked_add(lent.len()).is_some_and(|end| end <= bytes.len());
            let shape = LentShape { rows, width, element };
            (is_inside && !lent.is_empty()).then_some((start as u64, lent.len() as u64, shape))
        })?;
        let Some((start, bytes, shape)) = found else { return Ok(None) };
        Ok(Some((Memory::of_mapped(mapped, first.offset + start, bytes)?, shape)))
    }

    /// The damage of the file: blocks and metadata that cannot be read, and those of unknown kinds,
    /// which were skipped.
    pub(crate) fn damage(&self) -> (Vec<String>, Vec<String>) {
        let mut damage = Vec::new();
        let mut oddities = Vec::new();
        let mut scratch = Scratch::new();
        for (place, entry) in self.file.columns().iter().enumerate() {
            let mut errors = Vec::new();
            match self.file.column(place) {
                Ok(column) => {
                    let blocks = 0..column.blocks().len() as u64;
                    errors.extend(
                        blocks.filter_map(|block| column.read_block(block, &mut scratch).err()),
                    );
                }
                Err(error) => errors.push(error),
            }
            match self.file.metadata(place) {
                Ok(metadata) => errors.extend(
                    metadata.iter().filter_map(|entry| self.file.metadata_value(entry).err()),
                ),
                Err(error) => errors.push(error),
            }
            for error in errors {
                let text = format!("column {:?}: {error}", entry.name);
                let is_dead = matches!(error, idv_format::ReadError::Dead { .. });
                if is_dead { &mut oddities } else { &mut damage }.push(text);
            }
        }
        (damage, oddities)
    }

    /// Rows of every column.
    pub(crate) fn rows(&self) -> u64 {
        self.file.row_count()
    }

    /// The numbers of the columns that can be read, of several of one name the last.
    fn readable(&self) -> Vec<usize> {
        let columns = self.file.columns().iter().enumerate();
        let readable = columns.filter(|(place, entry)| {
            entry.storage.known().is_ok() && self.file.find(&entry.name) == Some(*place)
        });
        readable.map(|(place, _)| place).collect()
    }
}

/// The shape and type of lent numbers.
struct LentShape {
    rows: usize,
    /// Items of a vector.
    width: Option<usize>,
    element: crate::element::Element,
}

#[pymethods]
impl PyIdvFile {
    #[new]
    #[pyo3(signature = (path, stores: "Store | None" = None))]
    fn new(py: Python<'_>, path: PathBuf, stores: Option<StoreSettings>) -> Result<Self, Error> {
        detached(py, || Self::open(open_file(&path, stores.as_ref())?))?
    }

    #[getter]
    fn row_count(&self) -> u64 {
        self.rows()
    }

    /// The entries of the table of contents: a dict for each column.
    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.file.columns().iter().map(|entry| described(py, entry)).collect()
    }

    /// The number of the last column of this name.
    fn find(&self, name: &str) -> Option<usize> {
        self.file.find(name)
    }

    /// The values of a column where they lie in the file, or nothing where they have to be read.
    fn lend(&self, py: Python<'_>, column: usize) -> Result<Option<Tensor>, Error> {
        let Some((memory, shape)) = detached(py, || self.lent(column))?? else { return Ok(None) };
        let LentShape { rows, width, element } = shape;
        Ok(Some(Tensor::new(memory, [rows].into_iter().chain(width).collect(), element)))
    }

    /// The values of some rows of a column, in parts.
    fn read(&self, py: Python<'_>, column: usize, start: u64, end: u64) -> PyResult<Py<PyAny>> {
        let values = detached(py, || {
            let column = self.file.column(column)?;
            column.read(start..end)
        })?;
        parts::parts(py, &values.map_err(|error| self.error(error))?)
    }

    /// A column's metadata: for each kind its value in parts, or why it cannot be read.
    #[pyo3(signature = (column) -> "dict[str, dict[str, Any]]")]
    fn metadata<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyDict>> {
        let entries = self.file.metadata(column).map_err(|error| self.error(error))?;
        let metadata = PyDict::new(py);
        for entry in entries {
            let item = PyDict::new(py);
            match self.file.metadata_value(&entry) {
                Ok(value) => item.set_item("value", parts::parts(py, &value)?)?,
                Err(error) => item.set_item("unreadable", error.to_string())?,
            }
            if let Ok((codec, _)) = entry.storage.known() {
                item.set_item("item", item_name(codec.item()))?;
                item.set_item("is_vector", matches!(codec, Codec::Vector(_)))?;
            }
            metadata.set_item(entry.kind, item)?;
        }
        Ok(metadata)
    }

    /// The schema of the columns that can be read, by Arrow's C data interface.
    #[pyo3(signature = (time_unit) -> "Any")]
    fn arrow_schema<'py>(
        &self,
        py: Python<'py>,
        time_unit: &str,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, self, time_unit)
    }

    /// Their rows, by Arrow's C stream interface.
    #[pyo3(signature = (time_unit) -> "Any")]
    fn arrow_stream<'py>(
        &self,
        py: Python<'py>,
        time_unit: &str,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::stream(py, self, time_unit)
    }
}

/// The entry of the table of contents for a column.
fn described<'py>(py: Python<'py>, entry: &ColumnEntry) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &entry.name)?;
    dict.set_item("rows_per_block", entry.rows_per_block)?;
    match entry.storage.known() {
        Err(dead) => dict.set_item("unreadable", dead.to_string())?,
        Ok((codec, compression)) => {
            dict.set_item("item", item_name(codec.item()))?;
            dict.set_item("codec", codec_text(codec))?;
            dict.set_item("compression", compression.to_string())?;
            if let Item::Key(key) = codec.item() {
                dict.set_item("key_count", key.count)?;
            }
            if let Codec::Vector(vector) = codec {
                dict.set_item("dimensions", vector.dimensions.clone())?;
            }
        }
    }
    Ok(dict)
}

/// The kind of single values, in one word.
fn item_name(item: &Item) -> &'static str {
    match item {
        Item::Number(number) => number.name(),
        Item::Key(_) => "Key",
        Item::Boolean => "Boolean",
        Item::MissingBoolean => "DvBool",
        Item::Text => "Text",
        Item::TimeSpan => "TimeSpan",
        Item::DateTime => "DateTime",
        Item::DateTimeOffset => "DateTimeOffset",
        Item::RowId => "RowId",
    }
}

fn codec_text(codec: &Codec) -> Cow<'static, str> {
    let item = if let Item::Key(key) = codec.item() {
        Cow::from(format!("Key<{}, {}>", key.number.name(), key.count))
    } else {
        Cow::from(item_name(codec.item()))
    };
    match codec {
        Codec::Item(_) => item,
        Codec::Vector(vector) => {
            let sides: Vec<String> = vector.dimensions.iter().map(ToString::to_string).collect();
            format!("Vector<{item}, [{}]>", sides.join(", ")).into()
        }
    }
}
