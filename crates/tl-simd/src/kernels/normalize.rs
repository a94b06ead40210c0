//! The last step of a sample: RGB rows to the numbers of a batch, mirrored, normalised, converted
//! and laid out in one pass.
//!
//! The values are those of torchvision v2's `ToDtype(float32, scale=True)` and `Normalize`:
//! `(x * (1/255) - mean) / std` with every step rounded to `f32`.
//! A sample has 256 possible values, so a table of them is the definition.

use crate::Level;
use crate::kernels::interleave::starts;
use crate::vector::{RGB, Simd, dispatch};
use core::array;
use half::{bf16, f16};

/// The normalised value of every 8-bit sample of every channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    values: [[f32; 256]; RGB],
    mean: [f32; RGB],
    std: [f32; RGB],
}

impl Table {
    /// What one step of an 8-bit sample is worth: torchvision's `1.0 / 255`, rounded to `f32`.
    pub const SCALE: f32 = 1.0 / 255.0;

    /// The table of `(x * (1/255) - mean) / std`.
    ///
    /// # Panics
    ///
    /// When a mean is not finite, or a deviation is not finite or not above zero.
    #[must_use]
    pub fn new(mean: [f32; RGB], std: [f32; RGB]) -> Self {
        assert!(mean.iter().all(|mean| mean.is_finite()), "mean {mean:?} is not finite");
        let usable = |std: &f32| std.is_finite() && *std > 0.0;
        assert!(std.iter().all(usable), "std {std:?} is not finite and above zero");
        let mut values = [[0.0; 256]; RGB];
        for ((values, mean), std) in values.iter_mut().zip(mean).zip(std) {
            for (sample, value) in (0_u8..=u8::MAX).zip(values) {
                *value = (f32::from(sample) * Self::SCALE - mean) / std;
            }
        }
        Self { values, mean, std }
    }

    /// The mean and deviation of ImageNet as torchvision's examples and weights use them.
    #[must_use]
    pub fn imagenet() -> Self {
        Self::new([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    }

    /// Samples scaled to 0..=1 and nothing more.
    #[must_use]
    pub fn unit() -> Self {
        Self::new([0.0; RGB], [1.0; RGB])
    }

    /// The values of one channel, by sample.
    ///
    /// # Panics
    ///
    /// When `channel` is not below 3.
    #[must_use]
    pub const fn channel(&self, channel: usize) -> &[f32; 256] {
        &self.values[channel]
    }
}

/// The type of the numbers written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// The table's value.
    F32,
    /// The table's value rounded to the nearest IEEE half, ties to even.
    F16,
    /// The table's value rounded to the nearest bfloat16, ties to even.
    Bf16,
    /// The sample itself; the table is not used.
    U8,
}

impl Element {
    /// Bytes of one number.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }
}

/// The order of the numbers of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Three planes.
    Chw,
    /// Interleaved pixels.
    Hwc,
}

/// How an image is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PixelFormat {
    /// The type of the numbers.
    pub element: Element,
    /// The order of the numbers.
    pub layout: Layout,
    /// Whether every row is mirrored.
    pub flip: bool,
}

/// Writes rows of RGB pixels into one image of a batch.
#[derive(Debug)]
pub struct ImageWriter<'a> {
    out: &'a mut [u8],
    width: usize,
    height: usize,
    format: PixelFormat,
    table: &'a Table,
}

impl<'a> ImageWriter<'a> {
    /// A writer into `out`, which holds `width * height * 3` numbers in the machine's byte order.
    ///
    /// # Panics
    ///
    /// When `out` is not exactly that long.
    #[must_use]
    pub fn new(
        out: &'a mut [u8],
        width: usize,
        height: usize,
        format: PixelFormat,
        table: &'a Table,
    ) -> Self {
        let need = [width, height, RGB, format.element.size()]
            .into_iter()
            .try_fold(1_usize, usize::checked_mul)
            .expect("the image fits into the address space");
        assert_eq!(out.len(), need, "bytes of a {width}x{height} image");
        Self { out, width, height, format, table }
    }

    /// Writes row `y` from interleaved RGB.
    ///
    /// # Panics
    ///
    /// When `y` is not below the height, or `row` is not `width * 3` bytes long.
    pub fn write_row(&mut self, level: Level, y: u32, row: &[u8]) {
        let y = y as usize;
        assert!(y < self.height, "row {y} of {}", self.height);
        assert_eq!(row.len(), self.width * RGB, "bytes of a row of {} pixels", self.width);
        match self.format.element {
            Element::F32 => self.write::<f32>(level, y, row),
            Element::F16 => self.write::<f16>(level, y, row),
            Element::Bf16 => self.write::<bf16>(level, y, row),
            Element::U8 => self.write::<u8>(level, y, row),
        }
    }

    fn write<E: Number>(&mut self, level: Level, y: usize, row: &[u8]) {
        let line = self.width * E::SIZE;
        match self.format.layout {
            Layout::Hwc => {
                let out = &mut self.out[y * line * RGB..][..line * RGB];
                self.table.interleaved::<E>(level, row, self.format.flip, out);
            }
            Layout::Chw => {
                let planes = split_planes(self.out, self.height * line);
                let planes = planes.map(|plane| &mut plane[y * line..][..line]);
                self.table.planar::<E>(level, row, self.format.flip, planes);
            }
        }
    }
}

fn split_planes(out: &mut [u8], bytes: usize) -> [&mut [u8]; RGB] {
    let (red, rest) = out.split_at_mut(bytes);
    let (green, blue) = rest.split_at_mut(bytes);
    [red, green, blue]
}

/// A type of number that rows are written as.
trait Number {
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
    fn interleaved<E: Number>(&self, level: Level, row: &[u8], flip: bool, out: &mut [u8]) {
        dispatch!(
            level,
            scalar => self.define_interleaved::<E>(row, flip, out),
            simd => self.write_interleaved::<E, _>(simd, row, flip, out),
        );
    }

    fn planar<E: Number>(&self, level: Level, row: &[u8], flip: bool, out: [&mut [u8]; RGB]) {
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
