//! Sizes, as torchvision's parameters have them.

use std::fmt;

use serde::Serialize;

use crate::bounds::require_size;
use crate::error::Invalid;
use crate::op::forms::forms;

/// A size, in the forms that torchvision has.
///
/// ```
/// use tl_transform::op::Size;
///
/// assert_eq!(serde_json::from_str::<Size>("224")?, Size::Side(224));
/// assert_eq!(serde_json::from_str::<Size>("[480, 640]")?, Size::Exact([480, 640]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// Both sides of a crop, or the shorter side for [`Resize`](super::Resize).
    Side(u32),
    /// Height and width, in torchvision's order.
    Exact([u32; 2]),
}

forms!(
    Size: Side(u32), Exact([_; 2]);
    "a size is 1 to 65535 pixels, or [height, width] of such"
);

impl Size {
    /// This width and this height.
    #[must_use]
    pub const fn exact(width: u32, height: u32) -> Self {
        Self::Exact([height, width])
    }

    /// Width and height of a crop of this size.
    pub(super) const fn of_crop(self) -> (u32, u32) {
        match self {
            Self::Side(side) => (side, side),
            Self::Exact([height, width]) => (width, height),
        }
    }

    /// Refuses sides that no image has.
    pub(super) fn check(self) -> Result<(), Invalid> {
        let (width, height) = self.of_crop();
        require_size("size", height)?;
        require_size("size", width)
    }
}

impl fmt::Display for Size {
    /// A number alone, or width and height.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Side(side) => write!(f, "{side}"),
            Self::Exact([height, width]) => write!(f, "{width}x{height}"),
        }
    }
}
