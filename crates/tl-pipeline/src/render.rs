//! The final pass: from decoded pixels to numbers in a batch, without an image in between.

mod planes;

use tl_decode::Planes;
use tl_simd::Level;
use tl_simd::jpeg::Scale;
use tl_simd::normalize::{Element, ImageWriter, Layout, PixelFormat, Table};
use tl_simd::resample::{ImageView, Rect, Resampler, Resize};
use tl_transform::{Padding, Plan, Recipe};

use planes::PlanePass;
pub(crate) use planes::samples_read;

const CHANNELS: usize = 3;

/// Runs plans: resamples, flips, normalises, converts and lays out in one pass over the rows.
///
/// It owns the scratch memory of the pass and reuses it from image to image.
///
/// ```
/// use tl_pipeline::Renderer;
/// use tl_transform::{Layout, Recipe};
///
/// let recipe = Recipe::imagenet_eval(2)?.into_pixels(Layout::Hwc);
/// let mut renderer = Renderer::new(&recipe);
/// let pixels = [7; 4 * 2 * 3];
/// let mut out = [0; 2 * 2 * 3];
/// renderer.render(&recipe.plan(4, 2, 0, 0, 0)?, &pixels, 4, 2, &mut out);
/// assert_eq!(out, [7; 12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Renderer {
    level: Level,
    table: Table,
    element: Element,
    layout: Layout,
    resampler: Resampler,
    planes: PlanePass,
    /// One row of output pixels, black where the plan pads.
    padded: Vec<u8>,
}

impl Renderer {
    /// A renderer for the plans of `recipe`, at the fastest level of this CPU.
    #[must_use]
    pub fn new(recipe: &Recipe) -> Self {
        let (mean, std) = recipe.normalization();
        let output = recipe.output();
        Self {
            level: Level::detect(),
            table: Table::new(mean, std),
            element: output.dtype.into(),
            layout: output.layout.into(),
            resampler: Resampler::new(),
            planes: PlanePass::default(),
            padded: Vec::new(),
        }
    }

    /// Bytes of a result of this size.
    #[must_use]
    pub fn output_bytes(&self, (width, height): (u32, u32)) -> usize {
        width as usize * height as usize * CHANNELS * self.element.size()
    }

    /// Runs `plan` on the `width` x `height` RGB image `pixels` and writes the result to `out`.
    ///
    /// # Panics
    /// When `pixels` is shorter than the image, when the plan is not for such an image, or when
    /// `out` is not exactly as long as a result of the plan's size.
    pub fn render(&mut self, plan: &Plan, pixels: &[u8], width: u32, height: u32, out: &mut [u8]) {
        self.render_view(plan, ImageView::packed(pixels, width, height, CHANNELS), out);
    }

    /// The same renderer with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Gives back the buffers that grow with the result, if they are larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.planes.trim(bytes);
    }

    /// [`Renderer::render`] of an image of which at least [`pixels_read`] is there.
    pub(crate) fn render_view(&mut self, plan: &Plan, source: ImageView<'_>, out: &mut [u8]) {
        let level = self.level;
        let writer = writer(self.element, self.layout, &self.table, plan, out);
        let mut rows = Rows::new(level, writer, plan, &mut self.padded);
        self.resampler.run(level, source, &resize(plan), |y, row| rows.write(y, row));
    }

    /// Runs `plan` on the planes of a JPEG that was decoded at `scale`, of which at least
    /// [`samples_read`] is there.
    ///
    /// # Panics
    /// As [`Renderer::render`], and for planes of four inks.
    pub(crate) fn render_planes(
        &mut self,
        plan: &Plan,
        scale: Scale,
        planes: &Planes<'_>,
        out: &mut [u8],
    ) {
        let level = self.level;
        let writer = writer(self.element, self.layout, &self.table, plan, out);
        let mut rows = Rows::new(level, writer, plan, &mut self.padded);
        let sink = |y, planes: [&[u8]; CHANNELS]| rows.write_planes(y, planes);
        self.planes.run(level, &mut self.resampler, (plan, scale), planes, sink);
    }
}

/// The pixels of the image that `plan` is made of.
pub(crate) fn pixels_read(plan: &Plan) -> Rect {
    resize(plan).source()
}

fn resize(plan: &Plan) -> Resize {
    let Plan { region, resized, window, filter, .. } = *plan;
    Resize { region, resized, window, filter }
}

fn writer<'a>(
    element: Element,
    layout: Layout,
    table: &'a Table,
    plan: &Plan,
    out: &'a mut [u8],
) -> ImageWriter<'a> {
    let (width, height) = plan.output_size();
    let format = PixelFormat { element, layout, flip: plan.flip };
    ImageWriter::new(out, width as usize, height as usize, format, table)
}

/// Writes the rows of a plan's window where they belong, with black around them.
struct Rows<'a> {
    level: Level,
    writer: ImageWriter<'a>,
    padding: Padding,
    /// Samples of a row of the result, in all channels.
    padded: Option<&'a mut [u8]>,
}

impl<'a> Rows<'a> {
    /// Writes the black rows already.
    fn new(
        level: Level,
        mut writer: ImageWriter<'a>,
        plan: &Plan,
        padded: &'a mut Vec<u8>,
    ) -> Self {
        let padding = plan.padding;
        if padding == Padding::default() {
            return Self { level, writer, padding, padded: None };
        }
        let (width, height) = plan.output_size();
        padded.clear();
        padded.resize(width as usize * CHANNELS, 0);
        for y in (0..padding.top).chain(height - padding.bottom..height) {
            writer.write_row(level, y, padded);
        }
        Self { level, writer, padding, padded: Some(padded) }
    }

    fn write(&mut self, y: u32, row: &[u8]) {
        let Some(padded) = &mut self.padded else {
            return self.writer.write_row(self.level, y, row);
        };
        let left = self.padding.left as usize * CHANNELS;
        padded[left..][..row.len()].copy_from_slice(row);
        self.writer.write_row(self.level, self.padding.top + y, padded);
    }

    fn write_planes(&mut self, y: u32, planes: [&[u8]; CHANNELS]) {
        let Some(padded) = &mut self.padded else {
            return self.writer.write_planes(self.level, y, planes);
        };
        let (width, left) = (padded.len() / CHANNELS, self.padding.left as usize);
        for (row, plane) in padded.chunks_exact_mut(width).zip(planes) {
            row[left..][..plane.len()].copy_from_slice(plane);
        }
        let (red, rest) = padded.split_at(width);
        let (green, blue) = rest.split_at(width);
        self.writer.write_planes(self.level, self.padding.top + y, [red, green, blue]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tl_transform::{Dtype, Interpolation, Layout, Op, OutputSpec};

    /// Width 2, height 1: red 10 and 20, green and blue follow.
    const PIXELS: [u8; 6] = [10, 11, 12, 20, 21, 22];

    fn crop(width: u32, height: u32, output: OutputSpec, tail: &[Op]) -> Recipe {
        let resize = Op::Resize { size: 1, interpolation: Interpolation::Bilinear };
        let mut ops = vec![resize, Op::CenterCrop { width, height }];
        ops.extend_from_slice(tail);
        Recipe::new(ops, output).unwrap()
    }

    fn render(recipe: &Recipe) -> Vec<u8> {
        let plan = recipe.plan(2, 1, 0, 0, 0).unwrap();
        let mut renderer = Renderer::new(recipe);
        let mut out = vec![99; renderer.output_bytes(plan.output_size())];
        renderer.render(&plan, &PIXELS, 2, 1, &mut out);
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
        let flipped = crop(5, 1, output, &[Op::RandomHorizontalFlip { p: 1.0 }]);
        assert_eq!(render(&flipped), [0, 0, 0, 0, 0, 0, 20, 21, 22, 10, 11, 12, 0, 0, 0]);
    }

    #[test]
    fn floats_are_normalised_before_the_cast_and_padding_is_too() {
        let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
        let normalize = Op::Normalize { mean: [0.5, 0.25, 0.0], std: [0.5, 1.0, 2.0] };
        let out = render(&crop(3, 1, output, &[Op::ToFloat, normalize]));
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
