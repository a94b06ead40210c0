//! The last step of images that are not 8-bit RGB: their pixels to the numbers of a batch.

use super::{Dtype, Layout, PixelType};
use crate::Level;
use half::{bf16, f16};

/// The form of the pixels of an image, and of the numbers that they become.
///
/// Floats are `(x * scale - mean) / std` with every step rounded to `f32`; the scale maps the largest
/// integer of the pixels' type to 1, as torchvision v2's `ToDtype(float32, scale=True)` does, and
/// leaves floats as they are.
#[derive(Clone, Copy, Debug)]
pub struct WideFormat<'a> {
    /// The type of the samples.
    pub pixels: PixelType,
    /// Samples of a pixel.
    pub channels: usize,
    /// The type of the numbers. Integers are the samples as they are, which are then of this type.
    pub dtype: Dtype,
    /// The order of the numbers.
    pub layout: Layout,
    /// Subtracted from floats of each channel.
    pub mean: &'a [f32],
    /// Divides floats of each channel.
    pub std: &'a [f32],
}

impl WideFormat<'_> {
    /// Writes the numbers of `image`, interleaved pixels without gaps.
    ///
    /// # Panics
    ///
    /// When `image` has no whole pixels, when `out` has not as many numbers, when there are not as
    /// many means and deviations as channels, and for integers of another type than the samples.
    pub fn write(&self, level: Level, image: &[u8], out: &mut [u8]) {
        let Self { pixels, channels, dtype, layout, .. } = *self;
        let pixel_bytes = channels * pixels.bytes();
        assert!(pixel_bytes > 0 && image.len().is_multiple_of(pixel_bytes), "whole pixels");
        let samples = image.len() / pixels.bytes();
        assert_eq!(out.len(), samples * dtype.bytes(), "one number per sample");
        assert!(self.mean.len() == channels && self.std.len() == channels, "{channels} channels");
        assert!(dtype.is_float() || dtype == pixels.dtype(), "{pixels} samples are not {dtype}");
        if !dtype.is_float() && (layout == Layout::Hwc || channels == 1) {
            return out.copy_from_slice(image);
        }
        level.vectorize(
            #[inline(always)]
            || self.define(image, out),
        );
    }

    #[inline(always)]
    fn define(&self, image: &[u8], out: &mut [u8]) {
        match self.pixels {
            PixelType::U8 => self.convert::<1>(image, out, 1.0 / 255.0, |[x]| f32::from(x)),
            PixelType::U16 => {
                let load = |sample| f32::from(u16::from_ne_bytes(sample));
                self.convert::<2>(image, out, 1.0 / 65535.0, load);
            }
            PixelType::F32 => self.convert::<4>(image, out, 1.0, f32::from_ne_bytes),
        }
    }

    #[inline(always)]
    fn convert<const N: usize>(
        &self,
        image: &[u8],
        out: &mut [u8],
        scale: f32,
        load: impl Fn([u8; N]) -> f32 + Copy,
    ) {
        match self.dtype {
            Dtype::U8 | Dtype::U16 => self.place::<N, N>(image, out, |sample, _, _| sample),
            Dtype::F32 => self.place::<N, 4>(image, out, |sample, mean, std| {
                ((load(sample) * scale - mean) / std).to_ne_bytes()
            }),
            Dtype::F16 => self.place::<N, 2>(image, out, |sample, mean, std| {
                f16::from_f32((load(sample) * scale - mean) / std).to_ne_bytes()
            }),
            Dtype::Bf16 => self.place::<N, 2>(image, out, |sample, mean, std| {
                bf16::from_f32((load(sample) * scale - mean) / std).to_ne_bytes()
            }),
        }
    }

    /// Puts the number that `number` makes of every sample, a mean and a deviation in its place.
    #[inline(always)]
    fn place<const N: usize, const M: usize>(
        &self,
        image: &[u8],
        out: &mut [u8],
        number: impl Fn([u8; N], f32, f32) -> [u8; M],
    ) {
        let channels = self.channels;
        let samples = image.as_chunks::<N>().0;
        let out = out.as_chunks_mut::<M>().0;
        let pixels = samples.len() / channels;
        let statistics = self.mean.iter().zip(self.std);
        for (channel, (mean, std)) in statistics.enumerate() {
            let samples = samples.get(channel..).unwrap_or_default().iter().step_by(channels);
            match self.layout {
                Layout::Chw => {
                    let plane = &mut out[channel * pixels..][..pixels];
                    for (out, sample) in plane.iter_mut().zip(samples) {
                        *out = number(*sample, *mean, *std);
                    }
                }
                Layout::Hwc => {
                    let out = out.get_mut(channel..).unwrap_or_default();
                    for (out, sample) in out.iter_mut().step_by(channels).zip(samples) {
                        *out = number(*sample, *mean, *std);
                    }
                }
            }
        }
    }
}
