//! Numbers of all samples as tensors.

use std::borrow::Cow;

use pyo3::PyResult;

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

/// Little-endian numbers as a tensor of one dimension.
pub(super) fn numbers(bytes: &[u8]) -> PyResult<Tensor> {
    let count = bytes.len() / 8;
    Ok(Tensor::new(Memory::of(&native_endian(bytes))?, vec![count], Element::I64))
}

#[cfg(target_endian = "little")]
fn native_endian(bytes: &[u8]) -> Cow<'_, [u8]> {
    bytes.into()
}

#[cfg(target_endian = "big")]
fn native_endian(bytes: &[u8]) -> Cow<'_, [u8]> {
    bytes.chunks_exact(8).flat_map(|number| number.iter().rev().copied()).collect()
}
