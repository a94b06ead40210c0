//! TBF segments: vectors and columns where they lie in the file, edges, and searches.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

mod edges;
mod search;
pub(crate) mod write;

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use tbf_format::{
    Adjacency, AlignedBytes, Column, Columns, Dtype, Embeddings, FileHeader, FormatError, Key,
    Region, Segment, Strings, UnpackOptions,
};
use tbl_io::{Location, Mapped, Source};

use crate::detached::detached;
use crate::element::{Element, PythonElement};
use crate::error::Error;
use crate::memory::Memory;
use crate::remote::StoreSettings;
use crate::table::{TableFindings, open_file};
use crate::tensor::Tensor;

/// An open segment.
#[pyclass(frozen, name = "TbfSegment", module = "turboloader._native")]
pub(crate) struct PyTbfSegment {
    location: Location,
    mapped: Arc<Mapped>,
    header: FileHeader,
    /// The regions that there are.
    places: Vec<(Region, Place)>,
}

/// The bytes of a region.
enum Place {
    /// In the file, from this byte on.
    Mapped { offset: u64, bytes: u64 },
    /// In memory, where it is compressed or encrypted in the file.
    Unpacked(Arc<AlignedBytes>),
}

/// Bytes in front of the codes of a vector of `int8`: its scale and its zero point.
const QUANTIZATION_BYTES: usize = 8;

impl PyTbfSegment {
    /// Reads what the segment has, an object of a store into memory.
    fn open(source: &Source, key: Option<&Key>) -> Result<Self, Error> {
        let source = source.to_mappable()?;
        let mapped = Arc::new(Mapped::new(&source, 0, source.len())?);
        let options = UnpackOptions { key, ..UnpackOptions::default() };
        let found = mapped.with(0, source.len(), |bytes| {
            let mut segment = Segment::open(bytes)?;
            let mut places = Vec::new();
            for region in Region::DATA {
                if segment.has(region) {
                    places.push((region, place(&mut segment, region, &options)?));
                }
            }
            Ok((*segment.header(), places))
        })?;
        let (header, places) =
            found.map_err(|error: FormatError| Error::tbf(source.location(), &error))?;
        let location = source.location().clone();
        Ok(Self { location, mapped, header, places })
    }

    /// Checks a segment without a key.
    pub(crate) fn verify(source: &Source) -> Result<TableFindings, Error> {
        let source = source.to_mappable()?;
        let mapped = Mapped::new(&source, 0, source.len())?;
        let options = UnpackOptions::default();
        let found = mapped.with(0, source.len(), |bytes| {
            let mut segment = Segment::open(bytes)?;
            let mut damage = Vec::new();
            let mut not_verified = Vec::new();
            for region in Region::DATA {
                if !segment.is_packed(region) {
                    continue;
                }
                match segment.unpack(region, &options) {
                    Ok(()) => {}
                    Err(FormatError::KeyNeeded { region }) => not_verified.push(region.to_string()),
                    Err(error) => damage.push(error),
                }
            }
            let (oddities, more) = segment.verify_all();
            damage.extend(more);
            let oddities = oddities.iter().map(|oddity| format!("{oddity:?}")).collect();
            let damage = damage.iter().map(ToString::to_string).collect();
            Ok(TableFindings { rows: segment.node_count(), damage, oddities, not_verified })
        })?;
        found.map_err(|error: FormatError| Error::tbf(source.location(), &error))
    }

    fn error(&self, error: FormatError) -> Error {
        Error::tbf(&self.location, &error)
    }

    fn place(&self, region: Region) -> Option<&Place> {
        self.places.iter().find(|(found, _)| *found == region).map(|(_, place)| place)
    }

    /// The bytes of a region that there is.
    fn bytes(&self, region: Region) -> Result<Option<&[u8]>, Error> {
        Ok(match self.place(region) {
            None => None,
            Some(Place::Unpacked(bytes)) => Some(bytes.as_bytes()),
            Some(Place::Mapped { offset, bytes }) => Some(self.mapped.slice(*offset, *bytes)?),
        })
    }

    /// The bytes of a region, or the error that it is missing.
    fn needed(&self, region: Region) -> Result<&[u8], Error> {
        self.bytes(region)?.ok_or_else(|| self.error(FormatError::Absent { region }))
    }

    /// A part of a region in memory that can be handed on.
    fn memory(&self, region: Region, part: &[u8]) -> Result<Memory, Error> {
        let all = self.needed(region)?;
        let start = part.as_ptr().addr() - all.as_ptr().addr();
        Ok(match self.place(region) {
            Some(Place::Mapped { offset, .. }) => {
                Memory::of_mapped(&self.mapped, offset + start as u64, part.len() as u64)?
            }
            Some(Place::Unpacked(bytes)) => Memory::of_aligned(bytes).part(start, part.len()),
            None => return Err(self.error(FormatError::Absent { region })),
        })
    }

    fn columns(&self) -> Result<Columns<'_>, Error> {
        let region = self.needed(Region::Nodes)?;
        Columns::parse(region, self.header.node_count()).map_err(|error| self.error(error))
    }

    fn vectors(&self) -> Result<Embeddings<'_>, Error> {
        let count = self.header.node_count();
        let dim = self.header.embedding_dim();
        let vectors = Embeddings::parse(
            self.needed(Region::Embeddings)?,
            count,
            dim,
            self.header.embedding_dtype(),
        );
        vectors.map_err(|error| self.error(error))
    }

    fn strings(&self) -> Result<Strings<'_>, Error> {
        let region = self.needed(Region::Strings)?;
        Strings::parse(region, self.header.node_count()).map_err(|error| self.error(error))
    }

    fn adjacency(&self, incoming: bool) -> Result<Adjacency<'_>, Error> {
        let region = self.needed(Region::Edges)?;
        let adjacency = if !incoming {
            Adjacency::parse(region, self.header.node_count())
        } else if self.header.has_reverse() {
            Adjacency::parse_reverse(region, self.header.node_count())
        } else {
            let location = &self.location;
            let message =
                format!("{location}: no reverse index, by which incoming edges are found");
            return Err(Error::setting(&message));
        };
        adjacency.map_err(|error| self.error(error))
    }

    fn rows(&self) -> usize {
        usize::try_from(self.header.node_count()).unwrap_or(usize::MAX)
    }
}

/// The place of a region, unpacked if it has to be.
fn place(
    segment: &mut Segment<'_>,
    region: Region,
    options: &UnpackOptions<'_>,
) -> Result<Place, FormatError> {
    if segment.is_packed(region) {
        segment.unpack(region, options)?;
        return Ok(Place::Unpacked(Arc::new(AlignedBytes::copy_of(segment.region(region)?))));
    }
    let offset = segment.stored(region).ok_or(FormatError::Absent { region })?.offset;
    Ok(Place::Mapped { offset, bytes: segment.region(region)?.len() as u64 })
}

#[pymethods]
impl PyTbfSegment {
    #[new]
    #[pyo3(signature = (path, key=None, stores: "Store | None" = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        key: Option<[u8; 32]>,
        stores: Option<StoreSettings>,
    ) -> Result<Self, Error> {
        let key = key.map(Key::new);
        detached(py, || Self::open(&open_file(&path, stores.as_ref())?, key.as_ref()))?
    }

    #[getter]
    fn node_count(&self) -> u64 {
        self.header.node_count()
    }

    #[getter]
    fn edge_count(&self) -> Result<usize, Error> {
        Ok(self.adjacency(false)?.edges().len())
    }

    #[getter]
    fn dim(&self) -> u32 {
        self.header.embedding_dim()
    }

    /// The type of the stored vectors' components.
    #[getter]
    fn dtype(&self) -> PyResult<&'static str> {
        Ok(element(self.header.embedding_dtype())?.python_name())
    }

    /// The names of the regions that there are.
    #[getter]
    fn regions(&self) -> Vec<String> {
        self.places.iter().map(|(region, _)| region.to_string()).collect()
    }

    /// A column of every node.
    fn column(&self, name: &str) -> Result<Tensor, Error> {
        let columns = self.columns()?;
        let Some(column) = columns.by_name(name) else {
            let names = Columns::NAMES.join(", ");
            return Err(Error::setting(&format!("no column {name}; the columns are {names}")));
        };
        let rows = vec![self.rows()];
        let (bytes, shape, element) = match column {
            Column::Ids(ids) => (ids.as_bytes(), vec![self.rows(), 16], Element::U8),
            Column::U64(numbers) => (numbers.as_bytes(), rows, Element::U64),
            Column::F32(numbers) => (numbers.as_bytes(), rows, Element::F32),
            Column::U8(numbers) => (numbers, rows, Element::U8),
            _ => return Err(Error::setting(&format!("column {name} is not an array"))),
        };
        Ok(Tensor::new(self.memory(Region::Nodes, bytes)?, shape, element))
    }

    /// The components of all vectors as they are stored, one vector a row.
    fn embeddings(&self) -> PyResult<Tensor> {
        let vectors = self.vectors()?;
        let memory = self.memory(Region::Embeddings, vectors.as_bytes())?;
        let element = element(vectors.dtype())?;
        let shape = vec![vectors.len(), vectors.dim()];
        let skipped = if vectors.dtype() == Dtype::Int8 { QUANTIZATION_BYTES } else { 0 };
        let skipped = skipped.min(memory.len());
        let rest = memory.part(skipped, memory.len() - skipped);
        Ok(Tensor::strided(&rest, shape, element, vectors.stride()))
    }

    /// Scale and zero point of every vector of `int8`: two tensors.
    fn quantization(&self) -> PyResult<(Tensor, Tensor)> {
        let vectors = self.vectors()?;
        if vectors.dtype() != Dtype::Int8 || vectors.dim() == 0 {
            let message = format!("vectors are {}, which have no scales", self.dtype()?);
            return Err(Error::setting(&message).into());
        }
        let memory = self.memory(Region::Embeddings, vectors.as_bytes())?;
        let column = |start: usize| {
            let start = start.min(memory.len());
            let rest = memory.part(start, memory.len() - start);
            Tensor::strided(&rest, vec![vectors.len()], Element::F32, vectors.stride())
        };
        Ok((column(0), column(size_of::<f32>())))
    }

    /// All vectors as `float32`.
    fn decoded(&self, py: Python<'_>) -> PyResult<Tensor> {
        let vectors = self.vectors()?;
        let row_bytes = vectors.dim() * size_of::<f32>();
        let memory = detached(py, || {
            Memory::filled(vectors.len() * row_bytes, |out| {
                let mut numbers = vec![0f32; vectors.dim()];
                for (row, place) in out.chunks_exact_mut(row_bytes.max(1)).enumerate() {
                    vectors.read_into(row, &mut numbers).map_err(|error| self.error(error))?;
                    place.copy_from_slice(zerocopy::IntoBytes::as_bytes(&*numbers));
                }
                Ok::<(), PyErr>(())
            })
        })?;
        Ok(Tensor::new(memory?, vec![vectors.len(), vectors.dim()], Element::F32))
    }

    /// The text of a node.
    fn text(&self, row: usize) -> Result<&str, Error> {
        self.strings()?.row(row).map_err(|error| self.error(error))
    }

    /// Edges by the node they leave, or reach: row pointers, nodes, weights and relations.
    fn edges(&self, py: Python<'_>, incoming: bool) -> PyResult<(Tensor, Tensor, Tensor, Tensor)> {
        let adjacency = self.adjacency(incoming)?;
        detached(py, || {
            adjacency.check(self.header.node_count()).map_err(|error| self.error(error))?;
            edges::csr(&adjacency)
        })?
    }

    /// The row of the first node with this id.
    fn find(&self, id: [u8; 16]) -> Result<Option<usize>, Error> {
        search::find(self, &id)
    }

    /// The rows of the nodes from `start` on and before `end`, by their timestamps.
    fn find_time(&self, py: Python<'_>, start: u64, end: Option<u64>) -> PyResult<Tensor> {
        let rows = detached(py, || search::in_time(self, start, end))??;
        search::tensor(&rows)
    }

    /// The `k` nearest rows and their scores, the nearest first.
    #[pyo3(signature = (query: "int | list[float]", k, metric))]
    fn similar(
        &self,
        py: Python<'_>,
        query: search::Asked,
        k: usize,
        metric: &str,
    ) -> PyResult<(Tensor, Tensor)> {
        let found = detached(py, || search::similar(self, &query, k, metric))??;
        search::tensors(&found)
    }
}

fn element(dtype: Dtype) -> PyResult<Element> {
    Ok(match dtype {
        Dtype::F32 => Element::F32,
        Dtype::F16 => Element::F16,
        Dtype::Bf16 => Element::Bf16,
        Dtype::Int8 => Element::I8,
        _ => return Err(Error::setting(&"vectors of a later version").into()),
    })
}
