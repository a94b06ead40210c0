//! Erasing: rectangles at random, and grids.

use std::fmt;

use serde::{Deserialize, Serialize};
use tl_simd::resample::Rect;

use super::forms::forms;
use super::{Domain, Operation};
use crate::bounds::{require, require_interval, require_name, require_probability, round};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::output::Channels;
use crate::rng::Rng;
use crate::step::{Erase, Filling};
use crate::stream::Stream;

/// The number of tries to draw a rectangle before the image is left as it is (torchvision's).
const TRIES: u32 = 10;

/// Replaces a random rectangle: torchvision's `RandomErasing` (Zhong et al., 2017).
///
/// It erases 8-bit pixels when it stands before `ToFloat`, and the numbers of the batch when it
/// stands after it; those have torchvision's value of numbers that are normalised already.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomErasing {
    /// The probability.
    pub p: f64,
    /// Bounds of the rectangle's area, as a share of the image's.
    pub scale: (f64, f64),
    /// Bounds of the rectangle's height / width.
    pub ratio: (f64, f64),
    /// The value of erased pixels.
    pub value: ErasingValue,
}

/// The value of erased pixels: a number, one for each channel, or `"random"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ErasingValue {
    /// This number in every channel.
    All(f32),
    /// A number for R, G and B.
    Each([f32; 3]),
    /// Normal deviates, one for each number of the batch; not for 8-bit pixels.
    Named(ErasingName),
}

forms!(
    ErasingValue: All(f32), Each([_; 3]), Named(ErasingName);
    "a value is a number, [r, g, b], or \"random\""
);

/// The one name among the values of [`RandomErasing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErasingName {
    /// Mean 0, deviation 1.
    Random,
}

impl ErasingValue {
    /// torchvision's `value="random"`.
    pub const RANDOM: Self = Self::Named(ErasingName::Random);

    fn numbers(self) -> [f32; 3] {
        match self {
            Self::All(value) => [value; 3],
            Self::Each(values) => values,
            Self::Named(ErasingName::Random) => [0.0; 3],
        }
    }

    /// Whether it is one of pixels that are not 8-bit RGB or grey: the same for all of their
    /// channels, or one for each of three.
    pub(crate) fn is_for(self, channels: Channels) -> bool {
        !matches!(self, Self::Each(_)) || channels == Channels::Rgb
    }

    fn check(self) -> Result<(), Invalid> {
        let finite =
            |value: f32| require(value.is_finite(), "value", value.into(), "a finite number");
        self.numbers().into_iter().try_for_each(finite)
    }
}

impl fmt::Display for ErasingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(value) => write!(f, "{value}"),
            Self::Each(values) => write!(f, "{values:?}"),
            Self::Named(ErasingName::Random) => f.write_str("random"),
        }
    }
}

impl Default for RandomErasing {
    fn default() -> Self {
        Self { p: 0.5, scale: (0.02, 0.33), ratio: (0.3, 3.3), value: ErasingValue::All(0.0) }
    }
}

impl Operation for RandomErasing {
    fn check(&self) -> Result<(), Invalid> {
        require_probability(self.p)?;
        let (low, high) = self.scale;
        require((0.0..=1.0).contains(&low), "scale", low, "a share, 0 to 1")?;
        require((low..=1.0).contains(&high), "scale", high, "the lower bound to 1")?;
        require_interval("ratio", self.ratio)?;
        self.value.check()
    }

    fn domain(&self) -> Domain {
        if self.value == ErasingValue::RANDOM { Domain::EraseFloats } else { Domain::Erase }
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut rng = stream.rng();
        if !rng.chance(self.p) {
            return Ok(());
        }
        let Some(rect) = self.rectangle(drawing.size(), &mut rng) else { return Ok(()) };
        let fill = if self.value == ErasingValue::RANDOM {
            Filling::Normal { key: rng.next_u64() }
        } else {
            Filling::Value(self.value.numbers())
        };
        drawing.erase(Erase::Rectangle { rect, fill })
    }
}

impl RandomErasing {
    /// torchvision's `make_params`: a rectangle that is smaller than the image in both directions,
    /// or none after ten tries.
    ///
    /// Each try takes two reals, the area and the ratio; the row and the column follow the last
    /// one.
    fn rectangle(&self, size: (u32, u32), rng: &mut Rng) -> Option<Rect> {
        let (width, height) = size;
        let area = f64::from(width) * f64::from(height);
        for _ in 0..TRIES {
            let part = area * rng.uniform(self.scale.0, self.scale.1);
            let ratio = rng.log_uniform(self.ratio.0, self.ratio.1);
            let erased_height = round((part * ratio).sqrt());
            let erased_width = round((part / ratio).sqrt());
            if erased_height < height && erased_width < width {
                let y = rng.below(height - erased_height + 1);
                let x = rng.below(width - erased_width + 1);
                return Some(Rect { x, y, width: erased_width, height: erased_height });
            }
        }
        None
    }
}

impl fmt::Display for RandomErasing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p, scale: (small, large), ratio: (low, high), value } = self;
        write!(f, "(p {p}, scale {small}..{large}, ratio {low}..{high}, value {value})")
    }
}

/// Erases the squares or the stripes of a randomly placed and turned grid: `GridMask` (Chen, Liu,
/// Zhao and Jia, 2020).
///
/// The defaults are those of the authors' `ResNet-50` on `ImageNet`, but that they reach `p` over
/// the first 240 of 300 epochs. They mask normalised images, so after `Normalize` 0 is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GridMask {
    /// The probability.
    pub p: f64,
    /// Bounds of the distance between stripes in pixels, the upper one excluded.
    pub distance: (u32, u32),
    /// The width of a stripe, as a share of the distance and rounded up.
    pub ratio: f64,
    /// The grid is turned by fewer than this many whole degrees; 1 does not turn it.
    pub rotate: u32,
    /// The part that is erased: 0 the stripes, 1 the squares between them.
    pub mode: u32,
    /// The value of erased pixels; not random.
    pub value: ErasingValue,
}

impl Default for GridMask {
    fn default() -> Self {
        let value = ErasingValue::All(0.0);
        Self { p: 0.8, distance: (96, 224), ratio: 0.6, rotate: 360, mode: 1, value }
    }
}

impl Operation for GridMask {
    fn check(&self) -> Result<(), Invalid> {
        require_probability(self.p)?;
        let (low, high) = self.distance;
        require(low > 0, "distance", low.into(), "at least 1")?;
        require(
            high > low && high <= PlanError::MAX_SIDE,
            "distance",
            high.into(),
            "above the lower bound, to 65535",
        )?;
        require((0.0..=1.0).contains(&self.ratio), "ratio", self.ratio, "a share, 0 to 1")?;
        require((1..=360).contains(&self.rotate), "rotate", self.rotate.into(), "1 to 360")?;
        require(self.mode <= 1, "mode", self.mode.into(), "0 or 1")?;
        let random = self.value == ErasingValue::RANDOM;
        require_name(!random, "value", "random", "a number, or one for each channel")?;
        self.value.check()
    }

    fn domain(&self) -> Domain {
        Domain::Erase
    }

    /// Draws as the authors do: whether, the distance, the row, the column, the angle.
    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut rng = stream.rng();
        if !rng.chance(self.p) {
            return Ok(());
        }
        let (low, high) = self.distance;
        let distance = low + rng.below(high - low);
        let length = round((f64::from(distance) * self.ratio).ceil());
        let y = rng.below(distance);
        let x = rng.below(distance);
        let degrees = rng.below(self.rotate);
        let squares = self.mode == 1;
        let value = self.value.numbers();
        drawing.erase(Erase::Grid { distance, length, offset: (x, y), degrees, squares, value })
    }
}

impl fmt::Display for GridMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p, distance: (low, high), ratio, rotate, mode, value } = self;
        let part = if *mode == 1 { "squares" } else { "stripes" };
        write!(f, "(p {p}, {part}, distance {low}..{high}, ratio {ratio}, ")?;
        write!(f, "rotate {rotate}, value {value})")
    }
}
