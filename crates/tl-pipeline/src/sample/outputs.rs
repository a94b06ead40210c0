//! The images that are made of one decoded sample, each by its recipe.

use tl_decode::Image;
use tl_handoff::slab::ColumnsMut;
use tl_simd::Level;
use tl_simd::resample::ImageView;
use tl_transform::{BoundTransforms, Channels, DecodeMode, Plan, Recipe, StepError};

use super::{Drawn, Target, Targets};
use crate::error::{AnnotationFault, SampleFault};
use crate::padding::Padding;
use crate::render::Renderer;
use crate::row::RowExtras;

/// Room for the steps of a plan: few recipes have more, and those make more room once.
const STEPS: usize = 16;

/// The images that are made of every sample: that of the loader's recipe, and further ones.
#[derive(Debug)]
pub(super) struct Outputs {
    first: Output,
    others: Vec<OtherOutput>,
    /// Bytes that the images on the way to a result may have.
    max_bytes: u64,
}

/// A recipe and its plans for the current sample, one for each of its views.
#[derive(Debug)]
struct Output {
    recipe: Recipe,
    renderer: Renderer,
    plans: Vec<Plan>,
}

#[derive(Debug)]
struct OtherOutput {
    output: Output,
    /// The number of its first draw among those of the sample.
    first_draw: u32,
    /// The column that has its results.
    column: usize,
}

/// The memory of a row that the results go to.
pub(super) struct Rows<'a, 'r> {
    first: &'a mut [u8],
    others: Option<&'a mut ColumnsMut<'r, RowExtras>>,
}

impl Outputs {
    pub(super) fn new(recipe: &Recipe, max_bytes: u64) -> Self {
        Self { first: Output::new(recipe, max_bytes), others: Vec::new(), max_bytes }
    }

    /// Adds a recipe whose results go to column number `column`.
    pub(super) fn add(&mut self, recipe: &Recipe, user_transforms: BoundTransforms, column: usize) {
        let others = self.others.iter().map(|other| other.output.recipe.draws());
        let first_draw = others.fold(self.first.recipe.draws(), u32::saturating_add);
        let mut output = Output::new(recipe, self.max_bytes);
        output.renderer = output.renderer.with_user_transforms(user_transforms);
        self.others.push(OtherOutput { output, first_draw, column });
    }

    pub(super) fn with_level(self, level: Level) -> Self {
        let Self { first, others, max_bytes } = self;
        let others = others.into_iter().map(|other| {
            let output = other.output.with_level(level);
            OtherOutput { output, ..other }
        });
        Self { first: first.with_level(level), others: others.collect(), max_bytes }
    }

    pub(super) fn with_user_transforms(mut self, user_transforms: BoundTransforms) -> Self {
        self.first.renderer = self.first.renderer.with_user_transforms(user_transforms);
        self
    }

    /// The first recipe.
    pub(super) fn recipe(&self) -> &Recipe {
        &self.first.recipe
    }

    /// True if the decoded pixels are the only result.
    pub(super) fn only_decode(&self) -> bool {
        self.first.recipe.ops().is_empty() && self.first.plans.len() == 1 && self.others.is_empty()
    }

    /// The accuracy of decoding, which all recipes have in common.
    pub(super) fn decode_mode(&self) -> DecodeMode {
        self.first.recipe.decode_mode()
    }

    /// The channels of the decoded pixels, which all recipes have in common.
    pub(super) fn channels(&self) -> Channels {
        self.first.recipe.channels()
    }

    /// True if pixels are others than 8-bit RGB or grey.
    pub(super) fn is_wide(&self) -> bool {
        self.first.recipe.is_wide()
    }

    /// A view of decoded pixels.
    pub(super) fn view<'a>(&self, pixels: &'a [u8], width: u32, height: u32) -> ImageView<'a> {
        self.first.renderer.view(pixels, width, height)
    }

    /// Bytes of a decoded pixel.
    pub(super) fn pixel_bytes(&self) -> usize {
        self.first.renderer.pixel_bytes()
    }

    /// The plans of the loader's recipe.
    pub(super) fn plans(&self) -> &[Plan] {
        &self.first.plans
    }

    /// The plans of all recipes.
    pub(super) fn all_plans(&self) -> impl Iterator<Item = &Plan> {
        self.first.plans.iter().chain(self.others.iter().flat_map(|other| &other.output.plans))
    }

    /// Takes a whole image of this size as the result.
    pub(super) fn set_whole(&mut self, size: (u32, u32)) {
        self.first.plans.fill(Plan::whole(size.0, size.1));
    }

    /// Makes the plans for an image of this size.
    pub(super) fn plan(&mut self, size: (u32, u32), drawn: Drawn<'_>) -> Result<(), SampleFault> {
        let draw = match drawn {
            Drawn::At(draw) => draw,
            Drawn::Like { plans, size: expected, file, keeps_numbers } => {
                if size != expected {
                    let file = file.to_owned();
                    return Err(AnnotationFault::ImageSize { file, size, expected }.into());
                }
                self.first.plans.clone_from_slice(plans);
                if keeps_numbers {
                    self.first.plans.iter_mut().for_each(Plan::keep_geometry);
                }
                return Ok(());
            }
        };
        let first = std::iter::once((&mut self.first, 0));
        let others = self.others.iter_mut().map(|other| (&mut other.output, other.first_draw));
        for (Output { recipe, plans, .. }, first_draw) in first.chain(others) {
            let draw = draw.of_image(first_draw);
            for (view, plan) in (0..).zip(plans) {
                recipe.plan_view_into(size, draw, view, plan)?;
            }
        }
        Ok(())
    }

    /// Makes room for the results of the plans, once their images on the way are seen to be small
    /// enough.
    pub(super) fn rows<'a, 'r>(
        &self,
        targets: Targets<'a, 'r>,
    ) -> Result<Rows<'a, 'r>, SampleFault> {
        for output in std::iter::once(&self.first).chain(self.others.iter().map(|o| &o.output)) {
            for plan in &output.plans {
                self.check_limit(output.recipe.scratch_bytes(plan)?)?;
            }
        }
        let first = match targets.first {
            Target::Row(out) => out,
            Target::Padded { row, size } => self.corner(row, size)?,
            Target::Image(image) => self.image(image)?,
        };
        Ok(Rows { first, others: targets.others })
    }

    /// Writes the results, each by `run`.
    pub(super) fn write(
        &mut self,
        rows: Rows<'_, '_>,
        mut run: impl FnMut(&mut Renderer, &Plan, &mut [u8]) -> Result<(), StepError>,
    ) -> Result<(), SampleFault> {
        self.first.write(rows.first, &mut run)?;
        let Some(columns) = rows.others else { return Ok(()) };
        for other in &mut self.others {
            other.output.write(columns.get(other.column), &mut run)?;
        }
        Ok(())
    }

    /// Spreads a result that is at the front of `row` to images of `size`, with zeros around it.
    pub(super) fn pad(&self, row: &mut [u8], size: (u32, u32)) {
        let padding = Padding::of_images(self.first.recipe.output(), self.channels(), size);
        self.first.plans.iter().for_each(|plan| padding.spread(row, plan.output_size()));
    }

    /// Gives back buffers larger than `bytes`.
    pub(super) fn trim(&mut self, bytes: usize) {
        self.first.renderer.trim(bytes);
        self.others.iter_mut().for_each(|other| other.output.renderer.trim(bytes));
    }

    fn check_limit(&self, bytes: u64) -> Result<(), SampleFault> {
        let limit = self.max_bytes;
        if bytes > limit { Err(SampleFault::OutputSize { bytes, limit }) } else { Ok(()) }
    }

    /// The memory of an image that takes on the size of the results.
    fn image<'a>(&self, image: &'a mut Image) -> Result<&'a mut [u8], SampleFault> {
        let mut bytes: usize = 0;
        (image.width, image.height) = (0, 0);
        for (width, height) in self.first.plans.iter().map(Plan::output_size) {
            let of_result = self.first.renderer.output_bytes((width, height));
            bytes = bytes.saturating_add(of_result);
            self.check_limit(bytes as u64)?;
            (image.width, image.height) = (width, image.height.saturating_add(height));
        }
        image.channels = self.channels().count().to_le_bytes()[0];
        image.pixels = self.first.recipe.pixels();
        image.data.resize(bytes, 0);
        Ok(&mut image.data)
    }

    /// The front of a padded row, where the result is made.
    fn corner<'a>(
        &self,
        row: &'a mut [u8],
        batch_size: (u32, u32),
    ) -> Result<&'a mut [u8], SampleFault> {
        let (batch_width, batch_height) = batch_size;
        let [plan] = &self.first.plans[..] else {
            unreachable!("`Buckets::check` allows one image for each sample")
        };
        let (width, height) = plan.output_size();
        let bytes = self.first.renderer.output_bytes((width, height));
        if width > batch_width || height > batch_height {
            return Err(SampleFault::BeyondBatch { width, height, batch_width, batch_height });
        }
        Ok(&mut row[..bytes])
    }
}

impl Output {
    fn new(recipe: &Recipe, max_bytes: u64) -> Self {
        let plan = || Plan { steps: Vec::with_capacity(STEPS), ..Plan::whole(0, 0) };
        Self {
            recipe: recipe.clone(),
            renderer: Renderer::new(recipe).with_memory_limit(max_bytes),
            plans: std::iter::repeat_with(plan).take(recipe.views() as usize).collect(),
        }
    }

    fn with_level(self, level: Level) -> Self {
        Self { renderer: self.renderer.with_level(level), ..self }
    }

    /// Carries out each plan in order, into its part of `out`.
    fn write(
        &mut self,
        out: &mut [u8],
        run: &mut impl FnMut(&mut Renderer, &Plan, &mut [u8]) -> Result<(), StepError>,
    ) -> Result<(), SampleFault> {
        let mut rest = out;
        for plan in &self.plans {
            let bytes = self.renderer.output_bytes(plan.output_size());
            let part = rest.split_off_mut(..bytes).expect("the row has the size of the results");
            run(&mut self.renderer, plan, part)?;
        }
        assert!(rest.is_empty(), "the row is {} bytes longer than the results", rest.len());
        Ok(())
    }
}
