//! Further images of every sample: other recipes for its own image, and images of sidecar files.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tl_transform::{Channels, PixelType, Recipe};

use super::{Fields, refused};
use crate::error::PipelineError;
use crate::work::Work;

/// A further image of every sample, next to the one that [`Work::Images`] makes: a column of the
/// batch ([`Batch::column_named`](crate::Batch::column_named)).
///
/// Images of one size only: its numbers are laid out as [`ImageSpec`](crate::ImageSpec) says, `[H, W, 3]` or
/// `[3, H, W]` for each sample, with the number of views as first dimension if there are several.
///
/// ```
/// use tl_pipeline::{Fields, ImageField};
/// use tl_transform::Recipe;
///
/// // Two views of every photograph, from one decode.
/// let second = ImageField::of_sample("view2", Recipe::imagenet_train(224)?);
/// // The right image of a stereo pair, with the crop of the left one.
/// let right = ImageField::joint("right", "right.jpg");
/// let fields = Fields { images: vec![second, right], ..Fields::default() };
/// # let _ = fields;
/// # Ok::<(), tl_transform::RecipeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ImageField {
    /// The name of the column in batches.
    pub name: String,
    /// The image.
    pub source: ImageSource,
    /// The changes of the image.
    pub transform: ImageTransform,
}

/// The image of an [`ImageField`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageSource {
    /// The sample's own image. It is decoded once for all recipes, which must therefore agree in how
    /// it is decoded ([`Recipe::decode_mode`]).
    Sample,
    /// The image in the sidecar file with this extension. A sample without the file is an error.
    File(String),
}

/// The changes of the image of an [`ImageField`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ImageTransform {
    /// The changes of the sample's own image, with the same random numbers. Both images must have the
    /// same size.
    Joint,
    /// The moves of the sample's own image (crop, resize, border, flip), to pixels that keep the
    /// numbers that the file has, such as depths: no colours are changed, and nothing is converted to
    /// float or normalised. Both images must have the same size.
    Moves(PixelType, Channels),
    /// A recipe with random numbers of its own ([`Draw::of_image`](tl_transform::Draw::of_image)).
    Recipe(Recipe),
}

impl ImageField {
    /// The sample's own image in another recipe.
    #[must_use]
    pub fn of_sample(name: impl Into<String>, recipe: Recipe) -> Self {
        let transform = ImageTransform::Recipe(recipe);
        Self { name: name.into(), source: ImageSource::Sample, transform }
    }

    /// The image of a sidecar file, changed as the sample's own image is.
    #[must_use]
    pub fn joint(name: impl Into<String>, file: impl Into<String>) -> Self {
        let source = ImageSource::File(file.into());
        Self { name: name.into(), source, transform: ImageTransform::Joint }
    }

    /// The image of a sidecar file, moved as the sample's own image is, with numbers of this type that
    /// stay as they are.
    #[must_use]
    pub fn moving(
        name: impl Into<String>,
        file: impl Into<String>,
        pixels: PixelType,
        channels: Channels,
    ) -> Self {
        let source = ImageSource::File(file.into());
        Self { name: name.into(), source, transform: ImageTransform::Moves(pixels, channels) }
    }

    /// The image of a sidecar file in a recipe of its own.
    #[must_use]
    pub fn of_file(name: impl Into<String>, file: impl Into<String>, recipe: Recipe) -> Self {
        let source = ImageSource::File(file.into());
        Self { name: name.into(), source, transform: ImageTransform::Recipe(recipe) }
    }

    /// True for the image of a sidecar file.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.file().is_some()
    }

    /// The sidecar file that has the image.
    pub(crate) fn file(&self) -> Option<&String> {
        match &self.source {
            ImageSource::Sample => None,
            ImageSource::File(file) => Some(file),
        }
    }

    /// The recipe, if it is not that of the sample's own image.
    pub(crate) fn recipe(&self) -> Option<&Recipe> {
        match &self.transform {
            ImageTransform::Joint | ImageTransform::Moves(..) => None,
            ImageTransform::Recipe(recipe) => Some(recipe),
        }
    }

    /// The recipe whose results the images are, where `first` is that of the sample's own image.
    pub(crate) fn recipe_with<'a>(
        &'a self,
        first: &'a Recipe,
    ) -> Result<Cow<'a, Recipe>, PipelineError> {
        match &self.transform {
            ImageTransform::Joint => Ok(Cow::Borrowed(first)),
            ImageTransform::Recipe(recipe) => Ok(Cow::Borrowed(recipe)),
            ImageTransform::Moves(pixels, channels) => {
                let moving = first.moving_along(*pixels, *channels);
                let named = |error| refused(format!("image `{}`: {error}", self.name));
                Ok(Cow::Owned(moving.map_err(named)?))
            }
        }
    }

    fn check(&self, first: &Recipe) -> Result<(), PipelineError> {
        let Self { name, source, transform } = self;
        let recipe = &*self.recipe_with(first)?;
        if recipe.output_size().is_none() {
            return Err(refused(format!(
                "image `{name}`: recipe `{recipe}` leaves the size to the image; further images \
                need one size: add Resize((h, w)), CenterCrop or RandomResizedCrop"
            )));
        }
        match (source, transform) {
            (_, ImageTransform::Recipe(recipe)) if !recipe.batch_ops().is_empty() => {
                Err(refused(format!(
                    "image `{name}`: recipe `{recipe}` mixes batches; only the first image can be \
                    mixed"
                )))
            }
            (_, ImageTransform::Joint | ImageTransform::Moves(..))
                if !first.batch_ops().is_empty() =>
            {
                Err(refused(format!(
                    "image `{name}` shares the random numbers of recipe `{first}`, which mixes batches: \
                further images are not mixed"
                )))
            }
            (ImageSource::Sample, ImageTransform::Joint | ImageTransform::Moves(..)) => {
                Err(refused(format!(
                    "image `{name}` would equal the first image: give it a recipe or a sidecar file"
                )))
            }
            (ImageSource::Sample, ImageTransform::Recipe(recipe))
                if recipe.decode_mode() != first.decode_mode() =>
            {
                Err(refused(format!(
                    "image `{name}`: recipes of one image decode it once and need the same \
                    decode mode, not `{recipe}` and `{first}`"
                )))
            }
            (ImageSource::Sample, ImageTransform::Recipe(recipe))
                if (recipe.channels(), recipe.pixels()) != (first.channels(), first.pixels()) =>
            {
                Err(refused(format!(
                    "image `{name}`: recipes of one image decode it once and need the same \
                    channels and pixels, not `{recipe}` and `{first}`"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Fields {
    /// Checks the further images, which need a recipe for the first.
    pub(super) fn check_images(&self, work: &Work) -> Result<(), PipelineError> {
        let Some(image) = self.images.first() else { return Ok(()) };
        let Work::Images(first) = work else {
            let name = &image.name;
            return Err(refused(format!("image `{name}` needs samples that are decoded")));
        };
        self.images.iter().try_for_each(|image| image.check(first))?;
        let draws = self.images.iter().filter_map(ImageField::recipe).map(Recipe::draws);
        let views = draws.fold(first.draws(), u32::saturating_add);
        if views > Recipe::MAX_VIEWS {
            let limit = Recipe::MAX_VIEWS;
            return Err(refused(format!("{views} images of a sample, expected at most {limit}")));
        }
        Ok(())
    }

    /// Feeds a state's fingerprint with what decides the content of further images.
    pub(crate) fn hash_images(&self, hash: &mut Sha256) {
        for ImageField { name: _, source, transform } in &self.images {
            match source {
                ImageSource::Sample => hash.update(b"image of sample"),
                ImageSource::File(file) => {
                    hash.update(b"image of file");
                    hash.update((file.len() as u64).to_le_bytes());
                    hash.update(file);
                }
            }
            match transform {
                ImageTransform::Joint => hash.update(b"joint"),
                ImageTransform::Moves(pixels, channels) => {
                    hash.update(b"moves");
                    hash.update([u8::try_from(channels.count()).unwrap_or(u8::MAX)]);
                    hash.update(pixels.name());
                }
                ImageTransform::Recipe(recipe) => hash.update(recipe.hash().0),
            }
        }
    }

    /// Images of sidecar files that are decoded for every sample, masks aside.
    pub(crate) fn decoded_images(&self) -> u64 {
        self.images.iter().filter_map(ImageField::file).count() as u64
    }
}
