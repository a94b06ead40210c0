//! The layout of a batch: what its images are like, and the memory it takes.

use tl_handoff::slab::{RowBytes, SlabLayout};
use tl_handoff::sync::Arc;
use tl_transform::{Channels, Layout, OutputSpec, Recipe};

use crate::batching::PaddingStats;
use crate::config::LoaderConfig;
use crate::error::PipelineError;
use crate::fields::{ImageField, KeypointLayout, MaskType};
use crate::table::ColumnSpec;
use crate::work::Work;

/// The layout of the images in a batch of equally sized ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSpec {
    /// Images that the recipe makes of one sample: 1, or more with crops such as
    /// [`FiveCrop`](tl_transform::op::FiveCrop).
    pub views: u32,
    /// Frames of a clip; `None` for still images. Each view is then a clip.
    pub frames: Option<u32>,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// Type and arrangement of the numbers.
    pub output: OutputSpec,
    /// The channels of each image.
    pub channels: Channels,
}

impl ImageSpec {
    /// That of a recipe whose results have one size.
    pub(crate) fn of(recipe: &Recipe) -> Option<Self> {
        recipe.output_size().map(|size| spec_of(recipe, size))
    }

    /// The dimensions of the images of one sample: height, width and channels in the order of the
    /// layout, after the number of views if there are several.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        self.dimensions().collect()
    }

    /// The dimensions of [`shape`](Self::shape), without an allocation.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = usize> {
        let width = self.width as usize;
        let height = self.height as usize;
        let channels = self.channels.count() as usize;
        let image = match self.output.layout {
            Layout::Hwc => [height, width, channels],
            Layout::Chw => [channels, height, width],
        };
        let views = (self.views > 1).then_some(self.views as usize);
        let frames = self.frames.map(|frames| frames as usize);
        views.into_iter().chain(frames).chain(image)
    }

    /// Bytes of the images of one sample, if that fits the address space.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let width = self.width as usize;
        let height = self.height as usize;
        let channels = self.channels.count() as usize;
        let frames = self.frames.unwrap_or(1) as usize;
        [self.views as usize, frames, width, height, channels, self.output.dtype.bytes()]
            .into_iter()
            .try_fold(1usize, usize::checked_mul)
    }
}

/// The kind of a batch's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Samples: images, or bytes.
    Samples,
    /// Rows of a table.
    Table,
    /// Windows of tokens, with a further one in each row for its targets, if it has targets.
    Windows { targets: bool },
    /// Documents, with targets in a column of their own.
    Documents { targets: bool },
}

/// The layout of one batch, which all batches have in common unless images are padded.
#[derive(Clone, Debug)]
pub(crate) struct BatchLayout {
    /// `None` if samples keep their sizes, or are not images.
    pub(crate) spec: Option<ImageSpec>,
    pub(crate) shape: SlabLayout,
    /// The type of the masks in the slab, if it has masks.
    pub(crate) mask: Option<MaskType>,
    /// True if images are padded.
    pub(crate) is_padded: bool,
    pub(crate) padding: PaddingStats,
    /// The columns of a table, or those of fields.
    pub(crate) columns: Arc<[ColumnSpec]>,
    /// Those of [`Fields::keypoints`](crate::Fields::keypoints).
    pub(crate) keypoints: Arc<[KeypointLayout]>,
    /// The kind of rows.
    pub(crate) rows: RowKind,
}

impl BatchLayout {
    /// That of a loader's batches where it is always the same.
    pub(crate) fn fixed(
        config: &LoaderConfig,
        columns: Arc<[ColumnSpec]>,
        keypoints: Arc<[KeypointLayout]>,
        rows: RowKind,
    ) -> Result<Self, PipelineError> {
        let spec = config.work.recipe().and_then(|recipe| ImageSpec::of(&recipe));
        let spec = spec.map(|spec| ImageSpec { frames: config.work.frames(), ..spec });
        let shape = shape(config, spec, &columns).ok_or(PipelineError::Setting {
            setting: "batch_size",
            value: config.batch_size as u64,
            expected: "a batch that fits the address space",
        })?;
        let mask = mask(config, spec);
        let padding = PaddingStats::default();
        let is_padded = false;
        Ok(Self { spec, shape, mask, is_padded, padding, columns, keypoints, rows })
    }

    /// The columns of the further images that the configuration names.
    pub(crate) fn image_columns(config: &LoaderConfig) -> Vec<ColumnSpec> {
        let Work::Images(first) = &config.work else { return Vec::new() };
        let column = |image: &ImageField| {
            let spec = ImageSpec::of(&*image.recipe_with(first).ok()?)?;
            let number = spec.output.dtype.into();
            Some(ColumnSpec { name: image.name.clone(), number, shape: spec.shape() })
        };
        // `Fields::check` refuses those without a size.
        config.fields.images.iter().filter_map(column).collect()
    }

    /// That of a batch whose images are padded to `size`; `None` where that leaves the address space.
    pub(crate) fn padded(
        &self,
        config: &LoaderConfig,
        recipe: &Recipe,
        size: (u32, u32),
        padding: PaddingStats,
    ) -> Option<Self> {
        let spec = Some(spec_of(recipe, size));
        let shape = shape(config, spec, &self.columns)?;
        let mask = mask(config, spec);
        Some(Self { spec, shape, mask, is_padded: true, padding, ..self.clone() })
    }
}

fn spec_of(recipe: &Recipe, size: (u32, u32)) -> ImageSpec {
    let (width, height) = size;
    let channels = recipe.channels();
    let views = recipe.views();
    ImageSpec { views, frames: None, width, height, output: recipe.output(), channels }
}

fn shape(
    config: &LoaderConfig,
    spec: Option<ImageSpec>,
    columns: &[ColumnSpec],
) -> Option<SlabLayout> {
    let images = spec.map_or(Some(0), |spec| spec.bytes())?;
    let masks = match (mask(config, spec), spec) {
        (Some(dtype), Some(ImageSpec { width, height, .. })) => {
            (width as usize).checked_mul(height as usize)?.checked_mul(dtype.bytes())?
        }
        _ => 0,
    };
    let columns = columns.iter().map(ColumnSpec::row_bytes).collect::<Option<Vec<usize>>>()?;
    SlabLayout::new(config.batch_size, RowBytes { images, masks })?
        .with_columns(columns.into_iter())
}

/// The type of masks of images of one size; those of images in their own sizes are not in the slab.
fn mask(config: &LoaderConfig, spec: Option<ImageSpec>) -> Option<MaskType> {
    spec.and(config.fields.mask.as_ref()).map(|field| field.dtype)
}
