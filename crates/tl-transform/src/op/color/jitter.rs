//! Brightness, contrast, saturation and hue, changed by drawn factors.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{permute_channels, shuffle};
use crate::bounds::{require, require_probability};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::op::{Operation, Range};
use crate::rng::Rng;
use crate::step::{Color, HueMethod, Step};
use crate::stream::Stream;

/// The range of factors, and the one that changes nothing.
#[derive(Clone, Copy)]
struct Kind {
    neutral: f64,
    least: f64,
    most: f64,
    expected: &'static str,
}

const FACTOR: Kind = Kind {
    neutral: 1.0,
    least: 0.0,
    most: f64::MAX,
    expected: "0 or a positive number, no less than the lower bound",
};

const TURN: Kind = Kind {
    neutral: 0.0,
    least: -0.5,
    most: 0.5,
    expected: "-0.5 to 0.5, no less than the lower bound",
};

impl Kind {
    /// The bounds; of factors around 1 the lower one is not below 0.
    fn bounds(self, jitter: Range) -> (f64, f64) {
        match jitter {
            Range::Within(amount) if self.neutral > 0.0 => {
                ((self.neutral - amount).max(0.0), self.neutral + amount)
            }
            Range::Within(_) | Range::Between(..) => jitter.bounds(),
        }
    }

    fn check(self, jitter: Range, parameter: &'static str) -> Result<(), Invalid> {
        if let Range::Within(amount) = jitter {
            require(amount >= 0.0, parameter, amount, "0 or a positive number")?;
        }
        let (low, high) = self.bounds(jitter);
        require((self.least..=self.most).contains(&low), parameter, low, self.expected)?;
        require((low..=self.most).contains(&high), parameter, high, self.expected)
    }

    /// A factor, or nothing where none could change anything.
    fn draw(self, jitter: Range, rng: &mut Rng) -> Option<f64> {
        let (low, high) = self.bounds(jitter);
        let drawn = || rng.uniform(low, high);
        ((low, high) != (self.neutral, self.neutral)).then(drawn)
    }
}

/// The properties that are jittered, in torchvision's order.
const CHANGES: [(Kind, &str); 4] =
    [(FACTOR, "brightness"), (FACTOR, "contrast"), (FACTOR, "saturation"), (TURN, "hue")];

/// Changes brightness, contrast, saturation and hue by random factors, in random order.
///
/// As in torchvision the order is drawn first, and then a factor for each change that is not
/// switched off, whatever its place in that order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColorJitter {
    /// The factor for all samples.
    pub brightness: Range,
    /// Around the image's mean grey.
    pub contrast: Range,
    /// Around each pixel's grey.
    pub saturation: Range,
    /// In turns, -0.5 to 0.5.
    pub hue: Range,
    /// The numbers that hues are turned in, if not those of the recipe's parity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hue_method: Option<HueMethod>,
}

impl ColorJitter {
    fn jitters(&self) -> [Range; 4] {
        [self.brightness, self.contrast, self.saturation, self.hue]
    }
}

impl Operation for ColorJitter {
    fn check(&self) -> Result<(), Invalid> {
        check_all(self.jitters())
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut rng = stream.rng();
        let mut order = [0, 1, 2, 3];
        shuffle(&mut rng, &mut order);
        let mut changes = self.jitters().into_iter().zip(CHANGES);
        let mut factor = || {
            let (jitter, (kind, _)) = changes.next()?;
            kind.draw(jitter, &mut rng)
        };
        let method = Some(self.hue_method.unwrap_or(drawing.parity().into()));
        let steps = [
            factor().map(Color::Brightness),
            factor().map(Color::Contrast),
            factor().map(Color::Saturation),
            factor().map(|factor| Color::Hue { factor, method }),
        ];
        order
            .iter()
            .filter_map(|&index: &usize| steps[index])
            .try_for_each(|step| drawing.step(Step::Color(step)))
    }
}

impl fmt::Display for ColorJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_all(f, self.jitters(), self.hue_method)?;
        f.write_str(")")
    }
}

/// Changes brightness, contrast, saturation, hue and the order of the channels, each with
/// probability `p`: torchvision's `RandomPhotometricDistort`, from the SSD paper (Liu et al., 2016).
///
/// Contrast is changed right after brightness or last, at even odds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomPhotometricDistort {
    /// The factor for all samples.
    pub brightness: (f64, f64),
    /// Around the image's mean grey.
    pub contrast: (f64, f64),
    /// Around each pixel's grey.
    pub saturation: (f64, f64),
    /// In turns, -0.5 to 0.5.
    pub hue: (f64, f64),
    /// The probability of each change.
    pub p: f64,
    /// The numbers that hues are turned in, if not those of the recipe's parity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hue_method: Option<HueMethod>,
}

impl Default for RandomPhotometricDistort {
    fn default() -> Self {
        Self {
            brightness: (0.875, 1.125),
            contrast: (0.5, 1.5),
            saturation: (0.5, 1.5),
            hue: (-0.05, 0.05),
            p: 0.5,
            hue_method: None,
        }
    }
}

impl RandomPhotometricDistort {
    fn jitters(&self) -> [Range; 4] {
        [self.brightness, self.contrast, self.saturation, self.hue]
            .map(|(low, high)| Range::Between(low, high))
    }
}

impl Operation for RandomPhotometricDistort {
    fn check(&self) -> Result<(), Invalid> {
        check_all(self.jitters())?;
        require_probability(self.p)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        let mut rng = stream.rng();
        let [brightness, contrast, saturation, hue] = self.jitters().map(|jitter| {
            let Range::Between(low, high) = jitter else { return None };
            rng.chance(self.p).then(|| rng.uniform(low, high))
        });
        let contrast = contrast.map(Color::Contrast);
        let contrast_first = rng.chance(0.5);
        let method = Some(self.hue_method.unwrap_or(drawing.parity().into()));
        let steps = [
            brightness.map(Color::Brightness),
            contrast.filter(|_| contrast_first),
            saturation.map(Color::Saturation),
            hue.map(|factor| Color::Hue { factor, method }),
            contrast.filter(|_| !contrast_first),
        ];
        for step in steps.into_iter().flatten() {
            drawing.step(Step::Color(step))?;
        }
        if rng.chance(self.p) { permute_channels(&mut rng, drawing) } else { Ok(()) }
    }
}

impl fmt::Display for RandomPhotometricDistort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_all(f, self.jitters(), self.hue_method)?;
        write!(f, ", p {})", self.p)
    }
}

fn check_all(jitters: [Range; 4]) -> Result<(), Invalid> {
    let mut checked = jitters.iter().zip(CHANGES);
    checked.try_for_each(|(jitter, (kind, name))| kind.check(*jitter, name))
}

/// `(brightness 0.4, contrast 0.4, ...`, without the closing bracket.
fn write_all(
    f: &mut fmt::Formatter<'_>,
    jitters: [Range; 4],
    method: Option<HueMethod>,
) -> fmt::Result {
    for (index, (jitter, (_, name))) in jitters.iter().zip(CHANGES).enumerate() {
        write!(f, "{}{name} ", if index == 0 { "(" } else { ", " })?;
        match jitter {
            Range::Within(amount) => write!(f, "{amount}"),
            Range::Between(low, high) => write!(f, "{low}..{high}"),
        }?;
    }
    method.map_or(Ok(()), |method| write!(f, " as {method}"))
}
