//! Borders that repeat or reflect the image, which a pass cannot add.

use serde::{Deserialize, Serialize};
use tl_simd::pad::{Border, Margins, pad};

use super::stage::Stage;
use crate::annotations::{Coordinates, Mask};
use crate::error::AnnotationError;
use crate::op::PadMode;
use crate::pass::{Padding, mask_fill};

/// A border around an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// The width on each side.
    pub padding: Padding,
    /// The kind of border.
    pub mode: PadMode,
    /// The colour of a constant one.
    #[serde(default)]
    pub fill: [u8; 3],
}

impl Pad {
    pub(super) fn output_size(&self, size: (u32, u32)) -> (u32, u32) {
        let (width, height) = size;
        let Padding { left, top, right, bottom } = self.padding;
        let side = |a: u32, b: u32, c: u32| a.saturating_add(b).saturating_add(c);
        (side(left, width, right), side(top, height, bottom))
    }

    pub(super) fn fits(&self, size: (u32, u32)) -> bool {
        self.padding.around(size).is_ok()
    }

    pub(super) fn run(&self, stage: &mut Stage<'_>) {
        let level = stage.level();
        let size = stage.image.size();
        stage.replace(self.output_size(size), |_, view, out| {
            let [red, green, blue] = self.fill;
            pad(level, view, self.margins(), self.border([red, green, blue, 0]), out);
        });
    }

    /// torchvision refuses boxes and keypoints for all modes but the constant one; here they stay
    /// with what they are around.
    pub(super) fn move_coordinates<C: Coordinates>(
        &self,
        coordinates: &mut C,
    ) -> Result<(), AnnotationError> {
        let size = self.output_size(coordinates.canvas());
        coordinates.pad((self.padding.left, self.padding.top), size)
    }

    pub(super) fn move_mask(&self, mask: &mut Mask) -> Result<(), AnnotationError> {
        mask.pad(self.margins(), self.border([mask_fill(self.fill); 4]))
    }

    fn margins(&self) -> Margins {
        self.padding.into()
    }

    fn border(&self, fill: [u8; 4]) -> Border {
        match self.mode {
            PadMode::Constant => Border::Constant(fill),
            PadMode::Edge => Border::Edge,
            PadMode::Reflect => Border::Reflect,
            PadMode::Symmetric => Border::Symmetric,
        }
    }
}
