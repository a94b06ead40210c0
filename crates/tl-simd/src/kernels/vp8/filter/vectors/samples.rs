//! Samples of a macroblock to vectors and back: luma in the first half of each, chroma in the
//! second. With the simple filter there is no chroma.

use crate::kernels::vp8::{CHROMA, LUMA, PlanesMut};
use crate::vector::vp8::FilterSimd;

/// The first sample of luma, and of both chroma planes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) y: usize,
    pub(super) uv: usize,
}

/// `LEN` samples of a plane.
#[inline(always)]
fn at<const LEN: usize>(plane: &[u8], start: usize) -> &[u8; LEN] {
    plane[start..][..LEN].try_into().expect("as long")
}

/// The same to write.
#[inline(always)]
fn at_mut<const LEN: usize>(plane: &mut [u8], start: usize) -> &mut [u8; LEN] {
    (&mut plane[start..][..LEN]).try_into().expect("as long")
}

/// The rows of luma, next to those of U and then of V.
#[inline(always)]
pub(super) fn load_rows<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &PlanesMut<'_>,
    place: Place,
) -> [S::Lanes; LUMA] {
    let mut rows = [simd.splat_lanes(0); LUMA];
    for (i, row) in rows.iter_mut().enumerate() {
        let luma = simd.load_samples(at(planes.y, place.y + i * planes.y_stride));
        let chroma = if SIMPLE {
            simd.splat_sample(0)
        } else if i < CHROMA {
            simd.load_eight(at(planes.u, place.uv + i * planes.uv_stride))
        } else {
            simd.load_eight(at(planes.v, place.uv + (i - CHROMA) * planes.uv_stride))
        };
        *row = simd.join(luma, chroma);
    }
    rows
}

/// Rows to columns or back.
#[inline(always)]
pub(super) fn turn<S: FilterSimd>(simd: S, lines: [S::Lanes; LUMA]) -> [S::Lanes; LUMA] {
    zip(simd, zip(simd, zip(simd, zip(simd, lines))))
}

/// A quarter of [`turn`].
#[inline(always)]
fn zip<S: FilterSimd>(simd: S, lines: [S::Lanes; LUMA]) -> [S::Lanes; LUMA] {
    let mut out = lines;
    for i in 0..LUMA / 2 {
        [out[2 * i], out[2 * i + 1]] = simd.zip_lanes(lines[i], lines[i + LUMA / 2]);
    }
    out
}

/// Puts the rows of V next to those of U.
#[inline(always)]
pub(super) fn merge<S: FilterSimd>(simd: S, rows: [S::Lanes; LUMA]) -> [S::Lanes; LUMA] {
    let mut out = rows;
    for i in 0..CHROMA {
        out[i] = simd.merge_chroma(rows[i], rows[i + CHROMA]);
    }
    out
}

/// Row `row` of all planes.
#[inline(always)]
pub(super) fn load_row<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &PlanesMut<'_>,
    place: Place,
    row: usize,
) -> S::Lanes {
    let luma = simd.load_samples(at(planes.y, place.y + row * planes.y_stride));
    if SIMPLE {
        return simd.join(luma, simd.splat_sample(0));
    }
    let start = place.uv + row * planes.uv_stride;
    let u = simd.load_eight(at(planes.u, start));
    let v = simd.load_eight(at(planes.v, start));
    simd.join(luma, simd.zip_eights(u, v)[0])
}

/// Undoes [`load_row`], of luma alone below the rows of chroma.
#[inline(always)]
pub(super) fn store_row<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &mut PlanesMut<'_>,
    place: Place,
    row: usize,
    lanes: S::Lanes,
) {
    let [luma, chroma] = simd.split(lanes);
    simd.store_samples(luma, at_mut(planes.y, place.y + row * planes.y_stride));
    if !SIMPLE && row < CHROMA {
        let start = place.uv + row * planes.uv_stride;
        simd.store_eights(chroma, at_mut(planes.u, start), at_mut(planes.v, start));
    }
}

/// The place of the fourth row above.
#[inline(always)]
fn four_rows_above<const SIMPLE: bool>(planes: &PlanesMut<'_>, place: Place) -> Place {
    let uv = if SIMPLE { 0 } else { place.uv - 4 * planes.uv_stride };
    Place { y: place.y - 4 * planes.y_stride, uv }
}

#[inline(always)]
pub(super) fn load_rows_above<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &PlanesMut<'_>,
    place: Place,
) -> [S::Lanes; 4] {
    let place = four_rows_above::<SIMPLE>(planes, place);
    [
        load_row::<S, SIMPLE>(simd, planes, place, 0),
        load_row::<S, SIMPLE>(simd, planes, place, 1),
        load_row::<S, SIMPLE>(simd, planes, place, 2),
        load_row::<S, SIMPLE>(simd, planes, place, 3),
    ]
}

/// All but the first, which no filter changes.
#[inline(always)]
pub(super) fn store_rows_above<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &mut PlanesMut<'_>,
    place: Place,
    lines: [S::Lanes; 4],
) {
    let place = four_rows_above::<SIMPLE>(planes, place);
    store_row::<S, SIMPLE>(simd, planes, place, 1, lines[1]);
    store_row::<S, SIMPLE>(simd, planes, place, 2, lines[2]);
    store_row::<S, SIMPLE>(simd, planes, place, 3, lines[3]);
}

/// Four columns of all rows.
#[inline(always)]
pub(super) fn load_columns<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &PlanesMut<'_>,
    place: Place,
) -> [S::Lanes; 4] {
    let mut fours = [simd.splat_lanes(0); 4];
    for (i, lanes) in fours.iter_mut().enumerate() {
        let luma = load_fours(simd, planes.y, place.y + 4 * i * planes.y_stride, planes.y_stride);
        let stride = planes.uv_stride;
        let chroma = if SIMPLE {
            luma
        } else if i < 2 {
            load_fours(simd, planes.u, place.uv + 4 * i * stride, stride)
        } else {
            load_fours(simd, planes.v, place.uv + 4 * (i - 2) * stride, stride)
        };
        *lanes = simd.turn_lanes(simd.join(luma, chroma));
    }
    turn_fours(simd, fours)
}

/// Four bytes of four rows.
#[inline(always)]
fn load_fours<S: FilterSimd>(simd: S, plane: &[u8], start: usize, stride: usize) -> S::Samples {
    simd.load_fours(
        at(plane, start),
        at(plane, start + stride),
        at(plane, start + 2 * stride),
        at(plane, start + 3 * stride),
    )
}

/// Transposes as if four bytes were one.
#[inline(always)]
fn turn_fours<S: FilterSimd>(simd: S, [a, b, c, d]: [S::Lanes; 4]) -> [S::Lanes; 4] {
    let [ab, ab_last] = simd.zip_lane_fours(a, b);
    let [cd, cd_last] = simd.zip_lane_fours(c, d);
    let [first, second] = simd.zip_lane_eights(ab, cd);
    let [third, fourth] = simd.zip_lane_eights(ab_last, cd_last);
    [first, second, third, fourth]
}

/// Undoes [`load_columns`].
#[inline(always)]
pub(super) fn store_columns<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    planes: &mut PlanesMut<'_>,
    place: Place,
    lines: [S::Lanes; 4],
) {
    for (i, lanes) in turn_fours(simd, lines).into_iter().enumerate() {
        let [luma, chroma] = simd.split(simd.turn_lanes(lanes));
        let stride = planes.y_stride;
        store_fours(simd, luma, planes.y, place.y + 4 * i * stride, stride);
        if !SIMPLE {
            let stride = planes.uv_stride;
            if i < 2 {
                store_fours(simd, chroma, planes.u, place.uv + 4 * i * stride, stride);
            } else {
                store_fours(simd, chroma, planes.v, place.uv + 4 * (i - 2) * stride, stride);
            }
        }
    }
}

#[inline(always)]
fn store_fours<S: FilterSimd>(
    simd: S,
    samples: S::Samples,
    plane: &mut [u8],
    start: usize,
    stride: usize,
) {
    let mut bytes = [0; 16];
    simd.store_samples(samples, &mut bytes);
    for (i, bytes) in bytes.as_chunks::<4>().0.iter().enumerate() {
        *at_mut(plane, start + i * stride) = *bytes;
    }
}
