//! Mean and standard deviation of the pixels of a data set.

use tl_pipeline::{Batch, DatasetView, Loader, LoaderConfig, PipelineError, Shuffle, Work};
use tl_transform::Recipe;

/// Sums of the values of each channel, and of their squares.
///
/// The sums are exact, so they depend neither on the order of the images nor on the threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    pixels: u64,
    images: u64,
    sums: [u128; 3],
    squares: [u128; 3],
}

impl Moments {
    /// Those of all images of a view, in their own sizes and from 0 to 255.
    ///
    /// # Errors
    /// Those of a loader, and that of the first bad sample.
    pub fn of(view: &DatasetView) -> Result<Self, PipelineError> {
        let config = LoaderConfig {
            sampler: Shuffle::None.into(),
            batch_size: 16,
            prefetch_next_epoch: false,
            ..LoaderConfig::new(Work::Images(Recipe::decode()))
        };
        Self::in_batches(Loader::new(view.clone(), config)?.epoch(0))
    }

    /// Those of the images in batches.
    pub(crate) fn in_batches(
        batches: impl Iterator<Item = Result<Batch, PipelineError>>,
    ) -> Result<Self, PipelineError> {
        let mut moments = Self::default();
        for batch in batches {
            let batch = batch?;
            let samples = (0..batch.len()).filter_map(|row| batch.sample(row));
            samples.for_each(|sample| moments.add(sample.bytes));
        }
        Ok(moments)
    }

    fn add(&mut self, pixels: &[u8]) {
        let mut sums = [0_u64; 3];
        let mut squares = [0_u64; 3];
        for pixel in pixels.chunks_exact(3) {
            for channel in 0..3 {
                let value = u64::from(pixel[channel]);
                sums[channel] += value;
                squares[channel] += value * value;
            }
        }
        for channel in 0..3 {
            self.sums[channel] += u128::from(sums[channel]);
            self.squares[channel] += u128::from(squares[channel]);
        }
        self.pixels += (pixels.len() / 3) as u64;
        self.images += 1;
    }

    /// The number of images.
    #[must_use]
    pub const fn images(&self) -> u64 {
        self.images
    }

    /// The mean of each channel, from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "means are real numbers")]
    pub fn mean(&self) -> [f64; 3] {
        self.sums.map(|sum| sum as f64 / self.pixels as f64 / 255.0)
    }

    /// The standard deviation of each channel, from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "deviations are real numbers")]
    pub fn deviation(&self) -> [f64; 3] {
        std::array::from_fn(|channel| {
            // Exact up to here: the difference of two large sums.
            let sum = self.sums[channel];
            let spread = self.squares[channel] * u128::from(self.pixels) - sum * sum;
            (spread as f64).sqrt() / self.pixels as f64 / 255.0
        })
    }
}
