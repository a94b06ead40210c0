//! Recipes: what happens to every image between decoding and the batch, as plain data.

mod pixels;
mod split;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::batch_op::BatchOp;
use crate::bounds::{self, is_size};
use crate::decode_mode::DecodeMode;
use crate::draw::Drawing;
use crate::error::{PlanError, RecipeError};
use crate::op::{
    self, CenterCrop, Domain, FixedSizes, Normalize, Op, RandomHorizontalFlip, RandomResizedCrop,
    Resize, ToFloat,
};
use crate::output::{Channels, Dtype, Layout, OutputSpec, PixelType, pixels as pixel_type};
use crate::parity::Parity;
use crate::plan::Plan;
use crate::stream::Draw;

pub use split::Split;

/// A checked list of operations, how photographs are decoded for them, and the form of the output.
///
/// Operations on pixels come first, in any order, then at most one conversion to float, one
/// normalisation, and operations that erase. It serialises with serde, and reading it back checks
/// it again.
///
/// ```
/// use tl_transform::Recipe;
///
/// let recipe = Recipe::imagenet_eval(224)?;
/// assert_eq!(
///     recipe.to_string(),
///     "Resize(256, bilinear) -> CenterCrop(224x224) -> ToFloat -> \
///      Normalize(mean [0.485, 0.456, 0.406], std [0.229, 0.224, 0.225]) -> f32 CHW"
/// );
/// let json = serde_json::to_string(&recipe)?;
/// assert_eq!(serde_json::from_str::<Recipe>(&json)?, recipe);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Recipe {
    ops: Vec<Op>,
    output: OutputSpec,
    decode: DecodeMode,
    parity: Parity,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    batch_ops: Vec<BatchOp>,
    #[serde(skip_serializing_if = "is_one")]
    draws: u32,
    #[serde(skip_serializing_if = "is_rgb")]
    channels: Channels,
    #[serde(skip_serializing_if = "is_u8", with = "pixel_type")]
    pixels: PixelType,
    /// The number of the first operation in the random streams: that of the whole recipe, of which
    /// this may be a part.
    #[serde(skip)]
    first_op: u8,
}

/// The name of user's transforms that stand in a recipe's own list alone.
const ANY_SIZE: &str = "a user's transform of any size";

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_one(draws: &u32) -> bool {
    *draws == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_rgb(channels: &Channels) -> bool {
    *channels == Channels::Rgb
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_u8(pixels: &PixelType) -> bool {
    *pixels == PixelType::U8
}

impl Recipe {
    /// The most operations a recipe can have, those within others included: each has a number in
    /// the random streams.
    pub const MAX_OPS: usize = bounds::MAX_OPS;

    /// The most levels of operations within operations.
    pub const MAX_DEPTH: usize = bounds::MAX_DEPTH;

    /// The most images that a sample can become: two `TenCrop`s in a row and more.
    pub const MAX_VIEWS: u32 = 256;

    /// Checks the operations' order and parameters. Photographs are decoded exactly, and pixels are
    /// those of torchvision on Pillow images.
    ///
    /// # Errors
    /// Names the first operation that is out of place or has a parameter out of range, or the
    /// output type that does not fit.
    pub fn new(ops: Vec<Op>, output: OutputSpec) -> Result<Self, RecipeError> {
        Self::on_pixels(PixelType::U8, Channels::Rgb, ops, output)
    }

    fn with_ops(self, ops: Vec<Op>) -> Result<Self, RecipeError> {
        let count = ops.iter().map(Op::count).sum();
        if count > Self::MAX_OPS {
            return Err(RecipeError::TooManyOps { count, limit: Self::MAX_OPS });
        }
        for (position, op) in ops.iter().enumerate() {
            if let Some(op) = op.within(Self::MAX_DEPTH) {
                let op = op.name();
                let limit = Self::MAX_DEPTH;
                return Err(RecipeError::TooDeep { position, op, limit });
            }
        }
        let views = ops.iter().map(Op::views).fold(1, u32::saturating_mul);
        if views > Self::MAX_VIEWS {
            return Err(RecipeError::TooManyViews { views, limit: Self::MAX_VIEWS });
        }
        let mut before = None::<&Op>;
        let mut domain = Domain::Pixels;
        for (position, op) in ops.iter().enumerate() {
            op.check().map_err(|(op, invalid)| RecipeError::Parameter { position, op, invalid })?;
            if let Some((op, within)) = op.misplaced() {
                let op = if op.is_of_any_size() { ANY_SIZE } else { op.name() };
                return Err(RecipeError::Nested { position, op, within: within.name() });
            }
            let Some(behind) = op.domain().after(domain) else {
                let after = before.map_or("the decoded image", Op::name);
                return Err(RecipeError::Order { position, op: op.name(), after });
            };
            (before, domain) = (Some(op), behind);
        }
        let recipe = Self { ops, ..self };
        recipe.check_sizes()?;
        recipe.checked()
    }

    /// The usual ImageNet training recipe: a random resized crop of `size` x `size` (area 8 % to
    /// 100 %, ratio 3/4 to 4/3, bilinear, antialiased), a flip half of the time, float,
    /// normalisation; f32 CHW. Photographs are decoded fast ([`DecodeMode::FAST`]).
    ///
    /// # Errors
    /// When `size` is not 1 to 65 535.
    pub fn imagenet_train(size: u32) -> Result<Self, RecipeError> {
        let crop = RandomResizedCrop::new(size);
        Self::imagenet(vec![crop.into(), RandomHorizontalFlip::default().into()])?
            .with_decode(DecodeMode::FAST)
    }

    /// The usual ImageNet evaluation recipe: the shorter side resized to `size * 256 / 224`,
    /// rounded half to even, the middle `size` x `size`, float, normalisation; f32 CHW. Photographs
    /// are decoded exactly.
    ///
    /// # Errors
    /// When `size`, or the side it is cut from, is not 1 to 65 535.
    pub fn imagenet_eval(size: u32) -> Result<Self, RecipeError> {
        let side = (f64::from(size) * 256.0 / 224.0).round_ties_even();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let resize = Resize::new(side as u32);
        Self::imagenet(vec![resize.into(), CenterCrop::new(size).into()])
    }

    /// No operation at all: the decoded pixels, each image in its own size; u8 HWC.
    #[must_use]
    pub fn decode() -> Self {
        Self {
            ops: Vec::new(),
            output: OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc },
            decode: DecodeMode::Exact,
            parity: Parity::default(),
            batch_ops: Vec::new(),
            draws: one(),
            channels: Channels::default(),
            pixels: PixelType::U8,
            first_op: 0,
        }
    }

    /// The recipe up to the conversion to float, without the mixing of batches: pixels to look at.
    /// Normalisation and erasing of floats are left out with the conversion.
    #[must_use]
    pub fn into_pixels(mut self, layout: Layout) -> Self {
        let pixels = self.ops.iter().take_while(|op| op.domain() != Domain::ToFloat).count();
        self.ops.truncate(pixels);
        self.output = OutputSpec { dtype: self.pixels.dtype(), layout };
        self.batch_ops.clear();
        self
    }

    /// The same operations with another form of output.
    ///
    /// # Errors
    /// When integers are asked of a recipe that makes floats, or the reverse.
    pub fn with_output(self, output: OutputSpec) -> Result<Self, RecipeError> {
        let recipe = Self { output, ..self }.checked()?;
        let batch_ops = recipe.batch_ops.clone();
        recipe.with_batch_ops(batch_ops)
    }

    /// The same operations on photographs decoded another way.
    ///
    /// # Errors
    /// [`RecipeError::DecodeMargin`].
    pub fn with_decode(self, decode: DecodeMode) -> Result<Self, RecipeError> {
        Ok(Self { decode: decode.check()?, ..self })
    }

    /// The same operations with the arithmetic of `parity`.
    ///
    /// # Errors
    /// [`RecipeError::Pixels`].
    pub fn with_parity(self, parity: Parity) -> Result<Self, RecipeError> {
        Self { parity, ..self }.checked()
    }

    /// The same operations, and ways of mixing the images of a batch of which each batch takes one,
    /// each as likely as the others. Without any, images stay as they are.
    ///
    /// # Errors
    /// [`RecipeError::BatchParameter`], [`RecipeError::BatchType`] where the way is not defined for
    /// the type of the output, [`RecipeError::BatchSize`] where images have no size in common,
    /// [`RecipeError::ClassCount`] where two ways name different numbers of classes.
    pub fn with_batch_ops(self, batch_ops: Vec<BatchOp>) -> Result<Self, RecipeError> {
        for (position, op) in batch_ops.iter().enumerate() {
            let name = op.name();
            op.check().map_err(|invalid| RecipeError::BatchParameter {
                position,
                op: name,
                invalid,
            })?;
            if !op.takes(self.output.dtype) {
                return Err(RecipeError::BatchType { op: name, dtype: self.output.dtype.name() });
            }
            if self.output_size().is_none() {
                return Err(RecipeError::BatchSize { op: name });
            }
        }
        let mut counts = batch_ops.iter().filter_map(BatchOp::num_classes);
        if let Some(first) = counts.next()
            && let Some(second) = counts.find(|count| *count != first)
        {
            return Err(RecipeError::ClassCount { first, second });
        }
        Ok(Self { batch_ops, ..self })
    }

    /// The same recipe carried out `draws` times on every image, each time with other random numbers
    /// ([`Draw::of_image`]): the views of contrastive learning. The results follow each other.
    ///
    /// # Errors
    /// [`RecipeError::NoDraws`] for 0, [`RecipeError::TooManyViews`].
    pub fn with_draws(self, draws: u32) -> Result<Self, RecipeError> {
        if draws == 0 {
            return Err(RecipeError::NoDraws);
        }
        let recipe = Self { draws, ..self };
        let views = recipe.views();
        if views > Self::MAX_VIEWS {
            return Err(RecipeError::TooManyViews { views, limit: Self::MAX_VIEWS });
        }
        recipe.check_sizes()?;
        Ok(recipe)
    }

    /// The number of times that the recipe is carried out on every image, each time with other random
    /// numbers. Default 1.
    #[must_use]
    pub fn draws(&self) -> u32 {
        self.draws
    }

    /// The ways of mixing the images of a batch.
    #[must_use]
    pub fn batch_ops(&self) -> &[BatchOp] {
        &self.batch_ops
    }

    /// How many classes the ways of mixing say there are.
    #[must_use]
    pub fn num_classes(&self) -> Option<u32> {
        self.batch_ops.iter().find_map(BatchOp::num_classes)
    }

    /// The arithmetic of the operations.
    #[must_use]
    pub fn parity(&self) -> Parity {
        self.parity
    }

    /// The accuracy of JPEG decoding.
    #[must_use]
    pub fn decode_mode(&self) -> DecodeMode {
        self.decode
    }

    /// The operations, in order. Their numbers in the random streams count those within others too,
    /// each after the one it is in ([`Op::count`]).
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The form of the output.
    #[must_use]
    pub fn output(&self) -> OutputSpec {
        self.output
    }

    /// Width and height of every result, or `None` when they depend on the image.
    #[must_use]
    pub fn output_size(&self) -> Option<(u32, u32)> {
        let fixed = FixedSizes::default();
        self.ops.iter().fold(None, |size, op| op.output_size(size, &fixed))
    }

    /// How many images a sample becomes: more than one with several [draws](Self::draws), and with
    /// crops such as [`FiveCrop`](crate::op::FiveCrop).
    #[must_use]
    pub fn views(&self) -> u32 {
        self.views_of_draw().saturating_mul(self.draws)
    }

    fn views_of_draw(&self) -> u32 {
        self.ops.iter().map(Op::views).fold(1, u32::saturating_mul)
    }

    /// Mean and standard deviation of the normalisation, of as many channels as results have; those
    /// of no normalisation are 0 and 1.
    #[must_use]
    pub fn normalization(&self) -> ([f32; 4], [f32; 4]) {
        let normalize = self.ops.iter().find_map(|op| {
            let Op::Normalize(Normalize { mean, std }) = op else { return None };
            Some((mean.padded(), std.padded()))
        });
        normalize.unwrap_or(([0.0; 4], [1.0; 4]))
    }

    fn imagenet(mut ops: Vec<Op>) -> Result<Self, RecipeError> {
        ops.extend([ToFloat {}.into(), Normalize::IMAGENET.into()]);
        Self::new(ops, OutputSpec { dtype: Dtype::F32, layout: Layout::Chw })
    }

    /// Draws the plan for one image of `width` x `height` pixels: a pure function of its arguments.
    ///
    /// # Errors
    /// [`PlanError`]: a side of the image or of the result is 0 or too long, or an operation cannot
    /// be done to an image of this size.
    pub fn plan(&self, width: u32, height: u32, draw: Draw) -> Result<Plan, PlanError> {
        let mut plan = Plan::whole(width, height);
        self.plan_into(width, height, draw, &mut plan)?;
        Ok(plan)
    }

    /// [`Recipe::plan`] into a plan whose memory is used again; after an error its content is
    /// unspecified.
    ///
    /// # Errors
    /// As [`Recipe::plan`].
    pub fn plan_into(
        &self,
        width: u32,
        height: u32,
        draw: Draw,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        self.plan_view_into((width, height), draw, 0, plan)
    }

    /// [`Recipe::plan_into`] for image `view` of the [`Recipe::views`] that a sample becomes.
    ///
    /// Everything random is the same for all images of one of the [draws](Self::draws).
    ///
    /// # Errors
    /// As [`Recipe::plan`].
    pub fn plan_view_into(
        &self,
        size: (u32, u32),
        draw: Draw,
        view: u32,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        self.draw_from(0, size, draw, view, plan)
    }

    /// Draws the operations from number `first` on, for an image that has this size then.
    fn draw_from(
        &self,
        first: usize,
        size: (u32, u32),
        draw: Draw,
        view: u32,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        let (width, height) = size;
        if !is_size(size) {
            return Err(PlanError::ImageSize { width, height });
        }
        let views = self.views_of_draw();
        let draw = draw.of_image(view / views);
        let mut drawing = Drawing::new(plan, width, height, self.parity()).of_view(view % views);
        for (stream, op) in op::with_streams(self.ops(), draw, self.first_op).skip(first) {
            op.draw(stream, &mut drawing)?;
        }
        drawing.finish()
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.decode != DecodeMode::Exact {
            write!(f, "Decode({}) -> ", self.decode)?;
        }
        for op in &self.ops {
            write!(f, "{op} -> ")?;
        }
        write!(f, "{} {}", self.output.dtype, self.output.layout)?;
        if self.channels != Channels::Rgb {
            write!(f, ", {}", self.channels.name())?;
        }
        if self.pixels != PixelType::U8 {
            write!(f, ", {} pixels", self.pixels)?;
        }
        if self.parity != Parity::default() {
            write!(f, ", {}", self.parity)?;
        }
        if self.draws != 1 {
            write!(f, ", {} draws", self.draws)?;
        }
        for (position, op) in self.batch_ops.iter().enumerate() {
            write!(f, "{}{op}", if position == 0 { ", batches: " } else { " or " })?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    ops: Vec<Op>,
    output: OutputSpec,
    #[serde(default)]
    decode: DecodeMode,
    #[serde(default)]
    parity: Parity,
    #[serde(default)]
    batch_ops: Vec<BatchOp>,
    #[serde(default = "one")]
    draws: u32,
    #[serde(default)]
    channels: Channels,
    #[serde(default, with = "pixel_type")]
    pixels: PixelType,
}

impl TryFrom<Unchecked> for Recipe {
    type Error = RecipeError;

    fn try_from(unchecked: Unchecked) -> Result<Self, RecipeError> {
        let Unchecked { ops, output, decode, parity, batch_ops, draws, channels, pixels } =
            unchecked;
        let form = Self { output, parity, channels, pixels, ..Self::decode() };
        let recipe = form.with_ops(ops)?.with_decode(decode)?;
        recipe.with_batch_ops(batch_ops)?.with_draws(draws)
    }
}
