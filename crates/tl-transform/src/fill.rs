//! Colours for what a transform leaves without pixels.

use std::fmt;

use serde::Serialize;

use crate::bounds::require;
use crate::error::Invalid;
use crate::op::forms::forms;
use crate::output::Channels;

/// A colour: one number for every channel, or red, green and blue.
///
/// ```
/// use tl_transform::Fill;
///
/// assert_eq!(serde_json::from_str::<Fill>("127")?, Fill::Grey(127.0));
/// assert_eq!(serde_json::from_str::<Fill>("[1, 2, 3]")?, Fill::Rgb([1.0, 2.0, 3.0]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Fill {
    /// The same for every channel.
    Grey(f64),
    /// One number each.
    Rgb([f64; 3]),
}

forms!(Fill: Grey(f64), Rgb([_; 3]); "a fill is a number, 0 to 255, or [r, g, b]");

impl Fill {
    /// Black, the default of torchvision.
    pub const BLACK: Self = Self::Grey(0.0);

    /// Refuses numbers that are not 8-bit samples.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let ok = |value: f64| (0.0..=255.0).contains(&value);
        let channels = self.channels();
        let wrong = channels.into_iter().find(|&value| !ok(value));
        require(wrong.is_none(), "fill", wrong.unwrap_or_default(), "0 to 255")
    }

    /// Whether the fill is one of pixels that are not 8-bit RGB or grey: a whole number for all of
    /// their channels, or one for each of three.
    pub(crate) fn is_for(&self, channels: Channels) -> bool {
        let whole = self.channels().iter().all(|value| value.fract() == 0.0);
        whole && (matches!(self, Self::Grey(_)) || channels == Channels::Rgb)
    }

    const fn channels(self) -> [f64; 3] {
        match self {
            Self::Grey(grey) => [grey; 3],
            Self::Rgb(channels) => channels,
        }
    }

    /// As torchvision gives it to Pillow: without fractions.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub fn pil(self) -> [u8; 3] {
        self.channels().map(|value| value as u8)
    }

    /// As torchvision gives it to tensors of floats.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "rounded as torch does")]
    pub fn tensor(self) -> [f32; 3] {
        self.channels().map(|value| value as f32)
    }

    /// The fill of a mask: the number, if there is one for all channels, or 0.
    #[must_use]
    pub const fn mask(self) -> Self {
        match self {
            Self::Grey(_) => self,
            Self::Rgb(_) => Self::BLACK,
        }
    }
}

impl Default for Fill {
    fn default() -> Self {
        Self::BLACK
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grey(grey) => write!(f, "{grey}"),
            Self::Rgb(channels) => write!(f, "{channels:?}"),
        }
    }
}
