//! A user's transform between two plans, and the rest of its recipe.

use std::mem;

use tl_decode::Image;
use tl_simd::Level;
use tl_transform::op::UserSize;
use tl_transform::{BoundTransforms, Draw, Plan, StepError, Stream, UserAnnotations};

use super::{CHANNELS, Drawn, Input, SampleRenderer, Target, Targets};
use crate::error::SampleFault;
use crate::fields::{Annotator, Placed};
use crate::metrics::WorkerMetrics;
use crate::stage::Stage;

/// A user's transform that gets the result of a sample's first plans, and the renderer of the operations
/// after it, which are planned for the image that it makes.
#[derive(Debug)]
pub(super) struct Link {
    /// The number of the transform's operation.
    op: u8,
    size: UserSize,
    transforms: BoundTransforms,
    /// The image that the transform gets.
    image: Image,
    renderer: SampleRenderer,
    /// The most bytes that an image may have.
    max_bytes: u64,
}

/// The annotations of a sample that go along with its image.
pub(crate) struct Followers<'a> {
    pub(crate) annotator: &'a mut Annotator,
    /// The most bytes of an array.
    pub(crate) limit: u64,
}

impl Link {
    /// Runs the transform on the image and on the annotations as `placed` says, and renders the rest.
    fn run(
        &mut self,
        placed: &Placed<'_>,
        draw: Draw,
        target: Target<'_>,
        mut followers: Option<Followers<'_>>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        let mut annotations = match &mut followers {
            Some(Followers { annotator, limit }) => annotator.moved(placed, *limit)?,
            None => UserAnnotations::default(),
        };
        let mut image = self.take_image();
        let stream = Stream { draw, op: self.op };
        let expected = self.size.of(image.size());
        let position = placed.plans.first().map_or(0, |plan| plan.steps.len());
        match self.transforms.run(stream, expected, &mut image, &mut annotations) {
            None => Err(StepError::NoUserTransform { position, op: self.op })?,
            Some(Err((name, source))) => {
                Err(StepError::UserTransform { position, name, source })?;
            }
            Some(Ok(())) => {}
        }
        let bytes = image.pixels().len() as u64;
        if bytes > self.max_bytes {
            return Err(SampleFault::OutputSize { bytes, limit: self.max_bytes });
        }
        if let Some(Followers { annotator, .. }) = &mut followers {
            annotator.carry(annotations);
        }
        metrics.lap(Stage::Transform);
        let input = Input::Pixels(image.pixels(), image.size());
        let targets = Targets { first: target, others: None, followers };
        self.renderer.render_timed(input, Drawn::At(draw), targets, metrics)?;
        Ok(())
    }

    /// The image in red, green and blue.
    fn take_image(&mut self) -> tl_transform::Image {
        let Image { width, height, channels, ref mut data, .. } = self.image;
        let mut data = mem::take(data);
        if channels == 1 {
            data = data.iter().flat_map(|grey| [*grey; CHANNELS]).collect();
        }
        tl_transform::Image::from_pixels(width, height, data)
    }

    /// The same with the instructions of `level`.
    pub(super) fn with_level(self, level: Level) -> Self {
        Self { renderer: self.renderer.with_level(level), ..self }
    }

    /// Gives back buffers larger than `bytes`.
    pub(super) fn trim(&mut self, bytes: usize) {
        self.renderer.trim(bytes);
    }
}

impl SampleRenderer {
    /// The same with the user's transforms of its recipe; with `has_annotations` those that move
    /// pixels get annotations too ([`Followers`]).
    pub(crate) fn with_transforms(
        mut self,
        user_transforms: BoundTransforms,
        has_annotations: bool,
    ) -> Self {
        let Some(split) = self.outputs.recipe().split(&user_transforms, has_annotations) else {
            self.outputs = self.outputs.with_user_transforms(user_transforms);
            return self;
        };
        let options = *self.decoder.options();
        let rest = Self::new(&split.after, options);
        let link = Link {
            op: split.op,
            size: split.size,
            transforms: user_transforms.clone(),
            image: Image::new(),
            renderer: rest.with_transforms(user_transforms.clone(), has_annotations),
            max_bytes: options.limits.max_decoded_bytes,
        };
        let first = Self::new(&split.before, options).with_user_transforms(user_transforms);
        Self { next: Some(Box::new(link)), ..first }
    }

    /// Renders what comes before a user's transform, into its image, and then the rest.
    pub(super) fn render_linked(
        &mut self,
        link: &mut Link,
        input: Input<'_>,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        let Drawn::At(draw) = drawn else {
            unreachable!("`LoaderConfig::bind` refuses images that move with such a recipe")
        };
        let Targets { first, others, followers } = targets;
        let before = Targets { first: Target::Image(&mut link.image), others, followers: None };
        self.render_timed(input, drawn, before, metrics)?;
        let placed = Placed { plans: self.outputs.plans(), size: self.size, room: None };
        link.run(&placed, draw, first, followers, metrics)
    }

    /// Whether a user's transform runs between two plans, and gets annotations if there are any.
    pub(crate) fn is_linked(&self) -> bool {
        self.next.is_some()
    }

    /// The plans of the last sample, as [`SampleRenderer::render`] returned them.
    pub(crate) fn plans(&self) -> &[Plan] {
        self.next.as_ref().map_or(self.outputs.plans(), |link| link.renderer.plans())
    }

    /// Width and height of the last sample's image before any of [`SampleRenderer::plans`].
    pub(crate) fn image_size(&self) -> (u32, u32) {
        self.next.as_ref().map_or(self.size, |link| link.renderer.image_size())
    }
}
