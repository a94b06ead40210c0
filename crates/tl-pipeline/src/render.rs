//! The final pass: from decoded pixels to numbers in a batch, without an image in between.

mod planes;

use tl_decode::Planes;
use tl_simd::Level;
use tl_simd::jpeg::Scale;
use tl_simd::resample::ImageView;
use tl_transform::{
    BoundTransforms, Channels, Dtype, Image, Layout, OutputSpec, Parity, Plan, Recipe, Runner,
    StepError, WideRenderer,
};

use crate::metrics::WorkerMetrics;
use crate::stage::Stage;
use planes::PlanePass;
pub(crate) use planes::{plane_resize, samples_read};

const CHANNELS: usize = 3;

/// Runs plans on decoded pixels, straight into a batch.
///
/// ```
/// use tl_pipeline::Renderer;
/// use tl_transform::{Draw, Layout, Recipe};
///
/// let recipe = Recipe::imagenet_eval(2)?.into_pixels(Layout::Hwc);
/// let mut renderer = Renderer::new(&recipe);
/// let pixels = [7; 4 * 2 * 3];
/// let mut out = [0; 2 * 2 * 3];
/// renderer.render(&recipe.plan(4, 2, Draw::default())?, &pixels, 4, 2, &mut out)?;
/// assert_eq!(out, [7; 12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Renderer {
    /// The last pass, into the batch.
    output: tl_transform::Renderer,
    /// The first pass, where others follow.
    pixels: tl_transform::Renderer,
    planes: PlanePass,
    runner: Runner,
    image: Image,
    parity: Parity,
    /// The form of the output.
    spec: OutputSpec,
    channels: Channels,
    /// A result in three planes, the first of which is the output.
    planes_of_grey: Vec<u8>,
    /// All of it, for pixels that are not 8-bit RGB or grey.
    wide: Option<WideRenderer>,
}

impl Renderer {
    /// A renderer for the plans of `recipe`, at the fastest level of this CPU.
    #[must_use]
    pub fn new(recipe: &Recipe) -> Self {
        let (mean, std) = recipe.normalization();
        let channels = recipe.channels();
        let spec = match channels {
            Channels::Rgb | Channels::Rgba => recipe.output(),
            Channels::Grey => OutputSpec { layout: Layout::Chw, ..recipe.output() },
        };
        let [mean, std] = [mean, std].map(|[r, g, b, _]| [r, g, b]);
        let pixels = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        Self {
            output: tl_transform::Renderer::new(spec, mean, std),
            pixels: tl_transform::Renderer::new(pixels, [0.0; CHANNELS], [1.0; CHANNELS]),
            planes: PlanePass::default(),
            runner: Runner::new(),
            image: Image::new(),
            parity: recipe.parity(),
            spec,
            channels,
            planes_of_grey: Vec::new(),
            wide: recipe.is_wide().then(|| WideRenderer::new(recipe)),
        }
    }

    /// Bytes of a pixel of the images that it takes; grey ones of 8 bits have three equal channels.
    #[must_use]
    pub fn pixel_bytes(&self) -> usize {
        self.wide.as_ref().map_or(CHANNELS, WideRenderer::pixel_bytes)
    }

    /// An image of such pixels.
    pub(crate) fn view<'a>(&self, pixels: &'a [u8], width: u32, height: u32) -> ImageView<'a> {
        let pixel_bytes = self.pixel_bytes();
        let row_bytes = width as usize * pixel_bytes;
        ImageView::of_pixels(pixels, width, height, row_bytes, pixel_bytes)
    }

    /// Bytes of a result of this size.
    #[must_use]
    pub fn output_bytes(&self, size: (u32, u32)) -> usize {
        if let Some(wide) = &self.wide {
            return wide.output_bytes(size);
        }
        let bytes = self.output.output_bytes(size);
        if self.channels == Channels::Grey { bytes / CHANNELS } else { bytes }
    }

    /// Runs `plan` on the `width` x `height` image `pixels`, of RGB or of the recipe's pixels where
    /// they are wider, and writes the result to `out`.
    ///
    /// # Errors
    /// [`StepError`] of a step that does not go with the image before it.
    ///
    /// # Panics
    /// When `pixels` is shorter than the image, when the head is not for such an image, or when
    /// `out` is not exactly as long as a result of the plan's size.
    pub fn render(
        &mut self,
        plan: &Plan,
        pixels: &[u8],
        width: u32,
        height: u32,
        out: &mut [u8],
    ) -> Result<(), StepError> {
        let view = self.view(pixels, width, height);
        self.render_view(plan, view, out, &mut WorkerMetrics::start(None))
    }

    /// The same renderer with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self {
            output: self.output.with_level(level),
            pixels: self.pixels.with_level(level),
            runner: self.runner.with_level(level),
            wide: self.wide.map(|wide| wide.with_level(level)),
            ..self
        }
    }

    /// The same with the user's transforms of its recipe.
    #[must_use]
    pub fn with_user_transforms(self, user_transforms: BoundTransforms) -> Self {
        Self { runner: self.runner.with_user_transforms(user_transforms), ..self }
    }

    /// The same with at most this many bytes for images between the passes.
    #[must_use]
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        let wide = self.wide.map(|wide| wide.with_memory_limit(bytes));
        Self { runner: self.runner.with_memory_limit(bytes), wide, ..self }
    }

    /// Gives back the buffers that grow with the result, if they are larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.planes.trim(bytes);
        self.runner.trim(bytes);
        self.image.trim(bytes);
        if let Some(wide) = &mut self.wide {
            wide.trim(bytes);
        }
        if self.planes_of_grey.capacity() > bytes {
            self.planes_of_grey = Vec::new();
        }
    }

    /// Lets `run` make a result of three channels, and leaves those of the output in `out`.
    fn with_channels(
        &mut self,
        out: &mut [u8],
        run: impl FnOnce(&mut Self, &mut [u8]) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        if self.channels != Channels::Grey {
            return run(self, out);
        }
        let mut planes = std::mem::take(&mut self.planes_of_grey);
        planes.resize(out.len() * CHANNELS, 0);
        let result = run(self, &mut planes);
        out.copy_from_slice(&planes[..out.len()]);
        self.planes_of_grey = planes;
        result
    }

    /// [`Renderer::render`] of an image that has at least the region [`Pass::source`] of the head.
    pub(crate) fn render_view(
        &mut self,
        plan: &Plan,
        source: ImageView<'_>,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<(), StepError> {
        if let Some(wide) = &mut self.wide {
            let result = wide.render(plan, source, out);
            metrics.lap(Stage::Write);
            return result;
        }
        self.with_channels(out, |renderer, out| {
            if plan.is_one_pass() {
                renderer.output.render(&plan.head, source, out);
                return renderer.erase(plan, out, metrics);
            }
            let (width, height) = plan.head.output_size();
            renderer.image.reshape(width, height);
            renderer.pixels.render(&plan.head, source, renderer.image.pixels_mut());
            renderer.finish(plan, out, metrics)
        })
    }

    /// Runs `plan` on the planes of a JPEG that was decoded at `scale` and has at least
    /// [`samples_read`].
    ///
    /// # Errors
    /// As [`Renderer::render`].
    ///
    /// # Panics
    /// As [`Renderer::render`], and for planes of four inks.
    pub(crate) fn render_planes(
        &mut self,
        plan: &Plan,
        scale: Scale,
        planes: &Planes<'_>,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<(), StepError> {
        let pass = &plan.head;
        self.with_channels(out, |renderer, out| {
            if plan.is_one_pass() {
                renderer.planes.run(&mut renderer.output, pass, scale, planes, out);
                return renderer.erase(plan, out, metrics);
            }
            let (width, height) = pass.output_size();
            renderer.image.reshape(width, height);
            let pixels = renderer.image.pixels_mut();
            renderer.planes.run(&mut renderer.pixels, pass, scale, planes, pixels);
            renderer.finish(plan, out, metrics)
        })
    }

    /// Runs the rest of the plan on the head's result, `self.image`.
    fn finish(
        &mut self,
        plan: &Plan,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<(), StepError> {
        self.runner.run(&plan.steps, self.parity, &mut self.image)?;
        metrics.lap(Stage::Transform);
        self.output.render(&plan.tail, self.image.view(), out);
        self.erase(plan, out, metrics)
    }

    /// The end of every plan.
    fn erase(
        &self,
        plan: &Plan,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<(), StepError> {
        // Grey images have three planes here, too.
        let result = plan.erase(self.output.level(), self.spec, Channels::Rgb, out);
        metrics.lap(Stage::Write);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tl_transform::op::{CenterCrop, Normalize, RandomHorizontalFlip, Resize, Size, ToFloat};
    use tl_transform::{Draw, Op};

    /// Width 2, height 1: red 10 and 20, green and blue follow.
    const PIXELS: [u8; 6] = [10, 11, 12, 20, 21, 22];

    fn crop(width: u32, height: u32, output: OutputSpec, tail: &[Op]) -> Recipe {
        let resize = Resize::new(1);
        let mut ops = vec![resize.into(), CenterCrop { size: Size::exact(width, height) }.into()];
        ops.extend_from_slice(tail);
        Recipe::new(ops, output).unwrap()
    }

    fn render(recipe: &Recipe) -> Vec<u8> {
        let plan = recipe.plan(2, 1, Draw::default()).unwrap();
        let mut renderer = Renderer::new(recipe);
        let mut out = vec![99; renderer.output_bytes(plan.output_size())];
        renderer.render(&plan, &PIXELS, 2, 1, &mut out).unwrap();
        out
    }

    #[test]
    fn missing_pixels_are_black_and_flip_with_the_rest() {
        let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        let expected = [
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 10, 11, 12, 20, 21, 22, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(render(&crop(5, 3, output, &[])), expected.as_flattened());
        let flipped = crop(5, 1, output, &[RandomHorizontalFlip { p: 1.0 }.into()]);
        assert_eq!(render(&flipped), [0, 0, 0, 0, 0, 0, 20, 21, 22, 10, 11, 12, 0, 0, 0]);
    }

    #[test]
    fn floats_are_normalised_before_the_cast_and_padding_is_too() {
        let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
        let normalize = Normalize { mean: [0.5, 0.25, 0.0].into(), std: [0.5, 1.0, 2.0].into() };
        let out = render(&crop(3, 1, output, &[ToFloat {}.into(), normalize.into()]));
        let value =
            |sample: u8, mean: f32, std: f32| (f32::from(sample) * (1.0 / 255.0) - mean) / std;
        // One column is missing; half of one rounds down, so it is on the right.
        let expected: Vec<u8> = [
            [value(10, 0.5, 0.5), value(20, 0.5, 0.5), -1.0],
            [value(11, 0.25, 1.0), value(21, 0.25, 1.0), -0.25],
            [value(12, 0.0, 2.0), value(22, 0.0, 2.0), 0.0],
        ]
        .as_flattened()
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect();
        assert_eq!(out, expected);
    }
}
