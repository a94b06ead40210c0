//! Crops, resizes, borders and flips.

mod crop;
mod flip;
mod pad;
mod resize;
mod resized_crop;
mod size;
mod views;

pub use crop::{CenterCrop, RandomCrop};
pub use flip::{RandomHorizontalFlip, RandomVerticalFlip};
pub use pad::{Pad, PadMode, RandomZoomOut, Sides};
pub use resize::{RandomShortestSize, Resize, ScaleJitter};
pub use resized_crop::RandomResizedCrop;
pub use size::Size;
pub use views::{FiveCrop, TenCrop};

/// The default of switches that are on when left out, for serde.
const fn yes() -> bool {
    true
}

/// Python's `int(x)` of a side; beyond every side where it saturates.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn truncate(side: f64) -> u32 {
    side as u32
}
