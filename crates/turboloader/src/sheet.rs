//! Contact sheets: pictures of samples in a grid, each with its number, name and class.

mod canvas;
mod shown;

use std::io;

use tbl_io::Escaped;
use tl_decode::{DecodeOptions, Image};
use tl_pipeline::{
    Dataset, DatasetView, PipelineError, SampleFault, SampleRenderer, Stored, Target,
};
use tl_simd::Level;
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize};
use tl_transform::{Draw, Recipe};

use crate::video;

pub use canvas::{Canvas, GLYPH_SIDE, Rgb};
use shown::shown;

/// The colour around cells.
pub const BACKGROUND: Rgb = [24, 24, 24];
/// Pixels between cells and around the sheet.
pub const GAP: u32 = 8;
/// The colour of important captions.
pub const BRIGHT: Rgb = [235, 235, 235];
/// The colour of other captions.
pub const DIM: Rgb = [160, 160, 160];
const MAT: Rgb = [40, 40, 40];
const ALARM: Rgb = [220, 60, 50];
/// How much wider than high a sheet of a grid is, in cells.
const GRID_ASPECT: usize = 2;
/// 64 megapixels: 192 MiB while drawing, and as much as viewers like.
pub const MAX_SHEET_PIXELS: u64 = 64 << 20;
const CAPTION_LINES: u32 = 3;
const LINE_HEIGHT: u32 = GLYPH_SIDE + 3;
/// Space that captions take under a picture.
const CAPTION_HEIGHT: u32 = CAPTION_LINES * LINE_HEIGHT + 2;

/// The reason why a sheet cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SheetError {
    /// More cells than a picture should have.
    #[error("a sheet of {columns} x {rows} cells has more than {MAX_SHEET_PIXELS} pixels")]
    TooLarge { columns: usize, rows: usize },
    /// A sample's index entry or label cannot be read.
    #[error(transparent)]
    Sample(#[from] PipelineError),
    /// The picture cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Draws up to `count` samples of a view, spread over it, into a PNG file: each in a square of `side`
/// pixels. Videos show the frame in
/// their middle. Samples that are not images have captions only, and damaged ones a cross.
///
/// # Errors
/// [`SheetError::TooLarge`]; [`SheetError::Sample`] if an index entry or a label cannot be read, or
/// a sample for another reason than damage, and for views whose samples are drawn anew in every
/// epoch.
pub fn contact_sheet(
    view: &DatasetView,
    count: usize,
    side: u32,
    options: DecodeOptions,
    to: &mut dyn io::Write,
) -> Result<(), SheetError> {
    view.indices().map(drop)?;
    let dataset = view.dataset();
    let places = evenly_spaced(view.len(), count).into_iter();
    let indices: Vec<u64> = places.filter_map(|place| view.sample_at(place)).collect();
    let sheet = Sheet::new(indices.len(), 0, side)?;
    let mut canvas = Canvas::new(sheet.width, sheet.height, BACKGROUND);
    let mut painter = Painter::new(side);
    let mut renderer = SampleRenderer::new(&Recipe::decode(), options);
    let mut image = Image::new();
    for (place, &index) in indices.iter().enumerate() {
        let cell = Cell::describe(dataset, index)?;
        let decoded = match decode(dataset, index, &mut renderer, &mut image) {
            Ok(()) => Some(&image),
            Err(SampleFault::Read(error)) if !error.is_damage() => {
                let error = dataset.sample_error(index, error.into());
                return Err(PipelineError::Sample(error.into()).into());
            }
            Err(_) => None,
        };
        painter.original(&mut canvas, sheet.corner(place, 0), &cell, decoded);
    }
    Ok(canvas.write_png(to)?)
}

fn decode(
    dataset: &Dataset,
    index: u64,
    renderer: &mut SampleRenderer,
    image: &mut Image,
) -> Result<(), SampleFault> {
    let entry = dataset.entry(index)?;
    let mut bytes = Vec::new();
    dataset.read_into(index, &mut bytes)?;
    if video::is_video(&bytes) {
        let shown = video::middle_frame(&bytes, image);
        return shown.map_err(|error| SampleFault::Video { frame: None, source: Box::new(error) });
    }
    let size = (entry.width, entry.height);
    let stored = Stored { format: entry.format, size, bytes: &mut bytes, row_index: None };
    let draw = Draw { seed: 0, epoch: 0, sample: index };
    renderer.render(stored, draw, Target::Image(image)).map(drop)
}

/// `count` sample numbers spread over `0..sample_count`, so that data sorted by class shows more
/// than its first class.
#[must_use]
pub fn evenly_spaced(sample_count: u64, count: usize) -> Vec<u64> {
    let count = u64::try_from(count).unwrap_or(u64::MAX).min(sample_count);
    (0..count)
        .filter_map(|place| {
            let index = u128::from(place) * u128::from(sample_count) / u128::from(count);
            u64::try_from(index).ok()
        })
        .collect()
}

/// The positions of the cells: a grid of samples, or one row of draws per sample.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    columns: usize,
    /// Whether each sample has its own row.
    rows_are_samples: bool,
    cell_width: u32,
    cell_height: u32,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Sheet {
    /// The sheet of so many samples in cells of `side` pixels: a grid, or with `draws` a row for each
    /// sample, with the original and the draws.
    ///
    /// # Errors
    /// [`SheetError::TooLarge`].
    pub fn new(samples: usize, draws: usize, side: u32) -> Result<Self, SheetError> {
        let rows_are_samples = draws > 0;
        let columns = if rows_are_samples {
            draws.saturating_add(1)
        } else {
            samples.saturating_mul(GRID_ASPECT).isqrt().clamp(1, samples.max(1))
        };
        let rows = if rows_are_samples { samples } else { samples.div_ceil(columns) }.max(1);
        let cell_width = side + GAP;
        let cell_height = side + CAPTION_HEIGHT + GAP;
        let length = |cells: usize, cell: u32| {
            u32::try_from(cells).ok()?.checked_mul(cell)?.checked_add(GAP)
        };
        let size = length(columns, cell_width).zip(length(rows, cell_height));
        match size {
            Some((width, height)) if u64::from(width) * u64::from(height) <= MAX_SHEET_PIXELS => {
                Ok(Self { columns, rows_are_samples, cell_width, cell_height, width, height })
            }
            _ => Err(SheetError::TooLarge { columns, rows }),
        }
    }

    /// The top left corner of a cell; `draw` counts from 1, 0 is the original.
    #[must_use]
    pub fn corner(&self, place: usize, draw: usize) -> (u32, u32) {
        let (row, column) = if self.rows_are_samples {
            (place, draw)
        } else {
            (place / self.columns, place % self.columns)
        };
        // `new` has checked that the last cell's far corner fits.
        let at = |cells: usize, cell: u32| {
            GAP + u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(cell)
        };
        (at(column, self.cell_width), at(row, self.cell_height))
    }
}

/// The caption of a sample.
#[derive(Debug)]
pub struct Cell {
    index: u64,
    name: String,
    label: String,
    format: String,
    /// Whether the data set says that this sample is an image.
    pub is_image: bool,
}

impl Cell {
    /// The caption of sample `index`.
    ///
    /// # Errors
    /// [`PipelineError::Sample`] if its index entry or its label cannot be read.
    pub fn describe(data: &Dataset, index: u64) -> Result<Self, PipelineError> {
        let fault = |error: tbl_io::ReadError| {
            PipelineError::Sample(data.sample_error(index, error.into()).into())
        };
        let entry = data.entry(index).map_err(fault)?;
        let label = data.try_label(index).map_err(fault)?;
        let name = entry.key.as_deref().map(|key| Escaped(key).to_string()).unwrap_or_default();
        let number = label.and_then(|label| usize::try_from(label).ok());
        let class = number.and_then(|number| data.class_names().get(number));
        let label = match (class, label) {
            (Some(class), _) => class.clone(),
            (None, Some(label)) => format!("label {label}"),
            (None, None) => String::new(),
        };
        let is_image = entry.format.is_image();
        Ok(Self { index, name, label, format: entry.format.to_string(), is_image })
    }
}

/// Draws cells of one size.
#[derive(Debug)]
pub struct Painter {
    side: u32,
    level: Level,
    resampler: Resampler,
}

impl Painter {
    /// Cells of `side` pixels.
    #[must_use]
    pub fn new(side: u32) -> Self {
        Self { side, level: Level::detect(), resampler: Resampler::new() }
    }

    /// Draws the sample as it is; `None` for one that has no picture.
    pub fn original(
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
            Some(image) => self.fit(canvas, at, image),
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

    /// Draws a picture on its mat.
    pub fn picture(&mut self, canvas: &mut Canvas, at: (u32, u32), image: &Image) {
        canvas.fill(at.0, at.1, self.side, self.side, MAT);
        self.fit(canvas, at, image);
    }

    /// Writes one line under the picture. A text that is too long loses its beginning: names
    /// differ at their ends.
    pub fn caption(&self, canvas: &mut Canvas, at: (u32, u32), line: u32, text: &str, color: Rgb) {
        let room = (self.side / GLYPH_SIDE) as usize;
        let length = text.chars().count();
        let shown: String = if length <= room {
            text.to_owned()
        } else {
            "..".chars().chain(text.chars().skip(length - room.saturating_sub(2))).collect()
        };
        canvas.text(at.0, at.1 + self.side + 4 + line * LINE_HEIGHT, &shown, color);
    }

    /// Draws `image` into the square at `at`, as large as it fits and in the middle. Small images are
    /// enlarged by a whole number, pixel by pixel, so that the sheet shows the actual pixels. Numbers of
    /// 16 bits and floats go from the least one, black, to the greatest, white.
    pub fn fit(&mut self, canvas: &mut Canvas, at: (u32, u32), image: &Image) {
        let side = self.side;
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
        let pixels = shown(image);
        let source = ImageView::packed(&pixels, width, height, 3);
        self.resampler.run(self.level, source, &resize, |y, row| canvas.row(left, top + y, row));
    }
}

#[cfg(test)]
mod tests {
    use super::{Sheet, evenly_spaced};

    #[test]
    fn samples_are_spread_over_the_data_set() {
        assert_eq!(evenly_spaced(10, 5), [0, 2, 4, 6, 8]);
        assert_eq!(evenly_spaced(3, 24), [0, 1, 2]);
        assert_eq!(evenly_spaced(0, 24), [0; 0]);
        assert_eq!(evenly_spaced(u64::MAX, 2), [0, u64::MAX / 2]);
    }

    #[test]
    fn every_cell_lies_on_the_sheet() {
        for (samples, draws) in [(0, 0), (1, 0), (24, 0), (25, 0), (8, 6), (1, 1)] {
            let sheet = Sheet::new(samples, draws, 100).unwrap();
            for place in 0..samples {
                for draw in 0..=draws {
                    let (x, y) = sheet.corner(place, draw);
                    assert!(x + 100 <= sheet.width && y + 100 <= sheet.height);
                }
            }
        }
        assert!(Sheet::new(usize::MAX, 0, 100).is_err());
        assert!(Sheet::new(100_000, 0, 1024).is_err());
    }
}
