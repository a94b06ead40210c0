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

/// A user's transform that gets the result of the plans before it, and the renderer of the operations
/// after it up to the next one, which are planned for the image that it makes.
#[derive(Debug)]
pub(super) struct Link {
    /// The number of the transform's operation.
    op: u8,
    size: UserSize,
    transforms: BoundTransforms,
    /// The image that the transform gets.
    image: Image,
    renderer: SampleRenderer,
}

/// The annotations of a sample that go along with its image.
pub(crate) struct Followers<'a> {
    pub(crate) annotator: &'a mut Annotator,
    /// The most bytes of an array.
    pub(crate) limit: u64,
}

impl Link {
    /// Runs the transform on its image, and on the annotations as `placed` says. Images may have
    /// `max_bytes`.
    fn run(
        &mut self,
        placed: &Placed<'_>,
        draw: Draw,
        followers: &mut Option<Followers<'_>>,
        max_bytes: u64,
    ) -> Result<tl_transform::Image, SampleFault> {
        let mut annotations = match followers {
            Some(Followers { annotator, limit }) => annotator.moved(placed, *limit)?,
            None => UserAnnotations::default(),
        };
        let mut image = self.take_image();
        let stream = Stream { draw, op: self.op };
        let expected = self.size.of(image.size());
        let position = placed.plans.first().map_or(0, |plan| plan.steps.len());
        let ran = self.transforms.run(stream, expected, max_bytes, &mut image, &mut annotations);
        match ran {
            None => Err(StepError::NoUserTransform { position, op: self.op })?,
            Some(Err((name, source))) => {
                Err(StepError::UserTransform { position, name, source })?;
            }
            Some(Ok(())) => {}
        }
        if let Some(Followers { annotator, .. }) = followers {
            annotator.carry(annotations);
        }
        Ok(image)
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

    /// Releases buffers larger than `bytes`.
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
        let options = *self.decoder.options();
        let mut rest = self.outputs.recipe().clone();
        let mut before: Option<Link> = None;
        let mut links = Vec::new();
        while let Some(split) = rest.split(&user_transforms, has_annotations) {
            let part = Self::new(&split.before, options);
            let part = part.with_plain_transforms(user_transforms.clone());
            match before.take() {
                None => self = part,
                Some(link) => links.push(Link { renderer: part, ..link }),
            }
            before = Some(Link {
                op: split.op,
                size: split.size,
                transforms: user_transforms.clone(),
                image: Image::new(),
                // That of the operations up to the next one is known then.
                renderer: Self::new(&split.after, options),
            });
            rest = split.after;
        }
        match before {
            None => self.with_plain_transforms(user_transforms),
            Some(mut link) => {
                link.renderer = link.renderer.with_plain_transforms(user_transforms);
                links.push(link);
                Self { links, ..self }
            }
        }
    }

    fn with_plain_transforms(mut self, user_transforms: BoundTransforms) -> Self {
        self.outputs = self.outputs.with_user_transforms(user_transforms);
        self
    }

    /// Renders the operations before the first user's transform between plans, into its image, and
    /// from transform to transform the rest.
    pub(super) fn render_linked(
        &mut self,
        links: &mut [Link],
        input: Input<'_>,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        let Drawn::At(draw) = drawn else {
            unreachable!("`LoaderConfig::bind` refuses images that move with such a recipe")
        };
        let max_bytes = self.decoder.options().limits.max_decoded_bytes;
        let Targets { mut first, mut others, mut followers, .. } = targets;
        let mut image = None::<tl_transform::Image>;
        let mut input = Some(input);
        for number in 0..=links.len() {
            let (done, next) = links.split_at_mut(number);
            let input = match &image {
                Some(image) => Input::Pixels(image.pixels(), image.size()),
                None => input.take().expect("the first renderer takes the input"),
            };
            let target = match next.first_mut() {
                Some(link) => Target::Image(&mut link.image),
                None => first.reborrow(),
            };
            let others = others.take();
            let targets = Targets { first: target, others, followers: None, pictures: None };
            let placed = match done.last_mut() {
                None => self.render_timed(input, drawn, targets, metrics),
                Some(link) => link.renderer.render_timed(input, drawn, targets, metrics),
            };
            placed?;
            let Some(link) = next.first_mut() else { break };
            let renderer = done.last().map_or(&*self, |link| &link.renderer);
            let plans = renderer.outputs.plans();
            let placed = Placed { plans, size: renderer.size, room: None };
            image = Some(link.run(&placed, draw, &mut followers, max_bytes)?);
            metrics.lap(Stage::Transform);
        }
        Ok(())
    }

    /// The renderer of the operations after the last user's transform between plans.
    fn last(&self) -> &Self {
        self.links.last().map_or(self, |link| &link.renderer)
    }

    /// Whether a user's transform runs between two plans, and gets annotations if there are any.
    pub(crate) fn is_linked(&self) -> bool {
        !self.links.is_empty()
    }

    /// The plans of the last sample, as [`SampleRenderer::render`] returned them.
    pub(crate) fn plans(&self) -> &[Plan] {
        self.last().outputs.plans()
    }

    /// Width and height of the last sample's image before any of [`SampleRenderer::plans`].
    pub(crate) fn image_size(&self) -> (u32, u32) {
        self.last().size
    }
}
