//! Upsampling of chroma, and conversion to RGB.

use super::{clip, low_byte};
use crate::Level;
use crate::vector::RGB;
use std::ops::Range;

/// The chroma rows of a row of luma, as wide as half the image rounded up.
///
/// The first and the last row of an image can have one on one side only, which then is both.
#[derive(Clone, Copy, Debug)]
pub struct Chroma<'a> {
    /// The row that is nearer.
    pub near: &'a [u8],
    /// The row on the other side.
    pub far: &'a [u8],
}

impl Chroma<'_> {
    /// The chroma of column `x` of the image: three quarters of the nearer sample and one of the
    /// next, in both directions.
    fn at(self, x: usize) -> u8 {
        let near = x / 2;
        let far = if x.is_multiple_of(2) { near.saturating_sub(1) } else { near + 1 };
        let far = far.min(self.near.len() - 1);
        let column = |i: usize| 3 * u32::from(self.near[i]) + u32::from(self.far[i]);
        low_byte((3 * column(near) + column(far) + 8) >> 4)
    }
}

/// The RGB pixels of the given columns of a row, with libwebp's fancy upsampling.
///
/// Chroma rows are taken to end at the edges of the image. Where they do not, the columns must
/// stay clear of the first and the last sample of chroma.
///
/// # Panics
///
/// When `luma` or the chroma rows are too short, chroma rows differ in length, or `out` has not
/// three bytes per column.
pub fn upsample_rgb(
    level: Level,
    luma: &[u8],
    u: Chroma<'_>,
    v: Chroma<'_>,
    columns: Range<usize>,
    out: &mut [u8],
) {
    let len = u.near.len();
    assert!([u.far, v.near, v.far].iter().all(|row| row.len() == len), "chroma rows of one length");
    assert!(columns.end <= luma.len() && columns.end <= 2 * len, "columns of the row");
    assert_eq!(columns.len() * RGB, out.len(), "three bytes per column");
    let _ = level;
    for (x, pixel) in columns.zip(out.as_chunks_mut::<RGB>().0) {
        *pixel = convert(luma[x], u.at(x), v.at(x));
    }
}

/// Fraction bits of the sums.
const BITS: u32 = 6;

/// BT.601 of limited range.
fn convert(y: u8, u: u8, v: u8) -> [u8; RGB] {
    let scaled = |sample: u8, factor: i32| (i32::from(sample) * factor) >> 8;
    let y = scaled(y, 19_077);
    [
        y + scaled(v, 26_149) - 14_234,
        y - scaled(u, 6_419) - scaled(v, 13_320) + 8_708,
        y + scaled(u, 33_050) - 17_685,
    ]
    .map(|sum| clip(sum >> BITS))
}
