//! Tensors: numbers in memory that Python's libraries take without copying.

mod export;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyMemoryView, PyTuple};

use crate::by_value;
use crate::element::{Element, PythonElement};
use crate::hint::{Fields, Shape};
use crate::memory::{ALIGNMENT, Memory};
pub(crate) use export::reading_stream;
use export::{ForTorch, LEGACY_STREAM};

/// The form of a batch's fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Tensor,
    Numpy,
    Torch,
    Jax,
    Tf,
}

impl Form {
    /// The form of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "tensor" => Self::Tensor,
            "numpy" => Self::Numpy,
            "torch" => Self::Torch,
            "jax" => Self::Jax,
            "tf" => Self::Tf,
            _ => return None,
        })
    }

    /// The name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Numpy => "numpy",
            Self::Torch => "torch",
            Self::Jax => "jax",
            Self::Tf => "tf",
        }
    }
}

/// How many numbers are shown at most.
const SHOWN: usize = 64;

/// Numbers in C order in memory that the importing libraries share. Rows of a mapped file and of
/// tokens may have bytes between them.
///
/// Comparison and conversion to Python scalars follow NumPy.
///
/// ``numpy()``, ``torch()``, ``jax()`` and ``tf()`` copy nothing, and ``numpy.asarray`` and every
/// library's ``from_dlpack`` take it. The memory lasts until the last of them is gone.
#[derive(Clone)]
#[pyclass(frozen, weakref, module = "turboloader")]
pub(crate) struct Tensor {
    memory: Memory,
    shape: Vec<usize>,
    element: Element,
    /// From the start of one row to that of the next; nothing where rows follow each other.
    row_stride: Option<usize>,
}

impl Tensor {
    /// # Panics
    /// When the memory has another number of bytes.
    pub(crate) fn new(memory: Memory, shape: Vec<usize>, element: Element) -> Self {
        let numbers = shape.iter().try_fold(1usize, |all, &side| all.checked_mul(side));
        let need = numbers.and_then(|numbers| numbers.checked_mul(element.bytes()));
        assert_eq!(need, Some(memory.len()), "bytes of {shape:?} of {}", element.python_name());
        Self { memory, shape, element, row_stride: None }
    }

    /// Rows that start every `stride` bytes.
    ///
    /// # Panics
    /// When the memory ends within the last row, when rows overlap, or when a stride is not a
    /// multiple of a number's size.
    pub(crate) fn strided(
        memory: &Memory,
        shape: Vec<usize>,
        element: Element,
        stride: usize,
    ) -> Self {
        let rows = shape.first().copied().unwrap_or(1);
        let row =
            shape.iter().skip(1).try_fold(element.bytes(), |all, &side| all.checked_mul(side));
        let row = row.unwrap_or(usize::MAX);
        let before = rows.saturating_sub(1).checked_mul(stride);
        let need = before.and_then(|before| before.checked_add(if rows > 0 { row } else { 0 }));
        assert!(need.is_some_and(|need| need <= memory.len()), "rows of {shape:?}");
        assert!(row <= stride && stride.is_multiple_of(element.bytes()), "a row every {stride}");
        let row_stride = (row != stride && rows > 1).then_some(stride);
        let memory = memory.part(0, need.unwrap_or(0));
        Self { memory, shape, element, row_stride }
    }

    /// Row `row`, which there is.
    pub(crate) fn row(&self, row: usize) -> Self {
        let shape = self.shape.get(1..).unwrap_or_default().to_vec();
        let bytes = shape.iter().product::<usize>() * self.element.bytes();
        let start = row * self.row_stride.unwrap_or(bytes);
        Self::new(self.memory.part(start, bytes), shape, self.element)
    }

    /// Bytes of all numbers, without those between rows.
    fn number_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element.bytes()
    }

    /// The sizes of the dimensions.
    pub(crate) fn sides(&self) -> &[usize] {
        &self.shape
    }

    /// The type of the numbers.
    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Rows from `start` to before `end`, which there are.
    pub(crate) fn adjacent(&self, start: usize, end: usize) -> Self {
        let inner = self.shape.get(1..).unwrap_or_default();
        let row = inner.iter().product::<usize>() * self.element.bytes();
        let stride = self.row_stride.unwrap_or(row);
        let count = end - start;
        let bytes = if count == 0 { 0 } else { (count - 1) * stride + row };
        let memory = self.memory.part(start * stride, bytes);
        let shape = [count].into_iter().chain(inner.iter().copied()).collect();
        let row_stride = self.row_stride.filter(|_| count > 1);
        Self { memory, shape, element: self.element, row_stride }
    }

    /// The same bytes as numbers of another type of this size.
    pub(crate) fn reinterpreted(&self, element: Element) -> Self {
        Self { element, ..self.clone() }
    }

    /// How many dimensions there are.
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The tensor as what `form` says.
    pub(crate) fn into_form(self, py: Python<'_>, form: Form) -> PyResult<Py<PyAny>> {
        let tensor = Bound::new(py, self)?;
        Ok(match form {
            Form::Tensor => tensor.into_any(),
            Form::Numpy => Self::numpy(&tensor)?,
            Form::Torch => Self::torch(&tensor)?,
            Form::Jax => Self::jax(&tensor)?,
            Form::Tf => Self::tf(&tensor)?,
        }
        .unbind())
    }

    fn is_aligned(&self) -> bool {
        self.memory.address().is_multiple_of(ALIGNMENT)
    }

    fn copied(&self) -> PyResult<Self> {
        let shape = self.shape.clone();
        let element = self.element;
        let row_stride = self.row_stride;
        Ok(Self { memory: self.memory.copied()?, shape, element, row_stride })
    }
}

/// A tensor that has NumPy's array interface and nothing else: from Python 3.12 on NumPy would ask
/// a [`Tensor`] for a memoryview first, which is made of its array.
#[pyclass(frozen)]
struct ArrayInterface {
    tensor: Py<Tensor>,
}

#[pymethods]
impl ArrayInterface {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Fields<'py>> {
        self.tensor.get().__array_interface__(py)
    }
}

#[pymethods]
impl Tensor {
    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Shape<'py>> {
        PyTuple::new(py, &self.shape).map(Shape)
    }

    /// The type of the numbers, as in ``"float32"``.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.element.python_name()
    }

    /// How many dimensions there are.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Bytes of all numbers.
    #[getter]
    fn nbytes(&self) -> usize {
        self.number_bytes()
    }

    /// The address of the first number.
    fn data_ptr(&self) -> usize {
        self.memory.address()
    }

    fn __len__(&self) -> PyResult<usize> {
        let none = || PyTypeError::new_err("a tensor without dimensions has no length");
        self.shape.first().copied().ok_or_else(none)
    }

    /// Row ``index`` as a tensor that shares the memory; anything else as NumPy does it.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(index) = index.extract::<isize>() else {
            return Self::numpy(slf)?.get_item(index);
        };
        let this = slf.get();
        let rows = this.__len__()?;
        let row = wrap(index, rows)?;
        Ok(Bound::new(slf.py(), this.row(row))?.into_any())
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.rich_compare(other, comparison)
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Self::numpy(slf)?.is_truthy()
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__int__")
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__float__")
    }

    fn __index__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("__index__")
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
        let shape = &slf.get().shape;
        if !shape.is_empty() {
            let message = format!("unhashable tensor of shape {shape:?}: expected one number");
            return Err(PyTypeError::new_err(message));
        }
        Self::numpy(slf)?.call_method0("item")?.hash()
    }

    /// One number formatted as Python formats it; without a format any tensor as ``str`` has it.
    fn __format__<'py>(slf: &Bound<'py, Self>, format: &str) -> PyResult<Bound<'py, PyAny>> {
        if format.is_empty() || !slf.get().shape.is_empty() {
            return slf.str()?.call_method1("__format__", (format,));
        }
        Self::numpy(slf)?.call_method0("item")?.call_method1("__format__", (format,))
    }

    #[pyo3(signature = (ndigits=None))]
    fn __round__<'py>(slf: &Bound<'py, Self>, ndigits: Option<i32>) -> PyResult<Bound<'py, PyAny>> {
        let number = Self::numpy(slf)?.call_method0("item")?;
        number.py().import("builtins")?.call_method1("round", (number, ndigits))
    }

    /// One number as Python has it: the only one, or that at ``index``.
    #[pyo3(signature = (*index: "int"))]
    fn item<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method1("item", index)
    }

    /// The numbers as nested lists, or the only one.
    fn tolist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.call_method0("tolist")
    }

    /// Explains where the methods of other libraries are.
    fn __getattr__(&self, name: &str) -> PyResult<Py<PyAny>> {
        Err(by_value::no_attribute(name))
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        by_value::no_arithmetic(other, "+")
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        by_value::no_arithmetic(other, "-")
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        by_value::no_arithmetic(other, "*")
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        by_value::no_arithmetic(other, "/")
    }

    /// Some rows as a tensor, in this order: adjacent ones share the memory, others are copied.
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn rows(slf: &Bound<'_, Self>, rows: Vec<usize>) -> PyResult<Self> {
        by_value::rows(slf, &rows)
    }

    /// Pickles and copies the numbers.
    #[pyo3(signature = () -> "tuple[Any, ...]")]
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        by_value::reduced(slf)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let described =
            format!("shape={}, dtype={}", this.shape(slf.py())?.0, this.element.python_name());
        let numbers: usize = this.shape.iter().product();
        if let Some(device) = this.device_name() {
            return Ok(format!("Tensor({described}, device={device})"));
        }
        // NumPy has no bfloat16 of its own.
        if this.element == Element::Bf16 {
            return Ok(format!("Tensor({described})"));
        }
        if numbers <= SHOWN {
            return Ok(format!("Tensor({}, {described})", Self::tolist(slf)?));
        }
        Ok(format!("Tensor({}, {described})", by_value::first_numbers(&Self::numpy(slf)?)?))
    }

    /// NumPy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Fields<'py>> {
        if let Some(device) = self.device_name() {
            return Err(PyAttributeError::new_err(format!("the tensor is on {device}")));
        }
        self.array_interface(py)
    }

    /// The CUDA array interface, version 3, of a tensor on a device. Consumers wait for its stream,
    /// and name those that read the tensor with ``record_stream``; the legacy stream is
    /// taken to read it.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Fields<'py>> {
        if self.device_name().is_none() {
            return Err(PyAttributeError::new_err("the tensor is in memory of the host"));
        }
        let Fields(interface) = self.array_interface(py)?;
        interface.set_item("stream", LEGACY_STREAM)?;
        self.memory.hold_back(LEGACY_STREAM)?;
        self.beware_of_jax(py)?;
        Ok(Fields(interface))
    }

    /// A memoryview of the array.
    fn __buffer__<'py>(slf: &Bound<'py, Self>, _flags: i32) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(&Self::numpy(slf)?)
    }

    /// Converts the tensor for ``numpy.asarray`` where the array interface is not enough.
    #[pyo3(signature = (dtype=None, copy=None) -> "npt.NDArray[Any]")]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = Self::numpy(slf)?;
        let py = slf.py();
        let wanted = dtype.map_or_else(|| array.getattr("dtype"), Ok)?;
        if !array.getattr("dtype")?.eq(&wanted)? && copy == Some(false) {
            return Err(pyo3::exceptions::PyValueError::new_err("another dtype takes a copy"));
        }
        let options = PyDict::new(py);
        options.set_item("copy", copy.unwrap_or(false))?;
        array.call_method("astype", (wanted,), Some(&options))
    }

    /// The tensor as a NumPy array that shares the memory and can be written.
    #[pyo3(signature = () -> "npt.NDArray[Any]")]
    pub(crate) fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(device) = slf.get().device_name() {
            return Err(PyTypeError::new_err(format!(
                "the tensor is on {device}: torch() and jax() take it there, and torch().cpu() copies it"
            )));
        }
        let numpy = py.import("numpy")?;
        if slf.get().element != Element::Bf16 {
            let tensor = slf.clone().unbind();
            return numpy.call_method1("asarray", (Bound::new(py, ArrayInterface { tensor })?,));
        }
        let dtype = py.import("ml_dtypes").map_err(|_| Self::no_numpy())?.getattr("bfloat16")?;
        let bits = slf.get().reinterpreted(Element::F16);
        Self::numpy(&Bound::new(py, bits)?)?.call_method1("view", (dtype,))
    }

    /// The tensor as a ``torch.Tensor`` that shares the memory.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let torch = slf.py().import("torch")?;
        if slf.get().device_name().is_none() {
            return torch.call_method1("from_dlpack", (slf,));
        }
        let tensor = Bound::new(slf.py(), ForTorch { tensor: slf.clone().unbind() })?;
        torch.call_method1("from_dlpack", (tensor,))
    }

    /// The tensor as a ``jax.Array`` that shares the memory, which is not to be written elsewhere
    /// then; a copy of what lies in a mapped file, of rows with bytes between them, and of 64 bits a
    /// number where JAX has 32.
    fn jax<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let jax = slf.py().import("jax.numpy")?;
        if slf.get().memory.is_writable() && slf.get().row_stride.is_none() {
            return jax.call_method1("from_dlpack", (slf,));
        }
        jax.call_method1("array", (Self::numpy(slf)?,))
    }

    /// The tensor as a ``tf.Tensor`` that shares the memory, or a copy of what lies in a mapped
    /// file, of rows with bytes between them, and of a row that does not start at a multiple of 64,
    /// which TensorFlow aborts at.
    fn tf<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        if !this.memory.is_writable() || this.row_stride.is_some() {
            return py.import("tensorflow")?.call_method1("constant", (Self::numpy(slf)?,));
        }
        let copied = if this.is_aligned() { None } else { Some(this.copied()?) };
        let capsule = copied.as_ref().unwrap_or(this).export(py, false, copied.is_some())?;
        py.import("tensorflow.experimental.dlpack")?.call_method1("from_dlpack", (capsule,))
    }

    /// The tensor as a DLPack capsule: a versioned one where ``max_version`` is (1, 0) or more.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None) -> "Any")]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.beware_of_jax(py)?;
        self.lent(py, stream, max_version, dl_device, copy)
    }

    /// Tells a tensor on a device, or in pinned memory, that a stream reads it, so that the memory of
    /// its batch is used again only after what the stream does until the batch and its tensors are
    /// gone: a ``torch.cuda.Stream``, or the number of a stream. Streams that tensors were taken on are
    /// known.
    fn record_stream(&self, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        self.memory.record_stream(reading_stream(stream)?)
    }

    /// Whether the memory is pinned, as that of a loader with ``pin_memory``.
    fn is_pinned(&self) -> bool {
        self.memory.pinned_with().is_some()
    }

    /// ``(1, 0)``: the CPU; ``(2, N)``: CUDA device N.
    fn __dlpack_device__(&self) -> (i32, i32) {
        self.memory.device()
    }
}

/// A row's number, counted from the end where it is negative.
pub(crate) fn wrap(index: isize, rows: usize) -> PyResult<usize> {
    let row = if index < 0 { rows.checked_add_signed(index) } else { usize::try_from(index).ok() };
    let outside = || PyIndexError::new_err(format!("row {index} of {rows}"));
    row.filter(|&row| row < rows).ok_or_else(outside)
}
