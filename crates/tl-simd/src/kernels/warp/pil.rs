//! Pillow's bilinear and bicubic transforms: sums in double precision, then truncated.

use super::cells::{Rows, Source, sample};
use super::map::Places;
use super::{Filter, PIECE, Warp};
use crate::vector::gather::GatherSimd;

/// A whole number added to this one is the low bits of the sum.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// Makes every row of a warp that is not [`Filter::Nearest`].
#[inline(always)]
pub(super) fn smooth<G: GatherSimd, const C: usize>(
    gather: G,
    source: Source<'_>,
    warp: &Warp,
    fill: [u8; C],
    mut rows: Rows<'_, C>,
) {
    for y in 0..rows.height() {
        for x in (0..rows.width).step_by(PIECE) {
            let places = warp.map.places(x, y);
            let piece = Piece { source, inside: Inside::of(&places, source), places, fill, x };
            if !piece.inside.0.iter().any(|&inside| inside) {
                for (channel, &fill) in fill.iter().enumerate() {
                    *rows.piece(channel, x) = [fill; PIECE];
                }
            } else if warp.filter == Filter::Bicubic {
                piece.bicubic(gather, &mut rows);
            } else {
                piece.bilinear(gather, &mut rows);
            }
        }
        rows.finish(y);
    }
}

/// A piece in the making.
struct Piece<'a, const C: usize> {
    source: Source<'a>,
    places: Places,
    inside: Inside,
    fill: [u8; C],
    /// The column it begins at.
    x: u32,
}

/// The places that lie in the source or are not numbers: Pillow fills the others.
pub(super) struct Inside(pub(super) [bool; PIECE]);

impl Inside {
    #[inline(always)]
    pub(super) fn of(places: &Places, source: Source<'_>) -> Self {
        let width = f64::from(source.width);
        let height = f64::from(source.height);
        let mut inside = [false; PIECE];
        for ((inside, &x), &y) in inside.iter_mut().zip(&places.x).zip(&places.y) {
            // Not the negation of each: a perspective's 0/0 is inside, and gives black.
            *inside = !((x < 0.0) | (x >= width) | (y < 0.0) | (y >= height));
        }
        Self(inside)
    }
}

/// `value`, or the nearest of 0 and `last`; NaN stays NaN.
#[inline(always)]
fn limit(value: f64, last: f64) -> f64 {
    let value = if value < 0.0 { 0.0 } else { value };
    if value > last { last } else { value }
}

/// A whole number as an index up to `last`.
#[inline(always)]
fn index(whole: f64, last: u32) -> u32 {
    low_word(whole).min(last)
}

/// The low bits of a whole number from 0 on; 0 for NaN.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
fn low_word(whole: f64) -> u32 {
    (whole + WHOLE).to_bits() as u32
}

/// A value within 0..=255 without its fraction.
#[inline(always)]
fn truncate(value: f64) -> u8 {
    low_word(value.floor()).to_le_bytes()[0]
}

/// The pixels around the places of a piece that `T` columns and rows are interpolated between, one
/// before a place where there are four.
pub(super) struct Taps<const T: usize> {
    pub(super) columns: [[u32; PIECE]; T],
    pub(super) lines: [[u32; PIECE]; T],
    /// The distances from the pixel at or before a place.
    pub(super) across: [f64; PIECE],
    pub(super) down: [f64; PIECE],
}

impl<const T: usize> Taps<T> {
    #[inline(always)]
    pub(super) fn of(places: &Places, source: Source<'_>) -> Self {
        let right = source.width - 1;
        let bottom = source.height - 1;
        let last_x = f64::from(right);
        let last_y = f64::from(bottom);
        let mut taps = Self {
            columns: [[0; PIECE]; T],
            lines: [[0; PIECE]; T],
            across: [0.0; PIECE],
            down: [0.0; PIECE],
        };
        for lane in 0..PIECE {
            let place_x = places.x[lane] - 0.5;
            let place_y = places.y[lane] - 0.5;
            let whole_x = place_x.floor();
            let whole_y = place_y.floor();
            taps.across[lane] = place_x - whole_x;
            taps.down[lane] = place_y - whole_y;
            let mut offset = if T > 2 { -1.0 } else { 0.0 };
            for (columns, lines) in taps.columns.iter_mut().zip(&mut taps.lines) {
                columns[lane] = index(limit(whole_x + offset, last_x), right);
                lines[lane] = index(limit(whole_y + offset, last_y), bottom);
                offset += 1.0;
            }
        }
        taps
    }
}

impl<const C: usize> Piece<'_, C> {
    #[inline(always)]
    fn bilinear<G: GatherSimd>(&self, gather: G, rows: &mut Rows<'_, C>) {
        let right = self.source.width - 1;
        let bottom = self.source.height - 1;
        let last_x = f64::from(right);
        let last_y = f64::from(bottom);
        // The last pair of columns; at the right edge the second one has all the weight.
        let pair = right.saturating_sub(1);
        let last_pair = f64::from(pair);
        let mut columns = [0; PIECE];
        let mut lines = [[0; PIECE]; 2];
        let mut across = [0.0; PIECE];
        let mut down = [0.0; PIECE];
        for lane in 0..PIECE {
            let place = limit(self.places.x[lane] - 0.5, last_x);
            let whole = place.floor();
            let first = if whole > last_pair { last_pair } else { whole };
            columns[lane] = index(first, pair);
            across[lane] = place - first;
            let place = self.places.y[lane] - 0.5;
            let whole = place.floor();
            down[lane] = place - whole;
            lines[0][lane] = index(limit(whole, last_y), bottom);
            lines[1][lane] = index(limit(whole + 1.0, last_y), bottom);
        }
        let mut pairs = [[[0; PIECE]; 2]; 2];
        for (pairs, line) in pairs.iter_mut().zip(&lines) {
            self.source.pairs::<G, C>(gather, &columns, line, pairs);
        }
        for (channel, &fill) in self.fill.iter().enumerate() {
            let out = rows.piece(channel, self.x);
            for lane in 0..PIECE {
                let line = pairs.each_ref().map(
                    #[inline(always)]
                    |[left, right]| {
                        let left = f64::from(sample(left[lane], channel));
                        let right = f64::from(sample(right[lane], channel));
                        left + (right - left) * across[lane]
                    },
                );
                let value = line[0] + (line[1] - line[0]) * down[lane];
                out[lane] = if self.inside.0[lane] { truncate(value) } else { fill };
            }
        }
    }

    #[inline(always)]
    fn bicubic<G: GatherSimd>(&self, gather: G, rows: &mut Rows<'_, C>) {
        let Taps { columns, lines, across, down } = Taps::<4>::of(&self.places, self.source);
        let mut words = [[[0; PIECE]; 4]; 4];
        for (words, line) in words.iter_mut().zip(&lines) {
            for (words, columns) in words.iter_mut().zip(&columns) {
                self.source.words::<G, C>(gather, columns, line, words);
            }
        }
        for (channel, &fill) in self.fill.iter().enumerate() {
            let out = rows.piece(channel, self.x);
            for lane in 0..PIECE {
                let mut line = [0.0; 4];
                for (line, words) in line.iter_mut().zip(&words) {
                    let mut taps = [0.0; 4];
                    for (tap, word) in taps.iter_mut().zip(words) {
                        *tap = f64::from(sample(word[lane], channel));
                    }
                    *line = cubic(taps, across[lane]);
                }
                let value = truncate(limit(cubic(line, down[lane]), 255.0));
                out[lane] = if self.inside.0[lane] { value } else { fill };
            }
        }
    }
}

/// Pillow's cubic through four values, `d` after the second, with its order of operations.
#[inline(always)]
pub(super) fn cubic([v1, v2, v3, v4]: [f64; 4], d: f64) -> f64 {
    let p2 = -v1 + v3;
    let p3 = 2.0 * (v1 - v2) + v3 - v4;
    let p4 = -v1 + v2 - v3 + v4;
    v2 + d * (p2 + d * (p3 + d * p4))
}
