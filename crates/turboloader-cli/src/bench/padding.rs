//! The cost of padding images of different sizes.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{Loader, PaddingStats};

use super::rounded;

/// Padding in percent of the images' pixels.
#[derive(Debug, Serialize)]
pub(super) struct PaddingResult {
    percent: f64,
    percent_without_buckets: f64,
    saved_percent: f64,
}

impl PaddingResult {
    /// That of all batches so far; `None` where none was padded.
    #[expect(clippy::cast_precision_loss, reason = "percent with one decimal")]
    pub(super) fn of(loader: &Loader) -> Option<Self> {
        let padding = loader.stats().padding;
        let PaddingStats { image_pixels, padded_pixels, unbucketed_pixels } = padding;
        let images = image_pixels as f64;
        let added = |pixels: u64| rounded(100.0 * (pixels as f64 - images) / images, 1);
        (image_pixels > 0).then(|| Self {
            percent: added(padded_pixels),
            percent_without_buckets: added(unbucketed_pixels),
            saved_percent: rounded(100.0 * padding.saved(), 1),
        })
    }
}

impl fmt::Display for PaddingResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percent, percent_without_buckets, saved_percent } = self;
        write!(
            f,
            "padding adds {percent} % to the images' pixels, {percent_without_buckets} % without \
             buckets: {saved_percent} % of it is saved"
        )
    }
}
