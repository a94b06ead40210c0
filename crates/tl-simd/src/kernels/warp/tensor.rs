//! torch's bilinear `grid_sample` of 8-bit pixels, and what torchvision does around it.

use super::cells::{Rows, Source, sample};
use super::grid::Coordinates;
use super::{GridWarp, PIECE};
use crate::vector::gather::GatherSimd;

/// Makes every row of a bilinear warp.
#[inline(always)]
pub(super) fn bilinear<G: GatherSimd, const C: usize>(
    gather: G,
    source: Source<'_>,
    warp: &GridWarp<'_>,
    fill: Option<[f32; C]>,
    mut rows: Rows<'_, C>,
) {
    let grid = warp.grid.prepare((source.width, source.height), warp.size);
    for y in 0..rows.height() {
        for x in (0..rows.width).step_by(PIECE) {
            let places = places(&grid.coordinates(x, y), source);
            let cells = Cells::of(&places, source);
            blend(gather, source, &cells, fill, x, &mut rows);
        }
        rows.finish(y);
    }
}

/// torch's coordinates in pixels, the centre of the first at 0: `(x + 1) * size / 2 - 0.5`, fused.
#[inline(always)]
pub(super) fn places(coordinates: &Coordinates, source: Source<'_>) -> Coordinates {
    let half_width = half(source.width);
    let half_height = half(source.height);
    let mut places = Coordinates { x: [0.0; PIECE], y: [0.0; PIECE] };
    for lane in 0..PIECE {
        places.x[lane] = (coordinates.x[lane] + 1.0).mul_add(half_width, -0.5);
        places.y[lane] = (coordinates.y[lane] + 1.0).mul_add(half_height, -0.5);
    }
    places
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "torch counts pixels in f32")]
const fn half(count: u32) -> f32 {
    count as f32 / 2.0
}

/// The pixels that contribute to those of a piece, and their weights; pixels outside the source
/// have none.
struct Cells {
    column: [u32; PIECE],
    lines: [[u32; PIECE]; 2],
    /// The weights of the left and the right pixel of the upper line, then of the lower one.
    weights: [[f32; PIECE]; 4],
}

impl Cells {
    #[inline(always)]
    fn of(places: &Coordinates, source: Source<'_>) -> Self {
        let mut cells =
            Self { column: [0; PIECE], lines: [[0; PIECE]; 2], weights: [[0.0; PIECE]; 4] };
        let right = source.width - 1;
        let bottom = source.height - 1;
        let pair = right.saturating_sub(1);
        let last_x = edge(right);
        let last_y = edge(bottom);
        let last_pair = edge(pair);
        for lane in 0..PIECE {
            let whole = places.x[lane].floor();
            let second = places.x[lane] - whole;
            let first = 1.0 - second;
            // The pair of columns that is read begins one further right at the left edge, and one
            // further left at the right edge: the weight goes with the pixel.
            let shifted_right = whole == -1.0;
            let shifted_left = (whole == last_x) & (last_x > 0.0);
            let within = (whole >= 0.0) & (whole <= last_x);
            let left = if shifted_right { second } else { first };
            let left = if (within & !shifted_left) | shifted_right { left } else { 0.0 };
            let right = if shifted_left { first } else { second };
            let right = if within & (last_x > 0.0) { right } else { 0.0 };
            cells.column[lane] = index(whole, last_pair, pair);

            let whole = places.y[lane].floor();
            let lower = places.y[lane] - whole;
            let upper = 1.0 - lower;
            let upper = if (whole >= 0.0) & (whole <= last_y) { upper } else { 0.0 };
            let lower = if (whole >= -1.0) & (whole < last_y) { lower } else { 0.0 };
            cells.lines[0][lane] = index(whole, last_y, bottom);
            cells.lines[1][lane] = index(whole + 1.0, last_y, bottom);
            cells.weights[0][lane] = left * upper;
            cells.weights[1][lane] = right * upper;
            cells.weights[2][lane] = left * lower;
            cells.weights[3][lane] = right * lower;
        }
        cells
    }
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "compared with f32 places")]
pub(super) const fn edge(last: u32) -> f32 {
    last as f32
}

/// A number from 0 to 2^23 added to this one is rounded, half to even, into the low bits.
const WHOLE: f32 = 8_388_608.0;

/// A whole number as an index from 0 to `last`, which is `edge`; 0 for NaN.
#[inline(always)]
pub(super) fn index(whole: f32, edge: f32, last: u32) -> u32 {
    let whole = if whole > 0.0 { whole } else { 0.0 };
    let whole = if whole > edge { edge } else { whole };
    ((whole + WHOLE).to_bits() ^ WHOLE.to_bits()).min(last)
}

#[inline(always)]
fn blend<G: GatherSimd, const C: usize>(
    gather: G,
    source: Source<'_>,
    cells: &Cells,
    fill: Option<[f32; C]>,
    x: u32,
    rows: &mut Rows<'_, C>,
) {
    let mut pairs = [[[0; PIECE]; 2]; 2];
    for (pairs, line) in pairs.iter_mut().zip(&cells.lines) {
        source.pairs::<G, C>(gather, &cells.column, line, pairs);
    }
    let words = pairs.as_flattened();
    let mut covered = [0.0; PIECE];
    for lane in 0..PIECE {
        let [first, rest @ ..] = cells.weights.each_ref();
        covered[lane] = rest.iter().fold(
            first[lane],
            #[inline(always)]
            |sum, weights| sum + weights[lane],
        );
    }
    for channel in 0..C {
        let out = rows.piece(channel, x);
        for lane in 0..PIECE {
            let mut sum = 0.0;
            for (words, weights) in words.iter().zip(&cells.weights) {
                sum = real(sample(words[lane], channel)).mul_add(weights[lane], sum);
            }
            if let Some(fill) = fill {
                sum = (sum - fill[channel]) * covered[lane] + fill[channel];
            }
            out[lane] = round(sum);
        }
    }
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a byte")]
const fn real(sample: i32) -> f32 {
    sample as f32
}

/// To the nearest whole number, half to even.
#[inline(always)]
pub(super) fn round(value: f32) -> u8 {
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value > 255.0 { 255.0 } else { value };
    (value + WHOLE).to_bits().to_le_bytes()[0]
}
