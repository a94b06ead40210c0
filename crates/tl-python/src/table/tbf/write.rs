//! Segments that are written from arrays, and nodes that are found in many segments.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tbf_format::{Compression, Dtype, Key, Node, Outcome, Relation};
use turboloader::{SegmentError, SegmentFile, SegmentSet, SegmentSettings};

use crate::detached::detached;
use crate::error::{Class, Error};

/// The settings of a segment, as Python describes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TbfSettings {
    dtype: String,
    compression: String,
    key: Option<[u8; 32]>,
    index: bool,
    reverse: bool,
    segment_id: u64,
    overwrite: bool,
    sync: bool,
}

impl TbfSettings {
    fn settings(&self) -> Result<SegmentSettings, Error> {
        let dtype = match self.dtype.as_str() {
            "float32" => Dtype::F32,
            "float16" => Dtype::F16,
            "bfloat16" => Dtype::Bf16,
            "int8" => Dtype::Int8,
            other => {
                let expected = "expected one of float32, float16, bfloat16, int8";
                return Err(Error::setting(&format_args!("dtype is {other}, {expected}")));
            }
        };
        let compression = match self.compression.as_str() {
            "none" => Compression::None,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            other => {
                let expected = "expected one of none, lz4, zstd";
                return Err(Error::setting(&format_args!("compression is {other}, {expected}")));
            }
        };
        Ok(SegmentSettings {
            dtype,
            compression,
            key: self.key.map(Key::new),
            index: self.index,
            reverse: self.reverse,
            segment_id: self.segment_id,
            overwrite: self.overwrite,
            sync: self.sync,
            ..SegmentSettings::default()
        })
    }
}

/// Some nodes: little-endian numbers, one after the other.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NodeParts {
    ids: PyBackedBytes,
    timestamps: PyBackedBytes,
    context_hashes: PyBackedBytes,
    confidences: PyBackedBytes,
    outcomes: PyBackedBytes,
    vectors: PyBackedBytes,
    texts: Option<Vec<Option<String>>>,
}

/// Some edges: little-endian numbers, one after the other.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct EdgeParts {
    sources: PyBackedBytes,
    targets: PyBackedBytes,
    relations: PyBackedBytes,
    weights: PyBackedBytes,
}

/// A segment that is being written.
#[pyclass(frozen, name = "TbfWriter", module = "turboloader._native")]
pub(crate) struct PyTbfWriter {
    dim: usize,
    file: Mutex<Option<SegmentFile>>,
}

/// Numbers of `N` bytes.
fn numbers<const N: usize>(bytes: &[u8]) -> Result<&[[u8; N]], Error> {
    let (numbers, rest) = bytes.as_chunks::<N>();
    if rest.is_empty() {
        return Ok(numbers);
    }
    let count = bytes.len();
    Err(Error::setting(&format_args!("{count} bytes, expected a multiple of {N}")))
}

/// Checks that a column has a value for each of `expected` rows.
fn same(what: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::setting(&format_args!("{what}: {found} values for {expected} rows")))
}

impl PyTbfWriter {
    /// Works on the file, which an error discards.
    fn work<T>(&self, work: impl FnOnce(&mut SegmentFile) -> Result<T, Error>) -> Result<T, Error> {
        let mut place = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut file) = place.take() else {
            return Err(Error::setting(&"the segment is finished, or an error ended it"));
        };
        let done = work(&mut file)?;
        *place = Some(file);
        Ok(done)
    }
}

#[pymethods]
impl PyTbfWriter {
    #[new]
    #[pyo3(signature = (path, dim, settings: "dict[str, Any]"))]
    fn new(path: PathBuf, dim: u32, settings: TbfSettings) -> Result<Self, Error> {
        let file = SegmentFile::create(&path, &settings.settings()?, dim)?;
        let dim = usize::try_from(dim).unwrap_or(usize::MAX);
        Ok(Self { dim, file: Mutex::new(Some(file)) })
    }

    /// Adds nodes.
    #[pyo3(signature = (nodes: "dict[str, Any]"))]
    fn push(&self, py: Python<'_>, nodes: NodeParts) -> PyResult<()> {
        Ok(detached(py, || self.work(|file| push(file, &nodes, self.dim)))??)
    }

    /// Adds edges.
    #[pyo3(signature = (edges: "dict[str, Any]"))]
    fn push_edges(&self, py: Python<'_>, edges: EdgeParts) -> PyResult<()> {
        let added = detached(py, || {
            self.work(|file| {
                let sources = numbers::<4>(&edges.sources)?;
                let targets = numbers::<4>(&edges.targets)?;
                let weights = numbers::<4>(&edges.weights)?;
                same("target", targets.len(), sources.len())?;
                same("weight", weights.len(), sources.len())?;
                same("relation", edges.relations.len(), sources.len())?;
                let rest = targets.iter().zip(weights).zip(edges.relations.iter());
                for (source, ((target, weight), &relation)) in sources.iter().zip(rest) {
                    file.push_edge(
                        u32::from_le_bytes(*source),
                        u32::from_le_bytes(*target),
                        Relation::from_code(relation),
                        f32::from_le_bytes(*weight),
                    );
                }
                Ok(())
            })
        })?;
        Ok(added?)
    }

    /// Gives the file its name. Returns its bytes.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        let finished = detached(py, || {
            let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
            let file = file
                .ok_or_else(|| Error::setting(&"the segment is finished, or an error ended it"))?;
            Ok::<_, Error>(file.finish()?.file_bytes)
        })?;
        Ok(finished?)
    }
}

fn push(file: &mut SegmentFile, nodes: &NodeParts, dim: usize) -> Result<(), Error> {
    let ids = numbers::<16>(&nodes.ids)?;
    let timestamps = numbers::<8>(&nodes.timestamps)?;
    let hashes = numbers::<8>(&nodes.context_hashes)?;
    let confidences = numbers::<4>(&nodes.confidences)?;
    let components = numbers::<4>(&nodes.vectors)?;
    same("timestamp", timestamps.len(), ids.len())?;
    same("context_hash", hashes.len(), ids.len())?;
    same("confidence", confidences.len(), ids.len())?;
    same("outcome_status", nodes.outcomes.len(), ids.len())?;
    same("components of vectors", components.len(), ids.len().saturating_mul(dim))?;
    if let Some(texts) = &nodes.texts {
        same("text", texts.len(), ids.len())?;
    }
    let mut vectors = components.chunks_exact(dim.max(1));
    let mut texts = nodes.texts.iter().flatten();
    let rest = hashes.iter().zip(confidences).zip(nodes.outcomes.iter());
    let mut vector = Vec::with_capacity(dim);
    for ((id, timestamp), ((hash, confidence), &outcome)) in ids.iter().zip(timestamps).zip(rest) {
        let node = Node {
            id: *id,
            timestamp: u64::from_le_bytes(*timestamp),
            context_hash: u64::from_le_bytes(*hash),
            confidence: f32::from_le_bytes(*confidence),
            outcome: Outcome::from_code(outcome),
            text: texts.next().and_then(Option::as_deref),
        };
        vector.clear();
        let components = vectors.next().unwrap_or_default().iter();
        vector.extend(components.map(|component| f32::from_le_bytes(*component)));
        file.push(&node, &vector)?;
    }
    Ok(())
}

/// The newest node with an id: the path of its segment, the number of the segment, and the row.
#[pyfunction]
#[pyo3(signature = (paths: "list[str]", id, key=None) -> "tuple[str, int, int] | None")]
pub(crate) fn find_tbf(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    id: [u8; 16],
    key: Option<[u8; 32]>,
) -> PyResult<Option<(PathBuf, usize, u64)>> {
    let key = key.map(Key::new);
    let found = detached(py, || SegmentSet::open(&paths)?.find(&id, key.as_ref()))?;
    let found = found.map_err(Error::from)?;
    Ok(found.map(|found| (found.path, found.segment, found.row)))
}

impl From<SegmentError> for Error {
    fn from(error: SegmentError) -> Self {
        Self::of(&error, Class::Format, Class::Setting)
    }
}
