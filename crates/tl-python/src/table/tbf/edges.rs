//! Edges as compressed sparse rows of separate arrays, as numerical libraries have them.

use pyo3::prelude::*;
use tbf_format::{Adjacency, Edge};
use zerocopy::{Immutable, IntoBytes};

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

/// Row pointers, nodes, weights and relations: copies, for a file has an edge's parts side by side.
/// The caller has checked them.
///
/// Pointers and nodes are `int32` where both fit and `int64` otherwise, as numerical libraries ask for.
pub(super) fn csr(adjacency: &Adjacency<'_>) -> PyResult<(Tensor, Tensor, Tensor, Tensor)> {
    let edges = adjacency.edges();
    let pointers = adjacency.pointers();
    let targets = || edges.iter().map(Edge::target);
    let most = edges.len().max(adjacency.rows());
    let (pointers, targets) = if i32::try_from(most).is_ok() {
        let pointers = pointers.iter().map(i32::try_from).collect::<Result<Vec<_>, _>>()?;
        let targets = targets().map(i32::try_from).collect::<Result<Vec<_>, _>>()?;
        (tensor(&pointers, Element::I32)?, tensor(&targets, Element::I32)?)
    } else {
        let pointers = pointers.iter().map(i64::try_from).collect::<Result<Vec<_>, _>>()?;
        let targets: Vec<i64> = targets().map(i64::from).collect();
        (tensor(&pointers, Element::I64)?, tensor(&targets, Element::I64)?)
    };
    let weights: Vec<f32> = edges.iter().map(Edge::weight).collect();
    let relations: Vec<u8> = edges.iter().map(|edge| edge.relation().code()).collect();
    Ok((pointers, targets, tensor(&weights, Element::F32)?, tensor(&relations, Element::U8)?))
}

/// A tensor of one dimension with a copy of these numbers.
pub(super) fn tensor<T: IntoBytes + Immutable>(
    numbers: &[T],
    element: Element,
) -> PyResult<Tensor> {
    Ok(Tensor::new(Memory::of(numbers.as_bytes())?, vec![numbers.len()], element))
}
