//! Samples of a macroblock to vectors and back: luma in the first half of each, chroma in the
//! second. The simple filter leaves chroma out.

use crate::kernels::vp8::{CHROMA, LUMA, PlanesMut};
use crate::vector::tile::Tile;
use crate::vector::vp8::FilterSimd;

/// A macroblock in its planes.
#[derive(Debug)]
pub(super) struct Tiles<'a> {
    y: Tile<'a, LUMA>,
    u: Tile<'a, CHROMA>,
    v: Tile<'a, CHROMA>,
}

impl<'a> Tiles<'a> {
    #[inline(always)]
    pub(super) fn new(planes: &'a mut PlanesMut<'_>, row: usize, column: usize) -> Self {
        Self {
            y: Tile::new(planes.y, planes.y_stride, row, column),
            u: Tile::new(planes.u, planes.uv_stride, row, column),
            v: Tile::new(planes.v, planes.uv_stride, row, column),
        }
    }
}

/// The rows of luma, next to those of U and then of V.
#[inline(always)]
pub(super) fn load_rows<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    tiles: &Tiles<'_>,
) -> [S::Lanes; LUMA] {
    let mut rows = [simd.splat_lanes(0); LUMA];
    for i in 0..CHROMA {
        let zero = simd.splat_sample(0);
        let u = if SIMPLE { zero } else { simd.load_eight(tiles.u.row(i)) };
        let v = if SIMPLE { zero } else { simd.load_eight(tiles.v.row(i)) };
        rows[i] = simd.join(simd.load_samples(tiles.y.row(i)), u);
        rows[i + CHROMA] = simd.join(simd.load_samples(tiles.y.row(i + CHROMA)), v);
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

/// Stores the rows of luma, and of chroma in the first eight.
#[inline(always)]
pub(super) fn store_rows<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
    rows: [S::Lanes; LUMA],
) {
    for i in 0..CHROMA {
        let [luma, chroma] = simd.split(rows[i]);
        simd.store_samples(luma, tiles.y.row_mut(i));
        simd.store_samples(simd.split(rows[i + CHROMA])[0], tiles.y.row_mut(i + CHROMA));
        if !SIMPLE {
            simd.store_first(chroma, tiles.u.row_mut(i));
            simd.store_second(chroma, tiles.v.row_mut(i));
        }
    }
}

/// The first four rows of all planes.
#[inline(always)]
pub(super) fn load_first_rows<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    tiles: &Tiles<'_>,
) -> [S::Lanes; 4] {
    let mut rows = [simd.splat_lanes(0); 4];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = join::<S, SIMPLE>(simd, tiles.y.row(i), tiles.u.row(i), tiles.v.row(i));
    }
    rows
}

/// Stores three of them; no filter changes the fourth.
#[inline(always)]
pub(super) fn store_first_rows<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
    [first, second, third, _]: [S::Lanes; 4],
) {
    for (i, row) in [first, second, third].into_iter().enumerate() {
        let [luma, chroma] = simd.split(row);
        simd.store_samples(luma, tiles.y.row_mut(i));
        if !SIMPLE {
            simd.store_first(chroma, tiles.u.row_mut(i));
            simd.store_second(chroma, tiles.v.row_mut(i));
        }
    }
}

/// The four rows above, of all planes.
#[inline(always)]
pub(super) fn load_above<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
) -> [S::Lanes; 4] {
    let mut rows = [simd.splat_lanes(0); 4];
    for (i, row) in rows.iter_mut().enumerate() {
        let Tiles { y, u, v } = tiles;
        *row = join::<S, SIMPLE>(simd, y.above_mut(i), u.above_mut(i), v.above_mut(i));
    }
    rows
}

/// Stores three of them; no filter changes the first.
#[inline(always)]
pub(super) fn store_above<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
    [_, second, third, fourth]: [S::Lanes; 4],
) {
    for (i, row) in [second, third, fourth].into_iter().enumerate() {
        let [luma, chroma] = simd.split(row);
        simd.store_samples(luma, tiles.y.above_mut(i + 1));
        if !SIMPLE {
            simd.store_first(chroma, tiles.u.above_mut(i + 1));
            simd.store_second(chroma, tiles.v.above_mut(i + 1));
        }
    }
}

/// A row of luma, and those of U and V next to each other.
#[inline(always)]
fn join<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    y: &[u8; LUMA],
    u: &[u8; CHROMA],
    v: &[u8; CHROMA],
) -> S::Lanes {
    let luma = simd.load_samples(y);
    if SIMPLE {
        return simd.join(luma, simd.splat_sample(0));
    }
    let [chroma, _] = simd.zip_eights(simd.load_eight(u), simd.load_eight(v));
    simd.join(luma, chroma)
}

/// Four columns of all rows: those to the left, or the first ones.
#[inline(always)]
pub(super) fn load_columns<S: FilterSimd, const SIMPLE: bool, const LEFT: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
) -> [S::Lanes; 4] {
    let mut lanes = [simd.splat_lanes(0); 4];
    for (i, lanes) in lanes.iter_mut().enumerate() {
        let luma = simd.load_fours(fours_at::<LUMA, LEFT>(&mut tiles.y, 4 * i));
        let chroma = if SIMPLE {
            simd.splat_sample(0)
        } else if i < 2 {
            simd.load_fours(fours_at::<CHROMA, LEFT>(&mut tiles.u, 4 * i))
        } else {
            simd.load_fours(fours_at::<CHROMA, LEFT>(&mut tiles.v, 4 * i - CHROMA))
        };
        *lanes = simd.turn_lanes(simd.join(luma, chroma));
    }
    turn_fours(simd, lanes)
}

/// Four bytes of four rows.
#[inline(always)]
fn fours_at<const SIDE: usize, const LEFT: bool>(
    tile: &mut Tile<'_, SIDE>,
    row: usize,
) -> [[u8; 4]; 4] {
    [
        *four_at::<SIDE, LEFT>(tile, row),
        *four_at::<SIDE, LEFT>(tile, row + 1),
        *four_at::<SIDE, LEFT>(tile, row + 2),
        *four_at::<SIDE, LEFT>(tile, row + 3),
    ]
}

#[inline(always)]
fn four_at<'a, const SIDE: usize, const LEFT: bool>(
    tile: &'a mut Tile<'_, SIDE>,
    row: usize,
) -> &'a mut [u8; 4] {
    if LEFT { tile.left_mut(row) } else { tile.start_mut(row) }
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
pub(super) fn store_columns<S: FilterSimd, const SIMPLE: bool, const LEFT: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
    lines: [S::Lanes; 4],
) {
    for (i, lanes) in turn_fours(simd, lines).into_iter().enumerate() {
        let [luma, chroma] = simd.split(simd.turn_lanes(lanes));
        store_fours::<S, LUMA, LEFT>(simd, luma, &mut tiles.y, 4 * i);
        if !SIMPLE && i < 2 {
            store_fours::<S, CHROMA, LEFT>(simd, chroma, &mut tiles.u, 4 * i);
        } else if !SIMPLE {
            store_fours::<S, CHROMA, LEFT>(simd, chroma, &mut tiles.v, 4 * i - CHROMA);
        }
    }
}

#[inline(always)]
fn store_fours<S: FilterSimd, const SIDE: usize, const LEFT: bool>(
    simd: S,
    samples: S::Samples,
    tile: &mut Tile<'_, SIDE>,
    row: usize,
) {
    let mut bytes = [0; 16];
    simd.store_samples(samples, &mut bytes);
    for (i, bytes) in bytes.as_chunks().0.iter().enumerate() {
        *four_at::<SIDE, LEFT>(tile, row + i) = *bytes;
    }
}
