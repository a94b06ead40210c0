//! Flips.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::require_probability;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::op::Operation;
use crate::stream::Stream;

/// Mirrors left and right with probability `p`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomHorizontalFlip {
    /// The probability.
    pub p: f64,
}

impl Default for RandomHorizontalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl Operation for RandomHorizontalFlip {
    fn check(&self) -> Result<(), Invalid> {
        require_probability(self.p)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        if stream.rng().chance(self.p) {
            drawing.flip();
        }
        Ok(())
    }
}

impl fmt::Display for RandomHorizontalFlip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(p {})", self.p)
    }
}

/// Mirrors top and bottom with probability `p`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomVerticalFlip {
    /// The probability.
    pub p: f64,
}

impl Default for RandomVerticalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl Operation for RandomVerticalFlip {
    fn check(&self) -> Result<(), Invalid> {
        require_probability(self.p)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        if stream.rng().chance(self.p) {
            drawing.flip_vertical();
        }
        Ok(())
    }
}

impl fmt::Display for RandomVerticalFlip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(p {})", self.p)
    }
}
