//! Nodes by id, by time and by their vectors.

use pyo3::prelude::*;
use tbf_format::{Bloom, BloomKey, Dtype, Embeddings, FormatError, Index, Region};
use tl_simd::Level;
use tl_simd::similarity::{self, Match, Matrix, Metric, Query};

use super::PyTbfSegment;
use super::edges::tensor as numbers;
use crate::element::Element;
use crate::error::Error;
use crate::tensor::Tensor;

/// The row of the first node with an id: by the filter and the index where the segment has them,
/// otherwise by looking at every id.
pub(super) fn find(segment: &PyTbfSegment, id: &[u8; 16]) -> Result<Option<usize>, Error> {
    let fault = |error| segment.error(error);
    if let Some(bloom) = segment.bytes(Region::Bloom)?
        && !Bloom::parse(bloom).map_err(fault)?.may_contain(&BloomKey::new(id))
    {
        return Ok(None);
    }
    let ids = segment.columns()?.ids();
    let Some(index) = index(segment)? else {
        return Ok(ids.iter().position(|found| found == *id));
    };
    let place = index.ids().lower_bound(id);
    if index.ids().keys().get(place) != Some(*id) {
        return Ok(None);
    }
    let row = index.ids().rows().get(place).and_then(|row| usize::try_from(row).ok());
    let row = row.filter(|&row| ids.get(row) == Some(*id));
    let entry = FormatError::IndexEntry { key: "id", entry: place as u64 };
    row.map(Some).ok_or_else(|| segment.error(entry))
}

/// The rows of a range of time, by their timestamps.
pub(super) fn in_time(
    segment: &PyTbfSegment,
    start: u64,
    end: Option<u64>,
) -> Result<Vec<i64>, Error> {
    let timestamps = segment.columns()?.timestamps();
    if let Some(index) = index(segment)? {
        let tree = index.timestamps();
        let last = end.map_or(tree.keys().len(), |end| tree.lower_bound(&end));
        let first = tree.lower_bound(&start);
        return Ok(tree.rows_at(first..last.max(first)).map(i64::from).collect());
    }
    let is_in = |time: u64| time >= start && end.is_none_or(|end| time < end);
    let rows = (0i64..).zip(timestamps.iter()).filter(|(_, time)| is_in(*time));
    let mut rows: Vec<(u64, i64)> = rows.map(|(row, time)| (time, row)).collect();
    rows.sort_unstable();
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn index(segment: &PyTbfSegment) -> Result<Option<Index<'_>>, Error> {
    let Some(region) = segment.bytes(Region::Index)? else { return Ok(None) };
    let index = Index::parse(region, segment.header.node_count());
    index.map(Some).map_err(|error| segment.error(error))
}

/// The query that rows are compared with.
#[derive(FromPyObject)]
pub(super) enum Asked {
    /// A row, which is then no answer.
    Row(usize),
    Vector(Vec<f32>),
}

/// The nearest rows, the nearest first.
pub(super) fn similar(
    segment: &PyTbfSegment,
    asked: &Asked,
    k: usize,
    metric: &str,
) -> Result<Vec<Match>, Error> {
    let metric = match metric {
        "cosine" => Metric::Cosine,
        "dot" => Metric::Dot,
        "l2" => Metric::SquaredL2,
        other => {
            let message = format!("metric is {other}, expected one of cosine, dot, l2");
            return Err(Error::setting(&message));
        }
    };
    let vectors = segment.vectors()?;
    let matrix = matrix(&vectors);
    let (query, row) = match asked {
        Asked::Row(row) if *row >= matrix.rows() => {
            let row = *row as u64;
            let node_count = matrix.rows() as u64;
            return Err(segment.error(FormatError::NoRow { row, node_count }));
        }
        Asked::Row(row) => (Query::from_row(&matrix, *row), Some(*row)),
        Asked::Vector(vector) if vector.len() != matrix.dim() => {
            let found = vector.len();
            let expected = matrix.dim();
            let message =
                format!("a vector of {found} numbers, those of the segment have {expected}");
            return Err(Error::setting(&message));
        }
        Asked::Vector(vector) => (Query::new(vector), None),
    };
    let count = k.saturating_add(usize::from(row.is_some()));
    let found = similarity::nearest(Level::detect(), metric, &matrix, &query, count);
    let found = found.into_iter().filter(|found| Some(found.row) != row).take(k).collect();
    // Zeros behind a cut are no vectors.
    segment.mapped.check()?;
    Ok(found)
}

fn matrix<'a>(vectors: &Embeddings<'a>) -> Matrix<'a> {
    let element = match vectors.dtype() {
        Dtype::F16 => similarity::Element::F16,
        Dtype::Bf16 => similarity::Element::Bf16,
        Dtype::Int8 => similarity::Element::I8,
        Dtype::F32 | _ => similarity::Element::F32,
    };
    Matrix::new(vectors.as_bytes(), element, vectors.dim(), vectors.stride(), vectors.len())
}

/// Rows as a tensor.
pub(super) fn tensor(rows: &[i64]) -> PyResult<Tensor> {
    numbers(rows, Element::I64)
}

/// Rows and scores as tensors.
pub(super) fn tensors(found: &[Match]) -> PyResult<(Tensor, Tensor)> {
    let rows = found.iter().map(|found| i64::try_from(found.row)).collect::<Result<Vec<_>, _>>()?;
    let scores: Vec<f32> = found.iter().map(|found| found.score).collect();
    Ok((numbers(&rows, Element::I64)?, numbers(&scores, Element::F32)?))
}
