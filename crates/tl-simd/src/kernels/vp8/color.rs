//! Upsampling of chroma, and conversion to RGB.

use super::{clip, low_byte};
use crate::Level;
use crate::vector::vp8::Vp8Simd;
use crate::vector::{RGB, dispatch};
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
/// If `luma` or the chroma rows are too short, chroma rows differ in length, or `out` has not
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
    dispatch!(
        level,
        scalar => define(luma, u, v, columns, out),
        simd => run(simd, luma, u, v, columns, out),
    );
}

fn define(luma: &[u8], u: Chroma<'_>, v: Chroma<'_>, columns: Range<usize>, out: &mut [u8]) {
    for (x, pixel) in columns.zip(out.as_chunks_mut::<RGB>().0) {
        *pixel = convert(luma[x], u.at(x), v.at(x));
    }
}

/// Columns whose chroma is summed up before they are converted.
const CHUNK: usize = 256;

/// The widest vectors' samples.
const WIDEST: usize = 64;

/// Pairs of columns through vectors, of which the last overlap; odd ends by the definition.
#[inline(always)]
fn run<S: Vp8Simd>(
    simd: S,
    luma: &[u8],
    u: Chroma<'_>,
    v: Chroma<'_>,
    columns: Range<usize>,
    out: &mut [u8],
) {
    let Range { mut start, end } = columns;
    let mut rest = out;
    if !start.is_multiple_of(2) && start < end {
        let (pixel, others) = rest.split_at_mut(RGB);
        define(luma, u, v, start..start + 1, pixel);
        start += 1;
        rest = others;
    }
    while start < end {
        let len = (end - start).min(CHUNK);
        let (pixels, others) = rest.split_at_mut(len * RGB);
        let u_sums = sums(u, start / 2, len.div_ceil(2));
        let v_sums = sums(v, start / 2, len.div_ceil(2));
        convert_chunk(simd, &luma[start..][..len], &u_sums, &v_sums, pixels);
        start += len;
        rest = others;
    }
}

/// Sums of the rows, three of the near one and one of the far one, from the sample before `first`
/// to the one after `len` samples.
#[inline(always)]
fn sums(chroma: Chroma<'_>, first: usize, len: usize) -> [u16; SUMS] {
    let mut sums = [0; SUMS];
    let sum = |near: u8, far: u8| 3 * u16::from(near) + u16::from(far);
    let before = first.saturating_sub(1);
    sums[0] = sum(chroma.near[before], chroma.far[before]);
    let near = &chroma.near[first..][..len];
    let far = &chroma.far[first..][..len];
    for ((out, &near), &far) in sums[1..].iter_mut().zip(near).zip(far) {
        *out = sum(near, far);
    }
    let after = (first + len).min(chroma.near.len() - 1);
    sums[len + 1] = sum(chroma.near[after], chroma.far[after]);
    sums
}

/// Those of a chunk, the neighbours, and what short rows read beyond.
const SUMS: usize = CHUNK / 2 + 2 + WIDEST / 2;

/// A row that begins with a whole pair.
#[inline(always)]
fn convert_chunk<S: Vp8Simd>(
    simd: S,
    luma: &[u8],
    u: &[u16; SUMS],
    v: &[u16; SUMS],
    out: &mut [u8],
) {
    let len = luma.len();
    if len >= S::PIXELS && len.is_multiple_of(2) {
        for start in (0..len).step_by(S::PIXELS) {
            let start = start.min(len - S::PIXELS);
            let pixels = &mut out[start * RGB..][..S::PIXELS * RGB];
            convert_vectors(simd, &luma[start..][..S::PIXELS], u, v, start / 2, pixels);
        }
        return;
    }
    for start in (0..len).step_by(S::PIXELS) {
        let count = (len - start).min(S::PIXELS);
        let mut samples = [0; WIDEST];
        let mut pixels = [0; WIDEST * RGB];
        samples[..count].copy_from_slice(&luma[start..][..count]);
        let samples = &samples[..S::PIXELS];
        convert_vectors(simd, samples, u, v, start / 2, &mut pixels[..S::PIXELS * RGB]);
        out[start * RGB..][..count * RGB].copy_from_slice(&pixels[..count * RGB]);
    }
}

#[inline(always)]
fn convert_vectors<S: Vp8Simd>(
    simd: S,
    luma: &[u8],
    u: &[u16; SUMS],
    v: &[u16; SUMS],
    start: usize,
    out: &mut [u8],
) {
    let [y_even, y_odd] = simd.shift_up(simd.load_bytes(luma));
    let [u_even, u_odd] = upsample(simd, u, start);
    let [v_even, v_odd] = upsample(simd, v, start);
    let [red, green, blue] = convert_words(simd, y_even, u_even, v_even);
    let [red_odd, green_odd, blue_odd] = convert_words(simd, y_odd, u_odd, v_odd);
    let red = simd.pack_64ths(red, red_odd);
    let green = simd.pack_64ths(green, green_odd);
    let blue = simd.pack_64ths(blue, blue_odd);
    simd.interleave([red, green, blue], out);
}

/// 256 times the chroma of even and of odd columns.
#[inline(always)]
fn upsample<S: Vp8Simd>(simd: S, sums: &[u16; SUMS], start: usize) -> [S::Words; 2] {
    let before = simd.load_sums(&sums[start..][..S::WORDS]);
    let near = simd.load_sums(&sums[start + 1..][..S::WORDS]);
    let after = simd.load_sums(&sums[start + 2..][..S::WORDS]);
    let three = simd.add(simd.add(near, near), simd.add(near, simd.splat_word(8)));
    [simd.floor(simd.add(three, before)), simd.floor(simd.add(three, after))]
}

/// The colours in 64ths, of samples times 256.
#[inline(always)]
fn convert_words<S: Vp8Simd>(simd: S, y: S::Words, u: S::Words, v: S::Words) -> [S::Words; RGB] {
    let y = simd.high_unsigned(y, Y_TO_ALL);
    let red = simd.add(y, simd.high_unsigned(v, V_TO_R));
    let green = simd.add(y, simd.splat_word(GREEN.cast_signed()));
    let chroma = simd.add(simd.high_unsigned(u, U_TO_G), simd.high_unsigned(v, V_TO_G));
    let blue = simd.add(y, simd.high_unsigned(u, U_TO_B));
    [
        simd.sub_to_zero(red, simd.splat_word(RED.cast_signed())),
        simd.sub_to_zero(green, chroma),
        simd.sub_to_zero(blue, simd.splat_word(BLUE.cast_signed())),
    ]
}

/// The colours in 64ths, each rounded down.
const Y_TO_ALL: u16 = 19_077;
const V_TO_R: u16 = 26_149;
const U_TO_G: u16 = 6_419;
const V_TO_G: u16 = 13_320;
const U_TO_B: u16 = 33_050;
const RED: u16 = 14_234;
const GREEN: u16 = 8_708;
const BLUE: u16 = 17_685;

/// Fraction bits of the sums.
const BITS: u32 = 6;

/// BT.601 of limited range.
fn convert(y: u8, u: u8, v: u8) -> [u8; RGB] {
    let scaled = |sample: u8, factor: u16| (i32::from(sample) * i32::from(factor)) >> 8;
    let y = scaled(y, Y_TO_ALL);
    [
        y + scaled(v, V_TO_R) - i32::from(RED),
        y - scaled(u, U_TO_G) - scaled(v, V_TO_G) + i32::from(GREEN),
        y + scaled(u, U_TO_B) - i32::from(BLUE),
    ]
    .map(|sum| clip(sum >> BITS))
}
