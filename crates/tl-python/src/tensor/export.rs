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

impl Tensor {
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
