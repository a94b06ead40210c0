//! Edges of 16 samples of luma and 16 of chroma, 8 of each plane, in one vector.
//!
//! A macroblock is loaded once: turned for its vertical edges, turned back for the horizontal ones,
//! and stored.

mod edges;
mod samples;

use super::{Filter, FilterKind, OUTER};
use crate::kernels::vp8::{CHROMA, LUMA, PlanesMut};
use crate::vector::vp8::FilterSimd;
use edges::{Limits, filter_inner, filter_outer};
use samples::{
    Place, load_columns, load_row, load_rows, load_rows_above, merge, store_columns, store_row,
    store_rows_above, turn,
};
use std::ops::Range;

#[inline(always)]
pub(super) fn filter<S: FilterSimd>(
    simd: S,
    kind: FilterKind,
    filters: &[Filter],
    columns: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    match kind {
        FilterKind::Simple => filter_row::<S, true>(simd, filters, columns, planes, row),
        FilterKind::Normal => filter_row::<S, false>(simd, filters, columns, planes, row),
    }
}

#[inline(always)]
fn filter_row<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    filters: &[Filter],
    columns: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    for column in columns {
        let filter = filters[column];
        if filter.limit == 0 {
            continue;
        }
        let limits = Limits {
            outer: simd.splat_lanes(filter.limit + OUTER),
            inner: simd.splat_lanes(filter.limit),
            interior: simd.splat_lanes(filter.interior),
            high_variance: simd.splat_lanes(filter.high_variance),
        };
        let at = Place {
            y: row * LUMA * planes.y_stride + column * LUMA,
            uv: row * CHROMA * planes.uv_stride + column * CHROMA,
        };
        let left = (column > 0).then(|| Place { y: at.y - 4, uv: at.uv - 4 });
        if filter.inner {
            filter_all::<S, SIMPLE>(simd, &limits, planes, at, left, row > 0);
        } else {
            filter_borders::<S, SIMPLE>(simd, &limits, planes, at, left, row > 0);
        }
    }
}

/// The edges between a macroblock and its neighbours.
#[inline(always)]
fn filter_borders<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    planes: &mut PlanesMut<'_>,
    at: Place,
    left: Option<Place>,
    top: bool,
) {
    if let Some(left) = left {
        let mut before = load_columns::<S, SIMPLE>(simd, planes, left);
        let mut after = load_columns::<S, SIMPLE>(simd, planes, at);
        filter_outer::<S, SIMPLE>(simd, limits, &mut before, &mut after);
        store_columns::<S, SIMPLE>(simd, planes, left, before);
        store_columns::<S, SIMPLE>(simd, planes, at, after);
    }
    if top {
        let mut before = load_rows_above::<S, SIMPLE>(simd, planes, at);
        let mut after = [
            load_row::<S, SIMPLE>(simd, planes, at, 0),
            load_row::<S, SIMPLE>(simd, planes, at, 1),
            load_row::<S, SIMPLE>(simd, planes, at, 2),
            load_row::<S, SIMPLE>(simd, planes, at, 3),
        ];
        filter_outer::<S, SIMPLE>(simd, limits, &mut before, &mut after);
        store_rows_above::<S, SIMPLE>(simd, planes, at, before);
        store_row::<S, SIMPLE>(simd, planes, at, 0, after[0]);
        store_row::<S, SIMPLE>(simd, planes, at, 1, after[1]);
        store_row::<S, SIMPLE>(simd, planes, at, 2, after[2]);
    }
}

/// All edges of a macroblock.
#[inline(always)]
fn filter_all<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    planes: &mut PlanesMut<'_>,
    at: Place,
    left: Option<Place>,
    top: bool,
) {
    let rows = load_rows::<S, SIMPLE>(simd, planes, at);
    let mut lines = turn(simd, rows);
    if let Some(left) = left {
        let mut before = load_columns::<S, SIMPLE>(simd, planes, left);
        filter_first::<S, SIMPLE>(simd, limits, &mut before, &mut lines);
        store_columns::<S, SIMPLE>(simd, planes, left, before);
    }
    filter_inner::<S, SIMPLE>(simd, limits, &mut lines);
    let mut lines = merge(simd, turn(simd, lines));
    if top {
        let mut before = load_rows_above::<S, SIMPLE>(simd, planes, at);
        filter_first::<S, SIMPLE>(simd, limits, &mut before, &mut lines);
        store_rows_above::<S, SIMPLE>(simd, planes, at, before);
    }
    filter_inner::<S, SIMPLE>(simd, limits, &mut lines);
    for (row, line) in lines.into_iter().enumerate() {
        store_row::<S, SIMPLE>(simd, planes, at, row, line);
    }
}

/// The edge before the first of a macroblock's lines.
#[inline(always)]
fn filter_first<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    before: &mut [S::Lanes; 4],
    lines: &mut [S::Lanes; LUMA],
) {
    let mut after = [lines[0], lines[1], lines[2], lines[3]];
    filter_outer::<S, SIMPLE>(simd, limits, before, &mut after);
    [lines[0], lines[1], lines[2], lines[3]] = after;
}
