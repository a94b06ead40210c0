//! Tensors by value: pickled, copied, some of their rows; and what they leave to other libraries.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PySlice, PyTuple};

use crate::element::{Element, PythonElement};
use crate::memory::Memory;
use crate::tensor::Tensor;

/// The error for an attribute that only a library's tensors have.
pub(crate) fn no_attribute(name: &str) -> PyErr {
    let advice = if name.starts_with('_') {
        String::new()
    } else {
        format!(
            ": .numpy(), .torch() and .jax() share its memory, so use .torch().{name} or the like"
        )
    };
    PyAttributeError::new_err(format!("a Tensor has no attribute {name:?}{advice}"))
}

/// The error for arithmetic with a Python number or another tensor; other operands decide.
pub(crate) fn no_arithmetic(other: &Bound<'_, PyAny>, sign: &str) -> PyResult<Py<PyAny>> {
    let is_number = other.is_instance_of::<PyInt>() || other.is_instance_of::<PyFloat>();
    if is_number || other.is_instance_of::<Tensor>() {
        let message = format!(
            "a Tensor has no arithmetic: .numpy(), .torch() and .jax() share its memory, so use \
             .torch() {sign} .. or the like"
        );
        return Err(PyTypeError::new_err(message));
    }
    Ok(other.py().NotImplemented())
}

/// The first numbers of an array, in the order of memory.
pub(crate) fn first_numbers(array: &Bound<'_, PyAny>) -> PyResult<String> {
    const COUNT: isize = 6;
    let first = PySlice::new(array.py(), 0, COUNT, 1);
    let numbers: Vec<String> = array
        .getattr("flat")?
        .get_item(first)?
        .call_method0("tolist")?
        .try_iter()?
        .map(|number| Ok(number?.to_string()))
        .collect::<PyResult<_>>()?;
    Ok(format!("[{}, ..]", numbers.join(", ")))
}

/// The bytes of an array of the numbers, without gaps; `make` is given an array of the same bits
/// where NumPy has none of the type.
fn bytes_of<'py>(
    tensor: &Bound<'py, Tensor>,
    make: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let this = tensor.get();
    let bits = if this.element() == Element::Bf16 {
        Bound::new(tensor.py(), this.reinterpreted(Element::F16))?
    } else {
        tensor.clone()
    };
    make(Tensor::numpy(&bits)?)?.call_method0("tobytes")
}

/// The function that makes a tensor of bytes, and its arguments.
pub(crate) fn reduced<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyTuple>> {
    let py = tensor.py();
    let this = tensor.get();
    let bytes = bytes_of(tensor, Ok)?;
    let restore = py.import("turboloader._native")?.getattr("tensor_of")?;
    let arguments = (bytes, PyTuple::new(py, this.sides())?, this.element().python_name());
    PyTuple::new(py, [restore, arguments.into_bound_py_any(py)?])
}

/// The tensor of these bytes, which are copied.
#[pyfunction]
#[pyo3(signature = (data, shape: "tuple[int, ...]", dtype))]
pub(crate) fn tensor_of(
    data: &Bound<'_, PyBytes>,
    shape: Vec<usize>,
    dtype: &str,
) -> PyResult<Tensor> {
    let element = Element::of_python(dtype)
        .ok_or_else(|| PyValueError::new_err(format!("dtype is {dtype}")))?;
    let data = data.as_bytes();
    let bytes = shape.iter().try_fold(element.bytes(), |bytes, &side| bytes.checked_mul(side));
    if bytes != Some(data.len()) {
        let message = format!("{} bytes for {dtype} of shape {shape:?}", data.len());
        return Err(PyValueError::new_err(message));
    }
    Ok(Tensor::new(Memory::of(data)?, shape, element))
}

/// Some rows, in this order.
pub(crate) fn rows(tensor: &Bound<'_, Tensor>, rows: &[usize]) -> PyResult<Tensor> {
    let this = tensor.get();
    let Some((&count, inner)) = this.sides().split_first() else {
        return Err(PyTypeError::new_err("a tensor without dimensions has no rows"));
    };
    if let Some(row) = rows.iter().find(|&&row| row >= count) {
        return Err(PyIndexError::new_err(format!("row {row} of {count}")));
    }
    let first = rows.first().copied().unwrap_or(0);
    if rows.iter().enumerate().all(|(i, &row)| row == first + i) {
        return Ok(this.adjacent(first, first + rows.len()));
    }
    let taken = bytes_of(tensor, |array| array.call_method1("take", (rows.to_vec(), 0)))?;
    let shape = [rows.len()].into_iter().chain(inner.iter().copied()).collect();
    Ok(Tensor::new(Memory::of(taken.cast::<PyBytes>()?.as_bytes())?, shape, this.element()))
}
