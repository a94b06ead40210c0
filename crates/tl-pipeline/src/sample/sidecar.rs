//! Images of sidecar files, rendered next to the sample's own image.

use tbl_format::SampleFormat;
use tl_decode::DecodeOptions;
use tl_handoff::slab::ColumnsMut;
use tl_transform::{Draw, Recipe};

use super::{Drawn, Input, SampleRenderer, Stored, Target, Targets};
use crate::config::{BoundRecipes, LoaderConfig};
use crate::error::{AnnotationFault, SampleFault};
use crate::fields::{Annotator, ImageField, ImageSource, ImageTransform, Placed};
use crate::metrics::WorkerMetrics;
use crate::note::LoaderNote;
use crate::row::RowExtras;
use crate::work::Work;

impl SampleRenderer {
    /// The same with the further recipes for the sample's own image.
    pub(crate) fn with_images(self, config: &LoaderConfig, user_transforms: &BoundRecipes) -> Self {
        let images = config.fields.images.iter().zip(&user_transforms.images).enumerate();
        images.fold(self, |renderer, (column, (image, user))| {
            match (&image.source, image.recipe()) {
                (ImageSource::Sample, Some(recipe)) => {
                    renderer.with_image(recipe, user.clone(), column)
                }
                _ => renderer,
            }
        })
    }
}

/// The renderer of one image of a sidecar file.
#[derive(Debug)]
pub(crate) struct SidecarImage {
    renderer: SampleRenderer,
    /// The extension of the file.
    extension: String,
    is_joint: bool,
    /// Whether the image is moved and keeps its numbers.
    keeps_numbers: bool,
    /// The number of its first draw among those of the sample.
    first_draw: u32,
    /// The column of the batch.
    column: usize,
    bytes: Vec<u8>,
}

impl SidecarImage {
    /// The renderers of all images of sidecar files.
    pub(crate) fn all(
        config: &LoaderConfig,
        decode: DecodeOptions,
        user_transforms: &BoundRecipes,
    ) -> Vec<Self> {
        let Work::Images(first) = &config.work else { return Vec::new() };
        // The images of the sample itself are numbered before those of its files.
        let of_sample = config.fields.images.iter().filter(|image| image.file().is_none());
        let draws = of_sample.filter_map(ImageField::recipe).map(Recipe::draws);
        let mut next = draws.fold(first.draws(), u32::saturating_add);
        let images = config.fields.images.iter().zip(&user_transforms.images).enumerate();
        let images = images.filter_map(|(column, (image, user))| {
            let extension = image.file()?.clone();
            let recipe = image.recipe();
            let made_by = image.recipe_with(first).expect("`Fields::check` has seen it");
            let renderer = SampleRenderer::new(&made_by, decode);
            let renderer = renderer.with_user_transforms(user.clone());
            let renderer = renderer.with_decoders(config.decoders.clone());
            let first_draw = next;
            next = next.saturating_add(recipe.map_or(0, Recipe::draws));
            let is_joint = recipe.is_none();
            let keeps_numbers = matches!(image.transform, ImageTransform::Moves(..));
            let bytes = Vec::new();
            Some(Self { renderer, extension, is_joint, keeps_numbers, first_draw, column, bytes })
        });
        images.collect()
    }

    /// Renders the image of a sample, whose files `annotator` has read, into its column.
    pub(crate) fn render(
        &mut self,
        annotator: &Annotator,
        placed: &Placed<'_>,
        draw: Draw,
        columns: &mut ColumnsMut<'_, RowExtras>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        let Self { renderer, extension, bytes, .. } = self;
        bytes.clear();
        bytes.extend_from_slice(annotator.file(extension)?);
        // Raw pixels have no size here, so every file counts as an encoded image.
        let format = SampleFormat::Unknown;
        let stored = Stored { format, size: (0, 0), bytes, row_index: None };
        let drawn = if self.is_joint {
            let keeps_numbers = self.keeps_numbers;
            let Placed { plans, size, .. } = *placed;
            Drawn::Like { plans, size, file: extension, keeps_numbers }
        } else {
            Drawn::At(draw.of_image(self.first_draw))
        };
        let targets = Targets::only(Target::Row(columns.get(self.column)));
        let is_custom = if renderer.has_decoders() {
            // The end of the file's name.
            renderer.decode_custom(format!(".{extension}").as_bytes(), &stored)
        } else {
            Ok(false)
        };
        let rendered = match is_custom {
            Ok(true) => renderer.render_decoded(drawn, targets, metrics).map(drop),
            Ok(false) => {
                let input = Input::Stored(stored);
                renderer.render_timed(input, drawn, targets, metrics).map(drop)
            }
            Err(fault) => Err(fault),
        };
        rendered.map_err(|fault| {
            if matches!(fault, SampleFault::Annotation(_)) {
                return fault;
            }
            let file = extension.clone();
            AnnotationFault::Image { file, source: Box::new(fault) }.into()
        })
    }

    /// As [`SampleRenderer::take_reduced`].
    pub(crate) fn take_reduced(&mut self, sample: u64) -> Option<LoaderNote> {
        self.renderer.take_reduced(sample)
    }

    /// Gives back buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.renderer.trim(bytes);
        if self.bytes.capacity() > bytes {
            self.bytes = Vec::new();
        }
    }
}
