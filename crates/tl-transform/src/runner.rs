//! Carrying steps out on pixels.

use tl_simd::Level;
use tl_simd::gaussian::GaussianBlur;
use tl_simd::resample::{ImageView, Rect};

use crate::draw::Stream;
use crate::error::{StepError, UserFault};
use crate::output::{Dtype, Layout, OutputSpec};
use crate::parity::Parity;
use crate::pass::Pass;
use crate::render::{CHANNELS, Renderer};
use crate::step::{Erase, Memory, MixScratch, Step, WarpScratch};
use crate::user::BoundTransforms;

/// RGB pixels, 8 bits each, rows without gaps, and memory that is used again.
#[derive(Clone, Debug, Default)]
pub struct Image {
    width: u32,
    height: u32,
    /// May be longer than the image.
    data: Vec<u8>,
}

impl Image {
    /// An image without pixels.
    #[must_use]
    pub const fn new() -> Self {
        Self { width: 0, height: 0, data: Vec::new() }
    }

    /// An image of these pixels.
    ///
    /// # Panics
    /// When there are not exactly `width * height * 3` bytes.
    #[must_use]
    pub fn from_pixels(width: u32, height: u32, pixels: Vec<u8>) -> Self {
        assert_eq!(pixels.len(), bytes(width, height), "three bytes a pixel");
        Self { width, height, data: pixels }
    }

    /// Width and height in pixels.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The pixels, row by row.
    #[must_use]
    pub fn pixels(&self) -> &[u8] {
        &self.data[..bytes(self.width, self.height)]
    }

    /// The pixels, row by row.
    #[must_use]
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.data[..bytes(self.width, self.height)]
    }

    /// Takes on another size; what the pixels are then is unspecified.
    ///
    /// # Panics
    /// When there is no memory for so many pixels.
    pub fn reshape(&mut self, width: u32, height: u32) {
        let need = bytes(width, height);
        if self.data.len() < need {
            self.data.resize(need, 0);
        }
        (self.width, self.height) = (width, height);
    }

    /// Keeps the pixels of `rect`, which lies within the image.
    fn crop(&mut self, rect: Rect) {
        if (rect.width, rect.height) == self.size() {
            return;
        }
        let (stride, row) = (self.width as usize * CHANNELS, rect.width as usize * CHANNELS);
        let first = rect.y as usize * stride + rect.x as usize * CHANNELS;
        for y in 0..rect.height as usize {
            let from = first + y * stride;
            self.data.copy_within(from..from + row, y * row);
        }
        (self.width, self.height) = (rect.width, rect.height);
    }

    /// Gives the memory back if it is more than `bytes`; the image is empty then.
    pub fn trim(&mut self, bytes: usize) {
        if self.data.capacity() > bytes {
            *self = Self::new();
        }
    }
}

/// Bytes of an image that fits the address space, which a step's limits see to.
fn bytes(width: u32, height: u32) -> usize {
    let pixels = (width as usize).checked_mul(height as usize);
    pixels.and_then(|pixels| pixels.checked_mul(CHANNELS)).expect("an image that can be allocated")
}

/// The form of the pixels of an [`Image`].
const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

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
    renderer: Renderer,
    spare: Image,
    warp: WarpScratch,
    mix: MixScratch,
    user_transforms: BoundTransforms,
    blur: GaussianBlur,
    memory_limit: u64,
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

impl Runner {
    /// The bytes that steps may need if nothing else is said: 4 GiB.
    pub const MEMORY_LIMIT: u64 = 4 << 30;

    /// A runner at the fastest level of this CPU.
    #[must_use]
    pub fn new() -> Self {
        Self {
            renderer: Renderer::new(PIXELS, [0.0; CHANNELS], [1.0; CHANNELS]),
            spare: Image::new(),
            warp: WarpScratch::default(),
            mix: MixScratch::default(),
            user_transforms: BoundTransforms::default(),
            blur: GaussianBlur::default(),
            memory_limit: Self::MEMORY_LIMIT,
        }
    }

    /// The same with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { renderer: self.renderer.with_level(level), ..self }
    }

    /// The same with the user's transforms of a recipe, for its plans.
    #[must_use]
    pub fn with_user_transforms(self, user_transforms: BoundTransforms) -> Self {
        Self { user_transforms, ..self }
    }

    /// The same with at most so many bytes for an image and what its steps need beside it.
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
        self.mix.reset();
        let (need, limit) = (Memory::of(steps, image.size())?.bytes(), self.memory_limit);
        if need > limit {
            return Err(StepError::Memory { need, limit });
        }
        for (position, step) in steps.iter().enumerate() {
            // torchvision's mixtures are made of tensors, also for Pillow images.
            let parity = if self.mix.is_mixing() { Parity::Tensor } else { parity };
            step.run(&mut Stage { image: &mut *image, runner: self, parity, position })?;
        }
        Ok(())
    }

    /// Gives back buffers larger than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        self.spare.trim(bytes);
        self.warp.trim(bytes);
        self.mix.trim(bytes);
        self.blur.trim(bytes);
    }
}

/// The image a step works on, and what is there to work with.
pub(crate) struct Stage<'a> {
    pub(crate) image: &'a mut Image,
    /// The step's place in the list.
    pub(crate) position: usize,
    pub(crate) parity: Parity,
    runner: &'a mut Runner,
}

impl Stage<'_> {
    /// The instructions to use.
    pub(crate) fn level(&self) -> Level {
        self.runner.renderer.level()
    }

    /// Puts an image of `size` in the place of the present one; `make` fills it from that.
    pub(crate) fn replace(
        &mut self,
        (width, height): (u32, u32),
        make: impl FnOnce(&Image, &mut [u8]),
    ) {
        let spare = &mut self.runner.spare;
        spare.reshape(width, height);
        make(self.image, spare.pixels_mut());
        std::mem::swap(self.image, spare);
    }

    /// The image, and memory for as many of its rows whose content is unspecified.
    pub(crate) fn image_and_rows(&mut self, rows: u32) -> (&mut Image, &mut [u8]) {
        let spare = &mut self.runner.spare;
        spare.reshape(self.image.width, rows);
        (self.image, spare.pixels_mut())
    }

    /// Puts an image of `size` in the place of the present one; `make` fills it from that.
    pub(crate) fn warp(
        &mut self,
        (width, height): (u32, u32),
        make: impl FnOnce(&mut WarpScratch, ImageView<'_>, &mut [u8]),
    ) {
        let Runner { spare, warp, .. } = self.runner;
        spare.reshape(width, height);
        let (width, height) = self.image.size();
        let view = ImageView::packed(self.image.pixels(), width, height, CHANNELS);
        make(warp, view, spare.pixels_mut());
        std::mem::swap(self.image, spare);
    }

    /// The image, and what is kept of a mixture.
    pub(crate) fn image_and_mixture(&mut self) -> (&mut Image, &mut MixScratch) {
        (self.image, &mut self.runner.mix)
    }

    /// Runs the user's transform that `stream` belongs to, if there is one.
    pub(crate) fn user_transform(
        &mut self,
        stream: Stream,
    ) -> Option<Result<(), (String, UserFault)>> {
        self.runner.user_transforms.run(stream, self.image)
    }

    /// The image, and what blurs it.
    pub(crate) fn image_and_blur(&mut self) -> (&mut Image, &mut GaussianBlur) {
        (self.image, &mut self.runner.blur)
    }

    /// Erases a part.
    pub(crate) fn erase(&mut self, erase: &Erase) {
        let size = self.image.size();
        erase.run(self.level(), PIXELS, size, self.image.pixels_mut());
    }

    /// Runs a pass.
    pub(crate) fn pass(&mut self, pass: &Pass) {
        if pass.is_bare() && !pass.resizes() {
            return self.image.crop(pass.source());
        }
        let Runner { renderer, spare, .. } = self.runner;
        let (width, height) = pass.output_size();
        spare.reshape(width, height);
        let view =
            ImageView::packed(self.image.pixels(), self.image.width, self.image.height, CHANNELS);
        renderer.render(pass, view, spare.pixels_mut());
        std::mem::swap(self.image, spare);
    }
}
