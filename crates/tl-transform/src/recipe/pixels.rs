//! The type and the channels of the pixels that a recipe works on.

use super::Recipe;
use crate::error::{PlanError, RecipeError, StepError};
use crate::op::{Domain, Effect, Normalize, Op};
use crate::output::{Channels, Layout, OutputSpec, PixelType};
use crate::parity::Parity;
use crate::plan::Plan;
use crate::stream::Draw;
use crate::wide::PixelFormat;

/// The reason why an operation is not among those that move pixels.
const NOT_CHANGED: &str = "it changes values, which takes 8-bit pixels, RGB or grey; others can be \
                           cropped, resized, padded, flipped, warped and erased";

impl Recipe {
    /// [`Recipe::decode`] with pixels of this type and these channels.
    #[must_use]
    pub fn decode_to(pixels: PixelType, channels: Channels) -> Self {
        let decode = Self::decode();
        let output = OutputSpec { dtype: pixels.dtype(), ..decode.output };
        Self { pixels, channels, output, ..decode }
    }

    /// [`Recipe::new`] of operations on pixels of this type and these channels.
    ///
    /// # Errors
    /// As [`Recipe::new`], and [`RecipeError::Pixels`] for operations that are not defined for them.
    pub fn on_pixels(
        pixels: PixelType,
        channels: Channels,
        ops: Vec<Op>,
        output: OutputSpec,
    ) -> Result<Self, RecipeError> {
        Self { output, channels, pixels, ..Self::decode() }.with_ops(ops)
    }

    /// The same recipe with results of these channels.
    ///
    /// # Errors
    /// [`RecipeError::Pixels`] for operations that are not defined for them.
    pub fn with_channels(self, channels: Channels) -> Result<Self, RecipeError> {
        Self { channels, ..self }.checked()
    }

    /// The same recipe on pixels of this type, which are as files store them. The output has the same
    /// type where the recipe does not convert to float.
    ///
    /// # Errors
    /// [`RecipeError::Pixels`] for operations that are not defined for them.
    pub fn with_pixels(self, pixels: PixelType) -> Result<Self, RecipeError> {
        let mut output = self.output;
        if output.dtype == self.pixels.dtype() && !self.makes_floats() {
            output.dtype = pixels.dtype();
        }
        Self { pixels, output, ..self }.checked()
    }

    /// Whether the recipe converts pixels to floats.
    #[must_use]
    pub fn makes_floats(&self) -> bool {
        self.ops.iter().any(|op| op.domain() == Domain::ToFloat)
    }

    /// The recipe of the interleaved 8-bit RGB pixels of which a table makes this recipe's results, but
    /// for the rectangles that are erased in these ([`Recipe::plan_erasures_into`]).
    ///
    /// # Errors
    /// The name of the first operation, or other property, that stands against it.
    pub fn before_table(&self) -> Result<Self, &'static str> {
        if self.is_wide() || self.channels != Channels::Rgb {
            return Err("channels or pixels other than 8-bit RGB");
        }
        if let Some(op) = self.batch_ops.first() {
            return Err(op.name());
        }
        match self.erasing().find(|op| !op.erases_rectangles()) {
            Some(op) => Err(op.name()),
            None => Ok(self.clone().into_pixels(Layout::Hwc)),
        }
    }

    /// The name of the first operation on pixels that takes more than a crop, a resize, a border and
    /// flips, which are one pass over the decoded image; `None` without one.
    #[must_use]
    pub fn beyond_one_pass(&self) -> Option<&'static str> {
        let on_pixels = self.ops.iter().take_while(|op| op.domain() != Domain::ToFloat);
        let mut all = on_pixels.flat_map(Op::walk);
        let found = all.find(|op| {
            let erases = matches!(op, Op::RandomErasing(_) | Op::GridMask(_));
            op.effect() != Effect::Geometry || erases
        });
        found.map(Op::name)
    }

    /// Whether a part of the floats is erased.
    #[must_use]
    pub fn erases_floats(&self) -> bool {
        self.erasing().next().is_some()
    }

    /// The operations on floats after they are normalised.
    fn erasing(&self) -> impl Iterator<Item = &Op> {
        let floats = self.ops.iter().skip_while(|op| op.domain() != Domain::ToFloat).skip(1);
        floats.filter(|op| op.domain() != Domain::Normalize)
    }

    /// Draws what is erased in the floats of image `view` of a sample's, given their size: the
    /// [`Plan::erasures`] of [`Recipe::plan_view_into`], in a plan that does nothing else.
    ///
    /// # Errors
    /// As [`Recipe::plan`].
    pub fn plan_erasures_into(
        &self,
        size: (u32, u32),
        draw: Draw,
        view: u32,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        let first = self.ops.iter().position(|op| op.domain() == Domain::ToFloat);
        self.draw_from(first.unwrap_or(self.ops.len()), size, draw, view, plan)
    }

    /// The type of the pixels that operations get. Default 8 bits.
    #[must_use]
    pub fn pixels(&self) -> PixelType {
        self.pixels
    }

    /// Whether pixels are others than 8-bit RGB or grey, so that operations move them without changing values.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.pixels != PixelType::U8 || self.channels == Channels::Rgba
    }

    /// Bytes that renderers hold for images on the way to the result of `plan`, one of this recipe's
    /// plans, and for the rows of wide ones.
    ///
    /// # Errors
    /// [`StepError::Pixels`] for a step that is not defined for these pixels, and
    /// [`StepError::Size`] for one that is not for the image before it.
    ///
    /// # Panics
    /// When the parts of the plan's head or tail do not fit each other.
    pub fn scratch_bytes(&self, plan: &Plan) -> Result<u64, StepError> {
        if self.is_wide() {
            PixelFormat::of(self).scratch_bytes(self.output, self.parity, plan)
        } else {
            plan.scratch_bytes()
        }
    }

    /// The form of an image that moves with the results of this recipe: the same size and views,
    /// with pixels of its own that stay as they are. [`crate::Plan::keep_geometry`] makes its plans.
    ///
    /// # Errors
    /// [`RecipeError::Pixels`] for operations that move pixels in a way that is not defined for it.
    pub fn moving_along(&self, pixels: PixelType, channels: Channels) -> Result<Self, RecipeError> {
        let output = OutputSpec { dtype: pixels.dtype(), layout: self.output.layout };
        let mut along = Self { pixels, channels, output, batch_ops: Vec::new(), ..self.clone() };
        along.ops.retain(|op| !matches!(op, Op::ToFloat(_) | Op::Normalize(_)));
        for (position, op) in along.ops.iter().enumerate() {
            for op in op.walk() {
                // Operations on colours are left out of plans, and borders are 0.
                if let Some(reason) = along.filter_refusal(op) {
                    let pixels = pixels.in_words();
                    let channels = channels.in_words();
                    let op = op.name();
                    return Err(RecipeError::Pixels { position, op, pixels, channels, reason });
                }
            }
        }
        Ok(along)
    }

    /// The channels of the results. Default RGB.
    #[must_use]
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// Checks that the operations are defined for the type and the channels of the pixels, and that
    /// the output has a type that they make.
    pub(super) fn checked(self) -> Result<Self, RecipeError> {
        let Self { pixels, channels, output: OutputSpec { dtype, .. }, .. } = self;
        let to_float = self.ops.iter().any(|op| op.domain() == Domain::ToFloat);
        if if to_float { !dtype.is_float() } else { dtype != pixels.dtype() } {
            return Err(RecipeError::OutputType { dtype: dtype.name(), to_float });
        }
        for (position, op) in self.ops.iter().enumerate() {
            for op in op.walk() {
                if let Some(reason) = self.refusal(op) {
                    let pixels = pixels.in_words();
                    let channels = channels.in_words();
                    let op = op.name();
                    return Err(RecipeError::Pixels { position, op, pixels, channels, reason });
                }
            }
        }
        Ok(self)
    }

    /// The reason why an operation is not defined for the type and the channels of the pixels.
    fn refusal(&self, op: &Op) -> Option<&'static str> {
        if let Op::Normalize(Normalize { mean, std }) = op
            && !mean.is_for(self.channels, *std)
        {
            return Some("mean and std need a number for each channel");
        }
        if !self.is_wide() {
            return None;
        }
        if op.effect() == Effect::Pixels {
            return Some(NOT_CHANGED);
        }
        if op.fill().is_some_and(|fill| !fill.is_for(self.channels)) {
            return Some("its fill is not a whole number for all channels");
        }
        if op.erasing_value().is_some_and(|value| !value.is_for(self.channels)) {
            return Some("its value is not one for all channels");
        }
        self.filter_refusal(op)
    }

    /// The reason why an operation's interpolation is not defined for the type of the pixels.
    fn filter_refusal(&self, op: &Op) -> Option<&'static str> {
        let is_tensor = self.parity == Parity::Tensor && self.pixels != PixelType::U8;
        let is_smooth = op.interpolation().is_some_and(|filter| !filter.copies());
        let reason = "parity `tensor` resizes them by nearest and nearest_exact alone, parity `pil` by all filters";
        (is_tensor && is_smooth).then_some(reason)
    }
}
