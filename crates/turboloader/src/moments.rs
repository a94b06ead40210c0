//! Mean and standard deviation of the pixels of a data set.

use tl_pipeline::{DatasetView, Loader, LoaderConfig, LoaderNote, PipelineError, Shuffle, Work};
use tl_transform::{Channels, PixelType, Recipe};

/// Sums of the values of each channel, and of their squares.
///
/// Those of integers are exact, and those of floats are made in the order of the samples, so they do
/// not depend on the threads.
#[derive(Clone, Debug)]
pub struct Moments {
    channels: Channels,
    pixels: u64,
    images: u64,
    sums: Sums,
    reduced: Option<LoaderNote>,
}

/// The most channels of a pixel.
pub(crate) const MOST_CHANNELS: usize = 4;

/// The sum of the values of each channel, and that of their squares.
#[derive(Clone, Copy, Debug)]
enum Sums {
    Bytes([[u128; 2]; MOST_CHANNELS]),
    Words([[u128; 2]; MOST_CHANNELS]),
    Floats([[f64; 2]; MOST_CHANNELS]),
}

impl Moments {
    /// Those of all images of a view, with pixels of this type and these channels.
    ///
    /// # Errors
    /// Those of a loader, and that of the first bad sample.
    pub fn of(
        view: &DatasetView,
        pixels: PixelType,
        channels: Channels,
    ) -> Result<Self, PipelineError> {
        let config = LoaderConfig {
            sampler: Shuffle::None.into(),
            batch_size: 16,
            prefetch_next_epoch: false,
            ..LoaderConfig::new(Work::Images(Recipe::decode_to(pixels, channels)))
        };
        Self::in_epoch(&Loader::new(view.clone(), config)?, pixels, channels)
    }

    /// Those of the images in the first epoch of a loader, which decodes to these pixels.
    pub(crate) fn in_epoch(
        loader: &Loader,
        pixels: PixelType,
        channels: Channels,
    ) -> Result<Self, PipelineError> {
        let sums = match pixels {
            PixelType::U8 => Sums::Bytes(Default::default()),
            PixelType::U16 => Sums::Words(Default::default()),
            PixelType::F32 => Sums::Floats(Default::default()),
        };
        let mut moments = Self { channels, pixels: 0, images: 0, sums, reduced: None };
        for batch in loader.epoch(0) {
            let batch = batch?;
            let samples = (0..batch.len()).filter_map(|row| batch.sample(row));
            samples.for_each(|sample| match channels {
                Channels::Grey => moments.add::<1>(sample.bytes),
                Channels::Rgb => moments.add::<3>(sample.bytes),
                Channels::Rgba => moments.add::<4>(sample.bytes),
            });
        }
        let is_reduced = |note: &LoaderNote| matches!(note, LoaderNote::Reduced { .. });
        moments.reduced = loader.notes().into_iter().find(is_reduced);
        Ok(moments)
    }

    fn add<const C: usize>(&mut self, pixels: &[u8]) {
        let bytes = match &mut self.sums {
            Sums::Bytes(sums) => {
                add_whole::<C, 1>(sums, pixels, |[value]| value.into());
                1
            }
            Sums::Words(sums) => {
                add_whole::<C, 2>(sums, pixels, |value| u16::from_ne_bytes(value).into());
                2
            }
            Sums::Floats(sums) => {
                for pixel in pixels.as_chunks::<4>().0.as_chunks::<C>().0 {
                    for ([sum, squares], value) in sums.iter_mut().zip(pixel) {
                        let value = f64::from(f32::from_ne_bytes(*value));
                        *sum += value;
                        *squares += value * value;
                    }
                }
                4
            }
        };
        self.pixels += (pixels.len() / (C * bytes)) as u64;
        self.images += 1;
    }

    /// The number of images.
    #[must_use]
    pub const fn images(&self) -> u64 {
        self.images
    }

    /// The note on an image that these pixels do not hold as it is stored, if there is one.
    #[must_use]
    pub const fn reduced(&self) -> Option<&LoaderNote> {
        self.reduced.as_ref()
    }

    /// The mean of each channel: from 0 to 1 for integers, as they are for floats.
    #[must_use]
    pub fn mean(&self) -> Vec<f64> {
        self.figures().iter().map(|(mean, _)| *mean).collect()
    }

    /// The standard deviation of each channel, in the same units.
    #[must_use]
    pub fn deviation(&self) -> Vec<f64> {
        self.figures().iter().map(|(_, deviation)| *deviation).collect()
    }

    /// Mean and standard deviation of each channel.
    fn figures(&self) -> Vec<(f64, f64)> {
        let count = self.pixels;
        let channels = self.channels.count() as usize;
        match &self.sums {
            Sums::Bytes(sums) => {
                sums.iter().take(channels).map(|s| whole(*s, count, 255.0)).collect()
            }
            Sums::Words(sums) => {
                sums.iter().take(channels).map(|s| whole(*s, count, 65535.0)).collect()
            }
            Sums::Floats(sums) => sums.iter().take(channels).map(|s| real(*s, count)).collect(),
        }
    }
}

/// Adds up an image of integers; 2^32 pixels of 16 bits, far more than a decoder makes, fit 64 bits.
pub(crate) fn add_whole<const C: usize, const N: usize>(
    sums: &mut [[u128; 2]; MOST_CHANNELS],
    pixels: &[u8],
    load: impl Fn([u8; N]) -> u64,
) {
    let mut own = [[0_u64; 2]; C];
    for pixel in pixels.as_chunks::<N>().0.as_chunks::<C>().0 {
        for ([sum, squares], value) in own.iter_mut().zip(pixel) {
            let value = load(*value);
            *sum += value;
            *squares += value * value;
        }
    }
    for (sums, own) in sums.iter_mut().zip(own) {
        for (sum, own) in sums.iter_mut().zip(own) {
            *sum += u128::from(own);
        }
    }
}

/// Mean and deviation of integers as shares of `most`.
#[expect(clippy::cast_precision_loss, reason = "means are real numbers")]
pub(crate) fn whole([sum, squares]: [u128; 2], count: u64, most: f64) -> (f64, f64) {
    // Exact up to here: the difference of two large sums.
    let spread = squares.saturating_mul(count.into()).saturating_sub(sum.saturating_mul(sum));
    let count = count as f64;
    (sum as f64 / count / most, (spread as f64).sqrt() / count / most)
}

/// Mean and deviation of floats.
#[expect(clippy::cast_precision_loss, reason = "means are real numbers")]
fn real([sum, squares]: [f64; 2], count: u64) -> (f64, f64) {
    let count = count as f64;
    let spread = count * squares - sum * sum;
    // Rounding may leave less than nothing; NaN stays.
    let spread = if spread < 0.0 { 0.0 } else { spread };
    (sum / count, spread.sqrt() / count)
}
