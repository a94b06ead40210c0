//! Bounds, as torchvision's parameters have them.

use serde::{Deserialize, Serialize};

use super::warp::require_finite;
use crate::bounds::{require, require_above};
use crate::error::Invalid;
use crate::rng::Rng;

/// Bounds of a number that is drawn: how far it strays, or the bounds themselves.
///
/// Angles and turns of hues stray from 0, factors of colours from 1, and no further down than 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a lower and an upper bound")]
pub enum Range {
    /// The distance from what changes nothing, in both directions.
    Within(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl Default for Range {
    /// No change.
    fn default() -> Self {
        Self::Within(0.0)
    }
}

impl Range {
    /// The lower and the upper bound of what strays from 0.
    #[must_use]
    pub const fn bounds(self) -> (f64, f64) {
        match self {
            Self::Within(most) => (-most, most),
            Self::Between(low, high) => (low, high),
        }
    }

    pub(super) fn check(self, parameter: &'static str) -> Result<(), Invalid> {
        if let Self::Within(most) = self {
            require(most >= 0.0, parameter, most, "0 or a positive number, or two bounds")?;
        }
        let (low, high) = self.bounds();
        require_finite(parameter, low)?;
        require_finite(parameter, high)?;
        require_above(parameter, (low, high))
    }

    pub(super) fn draw(self, rng: &mut Rng) -> f64 {
        let (low, high) = self.bounds();
        rng.uniform(low, high)
    }
}
