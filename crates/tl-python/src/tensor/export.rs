//! The forms in which tensors are handed to other libraries.

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use super::Tensor;
use crate::element::PythonElement;
use crate::hint::Fields;
use crate::memory::{CPU, Exported};

/// The legacy stream, as the array API and the CUDA array interface number it.
pub(super) const LEGACY_STREAM: usize = 1;

/// The stream that a consumer names in the array API, or none if it wants no order.
pub(crate) fn stream_number(stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(stream) = stream else { return Ok(Some(LEGACY_STREAM)) };
    match stream.extract::<i64>() {
        Ok(-1) => Ok(None),
        Ok(number) if number > 0 => Ok(Some(usize::try_from(number)?)),
        _ => {
            let stream = stream.repr()?;
            let message = format!(
                "stream is {stream}, expected -1 for no order, 1 for the legacy stream, 2 for the \
                 per-thread one, or the number of a stream"
            );
            Err(PyBufferError::new_err(message))
        }
    }
}

/// A stream that reads: one of torch's, or the number of one.
pub(crate) fn reading_stream(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Some(number) = stream.getattr_opt("cuda_stream")? {
        // Torch numbers the legacy stream 0.
        return Ok(number.extract::<usize>()?.max(1));
    }
    stream_number(Some(stream))?.ok_or_else(|| {
        PyBufferError::new_err("stream is -1, expected a stream that reads the memory")
    })
}

/// A tensor on a device for torch, which names the stream that it computes on.
#[pyclass(frozen)]
pub(super) struct ForTorch {
    pub(super) tensor: Py<Tensor>,
}

#[pymethods]
impl ForTorch {
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None) -> "Any")]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.tensor.get().lent(py, stream, max_version, dl_device, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        self.tensor.get().memory.device()
    }
}

impl Tensor {
    /// The capsule for a consumer that computes on the stream which it names.
    pub(super) fn lent<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let own = self.memory.device();
        if let Some(device) = dl_device.filter(|device| *device != own) {
            let message = format!("dl_device is {device:?}, the memory is on {own:?}");
            return Err(PyBufferError::new_err(message));
        }
        if own != CPU {
            match stream_number(stream)? {
                Some(stream) => self.memory.hold_back(stream)?,
                // It wants no order before, and needs one afterwards.
                None => self.memory.record_unknown_reader(),
            }
        } else if let Some(stream) = stream {
            let stream = stream.repr()?;
            let message = format!("stream is {stream}, memory of the CPU has none");
            return Err(PyBufferError::new_err(message));
        }
        self.record_torch(py)?;
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if copy == Some(true) {
            return self.copied()?.export(py, versioned, true);
        }
        self.export(py, versioned, false)
    }

    /// Names torch's current stream to pinned memory, from which torch will copy on it.
    fn record_torch(&self, py: Python<'_>) -> PyResult<()> {
        let Some(ordinal) = self.memory.pinned_with() else { return Ok(()) };
        let modules = py.import("sys")?.getattr("modules")?;
        let torch = modules.call_method1("get", ("torch",))?;
        if torch.is_none() {
            return Ok(());
        }
        let cuda = torch.getattr("cuda")?;
        if !cuda.call_method0("is_initialized")?.is_truthy()? {
            return Ok(());
        }
        let stream = cuda.call_method1("current_stream", (ordinal,))?;
        self.memory.record_stream(reading_stream(&stream)?)
    }

    /// JAX names a stream that it does not compute on. Whether a consumer is JAX cannot be seen, but
    /// whether the process has it.
    pub(super) fn beware_of_jax(&self, py: Python<'_>) -> PyResult<()> {
        if self.device_name().is_some() {
            let modules = py.import("sys")?.getattr("modules")?;
            if modules.contains("jax")? {
                self.memory.record_unknown_reader();
            }
        }
        Ok(())
    }

    /// The name of the device that the memory is on, if it is on one.
    pub(super) fn device_name(&self) -> Option<String> {
        let (kind, ordinal) = self.memory.device();
        ((kind, ordinal) != CPU).then(|| format!("cuda:{ordinal}"))
    }

    pub(super) fn no_numpy() -> PyErr {
        PyTypeError::new_err("NumPy has no bfloat16: use torch() or jax(), or install ml_dtypes")
    }

    /// The contents that the two array interfaces have in common.
    pub(super) fn array_interface<'py>(&self, py: Python<'py>) -> PyResult<Fields<'py>> {
        let type_string = self
            .element
            .type_string()
            .ok_or_else(|| PyAttributeError::new_err("NumPy has no bfloat16"))?;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", type_string)?;
        interface.set_item("data", (self.memory.address(), !self.memory.is_writable()))?;
        if let Some(stride) = self.row_stride {
            let inner = self.shape.iter().enumerate().skip(1).map(|(axis, _)| {
                let within = self.shape.get(axis + 1..).unwrap_or_default();
                within.iter().product::<usize>() * self.element.bytes()
            });
            let strides: Vec<usize> = [stride].into_iter().chain(inner).collect();
            interface.set_item("strides", PyTuple::new(py, strides)?)?;
        }
        Ok(Fields(interface))
    }

    pub(super) fn export<'py>(
        &self,
        py: Python<'py>,
        versioned: bool,
        is_copied: bool,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        if !versioned && !self.memory.is_writable() {
            let message =
                "the tensor is read-only, which DLPack below 1.0 cannot express; copy it first";
            return Err(PyBufferError::new_err(message));
        }
        let Self { memory, shape, element, row_stride } = self;
        let row_stride = row_stride.map(|stride| stride / element.bytes());
        Exported { memory, shape, row_stride, dtype: element.dlpack(), is_copied }
            .capsule(py, versioned)
    }
}
