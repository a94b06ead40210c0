//! Cells of samples as training sees them.

use std::borrow::Cow;
use std::sync::Arc;

use tl_decode::{DecodeOptions, Image};
use tl_pipeline::{PipelineError, SampleError, SampleRenderer, Stored, Target};
use tl_simd::resample::Rect;
use tl_transform::{Draw, Layout, Pass, Recipe};
use turboloader::sheet::{BRIGHT, Canvas, DIM, Painter};

use crate::data_set::Sample;
use crate::failure::Failure;

/// The loader's own way from stored bytes to pixels that can be looked at.
#[derive(Debug)]
pub(crate) struct Training {
    renderer: SampleRenderer,
    seed: u64,
    bytes: Vec<u8>,
    image: Image,
}

impl Training {
    /// The result of `recipe` with `seed`, without its normalisation.
    pub(crate) fn new(recipe: Recipe, seed: u64, options: DecodeOptions) -> Self {
        let recipe = recipe.into_pixels(Layout::Hwc);
        let renderer = SampleRenderer::new(&recipe, options);
        Self { renderer, seed, bytes: Vec::new(), image: Image::new() }
    }

    fn render(&mut self, sample: Sample<'_>, epoch: u32) -> Result<Pass, Failure> {
        let Sample { source, index, .. } = sample;
        let entry = sample.entry()?;
        sample.read_into(&mut self.bytes)?;
        let format = entry.format;
        let size = (entry.width, entry.height);
        let stored = Stored { format, size, bytes: &mut self.bytes, row_index: None };
        let draw = Draw { seed: self.seed, epoch, sample: index };
        let rendered = self.renderer.render(stored, draw, Target::Image(&mut self.image));
        rendered.map(|plans| plans.first().map_or(Pass::whole(0, 0), |plan| plan.head)).map_err(
            |fault| {
                let key = entry.key.map(Cow::into_owned);
                let offset = Some(entry.offset);
                let shard = source.location().clone();
                PipelineError::Sample(Arc::new(SampleError {
                    index,
                    key,
                    shard,
                    offset,
                    fault,
                    attempts: 1,
                }))
                .into()
            },
        )
    }

    /// Draws a sample as training sees it in epoch `draw`.
    pub(crate) fn draw(
        &mut self,
        painter: &mut Painter,
        canvas: &mut Canvas,
        at: (u32, u32),
        sample: Sample<'_>,
        draw: usize,
    ) -> Result<(), Failure> {
        let epoch = u32::try_from(draw).unwrap_or(u32::MAX);
        let plan = self.render(sample, epoch)?;
        painter.picture(canvas, at, &self.image);
        let Rect { x, y, width, height } = plan.region;
        painter.caption(canvas, at, 0, &format!("epoch {epoch}"), BRIGHT);
        painter.caption(canvas, at, 1, &format!("{width}x{height}+{x}+{y}"), DIM);
        painter.caption(canvas, at, 2, if plan.flip { "flipped" } else { "" }, DIM);
        Ok(())
    }
}
