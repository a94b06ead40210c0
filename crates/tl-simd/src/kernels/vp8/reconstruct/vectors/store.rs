//! Blocks become rows again, and are stored.

use crate::kernels::vp8::reconstruct::LastRow;
use crate::kernels::vp8::{CHROMA, CHROMA_BLOCKS, LUMA, LUMA_BLOCKS, PlanesMut};
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
    let stride = planes.y_stride;
    let plane = &mut planes.y[row * LUMA * stride + column * LUMA..];
    for y in 0..4 {
        let [a, b, c, d] = [blocks[4 * y], blocks[4 * y + 1], blocks[4 * y + 2], blocks[4 * y + 3]];
        let [first, second, third, fourth] = rows(simd, a, b, c, d);
        simd.store_samples(first, part(plane, 4 * y * stride));
        simd.store_samples(second, part(plane, (4 * y + 1) * stride));
        simd.store_samples(third, part(plane, (4 * y + 2) * stride));
        simd.store_samples(fourth, part(plane, (4 * y + 3) * stride));
        if y == 3 {
            simd.store_samples(fourth, &mut last.y);
        }
    }
}

#[inline(always)]
fn part<const LEN: usize>(plane: &mut [u8], start: usize) -> &mut [u8; LEN] {
    (&mut plane[start..][..LEN]).try_into().expect("as long")
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
    let start = row * CHROMA * stride + column * CHROMA;
    let last_u = store_plane(simd, u, &mut planes.u[start..], stride);
    let last_v = store_plane(simd, v, &mut planes.v[start..], stride);
    simd.store_samples(simd.zip_eights(last_u, last_v)[1], part(last.uv.as_flattened_mut(), 0));
}

/// The last two rows.
#[inline(always)]
fn store_plane<S: Vp8Simd>(
    simd: S,
    blocks: &[S::Samples; CHROMA_BLOCKS],
    plane: &mut [u8],
    stride: usize,
) -> S::Samples {
    let [a, b, c, d] = *blocks;
    let [first, second] = simd.zip_fours(a, b);
    let [third, fourth] = simd.zip_fours(c, d);
    store_two(simd, first, plane, stride, 0);
    store_two(simd, second, plane, stride, 2);
    store_two(simd, third, plane, stride, 4);
    store_two(simd, fourth, plane, stride, 6);
    fourth
}

#[inline(always)]
fn store_two<S: Vp8Simd>(simd: S, rows: S::Samples, plane: &mut [u8], stride: usize, row: usize) {
    let (first, second) = plane[row * stride..].split_at_mut(stride);
    simd.store_eights(rows, part(first, 0), part(second, 0));
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
    simd.store_samples(simd.zip_eights(u, v)[1], part(last.uv.as_flattened_mut(), 0));
}
