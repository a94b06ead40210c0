//! Edges as compressed sparse rows of separate arrays, as numerical libraries have them.

use pyo3::prelude::*;
use tbf_format::{Adjacency, FileHeader, FormatError, Region};
use zerocopy::{Immutable, IntoBytes};

use crate::element::Element;
use crate::memory::Memory;
use crate::tensor::Tensor;

/// The edges by source, or by target from the reverse index.
pub(super) fn adjacency<'a>(
    region: &'a [u8],
    header: &FileHeader,
    incoming: bool,
) -> Result<Adjacency<'a>, FormatError> {
    if !incoming {
        return Adjacency::parse(region, header.node_count());
    }
    if !header.has_reverse() {
        return Err(FormatError::Absent { region: Region::Edges });
    }
    Adjacency::parse_reverse(region, header.node_count())
}

/// Row pointers, nodes, weights and relations: copies, for a file has an edge's parts side by side.
///
/// Pointers and nodes are `int32` where both fit and `int64` otherwise, as numerical libraries ask for.
pub(super) fn csr(adjacency: &Adjacency<'_>) -> PyResult<(Tensor, Tensor, Tensor, Tensor)> {
    let edges = adjacency.edges();
    let largest = edges.iter().map(|edge| u64::from(edge.target())).max().unwrap_or(0);
    let most = largest.max(edges.len() as u64).max(adjacency.rows() as u64);
    let pointers = adjacency.pointers();
    let (pointers, targets) = if i32::try_from(most).is_ok() {
        // What does not fit is damage, which stands out as -1.
        let narrow = |number: u64| i32::try_from(number).unwrap_or(-1);
        let pointers: Vec<i32> = pointers.iter().map(narrow).collect();
        let targets: Vec<i32> = edges.iter().map(|edge| narrow(edge.target().into())).collect();
        (tensor(&pointers, Element::I32)?, tensor(&targets, Element::I32)?)
    } else {
        let narrow = |number: u64| i64::try_from(number).unwrap_or(-1);
        let pointers: Vec<i64> = pointers.iter().map(narrow).collect();
        let targets: Vec<i64> = edges.iter().map(|edge| narrow(edge.target().into())).collect();
        (tensor(&pointers, Element::I64)?, tensor(&targets, Element::I64)?)
    };
    let weights: Vec<f32> = edges.iter().map(tbf_format::Edge::weight).collect();
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
