//! Batches as Python sees them: fields by name, samples by number.

mod cameras;
mod contents;
mod dicts;
mod objects;
mod own_sizes;
mod stored;
mod tokens;

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice, PyTuple, PyType};
use tl_pipeline::{Batch, ColumnSpec};
use zerocopy::IntoBytes;

use crate::detached::detached;
use crate::element::Element;
use crate::error::Error;
use crate::hint::SampleIterator;
use crate::memory::{BatchMemory, Memory};
use crate::names::text;
use crate::tensor::{Form, Tensor, reading_stream, wrap};
pub(crate) use contents::Contents;
use contents::Samples;
use own_sizes::{IMAGES, MASKS};
use stored::StoredField;
use tokens::CU_SEQLENS;

/// Samples with their labels, in the order of the epoch.
///
/// ``batch["image"]`` or ``batch.image`` is one tensor for all samples, ``batch[0]`` a dict of the
/// first sample, ``batch[2:4]`` a `BatchPart`, and iterating gives one sample after the other.
/// ``keys()``, ``values()`` and ``items()`` are those of the fields, so that ``dict(batch)`` and
/// ``**batch`` work. Pickling and deep copies give a `BatchPart` with its fields.
///
/// Fields are of the library that ``output_format`` of `DataLoader` names; ``Batch[torch.Tensor]``
/// is the annotation of a batch with ``output_format="torch"``. The memory belongs to the holders of
/// the batch and its parts: it can be written, and the loader uses it again only when all of them
/// are gone.
#[doc = include_str!("batch/fields.txt")]
#[pyclass(frozen, weakref, name = "Batch", module = "turboloader")]
pub(crate) struct PyBatch {
    contents: Arc<Contents>,
    /// Asked for nothing that lies in `memory`.
    batch: Arc<Batch>,
    memory: BatchMemory,
    /// The memory of the host, of a batch on a device.
    on_host: Option<BatchMemory>,
    shape: Option<Vec<usize>>,
    element: Element,
    soft_labels: Option<Memory>,
    /// The samples where they lie in their files, if views were asked for.
    views: Vec<Option<Memory>>,
    /// Images and masks in their own sizes, copied when they are first asked for.
    copies: [PyOnceLock<Vec<Option<Tensor>>>; 2],
}

/// Makes the value of one row.
type ValueOfRow<'a> = Box<dyn Fn(usize) -> PyResult<Option<Py<PyAny>>> + 'a>;

impl PyBatch {
    pub(crate) fn new(py: Python<'_>, batch: Batch, contents: &Arc<Contents>) -> PyResult<Self> {
        let host_shape = || batch.shape().map(|shape| shape.to_vec());
        let shape = batch.device().map_or_else(host_shape, |device| device.shape());
        let spec = batch.device().map_or_else(|| batch.spec(), |device| device.spec());
        let element = spec.map_or(Element::U8, |spec| spec.output.dtype.into());
        let soft_labels = detached(py, || {
            let soft_labels = contents.num_classes.map(|classes| {
                let soft_labels = batch.soft_labels(classes).map_err(Error::from)?;
                Memory::of(soft_labels.as_slice().as_bytes())
            });
            soft_labels.transpose()
        })??;
        let batch = Arc::new(batch);
        if contents.views {
            batch.check_views().map_err(Error::from)?;
        }
        // They are found by the numbers of samples, which may be written from here on.
        let view = |row| Memory::of_sample(&batch, row);
        let views = if contents.views { (0..batch.len()).map(view).collect() } else { Vec::new() };
        let host = BatchMemory::new(&batch);
        let (memory, on_host) = match batch.device() {
            Some(device) => (host.on_device(device), Some(host)),
            None => (host, None),
        };
        let contents = Arc::clone(contents);
        let copies = [PyOnceLock::new(), PyOnceLock::new()];
        Ok(Self { contents, batch, memory, on_host, shape, element, soft_labels, views, copies })
    }

    /// The tensor of a field that has one.
    fn tensor(&self, name: &str) -> Option<Tensor> {
        self.tensor_in(&self.memory, name)
    }

    /// The tensor of a field with one number a row, in memory of the host.
    fn numbers(&self, name: &str) -> Option<Tensor> {
        self.tensor(name).filter(|tensor| tensor.rank() == 1)?;
        self.tensor_in(self.on_host.as_ref().unwrap_or(&self.memory), name)
    }

    fn tensor_in(&self, memory: &BatchMemory, name: &str) -> Option<Tensor> {
        let rows = self.batch.len();
        let contents = &*self.contents;
        if let Some((place, spec @ ColumnSpec { number, shape, .. })) = contents.column(name) {
            if self.batch.targets_overlap() {
                return self.token_tensor(place, spec);
            }
            let memory = memory.columns.get(place)?.clone();
            let shape = [rows].into_iter().chain(shape.iter().copied()).collect();
            return Some(Tensor::new(memory, shape, *number));
        }
        if contents.samples == Samples::Rows
            && contents.columns.iter().any(|column| column.name == name)
        {
            return None;
        }
        if let Some(place) = contents.cameras.iter().position(|camera| camera.name == name) {
            return self.camera_tensor(place);
        }
        Some(match contents.own(name)? {
            "image" if contents.cameras.is_empty() => {
                let shape = self.shape.clone()?;
                Tensor::new(memory.images.clone(), shape, self.element)
            }
            "label" if contents.label => {
                Tensor::new(memory.labels.clone(), vec![rows], Element::I64)
            }
            "soft_label" => {
                let classes = contents.num_classes?;
                let memory = self.soft_labels.clone()?;
                Tensor::new(memory, vec![rows, classes], Element::F32)
            }
            // Below 2^63, and torch has no arithmetic on unsigned numbers.
            "index" => Tensor::new(memory.indices.clone(), vec![rows], Element::I64),
            "valid" => Tensor::new(memory.valid.clone(), vec![rows], Element::Bool),
            "size" if contents.samples == Samples::Images => {
                Tensor::new(memory.sizes.clone(), vec![rows, 2], Element::I32)
            }
            "mask" => {
                let element = contents.mask?.number();
                let spec = self.batch.spec()?;
                let shape = vec![rows, spec.height as usize, spec.width as usize];
                Tensor::new(memory.masks.clone(), shape, element)
            }
            _ => return None,
        })
    }

    /// The function that makes a row's value, for a field without a tensor; none where a sample has
    /// none.
    fn values_of<'a>(&'a self, py: Python<'a>, name: &str, form: Form) -> Option<ValueOfRow<'a>> {
        let contents = &*self.contents;
        let formed = move |tensor: Option<Tensor>| {
            tensor.map(|tensor| tensor.into_form(py, form)).transpose()
        };
        let own = contents.own(name)?;
        Some(match own {
            "image" if contents.samples == Samples::Images => {
                Box::new(move |row| formed(self.copy(py, IMAGES, row, |row| self.image(row))?))
            }
            "mask" if contents.mask.is_some() => {
                Box::new(move |row| formed(self.copy(py, MASKS, row, |row| self.mask(row))?))
            }
            "bytes" if contents.views => Box::new(move |row| {
                let memory = self.views.get(row).cloned().flatten();
                formed(memory.map(|memory| {
                    let shape = vec![memory.len()];
                    Tensor::new(memory, shape, Element::U8)
                }))
            }),
            "bytes" if contents.samples == Samples::Bytes => Box::new(move |row| {
                let sample = self.batch.sample(row);
                Ok(sample.map(|sample| PyBytes::new(py, sample.bytes).into_any().unbind()))
            }),
            "key" if contents.keys && contents.samples != Samples::Rows => Box::new(move |row| {
                let key = self.batch.key(row).map(|key| text(py, key)).transpose()?;
                Ok(key.map(Bound::unbind))
            }),
            "boxes" if contents.boxes => Box::new(move |row| {
                let boxes = self.batch.boxes(row);
                let memory = Memory::of(boxes.as_bytes())?;
                let shape = vec![boxes.len(), 4];
                formed(Some(Tensor::new(memory, shape, Element::F32)))
            }),
            "masks" if contents.instance_masks => {
                Box::new(move |row| formed(Some(self.instance_masks(row)?)))
            }
            CU_SEQLENS if contents.has_documents() => Box::new(move |row| {
                let starts = self.batch.cu_seqlens(row).unwrap_or_default();
                let memory = Memory::of(starts.as_bytes())?;
                formed(Some(Tensor::new(memory, vec![starts.len()], Element::I32)))
            }),
            "box_index" if contents.boxes => Box::new(move |row| {
                let indices = self.batch.box_indices(row);
                let memory = Memory::of(indices.as_bytes())?;
                formed(Some(Tensor::new(memory, vec![indices.len()], Element::I64)))
            }),
            "box_labels" if contents.box_labels => Box::new(move |row| {
                let labels = self.batch.box_labels(row);
                let memory = Memory::of(labels.as_bytes())?;
                let shape = vec![labels.len()];
                formed(Some(Tensor::new(memory, shape, Element::I64)))
            }),
            _ => {
                let of_boxes = contents.box_values.iter().enumerate();
                let mut of_boxes = of_boxes.filter(|(_, (value, _))| value == name);
                if let Some((place, (_, element))) = of_boxes.next() {
                    return Some(Box::new(move |row| {
                        let bytes = self.batch.box_values(place, row);
                        let shape = vec![bytes.len() / element.bytes()];
                        formed(Some(Tensor::new(Memory::of(bytes)?, shape, *element)))
                    }));
                }
                let mut keypoints = contents.keypoints.iter().enumerate();
                if let Some((place, _)) = keypoints.find(|(_, field)| field.name == name) {
                    return Some(Box::new(move |row| formed(self.keypoints(place, row)?)));
                }
                let column = contents.columns.iter().position(|column| column.name == name)?;
                let StoredField { name, kind } = &contents.columns[column];
                Box::new(move |row| {
                    let Some(bytes) = self.batch.bytes(column, row) else { return Ok(None) };
                    kind.value(py, bytes).map_err(|error| {
                        let sample = self.batch.indices().get(row).copied().unwrap_or_default();
                        let message = format!("sample {sample}, field {name}: {error}");
                        PyValueError::new_err(message)
                    })
                })
            }
        })
    }

    fn field(&self, py: Python<'_>, name: &str, form: Form) -> PyResult<Py<PyAny>> {
        if let Some(tensor) = self.tensor(name) {
            return tensor.into_form(py, form);
        }
        if let Some(value) = self.values_of(py, name, form) {
            let values = (0..self.batch.len()).map(value).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, values)?.into_any().unbind());
        }
        let names = self.contents.names().join(", ");
        Err(PyKeyError::new_err(format!("{name}: a batch has {names}")))
    }
}

#[pymethods]
impl PyBatch {
    /// The batch's number in its epoch, from 0.
    #[getter]
    fn number(&self) -> u64 {
        self.batch.number()
    }

    /// Raises `ReadError` or `ChangedWhileOpenError` if the files below a batch of views do not have
    /// its samples any more, or if a page of them could not be read. Success after the views were
    /// read means that they had the bytes of the files. Other batches always succeed.
    fn check_views(&self) -> Result<(), Error> {
        self.batch.check_views().map_err(Error::from)
    }

    /// How many samples it has.
    fn __len__(&self) -> usize {
        self.batch.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(row) = key.extract::<isize>() {
            return Ok(self.sample(py, wrap(row, self.batch.len())?)?.into_any());
        }
        if key.is_instance_of::<PySlice>() {
            let parts = py.import("turboloader._parts")?;
            return parts
                .call_method1("part", (self.batch.number(), self.tensors(py)?, self.form(), key));
        }
        let wrong = |_| {
            let kind = key.get_type();
            PyTypeError::new_err(format!(
                "{kind}: a batch is indexed by the name of a field, the number of a sample, or a slice"
            ))
        };
        let name: String = key.extract().map_err(wrong)?;
        Ok(self.field(py, &name, self.contents.form)?.into_bound(py))
    }

    /// The class for annotations with the type of fields, as in ``Batch[torch.Tensor]``.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        fields: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        cls.py().import("types")?.call_method1("GenericAlias", (cls, fields))
    }

    /// Field ``name`` as an attribute.
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        if self.__contains__(name) {
            return self.field(py, name, self.contents.form);
        }
        let names = self.contents.names();
        let message = format!("a batch has no attribute {name:?}: its fields are {names:?}");
        Err(PyAttributeError::new_err(message))
    }

    /// Pickles and copies the fields, as a `BatchPart`.
    #[pyo3(signature = () -> "tuple[Any, ...]")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let part = py.import("turboloader._parts")?.getattr("BatchPart")?;
        let fields = (self.batch.number(), self.tensors(py)?, self.form());
        PyTuple::new(py, [part, fields.into_bound_py_any(py)?])
    }

    /// Tells a batch on a device, or in pinned memory, that a stream reads it, so that its memory is used
    /// again only after what the stream does until the batch and its tensors are gone: a
    /// ``torch.cuda.Stream``, or the number of a stream. Streams that tensors were taken on are known;
    /// others have to be told.
    fn record_stream(&self, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        self.memory.images.record_stream(reading_stream(stream)?)
    }

    /// The fields as a dict of ``torch.Tensor`` on a device. A device of CUDA gets them by way of
    /// pinned memory, so that the copy continues while the caller does.
    #[pyo3(signature = (device: "Any", non_blocking=true) -> "dict[str, Any]")]
    fn to<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        device: &Bound<'py, PyAny>,
        non_blocking: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parts = py.import("turboloader._parts")?;
        let record = slf.getattr("record_stream")?;
        let fields = slf.get().torch(py)?;
        parts.call_method1("to_device", (fields, device, non_blocking, record))
    }

    /// The samples, one after the other.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<SampleIterator<'py>> {
        let names = slf.get().contents.names();
        slf.py().import("turboloader._parts")?.call_method1("refuse_unpacking", (names,))?;
        let builtins = slf.py().import("builtins")?;
        let rows = builtins.call_method1("range", (slf.get().__len__(),))?;
        builtins.call_method1("map", (slf.getattr("__getitem__")?, rows)).map(SampleIterator)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.contents.names().contains(&name)
    }

    /// The names of the fields.
    fn keys(&self) -> Vec<&str> {
        self.contents.names()
    }

    /// The fields.
    fn values(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let names = self.contents.names();
        names.into_iter().map(|name| self.field(py, name, self.contents.form)).collect()
    }

    /// The fields with their names.
    fn items(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyAny>)>> {
        let names = self.contents.names();
        let item = |name: &str| Ok((name.to_owned(), self.field(py, name, self.contents.form)?));
        names.into_iter().map(item).collect()
    }

    /// Field ``name``, or ``default`` if the batch lacks it.
    #[pyo3(signature = (name, default=None) -> "Any")]
    fn get(
        &self,
        py: Python<'_>,
        name: &str,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        if !self.__contains__(name) {
            return Ok(default);
        }
        self.field(py, name, self.contents.form).map(Some)
    }

    /// The fields as a dict of `Tensor`, and of lists of other values.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all(py, Form::Tensor)
    }

    /// The fields as a dict of NumPy arrays that share the batch's memory.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all(py, Form::Numpy)
    }

    /// The fields as a dict of ``torch.Tensor`` that share the batch's memory.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn torch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all(py, Form::Torch)
    }

    /// The fields as a dict of ``jax.Array`` that share the batch's memory.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn jax<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all(py, Form::Jax)
    }

    /// The fields as a dict of ``tf.Tensor`` that share the batch's memory.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn tf<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all(py, Form::Tf)
    }

    fn __repr__(&self) -> String {
        let number = self.batch.number();
        let len = self.batch.len();
        format!("Batch(number={number}, samples={len}, fields={:?})", self.contents.names())
    }
}
