//! The sheet of all operations: a row for each, with the original and some results of it.

use std::sync::Arc;

use tl_decode::Image;
use tl_pipeline::{PipelineError, Renderer, SampleError};
use tl_transform::op::{CenterCrop, Resize, ToFloat};
use tl_transform::{Draw, Dtype, Layout, Op, OutputSpec, Plan, Recipe};
use turboloader::sheet::{BACKGROUND, Canvas, GAP, GLYPH_SIDE, MAX_SHEET_PIXELS, Painter, Rgb};

use super::Args;
use super::{chosen, showcase, too_large};
use crate::args::GlobalArgs;
use crate::data_set::{self, Sample};
use crate::failure::{Failure, NO_SAMPLES, Verdict};
use crate::output::write_file;
use crate::pixels::SampleDecoder;

const TITLE: Rgb = [235, 235, 235];
/// Room for the title above a row, and between rows.
const TITLE_HEIGHT: u32 = GLYPH_SIDE + 4;
/// Rows are arranged in this many columns, or the sheet would be a ribbon.
const COLUMNS: u32 = 2;
/// So many photographs take turns.
const SAMPLES: usize = 8;
/// Every row has different samples, or all that happens half of the time would happen at once.
const SAMPLES_PER_ROW: u64 = 1 << 32;
/// Images have twice the side of their cell, so that what is cut out of them keeps its detail.
const OVERSAMPLING: u32 = 2;

/// Draws the sheet.
pub(super) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let photographs = photographs(args, global)?;
    let operations = showcase::operations();
    let sheet = Sheet::new(operations.len(), args.draws.get(), args.size)?;
    let mut canvas = Canvas::new(sheet.width, sheet.height, BACKGROUND);
    let mut painter = Painter::new(args.size);
    for (row, op) in operations.into_iter().enumerate() {
        let photograph = &photographs[row % photographs.len()];
        let (x, y) = sheet.corner(row);
        canvas.text(x, y, &sheet.title(&op), TITLE);
        let first = row as u64 * SAMPLES_PER_ROW;
        let mut drawing = Drawing::new(op, photograph, args.seed, first)?;
        for column in 0..=args.draws.get() {
            let made = if column == 0 { photograph } else { drawing.draw(column - 1)? };
            let left = x + u32::try_from(column).unwrap_or(u32::MAX) * (args.size + GAP);
            let at = (left, y + TITLE_HEIGHT);
            painter.fit(&mut canvas, at, made);
        }
    }
    write_file(&args.output, args.force, |file| canvas.write_png(file))?;
    Ok(Verdict::Good)
}

/// The photographs of the data set that take turns, each a square; grey ones only where there are
/// no others.
fn photographs(args: &Args, global: &GlobalArgs) -> Result<Vec<Image>, Failure> {
    let data = data_set::open(global, &args.files)?;
    let count = args.count.map_or(SAMPLES, std::num::NonZeroUsize::get);
    let side = args.size * OVERSAMPLING;
    let square = Recipe::new(vec![Resize::new(side).into(), CenterCrop::new(side).into()], PIXELS)?;
    let mut decoder = SampleDecoder::new(args.decode_options());
    let mut renderer = Renderer::new(&square);
    let mut image = Image::new();
    let mut photographs = Vec::new();
    for index in chosen(&args.view.of(&data)?, count) {
        decoder.sample(Sample::of(&data, index)?, &mut image)?;
        let plan = square.plan(image.width, image.height, Draw::default())?;
        photographs.push(render(&mut renderer, &plan, &image, index)?);
    }
    if photographs.iter().any(is_colored) {
        photographs.retain(is_colored);
    }
    if photographs.is_empty() { Err(NO_SAMPLES) } else { Ok(photographs) }
}

/// Whether operations on colours have something to do.
fn is_colored(image: &Image) -> bool {
    image.data.as_chunks().0.iter().any(|[red, green, blue]| red != green || green != blue)
}

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

/// One operation and the image that it is done to.
struct Drawing<'a> {
    recipe: Recipe,
    renderer: Renderer,
    image: &'a Image,
    seed: u64,
    first: u64,
    made: Image,
}

impl<'a> Drawing<'a> {
    /// Draws from sample `first` on.
    fn new(op: Op, image: &'a Image, seed: u64, first: u64) -> Result<Self, Failure> {
        let floats = OutputSpec { dtype: Dtype::F32, ..PIXELS };
        let recipe = if matches!(op, Op::Normalize(_)) {
            Recipe::new(vec![ToFloat {}.into(), op], floats)?
        } else if matches!(op, Op::ToFloat(_)) {
            Recipe::new(vec![op], floats)?
        } else {
            Recipe::new(vec![op], PIXELS)?
        };
        let user_transforms =
            showcase::user_transforms().bind(&recipe).map_err(PipelineError::from)?;
        let renderer = Renderer::new(&recipe).with_user_transforms(user_transforms);
        Ok(Self { recipe, renderer, image, seed, first, made: Image::new() })
    }

    fn draw(&mut self, number: usize) -> Result<&Image, Failure> {
        let Image { width, height, .. } = *self.image;
        let draw = Draw { seed: self.seed, epoch: 0, sample: self.first + number as u64 };
        let mut plan = self.recipe.plan(width, height, draw)?;
        // The images from one sample are next to each other.
        let view = u32::try_from(number).unwrap_or(0) % self.recipe.views();
        self.recipe.plan_view_into((width, height), draw, view, &mut plan)?;
        self.made = render(&mut self.renderer, &plan, self.image, 0)?;
        if self.recipe.output().dtype == Dtype::F32 {
            let (_, [r, g, b, _]) = self.recipe.normalization();
            self.made.data = visible(&self.made.data, [r, g, b]);
        }
        Ok(&self.made)
    }
}

/// Floats as pixels: those in 0..=1 as they are, normalised ones with the mean in the middle and
/// two deviations on both sides.
fn visible(floats: &[u8], std: [f32; 3]) -> Vec<u8> {
    let (scale, offset) = if std == [1.0; 3] { (255.0, 0.0) } else { (64.0, 128.0) };
    let values = floats.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    values.map(|value| (value * scale + offset).round() as u8).collect()
}

fn render(
    renderer: &mut Renderer,
    plan: &Plan,
    image: &Image,
    index: u64,
) -> Result<Image, Failure> {
    let (width, height) = plan.output_size();
    let mut made = Image { width, height, channels: 3, ..Image::new() };
    made.data.resize(renderer.output_bytes((width, height)), 0);
    let done = renderer.render(plan, &image.data, image.width, image.height, &mut made.data);
    done.map_err(|fault| {
        let key = None;
        let shard = tbl_io::Location::default();
        let offset = None;
        let fault = fault.into();
        PipelineError::Sample(Arc::new(SampleError {
            index,
            key,
            shard,
            offset,
            fault,
            attempts: 1,
        }))
    })?;
    Ok(made)
}

/// The positions of the rows.
struct Sheet {
    rows: u32,
    row_width: u32,
    row_height: u32,
    width: u32,
    height: u32,
}

impl Sheet {
    fn new(operations: usize, draws: usize, side: u32) -> Result<Self, Failure> {
        let too_large = || too_large(draws.saturating_add(1), operations);
        let number = |count: usize| u32::try_from(count).map_err(|_| too_large());
        let rows = number(operations)?.div_ceil(COLUMNS);
        let row_height = side + TITLE_HEIGHT + GAP;
        let row_width = number(draws)?.saturating_add(1).saturating_mul(side + GAP) + GAP;
        let width = row_width.saturating_mul(COLUMNS).saturating_add(GAP);
        let height = rows.saturating_mul(row_height).saturating_add(GAP);
        if u64::from(width) * u64::from(height) > MAX_SHEET_PIXELS {
            return Err(too_large());
        }
        Ok(Self { rows, row_width, row_height, width, height })
    }

    /// The position of a row's title.
    fn corner(&self, row: usize) -> (u32, u32) {
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        (GAP + row / self.rows * self.row_width, GAP + row % self.rows * self.row_height)
    }

    /// As much of the operation's text as fits above its row.
    fn title(&self, op: &Op) -> String {
        let room = ((self.row_width - 2 * GAP) / GLYPH_SIDE) as usize;
        let text = op.to_string();
        if text.chars().count() <= room {
            return text;
        }
        text.chars().take(room.saturating_sub(2)).chain("..".chars()).collect()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn rows_lie_on_the_sheet_and_apart() {
        let sheet = Sheet::new(7, 3, 50).unwrap();
        assert_eq!((sheet.rows, sheet.row_width), (4, 4 * 58 + GAP));
        let corners: Vec<_> = (0..7).map(|row| sheet.corner(row)).collect();
        assert_eq!(corners[4], (GAP + sheet.row_width, GAP));
        for (x, y) in corners {
            assert!(x + 4 * 58 <= sheet.width && y + TITLE_HEIGHT + 50 <= sheet.height);
        }
        assert!(Sheet::new(50, usize::MAX, 50).is_err());
    }

    #[test]
    fn normalised_values_are_seen_around_grey() {
        let bytes = |values: [f32; 3]| values.map(f32::to_ne_bytes).as_flattened().to_vec();
        assert_eq!(visible(&bytes([0.0, 1.0, -9.0]), [1.0; 3]), [0, 255, 0]);
        assert_eq!(visible(&bytes([0.0, 1.0, -9.0]), [0.229, 0.224, 0.225]), [128, 192, 0]);
    }
}
