//! Blocks become rows again, and are stored.

use crate::kernels::vp8::reconstruct::LastRow;
use crate::kernels::vp8::{CHROMA, CHROMA_BLOCKS, LUMA, LUMA_BLOCKS, PlanesMut};
use crate::vector::tile::Tile;
use crate::vector::vp8::Vp8Simd;

/// The rows of four blocks next to each other.
#[inline(always)]
fn rows<S: Vp8Simd>(
    simd: S,
    a: S::Samples,
    b: S::Samples,
    c: S::Samples,
    d: S::Samples,
) -> [S::Samples; 4] {
    let [ab, ab_last] = simd.zip_fours(a, b);
    let [cd, cd_last] = simd.zip_fours(c, d);
    let [first, second] = simd.zip_eights(ab, cd);
    let [third, fourth] = simd.zip_eights(ab_last, cd_last);
    [first, second, third, fourth]
}

#[inline(always)]
pub(super) fn store_luma<S: Vp8Simd>(
    simd: S,
    blocks: &[S::Samples; LUMA_BLOCKS],
    last: &mut LastRow,
    planes: &mut PlanesMut<'_>,
    row: usize,
    column: usize,
) {
    let mut tile = Tile::<LUMA>::new(planes.y, planes.y_stride, row, column);
    for y in 0..4 {
        let [a, b, c, d] = [blocks[4 * y], blocks[4 * y + 1], blocks[4 * y + 2], blocks[4 * y + 3]];
        let [first, second, third, fourth] = rows(simd, a, b, c, d);
        simd.store_samples(first, tile.row_mut(4 * y));
        simd.store_samples(second, tile.row_mut(4 * y + 1));
        simd.store_samples(third, tile.row_mut(4 * y + 2));
        simd.store_samples(fourth, tile.row_mut(4 * y + 3));
        if y == 3 {
            simd.store_samples(fourth, &mut last.y);
        }
    }
}

#[inline(always)]
pub(super) fn store_chroma<S: Vp8Simd>(
    simd: S,
    u: &[S::Samples; CHROMA_BLOCKS],
    v: &[S::Samples; CHROMA_BLOCKS],
    last: &mut LastRow,
    planes: &mut PlanesMut<'_>,
    row: usize,
    column: usize,
) {
    let stride = planes.uv_stride;
    let last_u = store_plane(simd, u, Tile::new(planes.u, stride, row, column));
    let last_v = store_plane(simd, v, Tile::new(planes.v, stride, row, column));
    keep_chroma(simd, last_u, last_v, last);
}

/// Keeps the last of two rows of U and of V.
#[inline(always)]
fn keep_chroma<S: Vp8Simd>(simd: S, u: S::Samples, v: S::Samples, last: &mut LastRow) {
    let [_, rows] = simd.zip_eights(u, v);
    simd.store_first(rows, &mut last.uv[0]);
    simd.store_second(rows, &mut last.uv[1]);
}

/// The last two rows.
#[inline(always)]
fn store_plane<S: Vp8Simd>(
    simd: S,
    blocks: &[S::Samples; CHROMA_BLOCKS],
    mut tile: Tile<'_, CHROMA>,
) -> S::Samples {
    let [a, b, c, d] = *blocks;
    let [first, second] = simd.zip_fours(a, b);
    let [third, fourth] = simd.zip_fours(c, d);
    simd.store_first(first, tile.row_mut(0));
    simd.store_second(first, tile.row_mut(1));
    simd.store_first(second, tile.row_mut(2));
    simd.store_second(second, tile.row_mut(3));
    simd.store_first(third, tile.row_mut(4));
    simd.store_second(third, tile.row_mut(5));
    simd.store_first(fourth, tile.row_mut(6));
    simd.store_second(fourth, tile.row_mut(7));
    fourth
}

/// Only the last rows.
#[inline(always)]
pub(super) fn keep<S: Vp8Simd>(
    simd: S,
    y: &[S::Samples; LUMA_BLOCKS],
    u: &[S::Samples; CHROMA_BLOCKS],
    v: &[S::Samples; CHROMA_BLOCKS],
    last: &mut LastRow,
) {
    let [.., fourth] = rows(simd, y[12], y[13], y[14], y[15]);
    simd.store_samples(fourth, &mut last.y);
    let [_, u] = simd.zip_fours(u[2], u[3]);
    let [_, v] = simd.zip_fours(v[2], v[3]);
    keep_chroma(simd, u, v, last);
}
