//! The memory of steps, known before any of them is carried out.

use tl_simd::gaussian::GaussianBlur;

use super::{Color, Filter, Mix, Step, Warp};
use crate::bounds::area;
use crate::error::StepError;
use crate::render::CHANNELS;

/// Bytes that a [`Runner`](crate::Runner) holds while it carries steps out, the image's included.
///
/// It keeps the memory of a step for later steps of the same kind. It therefore holds the maximum
/// of every kind at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    image: u64,
    /// Another image, which steps that move pixels make.
    spare: u64,
    displacements: u64,
    mixture: u64,
    blur: u64,
}

impl Memory {
    /// The memory of `steps` on an image of `size`. Refuses steps that do not fit.
    pub(crate) fn of(steps: &[Step], mut size: (u32, u32)) -> Result<Self, StepError> {
        let mut memory = Self::default();
        for (position, step) in steps.iter().enumerate() {
            let (width, height) = size;
            if !step.fits(size) {
                return Err(StepError::Size { position, width, height });
            }
            size = step.output_size(size);
            memory.count(step, (width, height), size);
        }
        Ok(memory)
    }

    /// All of it together.
    pub(crate) fn bytes(&self) -> u64 {
        let Self { image, spare, displacements, mixture, blur } = *self;
        image + spare + displacements + mixture + blur
    }

    /// Counts what `step` needs in, which makes an image of size `after` of one of size `before`.
    fn count(&mut self, step: &Step, before: (u32, u32), after: (u32, u32)) {
        let samples = |size| area(size) * CHANNELS as u64;
        let float = size_of::<f32>() as u64;
        self.image = self.image.max(samples(before)).max(samples(after));
        match step {
            // The two images change places.
            Step::Pass(_) | Step::Pad(_) | Step::Warp(_) => self.spare = self.image,
            Step::Color(Color::Sharpness(_)) => {
                self.spare = self.spare.max(samples((before.0, 2)));
            }
            Step::Mix(Mix::Begin { .. }) => {
                self.mixture = self.mixture.max(samples(before) * (1 + float));
            }
            Step::Filter(Filter::GaussianBlur { kernel_size: (columns, rows), .. }) => {
                let kernel = (*columns as usize, *rows as usize);
                self.blur = self.blur.max(GaussianBlur::bytes(kernel, before.0));
            }
            Step::Color(_) | Step::Mix(_) | Step::User(_) | Step::Noise(_) | Step::Erase(_) => {}
        }
        if let Step::Warp(Warp::Elastic(elastic)) = step {
            self.displacements = self.displacements.max(elastic.bytes(after));
        }
    }
}
