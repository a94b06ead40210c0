//! Sharpness: mixtures of an image with its smoothed copy.

use super::Arithmetic;
use super::blend::{Blend, FusedBlend, Mix, clip, to_f32};
use super::blocks::{BLOCK, Plane};
use crate::Level;
use crate::vector::color::ColorSimd;
use crate::vector::{RGB, dispatch};

/// Moves every pixel by `factor` from the mean of its neighbourhood, in which it counts five times
/// and its eight neighbours once: `ImageEnhance.Sharpness` of Pillow, or `adjust_sharpness` of
/// torchvision on tensors. The border of one pixel stays, and with it images of fewer than three
/// rows or columns.
///
/// `rows` is memory for two rows, whose content does not matter.
///
/// # Panics
///
/// When `pixels` is not whole rows of `width` RGB pixels, or `rows` is shorter than two of them.
pub fn sharpen(
    level: Level,
    arithmetic: Arithmetic,
    factor: f64,
    width: usize,
    pixels: &mut [u8],
    rows: &mut [u8],
) {
    let line = width * RGB;
    assert!(line > 0 && pixels.len().is_multiple_of(line), "whole rows of {width} pixels");
    if width < 3 || pixels.len() < 3 * line {
        return;
    }
    let rows = &mut rows[..2 * line];
    rows[..line].copy_from_slice(&pixels[..line]);
    match arithmetic {
        Arithmetic::Pillow => {
            walk(level, &FromSmooth(Blend(to_f32(factor))), line, pixels, rows);
        }
        Arithmetic::Torch => {
            walk(level, &ToSmooth(FusedBlend(to_f32(1.0 - factor))), line, pixels, rows);
        }
    }
}

/// A mixture of a sample with its smoothed neighbourhood.
trait Sharpen {
    /// The definition.
    fn define(&self, smooth: u8, sample: u8) -> u8;

    /// The same for vectors.
    fn run<S: ColorSimd>(&self, simd: S, smooth: S::Bytes, samples: S::Bytes) -> S::Bytes;
}

/// A mixture whose base is the neighbourhood.
struct FromSmooth<M>(M);

impl<M: Mix> Sharpen for FromSmooth<M> {
    fn define(&self, smooth: u8, sample: u8) -> u8 {
        clip(self.0.define(smooth.into(), sample.into()))
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, smooth: S::Bytes, samples: S::Bytes) -> S::Bytes {
        simd.truncate(self.0.run(simd, simd.to_floats(smooth), simd.to_floats(samples)))
    }
}

/// A mixture whose base is the sample.
struct ToSmooth<M>(M);

impl<M: Mix> Sharpen for ToSmooth<M> {
    fn define(&self, smooth: u8, sample: u8) -> u8 {
        clip(self.0.define(sample.into(), smooth.into()))
    }

    #[inline(always)]
    fn run<S: ColorSimd>(&self, simd: S, smooth: S::Bytes, samples: S::Bytes) -> S::Bytes {
        simd.truncate(self.0.run(simd, simd.to_floats(samples), simd.to_floats(smooth)))
    }
}

fn walk(level: Level, mix: &impl Sharpen, line: usize, pixels: &mut [u8], rows: &mut [u8]) {
    dispatch!(
        level,
        scalar => run(line, pixels, rows, &Scalar(mix)),
        simd => run(line, pixels, rows, &Vectors { simd, mix }),
    );
}

/// A way to mix a block with its smoothed copy.
trait Blocks {
    fn mix(&self, smooth: &Plane, samples: &mut Plane);
}

struct Scalar<'a, M>(&'a M);

impl<M: Sharpen> Blocks for Scalar<'_, M> {
    fn mix(&self, smooth: &Plane, samples: &mut Plane) {
        for (sample, &smooth) in samples.iter_mut().zip(smooth) {
            *sample = self.0.define(smooth, *sample);
        }
    }
}

struct Vectors<'a, S, M> {
    simd: S,
    mix: &'a M,
}

impl<S: ColorSimd, M: Sharpen> Blocks for Vectors<'_, S, M> {
    #[inline(always)]
    fn mix(&self, smooth: &Plane, samples: &mut Plane) {
        let simd = self.simd;
        for (smooth, samples) in
            smooth.chunks_exact(S::PIXELS).zip(samples.chunks_exact_mut(S::PIXELS))
        {
            let mixed = self.mix.run(simd, simd.load_bytes(smooth), simd.load_bytes(samples));
            simd.store_bytes(mixed, samples);
        }
    }
}

/// `rows` holds the row above the current one, and a place for the current one: rows that are done
/// are overwritten.
#[inline(always)]
fn run(line: usize, pixels: &mut [u8], rows: &mut [u8], mix: &impl Blocks) {
    let (mut above, mut here) = rows.split_at_mut(line);
    let mut rest = &mut pixels[line..];
    while rest.len() > line {
        let (row, below) = rest.split_at_mut(line);
        here.copy_from_slice(row);
        sharpen_row(mix, [above, here, &below[..line]], &mut row[RGB..line - RGB]);
        (above, here) = (here, above);
        rest = below;
    }
}

/// Samples of a row whose columns are added up before they are used: enough for the sums to be in
/// memory when they are read again, three samples apart.
const CHUNK: usize = 512;

/// Samples left and right of a block that count for it.
const BESIDE: usize = 2 * RGB;

/// `out` is the inner part of the row in the middle.
#[inline(always)]
fn sharpen_row(mix: &impl Blocks, rows: [&[u8]; 3], out: &mut [u8]) {
    let inner = out.len();
    // A row too short for a block is filled up; otherwise the last block overlaps the one before,
    // which is harmless as all is read from `rows`.
    if inner < BLOCK {
        let mut padded = [[0; BLOCK + BESIDE]; 3];
        for (padded, row) in padded.iter_mut().zip(rows) {
            padded[..row.len()].copy_from_slice(row);
        }
        let mut block = [0; BLOCK];
        let [above, here, below] = &padded;
        sharpen_chunk(mix, [above, here, below], &mut block);
        out.copy_from_slice(&block[..inner]);
        return;
    }
    let [above, here, below] = rows;
    for start in (0..inner).step_by(CHUNK) {
        let start = start.min(inner - BLOCK);
        let end = inner.min(start + CHUNK);
        let around = start..end + BESIDE;
        let rows = [&above[around.clone()], &here[around.clone()], &below[around]];
        sharpen_chunk(mix, rows, &mut out[start..end]);
    }
}

/// `rows` are `BESIDE` samples longer than `out`.
#[inline(always)]
fn sharpen_chunk(mix: &impl Blocks, [above, here, below]: [&[u8]; 3], out: &mut [u8]) {
    let mut columns = [0_u16; CHUNK + BESIDE];
    for (((sum, &above), &here), &below) in columns.iter_mut().zip(above).zip(here).zip(below) {
        *sum = u16::from(above) + u16::from(here) + u16::from(below);
    }
    for start in (0..out.len()).step_by(BLOCK) {
        let start = start.min(out.len() - BLOCK);
        let smooth = smoothed(&columns[start..], &here[start + RGB..]);
        let mut samples = [0; BLOCK];
        samples.copy_from_slice(&here[start + RGB..][..BLOCK]);
        mix.mix(&smooth, &mut samples);
        out[start..start + BLOCK].copy_from_slice(&samples);
    }
}

/// The weighted means, rounded to nearest. 13 is odd, so ties cannot occur, and the floats of both
/// libraries are close enough to round alike.
#[expect(clippy::cast_possible_truncation, reason = "the mean of bytes")]
#[inline(always)]
fn smoothed(columns: &[u16], here: &[u8]) -> Plane {
    // A thirteenth, with 16 fraction bits: too large by so little that the quotient of a sum of
    // thirteen samples is whole where it should be.
    const THIRTEENTH: u32 = 5_042;
    let left = &columns[..BLOCK];
    let middle = &columns[RGB..][..BLOCK];
    let right = &columns[BESIDE..][..BLOCK];
    let here = &here[..BLOCK];
    let mut smooth = [0; BLOCK];
    for (index, smooth) in smooth.iter_mut().enumerate() {
        let sum = left[index] + middle[index] + right[index] + 4 * u16::from(here[index]) + 6;
        *smooth = ((u32::from(sum) * THIRTEENTH) >> 16) as u8;
    }
    smooth
}
