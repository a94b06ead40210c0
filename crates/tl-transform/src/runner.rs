//! Carrying steps out on pixels.

use tl_simd::Level;

use crate::error::StepError;
use crate::image::Image;
use crate::parity::Parity;
use crate::step::{Memory, Stage, Step, Workspace};
use crate::user::BoundTransforms;

/// Carries out steps, and keeps the memory they need from image to image.
///
/// ```
/// use tl_transform::{Image, Parity, Pass, Runner, Step};
///
/// let mut image = Image::from_pixels(2, 1, vec![1, 2, 3, 4, 5, 6]);
/// let mirror = Step::Pass(Pass { flip: true, ..Pass::whole(2, 1) });
/// Runner::new().run(&[mirror], Parity::Pil, &mut image)?;
/// assert_eq!(image.pixels(), [4, 5, 6, 1, 2, 3]);
/// # Ok::<(), tl_transform::StepError>(())
/// ```
#[derive(Debug)]
pub struct Runner {
    workspace: Workspace,
    memory_limit: u64,
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

impl Runner {
    /// The bytes that steps may need by default: 4 GiB.
    pub const MEMORY_LIMIT: u64 = 4 << 30;

    /// A runner at the fastest level of this CPU.
    #[must_use]
    pub fn new() -> Self {
        Self { workspace: Workspace::new(), memory_limit: Self::MEMORY_LIMIT }
    }

    /// The same with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.workspace.renderer = self.workspace.renderer.with_level(level);
        self
    }

    /// The same with the user's transforms of a recipe, for its plans.
    #[must_use]
    pub fn with_user_transforms(mut self, user_transforms: BoundTransforms) -> Self {
        self.workspace.user_transforms = user_transforms;
        self
    }

    /// The same with at most this many bytes for an image and what its steps need in addition.
    #[must_use]
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        Self { memory_limit: bytes, ..self }
    }

    /// Does `steps` to `image`, in order, with the arithmetic of `parity`.
    ///
    /// # Errors
    /// [`StepError`]: a step is for an image of another size, the steps need more memory than there
    /// may be, or a user's transform fails. What the image is then is unspecified.
    pub fn run(
        &mut self,
        steps: &[Step],
        parity: Parity,
        image: &mut Image,
    ) -> Result<(), StepError> {
        self.workspace.mix.reset();
        let need = Memory::of(steps, image.size())?.bytes();
        let limit = self.memory_limit;
        if need > limit {
            return Err(StepError::Memory { need, limit });
        }
        for (position, step) in steps.iter().enumerate() {
            // torchvision mixes tensors, even for Pillow images.
            let parity = if self.workspace.mix.is_mixing() { Parity::Tensor } else { parity };
            let image = &mut *image;
            let workspace = &mut self.workspace;
            step.run(&mut Stage { image, workspace, parity, position })?;
        }
        Ok(())
    }

    /// Releases buffers larger than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        self.workspace.trim(bytes);
    }
}
