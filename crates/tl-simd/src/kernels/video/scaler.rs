//! FFmpeg's scaler, by which it makes RGB of what its fast conversion does not take: more than 8
//! bits, 4:4:4, and odd heights.
//!
//! It interpolates chroma between rows, and between columns where the width is odd, by weights that
//! follow from the size of the picture. All of it is integers, the same at every level and on every
//! machine.

use super::Matrix;
use super::taps::Taps;
use crate::vector::RGB;
use std::ops::Range;

/// A sample of 8 bits, or of two bytes, the low one first.
pub trait Sample: Copy {
    /// Its value.
    fn value(self) -> i32;
}

impl Sample for u8 {
    fn value(self) -> i32 {
        self.into()
    }
}

impl Sample for [u8; 2] {
    fn value(self) -> i32 {
        u16::from_le_bytes(self).into()
    }
}

/// The conversion of a picture, row by row.
#[derive(Clone, Debug)]
pub struct Scaler {
    factors: Factors,
    bits: u32,
    /// Whether each pixel has chroma of its own, not each pair.
    is_full: bool,
    columns: Taps,
    rows: Taps,
}

/// The weights of a row's chroma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blend {
    /// Two rows of chroma.
    pub rows: [usize; 2],
    /// The weight of the second, of [`ONE_ROW`].
    weight: i32,
}

/// The weight of a whole row.
const ONE_ROW: i32 = 1 << 12;
/// The weight of a whole column.
const ONE_COLUMN: i32 = 1 << 14;
/// Between the passes samples have 15 bits.
const MOST: i32 = (1 << 15) - 1;

#[derive(Clone, Copy, Debug)]
struct Factors {
    y: i32,
    v_to_r: i32,
    u_to_b: i32,
    u_to_g: i32,
    v_to_g: i32,
    /// The factors of chroma over that of luma: V to red, U to blue, U to green, V to green.
    of_luma: [i64; 4],
    is_full_range: bool,
}

impl Scaler {
    /// The conversion of pictures of `size`, width and height, whose chroma is halved as often as
    /// `shift` says.
    ///
    /// # Panics
    ///
    /// With other than 8 to 12 bits, or without pixels.
    #[must_use]
    pub fn new(
        matrix: Matrix,
        is_full_range: bool,
        bits: u8,
        size: [u32; 2],
        shift: [u32; 2],
    ) -> Self {
        assert!((8..=12).contains(&bits), "8 to 12 bits");
        assert!(size.iter().all(|&length| length > 0), "a picture has pixels");
        let [width, height] = size;
        let is_full = width % 2 == 1 || shift == [0, 0];
        let chroma = [width.div_ceil(1 << shift[0]), height.div_ceil(1 << shift[1])];
        let of_columns = if is_full { width } else { chroma[0] };
        let columns = Taps::bilinear(chroma[0], of_columns, ONE_COLUMN);
        let rows = Taps::bilinear(chroma[1], height, ONE_ROW);
        let factors = Factors::new(matrix, is_full_range);
        Self { factors, bits: bits.into(), is_full, columns, rows }
    }

    /// The rows of chroma that a row of the picture is made of.
    #[must_use]
    pub fn blend(&self, row: usize) -> Blend {
        let [first, second] = self.rows.pair(row);
        Blend { rows: [first.place, second.place], weight: second.weight }
    }

    /// The columns of scaled chroma for columns of the picture.
    #[must_use]
    pub fn columns(&self, columns: Range<usize>) -> Range<usize> {
        if self.is_full { columns } else { columns.start / 2..columns.end.div_ceil(2) }
    }

    /// Scales a row of chroma: the columns from `start` on, as many as `out` has.
    ///
    /// # Panics
    ///
    /// If the row is shorter than the picture's, or has fewer columns.
    pub fn scale_chroma<T: Sample>(&self, row: &[T], start: usize, out: &mut [i32]) {
        for (column, out) in (start..).zip(out) {
            let sum = self.columns.sum(column, |place| row[place].value());
            *out = self.to_15_bits(sum);
        }
    }

    /// Converts the pixels from column `start` on, of luma and of the two rows of chroma that
    /// [`Scaler::blend`] names, scaled from the column on that [`Scaler::columns`] begins with.
    ///
    /// # Panics
    ///
    /// If `out` is not three times as long as `luma`, or the rows of chroma are too short.
    pub fn convert<T: Sample>(
        &self,
        blend: Blend,
        luma: &[T],
        chroma: [[&[i32]; 2]; 2],
        start: usize,
        out: &mut [u8],
    ) {
        assert_eq!(luma.len() * RGB, out.len(), "three bytes a pixel");
        let [u, v] = chroma;
        for (column, (luma, out)) in luma.iter().zip(out.as_chunks_mut::<RGB>().0).enumerate() {
            let y = self.to_15_bits(luma.value() * ONE_COLUMN);
            let at = if self.is_full { column } else { (start % 2 + column) / 2 };
            let [u, v] = [u, v].map(|[first, second]| {
                first[at] * (ONE_ROW - blend.weight) + second[at] * blend.weight
            });
            *out = if self.is_full {
                self.factors.product(y, u, v)
            } else {
                // Rounded to bytes, as tables take them.
                self.factors.table((y + 64) >> 7, (u + (1 << 18)) >> 19, (v + (1 << 18)) >> 19)
            };
        }
    }

    fn to_15_bits(&self, sum: i32) -> i32 {
        (sum >> (if self.bits == 8 { 7 } else { self.bits - 1 })).min(MOST)
    }
}

impl Factors {
    #[expect(clippy::cast_possible_truncation, reason = "every factor is below four")]
    fn new(matrix: Matrix, is_full_range: bool) -> Self {
        let y = if is_full_range { 1 << 16 } else { (1 << 16) * 255 / 219 };
        let [v_to_r, u_to_b, u_to_g, v_to_g] = matrix
            .factors()
            .map(|factor| (if is_full_range { factor * 224 / 255 } else { factor }) as i32);
        let of_luma = [v_to_r, u_to_b, u_to_g, v_to_g]
            .map(|factor| ((i64::from(factor) << 16) + (1 << 15)) / i64::from(y));
        Self { y, v_to_r, u_to_b, u_to_g, v_to_g, of_luma, is_full_range }
    }

    /// The pixel as a product of 13 fraction bits, of luma of 15 bits and chroma of 27. Sums that 32
    /// bits do not hold wrap: blue of very bright, very blue pixels is then black.
    fn product(self, y: i32, u: i32, v: i32) -> [u8; RGB] {
        let factor = |factor: i32| (factor + 4) >> 3;
        let black = if self.is_full_range { 0 } else { 1 << 13 };
        let y = (4 * y - black) * factor(self.y) + (1 << 21);
        let [u, v] = [u, v].map(|chroma| (chroma - (128 << 19)) >> 10);
        let [v_to_r, u_to_b] = [v * factor(self.v_to_r), u * factor(self.u_to_b)];
        let [u_to_g, v_to_g] = [u * factor(self.u_to_g), v * factor(self.v_to_g)];
        [
            y.wrapping_add(v_to_r),
            y.wrapping_add(v_to_g).wrapping_add(u_to_g),
            y.wrapping_add(u_to_b),
        ]
        .map(|sum| clip(sum >> 22))
    }

    /// The pixel as in tables of luma, into which chroma is an offset.
    fn table(self, y: i32, u: i32, v: i32) -> [u8; RGB] {
        let first = if self.is_full_range { 384 } else { 326 };
        let black = if self.is_full_range { 0 } else { 16 << 16 };
        let [u, v] = [u, v].map(|chroma| i64::from(chroma.clamp(0, 255)));
        let offset = |chroma: i64, factor: i64| ((chroma * factor) >> 16) - (factor >> 9);
        let [v_to_r, u_to_b, u_to_g, v_to_g] = self.of_luma;
        let level = |offset: i64| {
            let sum = i64::from(self.y) * (i64::from(y + first) + offset);
            clip_wide((sum - (384 << 16) - black + (1 << 15)) >> 16)
        };
        [
            level(offset(v, v_to_r)),
            level(offset(u, u_to_g) + offset(v, v_to_g)),
            level(offset(u, u_to_b)),
        ]
    }
}

#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
fn clip(value: i32) -> u8 {
    value.clamp(0, 255) as u8
}

#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
fn clip_wide(value: i64) -> u8 {
    value.clamp(0, 255) as u8
}
