//! Carrying out plans on pixels that are not 8-bit RGB: they are moved, and their
//! numbers brought into the batch.

use tl_simd::Level;
use tl_simd::normalize::WideFormat;
use tl_simd::pad::{Border, Flips, Margins, frame, pad};
use tl_simd::resample::{Filter, ImageView, Resampler, WideResampler, premultiply, unpremultiply};

use crate::error::StepError;
use crate::op::PadMode;
use crate::output::{Channels, Layout, OutputSpec, PixelType};
use crate::parity::Parity;
use crate::pass::{Padding, Pass, mask_fill};
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::step::{Pad, Scratch, Source, Step};

/// Bytes of the largest pixel: four floats.
const MOST_BYTES: usize = 16;

/// Runs plans on images of one type of pixels: `u8`, `u16` or `f32` in the machine's byte order, of 1,
/// 3 or 4 channels.
///
/// Resampling has the bits of Pillow's modes `I;16` and `F`, channel by channel, and of `RGBA`. It
/// owns the memory of images on the way and uses it again.
#[derive(Debug)]
pub struct WideRenderer {
    format: PixelFormat,
    output: OutputSpec,
    parity: Parity,
    mean: [f32; 4],
    std: [f32; 4],
    passes: Passes,
    image: Vec<u8>,
    spare: Vec<u8>,
    memory_limit: u64,
}

/// The form of pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PixelFormat {
    pixels: PixelType,
    channels: Channels,
}

/// The working memory of passes.
#[derive(Debug)]
struct Passes {
    level: Level,
    bytes: Resampler,
    wide: WideResampler,
    /// The pixels of a pass with their colours multiplied by alpha.
    multiplied: Vec<u8>,
    row: Vec<u8>,
    warps: Scratch,
}

impl WideRenderer {
    /// A renderer for the plans of `recipe`, at the fastest level of this CPU.
    #[must_use]
    pub fn new(recipe: &Recipe) -> Self {
        let (mean, std) = recipe.normalization();
        Self {
            format: PixelFormat::of(recipe),
            output: recipe.output(),
            parity: recipe.parity(),
            mean,
            std,
            passes: Passes {
                level: Level::detect(),
                bytes: Resampler::new(),
                wide: WideResampler::new(),
                multiplied: Vec::new(),
                row: Vec::new(),
                warps: Scratch::default(),
            },
            image: Vec::new(),
            spare: Vec::new(),
            memory_limit: u64::MAX,
        }
    }

    /// The same with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.passes.level = level;
        self
    }

    /// The same with at most this many bytes for images on the way to a result.
    #[must_use]
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        Self { memory_limit: bytes, ..self }
    }

    /// Bytes of a pixel of the images that it takes.
    #[must_use]
    pub fn pixel_bytes(&self) -> usize {
        self.format.pixel_bytes()
    }

    /// Bytes of a result of this size.
    #[must_use]
    pub fn output_bytes(&self, size: (u32, u32)) -> usize {
        let channels = self.format.channels.count() as usize;
        size.0 as usize * size.1 as usize * channels * self.output.dtype.bytes()
    }

    /// Gives back buffers larger than `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        let Passes { wide, multiplied, row, warps, .. } = &mut self.passes;
        wide.trim(bytes);
        warps.trim(bytes);
        for buffer in [multiplied, row, &mut self.image, &mut self.spare] {
            if buffer.capacity() > bytes {
                *buffer = Vec::new();
            }
        }
    }

    /// Runs `plan` on `source` and writes the result to `out`. Of the image only [`Pass::source`] of
    /// the head has to be there.
    ///
    /// # Errors
    /// As [`Recipe::scratch_bytes`], and [`StepError::Memory`].
    ///
    /// # Panics
    /// When the head is not for such an image, when its pixels have another size, or when `out` is not
    /// exactly as long as a result of the plan's size.
    pub fn render(
        &mut self,
        plan: &Plan,
        source: ImageView<'_>,
        out: &mut [u8],
    ) -> Result<(), StepError> {
        let need = self.format.scratch_bytes(self.output, self.parity, plan)?;
        let limit = self.memory_limit;
        if need > limit {
            return Err(StepError::Memory { need, limit });
        }
        assert_eq!(source.channels(), self.pixel_bytes(), "bytes of a pixel");
        assert_eq!(out.len(), self.output_bytes(plan.output_size()), "bytes of the result");
        let Self { format, passes, parity, image, spare, .. } = self;
        if format.goes_straight(self.output, plan) {
            passes.run(*format, &plan.head, source, out);
            return Ok(());
        }
        let mut size = plan.head.output_size();
        passes.run(*format, &plan.head, source, resized(image, *format, size));
        let mut then = |size: &mut (u32, u32), step: &Step| {
            let before = *size;
            let view = format.view(image, before);
            *size = step.output_size(*size);
            let out = resized(spare, *format, *size);
            match step {
                Step::Pass(pass) => passes.run(*format, pass, view, out),
                Step::Pad(step) => step.run_wide(passes.level, *format, view, out),
                Step::Warp(warp) => {
                    let wide = Some(format.pixels);
                    let source = Source { level: passes.level, view, wide, size: before };
                    warp.apply(&mut passes.warps, source, *parity, out);
                }
                Step::Erase(erase) => {
                    out.copy_from_slice(&image[..out.len()]);
                    let pixels = OutputSpec { dtype: format.pixels.dtype(), layout: Layout::Hwc };
                    erase.run(passes.level, pixels, format.channels, before, out);
                }
                Step::Color(_)
                | Step::Mix(_)
                | Step::User(_)
                | Step::Filter(_)
                | Step::Noise(_) => unreachable!("`scratch_bytes` refuses the step"),
            }
            std::mem::swap(image, spare);
        };
        plan.steps.iter().for_each(|step| then(&mut size, step));
        if !plan.is_one_pass() && plan.tail != Pass::whole(size.0, size.1) {
            then(&mut size, &Step::Pass(plan.tail));
        }
        let channels = format.channels.count() as usize;
        let format = WideFormat {
            pixels: format.pixels,
            channels,
            dtype: self.output.dtype,
            layout: self.output.layout,
            mean: &self.mean[..channels],
            std: &self.std[..channels],
        };
        let bytes = size.0 as usize * size.1 as usize * self.format.pixel_bytes();
        format.write(self.passes.level, &self.image[..bytes], out);
        plan.erase(self.passes.level, self.output, self.format.channels, out)
    }
}

impl PixelFormat {
    /// The form of the pixels that the operations of `recipe` get.
    pub(crate) fn of(recipe: &Recipe) -> Self {
        Self { pixels: recipe.pixels(), channels: recipe.channels() }
    }

    /// [`Recipe::scratch_bytes`] of a plan for such pixels.
    pub(crate) fn scratch_bytes(
        self,
        output: OutputSpec,
        parity: Parity,
        plan: &Plan,
    ) -> Result<u64, StepError> {
        let area = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
        let mut size = plan.head.output_size();
        let mut image = area(size);
        let mut rows = self.pass_bytes(&plan.head);
        for (position, step) in plan.steps.iter().enumerate() {
            if !matches!(step, Step::Pass(_) | Step::Pad(_) | Step::Warp(_) | Step::Erase(_)) {
                let pixels = self.pixels.in_words();
                let channels = self.channels.in_words();
                return Err(StepError::Pixels { position, pixels, channels });
            }
            if !step.fits(size) {
                let (width, height) = size;
                return Err(StepError::Size { position, width, height });
            }
            if let Step::Pass(pass) = step {
                rows = rows.saturating_add(self.pass_bytes(pass));
            }
            if let Step::Warp(warp) = step {
                rows = rows.saturating_add(warp.wide_bytes(self.pixels, parity, size));
            }
            size = step.output_size(size);
            image = image.max(area(size));
        }
        if plan.is_one_pass() {
            let images = if self.goes_straight(output, plan) { 0 } else { image };
            return Ok(rows.saturating_add(images * self.pixel_bytes() as u64));
        }
        rows = rows.saturating_add(self.pass_bytes(&plan.tail));
        image = image.max(area(plan.output_size()));
        Ok(rows.saturating_add(2 * image * self.pixel_bytes() as u64))
    }

    /// The bytes that a pass takes for its rows, and for pixels that are multiplied by alpha.
    fn pass_bytes(self, pass: &Pass) -> u64 {
        if !pass.resizes() {
            return 0;
        }
        if self.pixels != PixelType::U8 {
            return WideResampler::bytes(self.pixels, self.pixel_bytes(), &pass.resize());
        }
        let source = pass.source();
        let multiplied = u64::from(source.width) * u64::from(source.height);
        if self.multiplies(pass) { multiplied * self.pixel_bytes() as u64 } else { 0 }
    }

    /// Whether Pillow multiplies the colours of this pass by alpha before it resizes them.
    fn multiplies(self, pass: &Pass) -> bool {
        self.channels == Channels::Rgba
            && self.pixels == PixelType::U8
            && pass.parity != Parity::Tensor
            && pass.resize().filter != Filter::Nearest
    }

    /// Whether the head writes into the output.
    fn goes_straight(self, output: OutputSpec, plan: &Plan) -> bool {
        plan.is_one_pass() && self.stays_in(output)
    }

    fn pixel_bytes(self) -> usize {
        self.channels.count() as usize * self.pixels.bytes()
    }

    /// Whether pixels are the numbers of the output, in their order.
    fn stays_in(self, output: OutputSpec) -> bool {
        let interleaved = output.layout == Layout::Hwc;
        output.dtype == self.pixels.dtype()
            && !output.dtype.is_float()
            && (interleaved || self.channels == Channels::Grey)
    }

    fn view(self, pixels: &[u8], size: (u32, u32)) -> ImageView<'_> {
        let (width, height) = size;
        let row_bytes = width as usize * self.pixel_bytes();
        ImageView::of_pixels(pixels, width, height, row_bytes, self.pixel_bytes())
    }

    /// The pixel of a colour: its numbers are those of the pixels' type. Where there are not three
    /// channels, each has the number that all three have, or 0.
    fn fill(self, colour: [u8; 3]) -> [u8; MOST_BYTES] {
        let values = match self.channels {
            Channels::Rgb => [colour[0], colour[1], colour[2], 0],
            Channels::Grey | Channels::Rgba => [mask_fill(colour); 4],
        };
        let mut pixel = [0; MOST_BYTES];
        for (bytes, value) in pixel.chunks_exact_mut(self.pixels.bytes()).zip(values) {
            match self.pixels {
                PixelType::U8 => bytes.copy_from_slice(&[value]),
                PixelType::U16 => bytes.copy_from_slice(&u16::from(value).to_ne_bytes()),
                PixelType::F32 => bytes.copy_from_slice(&f32::from(value).to_ne_bytes()),
            }
        }
        pixel
    }
}

impl Passes {
    /// Runs a pass on `source`, into exactly the pixels of its result.
    fn run(&mut self, format: PixelFormat, pass: &Pass, source: ImageView<'_>, out: &mut [u8]) {
        let Self { level, bytes, wide, multiplied, row: flipped, .. } = self;
        let level = *level;
        let size = format.pixel_bytes();
        let fill = &format.fill(pass.fill)[..size];
        let flips = Flips { horizontal: pass.flip, vertical: pass.flip_vertical };
        if !pass.resizes() {
            let part = source.part(pass.source());
            return frame(level, part, pass.padding.into(), fill, flips, out);
        }
        let (width, height) = pass.output_size();
        if pass.padding != Padding::default() {
            out.chunks_exact_mut(size).for_each(|pixel| pixel.copy_from_slice(fill));
        }
        let Padding { left, top, right, .. } = pass.padding;
        let left = if pass.flip { right } else { left } as usize * size;
        let stride = width as usize * size;
        let mut place = |y: u32, row: &[u8]| {
            let y = if pass.flip_vertical { height - 1 - (top + y) } else { top + y };
            let out = &mut out[y as usize * stride + left..][..row.len()];
            if pass.flip {
                tl_simd::interleave::flip_row(level, row, size, out);
            } else {
                out.copy_from_slice(row);
            }
        };
        let resize = pass.resize();
        if format.pixels != PixelType::U8 {
            return wide.run(level, format.pixels, source, &resize, place);
        }
        if !format.multiplies(pass) {
            return bytes.run(level, source, &resize, place);
        }
        let rect = pass.source();
        let part = source.part(rect);
        let columns = rect.width as usize * size;
        multiplied.resize(columns * rect.height as usize, 0);
        for (y, row) in (0..rect.height).zip(multiplied.chunks_exact_mut(columns)) {
            premultiply(level, part.row(y), row);
        }
        let part = format.view(multiplied, (rect.width, rect.height)).at(rect.x, rect.y);
        bytes.run(level, part, &resize, |y, row| {
            flipped.resize(row.len(), 0);
            unpremultiply(level, row, flipped);
            place(y, flipped);
        });
    }
}

impl Pad {
    fn run_wide(&self, level: Level, format: PixelFormat, view: ImageView<'_>, out: &mut [u8]) {
        let margins = Margins::from(self.padding);
        let border = match self.mode {
            PadMode::Constant => {
                let fill = format.fill(self.fill);
                let fill = &fill[..format.pixel_bytes()];
                return frame(level, view, margins, fill, Flips::default(), out);
            }
            PadMode::Edge => Border::Edge,
            PadMode::Reflect => Border::Reflect,
            PadMode::Symmetric => Border::Symmetric,
        };
        pad(level, view, margins, border, out);
    }
}

/// The first bytes of `buffer`, an image of `size` whose content is unspecified.
fn resized(buffer: &mut Vec<u8>, format: PixelFormat, size: (u32, u32)) -> &mut [u8] {
    let bytes = size.0 as usize * size.1 as usize * format.pixel_bytes();
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
    &mut buffer[..bytes]
}
