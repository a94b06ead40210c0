//! Operations that change colours.

mod jitter;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::bounds::{require, require_probability};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::rng::Rng;
use crate::step::{Color, Step};
use crate::stream::Stream;

pub use jitter::{ColorJitter, RandomPhotometricDistort};

/// The probability of torchvision's operations that are done or not.
pub(super) const fn half() -> f64 {
    0.5
}

/// Makes the image grey, in three equal channels: torchvision's `Grayscale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grayscale {
    /// 3, the channels of a batch. torchvision's default is 1.
    pub num_output_channels: u32,
}

impl Default for Grayscale {
    fn default() -> Self {
        Self { num_output_channels: 3 }
    }
}

impl Operation for Grayscale {
    fn check(&self) -> Result<(), Invalid> {
        let channels = self.num_output_channels;
        require(channels == 3, "num_output_channels", channels.into(), "3, what batches have")
    }

    fn draw(&self, _: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        drawing.step(Step::Color(Color::Grayscale))
    }
}

impl fmt::Display for Grayscale {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Operations that are done with a probability: fields, what they have to be, and their step.
macro_rules! by_chance {
    ($(
        $(#[$doc:meta])*
        $name:ident($default:literal) {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty,)?
        }
        check: $check:expr,
        step: $step:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)?
            /// The probability.
            #[serde(default = $default)]
            pub p: f64,
        }

        impl Operation for $name {
            fn check(&self) -> Result<(), Invalid> {
                let check: fn(&Self) -> Result<(), Invalid> = $check;
                check(self)?;
                require_probability(self.p)
            }

            fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
                let step: fn(&Self) -> Color = $step;
                if stream.rng().chance(self.p) {
                    drawing.step(Step::Color(step(self)))?;
                }
                Ok(())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("(")?;
                $(write!(f, concat!(stringify!($field), " {}, "), self.$field)?;)?
                write!(f, "p {})", self.p)
            }
        }
    )*};
}

const fn tenth() -> f64 {
    0.1
}

by_chance! {
    /// Makes the image grey with probability `p`.
    RandomGrayscale("tenth") {}
    check: |_| Ok(()),
    step: |_| Color::Grayscale;

    /// Inverts the samples with probability `p`.
    RandomInvert("half") {}
    check: |_| Ok(()),
    step: |_| Color::Invert;

    /// Keeps the upper bits of samples with probability `p`.
    RandomPosterize("half") {
        /// How many of 8. Of 0, which torchvision takes on tensors only, remains black.
        bits: u8,
    }
    check: |op| require(op.bits <= 8, "bits", op.bits.into(), "0 to 8"),
    step: |op| Color::Posterize(op.bits);

    /// Inverts large samples with probability `p`.
    RandomSolarize("half") {
        /// The smallest sample that is inverted.
        threshold: f64,
    }
    check: |op| require(op.threshold.is_finite(), "threshold", op.threshold, "a number"),
    step: |op| Color::Solarize(op.threshold);

    /// Sharpens or blurs with probability `p`.
    RandomAdjustSharpness("half") {
        /// 0 blurs, 1 leaves the image, 2 sharpens.
        sharpness_factor: f64,
    }
    check: |op| require_factor("sharpness_factor", op.sharpness_factor),
    step: |op| Color::Sharpness(op.sharpness_factor);

    /// Stretches each channel to 0 to 255 with probability `p`.
    RandomAutocontrast("half") {}
    check: |_| Ok(()),
    step: |_| Color::Autocontrast;

    /// Makes each channel's histogram even with probability `p`.
    RandomEqualize("half") {}
    check: |_| Ok(()),
    step: |_| Color::Equalize;
}

/// Refuses what no samples can be moved by.
fn require_factor(parameter: &'static str, factor: f64) -> Result<(), Invalid> {
    require(factor >= 0.0 && factor.is_finite(), parameter, factor, "0 or a positive number")
}

/// Permutes the channels randomly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomChannelPermutation {}

impl Operation for RandomChannelPermutation {
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        permute_channels(&mut stream.rng(), drawing)
    }
}

impl fmt::Display for RandomChannelPermutation {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Draws an order of the channels; the one they have needs no step.
fn permute_channels(rng: &mut Rng, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
    let mut order = [0, 1, 2];
    shuffle(rng, &mut order);
    if order == [0, 1, 2] {
        Ok(())
    } else {
        drawing.step(Step::Color(Color::PermuteChannels(order)))
    }
}

/// Puts `items` into any order, each equally likely: [`Rng::shuffle`] from the first one.
fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for place in 1..items.len() {
        items.swap(place, rng.index(place + 1));
    }
}
