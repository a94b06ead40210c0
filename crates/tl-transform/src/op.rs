//! The operations of a recipe, as data, with torchvision's names and defaults.
//!
//! Every operation is a struct of its parameters; [`Op`] is any of them. In JSON or TOML an
//! operation is a table whose `op` is its name, and parameters left out have torchvision's default
//! where there is one:
//! `{"op": "random_horizontal_flip"}`.

mod color;
mod composition;
mod convert;
mod erase;
mod filter;
pub(crate) mod forms;
mod geometry;
mod list;
mod policy;
mod range;
pub(crate) mod signature;
mod user;
mod warp;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::fill::Fill;
use crate::interpolation::Interpolation;
use crate::stream::{Draw, Stream};

pub use color::{
    ColorJitter, Grayscale, RandomAdjustSharpness, RandomAutocontrast, RandomChannelPermutation,
    RandomEqualize, RandomGrayscale, RandomInvert, RandomPhotometricDistort, RandomPosterize,
    RandomSolarize,
};
pub use composition::{Compose, RandomApply, RandomChoice, RandomOrder};
pub use convert::{ChannelValues, Normalize, ToFloat};
pub use erase::{ErasingName, ErasingValue, GridMask, RandomErasing};
pub use filter::{GaussianBlur, GaussianNoise};
pub use geometry::{
    CenterCrop, FiveCrop, Pad, PadMode, RandomCrop, RandomHorizontalFlip, RandomResizedCrop,
    RandomShortestSize, RandomVerticalFlip, RandomZoomOut, Resize, ScaleJitter, Sides, Size,
    TenCrop,
};
pub use list::Op;
pub use policy::{AugMix, AutoAugment, AutoAugmentPolicy, RandAugment, TrivialAugmentWide};
pub use range::Range;
pub(crate) use signature::operations;
pub use signature::{Parameter, ParameterKind, Signature};
pub use user::{UserSize, UserSizeName, UserTransform};
pub use warp::{ElasticTransform, PerAxis, RandomAffine, RandomPerspective, RandomRotation, Shear};

/// The behaviour of an operation. `Display` writes the parameters as `(...)`, or nothing.
pub(crate) trait Operation: fmt::Display {
    /// Whether the parameters are within their ranges.
    fn check(&self) -> Result<(), Invalid>;

    /// Draws what is random and adds what is to be done.
    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError>;

    /// The domain of the operation.
    fn domain(&self) -> Domain {
        Domain::of_all(self.children())
    }

    /// Width and height afterwards if they are the same for every image, given those before.
    fn output_size(&self, before: Option<(u32, u32)>, _fixed: &FixedSizes) -> Option<(u32, u32)> {
        before
    }

    /// The operations within this one.
    fn children(&self) -> &[Op] {
        &[]
    }

    /// How many images it turns one into.
    fn views(&self) -> u32 {
        1
    }
}

/// The sizes that operations of one recipe give to images of unknown size.
///
/// Each is found once: a [`RandomOrder`] asks its operations for them and for the size after a
/// known one, so that without a memory every level of nesting would double the work.
#[derive(Debug, Default)]
pub(crate) struct FixedSizes {
    /// By the address of the operation, which stays where it is while it is borrowed.
    found: RefCell<HashMap<*const Op, Option<(u32, u32)>>>,
    #[cfg(test)]
    evaluated: std::cell::Cell<usize>,
}

impl FixedSizes {
    fn of(&self, op: &Op) -> Option<(u32, u32)> {
        // A memory of operations without others within them would cost more than they do.
        if op.children().is_empty() {
            return self.evaluate(op, None);
        }
        let known = self.found.borrow().get(&std::ptr::from_ref(op)).copied();
        known.unwrap_or_else(|| {
            let size = self.evaluate(op, None);
            self.found.borrow_mut().insert(op, size);
            size
        })
    }

    fn evaluate(&self, op: &Op, before: Option<(u32, u32)>) -> Option<(u32, u32)> {
        #[cfg(test)]
        self.evaluated.set(self.evaluated.get() + 1);
        op.operation().output_size(before, self)
    }
}

/// The domain of an operation, which decides where in a recipe it can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// 8-bit pixels.
    Pixels,
    /// 8-bit pixels, of which it makes floats.
    ToFloat,
    /// Floats, right after they are made.
    Normalize,
    /// 8-bit pixels or floats, of which it erases a part.
    Erase,
    /// Floats, of which it erases a part.
    EraseFloats,
}

impl Domain {
    /// The domain of operations that are done together: where all of them erase, so does the whole.
    /// Without any, the domain is [`Domain::Pixels`].
    pub(crate) fn of_all(ops: &[Op]) -> Self {
        let joined = ops.iter().map(Op::domain).try_fold(Self::Erase, |all, op| match op {
            Self::Erase => Some(all),
            Self::EraseFloats => Some(op),
            Self::Pixels | Self::ToFloat | Self::Normalize => None,
        });
        joined.filter(|_| !ops.is_empty()).unwrap_or(Self::Pixels)
    }

    /// The domain after an operation of this one, given the domain `before` it; none when it cannot
    /// stand there.
    pub(crate) fn after(self, before: Self) -> Option<Self> {
        let pixels = before == Self::Pixels;
        let stands = match self {
            Self::Pixels | Self::ToFloat => pixels,
            Self::Normalize => before == Self::ToFloat,
            Self::Erase => true,
            Self::EraseFloats => !pixels,
        };
        let erases = matches!(self, Self::Erase | Self::EraseFloats);
        let after = match (erases, pixels) {
            (true, true) => Self::Pixels,
            (true, false) => Self::EraseFloats,
            (false, _) => self,
        };
        stands.then_some(after)
    }
}

/// The effect of an operation on the pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It moves pixels along the axes, erases some, or changes the numbers of a batch.
    Geometry,
    /// It moves pixels otherwise.
    Warp,
    /// It changes their values.
    Pixels,
}

impl Op {
    /// Its effect, apart from that of the operations within it.
    pub(crate) const fn effect(&self) -> Effect {
        match self {
            Self::RandomResizedCrop(_)
            | Self::Resize(_)
            | Self::CenterCrop(_)
            | Self::RandomCrop(_)
            | Self::FiveCrop(_)
            | Self::TenCrop(_)
            | Self::RandomShortestSize(_)
            | Self::ScaleJitter(_)
            | Self::Pad(_)
            | Self::RandomZoomOut(_)
            | Self::RandomHorizontalFlip(_)
            | Self::RandomVerticalFlip(_)
            | Self::Compose(_)
            | Self::RandomApply(_)
            | Self::RandomChoice(_)
            | Self::RandomOrder(_)
            | Self::RandomErasing(_)
            | Self::GridMask(_)
            | Self::ToFloat(_)
            | Self::Normalize(_) => Effect::Geometry,
            Self::RandomRotation(_)
            | Self::RandomAffine(_)
            | Self::RandomPerspective(_)
            | Self::ElasticTransform(_) => Effect::Warp,
            Self::ColorJitter(_)
            | Self::Grayscale(_)
            | Self::RandomGrayscale(_)
            | Self::RandomInvert(_)
            | Self::RandomPosterize(_)
            | Self::RandomSolarize(_)
            | Self::RandomAdjustSharpness(_)
            | Self::RandomAutocontrast(_)
            | Self::RandomEqualize(_)
            | Self::RandomChannelPermutation(_)
            | Self::RandomPhotometricDistort(_)
            | Self::GaussianBlur(_)
            | Self::GaussianNoise(_)
            | Self::AugMix(_)
            | Self::AutoAugment(_)
            | Self::RandAugment(_)
            | Self::TrivialAugmentWide(_)
            | Self::UserTransform(_) => Effect::Pixels,
        }
    }

    /// The colour of the pixels that an operation that moves pixels adds.
    pub(crate) const fn fill(&self) -> Option<Fill> {
        if let Self::RandomRotation(RandomRotation { fill, .. })
        | Self::RandomAffine(RandomAffine { fill, .. })
        | Self::RandomPerspective(RandomPerspective { fill, .. })
        | Self::ElasticTransform(ElasticTransform { fill, .. }) = self
        {
            *fill
        } else if let Self::RandomCrop(RandomCrop { fill, .. })
        | Self::Pad(Pad { fill, .. })
        | Self::RandomZoomOut(RandomZoomOut { fill, .. }) = self
        {
            Some(*fill)
        } else {
            None
        }
    }

    /// The value of the pixels that an operation erases.
    pub(crate) const fn erasing_value(&self) -> Option<ErasingValue> {
        if let Self::RandomErasing(RandomErasing { value, .. })
        | Self::GridMask(GridMask { value, .. }) = self
        {
            Some(*value)
        } else {
            None
        }
    }

    /// The filter that an operation along the axes resizes with.
    pub(crate) const fn interpolation(&self) -> Option<Interpolation> {
        if let Self::RandomResizedCrop(RandomResizedCrop { interpolation, .. })
        | Self::Resize(Resize { interpolation, .. })
        | Self::RandomShortestSize(RandomShortestSize { interpolation, .. })
        | Self::ScaleJitter(ScaleJitter { interpolation, .. }) = self
        {
            Some(*interpolation)
        } else {
            None
        }
    }

    /// The operations within this one, such as those that are done or left out together.
    #[must_use]
    pub fn children(&self) -> &[Self] {
        self.operation().children()
    }

    /// How many operations this is, with those within: it has this many numbers of random streams.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.children().iter().map(Self::count).sum::<usize>()
    }

    /// This operation and those within, in the order of their numbers in the random streams.
    pub(crate) fn walk(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.children().iter().flat_map(Self::walk)))
    }

    /// How many images one becomes by this operation and those within.
    pub(crate) fn views(&self) -> u32 {
        let within = self.children().iter().map(Self::views);
        within.fold(self.operation().views(), u32::saturating_mul)
    }

    pub(crate) fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        self.operation().draw(stream, drawing)
    }

    pub(crate) fn domain(&self) -> Domain {
        self.operation().domain()
    }

    /// Width and height afterwards if they are the same for every image, given those before.
    pub(crate) fn output_size(
        &self,
        before: Option<(u32, u32)>,
        fixed: &FixedSizes,
    ) -> Option<(u32, u32)> {
        match before {
            None => fixed.of(self),
            Some(_) => fixed.evaluate(self, before),
        }
    }

    /// An operation within this one, or itself, that has `depth` others around it.
    pub(crate) fn within(&self, depth: usize) -> Option<&Self> {
        match depth.checked_sub(1) {
            None => Some(self),
            Some(depth) => self.children().iter().find_map(|op| op.within(depth)),
        }
    }

    /// An operation within this one that cannot be there, and the one it is directly within: a
    /// conversion, one that erases floats next to others that work on pixels, or a user's transform of
    /// any size.
    pub(crate) fn misplaced(&self) -> Option<(&Self, &Self)> {
        let erases = self.domain() == Domain::EraseFloats;
        self.children().iter().find_map(|op| match op.domain() {
            _ if op.is_of_any_size() => Some((op, self)),
            Domain::Pixels | Domain::Erase => op.misplaced(),
            Domain::EraseFloats if erases => op.misplaced(),
            Domain::EraseFloats | Domain::ToFloat | Domain::Normalize => Some((op, self)),
        })
    }

    /// Whether it is a user's transform that alone tells the size of its results.
    pub(crate) fn is_of_any_size(&self) -> bool {
        matches!(self, Self::UserTransform(op) if op.size.is_any())
    }

    /// Whether nothing but rectangles are erased.
    pub(crate) fn erases_rectangles(&self) -> bool {
        let is_rectangle = matches!(self, Self::RandomErasing(_));
        let children = self.children();
        is_rectangle || !children.is_empty() && children.iter().all(Self::erases_rectangles)
    }

    /// Checks the parameters of this operation and of those within.
    pub(crate) fn check(&self) -> Result<(), (&'static str, Invalid)> {
        self.operation().check().map_err(|invalid| (self.name(), invalid))?;
        self.children().iter().try_for_each(Self::check)
    }
}

/// The operations of a recipe, each with its stream.
pub(crate) fn with_streams(
    ops: &[Op],
    draw: Draw,
    first: u8,
) -> impl Iterator<Item = (Stream, &Op)> {
    numbered(ops, draw, first)
}

/// The operations within the one that `stream` belongs to, each with its stream.
fn with_streams_of(ops: &[Op], stream: Stream) -> impl Iterator<Item = (Stream, &Op)> {
    numbered(ops, stream.draw, stream.op.wrapping_add(1))
}

/// Wrapping never happens: a recipe has no more operations than numbers.
fn numbered(ops: &[Op], draw: Draw, first: u8) -> impl Iterator<Item = (Stream, &Op)> {
    ops.iter().scan(first, move |next, op| {
        let stream = Stream { draw, op: *next };
        *next = next.wrapping_add(op.count().to_le_bytes()[0]);
        Some((stream, op))
    })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name(), self.operation())
    }
}
