//! Plans: what a recipe does to one image, drawn before any of its pixels exist.

use serde::{Deserialize, Serialize};
use tl_simd::Level;
use tl_simd::resample::Rect;

use crate::annotations::{BoundingBoxes, Coordinates, Keypoints, Mask};
use crate::error::{AnnotationError, StepError};
use crate::fill::Fill;
use crate::output::{Channels, OutputSpec};
use crate::pass::Pass;
use crate::render::CHANNELS;
use crate::step::{Erase, Memory, Mix, Step};

/// The plan for one image: a pass over its rows, steps on all its pixels, and another pass.
///
/// Most recipes only crop, resize and flip: then the head is everything, and an image goes from
/// the decoder to the batch row by row. Otherwise the head makes a u8 image, the steps change it
/// ([`Runner`](crate::Runner)), and the tail brings it into the batch.
/// The fields are public so that a plan drawn elsewhere can be run, and one drawn here checked
/// elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The pass over the image as it is decoded.
    pub head: Pass,
    /// The steps on its pixels after that, in order.
    pub steps: Vec<Step>,
    /// The pass into the batch, after the steps.
    pub tail: Pass,
    /// The parts of the batch's numbers that are erased after that, in order.
    pub erasures: Vec<Erase>,
}

impl Plan {
    /// The plan that leaves an image as it is.
    #[must_use]
    pub const fn whole(width: u32, height: u32) -> Self {
        let pass = Pass::whole(width, height);
        Self { head: pass, steps: Vec::new(), tail: pass, erasures: Vec::new() }
    }

    /// Moves boxes with the image. Mixtures move nothing: each image keeps its place in them.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a pass or a step is not for the image that they are of then;
    /// what they are is unspecified afterwards.
    pub fn move_boxes(&self, boxes: &mut BoundingBoxes) -> Result<(), AnnotationError> {
        self.move_coordinates(boxes)
    }

    /// Moves keypoints with the image, as [`Plan::move_boxes`] does boxes. Warps follow
    /// `rotate_keypoints`, `affine_keypoints`, `perspective_keypoints` and `elastic_keypoints` in
    /// `f32`; where a perspective cannot be inverted, torchvision raises an error and the points stay
    /// here.
    ///
    /// # Errors
    /// As [`Plan::move_boxes`].
    pub fn move_keypoints(&self, keypoints: &mut Keypoints) -> Result<(), AnnotationError> {
        self.move_coordinates(keypoints)
    }

    fn move_coordinates(&self, coordinates: &mut impl Coordinates) -> Result<(), AnnotationError> {
        self.head.move_coordinates(coordinates)?;
        self.moving_steps().try_for_each(|step| step.move_coordinates(coordinates))?;
        self.tail.move_coordinates(coordinates)
    }

    /// True if the image becomes its mirror image, in which left and right hands change roles: by
    /// an odd number of flips over either axis.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        let flips = |pass: &Pass| pass.flip != pass.flip_vertical;
        let steps = self.moving_steps();
        let steps = steps.filter(|step| matches!(step, Step::Pass(pass) if flips(pass)));
        let mirrored = flips(&self.head) != flips(&self.tail);
        mirrored != (steps.count() % 2 == 1)
    }

    /// Moves a mask with the image, as [`Plan::move_boxes`] does boxes.
    ///
    /// # Errors
    /// As [`Plan::move_boxes`].
    pub fn move_mask(&self, mask: &mut Mask) -> Result<(), AnnotationError> {
        self.head.move_mask(mask)?;
        self.moving_steps().try_for_each(|step| step.move_mask(mask))?;
        self.tail.move_mask(mask)
    }

    /// The plan for images of which only the part that the head reads is there.
    #[must_use]
    pub fn of_region(&self) -> Self {
        let Pass { region, .. } = self.head;
        let head = Pass { region: Rect::of_size(region.width, region.height), ..self.head };
        Self { head, ..self.clone() }
    }

    /// The steps that are not within a mixture.
    fn moving_steps(&self) -> impl Iterator<Item = &Step> {
        let mut mixing = false;
        self.steps.iter().filter(move |step| {
            if let Step::Mix(mix) = step {
                mixing = !matches!(mix, Mix::End { .. });
            }
            !mixing
        })
    }

    /// The same moves, which fill what they leave without pixels with `number`.
    #[must_use]
    pub fn with_fill(&self, number: u8) -> Self {
        let mut plan = self.clone();
        plan.fill_with(number);
        plan
    }

    fn fill_with(&mut self, number: u8) {
        let fill = [number; 3];
        for pass in [&mut self.head, &mut self.tail] {
            pass.fill = fill;
        }
        for step in &mut self.steps {
            match step {
                Step::Pass(pass) => pass.fill = fill,
                Step::Pad(pad) => pad.fill = fill,
                Step::Warp(warp) => *warp = warp.with_fill(Fill::Grey(number.into())),
                Step::Color(_)
                | Step::Mix(_)
                | Step::User(_)
                | Step::Filter(_)
                | Step::Noise(_)
                | Step::Erase(_) => {}
            }
        }
    }

    /// Leaves out the steps that change pixels where they are, what is erased, and the colours of
    /// borders, which become 0: the plan of an image that moves with this one and keeps its numbers.
    pub fn keep_geometry(&mut self) {
        let mut mixing = false;
        self.steps.retain(|step| {
            if let Step::Mix(mix) = step {
                mixing = !matches!(mix, Mix::End { .. });
                return false;
            }
            !mixing && matches!(step, Step::Pass(_) | Step::Pad(_) | Step::Warp(_))
        });
        self.erasures.clear();
        self.fill_with(0);
    }

    /// Width and height of the result.
    #[must_use]
    pub fn output_size(&self) -> (u32, u32) {
        self.tail.output_size()
    }

    /// Whether the head is everything.
    #[must_use]
    pub fn is_one_pass(&self) -> bool {
        let (width, height) = self.head.output_size();
        self.steps.is_empty() && self.tail == Pass::whole(width, height)
    }

    /// Width and height of the image after the steps and before the tail.
    #[must_use]
    pub fn size_before_tail(&self) -> (u32, u32) {
        self.steps.iter().fold(self.head.output_size(), |size, step| step.output_size(size))
    }

    /// Erases what is to be erased of `out`, which holds the result of the tail in these channels and
    /// in the form of `output`.
    ///
    /// # Errors
    /// [`StepError::Size`] when a part is not one of such an image; the position counts on after
    /// the steps.
    ///
    /// # Panics
    /// If `out` is not exactly as long as a result of the plan's size.
    pub fn erase(
        &self,
        level: Level,
        output: OutputSpec,
        channels: Channels,
        out: &mut [u8],
    ) -> Result<(), StepError> {
        let (width, height) = self.output_size();
        for (position, erase) in (self.steps.len()..).zip(&self.erasures) {
            if !erase.fits((width, height)) {
                return Err(StepError::Size { position, width, height });
            }
            erase.run(level, output, channels, (width, height), out);
        }
        Ok(())
    }

    /// Bytes that a [`Runner`](crate::Runner) holds for the steps, the image's included; 0 when the
    /// head is everything.
    ///
    /// # Errors
    /// [`StepError::Size`] when a step is not for the image before it.
    pub fn scratch_bytes(&self) -> Result<u64, StepError> {
        if self.is_one_pass() {
            return Ok(0);
        }
        let steps = Memory::of(&self.steps, self.head.output_size())?;
        Ok(steps.bytes().max(self.largest_step() * CHANNELS as u64))
    }

    /// Pixels of the largest image between the passes; 0 when the plan has no steps.
    #[must_use]
    pub fn largest_step(&self) -> u64 {
        if self.is_one_pass() {
            return 0;
        }
        let pixels = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
        let mut size = self.head.output_size();
        let after = self.steps.iter().map(|step| {
            size = step.output_size(size);
            pixels(size)
        });
        after.fold(pixels(self.head.output_size()), u64::max)
    }
}

#[cfg(test)]
mod tests;
