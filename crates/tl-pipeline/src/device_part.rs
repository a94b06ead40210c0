//! The part of a recipe that a device does.

use std::fmt;

use tl_cuda::DeviceReason;
use tl_transform::{Dtype, Layout, Recipe};

use crate::note::LoaderNote;

/// The part of a device in the images of a recipe. The CPU does the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicePart {
    /// Whether it decodes JPEG images.
    pub decodes: bool,
    /// Whether it makes the numbers of the batch of pixels.
    pub converts: bool,
    /// The operation, or property of the recipe, because of which it does not make them.
    pub op: Option<&'static str>,
}

impl DevicePart {
    /// The part in `recipe`, where each sample has one image, bad samples are not filled, and the
    /// settings of the loader forbid nothing.
    #[must_use]
    pub fn of(recipe: &Recipe) -> Self {
        let is_pixels = is_pixels(recipe);
        match pixels_of(recipe) {
            Ok(_) => Self { decodes: true, converts: !is_pixels, op: None },
            Err(op) => {
                Self { decodes: false, converts: false, op: Some(op).filter(|_| !is_pixels) }
            }
        }
    }
}

impl fmt::Display for DevicePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.decodes, self.converts) {
            (true, true) => "decodes JPEG images there and converts pixels",
            (true, false) => "decodes JPEG images there",
            (false, true) => "copies pixels and converts them there",
            (false, false) => "copies",
        })?;
        let note = |op| on_cpu("conversion on the device", DeviceReason::Recipe { op });
        self.op.map_or(Ok(()), |op| write!(f, "; {}", note(op)))
    }
}

/// Whether the numbers of a recipe are pixels as decoders make them.
pub(crate) fn is_pixels(recipe: &Recipe) -> bool {
    (recipe.output().dtype, recipe.output().layout) == (Dtype::U8, Layout::Hwc)
}

/// The recipe of the 8-bit RGB pixels of which tables make the numbers of `recipe`, or what stands
/// against it.
pub(crate) fn pixels_of(recipe: &Recipe) -> Result<Recipe, &'static str> {
    if recipe.output_size().is_none() {
        return Err("images of several sizes");
    }
    recipe.before_table()
}

/// The note on work that the CPU does instead of the device.
pub(crate) fn on_cpu(wanted: &'static str, reason: DeviceReason) -> LoaderNote {
    LoaderNote::Device { wanted, used: "on the CPU instead", reason }
}
