//! One row of RGB pixels to numbers: the definition through the table, and the vectors.

use super::Table;
use crate::Level;
use crate::kernels::interleave::starts;
use crate::vector::{Divisor, Fence, RGB, Simd, dispatch};
use core::array;
use core::ops::Range;
use half::{bf16, f16};

/// A type of number that rows are written as.
pub(super) trait Number {
    const SIZE: usize;

    /// Writes the number for a sample whose table value is `value`.
    fn store(sample: u8, value: f32, out: &mut [u8]);

    /// Writes the numbers for [`Simd::FLOATS`] samples. With a fence, `f32` goes past the caches; there
    /// are no such stores of other types.
    fn store_vector<S: Simd>(
        simd: S,
        samples: &[u8],
        by: Divisor<S::Floats>,
        out: &mut [u8],
        fence: Option<&Fence>,
    );
}

impl Number for f32 {
    const SIZE: usize = 4;

    fn store(_: u8, value: f32, out: &mut [u8]) {
        out.copy_from_slice(&value.to_ne_bytes());
    }

    #[inline(always)]
    fn store_vector<S: Simd>(
        simd: S,
        samples: &[u8],
        by: Divisor<S::Floats>,
        out: &mut [u8],
        fence: Option<&Fence>,
    ) {
        let values = simd.normalize(samples, Table::SCALE, by);
        match fence {
            Some(fence) => simd.stream_f32(values, out, fence),
            None => simd.store_f32(values, out),
        }
    }
}

impl Number for f16 {
    const SIZE: usize = 2;

    fn store(_: u8, value: f32, out: &mut [u8]) {
        out.copy_from_slice(&Self::from_f32(value).to_ne_bytes());
    }

    #[inline(always)]
    fn store_vector<S: Simd>(
        simd: S,
        samples: &[u8],
        by: Divisor<S::Floats>,
        out: &mut [u8],
        _: Option<&Fence>,
    ) {
        simd.store_f16(simd.normalize(samples, Table::SCALE, by), out);
    }
}

impl Number for bf16 {
    const SIZE: usize = 2;

    fn store(_: u8, value: f32, out: &mut [u8]) {
        out.copy_from_slice(&Self::from_f32(value).to_ne_bytes());
    }

    #[inline(always)]
    fn store_vector<S: Simd>(
        simd: S,
        samples: &[u8],
        by: Divisor<S::Floats>,
        out: &mut [u8],
        _: Option<&Fence>,
    ) {
        simd.store_bf16(simd.normalize(samples, Table::SCALE, by), out);
    }
}

impl Number for u8 {
    const SIZE: usize = 1;

    fn store(sample: u8, _: f32, out: &mut [u8]) {
        out[0] = sample;
    }

    #[inline(always)]
    fn store_vector<S: Simd>(
        _: S,
        samples: &[u8],
        _: Divisor<S::Floats>,
        out: &mut [u8],
        _: Option<&Fence>,
    ) {
        out.copy_from_slice(samples);
    }
}

/// The most floats a level has in a vector, and the most pixels it deinterleaves at once.
const MOST_FLOATS: usize = 16;
const MOST_PIXELS: usize = 64;

/// The vector of the divisors of its lanes.
#[inline(always)]
fn divisors<S: Simd>(simd: S, of: impl Fn(usize) -> Divisor<f32>) -> Divisor<S::Floats> {
    let vector = |value: fn(Divisor<f32>) -> f32| {
        let lanes: [f32; MOST_FLOATS] = array::from_fn(|lane| value(of(lane)));
        simd.load_floats(&lanes[..S::FLOATS])
    };
    Divisor {
        mean: vector(|by| by.mean),
        std: vector(|by| by.std),
        inverse: vector(|by| by.inverse),
    }
}

/// The vectors of a step that the step before it has not written, as the last one of a row overlaps
/// it by `done` pixels. Bytes that passed the caches are written once before their fence, so they
/// are rows of whole vectors.
fn new_vectors<S: Simd>(done: usize, channels: usize, flip: bool) -> Range<usize> {
    let all = S::PIXELS * channels / S::FLOATS;
    let done = done * channels / S::FLOATS;
    if flip { 0..all - done } else { done..all }
}

/// The pixels of a row, in either order of their samples.
#[derive(Clone, Copy)]
pub(super) enum Row<'a> {
    Interleaved(&'a [u8]),
    Planes([&'a [u8]; RGB]),
}

impl Row<'_> {
    fn pixels(&self) -> usize {
        match self {
            Self::Interleaved(row) => row.len() / RGB,
            Self::Planes([red, ..]) => red.len(),
        }
    }

    /// The pixel that becomes pixel `index` of the output.
    fn pixel(&self, index: usize, flip: bool) -> [u8; RGB] {
        let index = if flip { self.pixels() - 1 - index } else { index };
        match self {
            Self::Interleaved(row) => array::from_fn(|channel| row[index * RGB + channel]),
            Self::Planes(planes) => planes.map(|plane| plane[index]),
        }
    }

    /// The planes of `S::PIXELS` pixels from `start` on.
    #[inline(always)]
    fn planes<S: Simd>(&self, simd: S, start: usize) -> [S::Bytes; RGB] {
        match self {
            Self::Interleaved(row) => simd.deinterleave(&row[start * RGB..][..S::PIXELS * RGB]),
            Self::Planes(planes) => {
                planes.map(|plane| simd.load_bytes(&plane[start..][..S::PIXELS]))
            }
        }
    }
}

impl Table {
    pub(super) fn interleaved<E: Number>(
        &self,
        level: Level,
        row: Row<'_>,
        flip: bool,
        out: &mut [u8],
        fence: Option<&Fence>,
    ) {
        dispatch!(
            level,
            scalar => self.define_interleaved::<E>(row, flip, out),
            simd => self.write_interleaved::<E, _>(simd, row, flip, out, fence),
        );
    }

    pub(super) fn planar<E: Number>(
        &self,
        level: Level,
        row: Row<'_>,
        flip: bool,
        out: [&mut [u8]; RGB],
        fence: Option<&Fence>,
    ) {
        dispatch!(
            level,
            scalar => self.define_planar::<E>(row, flip, out),
            simd => self.write_planar::<E, _>(simd, row, flip, out, fence),
        );
    }

    fn define_interleaved<E: Number>(&self, row: Row<'_>, flip: bool, out: &mut [u8]) {
        for (index, out) in out.chunks_exact_mut(RGB * E::SIZE).enumerate() {
            let pixel = row.pixel(index, flip);
            let samples = out.chunks_exact_mut(E::SIZE).zip(pixel).zip(&self.values);
            for ((out, sample), values) in samples {
                E::store(sample, values[usize::from(sample)], out);
            }
        }
    }

    fn define_planar<E: Number>(&self, row: Row<'_>, flip: bool, planes: [&mut [u8]; RGB]) {
        for ((channel, plane), values) in planes.into_iter().enumerate().zip(&self.values) {
            for (index, out) in plane.chunks_exact_mut(E::SIZE).enumerate() {
                let sample = row.pixel(index, flip)[channel];
                E::store(sample, values[usize::from(sample)], out);
            }
        }
    }

    #[inline(always)]
    fn write_interleaved<E: Number, S: Simd>(
        &self,
        simd: S,
        row: Row<'_>,
        flip: bool,
        out: &mut [u8],
        fence: Option<&Fence>,
    ) {
        let pixels = row.pixels();
        let (Some(starts), Some(by)) = (starts(pixels, S::PIXELS), &self.divisors) else {
            return self.define_interleaved::<E>(row, flip, out);
        };
        // The channels of consecutive samples repeat after three vectors.
        let by: [_; RGB] =
            array::from_fn(|vector| divisors(simd, |lane| by[(vector * S::FLOATS + lane) % RGB]));
        let mut ordered = [0; MOST_PIXELS * RGB];
        let ordered = &mut ordered[..S::PIXELS * RGB];
        let fence = fence.filter(|_| pixels.is_multiple_of(S::FLOATS));
        for (step, start) in starts.enumerate() {
            let place = if flip { pixels - start - S::PIXELS } else { start };
            let samples = match row {
                Row::Interleaved(row) if !flip => &row[start * RGB..][..S::PIXELS * RGB],
                Row::Interleaved(_) | Row::Planes(_) => {
                    let planes = row.planes(simd, start);
                    let reversed = planes.map(|plane| simd.reverse(plane));
                    simd.interleave(if flip { reversed } else { planes }, ordered);
                    &*ordered
                }
            };
            let out = &mut out[place * RGB * E::SIZE..][..S::PIXELS * RGB * E::SIZE];
            let vectors = samples.chunks_exact(S::FLOATS);
            let new = new_vectors::<S>(step * S::PIXELS - start, RGB, flip);
            let vectors = vectors.zip(out.chunks_exact_mut(S::FLOATS * E::SIZE)).enumerate();
            for (index, (samples, out)) in vectors.take(new.end).skip(new.start) {
                E::store_vector(simd, samples, by[index % RGB], out, fence);
            }
        }
    }

    #[inline(always)]
    fn write_planar<E: Number, S: Simd>(
        &self,
        simd: S,
        row: Row<'_>,
        flip: bool,
        mut planes: [&mut [u8]; RGB],
        fence: Option<&Fence>,
    ) {
        let pixels = row.pixels();
        let (Some(starts), Some(by)) = (starts(pixels, S::PIXELS), &self.divisors) else {
            return self.define_planar::<E>(row, flip, planes);
        };
        let by = by.map(|by| divisors(simd, |_| by));
        let mut plane = [0; MOST_PIXELS];
        let plane = &mut plane[..S::PIXELS];
        let fence = fence.filter(|_| pixels.is_multiple_of(S::FLOATS));
        for (step, start) in starts.enumerate() {
            let new = new_vectors::<S>(step * S::PIXELS - start, 1, flip);
            let parts = row.planes(simd, start);
            let place = if flip { pixels - start - S::PIXELS } else { start };
            for (channel, out) in planes.iter_mut().enumerate() {
                let part = parts[channel];
                simd.store_bytes(if flip { simd.reverse(part) } else { part }, plane);
                let out = &mut out[place * E::SIZE..][..S::PIXELS * E::SIZE];
                let vectors =
                    plane.chunks_exact(S::FLOATS).zip(out.chunks_exact_mut(S::FLOATS * E::SIZE));
                for (samples, out) in vectors.take(new.end).skip(new.start) {
                    E::store_vector(simd, samples, by[channel], out, fence);
                }
            }
        }
    }
}
