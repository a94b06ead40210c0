//! One row of RGB pixels to numbers: the definition through the table, and the vectors.

use super::Table;
use crate::Level;
use crate::kernels::interleave::starts;
use crate::vector::{RGB, Simd, dispatch};
use core::array;
use half::{bf16, f16};

/// A type of number that rows are written as.
pub(super) trait Number {
    const SIZE: usize;

    /// Writes the number for a sample whose table value is `value`.
    fn store(sample: u8, value: f32, out: &mut [u8]);

    /// Writes the numbers for as many samples as `mean` and `std` have values, and [`Simd::FLOATS`].
    fn store_vector<S: Simd>(simd: S, samples: &[u8], mean: &[f32], std: &[f32], out: &mut [u8]);
}

/// The vector of the table's values of samples.
#[inline(always)]
fn values<S: Simd>(simd: S, samples: &[u8], mean: &[f32], std: &[f32]) -> S::Floats {
    simd.normalize(samples, Table::SCALE, simd.load_floats(mean), simd.load_floats(std))
}

impl Number for f32 {
    const SIZE: usize = 4;

    fn store(_: u8, value: f32, out: &mut [u8]) {
        out.copy_from_slice(&value.to_ne_bytes());
    }

    #[inline(always)]
    fn store_vector<S: Simd>(simd: S, samples: &[u8], mean: &[f32], std: &[f32], out: &mut [u8]) {
        simd.store_f32(values(simd, samples, mean, std), out);
    }
}

impl Number for f16 {
    const SIZE: usize = 2;

    fn store(_: u8, value: f32, out: &mut [u8]) {
        out.copy_from_slice(&Self::from_f32(value).to_ne_bytes());
    }

    #[inline(always)]
    fn store_vector<S: Simd>(simd: S, samples: &[u8], mean: &[f32], std: &[f32], out: &mut [u8]) {
        simd.store_f16(values(simd, samples, mean, std), out);
    }
}

impl Number for bf16 {
    const SIZE: usize = 2;

    fn store(_: u8, value: f32, out: &mut [u8]) {
        out.copy_from_slice(&Self::from_f32(value).to_ne_bytes());
    }

    #[inline(always)]
    fn store_vector<S: Simd>(simd: S, samples: &[u8], mean: &[f32], std: &[f32], out: &mut [u8]) {
        simd.store_bf16(values(simd, samples, mean, std), out);
    }
}

impl Number for u8 {
    const SIZE: usize = 1;

    fn store(sample: u8, _: f32, out: &mut [u8]) {
        out[0] = sample;
    }

    #[inline(always)]
    fn store_vector<S: Simd>(_: S, samples: &[u8], _: &[f32], _: &[f32], out: &mut [u8]) {
        out.copy_from_slice(samples);
    }
}

/// The most floats a level has in a vector, and the most pixels it deinterleaves at once.
const MOST_FLOATS: usize = 16;
const MOST_PIXELS: usize = 64;

impl Table {
    pub(super) fn interleaved<E: Number>(
        &self,
        level: Level,
        row: &[u8],
        flip: bool,
        out: &mut [u8],
    ) {
        dispatch!(
            level,
            scalar => self.define_interleaved::<E>(row, flip, out),
            simd => self.write_interleaved::<E, _>(simd, row, flip, out),
        );
    }

    pub(super) fn planar<E: Number>(
        &self,
        level: Level,
        row: &[u8],
        flip: bool,
        out: [&mut [u8]; RGB],
    ) {
        dispatch!(
            level,
            scalar => self.define_planar::<E>(row, flip, out),
            simd => self.write_planar::<E, _>(simd, row, flip, out),
        );
    }

    fn define_interleaved<E: Number>(&self, row: &[u8], flip: bool, out: &mut [u8]) {
        for (index, out) in out.chunks_exact_mut(RGB * E::SIZE).enumerate() {
            let pixel = pixel(row, index, flip);
            let samples = out.chunks_exact_mut(E::SIZE).zip(pixel).zip(&self.values);
            for ((out, &sample), values) in samples {
                E::store(sample, values[usize::from(sample)], out);
            }
        }
    }

    fn define_planar<E: Number>(&self, row: &[u8], flip: bool, planes: [&mut [u8]; RGB]) {
        for ((channel, plane), values) in planes.into_iter().enumerate().zip(&self.values) {
            for (index, out) in plane.chunks_exact_mut(E::SIZE).enumerate() {
                let sample = pixel(row, index, flip)[channel];
                E::store(sample, values[usize::from(sample)], out);
            }
        }
    }

    #[inline(always)]
    fn write_interleaved<E: Number, S: Simd>(
        &self,
        simd: S,
        row: &[u8],
        flip: bool,
        out: &mut [u8],
    ) {
        let pixels = row.len() / RGB;
        let Some(starts) = starts(pixels, S::PIXELS) else {
            return self.define_interleaved::<E>(row, flip, out);
        };
        // The channels of consecutive samples repeat after three vectors.
        let pattern = |values: [f32; RGB]| array::from_fn(|sample| values[sample % RGB]);
        let mean: [f32; MOST_FLOATS * RGB] = pattern(self.mean);
        let std: [f32; MOST_FLOATS * RGB] = pattern(self.std);
        let mut mirrored = [0; MOST_PIXELS * RGB];
        let mirrored = &mut mirrored[..S::PIXELS * RGB];
        for start in starts {
            let mut samples = &row[start * RGB..][..S::PIXELS * RGB];
            let mut place = start;
            if flip {
                let planes = simd.deinterleave(samples).map(|plane| simd.reverse(plane));
                simd.interleave(planes, mirrored);
                samples = mirrored;
                place = pixels - start - S::PIXELS;
            }
            let out = &mut out[place * RGB * E::SIZE..][..S::PIXELS * RGB * E::SIZE];
            let vectors = samples.chunks_exact(S::FLOATS);
            for (index, (samples, out)) in
                vectors.zip(out.chunks_exact_mut(S::FLOATS * E::SIZE)).enumerate()
            {
                let channels = index % RGB * S::FLOATS..(index % RGB + 1) * S::FLOATS;
                let (mean, std) = (&mean[channels.clone()], &std[channels]);
                E::store_vector(simd, samples, mean, std, out);
            }
        }
    }

    #[inline(always)]
    fn write_planar<E: Number, S: Simd>(
        &self,
        simd: S,
        row: &[u8],
        flip: bool,
        mut planes: [&mut [u8]; RGB],
    ) {
        let pixels = row.len() / RGB;
        let Some(starts) = starts(pixels, S::PIXELS) else {
            return self.define_planar::<E>(row, flip, planes);
        };
        let mean = self.mean.map(|mean| [mean; MOST_FLOATS]);
        let std = self.std.map(|std| [std; MOST_FLOATS]);
        let mut plane = [0; MOST_PIXELS];
        let plane = &mut plane[..S::PIXELS];
        for start in starts {
            let parts = simd.deinterleave(&row[start * RGB..][..S::PIXELS * RGB]);
            let place = if flip { pixels - start - S::PIXELS } else { start };
            for (channel, out) in planes.iter_mut().enumerate() {
                let part = parts[channel];
                simd.store_bytes(if flip { simd.reverse(part) } else { part }, plane);
                let out = &mut out[place * E::SIZE..][..S::PIXELS * E::SIZE];
                let (mean, std) = (&mean[channel][..S::FLOATS], &std[channel][..S::FLOATS]);
                for (samples, out) in
                    plane.chunks_exact(S::FLOATS).zip(out.chunks_exact_mut(S::FLOATS * E::SIZE))
                {
                    E::store_vector(simd, samples, mean, std, out);
                }
            }
        }
    }
}

/// The pixel that becomes pixel `index` of the output.
fn pixel(row: &[u8], index: usize, flip: bool) -> &[u8] {
    let start = if flip { row.len() - RGB * (index + 1) } else { RGB * index };
    &row[start..start + RGB]
}
