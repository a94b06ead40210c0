//! Steps that make pixels of their neighbourhoods.

use serde::{Deserialize, Serialize};

use super::stage::Stage;

/// The longest side of a kernel.
pub(crate) const MAX_KERNEL: u32 = 255;

/// A filter, by the name of torchvision's functional.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Filter {
    /// `gaussian_blur`, which does the same to Pillow images and to tensors: both modes give its
    /// bytes, as torch computes them on x86 with AVX-512. torch refuses images that are not larger
    /// than half the kernel; here they are reflected again.
    GaussianBlur {
        /// Columns and rows of the kernel, odd numbers up to 255.
        kernel_size: (u32, u32),
        /// The standard deviation across and down, in pixels.
        sigma: (f64, f64),
    },
}

impl Filter {
    /// Whether there is such a kernel.
    pub(crate) fn is_defined(self) -> bool {
        let Self::GaussianBlur { kernel_size: (columns, rows), sigma: (across, down) } = self;
        is_kernel(columns) && is_kernel(rows) && is_deviation(across) && is_deviation(down)
    }

    /// Carries the step out.
    pub(crate) fn run(self, stage: &mut Stage<'_>) {
        let Self::GaussianBlur { kernel_size: (columns, rows), sigma } = self;
        let level = stage.level();
        let (image, blur) = stage.image_and_blur();
        let (width, height) = image.size();
        blur.set((columns as usize, rows as usize), sigma);
        blur.run(level, image.pixels_mut(), width as usize, height as usize);
    }
}

/// Whether a kernel can have this many columns or rows.
pub(crate) fn is_kernel(side: u32) -> bool {
    side % 2 == 1 && side <= MAX_KERNEL
}

/// Whether a Gaussian can have this deviation in the numbers it is computed in.
#[expect(clippy::cast_possible_truncation, reason = "torch rounds it to f32")]
pub(crate) fn is_deviation(sigma: f64) -> bool {
    sigma > 0.0 && (sigma as f32).is_normal()
}
