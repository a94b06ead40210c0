//! Flips.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::require_probability;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::op::Operation;
use crate::stream::Stream;

/// Operations that are done with a probability, by the method of [`Drawing`] that does them.
macro_rules! flips {
    ($($(#[$doc:meta])* $name:ident: $flip:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// The probability.
            pub p: f64,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { p: 0.5 }
            }
        }

        impl Operation for $name {
            fn check(&self) -> Result<(), Invalid> {
                require_probability(self.p)
            }

            fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
                if stream.rng().chance(self.p) {
                    drawing.$flip();
                }
                Ok(())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "(p {})", self.p)
            }
        }
    )*};
}

flips! {
    /// Mirrors left and right with probability `p`.
    RandomHorizontalFlip: flip;

    /// Mirrors top and bottom with probability `p`.
    RandomVerticalFlip: flip_vertical;
}
