//! The definition, edge by edge and sample by sample.

use super::{Filter, FilterKind, OUTER};
use crate::kernels::vp8::{BLOCK, CHROMA, LUMA, PlanesMut};
use std::ops::Range;

pub(super) fn filter(
    kind: FilterKind,
    filters: &[Filter],
    columns: Range<usize>,
    planes: &mut PlanesMut<'_>,
    row: usize,
) {
    for column in columns {
        let filter = filters[column];
        if filter.limit > 0 {
            match kind {
                FilterKind::Simple => filter_luma(filter, planes, row, column),
                FilterKind::Normal => filter_planes(filter, planes, row, column),
            }
        }
    }
}

/// An edge: the first sample after it, the step across it, and the step along it.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: usize,
    across: usize,
    along: usize,
}

impl Line {
    /// The left edge of column `x` of a plane's macroblock.
    const fn vertical(first: usize, x: usize, stride: usize) -> Self {
        Self { first: first + x, across: 1, along: stride }
    }

    const fn horizontal(first: usize, y: usize, stride: usize) -> Self {
        Self { first: first + y * stride, across: stride, along: 1 }
    }

    fn starts(self, len: usize) -> impl Iterator<Item = usize> {
        (0..len).map(move |i| self.first + i * self.along)
    }
}

fn filter_luma(filter: Filter, planes: &mut PlanesMut<'_>, row: usize, column: usize) {
    let stride = planes.y_stride;
    let first = row * LUMA * stride + column * LUMA;
    let inner = if filter.inner { [4, 8, 12].as_slice() } else { &[] };
    let mut run = |line: Line, limit: u8| {
        for at in line.starts(LUMA) {
            filter_simple(planes.y, at, line.across, limit);
        }
    };
    if column > 0 {
        run(Line::vertical(first, 0, stride), filter.limit + OUTER);
    }
    for &x in inner {
        run(Line::vertical(first, x, stride), filter.limit);
    }
    if row > 0 {
        run(Line::horizontal(first, 0, stride), filter.limit + OUTER);
    }
    for &y in inner {
        run(Line::horizontal(first, y, stride), filter.limit);
    }
}

fn filter_planes(filter: Filter, planes: &mut PlanesMut<'_>, row: usize, column: usize) {
    let PlanesMut { y, u, v, y_stride, uv_stride } = planes;
    for (plane, side, stride) in
        [(y, LUMA, *y_stride), (u, CHROMA, *uv_stride), (v, CHROMA, *uv_stride)]
    {
        let first = row * side * stride + column * side;
        let mut run = |line: Line, outer: bool| {
            for at in line.starts(side) {
                filter_normal(plane, at, line.across, filter, outer);
            }
        };
        if column > 0 {
            run(Line::vertical(first, 0, stride), true);
        }
        let inner = if filter.inner { BLOCK..side } else { 0..0 };
        for x in inner.clone().step_by(BLOCK) {
            run(Line::vertical(first, x, stride), false);
        }
        if row > 0 {
            run(Line::horizontal(first, 0, stride), true);
        }
        for y in inner.step_by(BLOCK) {
            run(Line::horizontal(first, y, stride), false);
        }
    }
}

/// Whether the step across the edge is at most `limit`, the sample after it being at `at`.
fn is_flat(plane: &[u8], at: usize, across: usize, limit: u8) -> bool {
    let step = u32::from(plane[at - across].abs_diff(plane[at]));
    let wide = u32::from(plane[at - 2 * across].abs_diff(plane[at + across]));
    4 * step + wide <= 2 * u32::from(limit) + 1
}

fn filter_simple(plane: &mut [u8], at: usize, across: usize, limit: u8) {
    if is_flat(plane, at, across, limit) {
        change_two(plane, at, across);
    }
}

fn filter_normal(plane: &mut [u8], at: usize, across: usize, filter: Filter, outer: bool) {
    let limit = if outer { filter.limit + OUTER } else { filter.limit };
    let start = at - 4 * across;
    let [p3, p2, p1, p0, q0, q1, q2, q3] = std::array::from_fn(|i| plane[start + i * across]);
    let interior = [[p3, p2], [p2, p1], [p1, p0], [q0, q1], [q1, q2], [q2, q3]];
    let is_even = interior.iter().all(|[a, b]| a.abs_diff(*b) <= filter.interior);
    if !is_even || !is_flat(plane, at, across, limit) {
        return;
    }
    let varies = p1.abs_diff(p0) > filter.high_variance || q1.abs_diff(q0) > filter.high_variance;
    match (varies, outer) {
        (true, _) => change_two(plane, at, across),
        (false, true) => change_six(plane, at, across),
        (false, false) => change_four(plane, at, across),
    }
}

/// A sample around zero.
fn centred(sample: u8) -> i8 {
    (sample ^ 0x80).cast_signed()
}

/// Adds to the sample at `at`.
fn change(plane: &mut [u8], at: usize, by: i8) {
    plane[at] = centred(plane[at]).saturating_add(by).cast_unsigned() ^ 0x80;
}

/// Three times the step across the edge, and `wide`.
fn step(plane: &[u8], at: usize, across: usize, wide: i8) -> i8 {
    let step = centred(plane[at]).saturating_sub(centred(plane[at - across]));
    wide.saturating_add(step).saturating_add(step).saturating_add(step)
}

fn wide_step(plane: &[u8], at: usize, across: usize) -> i8 {
    centred(plane[at - 2 * across]).saturating_sub(centred(plane[at + across]))
}

/// Changes the samples next to the edge; the amount taken from the one after it.
fn change_nearest(plane: &mut [u8], at: usize, across: usize, step: i8) -> i8 {
    let after = step.saturating_add(4) >> 3;
    change(plane, at - across, step.saturating_add(3) >> 3);
    change(plane, at, -after);
    after
}

fn change_two(plane: &mut [u8], at: usize, across: usize) {
    let step = step(plane, at, across, wide_step(plane, at, across));
    change_nearest(plane, at, across, step);
}

fn change_four(plane: &mut [u8], at: usize, across: usize) {
    let step = step(plane, at, across, 0);
    let after = change_nearest(plane, at, across, step);
    let beyond = (after + 1) >> 1;
    change(plane, at - 2 * across, beyond);
    change(plane, at + across, -beyond);
}

fn change_six(plane: &mut [u8], at: usize, across: usize) {
    let step = i32::from(step(plane, at, across, wide_step(plane, at, across)));
    for (i, weight) in [27, 18, 9].into_iter().enumerate() {
        let [by, ..] = ((weight * step + 63) >> 7).to_le_bytes();
        change(plane, at - (1 + i) * across, by.cast_signed());
        change(plane, at + i * across, -by.cast_signed());
    }
}
