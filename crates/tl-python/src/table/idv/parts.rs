//! Values of a column as what Python can take: tensors, lists, and dicts of those for vectors.

use idv_format::{Values, Vectors};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use zerocopy::IntoBytes;

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

/// The bytes of numbers and their type; nothing for what is not numbers of one type.
pub(super) fn numbers<'v>(values: &'v Values<'_>) -> Option<(&'v [u8], Element)> {
    Some(match values {
        Values::SByte(array) => (array.as_bytes(), Element::I8),
        Values::Byte(array) | Values::Boolean(array) => (array.as_bytes(), Element::U8),
        Values::Int16(array) => (array.as_bytes(), Element::I16),
        Values::UInt16(array) => (array.as_bytes(), Element::U16),
        Values::Int32(array) => (array.as_bytes(), Element::I32),
        Values::UInt32(array) => (array.as_bytes(), Element::U32),
        Values::Int64(array) => (array.as_bytes(), Element::I64),
        Values::UInt64(array) => (array.as_bytes(), Element::U64),
        Values::Single(array) => (array.as_bytes(), Element::F32),
        Values::Double(array) => (array.as_bytes(), Element::F64),
        Values::OffsetTime { .. } | Values::RowId(_) | Values::Text(_) | Values::Vector(_) => {
            return None;
        }
    })
}

/// Values as a tensor, a list of texts, a pair of tensors, or a dict of a vector's parts.
pub(super) fn parts(py: Python<'_>, values: &Values<'_>) -> PyResult<Py<PyAny>> {
    let tensor = |bytes: &[u8], shape, element| -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Tensor::new(Memory::of(bytes)?, shape, element))?.into_any())
    };
    if let Some((bytes, element)) = numbers(values) {
        return tensor(bytes, vec![values.len()], element);
    }
    if let Values::OffsetTime { offset_minutes, ticks } = values {
        let ticks = tensor(ticks.as_bytes(), vec![values.len()], Element::I64)?;
        let minutes = tensor(offset_minutes.as_bytes(), vec![values.len()], Element::I16)?;
        return Ok((ticks, minutes).into_pyobject(py)?.into_any().unbind());
    }
    if let Values::RowId(ids) = values {
        return tensor(ids.as_bytes(), vec![values.len(), 2], Element::U64);
    }
    if let Values::Text(text) = values {
        return Ok(PyList::new(py, text.iter())?.into_any().unbind());
    }
    let Values::Vector(vectors) = values else { unreachable!("the others are numbers") };
    vector_parts(py, vectors)
}

/// The items of vectors, and their common length or each one's length, items and slots.
fn vector_parts(py: Python<'_>, vectors: &Vectors<'_>) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    dict.set_item("items", parts(py, &vectors.items())?)?;
    if let Some(length) = vectors.dense_length() {
        dict.set_item("length", length)?;
        return Ok(dict.into_any().unbind());
    }
    let mut lengths = Vec::new();
    let mut ends = vec![0i64];
    let mut slots = Vec::new();
    for row in vectors.rows() {
        lengths.push(i64::from(row.length()));
        match row.indices() {
            Some(indices) => slots.extend(indices.iter().copied().map(i64::from)),
            None => slots.extend(0..i64::from(row.length())),
        }
        ends.push(i64::try_from(slots.len())?);
    }
    let tensor = |numbers: &[i64]| {
        let memory = Memory::of(numbers.as_bytes())?;
        Py::new(py, Tensor::new(memory, vec![numbers.len()], Element::I64))
    };
    dict.set_item("lengths", tensor(&lengths)?)?;
    dict.set_item("ends", tensor(&ends)?)?;
    dict.set_item("slots", tensor(&slots)?)?;
    Ok(dict.into_any().unbind())
}
