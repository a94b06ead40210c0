//! The image that a step works on, and the memory that steps share.

use tl_simd::Level;
use tl_simd::gaussian::GaussianBlur;
use tl_simd::resample::ImageView;

use super::erase::Erase;
use super::mix::Scratch as MixScratch;
use super::user::User;
use super::warp::Scratch as WarpScratch;
use crate::error::UserFault;
use crate::image::Image;
use crate::output::{Channels, Dtype, Layout, OutputSpec};
use crate::parity::Parity;
use crate::pass::Pass;
use crate::render::{CHANNELS, Renderer};
use crate::user::{BoundTransforms, UserAnnotations};

/// The form of the pixels of an [`Image`].
const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

/// Memory that steps use again from image to image, and what they are carried out with.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) renderer: Renderer,
    spare: Image,
    pub(super) warp: WarpScratch,
    pub(crate) mix: MixScratch,
    pub(crate) user_transforms: BoundTransforms,
    blur: GaussianBlur,
}

impl Workspace {
    /// A workspace at the fastest level of this CPU.
    pub(crate) fn new() -> Self {
        Self {
            renderer: Renderer::new(PIXELS, [0.0; CHANNELS], [1.0; CHANNELS]),
            spare: Image::new(),
            warp: WarpScratch::default(),
            mix: MixScratch::default(),
            user_transforms: BoundTransforms::default(),
            blur: GaussianBlur::default(),
        }
    }

    /// Releases buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.spare.trim(bytes);
        self.warp.trim(bytes);
        self.mix.trim(bytes);
        self.blur.trim(bytes);
    }
}

/// The image a step works on, and its working memory.
pub(crate) struct Stage<'a> {
    pub(crate) image: &'a mut Image,
    /// The step's place in the list.
    pub(crate) position: usize,
    pub(crate) parity: Parity,
    pub(crate) workspace: &'a mut Workspace,
}

impl Stage<'_> {
    /// The instructions to use.
    pub(crate) fn level(&self) -> Level {
        self.workspace.renderer.level()
    }

    /// Replaces the present image by one of `size`; `make` fills it from that.
    pub(crate) fn replace(
        &mut self,
        size: (u32, u32),
        make: impl FnOnce(&mut Workspace, ImageView<'_>, &mut [u8]),
    ) {
        let mut image = std::mem::take(&mut self.workspace.spare);
        image.reshape(size.0, size.1);
        make(self.workspace, self.image.view(), image.pixels_mut());
        self.workspace.spare = std::mem::replace(self.image, image);
    }

    /// The image, and memory for as many of its rows whose content is unspecified.
    pub(crate) fn image_and_rows(&mut self, rows: u32) -> (&mut Image, &mut [u8]) {
        let spare = &mut self.workspace.spare;
        spare.reshape(self.image.size().0, rows);
        (self.image, spare.pixels_mut())
    }

    /// The image, and what is kept of a mixture.
    pub(crate) fn image_and_mixture(&mut self) -> (&mut Image, &mut MixScratch) {
        (self.image, &mut self.workspace.mix)
    }

    /// Runs the user's transform of a step, if there is one.
    pub(crate) fn user_transform(&mut self, step: User) -> Option<Result<(), (String, UserFault)>> {
        let size = step.output_size(self.image.size());
        let annotations = &mut UserAnnotations::default();
        self.workspace.user_transforms.run(
            step.stream,
            Some(size),
            u64::MAX,
            self.image,
            annotations,
        )
    }

    /// The image, and what blurs it.
    pub(crate) fn image_and_blur(&mut self) -> (&mut Image, &mut GaussianBlur) {
        (self.image, &mut self.workspace.blur)
    }

    /// Erases a part.
    pub(crate) fn erase(&mut self, erase: &Erase) {
        let size = self.image.size();
        erase.run(self.level(), PIXELS, Channels::Rgb, size, self.image.pixels_mut());
    }

    /// Runs a pass.
    pub(crate) fn pass(&mut self, pass: &Pass) {
        if pass.is_bare() && !pass.resizes() {
            return self.image.crop(pass.source());
        }
        self.replace(pass.output_size(), |workspace, view, out| {
            workspace.renderer.render(pass, view, out);
        });
    }
}
