//! The part of a recipe that a device does.

use std::fmt;

use tl_cuda::DeviceReason;
use tl_transform::{DecodeMode, Dtype, Layout, Recipe};

use crate::config::LoaderConfig;
use crate::note::LoaderNote;

/// The part of a device in the images of a recipe. The CPU does the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicePart {
    /// Whether it decodes JPEG images.
    pub decodes: bool,
    /// Whether nvJPEG decodes those that it can, as the recipe says.
    pub nvjpeg: bool,
    /// Whether it makes the numbers of the batch of pixels.
    pub converts: bool,
    /// The operation, or property of the recipe, because of which it does not make them, or nvJPEG
    /// cannot be used.
    pub op: Option<&'static str>,
}

impl DevicePart {
    /// The part in `recipe`, where each sample has one image, bad samples are not filled, and the
    /// settings of the loader forbid nothing.
    #[must_use]
    pub fn of(recipe: &Recipe) -> Self {
        let is_pixels = is_pixels(recipe);
        let nvjpeg = recipe.decode_mode() == DecodeMode::NvJpeg;
        let beyond = recipe.beyond_one_pass().filter(|_| nvjpeg);
        match beyond.map_or_else(|| pixels_of(recipe), Err) {
            Ok(_) => Self { decodes: true, converts: !is_pixels, nvjpeg, op: None },
            Err(op) => {
                let op = Some(op).filter(|_| nvjpeg || !is_pixels);
                Self { decodes: false, converts: false, nvjpeg, op }
            }
        }
    }
}

impl fmt::Display for DevicePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Self { decodes: false, nvjpeg: true, .. }, Some(op)) = (self, self.op) {
            return write!(
                f,
                "refused by loaders: nvJPEG decodes there, and `{op}` runs on the CPU"
            );
        }
        f.write_str(match (self.decodes, self.converts) {
            (true, true) => "decodes JPEG images there and converts pixels",
            (true, false) => "decodes JPEG images there",
            (false, true) => "copies pixels and converts them there",
            (false, false) => "copies",
        })?;
        if self.nvjpeg {
            f.write_str(", baseline files by nvJPEG")?;
        }
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
fn pixels_of(recipe: &Recipe) -> Result<Recipe, &'static str> {
    if recipe.output_size().is_none() {
        return Err("images of several sizes");
    }
    recipe.before_table()
}

/// The part of a recipe that makes 8-bit RGB pixels of one size, if a table for each channel makes the
/// numbers of the batch of them; otherwise what stands against it.
pub(crate) fn pixels_for_device(
    config: &LoaderConfig,
    recipe: &Recipe,
) -> Result<Recipe, &'static str> {
    match pixels_of(recipe) {
        _ if !config.fields.images.is_empty() => Err("further images"),
        pixels => pixels,
    }
}

/// The note on work that the CPU does instead of the device.
pub(crate) fn on_cpu(wanted: &'static str, reason: DeviceReason) -> LoaderNote {
    LoaderNote::Device { wanted, used: "on the CPU instead", reason }
}
