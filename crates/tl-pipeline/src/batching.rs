//! Batching: which samples come into a batch together, and how images of different sizes become one
//! array.

use tbl_io::{Facts, SampleSource, SourceKind};
use tl_decode::Exif;

use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::work::Work;

/// The grouping of samples into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Batching {
    /// Those that follow each other in the epoch's order. Images of one size are one array; images
    /// in their own sizes are a list.
    #[default]
    InOrder,
    /// Those of like sizes, each padded with zeros on the right and below to the size of the batch.
    Buckets(Buckets),
}

impl Batching {
    /// True if images of different sizes become one array.
    pub(crate) fn pads(self) -> bool {
        matches!(self, Self::Buckets(_))
    }
}

/// The grouping and padding of images of different sizes.
///
/// Sizes are those of the results, which follow from the recipe and from the sizes in the data
/// set's index: no image is opened. Samples are grouped only within a *window* of the epoch's
/// order, so that the order stays random and a state stays one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buckets {
    /// Global batches whose samples change places with each other; 1 leaves every sample in its
    /// batch. Default 16: in batches of 32 that saves most of the padding of photographs.
    pub window: u32,
    /// Width and height of batches are multiples of this: fewer different shapes, and those that a
    /// network with strides wants. Default 1.
    pub multiple: u32,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { window: 16, multiple: 1 }
    }
}

/// The largest side of an image.
const LARGEST_MULTIPLE: u32 = 65_535;

/// A window is held in memory: 12 bytes for each of its samples.
const LARGEST_WINDOW: u64 = 1 << 24;

impl Buckets {
    /// Checks that the settings go together and that the data set says how large its images are.
    pub(crate) fn check(
        self,
        work: &Work,
        exif: Exif,
        dataset: &Dataset,
        global_batch: u64,
    ) -> Result<(), PipelineError> {
        let setting =
            |setting, value, expected| Err(PipelineError::Setting { setting, value, expected });
        let Self { window, multiple } = self;
        if window == 0 || u64::from(window).saturating_mul(global_batch) > LARGEST_WINDOW {
            let expected = "at least 1, and a window of at most 2^24 samples";
            return setting("window", window.into(), expected);
        }
        if !(1..=LARGEST_MULTIPLE).contains(&multiple) {
            return setting("multiple", multiple.into(), "1 to 65535");
        }
        let produced = match work {
            Work::Images(recipe) if recipe.output_size().is_none() && recipe.views() == 1 => {
                if exif == Exif::Apply {
                    return Err(PipelineError::Unusable(format!(
                        "buckets take sizes from the index, where images that EXIF data turn \
                        (recipe `{recipe}`) are not rotated yet"
                    )));
                }
                if recipe.is_of_any_size() {
                    return Err(PipelineError::Unusable(format!(
                        "buckets take sizes from the index, and cannot be combined with the user's \
                        transform of any size in recipe `{recipe}`"
                    )));
                }
                None
            }
            Work::Images(recipe) => Some(recipe.to_string()),
            Work::Clips(_) => Some("clips".to_owned()),
            Work::Bytes | Work::Views => Some("bytes".to_owned()),
            Work::Columns(_) => Some("columns".to_owned()),
            Work::Tokens(_) => Some("tokens".to_owned()),
        };
        if let Some(produced) = produced {
            return Err(PipelineError::Unusable(format!(
                "bucketing needs variable-size images, one per sample; this loader produces \
                {produced}"
            )));
        }
        match dataset.shards().iter().find(|shard| !has_sizes(&***shard)) {
            Some(shard) => Err(PipelineError::UnknownSizes { location: shard.location().clone() }),
            None => Ok(()),
        }
    }
}

/// True if the index has sizes of images. Damaged images of a TBL file have no size there, so this
/// looks for any that has; other containers have the sizes of all or of none.
fn has_sizes(shard: &dyn SampleSource) -> bool {
    let count = shard.sample_count();
    let looked_at = if shard.kind() == SourceKind::Tbl2 { count } else { count.min(1) };
    // An entry that cannot be read leaves the question open.
    let has_size = |facts: Facts| facts.width > 0 && facts.height > 0;
    count == 0 || (0..looked_at).any(|index| shard.facts(index).map_or(true, has_size))
}

/// Pixels of images and of what is added around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaddingStats {
    /// Pixels of the images themselves.
    pub image_pixels: u64,
    /// Pixels of the batches, with what was added.
    pub padded_pixels: u64,
    /// Pixels that the batches would have had if samples had come together in the epoch's order.
    pub unbucketed_pixels: u64,
}

impl PaddingStats {
    /// The part of the padding that grouping saved, 0 to 1; less where grouping cost some.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn saved(&self) -> f64 {
        let added = |pixels: u64| pixels.saturating_sub(self.image_pixels) as f64;
        let before = added(self.unbucketed_pixels);
        let after = added(self.padded_pixels);
        if before > 0.0 { 1.0 - after / before } else { 0.0 }
    }

    /// The difference to `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            image_pixels: self.image_pixels.saturating_sub(earlier.image_pixels),
            padded_pixels: self.padded_pixels.saturating_sub(earlier.padded_pixels),
            unbucketed_pixels: self.unbucketed_pixels.saturating_sub(earlier.unbucketed_pixels),
        }
    }
}
