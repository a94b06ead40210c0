//! One vector against every row of a matrix: dot products, squared distances, cosines, and the rows
//! that are nearest.
//!
//! Floats are added up in 16 partial sums, of which sum `l` has elements `l`, `l + 16`, `l + 32`...
//! in this order, every product and every addition rounded to `f32`. The upper half of the sums is
//! then added to the lower half until one is left. Integers are added up exactly. What follows is
//! `f64`, rounded to `f32` at the end, so that every level and every machine has the same bits.

mod best;
mod floats;
mod integers;
mod matrix;
mod query;

use crate::Level;
use crate::kernels::streams::STREAMS;
use best::Best;
use floats::{Bf16, F16, F32};
pub use matrix::{Element, Matrix};
pub use query::Query;

/// The comparison of a row with the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// The sum of the products; the largest is the nearest.
    Dot,
    /// The sum of the squared differences; the smallest is the nearest.
    SquaredL2,
    /// The dot product divided by both lengths; the largest is the nearest. It is 0 where a squared
    /// length is 0, exactly 1 for equal vectors, and at most an ulp beyond 1 for others.
    Cosine,
}

/// A row and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The row of the matrix.
    pub row: usize,
    /// The metric's value for it.
    pub score: f32,
}

/// The score of every row.
///
/// A score that is not a number is `f32::NAN`; 0 is never negative.
///
/// # Panics
///
/// If `out` has not one place per row, or the query has another dimension than the matrix.
pub fn scores(level: Level, metric: Metric, matrix: &Matrix<'_>, query: &Query, out: &mut [f32]) {
    assert_eq!(out.len(), matrix.rows(), "one score per row");
    scan(
        level,
        metric,
        matrix,
        query,
        #[inline(always)]
        |row, score| out[row] = score,
    );
}

/// The `k` nearest rows, the nearest first and equally near ones by their number; fewer when the
/// matrix has no more. Rows whose score is not a number are left out.
///
/// # Panics
///
/// When the query has another dimension than the matrix.
#[must_use]
pub fn nearest(
    level: Level,
    metric: Metric,
    matrix: &Matrix<'_>,
    query: &Query,
    k: usize,
) -> Vec<Match> {
    let mut best = Best::new(metric, k.min(matrix.rows()));
    scan(
        level,
        metric,
        matrix,
        query,
        #[inline(always)]
        |row, score| best.offer(row, score),
    );
    best.into_matches()
}

/// The squared length of every row, as [`Matrix::with_squared_lengths`] takes them.
///
/// # Panics
///
/// If `out` has not one place per row.
pub fn squared_lengths(level: Level, matrix: &Matrix<'_>, out: &mut [f32]) {
    assert_eq!(out.len(), matrix.rows(), "one length per row");
    let query = Query::new(&vec![0.0; matrix.dim()]);
    sums(
        level,
        Metric::Cosine,
        matrix,
        &query,
        #[inline(always)]
        |places, [_, squares]| {
            for (place, square) in places.into_iter().zip(squares) {
                if let Some(out) = out.get_mut(place) {
                    *out = canonical(square);
                }
            }
        },
    );
}

/// The score of every row, in any order.
#[inline(always)]
fn scan(
    level: Level,
    metric: Metric,
    matrix: &Matrix<'_>,
    query: &Query,
    mut sink: impl FnMut(usize, f32),
) {
    assert_eq!(query.dim(), matrix.dim(), "the query has the rows' dimension");
    let length = query.squared_length(matrix.element());
    let known = matrix.squared_lengths().filter(|_| metric == Metric::Cosine);
    let asked = if known.is_some() { Metric::Dot } else { metric };
    sums(
        level,
        asked,
        matrix,
        query,
        #[inline(always)]
        |places, [sums, squares]| {
            let squares = match known {
                Some(known) => places.map(|place| known.get(place).copied().unwrap_or_default()),
                None => squares,
            };
            let scores =
                if metric == Metric::Cosine { cosines(sums, squares, length) } else { sums };
            for (place, score) in places.into_iter().zip(scores) {
                if place < matrix.rows() {
                    sink(place, canonical(score));
                }
            }
        },
    );
}

/// For some rows at once the sums that `metric` asks for, and for [`Metric::Cosine`] the squared
/// lengths. Every row comes once, in any order; rows after the end are to be left out.
#[inline(always)]
fn sums(
    level: Level,
    metric: Metric,
    matrix: &Matrix<'_>,
    query: &Query,
    sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    match matrix.element() {
        Element::F32 => floats::scan::<F32, 64>(level, metric, matrix, query.floats(), sink),
        Element::F16 => floats::scan::<F16, 32>(level, metric, matrix, query.floats(), sink),
        Element::Bf16 => floats::scan::<Bf16, 32>(level, metric, matrix, query.floats(), sink),
        Element::I8 => integers::scan(level, metric, matrix, query.integers(), sink),
    }
}

/// The cosines of several rows at once: a vector instruction computes the roots and quotients of
/// all of them in the time of one.
#[inline(always)]
fn cosines(products: [f32; STREAMS], squares: [f32; STREAMS], other: f32) -> [f32; STREAMS] {
    let mut cosines = [0.0; STREAMS];
    for ((cosine, product), square) in cosines.iter_mut().zip(products).zip(squares) {
        let lengths = (f64::from(square) * f64::from(other)).sqrt();
        #[expect(clippy::cast_possible_truncation, reason = "rounded to nearest")]
        let quotient = (f64::from(product) / lengths) as f32;
        *cosine = if lengths == 0.0 { 0.0 } else { quotient };
    }
    cosines
}

/// Without the bits in which machines differ: the sign and payload of NaN, and the
/// sign of 0.
#[inline(always)]
fn canonical(score: f32) -> f32 {
    if score.is_nan() { f32::NAN } else { score + 0.0 }
}
