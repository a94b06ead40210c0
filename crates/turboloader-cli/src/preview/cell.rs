//! One cell of the sheet: a picture fitted into a square, and its caption.

use std::borrow::Cow;
use std::sync::Arc;

use tl_decode::{DecodeOptions, Image};
use tl_pipeline::{Dataset, PipelineError, SampleError, SampleRenderer, Stored, Target};
use tl_simd::Level;
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};
use tl_transform::{Draw, Layout, Pass, Recipe};

use super::canvas::{Canvas, GLYPH_SIDE, Rgb};
use crate::data_set::{self, Sample};
use crate::failure::Failure;
use crate::text::printable;

const CAPTION_LINES: u32 = 3;
const LINE_HEIGHT: u32 = GLYPH_SIDE + 3;
/// Space that captions take under a picture.
pub(crate) const CAPTION_HEIGHT: u32 = CAPTION_LINES * LINE_HEIGHT + 2;

const MAT: Rgb = [40, 40, 40];
const BRIGHT: Rgb = [235, 235, 235];
const DIM: Rgb = [160, 160, 160];
const ALARM: Rgb = [220, 60, 50];

/// The caption of a sample.
#[derive(Debug)]
pub(crate) struct Cell {
    index: u64,
    name: String,
    label: String,
    format: String,
    /// Whether the data set says that this sample is an image.
    pub(crate) is_image: bool,
}

impl Cell {
    /// Collects what is known of sample `index`.
    pub(crate) fn describe(data: &Dataset, index: u64) -> Result<Self, Failure> {
        let entry = Sample::of(data, index)?.entry()?;
        let label = data.try_label(index).map_err(|error| error.in_data_set(index))?;
        let name = entry.key.as_deref().map(|key| printable(key).into_owned()).unwrap_or_default();
        let label = match (data_set::class_name(data, label), label) {
            (Some(class), _) => class.to_owned(),
            (None, Some(label)) => format!("label {label}"),
            (None, None) => String::new(),
        };
        let is_image = entry.format.is_image();
        Ok(Self { index, name, label, format: entry.format.to_string(), is_image })
    }
}

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
    pub(crate) fn new(recipe: Recipe, seed: u64) -> Self {
        let recipe = recipe.into_pixels(Layout::Hwc);
        let renderer = SampleRenderer::new(&recipe, DecodeOptions::default());
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
                PipelineError::Sample(Arc::new(SampleError { index, key, shard, offset, fault }))
                    .into()
            },
        )
    }
}

/// Draws cells of one size.
#[derive(Debug)]
pub(crate) struct Painter {
    side: u32,
    level: Level,
    resampler: Resampler,
}

impl Painter {
    /// Cells of `side` pixels.
    pub(crate) fn new(side: u32) -> Self {
        Self { side, level: Level::detect(), resampler: Resampler::new() }
    }

    /// Draws the sample as it is; `None` for one that has no picture.
    pub(crate) fn original(
        &mut self,
        canvas: &mut Canvas,
        at: (u32, u32),
        cell: &Cell,
        image: Option<&Image>,
    ) {
        let size = image.map(|image| format!(" {}x{}", image.width, image.height));
        let first = format!("#{} {}{}", cell.index, cell.format, size.unwrap_or_default());
        canvas.fill(at.0, at.1, self.side, self.side, MAT);
        match image {
            Some(image) => fit(canvas, at, self.side, image, self.level, &mut self.resampler),
            None if cell.is_image => canvas.cross(at.0, at.1, self.side, ALARM),
            None => {}
        }
        self.caption(canvas, at, 0, &first, BRIGHT);
        let second = if image.is_none() && cell.is_image {
            ("does not decode", ALARM)
        } else {
            (cell.label.as_str(), DIM)
        };
        let lines = [second, (cell.name.as_str(), DIM)];
        for (line, (text, color)) in (1..).zip(lines.into_iter().filter(|line| !line.0.is_empty()))
        {
            self.caption(canvas, at, line, text, color);
        }
    }

    /// Draws a sample as training sees it in epoch `draw`.
    pub(crate) fn augmented(
        &mut self,
        canvas: &mut Canvas,
        at: (u32, u32),
        training: &mut Training,
        sample: Sample<'_>,
        draw: usize,
    ) -> Result<(), Failure> {
        let epoch = u32::try_from(draw).unwrap_or(u32::MAX);
        let plan = training.render(sample, epoch)?;
        canvas.fill(at.0, at.1, self.side, self.side, MAT);
        fit(canvas, at, self.side, &training.image, self.level, &mut self.resampler);
        let Rect { x, y, width, height } = plan.region;
        self.caption(canvas, at, 0, &format!("epoch {epoch}"), BRIGHT);
        self.caption(canvas, at, 1, &format!("{width}x{height}+{x}+{y}"), DIM);
        self.caption(canvas, at, 2, if plan.flip { "flipped" } else { "" }, DIM);
        Ok(())
    }

    /// Writes one line under the picture. A text that is too long loses its beginning: names
    /// differ at their ends.
    fn caption(&self, canvas: &mut Canvas, at: (u32, u32), line: u32, text: &str, color: Rgb) {
        let room = (self.side / GLYPH_SIDE) as usize;
        let length = text.chars().count();
        let shown: String = if length <= room {
            text.to_owned()
        } else {
            "..".chars().chain(text.chars().skip(length - room.saturating_sub(2))).collect()
        };
        canvas.text(at.0, at.1 + self.side + 4 + line * LINE_HEIGHT, &shown, color);
    }
}

/// Draws `image` into the square at `at`, as large as it fits and in the middle. Small images are
/// enlarged by a whole number, pixel by pixel, so that the sheet shows the actual pixels.
pub(super) fn fit(
    canvas: &mut Canvas,
    at: (u32, u32),
    side: u32,
    image: &Image,
    level: Level,
    resampler: &mut Resampler,
) {
    let width = image.width;
    let height = image.height;
    if width == 0 || height == 0 {
        return;
    }
    let longer = width.max(height);
    let longest = if longer > side { side } else { side / longer * longer };
    let scaled = |length: u32| {
        let fitted = u64::from(length) * u64::from(longest) / u64::from(longer);
        u32::try_from(fitted).unwrap_or(side).max(1)
    };
    let resized = (scaled(width), scaled(height));
    let left = at.0 + (side - resized.0) / 2;
    let top = at.1 + (side - resized.1) / 2;
    let resize = Resize {
        region: Rect::of_size(width, height),
        resized,
        window: Rect::of_size(resized.0, resized.1),
        filter: if longer > side { Filter::Lanczos } else { Filter::Nearest },
    };
    let spread: Vec<u8>;
    let pixels = if image.channels == 1 {
        spread = image.data.iter().flat_map(|&grey| [grey; 3]).collect();
        &spread
    } else {
        &image.data
    };
    let source = ImageView::packed(pixels, width, height, 3);
    resampler.run(level, source, &resize, |y, row| canvas.row(left, top + y, row));
}
