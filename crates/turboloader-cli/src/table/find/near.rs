//! The nodes whose vectors are nearest.

use std::path::Path;

use tbf_format::{Dtype, Embeddings, Region, Segment};
use tbl_io::Source;
use tl_simd::Level;
use tl_simd::similarity::{Element, Matrix, Metric, Query, nearest as nearest_rows};

use super::Found;
use super::{Args, MetricName};
use crate::failure::Failure;
use crate::table::{SegmentFile, TableFailure};

/// The largest file that is taken for a vector: a million numbers of 64 characters.
const MAX_VECTOR_BYTES: u64 = 64 << 20;

/// The nearest nodes, the nearest first.
pub(super) fn nearest(
    file: &SegmentFile,
    segment: &Segment<'_>,
    args: &Args,
) -> Result<Vec<Found>, Failure> {
    if !segment.has(Region::Embeddings) {
        let region = Region::Embeddings;
        return Err(file.failure(tbf_format::FormatError::Absent { region }));
    }
    let vectors = segment.embeddings().map_err(|error| file.failure(error))?;
    let matrix = matrix(&vectors);
    let metric = match args.metric {
        MetricName::Cosine => Metric::Cosine,
        MetricName::Dot => Metric::Dot,
        MetricName::L2 => Metric::SquaredL2,
    };
    let (query, asked) = match (args.similar, &args.vector) {
        (Some(name), _) => {
            let row = file.row(segment, name)?;
            // The row was seen to be one of the matrix.
            (Query::from_row(&matrix, usize::try_from(row).unwrap_or(usize::MAX)), Some(row))
        }
        (None, path) => (Query::new(&read_vector(path.as_deref(), vectors.dim())?), None),
    };
    // The node that was asked about is the nearest to itself, and no answer.
    let count = args.k.saturating_add(usize::from(asked.is_some()));
    let found = nearest_rows(Level::detect(), metric, &matrix, &query, count);
    let found =
        found.into_iter().map(|found| Found { row: found.row as u64, score: Some(found.score) });
    Ok(found.filter(|found| Some(found.row) != asked).take(args.k).collect())
}

fn matrix<'a>(vectors: &Embeddings<'a>) -> Matrix<'a> {
    let element = match vectors.dtype() {
        Dtype::F16 => Element::F16,
        Dtype::Bf16 => Element::Bf16,
        Dtype::Int8 => Element::I8,
        Dtype::F32 | _ => Element::F32,
    };
    Matrix::new(vectors.as_bytes(), element, vectors.dim(), vectors.stride(), vectors.len())
}

/// Reads a JSON array, from the argument itself when it starts as one does.
fn read_vector(argument: Option<&Path>, dim: usize) -> Result<Vec<f32>, Failure> {
    let path = argument.unwrap_or_else(|| Path::new(""));
    let inline = path.to_str().filter(|text| text.trim_start().starts_with('['));
    let mut bytes = Vec::new();
    let text = match inline {
        Some(text) => text.as_bytes(),
        None => {
            let source = Source::open(path)?;
            source.read_range_into(0, source.len().min(MAX_VECTOR_BYTES), &mut bytes)?;
            &bytes
        }
    };
    let name = || inline.map_or_else(|| path.to_owned(), |_| "--vector".into());
    let vector: Vec<f32> = serde_json::from_slice(text)
        .map_err(|source| TableFailure::VectorSyntax { path: name(), source })?;
    let found = vector.len();
    if found == dim {
        Ok(vector)
    } else {
        Err(TableFailure::VectorLength { path: name(), expected: dim, found }.into())
    }
}
