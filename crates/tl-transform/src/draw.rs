//! A plan in the making, to which operations add what they drew.

use tl_simd::resample::Rect;

use crate::bounds::{check_size, is_resized_size};
use crate::error::PlanError;
use crate::interpolation::Sampling;
use crate::parity::Parity;
use crate::pass::{Padding, Pass};
use crate::plan::Plan;
use crate::step::{Erase, Step};

/// A plan in the making: operations add what they drew.
///
/// Crops, resizes, black borders and flips that follow each other become one [`Pass`] where that
/// leaves every bit as it is.
#[derive(Debug)]
pub(crate) struct Drawing<'a> {
    plan: &'a mut Plan,
    /// The pass that is not in the plan yet.
    pass: Pass,
    /// Width and height of the image that the pass begins with.
    before: (u32, u32),
    /// Whether the plan has its head.
    begun: bool,
    parity: Parity,
    /// Whether samples are floats by now.
    is_float: bool,
    /// The number of the sample's image, for the operations that have not taken their part yet.
    view: u32,
}

impl<'a> Drawing<'a> {
    /// An image of this size, nothing done to it yet. `plan` is overwritten.
    pub(crate) fn new(plan: &'a mut Plan, width: u32, height: u32, parity: Parity) -> Self {
        plan.steps.clear();
        plan.erasures.clear();
        let pass = Pass::whole(width, height);
        Self { plan, pass, before: (width, height), begun: false, parity, is_float: false, view: 0 }
    }

    /// The same for image `view` of the sample.
    pub(crate) fn of_view(self, view: u32) -> Self {
        Self { view, ..self }
    }

    /// Width and height at this point of the recipe.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.pass.output_size()
    }

    /// The package whose arithmetic is followed.
    pub(crate) fn parity(&self) -> Parity {
        self.parity
    }

    /// The number of this image of the sample, below `count`: every operation that makes several
    /// images takes its part of the number.
    pub(crate) fn view(&mut self, count: u32) -> u32 {
        let view = self.view % count;
        self.view /= count;
        view
    }

    /// Cuts out `rect`, which lies in the image.
    pub(crate) fn crop(&mut self, rect: Rect) -> Result<(), PlanError> {
        let (width, height) = self.size();
        if rect == Rect::of_size(width, height) {
            return Ok(());
        }
        let mirrored = |start: u32, length: u32, side: u32, flip: bool| {
            if flip { side - start - length } else { start }
        };
        let Pass { window, padding, flip, flip_vertical, .. } = self.pass;
        let across = Cut::new(
            mirrored(rect.x, rect.width, width, flip),
            rect.width,
            padding.left,
            window.width,
        );
        let down = Cut::new(
            mirrored(rect.y, rect.height, height, flip_vertical),
            rect.height,
            padding.top,
            window.height,
        );
        if across.length == 0 || down.length == 0 {
            self.flush()?;
            self.pass.region = rect;
            self.pass.resized = (rect.width, rect.height);
            self.pass.window = Rect::of_size(rect.width, rect.height);
            return Ok(());
        }
        let part = |of: Rect| Rect {
            x: of.x + across.start,
            y: of.y + down.start,
            width: across.length,
            height: down.length,
        };
        let pass = &mut self.pass;
        if pass.resizes() {
            pass.window = part(window);
        } else {
            pass.region = part(pass.region);
            pass.resized = (across.length, down.length);
            pass.window = Rect::of_size(across.length, down.length);
        }
        pass.padding = Padding {
            left: across.before,
            top: down.before,
            right: across.after,
            bottom: down.after,
        };
        Ok(())
    }

    /// Resizes the whole image; nothing happens where it has that size, as in torchvision.
    pub(crate) fn resize(
        &mut self,
        size: (u32, u32),
        sampling: impl Into<Sampling>,
    ) -> Result<(), PlanError> {
        if size == self.size() {
            return Ok(());
        }
        let (width, height) = size;
        if width == 0 || height == 0 {
            return Err(PlanError::ImageSize { width, height });
        }
        if !is_resized_size(size) {
            return Err(PlanError::ResizedSide { width, height });
        }
        if self.pass.resizes() || !self.pass.is_bare() {
            self.flush()?;
        }
        let Sampling { interpolation, antialias } = sampling.into();
        self.pass.resized = size;
        self.pass.window = Rect::of_size(size.0, size.1);
        self.pass.interpolation = interpolation;
        self.pass.antialias = antialias;
        self.pass.parity = self.parity;
        Ok(())
    }

    /// Adds black pixels around the image.
    pub(crate) fn pad_black(&mut self, padding: Padding) -> Result<(), PlanError> {
        self.pad(padding, [0; 3])
    }

    /// Adds pixels of one colour around the image.
    pub(crate) fn pad(&mut self, padding: Padding, fill: [u8; 3]) -> Result<(), PlanError> {
        if padding == Padding::default() {
            return Ok(());
        }
        padding.around(self.size())?;
        let mut before = self.pass.padding;
        if before != Padding::default() && self.pass.fill != fill {
            self.flush()?;
            before = Padding::default();
        }
        let Padding { mut left, mut top, mut right, mut bottom } = padding;
        if self.pass.flip {
            std::mem::swap(&mut left, &mut right);
        }
        if self.pass.flip_vertical {
            std::mem::swap(&mut top, &mut bottom);
        }
        self.pass.fill = fill;
        self.pass.padding = Padding {
            left: before.left + left,
            top: before.top + top,
            right: before.right + right,
            bottom: before.bottom + bottom,
        };
        Ok(())
    }

    /// Mirrors left and right.
    pub(crate) fn flip(&mut self) {
        self.pass.flip = !self.pass.flip;
    }

    /// Mirrors top and bottom.
    pub(crate) fn flip_vertical(&mut self) {
        self.pass.flip_vertical = !self.pass.flip_vertical;
    }

    /// Adds a step that needs all pixels.
    pub(crate) fn step(&mut self, step: Step) -> Result<(), PlanError> {
        self.flush()?;
        let (width, height) = step.output_size(self.size());
        check_size(width, height)?;
        self.plan.steps.push(step);
        self.begin((width, height));
        Ok(())
    }

    /// Says that samples are floats from here on.
    pub(crate) fn begin_floats(&mut self) {
        self.is_float = true;
    }

    /// Erases a part: of the pixels, or of the numbers of the batch once they are floats.
    pub(crate) fn erase(&mut self, erase: Erase) -> Result<(), PlanError> {
        if self.is_float {
            self.plan.erasures.push(erase);
            Ok(())
        } else {
            self.step(Step::Erase(erase))
        }
    }

    /// Ends the plan.
    pub(crate) fn finish(self) -> Result<(), PlanError> {
        let (width, height) = self.size();
        check_size(width, height)?;
        if self.begun {
            self.plan.tail = self.pass;
        } else {
            self.plan.head = self.pass;
            self.plan.tail = Pass::whole(width, height);
        }
        Ok(())
    }

    /// Makes the head, or a step, of what was gathered so far.
    fn flush(&mut self) -> Result<(), PlanError> {
        let (width, height) = self.size();
        check_size(width, height)?;
        let identity = Pass::whole(self.before.0, self.before.1);
        let pass = self.pass;
        self.begin((width, height));
        if !self.begun {
            self.begun = true;
            self.plan.head = pass;
        } else if pass != identity {
            self.plan.steps.push(Step::Pass(pass));
        }
        Ok(())
    }

    /// Begins a pass on an image of this size.
    fn begin(&mut self, size: (u32, u32)) {
        self.before = size;
        self.pass = Pass::whole(size.0, size.1);
    }
}

/// A cut on one axis, through pixels of the image and padding around them.
struct Cut {
    /// Its start among the pixels.
    start: u32,
    /// How much of that it leaves.
    length: u32,
    /// Padding that it leaves on both sides.
    before: u32,
    after: u32,
}

impl Cut {
    /// `length` pixels from `start` on, of `before` pixels of padding, `inner` pixels, and padding.
    fn new(start: u32, length: u32, before: u32, inner: u32) -> Self {
        let end = start + length;
        let from = start.clamp(before, before + inner) - before;
        let to = end.clamp(before, before + inner) - before;
        let left = before.saturating_sub(start).min(length);
        Self { start: from, length: to - from, before: left, after: length - left - (to - from) }
    }
}
