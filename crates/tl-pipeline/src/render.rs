//! The final pass: from decoded pixels to numbers in a batch, without an image in between.

use tl_simd::Level;
use tl_simd::normalize::{Element, ImageWriter, Layout, PixelFormat, Table};
use tl_simd::resample::{ImageView, Resampler, Resize};
use tl_transform::{Plan, Recipe};

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
        let source = ImageView::packed(pixels, width, height, CHANNELS);
        let resize = Resize {
            region: plan.region,
            resized: plan.resized,
            window: plan.window,
            filter: plan.filter,
        };
        let (width, height) = plan.output_size();
        let format = PixelFormat { element: self.element, layout: self.layout, flip: plan.flip };
        let size = (width as usize, height as usize);
        let mut writer = ImageWriter::new(out, size.0, size.1, format, &self.table);
        let level = self.level;
        let padding = plan.padding;
        if padding == Default::default() {
            self.resampler.run(level, source, &resize, |y, row| writer.write_row(level, y, row));
            return;
        }
        self.padded.clear();
        self.padded.resize(size.0 * CHANNELS, 0);
        for y in (0..padding.top).chain(height - padding.bottom..height) {
            writer.write_row(level, y, &self.padded);
        }
        let (padded, left) = (&mut self.padded, padding.left as usize * CHANNELS);
        self.resampler.run(level, source, &resize, |y, row| {
            padded[left..][..row.len()].copy_from_slice(row);
            writer.write_row(level, padding.top + y, padded);
        });
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
