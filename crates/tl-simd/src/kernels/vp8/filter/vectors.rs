//! Edges of 16 samples of luma and 16 of chroma, 8 of each plane, in one vector.
//!
//! A macroblock is loaded once: turned for its vertical edges, turned back for the horizontal ones,
//! and stored.

mod edges;
mod samples;

use super::{Filter, FilterKind, OUTER};
use crate::kernels::vp8::{LUMA, PlanesMut};
use crate::vector::vp8::FilterSimd;
use edges::{Limits, filter_inner, filter_outer};
use samples::{
    Tiles, load_above, load_columns, load_first_rows, load_rows, merge, store_above, store_columns,
    store_first_rows, store_rows, turn,
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
        let mut tiles = Tiles::new(planes, row, column);
        let edges = Edges { left: column > 0, top: row > 0 };
        if filter.inner {
            filter_all::<S, SIMPLE>(simd, &limits, &mut tiles, edges);
        } else {
            filter_borders::<S, SIMPLE>(simd, &limits, &mut tiles, edges);
        }
    }
}

/// The sides on which a macroblock has neighbours.
#[derive(Clone, Copy, Debug)]
struct Edges {
    left: bool,
    top: bool,
}

/// The edges between a macroblock and its neighbours.
#[inline(always)]
fn filter_borders<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    tiles: &mut Tiles<'_>,
    edges: Edges,
) {
    if edges.left {
        let mut before = load_columns::<S, SIMPLE, true>(simd, tiles);
        let mut after = load_columns::<S, SIMPLE, false>(simd, tiles);
        filter_outer::<S, SIMPLE>(simd, limits, &mut before, &mut after);
        store_columns::<S, SIMPLE, true>(simd, tiles, before);
        store_columns::<S, SIMPLE, false>(simd, tiles, after);
    }
    if edges.top {
        let mut before = load_above::<S, SIMPLE>(simd, tiles);
        let mut after = load_first_rows::<S, SIMPLE>(simd, tiles);
        filter_outer::<S, SIMPLE>(simd, limits, &mut before, &mut after);
        store_above::<S, SIMPLE>(simd, tiles, before);
        store_first_rows::<S, SIMPLE>(simd, tiles, after);
    }
}

/// All edges of a macroblock.
#[inline(always)]
fn filter_all<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    tiles: &mut Tiles<'_>,
    edges: Edges,
) {
    let mut lines = turn(simd, load_rows::<S, SIMPLE>(simd, tiles));
    if edges.left {
        let mut before = load_columns::<S, SIMPLE, true>(simd, tiles);
        filter_first::<S, SIMPLE>(simd, limits, &mut before, &mut lines);
        store_columns::<S, SIMPLE, true>(simd, tiles, before);
    }
    filter_inner::<S, SIMPLE>(simd, limits, &mut lines);
    let mut lines = merge(simd, turn(simd, lines));
    if edges.top {
        let mut before = load_above::<S, SIMPLE>(simd, tiles);
        filter_first::<S, SIMPLE>(simd, limits, &mut before, &mut lines);
        store_above::<S, SIMPLE>(simd, tiles, before);
    }
    filter_inner::<S, SIMPLE>(simd, limits, &mut lines);
    store_rows::<S, SIMPLE>(simd, tiles, lines);
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
